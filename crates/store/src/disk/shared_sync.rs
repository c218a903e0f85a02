//! Syncs of one file that are asked for at the same moment share one.
//!
//! One at a time, because the operating system tells only one of those who sync a file that something could not be written:
//! the others must not be told that all is well before everybody can know. And shared, so that this costs no time: a sync
//! takes all that was written before it began; whoever asks while one is under way needs the next, and all who ask meanwhile
//! need the same next one. A job whose every rank closes its file costs two syncs a part, not one a rank.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Whose turn it is to sync.
#[derive(Debug, Default)]
pub(super) struct SharedSync {
    turns: Mutex<Turns>,
    ended: Condvar,
}

/// Syncs are numbered from 1 on in the order in which they begin; there is one at a time.
#[derive(Debug, Default)]
struct Turns {
    begun: u64,
    under_way: bool,
    /// The last that went well.
    done: u64,
}

impl SharedSync {
    /// Returns when `sync` was carried out, here or by another, after this was called. One that fails is nobody else's:
    /// the others that wait try again, one after the other.
    pub(super) fn run<E>(&self, sync: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let mut turns = self.turns();
        let needed = turns.begun + 1;
        while turns.under_way {
            turns = self.ended.wait(turns).unwrap_or_else(PoisonError::into_inner);
            if turns.done >= needed {
                return Ok(());
            }
        }
        turns.begun += 1;
        turns.under_way = true;
        let mut turn = Turn { of: self, number: turns.begun, went_well: false };
        drop(turns);
        let outcome = sync();
        turn.went_well = outcome.is_ok();
        outcome
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sync under way. It ends however `sync` does: who waits must not wait for a thread that is gone.
struct Turn<'a> {
    of: &'a SharedSync,
    number: u64,
    went_well: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut turns = self.of.turns();
        turns.under_way = false;
        if self.went_well {
            turns.done = self.number;
        }
        drop(turns);
        self.of.ended.notify_all();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sync_under_way_is_not_enough() {
        let (shared, (begun, wait), (finish, go)) =
            (&SharedSync::default(), mpsc::channel(), mpsc::channel());
        thread::scope(|scope| {
            let first = scope.spawn(move || {
                shared.run(|| {
                    begun.send(()).unwrap();
                    go.recv().map_err(drop)
                })
            });
            wait.recv().unwrap();
            let second = scope.spawn(|| {
                let mut own = false;
                let sync = || {
                    own = true;
                    Ok::<(), ()>(())
                };
                shared.run(sync).unwrap();
                own
            });
            thread::sleep(Duration::from_millis(20));
            assert!(!second.is_finished());
            finish.send(()).unwrap();
            assert_eq!(first.join().unwrap(), Ok(()));
            assert!(second.join().unwrap());
        });
    }

    #[test]
    fn those_who_ask_together_share_one() {
        const ASKERS: u32 = 8;
        const TIMES: u32 = 20;
        let (shared, syncs) = (SharedSync::default(), AtomicU32::new(0));
        let sync = || {
            thread::sleep(Duration::from_millis(1));
            syncs.fetch_add(1, Ordering::Relaxed);
            Ok::<(), ()>(())
        };
        thread::scope(|scope| {
            for _ in 0..ASKERS {
                scope.spawn(|| (0..TIMES).for_each(|_| shared.run(sync).unwrap()));
            }
        });
        assert!(syncs.into_inner() < ASKERS * TIMES);
    }

    #[test]
    fn a_failure_is_told_to_one_and_the_others_try_again() {
        let (shared, calls) = (SharedSync::default(), AtomicU32::new(0));
        let fails_once = || {
            thread::sleep(Duration::from_millis(5));
            if calls.fetch_add(1, Ordering::SeqCst) == 0 { Err(()) } else { Ok(()) }
        };
        let failed = thread::scope(|scope| {
            let askers: Vec<_> = (0..4).map(|_| scope.spawn(|| shared.run(fails_once))).collect();
            askers.into_iter().filter_map(|asker| asker.join().unwrap().err()).count()
        });
        assert_eq!(failed, 1);
        assert!(calls.into_inner() >= 2);
    }

    #[test]
    fn a_panic_ends_a_sync() {
        let shared = SharedSync::default();
        let panics = || -> Result<(), ()> { panic!("on purpose") };
        thread::scope(|scope| assert!(scope.spawn(|| shared.run(panics)).join().is_err()));
        assert_eq!(shared.run(|| Ok::<(), ()>(())), Ok(()));
    }
}
