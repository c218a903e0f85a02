//! The object of `pioscope explain --json`.

use std::path::Path;

use pio_explain::findings::Finding;
use pio_explain::{Apart, Counted, Explanation, FileStatistics, LayerTable, ProcessStatistics, Tally};
use pio_report::Told;
use pio_trace::Op;
use serde::Serialize;

use super::call_sites::{self, CallSite, Line};
use super::marked::{self, FileSystem, Mark};
use super::{Moved, path, seconds};

/// What a recorded program did.
#[derive(Serialize)]
pub(crate) struct Explained<'e> {
    schema: &'static str,
    trace: String,
    job: &'e str,
    is_complete: bool,
    incomplete: Vec<String>,
    is_mpi: bool,
    process_count: u64,
    event_count: u64,
    run_time_s: f64,
    cpu_time_s: f64,
    io_time_s: f64,
    io_time_sum_s: f64,
    io_fraction: Option<f64>,
    #[serde(flatten)]
    moved: Moved,
    cycle_s: Option<f64>,
    findings: Vec<Advised<'e>>,
    operations: Vec<Operation>,
    files: Vec<File<'e>>,
    processes: Vec<Process<'e>>,
    apart: Vec<StandsApart<'e>>,
    purposes: Vec<Purpose<'e>>,
    file_systems: Vec<FileSystem<'e>>,
    marks: Vec<Mark<'e>>,
    call_sites: Vec<CallSite<'e>>,
    interfaces: Vec<Interface>,
    notes: Vec<Note<'e>>,
}

/// A finding, in numbers and in words.
#[derive(Serialize)]
struct Advised<'e> {
    kind: String,
    title: &'static str,
    is_advised: bool,
    cost_s: Option<f64>,
    time_s: f64,
    calls: u64,
    read_bytes: u64,
    write_bytes: u64,
    evidence: String,
    place: String,
    change: &'static str,
    files: Vec<Involved<'e>>,
    call_sites: Vec<Line<'e>>,
    gains: Vec<Gain<'e>>,
}

/// The part of a file in a finding.
#[derive(Serialize)]
struct Involved<'e> {
    path: Option<&'e str>,
    calls: u64,
    time_s: f64,
}

/// What a change is predicted to gain on a machine.
#[derive(Serialize)]
struct Gain<'e> {
    machine: &'e str,
    simulated_change: &'static str,
    io_time_before_s: f64,
    io_time_after_s: f64,
}

/// The calls of a kind, of one layer.
#[derive(Serialize)]
struct Operation {
    layer: &'static str,
    by_program: bool,
    operation: &'static str,
    calls: u64,
    failed_calls: u64,
    bytes: u64,
    time_s: f64,
    longest_call_s: f64,
}

/// A file that was used.
#[derive(Serialize)]
struct File<'e> {
    path: &'e str,
    size_bytes: u64,
    process_count: u64,
    by_mpi_io: bool,
    purpose: Option<&'static str>,
    file_system: Option<&'e str>,
    read_calls: u64,
    read_bytes: u64,
    write_calls: u64,
    write_bytes: u64,
    call_time_s: f64,
}

/// A process by which the job is measured.
#[derive(Serialize)]
struct Process<'e> {
    rank: Option<u32>,
    pid: u32,
    host: &'e str,
    program: &'e str,
    lifetime_s: f64,
    io_time_s: f64,
    cpu_time_s: f64,
    read_calls: u64,
    read_bytes: u64,
    write_calls: u64,
    write_bytes: u64,
}

/// Ranks of a host that were longer or shorter in I/O than the others for a while.
#[derive(Serialize)]
struct StandsApart<'e> {
    host: &'e str,
    ranks: Vec<Option<u32>>,
    is_whole_host: bool,
    from_s: f64,
    until_s: f64,
    io_fraction: f64,
    median_io_fraction: f64,
}

/// Miller and Katz's class of I/O.
#[derive(Serialize)]
struct Purpose<'e> {
    purpose: &'static str,
    file_count: u64,
    size_bytes: u64,
    read_bytes: u64,
    write_bytes: u64,
    largest_path: &'e str,
}

/// What Darshan counted of an interface.
#[derive(Serialize)]
struct Interface {
    interface: &'static str,
    file_count: u64,
    read_calls: u64,
    read_bytes: u64,
    write_calls: u64,
    write_bytes: u64,
    read_time_s: f64,
    write_time_s: f64,
    metadata_time_s: f64,
}

/// What the trace says of itself.
#[derive(Serialize)]
struct Note<'e> {
    name: &'e str,
    text: &'e str,
}

impl<'e> Explained<'e> {
    /// The object of an explanation, and of a log's counters where it is one.
    pub(crate) fn of(trace: &Path, found: &'e Explanation, counted: Option<&Counted>) -> Explained<'e> {
        let mut incomplete = pio_report::losses(&found.trouble);
        let all = found.findings.iter().zip(pio_report::findings_in_words(found)).map(|one| (true, one));
        let dismissed = found.not_advised.iter().zip(pio_report::not_advised_in_words(found));
        let findings = all.chain(dismissed.map(|one| (false, one)));
        // A log without a trace has counters alone.
        let only = counted.filter(|_| found.events == 0);
        if only.is_some() || pio_report::has_counters_alone(found) {
            incomplete.push(
                "calls were counted, but not kept: what is known of them is in interfaces or notes"
                    .to_owned(),
            );
        }
        Explained {
            schema: "pioscope.explain/1",
            trace: path(trace),
            job: &found.job,
            is_complete: incomplete.is_empty(),
            incomplete,
            is_mpi: found.is_mpi,
            process_count: only.map_or(found.process_count, |counted| counted.processes),
            event_count: found.events,
            run_time_s: only.map_or(found.duration_s(), |counted| counted.run_time_s),
            cpu_time_s: found.workload.cpu_s,
            io_time_s: found.io_time_s(),
            io_time_sum_s: found.io_time.process_ns as f64 / 1e9,
            io_fraction: found.io_time.fraction(),
            moved: Moved::of(found),
            cycle_s: found.rhythm.period_s,
            findings: findings
                .map(|(is_advised, (one, told))| advised(found, one, told, is_advised))
                .collect(),
            operations: found.layers.iter().flat_map(operations).collect(),
            files: found.files.iter().map(file).collect(),
            processes: found.processes.iter().map(process).collect(),
            apart: found.apart.iter().map(|apart| stands_apart(found, apart)).collect(),
            purposes: found.purposes.iter().map(purpose).collect(),
            file_systems: found.file_systems.iter().map(marked::file_system).collect(),
            marks: marked::marks(found),
            call_sites: call_sites::all(found),
            interfaces: counted
                .map_or_else(Vec::new, |counted| counted.interfaces.iter().map(interface).collect()),
            notes: found.notes.iter().map(|(name, text)| Note { name, text }).collect(),
        }
    }
}

fn advised<'e>(found: &'e Explanation, finding: &'e Finding, told: Told, is_advised: bool) -> Advised<'e> {
    let Told { title, evidence, place, change, .. } = told;
    Advised {
        kind: finding.kind.name(),
        title,
        is_advised,
        cost_s: finding.lost_ns.map(|lost_ns| lost_ns / 1e9),
        time_s: finding.time_ns() / 1e9,
        calls: finding.cost.calls,
        read_bytes: finding.cost.read_bytes,
        write_bytes: finding.cost.write_bytes,
        evidence,
        place,
        change,
        files: finding
            .files
            .iter()
            .map(|one| Involved { path: found.path(one.id), calls: one.calls, time_s: seconds(one.time_ns) })
            .collect(),
        call_sites: finding
            .call_sites
            .iter()
            .filter_map(|one| Line::of(found, one.id, one.calls, one.time_ns))
            .collect(),
        gains: finding
            .gains
            .iter()
            .map(|gain| Gain {
                machine: &gain.machine,
                simulated_change: gain.change,
                io_time_before_s: gain.before_s,
                io_time_after_s: gain.after_s,
            })
            .collect(),
    }
}

fn operations(table: &LayerTable) -> impl Iterator<Item = Operation> {
    let (layer, by_program) = (table.layer.name(), !table.physical);
    table.table.operations.iter().map(move |(op, tally): (Op, Tally)| Operation {
        layer,
        by_program,
        operation: op.name(),
        calls: tally.count,
        failed_calls: tally.failed,
        bytes: tally.bytes,
        time_s: tally.time_s(),
        longest_call_s: seconds(tally.longest_ns),
    })
}

fn file(file: &FileStatistics) -> File<'_> {
    let (read, write) = (file.program.read, file.program.write);
    File {
        path: &file.path,
        size_bytes: file.size_bytes,
        process_count: file.processes,
        by_mpi_io: file.by_mpi_io,
        purpose: file.purpose.map(|purpose| purpose.name()),
        file_system: file.on.as_ref().map(|on| on.kind.as_str()),
        read_calls: read.count,
        read_bytes: read.bytes,
        write_calls: write.count,
        write_bytes: write.bytes,
        call_time_s: file.program.all().time_s(),
    }
}

fn process(process: &ProcessStatistics) -> Process<'_> {
    let (read, write) = (process.program.read, process.program.write);
    Process {
        rank: process.rank,
        pid: process.pid,
        host: &process.host,
        program: &process.program_name,
        lifetime_s: seconds(process.lifetime_ns),
        io_time_s: seconds(process.io_ns),
        cpu_time_s: seconds(process.think_ns),
        read_calls: read.count,
        read_bytes: read.bytes,
        write_calls: write.count,
        write_bytes: write.bytes,
    }
}

fn stands_apart<'e>(found: &'e Explanation, apart: &Apart) -> StandsApart<'e> {
    let processes = || apart.processes.iter().filter_map(|&index| found.processes.get(index));
    StandsApart {
        host: processes().next().map_or("", |process| &process.host),
        ranks: processes().map(|process| process.rank).collect(),
        is_whole_host: apart.processes.len() == apart.of_host,
        from_s: seconds(apart.from_ns),
        until_s: seconds(apart.until_ns),
        io_fraction: apart.part,
        median_io_fraction: apart.median,
    }
}

fn purpose(total: &pio_explain::ClassTotal) -> Purpose<'_> {
    Purpose {
        purpose: total.purpose.name(),
        file_count: total.files,
        size_bytes: total.size_bytes,
        read_bytes: total.read_bytes,
        write_bytes: total.write_bytes,
        largest_path: &total.largest,
    }
}

fn interface(counted: &pio_explain::counted::Interface) -> Interface {
    let counts = &counted.counts;
    Interface {
        interface: counted.module.name(),
        file_count: counted.files,
        read_calls: counts.reads,
        read_bytes: counts.read_bytes,
        write_calls: counts.writes,
        write_bytes: counts.written_bytes,
        read_time_s: counts.read_s,
        write_time_s: counts.write_s,
        metadata_time_s: counts.metadata_s,
    }
}

#[cfg(test)]
mod tests {
    use pio_explain::findings::Kind;

    /// They are part of the schema: a variant that gets another name must not change them unseen.
    #[test]
    fn the_manual_lists_every_kind_of_finding() {
        let page = include_str!("../../../../docs/json.md");
        for kind in Kind::ALL {
            let name = kind.name();
            assert!(page.contains(&format!("`{name}`")), "docs/json.md does not list {name}");
        }
    }
}
