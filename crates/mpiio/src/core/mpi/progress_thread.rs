//! The thread that carries on with nonblocking operations while the program does something else.
//!
//! MPI promises that an operation goes on once it has begun, whatever its ranks do: a program computes meanwhile, or is in a
//! barrier while another rank waits for the operation. A blocking collective call of the program cannot be taken apart to
//! look after our operations in between: the MPI would not match it with the whole ones of other ranks, which have nothing
//! under way.
//!
//! The thread is started with the first nonblocking operation, and sleeps while there is nothing for it to do. What it
//! begins at storage it waits for. So that other files' operations go on meanwhile, there are more threads if there is
//! more to do: a few at most.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::core::mpi::progress::{self, Left};
use crate::core::mpi::signals;

const MOST_THREADS: usize = 4;
/// While an operation waits for messages, the thread sleeps between two looks: an eighth of the time since it came
/// further, but no less than this. (Others may be looking without end on the same processor, and the kernel lets them if
/// we only yield.)
const SHORTEST_SLEEP: Duration = Duration::from_micros(20);
/// Nor longer than this, and so long while the program looks itself.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);
/// More than the libraries of servers need.
const STACK_BYTES: usize = 1 << 20;

struct Pool {
    threads: usize,
    /// Those that sleep.
    idle: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { threads: 0, idle: 0 });
static WORK: Condvar = Condvar::new();
/// Somebody found something to do that no thread has looked at yet.
static IS_PENDING: AtomicBool = AtomicBool::new(false);

/// Carries on, for the program, with all nonblocking operations of this process as far as they come without waiting, and
/// leaves the rest to the thread; what that is.
pub(crate) fn progress() -> Left {
    let left = progress::progress();
    if left.for_thread {
        wake();
    }
    left
}

/// There is something to do.
pub(crate) fn wake() {
    if IS_PENDING.swap(true, Ordering::AcqRel) {
        return;
    }
    let mut pool = lock();
    if pool.idle > 0 {
        WORK.notify_one();
    } else if pool.threads < MOST_THREADS && start() {
        pool.threads += 1;
        progress::thread_is_there();
    }
}

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start() -> bool {
    let builder = thread::Builder::new().name("pioscope".to_owned()).stack_size(STACK_BYTES);
    // The program's signals are for its own threads: a new one has the signal mask of who starts it.
    signals::put_off(|| builder.spawn(run)).is_ok()
}

fn run() {
    let mut since = Instant::now();
    loop {
        let looks = progress::looks_of_program();
        if IS_PENDING.swap(false, Ordering::AcqRel) {
            since = Instant::now();
        }
        let left = progress::progress_in_thread();
        if left.moved {
            since = Instant::now();
        }
        let pool = lock();
        if !IS_PENDING.load(Ordering::Acquire) {
            let is_program_there = progress::looks_of_program() != looks;
            sleep(pool, left.for_thread.then(|| pause(since, is_program_there)));
        }
    }
}

fn pause(since: Instant, is_program_there: bool) -> Duration {
    if is_program_there {
        return LONGEST_SLEEP;
    }
    (since.elapsed() / 8).clamp(SHORTEST_SLEEP, LONGEST_SLEEP)
}

/// Sleeps until there is something to do, at most so long.
fn sleep(mut pool: MutexGuard<'_, Pool>, longest: Option<Duration>) {
    pool.idle += 1;
    let mut pool = match longest {
        Some(longest) => WORK.wait_timeout(pool, longest).unwrap_or_else(PoisonError::into_inner).0,
        None => WORK.wait(pool).unwrap_or_else(PoisonError::into_inner),
    };
    pool.idle -= 1;
}
