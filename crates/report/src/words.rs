//! The explanation in sentences.

use pio_explain::{Explanation, Failure, Transfer, Trouble};
use pio_trace::{Call, Layer, Op};

use crate::collectives;
use crate::headline::at_least;
use crate::mpi_errors;
use crate::units::{self, things};

/// What happened, in a few sentences, most important first.
pub(crate) fn summary(found: &Explanation) -> Vec<String> {
    let mut sentences = vec![who(found)];
    sentences.extend(data(found));
    let split = collectives::sentence(found);
    if mostly_at_files(found) {
        sentences.extend(time(found));
    }
    sentences.extend(split);
    sentences.extend(collectives::on_processors(found));
    sentences.extend(order(found));
    sentences.extend(crate::rhythm::sentence(found));
    sentences.extend(balance(found));
    sentences
}

fn who(found: &Explanation) -> String {
    let processes = if found.is_mpi {
        things(found.process_count, "rank", "ranks")
    } else {
        things(found.process_count, "process", "processes")
    };
    let mut hosts: Vec<_> = found.processes.iter().map(|process| process.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let hosts = if hosts.len() > 1 { format!(" on {} hosts", hosts.len()) } else { String::new() };
    let share = match found.io_time.fraction() {
        Some(part) => {
            let (part, of) = (units::percent(part), of_what(found, "that"));
            let on_average = if found.process_count == 1 { "" } else { " on average" };
            format!(" and spent {part} of {of} in I/O{on_average}")
        }
        None => String::new(),
    };
    let duration_s = (found.process_count > 0).then(|| found.duration_s());
    format!("{processes}{hosts} ran for {}{share}.", units::if_known(duration_s, units::time_s))
}

/// What the part of the time in I/O ([`pio_explain::IoTime::fraction`]) is a part of: the run, which the sentence has its
/// own word for, or the processes' lives, where those are shorter. The costs of findings are parts of the run.
pub(crate) fn of_what<'a>(found: &Explanation, run: &'a str) -> &'a str {
    /// As a process starts and ends a little after and before the run.
    const LEAST_PART: f64 = 0.95;
    let of_run_ns = found.duration_ns as f64 * found.process_count as f64;
    match found.process_count {
        _ if found.io_time.lifetime_ns as f64 >= LEAST_PART * of_run_ns => run,
        1 => "its life",
        _ => "their lives",
    }
}

fn data(found: &Explanation) -> Option<String> {
    let workload = &found.workload;
    let moved = |transfer: Transfer, verb: &str| {
        let rate = transfer.bandwidth_bytes_per_s();
        let rate = rate.map_or(String::new(), |rate| format!(" at {}", units::rate(rate)));
        let at_least = at_least(found);
        (transfer.bytes > 0)
            .then(|| format!("{verb} {at_least}{}{rate}", units::bytes(transfer.bytes as f64)))
    };
    let parts: Vec<_> = [moved(found.transfers.read, "read"), moved(found.transfers.write, "wrote")]
        .into_iter()
        .flatten()
        .collect();
    if parts.is_empty() {
        return None;
    }
    Some(format!(
        "The program {}, in {}{} of {} on average, on {}.",
        parts.join(" and "),
        at_least(found),
        things(workload.io_count(), "request", "requests"),
        units::bytes(workload.mean_io_bytes().unwrap_or(0.0)),
        things(workload.files, "file", "files"),
    ))
}

/// Whether the operations at the files say where the time went: not if most of it went by elsewhere in MPI-IO.
fn mostly_at_files(found: &Explanation) -> bool {
    let split = found.mpi_io.total();
    split.total_ns() == 0 || (found.mpi_io.files_seen && split.files_ns >= split.total_ns() / 2)
}

fn time(found: &Explanation) -> Option<String> {
    let total = found.operations.for_io_time_s();
    let (op, tally) = found.operations.for_io().max_by_key(|(_, tally)| tally.time_ns)?;
    if total <= 0.0 {
        return None;
    }
    let place = match (found.operations.layer, op) {
        (_, Op::Communicate) => " for I/O",
        (Layer::Mark, _) => "",
        (Layer::Hdf5, _) => " calls (HDF5)",
        (Layer::Pnetcdf, _) => " calls (PnetCDF)",
        (Layer::MpiIo, _) => " calls (MPI-IO)",
        (Layer::Posix | Layer::Stdio | Layer::Server | Layer::Message, _) => " calls (at the file system)",
    };
    Some(format!(
        "The largest part of the operations' time went to {}{place}: {} of {}.",
        op.name(),
        units::percent(tally.time_s() / total),
        units::time_s(total),
    ))
}

fn order(found: &Explanation) -> Option<String> {
    let (asked, arrived) = (&found.program_pattern, &found.file_system_pattern);
    let (sequential, whose) = match (asked.sequential_fraction(), arrived.sequential_fraction()) {
        (Some(asked), None) => (asked, "program's accesses"),
        (_, Some(arrived)) if found.program_pattern != found.file_system_pattern => {
            (arrived, "accesses that reached the file system")
        }
        (_, arrived) => (arrived?, "accesses"),
    };
    Some(format!(
        "{} of the {whose} continued where the one before, through the same handle, had ended.",
        units::percent(sequential)
    ))
}

fn balance(found: &Explanation) -> Option<String> {
    if found.process_count < 2 {
        return None;
    }
    let largest = found.imbalance?.io_time?;
    let concurrency = found.io_time.concurrency()?;
    let together = format!(
        "while there was I/O, {} of {} processes took part on average.",
        units::significant((concurrency * 10.0).round() / 10.0),
        units::count(found.process_count),
    );
    let busiest = if largest < 1.05 {
        "All processes spent about the same time in I/O".to_string()
    } else {
        format!(
            "The busiest process spent {} times the mean in I/O",
            units::significant((largest * 100.0).round() / 100.0)
        )
    };
    Some(format!("{busiest}; {together}"))
}

/// What is wrong with the run, one line each. What the trace lacks is in the headline.
pub(crate) fn trouble(trouble: &Trouble) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if trouble.killed_processes > 0 {
        let (themselves, each) =
            if trouble.killed_processes == 1 { ("itself", "it") } else { ("themselves", "each") };
        lines.push(format!(
            "{} did not end by {themselves}: {each} was killed, or the trace was cut.",
            things(trouble.killed_processes, "process", "processes"),
        ));
    }
    if !trouble.unfinished.is_empty() {
        let calls: Vec<_> = trouble.unfinished.iter().map(|(call, count)| times(*call, *count)).collect();
        lines.push(format!(
            "Calls that never returned: {}. What they took is not known, and counts as nothing.",
            calls.join(", ")
        ));
    }
    lines.extend(failed(trouble, false));
    lines
}

/// The title of [`harmless`].
pub(crate) const HARMLESS: &str = "Failed calls that are harmless: searches, and tries of what is possible";

/// Failed calls that tell of nothing wrong, one line each.
pub(crate) fn harmless(trouble: &Trouble) -> Vec<String> {
    failed(trouble, true)
}

fn failed(trouble: &Trouble, harmless: bool) -> Vec<String> {
    const SHOWN: usize = 6;
    let failures: Vec<_> =
        trouble.failures.iter().filter(|failure| failure.is_harmless() == harmless).collect();
    let line = |failure: &&Failure| {
        format!(
            "{} failed: {}",
            times(failure.call, failure.count),
            error_name(failure, trouble.mpi_library.as_deref())
        )
    };
    let mut lines: Vec<String> = failures.iter().take(SHOWN).map(line).collect();
    let rest: u64 = failures.iter().skip(SHOWN).map(|failure| failure.count).sum();
    if rest > 0 {
        lines.push(format!("{} more failed with other errors.", things(rest, "call", "calls")));
    }
    lines
}

fn times(call: Call, count: u64) -> String {
    if count == 1 { call.name().to_string() } else { format!("{} × {}", units::count(count), call.name()) }
}

/// POSIX error numbers have words; MPI's classes differ from MPI to MPI; HDF5 has no numbers.
fn error_name(failure: &Failure, mpi_library: Option<&str>) -> String {
    let error = failure.error;
    match (failure.call.layer(), i32::try_from(error)) {
        (Layer::Posix | Layer::Stdio | Layer::Server, Ok(number)) => {
            std::io::Error::from_raw_os_error(number).to_string()
        }
        (Layer::Hdf5, _) => "HDF5 says no more".to_string(),
        (Layer::Pnetcdf, _) => format!("PnetCDF error -{error}"),
        _ => match mpi_library.and_then(|library| mpi_errors::name(library, error)) {
            Some(name) => name.to_owned(),
            None => format!("MPI error class {error}"),
        },
    }
}
