//! Mapped files of which pages are touched here and there.
//!
//! Which byte is touched when, nobody sees. But whoever goes through a mapping in order waits a few times only, as the
//! system reads ahead; who touches pages here and there waits for each that is not in memory. The recorder counts those
//! page faults, and tries what such a page takes ([`pio_trace::LargeRequests::page_read`]).

use pio_trace::{PageFaults, ProcessId};

use super::finding::{Detail, Draft};
use super::limits::{CALLS, SHARE, SMALL, WAITED_NS};
use super::rates::{References, Regime};
use super::{Context, Cost, Finding, Kind, Slot};

/// A file's mappings by one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapped {
    /// Bytes of all of them.
    pub(crate) bytes: u64,
    /// Start of the first, nanoseconds since the start of the job.
    pub(crate) from_ns: u64,
}

/// If the pages were read in large requests instead, what they take one by one would be saved.
pub(super) fn findings(context: &Context<'_>) -> Option<Finding> {
    let faults = PageFaults::of(context.evidence.tables);
    let parts: Vec<_> = faults
        .iter()
        .filter(|faults| is_scattered(faults))
        .flat_map(|faults| of_process(context, faults))
        .collect();
    let mapped = parts.iter().filter_map(|(slot, _)| slot.mapped);
    let mapped_bytes = mapped.map(|mapped| mapped.bytes).fold(0, u64::saturating_add);
    let mut draft = Draft::of(Kind::RandomMapping, parts.iter().copied());
    draft.detail = Detail::Mapped { bytes: mapped_bytes };
    if draft.cost.calls < CALLS {
        return None;
    }
    let mut is_known = true;
    for (slot, cost) in &parts {
        is_known &= context.evidence.rates.page_ns(slot.file).is_some();
        match context.evidence.rates.time_ns(slot.file, cost, Regime::Device) {
            Some((time_ns, references)) => {
                draft.expected_ns += time_ns;
                draft.references = references;
            }
            None => is_known = false,
        }
    }
    // Processes wait side by side.
    let together =
        parts.iter().map(|(slot, _)| slot.process).collect::<std::collections::BTreeSet<_>>().len() as f64;
    if !is_known {
        (draft.expected_ns, draft.references) = (0.0, References::default());
        let finding = draft.finish_unknown(together);
        return (finding.time_ns() >= context.least_ns(SHARE)).then_some(finding);
    }
    let lost_ns = (draft.cost.time_ns as f64 - draft.expected_ns) / together;
    (lost_ns >= context.least_ns(SHARE)).then(|| draft.finish(lost_ns, together))
}

/// Whether the system fetched little for each fault. What it reads ahead would make that more, and so would other reads of
/// the process: then nothing can be told.
fn is_scattered(faults: &PageFaults) -> bool {
    faults.major >= CALLS && faults.device_bytes / faults.major < SMALL
}

/// The faults of a process by the files that it mapped, as many for each as it has bytes.
fn of_process<'a>(context: &Context<'a>, faults: &PageFaults) -> Vec<(&'a Slot, Cost)> {
    let slots = context.evidence.slots.slots.iter().filter(|slot| slot.process == faults.process);
    let mapped: Vec<_> = slots.filter_map(|slot| Some((slot, slot.mapped?))).collect();
    let all_bytes = mapped.iter().map(|(_, mapped)| mapped.bytes).fold(0, u64::saturating_add).max(1);
    let until_ns = ended_ns(context, faults.process);
    let part = |(slot, mapped): (&'a Slot, Mapped)| {
        let part = mapped.bytes as f64 / all_bytes as f64;
        let calls = (faults.major as f64 * part) as u64;
        let page_ns = context.evidence.rates.page_ns(slot.file).unwrap_or(WAITED_NS as f64);
        let time_ns = (calls as f64 * page_ns) as u64;
        let cost = Cost {
            calls,
            read_bytes: (faults.device_bytes as f64 * part) as u64,
            time_ns,
            own_ns: time_ns,
            waits: calls,
            waited_ns: time_ns,
            from_ns: mapped.from_ns.min(until_ns),
            until_ns,
            ..Cost::default()
        };
        (slot, cost)
    };
    mapped.into_iter().map(part).collect()
}

fn ended_ns(context: &Context<'_>, process: ProcessId) -> u64 {
    let known = context.evidence.tables.processes.get(process.index()).and_then(|process| process.end_ns);
    known.unwrap_or(context.duration_ns).min(context.duration_ns)
}
