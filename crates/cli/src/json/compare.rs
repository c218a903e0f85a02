//! The object of `pioscope compare --json`.

use std::path::Path;

use serde::Serialize;

use crate::compare::{Baseline, CheckedRuns};

use super::path;

/// Runs of a command beside those of its baseline.
#[derive(Serialize)]
pub(crate) struct Compared<'e> {
    schema: &'static str,
    baseline: Option<Kept<'e>>,
    command: &'e str,
    host: &'e str,
    run_count: usize,
    conditions: Vec<Condition>,
}

/// What is compared with.
#[derive(Serialize)]
struct Kept<'e> {
    file: String,
    command: &'e str,
    host: &'e str,
    run_count: usize,
}

/// What a condition says.
#[derive(Serialize)]
struct Condition {
    condition: String,
    holds: bool,
    baseline_median: Option<f64>,
    median: f64,
    /// None where there is no baseline, or it has nothing of the metric.
    factor: Option<f64>,
    probability: Option<f64>,
}

impl<'e> Compared<'e> {
    /// The object of a baseline, if there is one, with where it is, of new runs, and of what was asked of them.
    pub(crate) fn of(
        baseline: Option<(&Path, &'e Baseline)>,
        new: &'e Baseline,
        checked: &[CheckedRuns<'_>],
    ) -> Compared<'e> {
        let condition = |one: &CheckedRuns<'_>| Condition {
            condition: one.condition.to_string(),
            holds: one.holds,
            baseline_median: one.before,
            median: one.after,
            factor: one.factor.filter(|factor| factor.is_finite()),
            probability: one.p,
        };
        Compared {
            schema: "pioscope.compare/1",
            baseline: baseline.map(|(file, baseline)| Kept {
                file: path(file),
                command: &baseline.command,
                host: &baseline.host,
                run_count: baseline.runs.len(),
            }),
            command: &new.command,
            host: &new.host,
            run_count: new.runs.len(),
            conditions: checked.iter().map(condition).collect(),
        }
    }
}
