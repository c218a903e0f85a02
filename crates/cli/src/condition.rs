//! Conditions on what runs are compared by, such as `io_time > 110 %`: scripts fail when one holds.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use pio_explain::{Explanation, Tally};
use pio_machine::parse_size;
use pio_report::units;
use pio_trace::Op;
use serde::{Deserialize, Serialize};

/// The exit code of a comparison of which a condition holds.
pub(crate) const HOLDS: u8 = 3;

/// What `--fail-if` takes.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FailIf {
    /// Exit with code 3 if this holds of the second run (compare: of the runs' median), such as 'io_time > 110 %' (of the first
    /// run, or the baseline) or 'write.calls > 1000':
    /// METRIC >, >=, < or <= NUMBER, then %, a unit of time or size, or nothing. May be given several times. Metrics: io_time,
    /// run_time, bytes, read_bytes, write_bytes, calls, and OPERATION.time, .calls and .bytes (open, close, read, write, seek,
    /// sync, view, metadata)
    #[arg(long = "fail-if", value_name = "CONDITION")]
    pub conditions: Vec<Condition>,
}

/// A number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    /// Time in I/O, mean of the processes.
    IoTime,
    /// Duration of the run.
    RunTime,
    /// Bytes that the program read and wrote.
    Bytes,
    /// Bytes that it read.
    ReadBytes,
    /// Bytes that it wrote.
    WriteBytes,
    /// Its calls, all of them.
    Calls,
    /// Of its calls of one operation.
    Operation(Op, Amount),
}

/// Those that are I/O.
fn operations() -> impl Iterator<Item = Op> {
    Op::ALL.into_iter().filter(|op| !matches!(op, Op::Communicate | Op::Mark))
}

/// What of an operation is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Its time, all processes together.
    Time,
    /// The number of its calls.
    Calls,
    /// The bytes that it moved.
    Bytes,
}

impl Metric {
    const PLAIN: [(&str, Metric); 6] = [
        ("io_time", Metric::IoTime),
        ("run_time", Metric::RunTime),
        ("bytes", Metric::Bytes),
        ("read_bytes", Metric::ReadBytes),
        ("write_bytes", Metric::WriteBytes),
        ("calls", Metric::Calls),
    ];
    const AMOUNTS: [(&str, Amount); 3] =
        [("time", Amount::Time), ("calls", Amount::Calls), ("bytes", Amount::Bytes)];

    fn named(name: &str) -> Option<Metric> {
        if let Some((_, metric)) = Metric::PLAIN.iter().find(|(known, _)| *known == name) {
            return Some(*metric);
        }
        let (op, amount) = name.split_once('.')?;
        let op = operations().find(|known| known.name() == op)?;
        let (_, amount) = Metric::AMOUNTS.iter().find(|(known, _)| *known == amount)?;
        Some(Metric::Operation(op, *amount))
    }

    /// Its value, in seconds, bytes or calls.
    pub(crate) fn of(self, run: &Numbers) -> f64 {
        match self {
            Metric::IoTime => run.io_time_s,
            Metric::RunTime => run.run_time_s,
            Metric::Bytes => run.read_bytes.saturating_add(run.write_bytes) as f64,
            Metric::ReadBytes => run.read_bytes as f64,
            Metric::WriteBytes => run.write_bytes as f64,
            Metric::Calls => run.operations.iter().map(|one| one.calls).sum::<u64>() as f64,
            Metric::Operation(op, amount) => {
                let of = |one: &OperationNumbers| match amount {
                    Amount::Time => one.time_s,
                    Amount::Calls => one.calls as f64,
                    Amount::Bytes => one.bytes as f64,
                };
                run.operations.iter().find(|one| one.operation == op.name()).map_or(0.0, of)
            }
        }
    }

    fn unit(self) -> Unit {
        match self {
            Metric::IoTime | Metric::RunTime | Metric::Operation(_, Amount::Time) => Unit::Time,
            Metric::Bytes | Metric::ReadBytes | Metric::WriteBytes | Metric::Operation(_, Amount::Bytes) => {
                Unit::Bytes
            }
            Metric::Calls | Metric::Operation(_, Amount::Calls) => Unit::Calls,
        }
    }

    /// A value for people.
    pub(crate) fn text(self, value: f64) -> String {
        match self.unit() {
            Unit::Time => units::time_s(value),
            Unit::Bytes => units::bytes(value),
            Unit::Calls => units::things(value.round() as u64, "call", "calls"),
        }
    }
}

/// What conditions are about, of one run: what its program asked for.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Numbers {
    pub io_time_s: f64,
    pub run_time_s: f64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub operations: Vec<OperationNumbers>,
}

/// The same of its calls of one operation.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct OperationNumbers {
    operation: String,
    calls: u64,
    bytes: u64,
    time_s: f64,
}

impl Numbers {
    /// Those of an explained run.
    pub(crate) fn of(found: &Explanation) -> Numbers {
        let own = || found.layers.iter().filter(|table| !table.physical);
        let number = |op: Op| {
            let tally = own().map(|table| table.table.tally(op)).fold(Tally::default(), Tally::merged);
            OperationNumbers {
                operation: op.name().to_owned(),
                calls: tally.count,
                bytes: tally.bytes,
                time_s: tally.time_s(),
            }
        };
        Numbers {
            io_time_s: found.io_time_s(),
            run_time_s: found.duration_s(),
            read_bytes: found.workload.read.bytes,
            write_bytes: found.workload.write.bytes,
            operations: operations().map(number).filter(|one| one.calls > 0).collect(),
        }
    }
}

#[derive(Clone, Copy)]
enum Unit {
    Time,
    Bytes,
    Calls,
}

impl Unit {
    /// A limit in seconds, bytes or calls.
    fn read(self, text: &str) -> Option<f64> {
        match self {
            Unit::Bytes => parse_size(text).map(|bytes| bytes as f64).or_else(|| text.parse().ok()),
            Unit::Calls => text.parse().ok(),
            Unit::Time => {
                // Parts of a second divide, as times of runs are nanoseconds over 1e9: 5 × 1e-6 is less than 5,000 / 1e9,
                // so that 5 µs were more than 5 µs.
                const TIMES: [(&str, f64, f64); 8] = [
                    ("min", 60.0, 1.0),
                    ("ms", 1.0, 1e3),
                    ("us", 1.0, 1e6),
                    ("µs", 1.0, 1e6),
                    ("ns", 1.0, 1e9),
                    ("h", 3600.0, 1.0),
                    ("s", 1.0, 1.0),
                    ("", 1.0, 1.0),
                ];
                let (number, seconds, parts) = TIMES
                    .iter()
                    .find_map(|(unit, seconds, parts)| Some((text.strip_suffix(unit)?, seconds, parts)))?;
                Some(number.trim_end().parse::<f64>().ok()? * seconds / parts)
            }
        }
    }
}

/// Which values a condition holds of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// Those above the limit.
    Above {
        /// And the limit itself.
        inclusive: bool,
    },
    /// Those below it.
    Below {
        /// And the limit itself.
        inclusive: bool,
    },
}

impl Comparison {
    /// `>=` before `>`: it begins with it.
    const ALL: [(&str, Comparison); 4] = [
        (">=", Comparison::Above { inclusive: true }),
        ("<=", Comparison::Below { inclusive: true }),
        (">", Comparison::Above { inclusive: false }),
        ("<", Comparison::Below { inclusive: false }),
    ];

    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Comparison::Above { inclusive } => value > limit || (inclusive && value == limit),
            Comparison::Below { inclusive } => value < limit || (inclusive && value == limit),
        }
    }
}

/// What a value is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Limit {
    /// This part of the first run's value.
    OfFirst(f64),
    /// This value.
    Value(f64),
}

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    text: String,
    pub metric: Metric,
    pub comparison: Comparison,
    pub limit: Limit,
}

impl Condition {
    /// Whether it holds of a value, or of a factor by which that is larger than the first run's.
    pub(crate) fn holds(&self, value: f64, factor: f64) -> bool {
        match self.limit {
            Limit::OfFirst(part) => self.comparison.holds(factor, part),
            Limit::Value(limit) => self.comparison.holds(value, limit),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        let expected =
            "expected METRIC >, >=, < or <= NUMBER with %, a unit or neither, as 'io_time > 110 %'";
        let at = text.find(['<', '>']).ok_or(expected)?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let metric = Metric::named(name).ok_or_else(|| {
            let plain = Metric::PLAIN.map(|(name, _)| name).join(", ");
            format!(
                "unknown metric '{name}' (expected {plain}, or as write.time, write.calls or write.bytes)"
            )
        })?;
        let (sign, comparison) =
            Comparison::ALL.into_iter().find(|(sign, _)| rest.starts_with(sign)).ok_or(expected)?;
        let limit = rest[sign.len()..].trim();
        let limit = match limit.strip_suffix('%') {
            Some(number) => {
                number.trim_end().parse().ok().map(|percent: f64| Limit::OfFirst(percent / 100.0))
            }
            None => metric.unit().read(limit).map(Limit::Value),
        };
        let is_number = |limit: &Limit| match limit {
            Limit::OfFirst(number) | Limit::Value(number) => number.is_finite() && *number >= 0.0,
        };
        let limit = limit.filter(is_number).ok_or(expected)?;
        Ok(Condition { text: text.trim().to_owned(), metric, comparison, limit })
    }
}

/// What a condition says of two runs.
#[derive(Clone, Debug)]
pub(crate) struct Checked<'c> {
    pub condition: &'c Condition,
    pub before: f64,
    pub after: f64,
    pub holds: bool,
}

impl<'c> Checked<'c> {
    pub(crate) fn of(condition: &'c Condition, before: &Numbers, after: &Numbers) -> Checked<'c> {
        let (before, after) = (condition.metric.of(before), condition.metric.of(after));
        Checked { condition, before, after, holds: condition.holds(after, factor(before, after)) }
    }
}

impl fmt::Display for Checked<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Checked { condition, before, after, .. } = self;
        let text = |value| condition.metric.text(value);
        write!(
            out,
            "{condition}: {} ({}, was {})",
            percent(factor(*before, *after)),
            text(*after),
            text(*before)
        )
    }
}

/// How many times the first run's value the second run's is. Nothing twice is the same.
pub(crate) fn factor(before: f64, after: f64) -> f64 {
    if before == after { 1.0 } else { after / before }
}

/// A factor as `134 %`.
pub(crate) fn percent(factor: f64) -> String {
    if factor.is_finite() { format!("{:.0} %", factor * 100.0) } else { "∞".to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use super::*;

    fn read(text: &str) -> Condition {
        text.parse().unwrap()
    }

    #[test]
    fn conditions_are_read() {
        let condition = read("io_time>110%");
        assert_eq!((condition.metric, condition.limit), (Metric::IoTime, Limit::OfFirst(1.1)));
        assert_eq!(read(" io_time  >=  2.5 min ").limit, Limit::Value(150.0));
        assert_eq!(read("run_time < 20 ms").limit, Limit::Value(0.02));
        assert_eq!(read("bytes <= 4 MiB").limit, Limit::Value(4_194_304.0));
        assert_eq!(read("read_bytes > 1000").limit, Limit::Value(1000.0));
        assert_eq!(read("write.calls > 0").metric, Metric::Operation(Op::Write, Amount::Calls));
        assert_eq!(read("io_time > 110 %").to_string(), "io_time > 110 %");
    }

    #[test]
    fn a_value_is_its_limit_in_every_unit() {
        for unit in [("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("ns", 1.0)] {
            for number in 1..1000 {
                let value = f64::from(number) * unit.1 / 1e9;
                assert!(
                    !read(&format!("io_time > {number} {}", unit.0)).holds(value, 1.0),
                    "{number} {unit:?}"
                );
                assert!(
                    read(&format!("io_time >= {number} {}", unit.0)).holds(value, 1.0),
                    "{number} {unit:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for (text, says) in [
            ("io_time", "expected METRIC"),
            ("io_time = 3", "expected METRIC"),
            ("io_time > much", "expected METRIC"),
            ("io_time > 3 KiB", "expected METRIC"),
            ("calls > 3 s", "expected METRIC"),
            ("io_time > -3 s", "expected METRIC"),
            ("io_time > nan %", "expected METRIC"),
            ("oi_time > 3 s", "unknown metric 'oi_time'"),
            ("write.latency > 3 s", "unknown metric 'write.latency'"),
            ("communicate.time > 3 s", "unknown metric"),
            ("mark.calls > 3", "unknown metric"),
        ] {
            let error = text.parse::<Condition>().unwrap_err();
            assert!(error.starts_with(says), "{text}: {error}");
        }
    }

    #[test]
    fn conditions_hold_of_values_and_factors() {
        let holds = |text: &str, before: f64, after: f64| read(text).holds(after, factor(before, after));
        assert!(holds("io_time > 110 %", 1.0, 1.2) && !holds("io_time > 110 %", 1.0, 1.05));
        assert!(holds("calls >= 100 %", 5.0, 5.0) && !holds("calls > 100 %", 5.0, 5.0));
        assert!(holds("calls > 100 %", 0.0, 1.0) && !holds("calls > 100 %", 0.0, 0.0));
        assert!(holds("io_time < 2 s", 9.0, 1.0) && holds("io_time <= 2 s", 9.0, 2.0));
    }
}
