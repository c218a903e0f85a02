//! How files lie on the targets of a parallel file system, as the recorder found it.
//!
//! Nothing tells what more targets would give: these findings have no cost. That all bytes of a file pass through one target,
//! however many ranks move them, is certain.

use std::collections::BTreeMap;

use pio_trace::{FileId, Striping};

use super::limits::{CALLS, LOST_NS, SHARE, STRIPED};
use super::{Cost, Detail, Draft, Finding, Kind};
use crate::explanation::FileStatistics;
use crate::tally::{Tally, Traffic};

/// Targets that are many for a file that fills one stripe.
const MANY: u32 = 4;

pub(crate) fn findings(files: &[FileStatistics], duration_ns: u64) -> Vec<Finding> {
    let few = finding(Kind::FewStripes, files, duration_ns, |file, striping| {
        let data = at_files(file).data();
        let is_large = file.size_bytes >= STRIPED && data.bytes >= STRIPED;
        (striping.targets == 1 && file.processes > 1 && is_large).then_some((data, file.transfer.busy_ns))
    });
    // What else is asked of such a file is asked of all its targets.
    let many = finding(Kind::ManyStripes, files, duration_ns, |file, striping| {
        let names = at_files(file).open.merged(at_files(file).other);
        let fits = file.size_bytes > 0 && file.size_bytes <= striping.unit_bytes;
        let together = file.concurrency().unwrap_or(1.0).max(1.0);
        (striping.targets >= MANY && fits).then_some((names, (names.time_ns as f64 / together) as u64))
    });
    let least_ns = (duration_ns as f64 * SHARE).max(LOST_NS);
    let is_told = |finding: &Finding| {
        finding.time_ns() >= least_ns && (finding.kind == Kind::FewStripes || finding.cost.calls >= CALLS)
    };
    few.into_iter().chain(many).filter(is_told).collect()
}

/// The finding of those files of which `of` gives the calls and the time in which any of them was under way; none without.
fn finding(
    kind: Kind,
    files: &[FileStatistics],
    duration_ns: u64,
    of: impl Fn(&FileStatistics, Striping) -> Option<(Tally, u64)>,
) -> Option<Finding> {
    let (mut cost, mut busy_ns, mut processes) = (Cost::default(), 0_u64, 0);
    let mut involved: BTreeMap<FileId, (u64, u64)> = BTreeMap::new();
    let mut detail = Detail::None;
    let mut most_bytes = 0;
    for file in files {
        let Some((striping, (calls, any_ns))) = file.striping.and_then(|one| Some((one, of(file, one)?)))
        else {
            continue;
        };
        cost.merge(&if kind == Kind::FewStripes {
            of_data(file, calls)
        } else {
            of_names(calls, duration_ns)
        });
        busy_ns = busy_ns.saturating_add(any_ns);
        processes = processes.max(file.processes);
        involved.insert(file.file, (calls.count, calls.time_ns));
        if file.size_bytes >= most_bytes {
            most_bytes = file.size_bytes;
            detail = Detail::Placed { size_bytes: file.size_bytes, striping };
        }
    }
    if involved.is_empty() {
        return None;
    }
    let together = (cost.time_ns as f64 / busy_ns.max(1) as f64).max(1.0);
    let mut draft = Draft::of_files(kind, cost, involved);
    draft.detail = detail;
    Some(Finding { process_count: processes, ..draft.finish_unknown(together) })
}

fn of_data(file: &FileStatistics, calls: Tally) -> Cost {
    let (read, write) = (at_files(file).read, at_files(file).write);
    let spans = [file.read_span, file.write_span].into_iter().flatten();
    let from_ns = spans.clone().map(|(first_ns, _)| first_ns).min().unwrap_or(0);
    let until_ns = spans.map(|(_, last_ns)| last_ns).max().unwrap_or(0).saturating_add(calls.longest_ns);
    Cost { read_bytes: read.bytes, write_bytes: write.bytes, from_ns, until_ns, ..of_names(calls, 0) }
}

/// When they were made is not known.
fn of_names(calls: Tally, duration_ns: u64) -> Cost {
    let (calls, time_ns) = (calls.count, calls.time_ns);
    Cost { calls, time_ns, own_ns: time_ns, from_ns: 0, until_ns: duration_ns, ..Cost::default() }
}

/// The calls that reached the file; what the program asked for if none is known to.
fn at_files(file: &FileStatistics) -> Traffic {
    if file.file_system.all().count > 0 { file.file_system } else { file.program }
}

#[cfg(test)]
mod tests {
    use pio_trace::{
        Call, Event, File, FileSystem, FileSystemId, Handle, HandleId, Placement, Process, ProcessId, Tables,
        Target,
    };

    use super::*;
    use crate::Explanation;

    const MIB: u64 = 1 << 20;

    /// Ranks that each write `pieces` pieces of `bytes` to one file, side by side, a millisecond each.
    fn found(ranks: u32, pieces: u64, bytes: u64, striping: Option<Striping>) -> Explanation {
        let process = |rank| Process {
            rank: Some(rank),
            pid: rank,
            host: format!("node{rank}"),
            command: "app".into(),
            start_ns: 0,
            end_ns: None,
        };
        let file_system = FileSystem { kind: "lustre".into(), mount: "/scratch".into() };
        let tables = Tables {
            processes: (0..ranks).map(process).collect(),
            files: vec![File { path: "/scratch/data".into() }],
            handles: (0..ranks)
                .map(|rank| Handle { file: FileId(0), process: ProcessId(rank), ranks: 1, collective: 0 })
                .collect(),
            file_systems: vec![file_system],
            placements: vec![Placement { file: FileId(0), file_system: FileSystemId(0), striping }],
            ..Tables::default()
        };
        let call = |call, rank, step: u64| Event {
            handle: Some(HandleId(rank)),
            elapsed_ns: 1_000_000,
            ..Event::new(call, ProcessId(rank), step * 1_000_000)
        };
        let write = |step, rank| Event {
            target: Target::Extent { offset: (u64::from(rank) * pieces + step) * bytes },
            size: bytes,
            result: bytes as i64,
            ..call(Call::Pwrite, rank, 1 + step)
        };
        let opens = (0..ranks).map(|rank| call(Call::Open, rank, 0));
        let writes = (0..pieces).flat_map(|step| (0..ranks).map(move |rank| write(step, rank)));
        Explanation::of(&tables, opens.chain(writes))
    }

    fn kinds(found: &Explanation) -> Vec<Kind> {
        let told = found.findings.iter().map(|finding| finding.kind);
        told.filter(|kind| [Kind::FewStripes, Kind::ManyStripes].contains(kind)).collect()
    }

    #[test]
    fn a_large_shared_file_on_one_target_is_told() {
        let one = Striping { unit_bytes: MIB, targets: 1 };
        let all = found(4, 64, 8 * MIB, Some(one));
        assert_eq!(kinds(&all), [Kind::FewStripes]);
        let finding = all.findings.iter().find(|finding| finding.kind == Kind::FewStripes).unwrap();
        assert_eq!(finding.lost_ns, None, "nobody can tell what more targets would give");
        assert_eq!(
            (finding.cost.calls, finding.cost.write_bytes, finding.process_count),
            (256, 2048 * MIB, 4)
        );
        assert_eq!(finding.detail, Detail::Placed { size_bytes: 2048 * MIB, striping: one });
        assert!(
            (finding.together - 4.0).abs() < 1e-9 && (finding.time_ns() - 64e6).abs() < 1e3,
            "{finding:?}"
        );
        assert_eq!(kinds(&found(4, 64, 8 * MIB, Some(Striping { targets: 2, ..one }))), []);
        assert_eq!(kinds(&found(4, 8, 8 * MIB, Some(one))), [], "256 MiB are no large file");
        assert_eq!(kinds(&found(1, 512, 8 * MIB, Some(one))), [], "one rank is served by one target");
        assert_eq!(kinds(&found(4, 64, 8 * MIB, None)), []);
    }

    #[test]
    fn a_file_of_one_stripe_on_many_targets_is_told() {
        let many = Striping { unit_bytes: MIB, targets: 8 };
        assert_eq!(kinds(&found(200, 1, 512, Some(many))), [Kind::ManyStripes]);
        assert_eq!(kinds(&found(200, 20, 512, Some(many))), [], "it fills more than one");
        assert_eq!(kinds(&found(50, 1, 512, Some(many))), [], "few opens are how any program begins");
        assert_eq!(kinds(&found(200, 1, 512, Some(Striping { targets: 1, ..many }))), []);
    }
}
