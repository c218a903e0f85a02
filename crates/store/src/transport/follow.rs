//! A server's thread goes where its client runs.
//!
//! The two take turns while the client waits for each answer, so they need one processor between them, and to wake up a
//! thread on another one that sleeps takes several times as long as a small request. Linux (seen with 6.18) does not bring
//! them together: who slept for microseconds only wakes up where it was. So one processor may have the threads of two
//! connections and one of their clients, and the other client sleeps and wakes alone. Where processors are idle, the kernel
//! keeps them apart; then they look out for each other for a moment before they sleep.

use pio_protocol::waiting::is_small;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Requests from another processor before the thread first moves there: one may be of a client that is itself on its way. Each
/// time it takes twice as many, up to `MOST_PATIENCE`: where processors are idle, the kernel takes the two apart again, and to
/// move costs more than many requests.
const PATIENCE: u32 = 2;
const MOST_PATIENCE: u32 = 1024;
/// After so many requests at one processor no processor is idle that the kernel takes the two apart for: what parts them next is
/// its balance of loads, once in a while.
const SETTLED: u32 = 64;

/// What the thread of a connection knows about its client's place.
#[derive(Debug)]
pub(super) struct Follower {
    /// How many requests in a row came from another processor.
    elsewhere: u32,
    /// And from this one.
    together: u32,
    /// With how many the thread moves.
    patience: u32,
}

impl Default for Follower {
    fn default() -> Follower {
        Follower { elsewhere: 0, together: 0, patience: PATIENCE }
    }
}

impl Follower {
    /// Takes note that a client on processor `cpu` asked for something and waits. So many bytes came, or went in the answer
    /// before; `more` says whether something else has come already.
    pub(super) fn asked(&mut self, cpu: u64, bytes: usize, more: impl FnOnce() -> bool) {
        if self.moves(sched_getcpu() as u64, cpu, bytes, more) {
            go_to(cpu);
        }
    }

    fn moves(&mut self, here: u64, cpu: u64, bytes: usize, more: impl FnOnce() -> bool) -> bool {
        let apart = here != cpu && is_small(bytes as u64) && !more();
        self.elsewhere = if apart { self.elsewhere + 1 } else { 0 };
        self.together = if here == cpu { self.together.saturating_add(1) } else { 0 };
        if self.together >= SETTLED {
            self.patience = PATIENCE;
        }
        let moves = self.elsewhere >= self.patience;
        if moves {
            self.patience = (2 * self.patience).min(MOST_PATIENCE);
            self.elsewhere = 0;
        }
        moves
    }
}

/// Moves this thread to a processor, if it may run there; later the kernel may move it on.
fn go_to(cpu: u64) {
    let (Ok(allowed), Ok(cpu)) = (sched_getaffinity(None), usize::try_from(cpu)) else { return };
    if cpu >= CpuSet::MAX_CPU || !allowed.is_set(cpu) {
        return;
    }
    let mut there = CpuSet::new();
    there.set(cpu);
    if sched_setaffinity(None, &there).is_ok() {
        // Fails only if its processors were taken away at this moment, and then others are set already.
        let _ = sched_setaffinity(None, &allowed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL_BYTES: usize = 128 << 10;

    /// Whether the thread moves at each of these requests.
    fn moves<const N: usize>(requests: [(u64, u64, usize, bool); N]) -> [bool; N] {
        let mut follower = Follower::default();
        requests.map(|(here, cpu, bytes, more)| follower.moves(here, cpu, bytes, || more))
    }

    #[test]
    fn only_who_waits_for_little_again_and_again_is_followed() {
        assert_eq!(
            moves([(0, 1, 100, false), (0, 1, SMALL_BYTES, false), (1, 1, 100, false)]),
            [false, true, false]
        );
        assert_eq!(moves([(0, 1, 0, false), (1, 1, 0, false), (0, 1, 0, false)]), [false; 3]);
        assert_eq!(moves([(0, 1, SMALL_BYTES + 1, false); 5]), [false; 5]);
        assert_eq!(moves([(0, 1, 0, true); 5]), [false; 5]);
        // Where it cannot stay, it tries again, after a while.
        assert_eq!(moves([(0, 1, 0, false); 7]), [false, true, false, false, false, true, false]);
    }

    #[test]
    fn who_has_settled_follows_as_soon_as_at_first() {
        let mut follower = Follower::default();
        let mut until_it_moves = || (1..).find(|_| follower.moves(0, 1, 0, || false)).unwrap();
        assert_eq!([(); 3].map(|()| until_it_moves()), [2, 4, 8]);
        (0..SETTLED - 1).for_each(|_| assert!(!follower.moves(1, 1, 0, || false)));
        let mut again = Follower { ..follower };
        assert_eq!((1..).find(|_| again.moves(0, 1, 0, || false)), Some(16));
        assert!(!follower.moves(1, 1, 0, || false));
        assert_eq!((1..).find(|_| follower.moves(0, 1, 0, || false)), Some(2));
    }

    #[test]
    fn a_thread_goes_to_a_processor_that_there_is_and_may_leave_it() {
        let allowed = sched_getaffinity(None).unwrap();
        let cpus: Vec<u64> =
            (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).map(|cpu| cpu as u64).collect();
        for cpu in [CpuSet::MAX_CPU as u64 - 1, CpuSet::MAX_CPU as u64, 1 << 40, u64::MAX] {
            go_to(cpu);
        }
        // The kernel may move the thread on before it is looked at: not every time.
        let arrives = |&cpu: &u64| {
            (0..50).any(|_| {
                go_to(cpu);
                sched_getcpu() as u64 == cpu
            })
        };
        assert!(cpus.iter().all(arrives));
        assert_eq!(sched_getaffinity(None).unwrap(), allowed);
    }
}
