//! The progress engine: what this process carries on besides what its program is in.
//!
//! A task is carried on in steps: each goes as far as it comes without waiting, and says what it would wait for. Two take
//! them: the program, in every call that comes to us, and the [progress thread](super::progress_thread). Messages are for
//! the program, and for the thread if no MPI is needed for them, or any thread may call it. What is written to and read
//! from storage is for the thread alone, if there is one: the program's calls return at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Who carries on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// A thread of the program, inside a call of MPI.
    Program,
    /// The progress thread.
    ProgressThread,
}

/// What a step may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct May {
    /// Send messages, and look for some.
    pub(crate) messages: bool,
    /// Read and write files, which takes as long as it takes.
    pub(crate) storage: bool,
}

impl May {
    /// What a blocking operation does.
    pub(crate) const ALL: May = May { messages: true, storage: true };
}

/// What would block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WouldBlock {
    /// Other ranks' messages, or their taking ours.
    OnMessages,
    /// A request to storage.
    OnStorage,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<T> {
    /// The end.
    Done(T),
    /// To be taken up again.
    Blocked {
        /// What it waits for.
        on: WouldBlock,
        /// Whether it came any further.
        moved: bool,
    },
}

impl<T> Step<T> {
    /// The same with another result.
    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> Step<U> {
        match self {
            Step::Done(result) => Step::Done(map(result)),
            Step::Blocked { on, moved } => Step::Blocked { on, moved },
        }
    }
}

/// What is left of a task after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Whether anything.
    pub(crate) any: bool,
    /// Whether the progress thread can carry on with it.
    pub(crate) for_thread: bool,
    /// Whether the step came any further.
    pub(crate) moved: bool,
}

/// Something that is carried on until nothing of it is left.
pub(crate) trait Task: Send + Sync {
    /// Carries on as far as it comes without waiting. If somebody else is at it, this does nothing.
    fn step(&self, who: Who) -> Left;

    /// Whether anything is left.
    fn is_left(&self) -> bool;
}

/// Held by a test that is the program of this process: there is one list of tasks, and every call of a program carries on with
/// all of them.
#[cfg(test)]
pub(crate) static PROGRAM_OF_TESTS: Mutex<()> = Mutex::new(());

/// Tasks of which something is left.
static BUSY: Mutex<Vec<Arc<dyn Task>>> = Mutex::new(Vec::new());
/// How many these are, to be looked at without a lock.
static BUSY_COUNT: AtomicUsize = AtomicUsize::new(0);

/// How often the program carried on.
static LOOKS: AtomicUsize = AtomicUsize::new(0);
/// How often the progress thread came further.
static STEPS: AtomicUsize = AtomicUsize::new(0);
/// How many threads of the program sleep until it does.
static SLEEPERS: Mutex<usize> = Mutex::new(0);
static STEPPED: Condvar = Condvar::new();
/// Whether there is a progress thread: not if none could be started.
static IS_THREAD_THERE: AtomicBool = AtomicBool::new(false);

/// Carries on with all tasks of this process, as far as they come without waiting; what is left. For the program.
pub(crate) fn progress() -> Left {
    if BUSY_COUNT.load(Ordering::Acquire) == 0 {
        return Left::default();
    }
    LOOKS.fetch_add(1, Ordering::Relaxed);
    carry_on(Who::Program)
}

/// The same for the progress thread.
pub(crate) fn progress_in_thread() -> Left {
    let left = carry_on(Who::ProgressThread);
    if left.moved {
        STEPS.fetch_add(1, Ordering::Release);
        if *lock(&SLEEPERS) > 0 {
            STEPPED.notify_all();
        }
    }
    left
}

/// A number that changes while the program carries on itself.
pub(crate) fn looks_of_program() -> usize {
    LOOKS.load(Ordering::Relaxed)
}

/// A number that changes when the progress thread comes further.
pub(crate) fn steps_of_thread() -> usize {
    STEPS.load(Ordering::Acquire)
}

/// Sleeps until the progress thread has come further than `steps`, at most so long.
pub(crate) fn sleep_until_stepped(steps: usize, longest: Duration) {
    let mut sleepers = lock(&SLEEPERS);
    if steps_of_thread() != steps {
        return;
    }
    *sleepers += 1;
    let (mut sleepers, _) = STEPPED.wait_timeout(sleepers, longest).unwrap_or_else(PoisonError::into_inner);
    *sleepers -= 1;
}

/// From now on, there is a progress thread.
pub(crate) fn thread_is_there() {
    IS_THREAD_THERE.store(true, Ordering::Release);
}

/// What a step of `who` may do of a task whose messages any thread may send, or not.
pub(crate) fn may(who: Who, any_thread_sends: bool) -> May {
    match who {
        Who::Program => May { messages: true, storage: !IS_THREAD_THERE.load(Ordering::Acquire) },
        Who::ProgressThread => May { messages: any_thread_sends, storage: true },
    }
}

/// From now on, the task is carried on, until nothing is left of it. `begin` puts something there.
pub(crate) fn add(task: Arc<dyn Task>, begin: impl FnOnce()) {
    let mut busy = lock(&BUSY);
    begin();
    if !busy.iter().any(|other| Arc::ptr_eq(other, &task)) {
        busy.push(task);
    }
    BUSY_COUNT.store(busy.len(), Ordering::Release);
}

fn carry_on(who: Who) -> Left {
    // Not with the lock: a step of one thread may take long.
    let tasks = lock(&BUSY).clone();
    let mut all = Left::default();
    let mut is_one_done = false;
    for task in &tasks {
        let left = task.step(who);
        is_one_done |= !left.any;
        all.any |= left.any;
        all.for_thread |= left.for_thread;
        all.moved |= left.moved;
    }
    if is_one_done {
        let mut busy = lock(&BUSY);
        // Something may have been put there meanwhile.
        busy.retain(|task| task.is_left());
        BUSY_COUNT.store(busy.len(), Ordering::Release);
    }
    all
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
