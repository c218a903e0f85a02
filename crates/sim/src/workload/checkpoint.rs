//! A program that protects itself against failures: it computes, and writes its state every so often.
//!
//! How often is best follows from the time δ of a checkpoint and the mean time M between failures of the machine:
//!
//! - Young (1974): τ = √(2 δ M), to first order.
//! - Daly (2006, to higher order): τ = √(2 δ M) · (1 + ⅓ √(δ / 2M) + ⅑ · δ / 2M) − δ for δ < 2 M, and τ = M beyond, where
//!   computing more than one failure's distance at once no longer pays.
//!
//! τ is the time that the program computes from one checkpoint to the next. The workload is the run without failures.

use pio_layout::View;
use pio_machine::Duration;
use pio_plan::Direction;

use super::entry::Entry;
use super::parameter::{Kind, Parameter, Values};
use super::program::Programs;
use super::steps::Workload;
use crate::error::SimError;

pub(super) const ENTRY: Entry = Entry {
    name: "checkpoint",
    about: "computes, and writes its state at the interval that is best against failures",
    source: "Young 1974; Daly 2006",
    parameters: &[
        Parameter { name: "ranks", about: "processes", kind: Kind::Count(1, 1 << 20), default: "16" },
        Parameter {
            name: "state",
            about: "bytes of a process's state",
            kind: Kind::Size(1, 1 << 44),
            default: "64 MiB",
        },
        Parameter {
            name: "request",
            about: "bytes of a request",
            kind: Kind::Size(1, 1 << 34),
            default: "4 MiB",
        },
        Parameter {
            name: "file",
            about: "a file for each rank, or one for all, written collectively",
            kind: Kind::Word(&["per-rank", "shared"]),
            default: "per-rank",
        },
        Parameter {
            name: "work",
            about: "time to compute in all",
            kind: Kind::Time("1 s", "10000000 s"),
            default: "86400 s",
        },
        Parameter {
            name: "checkpoint-time",
            about: "how long a checkpoint takes (a prediction says)",
            kind: Kind::Time("1 us", "1000000 s"),
            default: "60 s",
        },
        Parameter {
            name: "mean-time-between-failures",
            about: "of all nodes together",
            kind: Kind::Time("1 s", "10000000 s"),
            default: "43200 s",
        },
        Parameter {
            name: "interval",
            about: "whose interval",
            kind: Kind::Word(&["daly", "young"]),
            default: "daly",
        },
    ],
    build,
};

/// Young's interval between checkpoints that take `checkpoint`, with failures `mean_between_failures` apart.
pub fn young_interval(checkpoint: Duration, mean_between_failures: Duration) -> Duration {
    Duration::from_seconds((2.0 * checkpoint.seconds() * mean_between_failures.seconds()).sqrt())
}

/// Daly's interval, to higher order.
pub fn daly_interval(checkpoint: Duration, mean_between_failures: Duration) -> Duration {
    let (delta, mean) = (checkpoint.seconds(), mean_between_failures.seconds());
    let ratio = delta / (2.0 * mean);
    if ratio >= 1.0 {
        return mean_between_failures;
    }
    let first_order = (2.0 * delta * mean).sqrt();
    Duration::from_seconds(first_order * (1.0 + ratio.sqrt() / 3.0 + ratio / 9.0) - delta)
}

fn build(values: &Values) -> Result<Workload, SimError> {
    let (ranks, state, request) = (values.ranks("ranks"), values.count("state"), values.count("request"));
    let (delta, mean) = (values.time("checkpoint-time"), values.time("mean-time-between-failures"));
    let interval = match values.word("interval") {
        "young" => young_interval(delta, mean),
        _ => daly_interval(delta, mean),
    };
    // What is left after the last whole interval needs no checkpoint: then the program is done.
    let checkpoints = values.time("work").picoseconds().saturating_sub(1) / interval.picoseconds();
    let requests = state.div_ceil(request);
    let calls = u128::from(checkpoints) * u128::from(requests + 2) * u128::from(ranks);
    values.check_calls(u64::try_from(calls).unwrap_or(u64::MAX))?;
    values.check_file(&[state, u64::from(ranks)])?;
    let mut programs = Programs::new(values, ranks);
    let mut left = values.time("work").picoseconds();
    for checkpoint in 0..checkpoints {
        programs.all_think(interval);
        left -= interval.picoseconds();
        let pieces = (0..requests).map(|index| (index * request, request.min(state - index * request)));
        if values.word("file") == "shared" {
            shared_file(&mut programs, checkpoint, state, pieces);
        } else {
            own_files(&mut programs, checkpoint, pieces);
        }
    }
    // The rest of the work lies before the result, a byte of rank 0: a program ends with a call.
    programs.all_think(Duration::from_picoseconds(left));
    let result = programs.open(0, "/result");
    programs.request(0, result, Direction::Write, 0, 1);
    programs.close(0, result);
    Ok(programs.finish())
}

fn own_files(programs: &mut Programs, checkpoint: u64, pieces: impl Iterator<Item = (u64, u64)> + Clone) {
    for rank in 0..programs.ranks() {
        let handle = programs.open(rank, &format!("/checkpoint.{checkpoint}.{rank}"));
        for (offset, bytes) in pieces.clone() {
            programs.request(rank, handle, Direction::Write, offset, bytes);
        }
        programs.close(rank, handle);
    }
}

fn shared_file(
    programs: &mut Programs,
    checkpoint: u64,
    state: u64,
    pieces: impl Iterator<Item = (u64, u64)> + Clone,
) {
    let file = programs.open_together(&format!("/checkpoint.{checkpoint}"));
    let whole = programs.view(View::contiguous(0));
    for rank in 0..programs.ranks() {
        for (offset, bytes) in pieces.clone() {
            let start = u64::from(rank) * state + offset;
            programs.collective(rank, file, Direction::Write, whole, start..start + bytes);
        }
    }
    programs.close_together(file);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests_support::{built, coverage};

    fn seconds(seconds: f64) -> Duration {
        Duration::from_seconds(seconds)
    }

    /// Expected time to do 500 hours of work (Daly 2006, with failures as a Poisson process and a restart of ten
    /// minutes), hours.
    fn expected_hours(interval: Duration, checkpoint: Duration, mean: Duration) -> f64 {
        let (tau, delta, mean) = (interval.seconds(), checkpoint.seconds(), mean.seconds());
        mean * (600.0 / mean).exp() * (((tau + delta) / mean).exp() - 1.0) * 500.0 / tau
    }

    #[test]
    fn intervals_are_the_formulas() {
        // 5 minutes and 24 hours: √(2 · 300 · 86400) = 7200.
        assert_eq!(young_interval(seconds(300.0), seconds(86_400.0)), seconds(7_200.0));
        // The examples of Daly's figures 3 to 5: 117, 57 and 9.1 minutes.
        for (mean_hours, minutes) in [(24.0, "116.7"), (6.0, "56.7"), (0.25, "9.1")] {
            let interval = daly_interval(seconds(300.0), seconds(mean_hours * 3600.0)).seconds();
            assert_eq!(format!("{:.1}", interval / 60.0), minutes);
        }
        assert_eq!(daly_interval(seconds(200.0), seconds(100.0)), seconds(100.0));
    }

    #[test]
    fn dalys_interval_is_the_best_there_is() {
        for (delta, mean) in [(60.0, 43_200.0), (300.0, 7_200.0), (600.0, 3_600.0)] {
            let (delta, mean) = (seconds(delta), seconds(mean));
            let best = (10..20_000).map(|tau| expected_hours(seconds(f64::from(tau)), delta, mean));
            let best = best.fold(f64::INFINITY, f64::min);
            let daly = expected_hours(daly_interval(delta, mean), delta, mean);
            let young = expected_hours(young_interval(delta, mean), delta, mean);
            assert!(daly < best * 1.0001 && daly <= young, "{best} {daly} {young}");
        }
    }

    #[test]
    fn all_the_work_is_done_and_all_the_state_written() {
        for file in ["per-rank", "shared"] {
            let workload = built("checkpoint", &[("ranks", "3"), ("state", "10 MiB"), ("file", file)]);
            let interval = daly_interval(seconds(60.0), seconds(43_200.0));
            let expected = 86_400 / interval.seconds() as u64;
            let found = coverage(&workload, Direction::Write);
            let files = if file == "shared" { 1 } else { 3 };
            assert_eq!(found.len() as u64, expected * files + 1);
            for (file, bytes) in &found[..found.len() - 1] {
                let length = 3 * (10 << 20) / files;
                assert_eq!((bytes.length, bytes.touched, bytes.pieces), (length, length, 1), "{file}");
            }
            let work: u64 = workload.programs[0].iter().map(|step| step.think.picoseconds()).sum();
            assert_eq!(work, seconds(86_400.0).picoseconds());
        }
    }
}
