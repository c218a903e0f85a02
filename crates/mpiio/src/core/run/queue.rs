//! The queue of a file's operations: one after the other, in the order in which the program called them.
//!
//! A file has one for its collective operations, and one for its independent ones, which must not wait for other ranks. An
//! operation has the queue's resource while it is carried out: collective ones the file's channel. A blocking operation
//! waits until none is before it, and carries itself out. A nonblocking one waits in the queue, and is carried on by the
//! [progress engine](progress). Only the program is told that it is complete, because MPI is told, too.

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
use crate::core::run::recorded_operation::RecordedOperation;

/// A step of an operation that has the resource; bytes moved, in the end.
pub(crate) type Work<R> = Box<dyn FnMut(&mut R, May) -> Step<Result<u64, Status>> + Send>;

/// Whom to tell that a nonblocking operation is complete: the shim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// The shim's functions.
    pub(crate) mpi: &'static MpiTable,
    /// The shim's name for the operation; null if it only wants to know when that is through.
    pub(crate) token: *mut c_void,
}

// SAFETY: the token is the shim's, which takes it back from any thread.
unsafe impl Send for Completion {}

impl Completion {
    /// The same of an operation that the shim has already given up.
    pub(crate) fn without_token(self) -> Completion {
        Completion { token: std::ptr::null_mut(), ..self }
    }

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
    /// Here, unless an operation has it.
    resource: Option<R>,
    /// Somebody is in a step of an operation, which may take long: not with the lock.
    is_running: bool,
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
    completion: Completion,
    /// The call that began it.
    recorded: RecordedOperation,
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
            is_running: false,
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
        Backoff::wait_until(|| !lock(&self.line).is_busy());
    }

    /// Puts an operation into the queue; `completion` is told of its end.
    pub(crate) fn start(&self, work: Work<R>, completion: Completion) {
        let (mut for_thread, mut any_thread_sends) = (false, false);
        let recorded = RecordedOperation::current();
        progress::add(self.line.clone(), || {
            let mut line = lock(&self.line);
            line.waiting.push_back(Operation { work, completion, recorded });
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

    /// The resource, after the last operation: what wants it from then on fails.
    pub(crate) fn give_up(&self) -> Option<R> {
        let resource = self.acquire().ok()?.resource.take();
        lock(&self.line).lost = true;
        resource
    }
}

impl<R: Send + 'static> Task for Mutex<Line<R>> {
    fn step(&self, who: Who) -> Left {
        let mut moved = false;
        loop {
            // The lock ends with this line.
            let taken = lock(self).take(who);
            let Some(taken) = taken else { break };
            let (came_further, is_through) = taken.step(self);
            moved |= came_further;
            if !is_through {
                break;
            }
        }
        if who == Who::Program {
            // Not with the lock: MPI is told, which may call us back.
            let ended = std::mem::take(&mut lock(self).ended);
            moved |= !ended.is_empty();
            for (completion, outcome) in ended {
                completion.tell(outcome);
            }
        }
        let line = lock(self);
        Left { any: line.is_left(), for_thread: line.is_for_thread(), moved }
    }

    fn is_left(&self) -> bool {
        lock(self).is_left()
    }
}

impl<R> Line<R> {
    fn is_busy(&self) -> bool {
        self.is_running || self.current.is_some() || !self.waiting.is_empty()
    }

    fn is_left(&self) -> bool {
        self.is_busy() || !self.ended.is_empty()
    }

    /// Whether the progress thread could carry on with the operation that comes next. Who is in a step takes the next one
    /// itself.
    fn is_for_thread(&self) -> bool {
        self.is_busy()
            && !self.is_running
            && self.resource.is_some()
            && (self.any_thread_sends || self.current.is_none() || self.blocked == WouldBlock::OnStorage)
    }

    /// The operation that comes next and what it needs, for a step of `who`.
    fn take(&mut self, who: Who) -> Option<Taken<R>> {
        if self.lost {
            self.lose();
        }
        if self.is_running || (self.current.is_none() && self.waiting.is_empty()) {
            return None;
        }
        let resource = self.resource.take()?;
        let operation = self.current.take().or_else(|| self.waiting.pop_front())?;
        self.is_running = true;
        Some(Taken { operation, resource, may: progress::may(who, self.any_thread_sends) })
    }

    /// What an operation that panicked worked with is in a state that nobody knows: it is gone, and those that wait fail.
    fn lose(&mut self) {
        self.lost = true;
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        self.ended.extend(waiting.map(|one| (one.completion, Err(Status::Internal))));
    }
}

/// An operation that somebody is in a step of.
struct Taken<R> {
    operation: Operation<R>,
    resource: R,
    may: May,
}

impl<R> Taken<R> {
    /// Takes the step, and puts back what is left; whether it came any further, and whether it is through.
    fn step(self, line: &Mutex<Line<R>>) -> (bool, bool) {
        let Taken { mut operation, mut resource, may } = self;
        let recorded = operation.recorded;
        let step =
            recorded.during(|| catch_unwind(AssertUnwindSafe(|| (operation.work)(&mut resource, may))));
        if let Ok(Step::Blocked { on, moved }) = step {
            let mut line = lock(line);
            (line.current, line.blocked) = (Some(operation), on);
            (line.resource, line.is_running) = (Some(resource), false);
            return (moved, false);
        }
        let Operation { work, completion, .. } = operation;
        // Before others see that it is through: it keeps the file.
        drop(work);
        let mut line = lock(line);
        line.is_running = false;
        let outcome = match step {
            Ok(Step::Done(outcome)) => {
                line.resource = Some(resource);
                outcome
            }
            _ => Err(Status::Internal),
        };
        line.ended.push((completion, outcome));
        if step.is_err() {
            line.lose();
        }
        (true, true)
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
    use std::sync::PoisonError;
    use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};

    use super::*;
    use crate::core::mpi::progress::PROGRAM_OF_TESTS;

    /// How many completions were told, and the last status.
    static TOLD: AtomicU32 = AtomicU32::new(0);
    static STATUS: AtomicI32 = AtomicI32::new(-1);

    unsafe extern "C" fn complete(_: *mut c_void, status: i32, _: u64) {
        STATUS.store(status, SeqCst);
        TOLD.fetch_add(1, SeqCst);
    }

    fn completion() -> Completion {
        // SAFETY: a table of 14 functions, of which only `complete` is called.
        let mpi: MpiTable = unsafe { std::mem::transmute([complete as *const c_void; 14]) };
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
        let _program = PROGRAM_OF_TESTS.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = Queue::new(0_u32, true);
        let done = Arc::new(Mutex::new(Vec::new()));
        for name in 0..3 {
            queue.start(counting(3 - name, &done, name), completion());
        }
        while done.lock().unwrap().len() < 3 {
            std::thread::yield_now();
        }
        // No call of the program has come by: nobody was told.
        assert_eq!(TOLD.load(SeqCst), 0);
        assert_eq!(*queue.acquire().unwrap(), 6);
        assert_eq!((TOLD.load(SeqCst), STATUS.load(SeqCst)), (3, 0));
        assert_eq!(*done.lock().unwrap(), [0, 1, 2]);
        queue.start(counting(1, &done, 9), completion());
        queue.start(counting(1, &done, 4), completion());
        while TOLD.load(SeqCst) < 5 {
            progress_thread::progress();
        }
        assert_eq!(STATUS.load(SeqCst), Status::Internal as i32);
        assert_eq!(queue.acquire().err(), Some(Status::Internal));
        assert_eq!(*done.lock().unwrap(), [0, 1, 2, 9]);
    }
}
