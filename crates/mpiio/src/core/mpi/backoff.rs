//! How to wait for other ranks: look again at once, give the processor away, sleep.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::core::mpi::progress;
use crate::core::mpi::progress_thread;

/// How often to look for something before the clock is looked at.
const LOOKS: u32 = 16;
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
const AWAKE_UP_TO_RANKS: usize = 2;
/// Other operations of this rank, and MPI's, must go on meanwhile.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_millis(1);
/// The same while others have no room for what this rank sends.
pub(crate) const SLEEP_BEFORE_SENDING: Duration = Duration::from_micros(100);

/// Ranks that share a processor, of the communicator that has most of them.
static RANKS_A_PROCESSOR: AtomicUsize = AtomicUsize::new(1);

/// So many ranks are on nodes with so many processors, as all of them know.
pub(crate) fn shared_processors(ranks: usize, processors: usize) {
    RANKS_A_PROCESSOR.fetch_max(ranks.div_ceil(processors.max(1)), Ordering::Relaxed);
}

/// Where that is more than one, there are more ranks than processors.
fn ranks_a_processor() -> usize {
    RANKS_A_PROCESSOR.load(Ordering::Relaxed)
}

/// How to wait: a short while at full speed, then giving the processor away between looks, then asleep: a rank that works
/// must not share its processor with several that only look.
///
/// Where messages come through a mailbox, their sender wakes the sleeper. A rank with a processor of its own then never
/// gives it away awake: another program that runs beside the job would keep it until the kernel's next tick, up to 4 ms,
/// but has to give way to a sleeper that is woken. Where nobody wakes it, it sleeps an eighth of the time that was waited
/// already.
///
/// Other operations of this rank go on meanwhile.
#[derive(Debug)]
pub(crate) struct Backoff {
    looks: u32,
    at_full_speed: Duration,
    /// When it began to look at the clock.
    since: Option<Instant>,
}

impl Backoff {
    /// The wait begins.
    pub(crate) fn new() -> Backoff {
        Backoff { looks: 0, at_full_speed: AT_FULL_SPEED, since: None }
    }

    /// The same, of an operation on a plain file.
    pub(crate) fn without_servers() -> Backoff {
        Backoff { at_full_speed: AT_FULL_SPEED_WITHOUT_SERVERS, ..Backoff::new() }
    }

    /// After a look that found nothing, at messages that come through a mailbox (`is_local`) or MPI: how long this has
    /// been waited for, if it is time to sleep.
    pub(crate) fn next(&mut self, is_local: bool) -> Option<Duration> {
        let ranks = ranks_a_processor();
        let crowded = ranks > 1;
        if self.is_young(crowded) {
            return None;
        }
        if crowded || !is_local {
            std::thread::yield_now();
        }
        let awake = match (crowded, is_local) {
            (false, true) => self.at_full_speed,
            (false, false) => AWAKE,
            (true, true) if ranks > AWAKE_UP_TO_RANKS => Duration::ZERO,
            (true, true) => AWAKE_IN_A_CROWD,
            (true, false) => AWAKE_AT_MPI_IN_A_CROWD,
        };
        // Others may have had the processor for a long time; where there are none, it is the clock that costs.
        if !crowded && !is_local && !self.looks.is_multiple_of(LOOKS) {
            return None;
        }
        Some(self.waited()).filter(|waited| *waited > awake)
    }

    /// After a look that found nothing yet of what this rank carries on itself.
    pub(crate) fn wait_for_oneself(&mut self) {
        let steps = progress::steps_of_thread();
        let crowded = ranks_a_processor() > 1;
        if self.is_young(crowded) {
            return;
        }
        std::thread::yield_now();
        if !self.looks.is_multiple_of(LOOKS) {
            return;
        }
        let awake = if crowded { AWAKE_AT_MPI_IN_A_CROWD } else { AWAKE };
        let waited = self.waited();
        if waited > awake {
            progress::sleep_until_stepped(steps, (waited / 8).min(LONGEST_SLEEP));
        }
    }

    /// Carries on with other operations; whether it is too early to do more than to look again.
    fn is_young(&mut self, crowded: bool) -> bool {
        progress_thread::progress();
        self.looks += 1;
        let young = self.looks <= LOOKS || (!crowded && self.waited() < self.at_full_speed);
        if young {
            std::hint::spin_loop();
        }
        young
    }

    /// Since the clock was first asked.
    fn waited(&mut self) -> Duration {
        self.since.get_or_insert_with(Instant::now).elapsed()
    }
}

/// The program looked for something that others do, and has not found it: carries on, and waits a moment. `since_ns` is when
/// it looked first, of a clock of our own; 0 if that is now.
pub(crate) fn relax(since_ns: &mut u64) {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let now = START.elapsed().max(Duration::from_nanos(1));
    if *since_ns == 0 {
        *since_ns = now.as_nanos() as u64;
    }
    let waited = now.saturating_sub(Duration::from_nanos(*since_ns));
    let steps = progress::steps_of_thread();
    if progress_thread::progress().moved {
        return;
    }
    let crowded = ranks_a_processor() > 1;
    if !crowded && waited < AT_FULL_SPEED {
        return std::hint::spin_loop();
    }
    std::thread::yield_now();
    if waited > if crowded { AWAKE_AT_MPI_IN_A_CROWD } else { AWAKE } {
        progress::sleep_until_stepped(steps, (waited / 8).min(LONGEST_SLEEP));
    }
}

/// Sleeps where nobody wakes sleepers.
pub(crate) fn doze(waited: Duration) {
    std::thread::sleep((waited / 8).min(LONGEST_SLEEP));
}
