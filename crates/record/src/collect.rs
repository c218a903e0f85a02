//! The collector: turns the spools of a job into one trace.
//!
//! Two passes over the spools, neither of which keeps records in memory. The first ([`Survey`]) finds what events refer
//! to, so that all tables are known before the first event is written. The second ([`events::write`]) takes the records in
//! order of time, works out which handle and which bytes each is about, and writes it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use pio_trace::{
    Calls, CallsByKind, CrowdedHost, File, FileId, GivenHints, Handle, HandleId, JobMember, LargeRequests,
    Layer, Losses, PageFaults, Process, ProcessId, ProcessorWait, Stripes, Tables, TraceWriter, Unseen,
    mpi_jobs,
};

use crate::error::Error;
use crate::events::{self, Lookup, Names, Operations, State};
use crate::filter::Filter;
use crate::layouts::Interner;
use crate::marks::MarkNames;
use crate::members;
use crate::memory::Memory;
use crate::placements::{self, Place};
use crate::plumbing::drop_plumbing;
use crate::processors;
use crate::rates::Cache;
use crate::rings::unseen_rings;
use crate::spool::{self, Header, Spool, Unusable};
use crate::stripes;
use crate::survey::{Given, OpenFile, Survey};
use crate::unseen::{self, unseen};
use crate::whole_file::WholeFile;

/// What the collector found, and what it could not save.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Events in the trace.
    pub events: u64,
    /// Processes in the trace.
    pub processes: usize,
    /// Of them, MPI processes.
    pub ranks: usize,
    /// Calls that were made but not recorded: the disk or the budget was used up, or a signal interrupted the recorder itself.
    pub lost_calls: u64,
    /// Of them, reads and writes.
    pub lost_by_kind: [u64; 2],
    /// Bytes that these moved.
    pub lost_bytes: [u64; 2],
    /// Calls of POSIX and of streams that were recorded, whether the filter keeps them or not.
    pub recorded: CallsByKind,
    /// Ranks of the recorded MPI jobs of which nothing was recorded: they did not get the recorder, or did not reach the folder of
    /// spools.
    pub missing_ranks: u64,
    /// The ranks that there were, with those.
    pub expected_ranks: u64,
    /// The launcher that ran, of Slurm or an MPI, if nothing of what it started was seen at files.
    pub seen_only: Option<String>,
    /// Processes of which nothing is left: no room for the start of their spool, or it is no spool any more.
    pub lost_processes: usize,
    /// Of them, those whose spool is of another version of the format, by version.
    pub other_versions: BTreeMap<u32, u64>,
    /// Places in spools that hold what cannot be; the records after each are lost up to the next chunk.
    pub damaged: u64,
    /// Operations of MPI-IO, HDF5 or PnetCDF in which a process was killed.
    pub unfinished: u64,
    /// Views and datatypes that could not be understood: their events say no layout.
    pub unknown_layouts: u64,
    /// Calls that the budget left out: reads, writes, others.
    pub thinned_calls: [u64; 3],
    /// Bytes that they moved.
    pub thinned_bytes: [u64; 3],
    /// Of so many calls one was kept in the end, at most; 0 or 1 if the budget was kept to without.
    pub keeps_one_in: u64,
    /// Events that the filter left out.
    pub filtered: u64,
    /// Programs that ran and could not be seen.
    pub unseen: Vec<Unseen>,
    /// Processes that run on: their calls up to now are in the trace.
    pub running: Vec<ProcessId>,
    /// Other processes of the job that run on: they had made no call on a file up to now.
    pub running_without_calls: usize,
    /// Events whose start had to be moved to keep the order of time (of damaged spools only).
    pub moved: u64,
}

impl Summary {
    /// What could not be saved, a sentence each; empty if all was.
    pub fn problems(&self) -> Vec<String> {
        let other_versions: u64 = self.other_versions.values().sum();
        let left_nothing = (self.lost_processes as u64).saturating_sub(other_versions);
        [
            (
                self.lost_calls,
                ["call was", "calls were"],
                "made but not recorded: the disk or the budget was used up, or a signal came at a bad moment",
            ),
            (
                left_nothing,
                ["process", "processes"],
                "left nothing that can be read: the disk or the budget had no 64 KiB left for it, or its spool is damaged",
            ),
            (
                self.damaged,
                ["place in the spools is", "places in the spools are"],
                "damaged; what follows is lost up to the next chunk",
            ),
            (
                self.unfinished,
                [
                    "operation (MPI-IO, HDF5, PnetCDF or asynchronous) was",
                    "operations (MPI-IO, HDF5, PnetCDF or asynchronous) were",
                ],
                "unfinished at the end of a process",
            ),
            (
                self.unknown_layouts,
                ["view or datatype", "views or datatypes"],
                "could not be understood; events say no layout",
            ),
            (self.moved, ["event", "events"], "had to be moved in time to keep the order"),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, [one, many], what)| format!("{count} {} {what}", if count == 1 { one } else { many }))
        .chain(self.missing())
        .chain(self.of_other_versions())
        .chain(self.thinning())
        .chain(self.unseen.iter().map(Unseen::to_string))
        .chain(self.running_on())
        .chain(self.running_on_without_calls())
        .collect()
    }

    /// Who did not come.
    fn missing(&self) -> Option<String> {
        const REACH: &str = "the recorder goes before the launcher, into the environment of all processes (srun \
                             --export=ALL), and into a folder that every node reaches (--spool)";
        if self.missing_ranks > 0 {
            let Summary { missing_ranks, expected_ranks, .. } = self;
            return Some(format!("{missing_ranks} of {expected_ranks} ranks were not recorded: {REACH}"));
        }
        let launcher = self.seen_only.as_ref()?;
        Some(format!("nothing that {launcher} started was seen at files. If it uses any: {REACH}"))
    }

    fn of_other_versions(&self) -> impl Iterator<Item = String> {
        self.other_versions.iter().map(|(version, count)| {
            let processes = if *count == 1 { "process" } else { "processes" };
            format!(
                "{count} {processes} left spools of version {version}, which cannot be read (expected version {})",
                spool::VERSION
            )
        })
    }

    fn running_on(&self) -> Option<String> {
        let count = self.running.len();
        (count > 0).then(|| {
            format!(
                "{count} {} outlived the command and {} on: the trace has the calls up to now (record --wait follows to the end)",
                if count == 1 { "process" } else { "processes" },
                if count == 1 { "runs" } else { "run" },
            )
        })
    }

    fn running_on_without_calls(&self) -> Option<String> {
        let count = self.running_without_calls;
        (count > 0).then(|| {
            format!(
                "{count} {} on: no call on a file was recorded of {} up to now, and none will be (record --wait follows to the end)",
                if count == 1 {
                    "process outlived the command and runs"
                } else {
                    "processes outlived the command and run"
                },
                if count == 1 { "it" } else { "them" },
            )
        })
    }

    /// What the trace lacks, as its notes say it.
    fn losses(&self) -> Losses {
        let [reads, writes, _] =
            [0, 1, 2].map(|i| Calls { calls: self.thinned_calls[i], bytes: self.thinned_bytes[i] });
        let left_out = CallsByKind { reads, writes, others: self.thinned_calls[2] };
        let [lost_reads, lost_writes] =
            [0, 1].map(|i| Calls { calls: self.lost_by_kind[i], bytes: self.lost_bytes[i] });
        let lost_others = self.lost_calls.saturating_sub(lost_reads.calls).saturating_sub(lost_writes.calls);
        let lost = CallsByKind { reads: lost_reads, writes: lost_writes, others: lost_others };
        Losses {
            made: Some(self.recorded.plus(&left_out).plus(&lost)),
            left_out,
            keeps_one_in: self.keeps_one_in,
            lost,
            missing_ranks: self.missing_ranks,
            expected_ranks: self.expected_ranks,
            lost_processes: self.lost_processes as u64,
            other_versions: self.other_versions.values().sum(),
            damaged_places: self.damaged,
            unseen: self.unseen.clone(),
            running: self.running.clone(),
            ..Losses::default()
        }
    }

    /// What the budget left out, if it did.
    fn thinning(&self) -> Option<String> {
        let left_out = self.losses().left_out;
        (!left_out.is_zero()).then(|| {
            format!(
                "the budget left out {left_out}; in the end one call in {} was kept",
                self.keeps_one_in.max(1)
            )
        })
    }
}

/// How to collect.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What to keep.
    pub filter: Filter,
    /// Keep times to the nanosecond, though that makes traces twice as large.
    pub exact_times: bool,
    /// Measure what large requests reach where the job made small ones only, which takes up to a second.
    pub measure: bool,
    /// Keep what was measured in this folder for a day.
    pub cache: Option<PathBuf>,
    /// The program's MPI library, as the trace is to name it.
    pub mpi_library: Option<String>,
    /// What else the trace is to say of the job: names and values.
    pub notes: Vec<(String, String)>,
}

/// Reads every spool in `folder` and writes the trace `output` of the job named `job`.
///
/// # Errors
/// If there is none, or the trace cannot be written.
pub fn collect(folder: &Path, output: &Path, job: &str) -> Result<Summary, Error> {
    let spools =
        members::files_of(folder, "spool").map_err(Error::io(folder, "list the folder of spools"))?;
    if spools.is_empty() {
        return Err(Error::NoSpools { folder: folder.to_owned() });
    }
    collect_with(folder, output, job, &Settings::default())
}

/// The same, with settings.
pub fn collect_with(folder: &Path, output: &Path, job: &str, settings: &Settings) -> Result<Summary, Error> {
    collect_from(&[folder.to_path_buf()], output, job, settings)
}

/// The same, of a job whose processes left their spools in several folders.
pub(crate) fn collect_from(
    folders: &[PathBuf],
    output: &Path,
    job: &str,
    settings: &Settings,
) -> Result<Summary, Error> {
    let mut summary = Summary::default();
    let mut tables = Tables { job: job.to_owned(), ..Tables::default() };
    tables.notes.push(("recorder".to_owned(), concat!("pioscope ", env!("CARGO_PKG_VERSION")).to_owned()));

    let mut members = Vec::new();
    let mut shifts = HashMap::new();
    for folder in folders {
        survey_folder(folder, &mut shifts, &mut members, &mut summary)?;
    }
    if let (true, Some(&found)) = (members.is_empty(), summary.other_versions.keys().next()) {
        return Err(Error::SpoolVersion { folder: folders[0].clone(), found, expected: spool::VERSION });
    }
    summary.unseen = unseen(folders, |pid, after_ns| {
        let is_later = |m: &Member| m.spool.header.pid == pid && m.spool.header.start_ns > after_ns;
        members.iter().any(|member| is_later(member) && member.spool.header.host == members::host())
    })
    .map_err(Error::io(&folders[0], "read what was not seen in"))?;
    let memory = Memory::of(&members)?;
    members.iter_mut().for_each(|member| member.survey.leave_out_shared(&memory));
    summary.seen_only = drop_plumbing(&mut members);
    summary.running_without_calls = running_without_calls(folders, &members);
    [summary.missing_ranks, summary.expected_ranks] = missing_ranks(&members);
    members.retain(|member| settings.filter.keeps_rank(member.spool.header.rank));
    // By rank; then what is no rank, by time.
    members.sort_by_key(|m| (m.spool.header.rank.unwrap_or(u32::MAX), m.start_ns(), m.spool.header.pid));

    if !settings.filter.keeps_all() {
        tables.notes.push(("filter".to_owned(), settings.filter.to_string()));
    }
    if let Some(note) = processors::note(members.iter().map(|member| &member.spool.header)) {
        tables.notes.push((CrowdedHost::NOTE.to_owned(), note));
    }
    let faults = page_faults(&members);
    tables.notes.extend(faults.iter().map(|faults| (PageFaults::NOTE.to_owned(), faults.to_string())));
    let waits = processor_waits(&members);
    tables.notes.extend(waits.map(|wait| (ProcessorWait::NOTE.to_owned(), wait.to_string())));
    if members.iter().any(|member| member.spool.header.rank.is_some()) {
        let library = settings.mpi_library.iter().cloned();
        tables.notes.extend(library.map(|library| (Tables::MPI_LIBRARY.to_owned(), library)));
    }
    tables.notes.extend(settings.notes.iter().cloned());
    let mut interner = Interner::default();
    let epoch_ns = members.iter().map(Member::start_ns).min().unwrap_or(0);
    tables.epoch_ns = u64::try_from(epoch_ns).unwrap_or(0);
    let (states, files) = fill_tables(&mut members, epoch_ns, &mut interner, &mut tables);
    let places = places(&members, &files);
    summary.unseen.extend(unseen_rings(members.iter().map(|member| &member.spool.header)));
    summary.running = running(&members, &tables);
    let marks = MarkNames::new(members.iter_mut().flat_map(|member| {
        let marks = std::mem::take(&mut member.survey.mark_names);
        marks.into_iter().chain(std::mem::take(&mut member.survey.call_sites))
    }));
    let lookup = Lookup { epoch_ns, states, names: Names::new(&mut members, files, &memory), marks };
    summary.processes = members.len();
    summary.ranks = members.iter().filter(|m| m.spool.header.rank.is_some()).count();
    summary.lost_calls = members.iter().fold(0, |sum: u64, m| sum.saturating_add(m.spool.header.dropped));
    for member in &members {
        let header = &member.spool.header;
        for kind in 0..2 {
            let (calls, bytes) = (&mut summary.lost_by_kind[kind], &mut summary.lost_bytes[kind]);
            *calls = calls.saturating_add(header.lost_calls[kind]);
            *bytes = bytes.saturating_add(header.lost_bytes[kind]);
        }
        for kind in 0..3 {
            let (calls, bytes) = (&mut summary.thinned_calls[kind], &mut summary.thinned_bytes[kind]);
            *calls = calls.saturating_add(header.thinned_calls[kind]);
            *bytes = bytes.saturating_add(header.thinned_bytes[kind]);
        }
        summary.keeps_one_in = summary.keeps_one_in.max(header.keeps_one_in);
    }
    summary.unknown_layouts = interner.invalid;

    let trace = WholeFile::create(output).map_err(Error::io(output, "create the file"))?;
    let mut writer = TraceWriter::create(trace.place(), tables)?;
    // Where the trace is, there is most likely room for what is put aside of it.
    let aside = output.parent().filter(|parent| !parent.as_os_str().is_empty());
    let aside = aside.unwrap_or(Path::new(".")).to_path_buf();
    let mut small = events::write(&folders[0], &aside, members, lookup, settings, &mut writer, &mut summary)?;
    small.add_faults(&faults);
    if settings.measure {
        let rates = small.measure(writer.tables(), &Cache(settings.cache.as_deref()));
        let notes = rates.iter().map(|rates| (LargeRequests::NOTE.to_owned(), rates.to_string()));
        writer.tables_mut().notes.extend(notes);
    }
    placements::add(&places, writer.tables_mut());
    let stripes = stripes::notes(writer.tables());
    let notes = stripes.iter().map(|stripes| (Stripes::NOTE.to_owned(), stripes.to_string()));
    writer.tables_mut().notes.extend(notes);
    // What is not there must not look as if it never was: reports show these notes first.
    writer.tables_mut().notes.extend(summary.losses().notes());
    let running = summary.running_on_without_calls();
    writer.tables_mut().notes.extend(running.map(|running| ("not recorded".to_owned(), running)));
    writer.finish()?;
    trace.keep().map_err(Error::io(output, "write the file"))?;
    Ok(summary)
}

/// Where each file was, by the process that opened it first in the order of processes.
fn places(members: &[Member], files: &HashMap<String, FileId>) -> BTreeMap<FileId, Place> {
    let mut places = BTreeMap::new();
    for Member { spool, survey, .. } in members {
        for file in &survey.open_files {
            if let (Some(id), Some(kind)) = (files.get(&file.path), survey.devices.get(&file.device)) {
                places.entry(*id).or_insert_with(|| Place {
                    host: spool.header.host.clone(),
                    device: file.device,
                    kind: *kind,
                });
            }
        }
    }
    places
}

/// Page faults of the processes that had any for which they waited.
fn page_faults(members: &[Member]) -> Vec<PageFaults> {
    let of = |(index, member): (usize, &Member)| PageFaults {
        process: ProcessId(index as u32),
        major: member.spool.header.major_faults,
        device_bytes: member.spool.header.fault_device_bytes,
    };
    members.iter().enumerate().map(of).filter(|faults| faults.major > 0).collect()
}

/// What ranks waited for processors, where that is known.
fn processor_waits(members: &[Member]) -> impl Iterator<Item = ProcessorWait> {
    members.iter().enumerate().filter_map(|(index, member)| {
        let header = &member.spool.header;
        let waited_ns = header.processor_waits_ns?;
        Some(ProcessorWait { process: ProcessId(index as u32), waited_ns, sleeps: header.sleeps })
    })
}

/// A process of the job.
pub(crate) struct Member {
    /// What it left.
    pub(crate) spool: Spool,
    /// What is in there.
    pub(crate) survey: Survey,
    /// Wall clock minus the boot's clock: one for all processes of a boot, so that their order is exact.
    pub(crate) shift_ns: i128,
}

impl Member {
    fn start_ns(&self) -> i128 {
        i128::from(self.spool.header.start_ns) + self.shift_ns
    }
}

/// Processes of this host that have not ended.
fn running(members: &[Member], tables: &Tables) -> Vec<ProcessId> {
    let here = members::host();
    let runs = |header: &Header| header.host == here && members::is_alive(header.pid, header.start_ns);
    let without_end =
        tables.processes.iter().zip(members).enumerate().filter(|(_, (p, _))| p.end_ns.is_none());
    without_end
        .filter(|(_, (_, member))| runs(&member.spool.header))
        .map(|(index, _)| ProcessId(index as u32))
        .collect()
}

/// How many processes of the job run here that are in the trace neither by their calls, nor as programs that cannot be seen.
fn running_without_calls(folders: &[PathBuf], members: &[Member]) -> usize {
    let here = members::host();
    let mut pids = members::with_recorder(folders);
    for Member { spool, .. } in members {
        if spool.header.host == here {
            pids.remove(&spool.header.pid);
        }
    }
    pids.retain(|pid| !unseen::is_noted(folders, *pid));
    pids.len()
}

/// By boot, or by host where that is not known: wall clock minus the boot's clock.
type Shifts = HashMap<(String, String), i128>;

fn survey_folder(
    folder: &Path,
    shifts: &mut Shifts,
    members: &mut Vec<Member>,
    summary: &mut Summary,
) -> Result<(), Error> {
    for path in members::files_of(folder, "spool").map_err(Error::io(folder, "list the folder of spools"))? {
        let spool = match Spool::open(&path) {
            Ok(spool) => spool,
            Err(Unusable::NotASpool) => {
                summary.lost_processes += 1;
                continue;
            }
            Err(Unusable::OtherVersion(version)) => {
                summary.lost_processes += 1;
                *summary.other_versions.entry(version).or_default() += 1;
                continue;
            }
            Err(Unusable::System(error)) => return Err(Error::io(&path, "read the spool")(error)),
        };
        let survey = Survey::of(&spool).map_err(Error::io(&path, "read the spool"))?;
        summary.damaged += survey.damaged;
        let header = &spool.header;
        let own_ns = i128::from(header.realtime_ns) - i128::from(header.monotonic_ns);
        let clock = match header.boot_id.as_str() {
            "" => (String::new(), header.host.clone()),
            boot => (boot.to_owned(), String::new()),
        };
        let shift_ns = *shifts.entry(clock).or_insert(own_ns);
        members.push(Member { spool, survey, shift_ns });
    }
    Ok(())
}

fn fill_tables(
    members: &mut [Member],
    epoch_ns: i128,
    interner: &mut Interner,
    tables: &mut Tables,
) -> (Vec<State>, HashMap<String, FileId>) {
    let ends = process_ends(members);
    let jobs = jobs(members, &ends);
    let mut files = HashMap::new();
    let mut collectives = HashMap::new();
    let mut hints = Hints::default();
    let mut states = Vec::new();
    for (index, member) in members.iter_mut().enumerate() {
        let process = ProcessId(index as u32);
        let header = &member.spool.header;
        tables.processes.push(Process {
            rank: header.rank,
            pid: header.pid,
            host: header.host.clone(),
            command: header.command.clone(),
            start_ns: since(epoch_ns, i128::from(header.start_ns) + member.shift_ns),
            end_ns: ends[index].map(|end_ns| since(epoch_ns, end_ns)),
        });
        let mut add = |path: &str, ranks: u32, collective: u64| {
            let next = FileId(files.len() as u32);
            let file = *files.entry(path.to_owned()).or_insert_with(|| {
                tables.files.push(File { path: path.to_owned() });
                next
            });
            tables.handles.push(Handle { file, process, ranks, collective });
            HandleId(tables.handles.len() as u32 - 1)
        };
        let mut opens_so_far: HashMap<(Layer, &str, u32), u64> = HashMap::new();
        let mut library_files = HashMap::new();
        for (&(layer, number), file) in &member.survey.library_files {
            let collective = if file.ranks > 1 {
                // No rank can tell the others which open it was; but the n-th of a file by as many ranks of a job is the same.
                let nth = opens_so_far.entry((layer, &file.path, file.ranks)).or_default();
                *nth += 1;
                let next = collectives.len() as u64 + 1;
                let open = (jobs[index], layer, file.path.clone(), file.ranks, *nth);
                *collectives.entry(open).or_insert(next)
            } else {
                0
            };
            let handle = add(&file.path, file.ranks, collective);
            library_files.insert((layer, number), handle);
            if let Some(given) = member.survey.hints.get(&number).filter(|_| layer == Layer::MpiIo) {
                hints.add(handle, collective, given);
            }
        }
        let mut open =
            |file: &OpenFile| (!file.is_shared_memory).then(|| (add(&file.path, 1, 0), file.position));
        let open_files = member.survey.open_files.iter().map(&mut open).collect();
        let layouts = std::mem::take(&mut member.survey.layouts);
        states.push(State {
            open_files,
            library_files,
            known: interner.intern(layouts, tables),
            operations: Operations::default(),
        });
    }
    tables.notes.extend(hints.notes());
    (states, files)
}

/// Hints that programs gave, each collective open's once.
#[derive(Default)]
struct Hints {
    given: Vec<GivenHints>,
    /// By collective open: those of its first rank.
    firsts: HashMap<u64, usize>,
}

impl Hints {
    /// Those of a handle: of a key that was given several values, the last.
    fn add(&mut self, handle: HandleId, collective: u64, given: &[Given]) {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (key, value) in given.iter().flat_map(|one| &one.pairs) {
            match pairs.iter_mut().find(|(known, _)| known == key) {
                Some((_, known)) => known.clone_from(value),
                None => pairs.push((key.clone(), value.clone())),
            }
        }
        let first = self.firsts.get(&collective).filter(|_| collective != 0);
        if pairs.is_empty() || first.is_some_and(|first| self.given[*first].pairs == pairs) {
            return;
        }
        self.firsts.entry(collective).or_insert(self.given.len());
        self.given.push(GivenHints { handle, pairs });
    }

    fn notes(self) -> impl Iterator<Item = (String, String)> {
        self.given.into_iter().map(|given| (GivenHints::NOTE.to_owned(), given.to_string()))
    }
}

/// When each process ended by itself: by its own word, or because the same process went on as another program.
fn process_ends(members: &[Member]) -> Vec<Option<i128>> {
    let mut images: BTreeMap<(&str, &str, u32), Vec<i128>> = BTreeMap::new();
    for member in members {
        let header = &member.spool.header;
        images.entry((&header.boot_id, &header.host, header.pid)).or_default().push(member.start_ns());
    }
    let end_of = |member: &Member| {
        let header = &member.spool.header;
        if header.ended_normally {
            return Some(i128::from(header.end_ns) + member.shift_ns);
        }
        let starts = images.get(&(header.boot_id.as_str(), header.host.as_str(), header.pid))?;
        starts.iter().copied().filter(|&start_ns| start_ns > member.start_ns()).min()
    };
    members.iter().map(end_of).collect()
}

/// The MPI job of each process.
fn jobs(members: &[Member], ends: &[Option<i128>]) -> Vec<Option<usize>> {
    let of_job = |(member, end_ns): (&Member, &Option<i128>)| {
        let Header { rank, ranks, .. } = member.spool.header;
        rank.map(|rank| JobMember { rank, ranks, start_ns: member.start_ns(), end_ns: *end_ns })
    };
    mpi_jobs(&members.iter().zip(ends).map(of_job).collect::<Vec<_>>())
}

/// Ranks that did not come, and ranks that there were: each process of an MPI job says how many there are.
fn missing_ranks(members: &[Member]) -> [u64; 2] {
    let jobs = jobs(members, &process_ends(members));
    let mut seen: BTreeMap<usize, [u64; 2]> = BTreeMap::new();
    for (member, job) in members.iter().zip(jobs) {
        let ranks = u64::from(member.spool.header.ranks);
        if let (Some(job), 1..) = (job, ranks) {
            let [came, all] = seen.entry(job).or_insert([0, ranks]);
            (*came, *all) = (*came + 1, ranks);
        }
    }
    seen.values()
        .fold([0, 0], |[missing, all], [came, ranks]| [missing + ranks.saturating_sub(*came), all + ranks])
}

/// Nanoseconds of the job; what a damaged clock puts before its start is put at its start.
pub(crate) fn since(epoch_ns: i128, at_ns: i128) -> u64 {
    u64::try_from(at_ns - epoch_ns).unwrap_or(0)
}
