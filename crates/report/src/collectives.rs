//! Where the time of MPI-IO calls went, in words and as a table: late ranks, the MPI library, the files.

use pio_explain::{Explanation, NotKnown, TimeSplit};
use pio_trace::ProcessId;

use crate::table::Table;
use crate::units;

/// The three parts in a sentence; none without MPI-IO.
pub(crate) fn sentence(found: &Explanation) -> Option<String> {
    let split = found.mpi_io.total();
    let total_ns = split.total_ns();
    if total_ns == 0 {
        return None;
    }
    let total = units::time_ns(total_ns);
    let why = match found.mpi_io.not_known {
        Some(NotKnown::Unmatched) => "the calls of the ranks could not be matched",
        Some(NotKnown::Opens) => "the trace does not say which ranks opened a file together",
        Some(NotKnown::Lacking) | None => "the trace lacks calls of some ranks",
    };
    if split.unknown_ns == total_ns {
        return Some(format!(
            "Where {total} in MPI-IO calls (all processes together) went is unknown, because {why}."
        ));
    }
    let share = |part_ns: u64| units::percent(part_ns as f64 / total_ns as f64);
    let mut parts = Vec::new();
    if split.late_ns > 0 {
        parts.push(format!("{} was waiting for late ranks", share(split.late_ns)));
    }
    if found.mpi_io.files_seen {
        parts.push(format!("{} was spent inside the MPI library", share(split.library_ns)));
        parts.push(format!("{} on the files", share(split.files_ns)));
    } else {
        let library = share(split.library_ns);
        parts.push(format!(
            "{library} was spent inside the MPI library and on the files, which the trace does not tell apart"
        ));
    }
    if split.unknown_ns > 0 {
        parts.push(format!("{} is unknown, because {why}", share(split.unknown_ns)));
    }
    let last = parts.pop()?;
    let parts = if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) };
    Some(format!("Of {total} in MPI-IO calls (all processes together), {parts}."))
}

/// How much of MPI's time used a processor; none where that is not known.
pub(crate) fn on_processors(found: &Explanation) -> Option<String> {
    let part = units::percent(found.in_mpi.fraction()?);
    let total = units::time_ns(found.in_mpi.elapsed_ns);
    Some(format!(
        "Of {total} in calls of MPI, {part} was spent on a processor, also to wait by spinning; in the rest ranks slept or \
         had none."
    ))
}

/// The parts by operation; no rows without MPI-IO.
pub(crate) fn table(found: &Explanation) -> Table {
    let total = found.mpi_io.total();
    let (files_seen, unknown) = (found.mpi_io.files_seen, total.unknown_ns > 0);
    let row = |name: &str, split: &TimeSplit| {
        let all_ns = split.total_ns();
        let part = |part_ns: u64| match part_ns {
            0 => "–".to_string(),
            _ => format!(
                "{} ({})",
                units::time_ns(part_ns),
                units::percent(part_ns as f64 / all_ns.max(1) as f64)
            ),
        };
        let mut cells =
            vec![name.to_string(), units::count(split.calls), units::time_ns(all_ns), part(split.late_ns)];
        cells.push(part(split.library_ns));
        if files_seen {
            cells.push(part(split.files_ns));
        }
        if unknown {
            cells.push(part(split.unknown_ns));
        }
        cells
    };
    let mut rows: Vec<_> = found.mpi_io.operations.iter().map(|(op, split)| row(op.name(), split)).collect();
    if rows.len() > 1 {
        rows.push(row("all", &total));
    }
    let mut columns = vec!["operation", ">calls", ">total time", ">late ranks"];
    columns.extend(if files_seen { &[">library", ">files"][..] } else { &[">library and files"] });
    if unknown {
        columns.push(">not known");
    }
    Table {
        title: "Where the time of MPI-IO calls went".into(),
        note: "Sums of all processes. Late ranks: from a rank's arrival at a collective call until the last rank has come. \
               Files: after that, while any rank of the call is at the files. Library: the rest."
            .into(),
        columns,
        rows,
    }
}

/// What is known of the rank that comes last most: how often, how long the others wait for it, and what made it late.
pub(crate) fn last(
    found: &Explanation,
    process: ProcessId,
    [calls, of]: [u64; 2],
    waited_ns: u64,
    [think_ns, io_ns]: [u64; 2],
) -> String {
    let each = |time_ns: u64| units::time_ns(time_ns / calls.max(1));
    let mut text = format!(
        "Rank {} came last to {} of {}; the others waited {} for it, all together.",
        crate::findings::process(found, process),
        units::count(calls),
        units::things(of, "collective call", "collective calls"),
        units::time_ns(waited_ns),
    );
    let before = match (think_ns / calls.max(1), io_ns / calls.max(1)) {
        (0, 0) => "it neither computed nor did I/O: it slept, or waited for messages".to_string(),
        (_, 0) => format!("it computed for {} on average", each(think_ns)),
        (_, _) => format!("it computed for {} and did I/O for {} on average", each(think_ns), each(io_ns)),
    };
    text.push_str(&format!(" Since the collective call before, {before}."));
    text
}
