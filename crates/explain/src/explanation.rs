//! What a trace amounts to.

use std::collections::{BTreeSet, HashMap};

use pio_trace::{
    BlockEvents, Call, CallSite, Event, FileId, FileSystem, Layer, ProcessId, Striping, Tables, Trace,
    TraceError,
};

use crate::accumulator::Accumulator;
use crate::apart::Apart;
use crate::bandwidth::{Later, Transfer, Transfers};
use crate::call_sites::{CallSiteId, CallSiteStatistics};
use crate::classes::{ClassTotal, Purpose};
use crate::collectives::MpiIoTime;
use crate::counted::Counted;
use crate::file_systems::OnFileSystem;
use crate::findings::counters::{self, Covered, Names};
use crate::findings::{self, Finding};
use crate::marked::Marked;
use crate::operations::{OperationTable, OperationView};
use crate::pass;
use crate::pattern::Pattern;
use crate::rhythm::Rhythm;
use crate::tally::{Tally, Traffic};
use crate::trouble::Trouble;
use crate::workload::Workload;

/// The statistics of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Name of the job.
    pub job: String,
    /// What the trace says of itself.
    pub notes: Vec<(String, String)>,
    /// Whether the processes have ranks.
    pub is_mpi: bool,
    /// The processes that the job is measured by: those with a rank if any has one, else those that made a call.
    pub process_count: u64,
    /// Number of events.
    pub events: u64,
    /// From the start of the job to the end of its last call or process, nanoseconds.
    pub duration_ns: u64,
    /// What is wrong with the job or its trace.
    pub trouble: Trouble,
    /// Operations by layer, those of the program and those caused by an upper layer apart; only what occurs.
    pub layers: Vec<LayerTable>,
    /// Thakur's view of the job: at the file system, where there is one.
    pub operations: OperationView,
    /// The same of what the program asked for by MPI-IO, where `operations` is not that already.
    pub asked_operations: Option<OperationView>,
    /// Where the time of the calls of MPI-IO went.
    pub mpi_io: MpiIoTime,
    /// Calls of MPI of which the trace knows whether they used a processor.
    pub in_mpi: InMpi,
    /// The functions that were called, in order of their numbers.
    pub calls: Vec<(Call, Tally)>,
    /// Miller and Katz's view of the job.
    pub workload: Workload,
    /// The files that were used, in order of the trace's table.
    pub files: Vec<FileStatistics>,
    /// The same by what the files are on, those that took the most time first; empty if the trace does not say it.
    pub file_systems: Vec<OnFileSystem>,
    /// The processes by which the job is measured, in order of rank.
    pub processes: Vec<ProcessStatistics>,
    /// How unevenly the processes are loaded; none without processes.
    pub imbalance: Option<Imbalance>,
    /// Order of all accesses of the program.
    pub program_pattern: Pattern,
    /// Order of all accesses that reached the files.
    pub file_system_pattern: Pattern,
    /// Time spent in I/O.
    pub io_time: IoTime,
    /// What the program read and wrote, and in which time: its bandwidth.
    pub transfers: Transfers,
    /// What of that moved after the call that asked for it had returned.
    pub later: Later,
    /// Bytes over time.
    pub rate: DataRate,
    /// Who was in I/O when.
    pub busy: Busy,
    /// Ranks whose time in I/O was not as that of the others for a while: those by most time first, ten at most. None of
    /// fewer ranks than [`CROWD`](crate::CROWD), nor of processes without a rank.
    pub apart: Vec<Apart>,
    /// What costs time for nothing, costliest first.
    pub findings: Vec<Finding>,
    /// Findings whose change gains nothing by what was predicted: they are no advice.
    pub not_advised: Vec<Finding>,
    /// Paths of files that findings name and `files` does not have, in order of their ids: files of which only names were
    /// used, and those that only counters know.
    pub other_files: Vec<(FileId, String)>,
    /// Bursts, cycles and phases.
    pub rhythm: Rhythm,
    /// What the program marked.
    pub marked: Marked,
    /// The lines of the program that opened files, as far as they are known, those that took the most time first.
    pub call_sites: Vec<CallSiteStatistics>,
    /// Why the job does its I/O: Miller and Katz's classes, those of most bytes first.
    pub purposes: Vec<ClassTotal>,
}

impl Explanation {
    /// The explanation of a trace's tables and events, in order of their start.
    pub fn of(tables: &Tables, events: impl IntoIterator<Item = Event>) -> Explanation {
        let mut accumulator = Accumulator::new(tables);
        for event in events {
            accumulator.add(&event);
        }
        accumulator.finish()
    }

    /// The explanation of a whole trace file. What of it is damaged is told in [`Trouble::damage`]. `progress` is told the number of events that are done, now and then.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of_trace(trace: &Trace, progress: &mut dyn FnMut(u64)) -> Result<Explanation, TraceError> {
        Explanation::of_trace_and(trace, &mut |_| {}, progress)
    }

    /// The same; `also` is given each block of events too, in their order, on the thread that decodes them: to read the file once.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of_trace_and(
        trace: &Trace,
        also: &mut (dyn FnMut(&BlockEvents) + Send),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Explanation, TraceError> {
        let mut accumulator = Accumulator::new(trace.tables());
        if let Some(damage) = trace.damage() {
            accumulator.add_damage(damage.to_string());
        }
        pass::add_all(&mut accumulator, trace, also, progress)?;
        Ok(accumulator.finish())
    }

    /// Adds what the counters of the Darshan log tell that the trace was made of: what its events do not cover.
    pub fn add_counters(&mut self, counted: &Counted) {
        let covered = Covered {
            files: self.traced(counted),
            kinds: self.findings.iter().chain(&self.not_advised).map(|finding| finding.kind).collect(),
        };
        let known = self.files.iter().map(|file| (file.path.as_str(), file.file));
        let others = self.other_files.iter().map(|(id, path)| (path.as_str(), *id));
        let mut ids: HashMap<&str, FileId> = known.chain(others).collect();
        let mut next = ids.values().map(|id| id.0.saturating_add(1)).max().unwrap_or(0);
        let mut fresh: Vec<(FileId, String)> = Vec::new();
        let by_rank: HashMap<i64, ProcessId> =
            self.processes.iter().filter_map(|one| Some((i64::from(one.rank?), one.process))).collect();
        let mut names = Names {
            file: &mut |name| {
                *ids.entry(name).or_insert_with(|| {
                    let id = FileId(next);
                    next = next.saturating_add(1);
                    fresh.push((id, name.to_owned()));
                    id
                })
            },
            process: &|rank| by_rank.get(&rank).copied(),
        };
        let more = counters::findings(counted, &covered, &mut names);
        self.findings.extend(more);
        findings::sort(&mut self.findings);
        self.other_files.extend(fresh);
    }

    /// Files whose reads and writes are events, all but a few.
    fn traced(&self, counted: &Counted) -> BTreeSet<String> {
        const MOST: f64 = 0.9;
        let mut events: HashMap<&str, u64> = HashMap::new();
        for file in &self.files {
            let accesses = |traffic: &Traffic| traffic.read.count.saturating_add(traffic.write.count);
            events.insert(&file.path, accesses(&file.program).max(accesses(&file.file_system)));
        }
        let mut counts: HashMap<&str, u64> = HashMap::new();
        for file in counted.files.iter().filter(|file| file.counts.accesses() > 0) {
            let most = counts.entry(&file.name).or_default();
            *most = (*most).max(file.counts.accesses());
        }
        let is_traced = |(name, count): &(&str, u64)| {
            events.get(name).is_some_and(|events| *events as f64 >= *count as f64 * MOST)
        };
        counts.into_iter().filter(is_traced).map(|(name, _)| name.to_owned()).collect()
    }

    /// The path of a file that a finding names.
    pub fn path(&self, id: FileId) -> Option<&str> {
        let of_trace =
            || Some(self.files[self.files.binary_search_by_key(&id, |file| file.file).ok()?].path.as_str());
        let other = || {
            let index = self.other_files.binary_search_by_key(&id, |file| file.0).ok()?;
            Some(self.other_files[index].1.as_str())
        };
        of_trace().or_else(other)
    }

    /// The line of the program that a finding or a phase names.
    pub fn call_site(&self, id: CallSiteId) -> Option<CallSite<'_>> {
        self.call_sites.iter().find(|site| site.id == id).map(CallSiteStatistics::call_site)
    }

    /// Time in I/O, mean of the processes, seconds.
    pub fn io_time_s(&self) -> f64 {
        self.io_time.process_ns as f64 / 1e9 / self.process_count.max(1) as f64
    }

    /// Duration of the job, seconds.
    pub fn duration_s(&self) -> f64 {
        self.duration_ns as f64 / 1e9
    }
}

/// The operations of one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerTable {
    /// The layer.
    pub layer: Layer,
    /// Whether an upper layer caused these calls; else the program made them.
    pub physical: bool,
    /// The operations.
    pub table: OperationTable,
}

/// One file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileStatistics {
    /// The file that the numbers are of.
    pub file: FileId,
    /// Its path.
    pub path: String,
    /// What it is on, if the trace says it.
    pub on: Option<FileSystem>,
    /// How it lies there, if that is known.
    pub striping: Option<Striping>,
    /// End of the last byte read or written, bytes: its size as far as the trace tells.
    pub size_bytes: u64,
    /// Whether it was opened or used by MPI-IO.
    pub by_mpi_io: bool,
    /// Processes that opened or used it.
    pub processes: u64,
    /// Largest over mean of the bytes that its processes moved, at the file system if it saw them; none without bytes.
    pub imbalance: Option<f64>,
    /// What the program asked for.
    pub program: Traffic,
    /// What reached the file.
    pub file_system: Traffic,
    /// Order of the program's accesses.
    pub program_pattern: Pattern,
    /// Order of the accesses that reached the file.
    pub file_system_pattern: Pattern,
    /// Time with at least one of the program's calls on it under way, nanoseconds.
    pub busy_ns: u64,
    /// Reads and writes at the file system if it saw them, else those of the program.
    pub transfer: Transfer,
    /// Starts of the program's first and last reads, nanoseconds since the start of the job.
    pub read_span: Option<(u64, u64)>,
    /// Starts of the program's first and last writes.
    pub write_span: Option<(u64, u64)>,
    /// Why it is read and written; none if it is not.
    pub purpose: Option<Purpose>,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStatistics {
    /// The process that the numbers are of.
    pub process: ProcessId,
    /// Its rank, if it has one.
    pub rank: Option<u32>,
    /// Name of its program, without the folder; empty if the trace does not say.
    pub program_name: String,
    /// Its process id.
    pub pid: u32,
    /// Where it ran.
    pub host: String,
    /// How long it lived, nanoseconds; up to the end of the job if it was killed.
    pub lifetime_ns: u64,
    /// Time with at least one I/O call under way (of any layer but messages), nanoseconds: nested and simultaneous
    /// calls count once.
    pub io_ns: u64,
    /// CPU time between calls, nanoseconds.
    pub think_ns: u64,
    /// What the program asked for.
    pub program: Traffic,
    /// What reached the files.
    pub file_system: Traffic,
    /// The program's reads and writes, and the time in which at least one was under way.
    pub transfer: Transfer,
    /// Messages, acknowledgements too.
    pub messages: Tally,
}

/// Largest over mean, over the processes. 1 is even; the number of processes means that one did everything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imbalance {
    /// Of the bytes that the program read and wrote; none if there are none.
    pub program_bytes: Option<f64>,
    /// Of the bytes that reached the files; none if there are none.
    pub file_system_bytes: Option<f64>,
    /// Of the time in I/O; none if there is none.
    pub io_time: Option<f64>,
}

/// Time spent in I/O calls, nested and simultaneous ones of a process counted once. If some processes have a rank, of those alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoTime {
    /// Sum over the processes, nanoseconds: a hundred thousand of them have more than 64 bits of it after two days.
    pub process_ns: u128,
    /// Sum of the processes' lifetimes, nanoseconds.
    pub lifetime_ns: u128,
    /// Time with at least one process in I/O, nanoseconds.
    pub any_ns: u64,
}

impl IoTime {
    /// Part of their lives that the processes spent in I/O, 0 to 1.
    pub fn fraction(&self) -> Option<f64> {
        (self.lifetime_ns > 0).then(|| self.process_ns as f64 / self.lifetime_ns as f64)
    }

    /// Mean number of processes in I/O, while at least one was.
    pub fn concurrency(&self) -> Option<f64> {
        (self.any_ns > 0).then(|| self.process_ns as f64 / self.any_ns as f64)
    }
}

/// Time in calls of MPI, those that a call of MPI or HDF5 sent messages by not counted again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InMpi {
    /// Sum over all calls, nanoseconds.
    pub elapsed_ns: u64,
    /// Of that, the time in which their threads used a processor: they worked, or waited by asking again and again.
    pub used_ns: u64,
}

impl InMpi {
    /// Part of the time on a processor, 0 to 1.
    pub fn fraction(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.used_ns as f64 / self.elapsed_ns as f64)
    }

    pub(crate) fn add(&mut self, event: &Event) {
        let is_counted = match event.layer() {
            Layer::MpiIo => true,
            Layer::Message => !event.is_physical(),
            _ => false,
        };
        if let Some(used_ns) = event.used_ns.filter(|_| is_counted) {
            self.elapsed_ns = self.elapsed_ns.saturating_add(event.elapsed_ns);
            self.used_ns = self.used_ns.saturating_add(used_ns);
        }
    }
}

/// Bytes moved in each of a number of equal spans of time; a call's bytes are spread evenly over its time.
#[derive(Clone, Debug, PartialEq)]
pub struct DataRate {
    /// Width of a bin, nanoseconds.
    pub bin_ns: u64,
    /// Bytes that the program read.
    pub program_read: Vec<f64>,
    /// Bytes that the program wrote.
    pub program_write: Vec<f64>,
    /// Bytes read from the files.
    pub file_system_read: Vec<f64>,
    /// Bytes written to the files.
    pub file_system_write: Vec<f64>,
}

/// Part of its time that each process (or group of processes) spent in I/O.
#[derive(Clone, Debug, PartialEq)]
pub struct Busy {
    /// Width of a bin, nanoseconds.
    pub bin_ns: u64,
    /// One row a process, in the order of [`Explanation::processes`]; neighbours share one if there are too many.
    pub rows: Vec<BusyRow>,
}

/// A row of [`Busy`].
#[derive(Clone, Debug, PartialEq)]
pub struct BusyRow {
    /// Index of its first process in [`Explanation::processes`].
    pub first: usize,
    /// Number of processes it stands for.
    pub processes: usize,
    /// Fraction of each bin spent in I/O, 0 to 1.
    pub fraction: Vec<f64>,
}
