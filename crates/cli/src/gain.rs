//! What a finding's change would gain on a machine: the recorded calls are simulated there as they are, and as they would
//! be with the change.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use pio_explain::Explanation;
use pio_explain::findings::{Finding, Gain, Kind};
use pio_machine::Machine;
use pio_plan::{Hints, Strategy};
use pio_sim::{Change, Options, SimError, Workload, simulate};
use pio_trace::{FileId, Trace};

use crate::own_way;
use crate::progress::Progress;

/// Strategies that may take the place of the MPI library's own for collective calls, and how the gain is told.
const OTHER_STRATEGIES: [(Strategy, &str); 3] = [
    (Strategy::TwoPhase, "two-phase in place of the MPI's own"),
    (Strategy::ViewBased, "view-based in place of the MPI's own"),
    (Strategy::Ecio, "ecio in place of the MPI's own"),
];
/// Part of the time that a change must save at least: less is within what predictions are off.
pub(crate) const NOISE: f64 = 0.02;

/// Predicts on each machine what each finding's change would gain. Findings whose change the simulator cannot carry out
/// are left as they are; those whose change gains nothing on any machine are no advice, and go to
/// [`Explanation::not_advised`].
///
/// # Errors
/// If the trace cannot be read, or a machine cannot run the program as it was recorded.
pub fn predict_gains(trace: &Trace, explanation: &mut Explanation, machines: &[Machine]) -> Result<()> {
    let can_change =
        |finding: &Finding| change_of(finding.kind).is_some() || finding.kind == Kind::InsideLibrary;
    // The calls of a long trace take much memory.
    if machines.is_empty() || !explanation.findings.iter().any(can_change) {
        return Ok(());
    }
    let workload = Workload::from_trace(trace)?;
    let changed: Vec<_> =
        explanation.findings.iter().map(|finding| with_change(&workload, finding)).collect();
    // What the program's MPI library does by itself, before and after.
    let own = own_way::of_trace(trace.tables()).strategy;
    for machine in machines {
        let before_s = io_s(machine, &workload, own).with_context(|| machine.name.clone())?;
        for finding in explanation.findings.iter_mut().filter(|finding| finding.kind == Kind::InsideLibrary) {
            finding.gains.extend(other_strategy(machine, &workload, before_s));
        }
        for (finding, changed) in explanation.findings.iter_mut().zip(&changed) {
            let Some((change, changed)) = changed else { continue };
            // Ranks that would wait for each other cannot follow this advice as it stands.
            if let Ok(after_s) = io_s(machine, changed, own) {
                finding.gains.push(Gain { machine: machine.name.clone(), before_s, after_s, change });
            }
        }
    }
    let (advised, not_advised) =
        std::mem::take(&mut explanation.findings).into_iter().partition(gains_anywhere);
    (explanation.findings, explanation.not_advised) = (advised, not_advised);
    Ok(())
}

/// Whether nothing is known against following the advice.
fn gains_anywhere(finding: &Finding) -> bool {
    let gains = |gain: &Gain| gain.after_s < gain.before_s * (1.0 - NOISE);
    finding.gains.is_empty() || finding.gains.iter().any(gains)
}

/// The same calls by another strategy than that of the MPI library: the best of them.
fn other_strategy(machine: &Machine, workload: &Workload, before_s: f64) -> Option<Gain> {
    let predicted = OTHER_STRATEGIES
        .into_iter()
        .filter_map(|(strategy, change)| Some((io_s(machine, workload, strategy).ok()?, change)));
    let (after_s, change) = predicted.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(Gain { machine: machine.name.clone(), before_s, after_s, change })
}

fn with_change(workload: &Workload, finding: &Finding) -> Option<(&'static str, Workload)> {
    let (change, words) = change_of(finding.kind)?;
    let files: BTreeSet<FileId> = finding.files.iter().map(|file| file.id).collect();
    Some((words, workload.with_change(change, &files)?))
}

/// The change that helps, as the simulator carries it out, and in words.
fn change_of(kind: Kind) -> Option<(Change, &'static str)> {
    Some(match kind {
        Kind::SmallWrites | Kind::SmallReads => (Change::Gather, "requests gathered to 1 MiB"),
        Kind::StridedAccess => (Change::GatherWithGaps, "ranges of up to 1 MiB read at once"),
        Kind::Seeks => (Change::NoSeeks, "without the seeks"),
        Kind::RedundantReads => (Change::KeepReads, "every byte read once"),
        Kind::ReadAfterWrite => (Change::KeepWritten, "without the reads"),
        Kind::Overwrites => (Change::WriteOnce, "every byte written once"),
        Kind::SameReadByAll => (Change::ReadOnce, "read by one rank, and broadcast"),
        Kind::UnalignedSharing | Kind::MissingCollective | Kind::NoView => {
            (Change::Collect, "collective calls, two-phase")
        }
        Kind::OpenStorm => (Change::OpenOnce, "each file opened once"),
        Kind::UnbufferedStream
        | Kind::RandomAccess
        | Kind::RandomMapping
        | Kind::CyclicRereads
        | Kind::SharedAppend
        | Kind::SyncPerWrite
        | Kind::SyncPerFile
        | Kind::Imports
        | Kind::ManySmallFiles
        | Kind::FilePerProcess
        | Kind::MetadataStorm
        | Kind::SameNamesByAll
        | Kind::LockWaits
        | Kind::OneWriter
        | Kind::Straggler
        | Kind::UnevenRanks
        | Kind::NoOverlap
        | Kind::LateRanks
        | Kind::InsideLibrary
        | Kind::TooManyRanks
        | Kind::StreamedData
        | Kind::UnalignedRequests
        | Kind::FewStripes
        | Kind::ManyStripes
        | Kind::MetadataTime
        | Kind::BeyondFiles => return None,
    })
}

/// Time in I/O, mean of the ranks, seconds.
fn io_s(machine: &Machine, workload: &Workload, strategy: Strategy) -> Result<f64, SimError> {
    let calls = workload.programs.iter().map(|program| program.len() as u64).sum();
    let progress = Progress::new(&machine.name, calls);
    let mut tell = |state: pio_sim::Progress| progress.set(state.calls_begun);
    let (hints, options) = (Hints::default(), Options::default());
    let found = simulate(machine, workload, strategy, &hints, &options, None, &mut tell)?;
    Ok(found.io_time_mean.seconds())
}
