//! How Pioscope's library waits for other ranks: it looks for their messages a while, then sleeps.
//!
//! A rank with a processor of its own looks at full speed first. Where ranks share processors, a rank that only looks takes
//! processor time from those that work, so that it sleeps sooner. Where messages come through a mailbox in shared memory,
//! their sender wakes the sleeper; where MPI has them, nobody does, and it sleeps an eighth of the time that it has waited.

use std::time::Duration;

/// For so long a rank with a processor of its own does nothing but look.
const AT_FULL_SPEED: Duration = Duration::from_micros(200);
/// The same where no server of ours may need the processor: another program that was begun meanwhile may keep it until
/// the kernel's next tick even when a sleeper is woken.
const AT_FULL_SPEED_WITHOUT_SERVERS: Duration = Duration::from_millis(2);
/// For so long a wait without sleep, where nobody wakes sleepers. The kernel wakes them some 50 microseconds late.
const AWAKE: Duration = Duration::from_micros(400);
/// The same where a node has more ranks than processors: there, giving the processor away lets the next rank work at
/// once, and comes out ahead of sleeping by far if the MPI's own waits give it away, too (Open MPI's do; 4 ranks on 2
/// processors: 0.1 ms for a small write, 0.3 ms asleep). MPICH's do not, and nothing helps.
const AWAKE_IN_A_CROWD: Duration = Duration::from_micros(200);
/// The same where nobody wakes sleepers because MPI has the messages: a look at MPI takes longer.
const AWAKE_AT_MPI_IN_A_CROWD: Duration = Duration::from_micros(50);
/// Where more than so many ranks share a processor, they sleep at once: those that only look would take processor time from those
/// that work (collapse on 8 ranks and 2 processors: 12 % less time in I/O, on plain files and on servers beside them).
const AWAKE_UP_TO_RANKS: u32 = 2;
/// Other operations of this rank, and MPI's, must go on meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// What a rank that waits knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Ranks that share a processor; 1 if there are processors enough.
    pub ranks_a_processor: u32,
    /// Whether who sends a message wakes the rank that waits for it: not if MPI has the message.
    pub is_woken: bool,
    /// Whether servers may need the processor.
    pub with_servers: bool,
}

impl Waiting {
    /// Whether there are more ranks than processors.
    pub fn is_crowded(&self) -> bool {
        self.ranks_a_processor > 1
    }

    /// For how long it does nothing but look, if it has a processor of its own.
    pub fn at_full_speed(&self) -> Duration {
        if self.with_servers { AT_FULL_SPEED } else { AT_FULL_SPEED_WITHOUT_SERVERS }
    }

    /// After how long it sleeps.
    pub fn awake(&self) -> Duration {
        match (self.is_crowded(), self.is_woken) {
            (false, true) => self.at_full_speed(),
            (false, false) => AWAKE,
            (true, true) if self.ranks_a_processor > AWAKE_UP_TO_RANKS => Duration::ZERO,
            (true, true) => AWAKE_IN_A_CROWD,
            (true, false) => AWAKE_AT_MPI_IN_A_CROWD,
        }
    }

    /// For how long it sleeps, at most, after a wait of `waited`.
    pub fn sleep(&self, waited: Duration) -> Duration {
        if self.is_woken { LONGEST_SLEEP } else { (waited / 8).min(LONGEST_SLEEP) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_share_a_processor_the_sooner_they_sleep() {
        let waiting =
            |ranks_a_processor, is_woken| Waiting { ranks_a_processor, is_woken, with_servers: true };
        for is_woken in [true, false] {
            let awake: Vec<Duration> = (1..=4).map(|ranks| waiting(ranks, is_woken).awake()).collect();
            assert!(awake.is_sorted_by(|fewer, more| fewer >= more), "{awake:?}");
        }
        // Nobody wakes it: it must look itself before the wait is an eighth longer.
        assert_eq!(waiting(4, false).sleep(Duration::from_micros(80)), Duration::from_micros(10));
        assert_eq!(waiting(4, true).sleep(Duration::from_micros(80)), LONGEST_SLEEP);
        assert_eq!(waiting(1, false).sleep(Duration::from_secs(1)), LONGEST_SLEEP);
    }
}
