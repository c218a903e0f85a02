//! Work that can be left in the middle and taken up again: the ground of nonblocking collective operations.
//!
//! What carries an operation out is written straight on, and waits for other ranks where it must. For a nonblocking
//! operation it runs on a stack of its own: instead of waiting, it goes back to whoever called, and is resumed at the
//! next look. So blocking and nonblocking operations are the same code, and no thread is needed, which the program's
//! MPI may not have been started for.

use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// MPI's own calls run on this stack, too. Only pages that are used take memory.
const STACK_BYTES: usize = 1 << 20;
/// Below the stack: who runs over it must not run into other memory.
const GUARD_BYTES: usize = 64 << 10;

thread_local! {
    /// The coroutine that this thread is in.
    static CURRENT: Cell<*mut Inner> = const { Cell::new(ptr::null_mut()) };
}

/// Work on a stack of its own.
pub struct Coroutine {
    inner: Box<Inner>,
}

struct Inner {
    /// None if there is no memory for one: then the work blocks.
    stack: Option<*mut c_void>,
    /// Where the work goes on.
    own: libc::ucontext_t,
    /// Where whoever resumed it goes on.
    caller: libc::ucontext_t,
    work: Option<Box<dyn FnOnce() + Send>>,
    finished: bool,
}

// SAFETY: the work is Send, and the stack belongs to it; nobody resumes it twice at once, for that takes `&mut`. Between
// two resumptions it holds nothing of its thread.
unsafe impl Send for Coroutine {}

impl Coroutine {
    /// Work that has not begun.
    pub fn new(work: Box<dyn FnOnce() + Send>) -> Coroutine {
        // SAFETY: all zeros is a valid context to fill in.
        let (own, caller) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut inner = Box::new(Inner { stack: None, own, caller, work: Some(work), finished: false });
        // SAFETY: the context lives in the box, which does not move; the stack is ours until `drop`.
        unsafe {
            if let Some(stack) = new_stack()
                && libc::getcontext(&mut inner.own) == 0
            {
                inner.stack = Some(stack);
                inner.own.uc_stack.ss_sp = stack.cast::<u8>().add(GUARD_BYTES).cast();
                inner.own.uc_stack.ss_size = STACK_BYTES;
                inner.own.uc_link = &mut inner.caller;
                libc::makecontext(&mut inner.own, begin, 0);
            }
        }
        Coroutine { inner }
    }

    /// Lets the work go on until it pauses or ends; true if it has ended.
    pub fn resume(&mut self) -> bool {
        let inner: *mut Inner = &mut *self.inner;
        // SAFETY: the contexts live in the box. Whatever ran before on this thread goes on when the work pauses or ends.
        unsafe {
            if (*inner).stack.is_none() {
                run(inner);
            } else if !(*inner).finished {
                let outer = CURRENT.replace(inner);
                libc::swapcontext(&mut (*inner).caller, &(*inner).own);
                CURRENT.set(outer);
            }
            (*inner).finished
        }
    }
}

impl Drop for Coroutine {
    fn drop(&mut self) {
        // Work that was left in the middle keeps its stack: what is on it is never unwound, and MPI may still know of it.
        let idle = self.inner.finished || self.inner.work.is_some();
        if let Some(stack) = self.inner.stack.filter(|_| idle) {
            // SAFETY: the mapping of `new`, which nothing uses any more.
            unsafe { libc::munmap(stack, GUARD_BYTES + STACK_BYTES) };
        }
    }
}

/// If this is inside a coroutine, goes back to whoever resumed it, until it is resumed; else returns false at once.
#[inline(never)]
pub fn pause() -> bool {
    let inner = CURRENT.get();
    if inner.is_null() {
        return false;
    }
    // SAFETY: set by `resume`, which waits in `caller`.
    unsafe { libc::swapcontext(&mut (*inner).own, &(*inner).caller) };
    true
}

/// Where a coroutine's stack begins. Returning from here goes back to whoever resumed it last.
extern "C" fn begin() {
    // SAFETY: set by `resume`.
    unsafe { run(CURRENT.get()) }
}

/// # Safety
/// `inner` must be valid.
unsafe fn run(inner: *mut Inner) {
    // SAFETY: by contract. No reference is held while the work runs: it comes back here through `pause`.
    unsafe {
        if let Some(work) = (*inner).work.take() {
            // The work says itself whether it could be done; a panic must not run off the stack.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
        (*inner).finished = true;
    }
}

fn new_stack() -> Option<*mut c_void> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping; the guard lies inside it.
    unsafe {
        let stack = libc::mmap(ptr::null_mut(), GUARD_BYTES + STACK_BYTES, protection, flags, -1, 0);
        (stack != libc::MAP_FAILED).then(|| {
            libc::mprotect(stack, GUARD_BYTES, libc::PROT_NONE);
            stack
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::*;

    fn counting(steps: u32) -> (Coroutine, Arc<AtomicU32>) {
        let count = Arc::new(AtomicU32::new(0));
        let counted = count.clone();
        let work = move || {
            for _ in 0..steps {
                counted.fetch_add(1, SeqCst);
                assert!(pause());
            }
        };
        (Coroutine::new(Box::new(work)), count)
    }

    #[test]
    fn work_goes_on_where_it_paused() {
        let (mut one, first) = counting(3);
        let (mut other, second) = counting(1);
        for step in 1..=3 {
            assert!(!one.resume());
            assert_eq!(first.load(SeqCst), step);
        }
        assert!(!other.resume());
        assert!(one.resume() && other.resume());
        assert!(one.resume(), "stays finished");
        assert_eq!((first.load(SeqCst), second.load(SeqCst)), (3, 1));
        assert!(!pause(), "nothing to pause outside");
    }

    #[test]
    fn work_may_go_on_in_another_thread() {
        let (mut one, count) = counting(2);
        assert!(!one.resume());
        let mut one = std::thread::spawn(move || {
            assert!(!one.resume());
            one
        })
        .join()
        .unwrap();
        assert!(one.resume());
        assert_eq!(count.load(SeqCst), 2);
    }

    #[test]
    fn a_panic_ends_the_work_only() {
        let mut one = Coroutine::new(Box::new(|| {
            pause();
            panic!("inside");
        }));
        assert!(!one.resume());
        assert!(one.resume());
    }

    #[test]
    fn coroutines_may_resume_others() {
        let (mut inside, count) = counting(1);
        let mut outside = Coroutine::new(Box::new(move || {
            assert!(!inside.resume());
            pause();
            assert!(inside.resume());
        }));
        assert!(!outside.resume());
        assert!(outside.resume());
        assert_eq!(count.load(SeqCst), 1);
    }
}
