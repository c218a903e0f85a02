//! Two runs side by side: operations, findings and files that are the same in both, largest change first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pio_trace::{Layer, Op};

use crate::explanation::Explanation;
use crate::findings::Kind;
use crate::tally::Tally;

/// What two runs have in common, and what only one of them has. Of each pair, the first is of the first run.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff<'e> {
    /// Operations that occur in either, by the change of their time.
    pub operations: Vec<DiffOperation>,
    /// Findings of either, by the change of their cost.
    pub findings: Vec<DiffFinding>,
    /// Files of either, by the change of the time spent on them.
    pub files: Vec<DiffFile<'e>>,
}

/// An operation of a layer in both runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffOperation {
    /// The layer.
    pub layer: Layer,
    /// Whether an upper layer caused the calls; else the program made them.
    pub physical: bool,
    /// The operation.
    pub op: Op,
    /// What it amounts to; all zero where it does not occur.
    pub tallies: [Tally; 2],
}

/// A kind of finding in both runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiffFinding {
    /// What is wrong.
    pub kind: Kind,
    /// Whether it was found.
    pub found: [bool; 2],
    /// What it costs, seconds of the job; none where it was not found or its cost is not known.
    pub lost_s: [Option<f64>; 2],
}

/// A file of the same path in both runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffFile<'e> {
    /// Its path.
    pub path: &'e str,
    /// Calls on it at the file system if that saw them, else those of the program; none where it is not used.
    pub tallies: [Option<Tally>; 2],
}

impl<'e> Diff<'e> {
    /// Compares two runs.
    pub fn of(before: &'e Explanation, after: &'e Explanation) -> Diff<'e> {
        let runs = [before, after];
        Diff { operations: operations(runs), findings: findings(runs), files: files(runs) }
    }
}

fn operations(runs: [&Explanation; 2]) -> Vec<DiffOperation> {
    let mut all: BTreeMap<(Layer, bool, Op), [Tally; 2]> = BTreeMap::new();
    for (side, found) in runs.into_iter().enumerate() {
        for layer in &found.layers {
            for (op, tally) in layer.table.operations.iter() {
                all.entry((layer.layer, layer.physical, op)).or_default()[side] = tally;
            }
        }
    }
    let one = |((layer, physical, op), tallies)| DiffOperation { layer, physical, op, tallies };
    let mut all: Vec<_> = all.into_iter().map(one).collect();
    // Equal ones stay in order of their layers.
    all.sort_by_key(|one| Reverse(one.tallies[0].time_ns.abs_diff(one.tallies[1].time_ns)));
    all
}

fn findings(runs: [&Explanation; 2]) -> Vec<DiffFinding> {
    let mut all: BTreeMap<Kind, DiffFinding> = BTreeMap::new();
    for (side, run) in runs.into_iter().enumerate() {
        for finding in &run.findings {
            let kind = finding.kind;
            let new = DiffFinding { kind, found: [false; 2], lost_s: [None; 2] };
            let one = all.entry(kind).or_insert(new);
            one.found[side] = true;
            if let Some(lost_ns) = finding.lost_ns {
                *one.lost_s[side].get_or_insert(0.0) += lost_ns / 1e9;
            }
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    // Of those whose costs are not known, first what only one run has.
    let change = |one: &DiffFinding| (one.lost_s[0].unwrap_or(0.0) - one.lost_s[1].unwrap_or(0.0)).abs();
    let in_both = |one: &DiffFinding| one.found[0] == one.found[1];
    all.sort_by(|one, other| {
        change(other).total_cmp(&change(one)).then_with(|| in_both(one).cmp(&in_both(other)))
    });
    all
}

fn files(runs: [&Explanation; 2]) -> Vec<DiffFile<'_>> {
    let mut all: BTreeMap<&str, [Option<Tally>; 2]> = BTreeMap::new();
    for (side, found) in runs.into_iter().enumerate() {
        for file in &found.files {
            let reached = file.file_system.all();
            let tally = if reached.count > 0 { reached } else { file.program.all() };
            let known = all.entry(&file.path).or_default()[side].get_or_insert_default();
            *known = known.merged(tally);
        }
    }
    let mut all: Vec<_> = all.into_iter().map(|(path, tallies)| DiffFile { path, tallies }).collect();
    let time_ns = |tally: Option<Tally>| tally.map_or(0, |tally| tally.time_ns);
    all.sort_by_key(|one| Reverse(time_ns(one.tallies[0]).abs_diff(time_ns(one.tallies[1]))));
    all
}
