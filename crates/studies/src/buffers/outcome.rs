//! What came of a run.

use pio_cache::Statistics;
use pio_machine::Duration;
use pio_sim::cpu::Usage;

use super::storage::Flow;

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From the start of all processes to the end of the last.
    pub elapsed: Duration,
    /// Number of processors.
    pub processors: u32,
    /// What processors did until then.
    pub usage: Usage,
    /// Every process.
    pub processes: Vec<ProcessOutcome>,
    /// What the buffers of the top tier counted.
    pub buffers: Statistics,
    /// Time that disk requests took, without waiting for each other.
    pub disk_time: Duration,
    /// What moved when.
    pub flow: Flow,
}

/// What came of one process. Times are picoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessOutcome {
    /// The name of its program.
    pub name: String,
    /// Reads and writes that it made.
    pub accesses: u64,
    /// Processor time for its own computing.
    pub think: u64,
    /// Processor time for its calls, and for transfers from and to a solid-state disk.
    pub system: u64,
    /// Time that it waited for its I/O, processors not counted.
    pub waiting: u64,
    /// When it ended.
    pub end: Duration,
}

impl Outcome {
    /// Time that processors had nothing to do, over all of them.
    pub fn idle(&self) -> Duration {
        let all = self.elapsed.picoseconds().saturating_mul(u64::from(self.processors));
        Duration::from_picoseconds(all.saturating_sub(self.usage.busy()))
    }

    /// The part of the processors' time in which they had something to do.
    pub fn utilisation(&self) -> f64 {
        let all = self.elapsed.seconds() * f64::from(self.processors);
        if all > 0.0 { 1.0 - self.idle().seconds() / all } else { 0.0 }
    }

    /// Processor time of processes for themselves.
    pub fn think(&self) -> Duration {
        Duration::from_picoseconds(self.processes.iter().map(|one| one.think).sum())
    }

    /// Processor time of processes in the system.
    pub fn system(&self) -> Duration {
        Duration::from_picoseconds(self.processes.iter().map(|one| one.system).sum())
    }

    /// The part of the bytes read that were in the buffers, or on their way to them.
    pub fn hit_ratio(&self) -> f64 {
        let Statistics { read_bytes, hit_bytes, joined_bytes, .. } = self.buffers;
        if read_bytes > 0 { (hit_bytes + joined_bytes) as f64 / read_bytes as f64 } else { 0.0 }
    }
}
