//! A recorded trace as a workload: the calls that the program made, and the time between them.
//!
//! Replayed are: MPI-IO opens, closes, views, seeks, reads and writes, as the program asked for them (what a strategy
//! made of them then is left out: here another one may carry them out); POSIX opens, closes, seeks, reads and writes
//! that no MPI-IO call caused (what goes to a file that the MPI library opened is the library's, whenever it goes there:
//! nonblocking operations go on while the program waits for them); and broadcasts to all processes. The time of every other call stays in the gap between
//! those replayed, as it was recorded.

use std::collections::{BTreeMap, BTreeSet};

use pio_layout::View;
use pio_machine::Duration;
use pio_plan::Direction;
use pio_trace::{Call, Event, Flags, HandleId, Layer, Op, Tables, Target, Trace, ViewId};

use crate::error::SimError;
use crate::workload::{Open, Step, What, Workload};

impl Workload {
    /// The workload that a trace recorded.
    ///
    /// # Errors
    /// If the trace cannot be read, or has no process.
    pub fn from_trace(trace: &Trace) -> Result<Workload, SimError> {
        let survey = Survey::of(trace)?;
        let tables = trace.tables();
        let ranks = ranks_of(tables);
        if ranks.is_empty() {
            return Err(SimError::NoProcess { workload: tables.job.clone() });
        }
        let mut reader = Reader::new(tables, &survey, ranks);
        for event in trace.events() {
            reader.read(&event?);
        }
        Ok(reader.workload)
    }
}

/// What must be known of the whole trace before its calls are read.
#[derive(Default)]
struct Survey {
    /// Handles that MPI-IO calls use.
    mpi_handles: BTreeSet<HandleId>,
    /// Whether every process made the same broadcasts: only then do we know that they went to all.
    broadcasts_agree: bool,
}

impl Survey {
    fn of(trace: &Trace) -> Result<Survey, SimError> {
        let mut survey = Survey::default();
        let ranks = ranks_of(trace.tables());
        let mut broadcasts: BTreeMap<u32, Vec<(u32, u64)>> =
            ranks.values().map(|rank| (*rank, Vec::new())).collect();
        for event in trace.events() {
            let event = event?;
            if let (Layer::MpiIo, Some(handle)) = (event.layer(), event.handle) {
                survey.mpi_handles.insert(handle);
            }
            if let (Some(root), Some(rank)) = (broadcast_root(&event), ranks.get(&event.process.0)) {
                broadcasts.entry(*rank).or_default().push((root, event.size));
            }
        }
        let mut lists = broadcasts.values();
        let first = lists.next();
        survey.broadcasts_agree = first.is_some_and(|first| lists.all(|list| list == first));
        Ok(survey)
    }
}

/// The rank of each process that takes part, by process: the MPI processes in order of rank, or all if there are none.
fn ranks_of(tables: &Tables) -> BTreeMap<u32, u32> {
    let any_mpi = tables.processes.iter().any(|process| process.rank.is_some());
    let mut order: Vec<(Option<u32>, u32)> =
        tables.processes.iter().enumerate().map(|(index, process)| (process.rank, index as u32)).collect();
    order.retain(|(rank, _)| rank.is_some() || !any_mpi);
    order.sort_unstable();
    order.into_iter().enumerate().map(|(rank, (_, process))| (process, rank as u32)).collect()
}

struct Reader<'t> {
    survey: &'t Survey,
    ranks: BTreeMap<u32, u32>,
    workload: Workload,
    /// A view of the whole file, for accesses that name offsets.
    whole: ViewId,
    /// When each rank's last replayed call ended.
    last_end_ns: Vec<u64>,
    /// Its last MPI-IO call: when it ended, and its number. What it caused lies before, and has the number.
    last_mpi: Vec<(u64, u64)>,
    /// Handles that MPI-IO calls opened for themselves.
    inner: BTreeSet<HandleId>,
}

impl<'t> Reader<'t> {
    fn new(tables: &'t Tables, survey: &'t Survey, ranks: BTreeMap<u32, u32>) -> Reader<'t> {
        let count = ranks.len();
        let mut views = tables.views.clone();
        let whole = ViewId(views.len() as u32);
        views.push(View::contiguous(0));
        let (handles, groups) = handles_of(tables, survey, &ranks);
        let workload = Workload {
            name: tables.job.clone(),
            files: tables.files.clone(),
            handles,
            views,
            groups,
            programs: vec![Vec::new(); count],
        };
        let (last_end_ns, last_mpi, inner) = (vec![0; count], vec![(0, 0); count], BTreeSet::new());
        Reader { survey, ranks, workload, whole, last_end_ns, last_mpi, inner }
    }

    fn read(&mut self, event: &Event) {
        let Some(rank) = self.ranks.get(&event.process.0).map(|rank| *rank as usize) else { return };
        let (until_ns, number) = self.last_mpi[rank];
        let is_caused = event.is_physical() && number != 0 && event.operation == number;
        let is_of_mpi = event.handle.is_some_and(|handle| self.inner.contains(&handle));
        let is_inside =
            event.layer() == Layer::Posix && (event.start_ns < until_ns || is_caused || is_of_mpi);
        // Where calls say what caused them, another thread's file does not become the library's.
        if is_inside && event.op() == Op::Open && (is_caused || number == 0) {
            self.inner.extend(event.handle);
        }
        if event.layer() == Layer::MpiIo {
            self.last_mpi[rank] = (until_ns.max(event.end_ns()), event.operation);
        }
        if is_inside {
            return;
        }
        let Some(what) = self.call(event) else { return };
        let gap_ns = event.start_ns.saturating_sub(self.last_end_ns[rank]);
        let think = Duration::from_picoseconds(gap_ns.saturating_mul(1000));
        self.workload.programs[rank].push(Step { think, what });
        self.last_end_ns[rank] = self.last_end_ns[rank].max(event.end_ns());
    }

    /// The call to replay, if the event is one.
    fn call(&self, event: &Event) -> Option<What> {
        let collective = is_collective(event);
        if event.layer() == Layer::Message {
            let root = broadcast_root(event).filter(|_| self.survey.broadcasts_agree)?;
            return Some(What::Broadcast { root, bytes: event.size });
        }
        let handle = event.handle?;
        // A collective call that failed for one rank was still made by the others, which wait for it.
        let takes_part =
            collective || (event.layer() == Layer::MpiIo && matches!(event.op(), Op::Close | Op::View));
        if event.result < 0 && !takes_part {
            return None;
        }
        match (event.layer(), event.op()) {
            (Layer::MpiIo | Layer::Posix, Op::Open) => Some(What::Open(handle)),
            (Layer::MpiIo | Layer::Posix, Op::Close) => Some(What::Close(handle)),
            (Layer::MpiIo | Layer::Posix, Op::Seek) => Some(What::Seek(handle, event.call)),
            (Layer::MpiIo, Op::View) => match event.target {
                Target::View { view, .. } => Some(What::SetView(handle, view)),
                _ => None,
            },
            (Layer::MpiIo, Op::Read | Op::Write) => {
                let direction = direction_of(event.op());
                let bytes = event.transferred();
                let (view, start) = match event.target {
                    Target::View { view, position } => (view, position),
                    Target::Extent { offset } => (self.whole, offset),
                    Target::None | Target::Peer { .. } | Target::Server { .. } | Target::Name { .. } => {
                        (self.whole, 0)
                    }
                };
                let limit = self.workload.views.get(view.index())?.limit();
                let positions = start.min(limit)..start.saturating_add(bytes).min(limit);
                Some(What::Access { handle, call: event.call, direction, view, positions, collective })
            }
            (Layer::Posix, Op::Read | Op::Write) => match event.target {
                Target::Extent { offset } => {
                    let (direction, bytes) = (direction_of(event.op()), event.transferred());
                    Some(What::Request { handle, call: event.call, direction, offset, bytes })
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// The handles under their numbers, and the groups of ranks that opened files together.
fn handles_of(tables: &Tables, survey: &Survey, ranks: &BTreeMap<u32, u32>) -> (Vec<Open>, Vec<Vec<u32>>) {
    let rank_of = |handle: &pio_trace::Handle| ranks.get(&handle.process.0).copied();
    let mut together: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    for handle in tables.handles.iter().filter(|handle| handle.collective != 0) {
        together.entry(handle.collective).or_default().extend(rank_of(handle));
    }
    // Opens that were not collective get numbers of their own, above the others.
    let mut next = together.keys().next_back().copied().unwrap_or(0);
    let mut groups: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    let mut opens = Vec::with_capacity(tables.handles.len());
    for (index, handle) in tables.handles.iter().enumerate() {
        let rank = rank_of(handle).unwrap_or(0);
        let mut open = Open { file: handle.file.0, rank, group: None, collective: handle.collective };
        let takes_part = rank_of(handle).is_some();
        if takes_part && survey.mpi_handles.contains(&HandleId(index as u32)) {
            let members: Vec<u32> = match together.get(&handle.collective) {
                Some(members) => members.iter().copied().collect(),
                None => {
                    next += 1;
                    open.collective = next;
                    vec![rank]
                }
            };
            let count = groups.len() as u32;
            open.group = Some(*groups.entry(members).or_insert(count));
        }
        opens.push(open);
    }
    let mut lists = vec![Vec::new(); groups.len()];
    for (members, index) in groups {
        lists[index as usize] = members;
    }
    (opens, lists)
}

fn broadcast_root(event: &Event) -> Option<u32> {
    match event.target {
        Target::Peer { rank } if event.call == Call::MpiBcast && !event.is_physical() => Some(rank),
        _ => None,
    }
}

fn direction_of(op: Op) -> Direction {
    if op == Op::Read { Direction::Read } else { Direction::Write }
}

fn is_collective(event: &Event) -> bool {
    let moves_data = matches!(event.op(), Op::Read | Op::Write);
    event.layer() == Layer::MpiIo && moves_data && event.flags.contains(Flags::COLLECTIVE)
}

#[cfg(test)]
mod tests {
    use pio_trace::{File, FileId, Handle, Process, ProcessId, TraceWriter};

    use super::*;

    /// The library writes after `MPI_File_iwrite` returned, while the program waits; another file is the program's own.
    #[test]
    fn what_nonblocking_calls_do_later_is_not_the_programs() {
        let process = Process {
            rank: Some(0),
            pid: 1,
            host: "node1".into(),
            command: "app".into(),
            start_ns: 0,
            end_ns: Some(1000),
        };
        let handle =
            |file, collective| Handle { file: FileId(file), process: ProcessId(0), ranks: 1, collective };
        let tables = Tables {
            processes: vec![process],
            files: vec![File { path: "/shared".into() }, File { path: "/own".into() }],
            handles: vec![handle(0, 1), handle(0, 0), handle(1, 0)],
            ..Tables::default()
        };
        let event = |call, handle, start_ns, elapsed_ns, operation| {
            let mut event = Event::new(call, ProcessId(0), start_ns);
            (event.handle, event.elapsed_ns, event.operation) =
                (Some(HandleId(handle)), elapsed_ns, operation);
            if matches!(event.op(), Op::Read | Op::Write) {
                event.target = Target::Extent { offset: 0 };
                (event.size, event.result) = (100, 100);
            }
            event
        };
        let physical = |event| Event { flags: Flags::PHYSICAL, ..event };
        let events = [
            event(Call::MpiFileOpen, 0, 0, 50, 1),
            physical(event(Call::Open, 1, 10, 20, 1)),
            event(Call::Open, 2, 60, 5, 0),
            event(Call::MpiFileIwriteAt, 0, 100, 10, 2),
            event(Call::MpiFileIwriteAt, 0, 120, 10, 3),
            // Of the first operation, and while the program waits for both.
            physical(event(Call::Pwrite, 1, 200, 10, 2)),
            event(Call::Pwrite, 1, 220, 10, 0),
            event(Call::Pwrite, 2, 240, 10, 0),
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pio");
        let mut writer = TraceWriter::create(&path, tables).unwrap();
        events.iter().for_each(|event| writer.push(event).unwrap());
        writer.finish().unwrap();
        let workload = Workload::from_trace(&Trace::open(&path).unwrap()).unwrap();
        let requests: Vec<HandleId> = workload.programs[0]
            .iter()
            .filter_map(|step| match &step.what {
                What::Request { handle, .. } => Some(*handle),
                _ => None,
            })
            .collect();
        assert_eq!(requests, [HandleId(2)]);
        let accesses = workload.programs[0].iter().filter(|step| matches!(step.what, What::Access { .. }));
        assert_eq!(accesses.count(), 2);
    }
}
