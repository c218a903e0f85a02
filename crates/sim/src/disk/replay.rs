//! Runs a recorded series of requests through a drive.

use pio_machine::Duration;
use pio_machine::disk::Drive;
use pio_plan::Direction;

use super::drive::DriveModel;
use super::request::Outcome;
use super::service_times::ServiceTimes;
use super::trace::{DiskTrace, DiskTraceError, Seen};
use crate::kernel::Time;

/// What the drive made of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// All requests first, then parts of them.
    pub classes: Vec<Class>,
    /// When the last was done.
    pub end: Time,
}

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// What the requests have in common, for people.
    pub name: String,
    /// How long they took.
    pub measured: ServiceTimes,
    /// How long they take in the model.
    pub modelled: ServiceTimes,
}

impl Class {
    /// How far the two are apart, as a part of the measured mean.
    pub fn relative_distance(&self) -> f64 {
        let mean = self.measured.mean_s();
        if mean > 0.0 { self.measured.distance_s(&self.modelled) / mean } else { 0.0 }
    }
}

struct Sample {
    direction: Direction,
    seen: Seen,
    outcome: Outcome,
    measured: Duration,
    modelled: Duration,
}

/// Runs the series: each request as long after the one before it was done as it was when measured.
///
/// # Errors
/// If the drive does not have the blocks of a request.
pub fn replay(drive: &Drive, trace: &DiskTrace) -> Result<Replayed, DiskTraceError> {
    let mut model = DriveModel::new(drive);
    let mut now = Time::default();
    let mut end = now;
    let mut samples = Vec::with_capacity(trace.requests.len());
    for traced in &trace.requests {
        let served = model.serve(now, traced.request).map_err(|source| DiskTraceError::Request {
            path: trace.path.clone(),
            line: traced.line,
            source,
        })?;
        samples.push(Sample {
            direction: traced.request.direction,
            seen: traced.seen,
            outcome: served.outcome,
            measured: traced.measured,
            modelled: served.done.since(now),
        });
        end = served.done;
        now = end + traced.gap;
    }
    Ok(Replayed { classes: classes(&samples), end })
}

fn classes(samples: &[Sample]) -> Vec<Class> {
    let mut classes = Vec::new();
    // Says how many there are. Part of so many: what is all of them says nothing new.
    let mut add = |name: String, whole: Option<usize>, belongs: &dyn Fn(&Sample) -> bool| {
        let of = |time: fn(&Sample) -> Duration| {
            ServiceTimes::new(samples.iter().filter(|sample| belongs(sample)).map(time).collect())
        };
        let class =
            Class { name, measured: of(|sample| sample.measured), modelled: of(|sample| sample.modelled) };
        let count = class.measured.times().len();
        if count > 0 && whole != Some(count) {
            classes.push(class);
        }
        count
    };
    let all = add("all".to_owned(), None, &|_| true);
    let labels_differ = samples.iter().any(|sample| sample.seen != samples[0].seen);
    for (direction, name) in [(Direction::Read, "read"), (Direction::Write, "write")] {
        let own = Some(add(format!("{name}s"), Some(all), &|sample| sample.direction == direction));
        if labels_differ {
            for seen in Seen::ALL {
                add(format!("{name}s measured as {}", seen.word()), own, &|sample| {
                    sample.direction == direction && sample.seen == seen
                });
            }
        }
        let outcomes = [(Outcome::Hit, "hit"), (Outcome::PartialHit, "partial hit"), (Outcome::Miss, "miss")];
        for (outcome, label) in outcomes {
            add(format!("{name}s, {label} in the model"), own, &|sample| {
                sample.direction == direction && sample.outcome == outcome
            });
        }
    }
    classes
}
