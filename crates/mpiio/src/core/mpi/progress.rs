//! The progress engine: what this process carries on besides what its program is in.
//!
//! Tasks are carried on by the program, in every call that comes to us, and by the [progress thread](super::progress_thread).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Who carries on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A thread of the program, inside a call of MPI.
    Program,
    /// The progress thread.
    ProgressThread,
}

/// What is left of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Whether it must be carried on at all.
    pub any: bool,
    /// Whether the progress thread can do that.
    pub for_thread: bool,
}

/// Something that is carried on until nothing of it is left.
pub trait Task: Send + Sync {
    /// Carries on as far as it comes without waiting.
    fn step(&self, who: Who) -> Left;
}

/// How often the program carried on.
static LOOKS: AtomicUsize = AtomicUsize::new(0);

/// Tasks of which something is left.
static BUSY: Mutex<Vec<Arc<dyn Task>>> = Mutex::new(Vec::new());
/// How many these are, to be looked at without a lock.
static BUSY_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Carries on with all tasks of this process, as far as they come without waiting.
pub fn progress() {
    if BUSY_COUNT.load(Ordering::Acquire) > 0 {
        LOOKS.fetch_add(1, Ordering::Relaxed);
        carry_on(Who::Program);
    }
}

/// The same for the progress thread; whether there is something left for it.
pub fn take_care() -> bool {
    carry_on(Who::ProgressThread)
}

/// A number that changes while the program carries on itself.
pub fn looks_of_program() -> usize {
    LOOKS.load(Ordering::Relaxed)
}

/// Whether there are tasks.
pub fn is_busy() -> bool {
    BUSY_COUNT.load(Ordering::Acquire) > 0
}

/// From now on, the task is carried on, until nothing is left of it. `begin` runs before anybody looks at it.
pub fn add(task: Arc<dyn Task>, begin: impl FnOnce()) {
    let mut busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
    begin();
    if !busy.iter().any(|other| Arc::ptr_eq(other, &task)) {
        busy.push(task);
    }
    BUSY_COUNT.store(busy.len(), Ordering::Release);
}

fn carry_on(who: Who) -> bool {
    // Another thread, or this one further up (MPI may call us back), is at it.
    let Ok(mut busy) = BUSY.try_lock() else { return true };
    let mut is_left = false;
    busy.retain(|task| {
        let left = task.step(who);
        is_left |= left.for_thread;
        left.any
    });
    BUSY_COUNT.store(busy.len(), Ordering::Release);
    is_left
}
