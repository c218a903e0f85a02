//! The first step: the mean times of an I/O node by itself.

use pio_machine::{Duration, Machine};
use pio_sim::io_node::{Adapter, OpenLoad, Processing, Use};
use pio_sim::kernel::{Estimate, Time};

use super::{BaylorError, Options};
use crate::pios::MeanTimes;

/// Mean times within an I/O node, in seconds, of each kind of request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IoNodeTimes {
    /// A read that hits the disk's cache.
    pub read_hit: Estimate,
    /// A read that misses it.
    pub read_miss: Estimate,
    /// A write that hits it.
    pub write_hit: Estimate,
    /// A write that misses it.
    pub write_miss: Estimate,
}

/// A part of the node that is in use for more than this part of the time does not keep up: queues grow, and no time has a
/// mean.
const KEEPS_UP: f64 = 0.98;

/// Requests to the I/O node alone for each read of a simulation of all nodes: they cost less, and matter more.
const REQUESTS_PER_READ: u64 = 10;

/// The times of the machine's I/O node for requests of so many bytes that come at random, so many a second. Nothing if it
/// is saturated.
///
/// # Errors
/// If the machine has no I/O node, or that cannot serve such requests.
pub fn io_node_times(
    machine: &Machine,
    options: &Options,
    bytes: u64,
    per_s: f64,
) -> Result<Option<IoNodeTimes>, BaylorError> {
    let Some(described) = &machine.io_node else {
        return Err(BaylorError::Kind { machine: machine.name.clone() });
    };
    let mix = &options.mix;
    let load = OpenLoad {
        rate: per_s,
        bytes,
        message: mix.read_request_bytes,
        reads: mix.read_probability,
        misses: mix.miss_ratio,
        requests: options.measurements.saturating_mul(REQUESTS_PER_READ),
        seed: options.seed,
    };
    let found = load.run(described, Adapter::Own)?;
    let kinds = (found.read_hit, found.read_miss, found.write_hit, found.write_miss);
    let (Some(read_hit), Some(read_miss), Some(write_hit), Some(write_miss)) = kinds else { return Ok(None) };
    let times = IoNodeTimes { read_hit, read_miss, write_hit, write_miss };
    Ok((busiest(&found, described.disks.count) < KEEPS_UP).then_some(times))
}

/// For what part of the time the busiest part of the node was in use; of its disks, and of their channels, the mean.
fn busiest(found: &Processing, disks: u32) -> f64 {
    let Use { adapter_in, adapter_out, cpu, bus, channels, disks: of_disks } = found.in_use;
    let alone = [adapter_in, adapter_out, cpu, bus].map(Duration::seconds);
    let shared = [channels, of_disks].map(|used| used.seconds() / f64::from(disks));
    let all = found.end.since(Time::default()).seconds();
    alone.into_iter().chain(shared).fold(0.0, f64::max) / all
}

impl IoNodeTimes {
    /// Of one kind of request.
    pub fn of(&self, is_read: bool, is_hit: bool) -> Estimate {
        match (is_read, is_hit) {
            (true, true) => self.read_hit,
            (true, false) => self.read_miss,
            (false, true) => self.write_hit,
            (false, false) => self.write_miss,
        }
    }

    /// Of any read, so many of which miss.
    pub fn read(&self, miss_ratio: f64) -> Estimate {
        mixed(self.read_hit, self.read_miss, miss_ratio)
    }

    /// Of any write, so many of which miss.
    pub fn write(&self, miss_ratio: f64) -> Estimate {
        mixed(self.write_hit, self.write_miss, miss_ratio)
    }

    /// Where there is no I/O.
    pub(super) fn none() -> MeanTimes {
        MeanTimes::new([[Duration::ZERO; 2]; 2])
    }

    /// What I/O nodes take in the second step.
    pub(super) fn as_means(&self) -> MeanTimes {
        let mean = |estimate: Estimate| Duration::from_seconds(estimate.mean);
        let times = [[self.read_hit, self.read_miss], [self.write_hit, self.write_miss]];
        MeanTimes::new(times.map(|kinds| kinds.map(mean)))
    }
}

fn mixed(hit: Estimate, miss: Estimate, miss_ratio: f64) -> Estimate {
    let half_width = ((1.0 - miss_ratio) * hit.half_width).hypot(miss_ratio * miss.half_width);
    Estimate {
        mean: (1.0 - miss_ratio) * hit.mean + miss_ratio * miss.mean,
        half_width,
        counted: hit.counted + miss.counted,
        cut: hit.cut + miss.cut,
        is_settled: hit.is_settled && miss.is_settled,
    }
}
