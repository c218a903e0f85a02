//! Taking processor times in turn.

use std::hint::black_box;
use std::time::Instant;

use pio_sim::kernel::{Events, Stream, Time};

/// Runs of each side.
pub(crate) const ROUNDS: usize = 5;

/// Events that wait in the bare loop.
const PENDING: u64 = 1_000;
/// Events that the bare loop takes out.
const EVENTS: u64 = 4_000_000;
/// Mean time between an event and the one it adds: 1 µs.
const MEAN_PS: f64 = 1e6;

/// A part of the simulator that can be measured.
pub(crate) struct Part {
    /// Its name on the command line.
    pub name: &'static str,
    /// Measures and prints.
    pub run: fn(),
}

/// Measures `work`, which gives how many of `unit` it did, in turn with the bare loop, and prints both.
pub(crate) fn against_bare_loop(what: &str, unit: &str, mut work: impl FnMut() -> u64) {
    let distances = distances();
    let (mut best, mut bare) = (0.0_f64, 0.0_f64);
    let mut slowest = f64::INFINITY;
    for _ in 0..ROUNDS {
        bare = bare.max(rate(|| bare_loop(PENDING, EVENTS, &distances)));
        let found = rate(&mut work);
        best = best.max(found);
        slowest = slowest.min(found);
    }
    println!(
        "  {what:<44} {:>9} {unit}/s (slowest run {}) · bare loop {} events/s · 1 : {:.1}",
        millions(best),
        millions(slowest),
        millions(bare),
        bare / best
    );
}

/// How often in a second of processor time `work` does what it counts.
pub(crate) fn rate(work: impl FnOnce() -> u64) -> f64 {
    let watch = Watch::start();
    let count = black_box(work());
    count as f64 / watch.seconds()
}

/// Takes the processor time of this thread: others on the machine do not disturb it as they do the clock.
pub(crate) struct Watch {
    begin: Instant,
    begin_ns: Option<u64>,
}

impl Watch {
    /// From now on.
    pub(crate) fn start() -> Watch {
        Watch { begin_ns: processor_ns(), begin: Instant::now() }
    }

    /// Since then; of the clock, where the system does not tell the processor's.
    pub(crate) fn seconds(&self) -> f64 {
        match (self.begin_ns, processor_ns()) {
            (Some(begin), Some(end)) if end > begin => (end - begin) as f64 / 1e9,
            _ => self.begin.elapsed().as_secs_f64(),
        }
    }
}

/// Processor time of this thread so far.
fn processor_ns() -> Option<u64> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    statistics.split(' ').next()?.parse().ok()
}

/// A rate in millions.
pub(crate) fn millions(rate: f64) -> String {
    format!("{:.3} M", rate / 1e6)
}

/// Exponential distances in time, drawn beforehand.
pub(crate) fn distances() -> Vec<u64> {
    let mut stream = Stream::named(1, "distances");
    (0..1 << 16).map(|_| stream.exponential(MEAN_PS) as u64).collect()
}

/// Takes out events and adds as many, `pending` waiting all the time.
pub(crate) fn bare_loop(pending: u64, count: u64, distances: &[u64]) -> u64 {
    let mut events = Events::new();
    let distance = |index: u64| distances[index as usize % distances.len()];
    (0..pending).for_each(|index| events.add(Time(distance(index)), index as u32));
    for index in 0..count {
        let Some((now, what)) = events.pop() else { break };
        events.add(Time(now.0 + distance(pending + index)), what);
    }
    count
}
