//! Findings from counters in words: what was counted, and where the time of a run without findings goes.

use std::collections::BTreeSet;

use pio_explain::Explanation;
use pio_explain::counted::{Counted, CountedFile};
use pio_explain::findings::{ByCounters, Finding, Kind};
use pio_import::darshan::Module;

use crate::escape;
use crate::headline::{PATH_COLUMNS, at_least};
use crate::units::{self, things};

/// What no sum tells.
pub(crate) const NOT_SHOWN: &str = "Counters are sums over a file. They do not show the order of calls, what overlaps, cycles, \
    ranks that wait for late ones, computing between calls, or the times of single calls. `pioscope record` does, and Darshan \
    with DXT (DXT_ENABLE_IO_TRACE=1) most of it.";

/// Whether the time of such a finding is that of its calls alone; else that of others on the same files is in it.
pub(crate) fn is_whole(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::SmallReads
            | Kind::SmallWrites
            | Kind::RandomAccess
            | Kind::StridedAccess
            | Kind::MissingCollective
            | Kind::InsideLibrary
            | Kind::SyncPerWrite
            | Kind::UnalignedRequests
            | Kind::Seeks
            | Kind::MetadataStorm
    )
}

/// What was counted.
pub(crate) fn evidence(found: &Explanation, finding: &Finding, counters: &ByCounters) -> String {
    let mut text = calls(finding, counters);
    if counters.on_shared > 0 && matters_shared(finding.kind) {
        text.push_str(&match counters.on_shared >= finding.cost.calls {
            true => ", on files that several ranks use".to_owned(),
            false => {
                format!(", {} of them on files that several ranks use", units::count(counters.on_shared))
            }
        });
    }
    format!("{text}. {}", time(found, finding))
}

fn matters_shared(kind: Kind) -> bool {
    matches!(kind, Kind::SmallReads | Kind::SmallWrites | Kind::RandomAccess | Kind::StridedAccess)
}

/// What is wrong with how many calls.
fn calls(finding: &Finding, counters: &ByCounters) -> String {
    let cost = &finding.cost;
    let [many, all] = [cost.calls, counters.of].map(units::count);
    let of = format!("{many} of {all} {}", sort(finding));
    let share = units::percent(cost.calls as f64 / counters.of.max(1) as f64);
    let bytes = units::bytes(cost.bytes() as f64);
    let on_average = format!(
        "{} of {} on average ({bytes} in all)",
        things(cost.calls, "call", "calls"),
        units::bytes(cost.bytes() as f64 / cost.calls.max(1) as f64)
    );
    let with_bytes = match counters.most_bytes {
        Some(most) if cost.bytes() > 0 => {
            let part = units::percent((most as f64 / cost.bytes() as f64).min(1.0));
            format!(" ({share}; at most {part} of {bytes})")
        }
        _ => format!(" ({share}; {bytes} in all)"),
    };
    let files = things(finding.files.len() as u64, "file", "files");
    match finding.kind {
        Kind::SmallReads | Kind::SmallWrites => format!("{of} are of less than 100 KiB{with_bytes}"),
        Kind::InsideLibrary => {
            format!(
                "{of} that the MPI library makes of collective calls are of less than 100 KiB{with_bytes}"
            )
        }
        Kind::MissingCollective => {
            format!("{of} by MPI-IO, each made by one rank for itself, are of less than 1 MiB{with_bytes}")
        }
        Kind::RandomAccess => format!("{of} begin elsewhere than where the one before ended{with_bytes}"),
        Kind::StridedAccess => format!("{of} leave out a gap, of lengths that recur{with_bytes}"),
        Kind::RedundantReads => format!("About {of} read what their process had read before{with_bytes}"),
        Kind::SameReadByAll => format!("About {of} read what another rank had read{with_bytes}"),
        Kind::SyncPerWrite => format!(
            "{} for {} of {bytes}",
            things(cost.calls, "sync", "syncs"),
            things(counters.of, "write", "writes")
        ),
        Kind::UnbufferedStream => {
            format!("{on_average} on streams, flushed after every second write or more often")
        }
        Kind::StreamedData => format!("{on_average} on streams"),
        Kind::OpenStorm => {
            format!("{many} of {all} opens and stats open what the same process had opened before")
        }
        Kind::SameNamesByAll => {
            format!("{many} opens and stats, of {files} that all ranks ask for and none writes")
        }
        Kind::FilePerProcess => format!("{many} opens of {files} that one rank each uses"),
        Kind::ManySmallFiles => format!("{many} opens of {files} that one process each uses for little"),
        Kind::MetadataStorm => format!("{many} of {all} calls that move nothing ask for attributes (stat)"),
        Kind::Seeks => format!("{many} of {all} calls that move nothing are seeks"),
        Kind::MetadataTime => format!("{many} opens and stats of {files}"),
        Kind::UnalignedRequests => {
            let memory = match counters.in_memory {
                0 => String::new(),
                requests => format!("; {} are not aligned in memory", units::count(requests)),
            };
            let alignment = units::bytes(counters.measure as f64);
            format!("{of} do not begin at a multiple of {alignment}{with_bytes}{memory}")
        }
        Kind::BeyondFiles => {
            format!("{} of {all} calls by MPI-IO that move data are collective ({bytes} in all)", many)
        }
        Kind::FewStripes => {
            let reach = units::bytes(counters.measure as f64);
            format!("{bytes} in {many} requests, on a file of {reach} with one stripe")
        }
        Kind::ManyStripes => format!(
            "{many} opens and stats of {files} that fill no more than one of up to {} stripes",
            units::count(counters.measure)
        ),
        _ => format!("The rank moved {bytes}"),
    }
}

/// Reads, writes or both.
fn sort(finding: &Finding) -> &'static str {
    match (finding.cost.read_bytes, finding.cost.write_bytes) {
        (_, 0) => "reads",
        (0, _) => "writes",
        _ => "requests",
    }
}

fn time(found: &Explanation, finding: &Finding) -> String {
    let cost = &finding.cost;
    let calls = match finding.kind {
        Kind::OpenStorm
        | Kind::SameNamesByAll
        | Kind::FilePerProcess
        | Kind::ManySmallFiles
        | Kind::MetadataStorm
        | Kind::Seeks
        | Kind::MetadataTime
        | Kind::ManyStripes => "Opens, closes, seeks and stats of these files",
        Kind::SyncPerWrite => "Writes and syncs together",
        Kind::OneWriter | Kind::UnevenRanks | Kind::Straggler => "Its calls",
        Kind::BeyondFiles => "Beyond the time that a rank was at the files, they",
        _ if is_whole(finding.kind) => "They",
        _ => "Such calls",
    };
    let most = if is_whole(finding.kind) || finding.kind == Kind::SyncPerWrite { "" } else { "at most " };
    let alone = matches!(finding.kind, Kind::OneWriter | Kind::UnevenRanks | Kind::Straggler);
    let sum = if found.process_count > 1 && !alone { ", the sum of all ranks" } else { "" };
    format!(
        "{calls} took {most}{}{sum}, between {} and {}.",
        units::time_ns(cost.time_ns),
        units::time_ns(cost.from_ns.min(cost.until_ns)),
        units::time_ns(cost.until_ns)
    )
}

/// Where the time of a run without findings goes.
pub(crate) fn where_time_goes(found: &Explanation, counted: &Counted) -> String {
    let by_mpi_io = names(counted, Module::MpiIo);
    // What the program called: MPI-IO does its work by POSIX.
    let called = |file: &&CountedFile| match file.module {
        Module::Posix => !by_mpi_io.contains(file.name.as_str()),
        Module::MpiIo | Module::Stdio | Module::Dfs => true,
        _ => false,
    };
    let calls_s: f64 = counted.files.iter().filter(called).map(|file| file.counts.time_s()).sum();
    let life_s = counted.run_time_s * counted.processes.max(1) as f64;
    if calls_s <= 0.0 || life_s <= 0.0 {
        return "the log tells of no time in calls on files.".to_owned();
    }
    let part = (calls_s / life_s).min(1.0);
    let whose = if counted.processes > 1 { "the ranks' time" } else { "the run" };
    let mut sentence = format!(
        "{} of {whose} is outside calls on files; these take {}{} ({})",
        units::percent(1.0 - part),
        at_least(found),
        units::time_s(calls_s),
        units::percent(part)
    );
    let files: Vec<&CountedFile> = counted.files.iter().filter(called).collect();
    // Those with the most time come first; one of many that are alike is not where the time goes.
    match files.first().filter(|file| file.counts.time_s() >= calls_s / 2.0 && !file.name.is_empty()) {
        Some(file) => {
            let name = escape::shorten(&file.name, PATH_COLUMNS);
            sentence.push_str(&format!(", most in {} of {name}", most_time(&[file])));
        }
        None => sentence.push_str(&format!(", most in {}", most_time(&files))),
    }
    sentence + "."
}

fn names(counted: &Counted, module: Module) -> BTreeSet<&str> {
    let of_module = counted.files.iter().filter(|file| file.module == module && file.counts.accesses() > 0);
    of_module.map(|file| file.name.as_str()).collect()
}

/// What took most of the time on files.
fn most_time(files: &[&CountedFile]) -> &'static str {
    let sum = |of: fn(&CountedFile) -> f64| files.iter().map(|file| of(file)).sum::<f64>();
    let sorts = [
        ("opens, seeks and stats", sum(|file| file.counts.metadata_s)),
        ("reads", sum(|file| file.counts.read_s)),
        ("writes", sum(|file| file.counts.write_s)),
    ];
    sorts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or("calls", |(name, _)| name)
}

/// Of the time in MPI-IO, what went by at the files: Darshan does not tell what the rest was.
pub(crate) fn below_mpi_io(counted: &Counted) -> Option<String> {
    let of = |module| counted.files.iter().filter(move |file| file.module == module);
    let by_mpi_io: std::collections::BTreeSet<&str> =
        of(Module::MpiIo).map(|file| file.name.as_str()).collect();
    let mpi_io_s: f64 = of(Module::MpiIo).map(|file| file.counts.time_s()).sum();
    let files_s: f64 = of(Module::Posix)
        .filter(|file| by_mpi_io.contains(file.name.as_str()))
        .map(|file| file.counts.time_s())
        .sum();
    (mpi_io_s > 0.0 && files_s > 0.0 && files_s < mpi_io_s / 2.0).then(|| {
        format!(
            "Of {} in MPI-IO calls, {} was spent on the files; the rest is waiting for other ranks or the MPI library: \
             counters do not tell which.",
            units::time_s(mpi_io_s),
            units::time_s(files_s)
        )
    })
}
