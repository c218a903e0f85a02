//! The program's signals, where they would be in the way.

use pio_plan::IoError;

/// Does something in which this thread gets no signals; they come afterwards, or go to other threads.
pub(crate) fn put_off<T>(work: impl FnOnce() -> T) -> T {
    let before = set_mask(&all_signals());
    let result = work();
    set_mask(&before);
    result
}

/// The same with a call that undoes what it has done when a signal comes, as some kernels' `fallocate` does in memory. To make it
/// once more is not enough: in a program that gets signals all the time, as for a profile, it would never end.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> Result<T, IoError>) -> Result<T, IoError> {
    put_off(|| {
        loop {
            match call() {
                // The process was stopped, which cannot be put off.
                Err(error) if error.errno == libc::EINTR => {}
                result => return result,
            }
        }
    })
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
    use std::thread;
    use std::time::Duration;

    use super::*;

    static COME: AtomicU32 = AtomicU32::new(0);

    extern "C" fn come(_: libc::c_int) {
        COME.fetch_add(1, SeqCst);
    }

    /// Sleeps so long, unless a signal comes.
    fn sleep(milliseconds: i64) -> Result<(), IoError> {
        let time = libc::timespec { tv_sec: 0, tv_nsec: milliseconds * 1_000_000 };
        // SAFETY: the time is ours.
        match unsafe { libc::nanosleep(&time, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(IoError { errno: libc::EINTR }),
        }
    }

    #[test]
    fn a_call_is_made_once_however_many_signals_come() {
        // SAFETY: the handler only counts.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = come as *const () as usize;
            assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
        }
        let done = AtomicBool::new(false);
        // SAFETY: no more than a number.
        let me = unsafe { libc::pthread_self() };
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(SeqCst) {
                    // SAFETY: that thread waits for this one.
                    unsafe { libc::pthread_kill(me, libc::SIGUSR1) };
                    thread::sleep(Duration::from_micros(100));
                }
            });
            assert!(sleep(200).is_err(), "signals come");
            let mut calls = 0;
            let slept = uninterrupted(|| {
                calls += 1;
                sleep(20)
            });
            assert_eq!((slept, calls), (Ok(()), 1));
            let before = COME.load(SeqCst);
            assert!(sleep(200).is_err() && COME.load(SeqCst) > before, "they come again");
            done.store(true, SeqCst);
        });
    }

    #[test]
    fn what_was_stopped_is_done_once_more() {
        let mut outcomes =
            [Err(IoError { errno: libc::EINTR }), Err(IoError { errno: libc::ENOSPC })].into_iter();
        assert_eq!(uninterrupted(|| outcomes.next().unwrap_or(Ok(()))), Err(IoError { errno: libc::ENOSPC }));
    }
}
