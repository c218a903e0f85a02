//! The queue of a file's operations: one after the other, in the order in which the program called them.
//!
//! A file has one for its collective operations, and one for its independent ones, which must not wait for other ranks. An
//! operation has the queue's resource while it is carried out: collective ones the file's channel. A blocking operation
//! waits until none is before it, and carries itself out. A nonblocking one waits in the queue, and is carried on by the
//! [progress engine](progress). Only the program is told that it is complete, because MPI is told, too.

use std::any::Any;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::mpi::backoff::Backoff;
use crate::core::mpi::progress::{self, Left, May, Step, Task, Who, WouldBlock};
use crate::core::mpi::progress_thread;
use crate::core::mpi::status::Status;
use crate::core::mpi::table::MpiTable;

/// A step of an operation that has the resource; bytes moved, in the end.
pub(crate) type Work<R> = Box<dyn FnMut(&mut R, May) -> Step<Result<u64, Status>> + Send>;

/// Whom to tell that a nonblocking operation is complete: the shim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// The shim's functions.
    pub(crate) mpi: &'static MpiTable,
    /// The shim's name for the operation.
    pub(crate) token: *mut c_void,
}

// SAFETY: the token is the shim's, which takes it back from any thread.
unsafe impl Send for Completion {}

impl Completion {
    fn tell(self, outcome: Result<u64, Status>) {
        let number = Status::number(outcome.map(drop));
        // SAFETY: the shim's function and token; it is told once.
        unsafe { (self.mpi.complete)(self.token, number, outcome.unwrap_or(0)) };
    }
}

/// The queue of the operations that need an `R`.
pub(crate) struct Queue<R> {
    line: Arc<Mutex<Line<R>>>,
}

struct Line<R> {
    /// Here, unless a blocking operation has it.
    resource: Option<R>,
    waiting: VecDeque<Operation<R>>,
    current: Option<Operation<R>>,
    /// On what the current operation would block.
    blocked: WouldBlock,
    /// Those that are complete, and whom to tell.
    ended: Vec<(Completion, Result<u64, Status>)>,
    /// Whether any thread may send and take the messages of these operations.
    any_thread_sends: bool,
    /// The resource is gone for good: an operation panicked.
    lost: bool,
}

struct Operation<R> {
    work: Work<R>,
    completion: Option<Completion>,
}

impl<R> std::fmt::Debug for Queue<R> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl<R: Send + 'static> Queue<R> {
    /// An empty queue. `any_thread_sends`: whether the messages of its operations, if they have any, need no MPI, or any
    /// thread may call MPI.
    pub(crate) fn new(resource: R, any_thread_sends: bool) -> Queue<R> {
        let line = Line {
            resource: Some(resource),
            waiting: VecDeque::new(),
            current: None,
            blocked: WouldBlock::OnStorage,
            ended: Vec::new(),
            any_thread_sends,
            lost: false,
        };
        Queue { line: Arc::new(Mutex::new(line)) }
    }

    /// Waits until all operations before are complete, and takes the resource.
    ///
    /// # Errors
    /// If an operation before panicked, and took the resource with it.
    pub(crate) fn acquire(&self) -> Result<Acquired<'_, R>, Status> {
        let mut backoff = Backoff::new();
        // Who was before this one is told first.
        progress_thread::progress();
        loop {
            let mut line = lock(&self.line);
            if line.lost {
                return Err(Status::Internal);
            }
            if !line.is_busy()
                && let Some(resource) = line.resource.take()
            {
                return Ok(Acquired { queue: self, resource: Some(resource) });
            }
            drop(line);
            // Which makes progress.
            backoff.wait_for_oneself();
        }
    }

    /// Waits until the operations before are complete, if there are any.
    pub(crate) fn drain(&self) {
        let mut backoff = Backoff::new();
        while lock(&self.line).is_busy() {
            backoff.wait_for_oneself();
        }
    }

    /// Puts an operation into the queue; `completion` is told of its end.
    pub(crate) fn start(&self, work: Work<R>, completion: Option<Completion>) {
        let (mut for_thread, mut any_thread_sends) = (false, false);
        progress::add(self.line.clone(), || {
            let mut line = lock(&self.line);
            line.waiting.push_back(Operation { work, completion });
            (for_thread, any_thread_sends) = (line.is_for_thread(), line.any_thread_sends);
        });
        if for_thread {
            progress_thread::wake();
        }
        // What needs the program's MPI, or all if there is no thread.
        if !any_thread_sends || progress::may(Who::Program, false) == May::ALL {
            progress_thread::progress();
        }
    }

    /// The resource, after the last operation.
    pub(crate) fn into_resource(self) -> Option<R> {
        self.acquire().ok().and_then(|mut acquired| acquired.resource.take())
    }
}

impl<R: Send + 'static> Task for Mutex<Line<R>> {
    fn step(&self, who: Who) -> Left {
        // Whoever has it carries on.
        let Ok(mut line) = self.try_lock() else {
            return Left { any: true, for_thread: false, moved: false };
        };
        let may = progress::may(who, line.any_thread_sends);
        let mut moved = line.work(may);
        if who == Who::Program {
            moved |= !line.ended.is_empty();
            for (completion, outcome) in std::mem::take(&mut line.ended) {
                completion.tell(outcome);
            }
        }
        Left {
            any: line.is_busy() || !line.ended.is_empty(),
            for_thread: line.is_busy() && line.is_for_thread(),
            moved,
        }
    }

    fn is_left(&self) -> bool {
        self.try_lock().map_or(true, |line| line.is_busy() || !line.ended.is_empty())
    }
}

impl<R> Line<R> {
    fn is_busy(&self) -> bool {
        self.current.is_some() || !self.waiting.is_empty()
    }

    /// Whether the progress thread could carry on with the operation that comes next.
    fn is_for_thread(&self) -> bool {
        self.any_thread_sends || self.current.is_none() || self.blocked == WouldBlock::OnStorage
    }

    /// Carries on until an operation would block, or all are complete; whether any came further.
    fn work(&mut self, may: May) -> bool {
        let mut any_moved = false;
        while let Some(resource) = &mut self.resource
            && let Some(mut operation) = self.current.take().or_else(|| self.waiting.pop_front())
        {
            let step = catch_unwind(AssertUnwindSafe(|| (operation.work)(resource, may)));
            let outcome = match step {
                Ok(Step::Blocked { on, moved }) => {
                    (self.current, self.blocked) = (Some(operation), on);
                    return any_moved | moved;
                }
                Ok(Step::Done(outcome)) => outcome,
                Err(panic) => {
                    self.lose(panic);
                    Err(Status::Internal)
                }
            };
            any_moved = true;
            self.ended.extend(operation.completion.map(|completion| (completion, outcome)));
        }
        if self.lost {
            let waiting = std::mem::take(&mut self.waiting).into_iter().filter_map(|one| one.completion);
            self.ended.extend(waiting.map(|completion| (completion, Err(Status::Internal))));
        }
        any_moved
    }

    /// What an operation that panicked worked with is in a state that nobody knows.
    fn lose(&mut self, _: Box<dyn Any + Send>) {
        self.lost = true;
        self.resource = None;
    }
}

fn lock<R>(line: &Mutex<Line<R>>) -> MutexGuard<'_, Line<R>> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The resource, with a blocking operation.
#[derive(Debug)]
pub(crate) struct Acquired<'a, R> {
    queue: &'a Queue<R>,
    resource: Option<R>,
}

impl<R> Deref for Acquired<'_, R> {
    type Target = R;

    #[allow(clippy::expect_used)] // taken only by `drop`
    fn deref(&self) -> &R {
        self.resource.as_ref().expect("the resource is here until the operation ends")
    }
}

impl<R> DerefMut for Acquired<'_, R> {
    #[allow(clippy::expect_used)] // taken only by `drop`
    fn deref_mut(&mut self) -> &mut R {
        self.resource.as_mut().expect("the resource is here until the operation ends")
    }
}

impl<R> Drop for Acquired<'_, R> {
    fn drop(&mut self) {
        lock(&self.queue.line).resource = self.resource.take();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};

    use super::*;

    /// How many completions were told, and the last status.
    static TOLD: AtomicU32 = AtomicU32::new(0);
    static STATUS: AtomicI32 = AtomicI32::new(-1);

    unsafe extern "C" fn complete(_: *mut c_void, status: i32, _: u64) {
        STATUS.store(status, SeqCst);
        TOLD.fetch_add(1, SeqCst);
    }

    fn completion() -> Completion {
        // SAFETY: a table of 13 functions, of which only `complete` is called.
        let mpi: MpiTable = unsafe { std::mem::transmute([complete as *const c_void; 13]) };
        Completion { mpi: Box::leak(Box::new(mpi)), token: std::ptr::null_mut() }
    }

    /// Counts its steps, and which of them could use storage; done after so many of these.
    fn counting(steps: u32, done: &Arc<Mutex<Vec<u32>>>, name: u32) -> Work<u32> {
        let (mut left, done) = (steps, done.clone());
        Box::new(move |resource, may| {
            if !may.storage {
                return Step::Blocked { on: WouldBlock::OnStorage, moved: false };
            }
            left -= 1;
            *resource += 1;
            if left > 0 {
                return Step::Blocked { on: WouldBlock::OnStorage, moved: true };
            }
            done.lock().unwrap().push(name);
            if name == 9 {
                panic!("inside")
            }
            Step::Done(Ok(1))
        })
    }

    /// In one test, because the tasks of a process have one list: in order, by the thread, told by the program, and lost with
    /// one that panics.
    #[test]
    fn operations_are_carried_on_in_order_and_told_by_the_program() {
        let queue = Queue::new(0_u32, true);
        let done = Arc::new(Mutex::new(Vec::new()));
        for name in 0..3 {
            queue.start(counting(3 - name, &done, name), Some(completion()));
        }
        while done.lock().unwrap().len() < 3 {
            std::thread::yield_now();
        }
        // No call of the program has come by: nobody was told.
        assert_eq!(TOLD.load(SeqCst), 0);
        assert_eq!(*queue.acquire().unwrap(), 6);
        assert_eq!((TOLD.load(SeqCst), STATUS.load(SeqCst)), (3, 0));
        assert_eq!(*done.lock().unwrap(), [0, 1, 2]);
        queue.start(counting(1, &done, 9), Some(completion()));
        queue.start(counting(1, &done, 4), Some(completion()));
        while TOLD.load(SeqCst) < 5 {
            progress_thread::progress();
        }
        assert_eq!(STATUS.load(SeqCst), Status::Internal as i32);
        assert_eq!(queue.acquire().err(), Some(Status::Internal));
        assert_eq!(*done.lock().unwrap(), [0, 1, 2, 9]);
    }
}
