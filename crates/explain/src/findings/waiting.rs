//! I/O that could go on while the program computes.

use pio_trace::ProcessId;

use super::finding::{Detail, Draft};
use super::limits::{TURNS, WAITING_SHARE};
use super::{Context, Finding, Kind};

pub(super) fn findings(context: &Context<'_>) -> Option<Finding> {
    let processes = context.evidence.processes.iter().enumerate();
    let turning: Vec<_> = processes
        .map(|(index, process)| (ProcessId(index as u32), process.overlap()))
        .filter(|(_, (turns, overlap_ns, _))| *turns >= TURNS && *overlap_ns > 0)
        .collect();
    let overlap_ns: f64 = turning.iter().map(|(_, (_, overlap_ns, _))| *overlap_ns as f64).sum();
    // Processes that compute and wait by turns do so side by side: each saves its own.
    let lost_ns = overlap_ns / turning.len().max(1) as f64;
    if lost_ns < context.least_ns(WAITING_SHARE) {
        return None;
    }
    let together = turning.len() as f64;
    let turns = turning.iter().map(|(_, (turns, _, _))| *turns).max()?;
    let mut draft = Draft::of_processes(
        Kind::NoOverlap,
        turning.into_iter().map(|(process, (_, _, cost))| (process, cost)),
    );
    draft.expected_ns = (draft.cost.time_ns as f64 - overlap_ns).max(0.0);
    draft.detail = Detail::Turns(turns);
    Some(draft.finish(lost_ns, together))
}
