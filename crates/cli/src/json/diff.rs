//! The object of `pioscope diff --json`.

use std::path::Path;

use pio_explain::{Diff, DiffFile, DiffFinding, DiffOperation, Explanation, Tally};
use serde::Serialize;

use crate::condition::Checked;

use super::{Moved, path};

/// Two runs side by side.
#[derive(Serialize)]
pub(crate) struct Compared<'e> {
    schema: &'static str,
    before: Run<'e>,
    after: Run<'e>,
    operations: Vec<Operation>,
    findings: Vec<Finding>,
    files: Vec<File<'e>>,
    conditions: Vec<Condition>,
}

/// One of the runs.
#[derive(Serialize)]
struct Run<'e> {
    trace: String,
    job: &'e str,
    is_complete: bool,
    process_count: u64,
    file_count: u64,
    run_time_s: f64,
    io_time_s: f64,
    #[serde(flatten)]
    moved: Moved,
}

/// The calls of a kind, of one layer.
#[derive(Serialize)]
struct Operation {
    layer: &'static str,
    by_program: bool,
    operation: &'static str,
    calls_before: u64,
    calls_after: u64,
    bytes_before: u64,
    bytes_after: u64,
    time_before_s: f64,
    time_after_s: f64,
}

/// What a kind of finding costs.
#[derive(Serialize)]
struct Finding {
    kind: String,
    found_before: bool,
    found_after: bool,
    cost_before_s: f64,
    cost_after_s: f64,
}

/// A file of either run.
#[derive(Serialize)]
struct File<'e> {
    path: &'e str,
    bytes_before: Option<u64>,
    bytes_after: Option<u64>,
    call_time_before_s: Option<f64>,
    call_time_after_s: Option<f64>,
}

/// What a condition of `--fail-if` says.
#[derive(Serialize)]
struct Condition {
    condition: String,
    holds: bool,
    value_before: f64,
    value_after: f64,
}

impl<'e> Compared<'e> {
    /// The object of two explanations, with where their traces are, and of what was asked of them.
    pub(crate) fn of(
        before: (&Path, &'e Explanation),
        after: (&Path, &'e Explanation),
        checked: &[Checked<'_>],
    ) -> Compared<'e> {
        let diff = Diff::of(before.1, after.1);
        Compared {
            schema: "pioscope.diff/1",
            before: run(before),
            after: run(after),
            operations: diff.operations.iter().map(operation).collect(),
            findings: diff.findings.iter().map(finding).collect(),
            files: diff.files.iter().map(file).collect(),
            conditions: checked.iter().map(condition).collect(),
        }
    }
}

fn run<'e>((trace, found): (&Path, &'e Explanation)) -> Run<'e> {
    Run {
        trace: path(trace),
        job: &found.job,
        is_complete: !found.trouble.is_incomplete(),
        process_count: found.process_count,
        file_count: found.workload.files,
        run_time_s: found.duration_s(),
        io_time_s: found.io_time_s(),
        moved: Moved::of(found),
    }
}

fn operation(one: &DiffOperation) -> Operation {
    let [before, after] = one.tallies;
    Operation {
        layer: one.layer.name(),
        by_program: !one.physical,
        operation: one.op.name(),
        calls_before: before.count,
        calls_after: after.count,
        bytes_before: before.bytes,
        bytes_after: after.bytes,
        time_before_s: before.time_s(),
        time_after_s: after.time_s(),
    }
}

fn finding(one: &DiffFinding) -> Finding {
    let [found_before, found_after] = one.found;
    // Version 1 has numbers here: what was not found costs nothing.
    let [cost_before_s, cost_after_s] = one.lost_s.map(|lost_s| lost_s.unwrap_or(0.0));
    Finding { kind: one.kind.name(), found_before, found_after, cost_before_s, cost_after_s }
}

fn file<'e>(one: &DiffFile<'e>) -> File<'e> {
    let [before, after] = one.tallies;
    let bytes = |tally: Option<Tally>| tally.map(|tally| tally.bytes);
    let time_s = |tally: Option<Tally>| tally.map(|tally| tally.time_s());
    File {
        path: one.path,
        bytes_before: bytes(before),
        bytes_after: bytes(after),
        call_time_before_s: time_s(before),
        call_time_after_s: time_s(after),
    }
}

fn condition(checked: &Checked<'_>) -> Condition {
    Condition {
        condition: checked.condition.to_string(),
        holds: checked.holds,
        value_before: checked.before,
        value_after: checked.after,
    }
}
