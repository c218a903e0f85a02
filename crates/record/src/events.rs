//! The second pass over the spools: the events of the job, in order of their start.
//!
//! A process's records are taken in order of time, and each is told which handle and which bytes it is about. Where the job
//! has more processes than are looked at together, neighbours are merged into runs, which lie on the disk, and then the runs.
//! So memory does not grow with the number of records; with that of processes it grows by their tables and by some kilobytes for
//! what is looked at of their runs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::fs;
use std::path::Path;

use pio_trace::{
    Call, CallsByKind, Event, File, FileId, Flags, HandleId, Layer, Op, ProcessId, Runs, Target, TraceWriter,
};

use crate::collect::{Member, Settings, Summary, since};
use crate::error::Error;
use crate::layouts::Known;
use crate::marks::MarkNames;
use crate::memory::Memory;
use crate::merge::Merge;
use crate::paths::Folders;
use crate::rates::SmallRequests;
use crate::spool::{COLD, NO_OFFSET, Record, TRUNCATE};
use crate::survey::Survey;
use crate::times::Rounding;

/// Streams of chunks that are merged at a time: each takes up to half a megabyte, its records of one chunk.
const MOST_STREAMS: usize = 256;

/// Writes the events of all processes. `folder` names the spools in errors, and runs are put aside in `aside`.
pub(crate) fn write(
    folder: &Path,
    aside: &Path,
    members: Vec<Member>,
    mut lookup: Lookup,
    settings: &Settings,
    writer: &mut TraceWriter<fs::File>,
    summary: &mut Summary,
) -> Result<SmallRequests, Error> {
    let mut small = SmallRequests::default();
    let mut groups = groups(members.into_iter().zip(std::mem::take(&mut lookup.states)));
    let mut job = Job {
        folder,
        epoch_ns: lookup.epoch_ns,
        settings,
        names: lookup.names,
        marks: lookup.marks,
        writer,
        summary,
    };
    if groups.len() <= 1 {
        let mut out = |event: &Event, writer: &mut TraceWriter<fs::File>| {
            small.add(event, writer.tables());
            Ok(writer.push(event)?)
        };
        groups.pop().map_or(Ok(()), |group| job.merge(0, group, &mut out))?;
        return Ok(small);
    }
    // Beside the trace there may be leave for its file alone.
    let (file, aside) = match tempfile::tempfile_in(aside) {
        Ok(file) => (file, aside),
        Err(_) => (tempfile::tempfile_in(folder).map_err(Error::io(folder, "put events aside in"))?, folder),
    };
    let mut runs = Runs::new(file, aside)?;
    let mut first = 0;
    for group in groups {
        let next = first + group.len();
        let mut out =
            |event: &Event, writer: &mut TraceWriter<fs::File>| Ok(runs.push(event, writer.tables())?);
        job.merge(first, group, &mut out)?;
        runs.end_run(job.writer.tables())?;
        first = next;
    }
    let writer = job.writer;
    let mut merged = runs.merge(writer.tables())?;
    while let Some(event) = merged.next(writer.tables())? {
        small.add(&event, writer.tables());
        writer.push(&event)?;
    }
    Ok(small)
}

/// Neighbours that are merged together.
type Group = Vec<(Member, State)>;

fn groups(members: impl Iterator<Item = (Member, State)>) -> Vec<Group> {
    let (mut groups, mut group, mut streams) = (Vec::new(), Group::new(), 0);
    for (member, state) in members {
        let own = member.survey.threads.len();
        if streams + own > MOST_STREAMS && !group.is_empty() {
            groups.push(std::mem::take(&mut group));
            streams = 0;
        }
        streams += own;
        group.push((member, state));
    }
    groups.push(group);
    groups
}

/// What all processes share.
struct Job<'a> {
    folder: &'a Path,
    epoch_ns: i128,
    settings: &'a Settings,
    names: Names,
    marks: MarkNames,
    writer: &'a mut TraceWriter<fs::File>,
    summary: &'a mut Summary,
}

/// Where events go.
type Out<'a> = &'a mut dyn FnMut(&Event, &mut TraceWriter<fs::File>) -> Result<(), Error>;

impl Job<'_> {
    /// The events of neighbours, of which the first has this number, in order of their start.
    fn merge(&mut self, first: usize, group: Group, out: Out<'_>) -> Result<(), Error> {
        let (mut members, states): (Vec<Member>, Vec<State>) = group.into_iter().unzip();
        let mut streams = Vec::new();
        for member in &mut members {
            streams.push(std::mem::take(&mut member.survey.threads));
        }
        let mut processes = Vec::new();
        let mut heads = BinaryHeap::new();
        for (index, ((member, state), streams)) in members.iter().zip(states).zip(streams).enumerate() {
            let streams = streams
                .into_iter()
                .filter(|(_, (first_ns, _))| *first_ns < u64::MAX)
                .map(|((number, _), (first_ns, chunks))| (number, first_ns, chunks));
            let mut process = Process {
                id: ProcessId((first + index) as u32),
                shift_ns: member.shift_ns,
                survey: &member.survey,
                state,
                records: Merge::new(&member.spool, streams),
                rounding: (!self.settings.exact_times).then(Rounding::default),
                recorded_ns: 0,
                last_ns: 0,
                next: None,
            };
            self.advance(&mut process)?;
            heads.extend(process.next.as_ref().map(|event| Reverse((event.start_ns, index))));
            processes.push(process);
        }
        while let Some(Reverse((_, index))) = heads.pop() {
            let process = &mut processes[index];
            if let Some(event) = process.next.take() {
                out(&event, self.writer)?;
            }
            self.advance(process)?;
            heads.extend(process.next.as_ref().map(|event| Reverse((event.start_ns, index))));
        }
        Ok(())
    }

    /// Looks for the next event of a process that is kept.
    fn advance(&mut self, process: &mut Process<'_>) -> Result<(), Error> {
        while let Some((thread, record)) =
            process.records.next().map_err(Error::io(self.folder, "read a spool of"))?
        {
            if let Some(mut event) = self.event_of(&record, process) {
                event.thread = thread;
                self.time(&mut event, &record, process);
                // A phase that goes on to the end is none that a program left undone.
                let is_operation = event.layer() != Layer::Mark;
                self.summary.unfinished += u64::from(is_operation && event.flags.contains(Flags::UNFINISHED));
                self.summary.events += 1;
                process.next = Some(event);
                break;
            }
        }
        Ok(())
    }

    /// The event of a record, but for its thread and its start. None of what is no call, or is not kept.
    fn event_of(&mut self, record: &Record, process: &mut Process<'_>) -> Option<Event> {
        let mut event = event_of(record, process.survey, &mut process.state)?;
        event.process = process.id;
        if has_two_names(event.call) {
            event.size = 0;
        }
        if event.layer() == Layer::Mark {
            // Without its name it says nothing.
            let name = self.marks.id(record.offset, self.writer)?;
            event.target = Target::Mark { name, number: record.size };
            event.size = 0;
        }
        if let Some((name, line)) = record.call_site
            && let Some(name) = self.marks.id(name, self.writer)
        {
            event.target = Target::Mark { name, number: line };
        }
        if is_on_name(record, &event) && self.names.is_of_shared_memory(record.offset) {
            return None;
        }
        count(&event, &mut self.summary.recorded);
        if !self.settings.filter.keeps(&event, self.writer.tables()) {
            self.summary.filtered += 1;
            return None;
        }
        if is_on_name(record, &event)
            && let Some(file) = self.names.file(record.offset, self.writer)
        {
            let is_pair = has_two_names(event.call);
            let other = if is_pair { self.names.file(record.size, self.writer) } else { None };
            event.target = Target::Name { file, other };
        }
        Some(event)
    }

    /// When the event began, and its times as they are told.
    fn time(&mut self, event: &mut Event, record: &Record, process: &mut Process<'_>) {
        event.start_ns = since(self.epoch_ns, i128::from(record.start_ns) + process.shift_ns);
        if event.start_ns < process.recorded_ns {
            event.start_ns = process.recorded_ns;
            self.summary.moved += 1;
        }
        process.recorded_ns = event.start_ns;
        if let Some(rounding) = &mut process.rounding {
            rounding.apply(event);
            // Threads are rounded each for itself.
            event.start_ns = event.start_ns.max(process.last_ns);
        }
        process.last_ns = event.start_ns;
    }
}

/// A process whose events are taken.
struct Process<'a> {
    id: ProcessId,
    /// Wall clock minus its own.
    shift_ns: i128,
    survey: &'a Survey,
    state: State,
    records: Merge<'a>,
    /// None if times are exact.
    rounding: Option<Rounding>,
    /// Start of the latest record, and as it was told.
    recorded_ns: u64,
    last_ns: u64,
    next: Option<Event>,
}

/// What the second pass knows of a process.
pub(crate) struct State {
    /// Handles of the survey's open files, and where each descriptor stands; none of shared memory.
    pub(crate) open_files: Vec<Option<(HandleId, u64)>>,
    /// By layer and the process's own number.
    pub(crate) library_files: HashMap<(Layer, i32), HandleId>,
    /// Its layouts.
    pub(crate) known: Known,
    /// Its latest operations.
    pub(crate) operations: Operations,
}

/// The handles of the latest calls of MPI-IO, by their operations: requests to servers say no more than which operation
/// they belong to. One that goes on while the program makes [`Operations::MOST`] more calls is forgotten.
#[derive(Default)]
pub(crate) struct Operations(BTreeMap<u64, HandleId>);

impl Operations {
    const MOST: usize = 1 << 16;

    fn add(&mut self, operation: u64, handle: HandleId) {
        self.0.insert(operation, handle);
        if self.0.len() > Operations::MOST {
            self.0.pop_first();
        }
    }
}

/// Paths that calls name take at most so much of a trace's tables, which may be 256 MiB.
const MOST_NAME_BYTES: usize = 64 << 20;

/// The paths that calls name, by their ids. One gets into the tables when the first event that names it is written.
pub(crate) struct Names {
    paths: HashMap<u64, String>,
    files: HashMap<String, FileId>,
    /// Of shared memory: they have no path.
    shared: HashSet<u64>,
}

impl Names {
    /// Those of all members, as far as there is room; `files` are in the tables already.
    pub(crate) fn new(members: &mut [Member], files: HashMap<String, FileId>, memory: &Memory) -> Names {
        let mut paths = HashMap::new();
        let mut shared = HashSet::new();
        let mut bytes = 0;
        let mut folders = Folders::default();
        for member in members {
            for (id, path) in std::mem::take(&mut member.survey.names) {
                if memory.is_shared(&path) {
                    shared.insert(id);
                } else if bytes + path.len() <= MOST_NAME_BYTES && !paths.contains_key(&id) {
                    bytes += path.len();
                    // A file is opened and asked for by one name.
                    paths.insert(id, folders.resolve(&path));
                }
            }
        }
        Names { paths, files, shared }
    }

    /// Whether a name with this id is of memory that processes share.
    fn is_of_shared_memory(&self, id: u64) -> bool {
        self.shared.contains(&id)
    }

    /// The file of this id, if its path is known.
    fn file(&mut self, id: u64, writer: &mut TraceWriter<std::fs::File>) -> Option<FileId> {
        let path = self.paths.get(&id)?;
        if let Some(&file) = self.files.get(path) {
            return Some(file);
        }
        let files = &mut writer.tables_mut().files;
        files.push(File { path: path.clone() });
        let file = FileId(files.len() as u32 - 1);
        self.files.insert(path.clone(), file);
        Some(file)
    }
}

/// What says which file a record is about, and when it was.
pub(crate) struct Lookup {
    /// Wall clock at the start of the job.
    pub(crate) epoch_ns: i128,
    /// Of each process.
    pub(crate) states: Vec<State>,
    /// Of all.
    pub(crate) names: Names,
    /// Of all.
    pub(crate) marks: MarkNames,
}

/// Whether a record is of a call on a name; its offset is the name's id.
fn is_on_name(record: &Record, event: &Event) -> bool {
    let is_without_fd = record.fd < 0
        && matches!(event.layer(), Layer::Posix | Layer::Stdio)
        && matches!(event.op(), Op::Open | Op::Metadata);
    record.offset != NO_OFFSET && (is_without_fd || event.call == Call::MpiFileDelete)
}

/// Whether a record of this call has the id of a second path where others have a size.
fn has_two_names(call: Call) -> bool {
    matches!(call, Call::Rename | Call::Link | Call::Symlink)
}

/// Counts a call of POSIX or of a stream.
fn count(event: &Event, sum: &mut CallsByKind) {
    if !matches!(event.layer(), Layer::Posix | Layer::Stdio) {
        return;
    }
    let calls = match event.op() {
        Op::Read => &mut sum.reads,
        Op::Write => &mut sum.writes,
        _ => {
            sum.others += 1;
            return;
        }
    };
    calls.calls += 1;
    calls.bytes = calls.bytes.saturating_add(event.transferred());
}

/// The event of a record, but for its process, thread and start. None for what is no call, or about no file of the job.
fn event_of(record: &Record, survey: &Survey, state: &mut State) -> Option<Event> {
    let call = Call::from_number(record.call)?;
    let mut event = Event {
        call,
        process: ProcessId(0),
        thread: 0,
        handle: None,
        target: Target::None,
        memory: None,
        size: record.size,
        result: record.result,
        start_ns: 0,
        elapsed_ns: record.elapsed_ns,
        think_ns: record.think_ns,
        used_ns: record.used_ns,
        flags: Flags::from_bits(record.flags.into()),
        operation: record.operation,
    };
    match call.layer() {
        Layer::Posix | Layer::Stdio => locate_posix(&mut event, record, survey, state)?,
        Layer::MpiIo => locate_mpi_io(&mut event, record, state),
        layer @ (Layer::Hdf5 | Layer::Pnetcdf) => {
            event.handle = state.library_files.get(&(layer, record.fd)).copied();
        }
        Layer::Server => {
            event.handle = state.operations.0.get(&event.operation).copied();
            let server = u32::try_from(record.fd);
            event.target =
                server.map_or(Target::None, |server| Target::Server { server, offset: record.offset });
        }
        Layer::Mark => {}
        Layer::Message => {
            event.target = u32::try_from(record.fd).map_or(Target::None, |rank| Target::Peer { rank });
            if is_collective_message(call) {
                event.flags = event.flags | Flags::COLLECTIVE;
            }
        }
    }
    Some(event)
}

fn is_collective_message(call: Call) -> bool {
    (Call::MpiBarrier.number()..=Call::MpiAlltoallv.number()).contains(&call.number())
}

/// None if the call is on shared memory.
fn locate_posix(event: &mut Event, record: &Record, survey: &Survey, state: &mut State) -> Option<()> {
    let call = event.call;
    // An open stands for its descriptor from its end on.
    let at_ns = match call.op() {
        Op::Open => record.start_ns.saturating_add(record.elapsed_ns),
        _ => record.start_ns,
    };
    match call.op() {
        Op::Open => {
            event.size = 0;
            for (bit, flag) in [(COLD, Flags::COLD), (TRUNCATE, Flags::TRUNCATE)] {
                if record.fd >= 0 && record.offset & bit != 0 {
                    event.flags = event.flags | flag;
                }
            }
        }
        _ if call == Call::Dup => event.result = event.result.min(0),
        _ => {}
    }
    let Some(open_file) = survey.open_file_at(record.fd, at_ns) else { return Some(()) };
    let (handle, position) = state.open_files[open_file].as_mut()?;
    event.handle = Some(*handle);
    let moved = u64::try_from(record.result).unwrap_or(0);
    match call.op() {
        Op::Read | Op::Write => {
            let offset = if record.offset == NO_OFFSET { *position } else { record.offset };
            event.target = Target::Extent { offset };
            if record.offset == NO_OFFSET || moves_position(call) {
                *position = offset.saturating_add(moved);
            }
        }
        Op::Seek if record.result >= 0 && record.offset != NO_OFFSET => {
            *position = record.offset;
            event.target = Target::Extent { offset: record.offset };
        }
        _ if matches!(call, Call::Fallocate | Call::FcntlLock) && record.offset != NO_OFFSET => {
            event.target = Target::Extent { offset: record.offset };
        }
        _ => {}
    }
    Some(())
}

/// Calls that work at the descriptor's position, even where the recorder asked for it.
fn moves_position(call: Call) -> bool {
    matches!(call, Call::Read | Call::Readv | Call::Write | Call::Writev)
}

fn locate_mpi_io(event: &mut Event, record: &Record, state: &mut State) {
    event.handle = state.library_files.get(&(Layer::MpiIo, record.fd)).copied();
    if let Some(handle) = event.handle {
        state.operations.add(event.operation, handle);
    }
    event.memory = state.known.datatype(record.memory);
    let shows_view = matches!(event.op(), Op::Read | Op::Write | Op::Seek | Op::View);
    if shows_view
        && record.offset != NO_OFFSET
        && let Some(view) = state.known.view(record.view)
    {
        event.target = Target::View { view, position: record.offset };
    }
}
