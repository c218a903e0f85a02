//! The thread that carries on with nonblocking operations while the program does not.
//!
//! MPI promises that an operation goes on once it has begun, whatever its ranks do: one may wait for it while another is
//! in a barrier. A blocking collective call of the program cannot be taken apart to look after our operations in
//! between: the MPI would not match it with the whole ones of other ranks, which have nothing under way.
//!
//! The thread is started with the first nonblocking collective operation, and sleeps while there is none. While the
//! program keeps coming by itself, as it does when it waits for its requests, the thread only looks that it does.

use std::sync::OnceLock;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::core::mpi::progress;

/// How long the program may be away before the progress thread steps in.
const ABSENCE: Duration = Duration::from_millis(1);
/// While the progress thread has stepped in, it sleeps between two looks: an eighth of the time since then, but no less than
/// this. (The program may be looking without end on the same processor, and the kernel lets it if we only yield.)
const SHORTEST_SLEEP: Duration = Duration::from_micros(20);
/// Nor longer than this.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);
/// More than the libraries of servers need. Operations have stacks of their own.
const STACK_BYTES: usize = 1 << 20;

/// None if there can be no such thread: then operations go on when the program looks after them.
static THREAD: OnceLock<Option<Thread>> = OnceLock::new();

/// There is something to take care of.
pub fn wake() {
    if let Some(thread) = THREAD.get_or_init(start) {
        thread.unpark();
    }
}

fn start() -> Option<Thread> {
    let builder = thread::Builder::new().name("pioscope".to_owned()).stack_size(STACK_BYTES);
    // The program's signals are for its own threads: a new one has the signal mask of who starts it.
    let before = set_mask(&all_signals());
    let started = builder.spawn(run);
    set_mask(&before);
    started.ok().map(|handle| handle.thread().clone())
}

fn all_signals() -> libc::sigset_t {
    // SAFETY: all zeros is a valid set to fill in.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        all
    }
}

/// Sets the signal mask of this thread; what it was.
fn set_mask(mask: &libc::sigset_t) -> libc::sigset_t {
    // SAFETY: both sets are ours.
    unsafe {
        let mut before = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, mask, &mut before);
        before
    }
}

fn run() {
    loop {
        thread::park();
        let mut is_left = true;
        while is_left {
            let seen = progress::looks_of_program();
            thread::sleep(ABSENCE);
            is_left = step_in(seen);
        }
    }
}

/// Carries on until the program comes (its looks are no longer `seen`) or nothing is left; whether something is.
fn step_in(seen: usize) -> bool {
    let since = Instant::now();
    while progress::looks_of_program() == seen {
        if !progress::take_care() {
            return false;
        }
        thread::sleep((since.elapsed() / 8).clamp(SHORTEST_SLEEP, LONGEST_SLEEP));
    }
    true
}
