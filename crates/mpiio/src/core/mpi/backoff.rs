//! How to wait for other ranks: look again at once, give the processor away, sleep.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pio_plan::Waiting;

use crate::core::mpi::progress;
use crate::core::mpi::progress_thread;

/// How often to look for something before the clock is looked at.
const LOOKS: u32 = 16;
/// The longest sleep while others have no room for what this rank sends.
pub(crate) const SLEEP_BEFORE_SENDING: Duration = Duration::from_micros(100);

/// Ranks that share a processor, of the communicator that has most of them.
static RANKS_A_PROCESSOR: AtomicU32 = AtomicU32::new(1);

/// So many ranks are on nodes with so many processors, as all of them know.
pub(crate) fn shared_processors(ranks: usize, processors: usize) {
    let ranks_a_processor = u32::try_from(ranks.div_ceil(processors.max(1))).unwrap_or(u32::MAX);
    RANKS_A_PROCESSOR.fetch_max(ranks_a_processor, Ordering::Relaxed);
}

/// How a rank of this process waits for messages that come through a mailbox (`is_woken`) or MPI.
fn waiting(is_woken: bool, with_servers: bool) -> Waiting {
    Waiting { ranks_a_processor: RANKS_A_PROCESSOR.load(Ordering::Relaxed), is_woken, with_servers }
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
    with_servers: bool,
    /// When it began to look at the clock.
    since: Option<Instant>,
}

impl Backoff {
    /// The wait begins.
    pub(crate) fn new() -> Backoff {
        Backoff { looks: 0, with_servers: true, since: None }
    }

    /// The same, of an operation on a plain file.
    pub(crate) fn without_servers() -> Backoff {
        Backoff { with_servers: false, ..Backoff::new() }
    }

    /// After a look that found nothing, at messages that come through a mailbox (`is_local`) or MPI: how long to sleep, if
    /// it is time to.
    pub(crate) fn next(&mut self, is_local: bool) -> Option<Duration> {
        let waiting = waiting(is_local, self.with_servers);
        let crowded = waiting.is_crowded();
        if self.is_young(&waiting) {
            return None;
        }
        if crowded || !is_local {
            std::thread::yield_now();
        }
        // Others may have had the processor for a long time; where there are none, it is the clock that costs.
        if !crowded && !is_local && !self.looks.is_multiple_of(LOOKS) {
            return None;
        }
        let waited = self.waited();
        (waited > waiting.awake()).then(|| waiting.sleep(waited))
    }

    /// Waits for what this rank carries on itself, until it `is_so`: no other rank need do anything for it, so that this one can
    /// sleep.
    pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) {
        let mut backoff = Backoff::new();
        while !is_so() {
            backoff.wait_for_oneself();
        }
    }

    /// After a look that found nothing yet of what this rank carries on itself.
    pub(crate) fn wait_for_oneself(&mut self) {
        let steps = progress::steps_of_thread();
        let waiting = waiting(false, self.with_servers);
        if self.is_young(&waiting) {
            return;
        }
        std::thread::yield_now();
        if !self.looks.is_multiple_of(LOOKS) {
            return;
        }
        let waited = self.waited();
        if waited > waiting.awake() {
            progress::sleep_until_stepped(steps, waiting.sleep(waited));
        }
    }

    /// Carries on with other operations; whether it is too early to do more than to look again.
    fn is_young(&mut self, waiting: &Waiting) -> bool {
        progress_thread::progress();
        self.looks += 1;
        let young = self.looks <= LOOKS || (!waiting.is_crowded() && self.waited() < waiting.at_full_speed());
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
    let waiting = waiting(false, true);
    if !waiting.is_crowded() && waited < waiting.at_full_speed() {
        return std::hint::spin_loop();
    }
    std::thread::yield_now();
    if waited > waiting.awake() {
        progress::sleep_until_stepped(steps, waiting.sleep(waited));
    }
}
