//! What came of a run.

use pio_machine::Duration;

use crate::kernel::{Estimate, Histogram};

/// What a simulation of a queueing network measured after its warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Of each station.
    pub stations: Vec<StationOutcome>,
    /// Of each class.
    pub classes: Vec<ClassOutcome>,
    /// How long was measured.
    pub measured: Duration,
    /// Events that were simulated, the warm-up's included.
    pub events: u64,
}

/// What a station was measured to do.
#[derive(Clone, Debug, PartialEq)]
pub struct StationOutcome {
    /// Its name.
    pub name: String,
    /// Jobs that left it, a second.
    pub throughput: f64,
    /// Servers that were taken, on average.
    pub busy: f64,
    /// Jobs in it, on average, and at most.
    pub population: f64,
    /// Jobs in it at most.
    pub population_max: u64,
    /// Time from coming to leaving, seconds; nothing if hardly anybody came.
    pub stay: Option<Estimate>,
}

/// What the jobs of a class were measured to do.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassOutcome {
    /// Its name.
    pub name: String,
    /// Jobs that went out, or began anew.
    pub done: u64,
    /// Jobs that came and found no room.
    pub lost: u64,
    /// Jobs done, a second.
    pub throughput: f64,
    /// Time from coming to going out, picoseconds.
    pub response: Histogram,
    /// Its mean, seconds; nothing if hardly anybody went out.
    pub response_mean: Option<Estimate>,
}
