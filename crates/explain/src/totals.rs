//! Totals: everything that is a sum or a maximum over events.

use std::collections::{BTreeMap, BTreeSet};

use pio_trace::{Call, FileId, Flags, Layer, Op, Process, ProcessId, Tables, Target, ViewId};

use crate::apart::{CROWD, Slices};
use crate::bandwidth::{Begun, Covered, Later, Transfer, Transfers};
use crate::bins::Bins;
use crate::collectives::MpiIoTime;
use crate::explanation::{
    Busy, BusyRow, DataRate, Explanation, FileStatistics, Imbalance, InMpi, IoTime, LayerTable,
    ProcessStatistics,
};
use crate::file_systems;
use crate::marked::Marked;
use crate::notes;
use crate::operations::{OperationTable, OperationView};
use crate::pattern::{Access, Cursors, Pattern, Patterns};
use crate::rhythm::Rhythm;
use crate::tally::{Amount, InTurn, Levels, Seen, Tally};
use crate::trouble::{Failure, Trouble};
use crate::workload::Workload;

/// Rows of the picture of who was in I/O when: more processes share rows.
const BUSY_ROWS: usize = 256;

/// Rows of the data-rate bins.
const PROGRAM_READ: usize = 0;
const PROGRAM_WRITE: usize = 1;
const FILE_SYSTEM_READ: usize = 2;
const FILE_SYSTEM_WRITE: usize = 3;

/// Counts events, in order of their start.
pub(crate) struct Totals<'a> {
    pub(crate) tables: &'a Tables,
    /// Of what processes share, and of what each has for itself.
    in_turn: [InTurn; 2],
    events: u64,
    last_end_ns: u64,
    trouble: Trouble,
    failures: BTreeMap<(Call, i64), u64>,
    unfinished: BTreeMap<Call, u64>,
    /// By whether an upper layer caused the call, and its number.
    calls: [Vec<Tally>; 2],
    /// By layer, and whether an upper layer caused the call. Up to the end of sizes alone: the rest is in `calls`.
    layers: [[OperationTable; 2]; Layer::ALL.len()],
    /// POSIX calls, and requests to I/O servers, on files that the program opened by MPI-IO.
    on_mpi_files: OperationTable,
    /// Messages between a process's first open and last close by MPI-IO, and by any layer.
    communication_mpi: OperationTable,
    communication_any: OperationTable,
    /// Of both, messages that the program sent for itself.
    own_messages_mpi: Tally,
    own_messages_any: Tally,
    in_mpi: InMpi,
    files: Vec<FileCounters>,
    /// The program's reads, and its writes, of which the trace does not tell the file: tables of calls need not.
    without_file: [Amount; 2],
    handles: Vec<HandleCounters>,
    processes: Vec<ProcessCounters>,
    /// Row of each process in `busy`.
    busy_rows: Vec<Option<usize>>,
    busy: Bins,
    /// By place of the process among those with a rank.
    slices: Slices,
    rank_places: Vec<Option<u32>>,
    rate: Bins,
    /// Whether there were data at one level alone: until then `rate` and `moved` have both in what is the program's.
    levels_differ: bool,
    /// Calls of the program, and those at the file system.
    moved: [Moved; 2],
    /// By process.
    begun: Vec<Begun>,
    later: Later,
    /// POSIX calls on files that the program opened by MPI-IO.
    moved_on_mpi_files: Moved,
    /// Calls of the program, by layer, of those above the file system.
    moved_by_layer: [Moved; Layer::ALL.len()],
    /// Calls of any process by which the job is measured.
    any: Covered,
    /// Whether some process has a rank: then the job is measured by those that do.
    has_ranks: bool,
}

/// Reads and writes of a kind.
#[derive(Clone, Copy, Default)]
struct Moved {
    /// Reads, writes.
    bytes: [u64; 2],
    covered: [Covered; 2],
    /// Both.
    data: Covered,
}

impl Moved {
    /// Counts a read or a write. The time of one that moved nothing, as it failed or the file ended, says nothing about
    /// the rate of others.
    fn add(&mut self, event: &Seen<'_>, writes: bool) {
        let index = usize::from(writes);
        self.bytes[index] = self.bytes[index].saturating_add(event.bytes);
        if event.bytes > 0 {
            self.add_time(event, writes);
        }
    }

    /// Counts the time alone.
    fn add_time(&mut self, event: &Seen<'_>, writes: bool) {
        self.covered[usize::from(writes)].add(event.start_ns, event.end_ns());
        self.data.add(event.start_ns, event.end_ns());
    }

    fn transfers(&self) -> Transfers {
        let of = |index: usize| Transfer { bytes: self.bytes[index], busy_ns: self.covered[index].busy_ns };
        let bytes = self.bytes[0].saturating_add(self.bytes[1]);
        Transfers { read: of(0), write: of(1), data: Transfer { bytes, busy_ns: self.data.busy_ns } }
    }
}

#[derive(Clone, Default)]
struct FileCounters {
    by_mpi_io: bool,
    used: bool,
    size_bytes: u64,
    processes: BTreeSet<ProcessId>,
    levels: Levels,
    program_read: Amount,
    program_write: Amount,
    patterns: Patterns,
    covered: Covered,
    /// Whether any call on it was one at the file system.
    at_file_system: bool,
    /// Reads and writes: those at the file system if it saw any call, else the program's.
    data: Covered,
    /// First and last starts of the program's reads, and of its writes.
    spans: [Option<(u64, u64)>; 2],
}

/// Where the previous read and write through a handle were, and the bytes moved so far, at both levels.
#[derive(Clone, Default)]
struct HandleCounters {
    /// Already counted among its file's processes: most events of a handle come from one.
    process: Option<ProcessId>,
    cursors: Cursors,
    program_bytes: u64,
    file_system_bytes: u64,
}

#[derive(Clone, Default)]
struct ProcessCounters {
    events: u64,
    covered: Covered,
    /// The program's reads and writes.
    data: Covered,
    begun: Begun,
    think_ns: u64,
    levels: Levels,
    messages: Tally,
    mpi_files: OpenFiles,
    any_files: OpenFiles,
}

/// How many files a process has open.
#[derive(Clone, Default)]
struct OpenFiles {
    open: u64,
    last_close_ns: u64,
}

impl OpenFiles {
    fn add(&mut self, event: &Seen<'_>) {
        match event.op() {
            Op::Open if !event.failed => self.open += 1,
            Op::Close => {
                self.open = self.open.saturating_sub(1);
                self.last_close_ns = self.last_close_ns.max(event.end_ns());
            }
            _ => {}
        }
    }

    /// Whether a file is open, or being closed, at this time.
    fn any_at(&self, time_ns: u64) -> bool {
        self.open > 0 || time_ns < self.last_close_ns
    }
}

impl<'a> Totals<'a> {
    /// Nothing counted yet.
    pub(crate) fn new(tables: &'a Tables) -> Totals<'a> {
        let mut files = vec![FileCounters::default(); tables.files.len()];
        for handle in &tables.handles {
            // Marks the file before its first event: a POSIX open may carry the same time as the MPI_File_open that
            // caused it, and come first.
            let collective = handle.ranks > 1 || handle.collective != 0;
            if let Some(file) = files.get_mut(handle.file.index()).filter(|_| collective) {
                file.by_mpi_io = true;
            }
        }
        let (busy_rows, rows) = busy_rows(&tables.processes);
        let (rank_places, ranks) = rank_places(&tables.processes);
        let calls = Call::ALL.last().map_or(0, |last| usize::from(last.number()) + 1);
        Totals {
            tables,
            in_turn: [(); 2].map(|()| InTurn::new(tables.processes.len())),
            events: 0,
            last_end_ns: 0,
            trouble: Trouble::of(tables),
            failures: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            calls: [(); 2].map(|()| vec![Tally::default(); calls]),
            layers: Default::default(),
            on_mpi_files: OperationTable::default(),
            communication_mpi: OperationTable::default(),
            communication_any: OperationTable::default(),
            own_messages_mpi: Tally::default(),
            own_messages_any: Tally::default(),
            in_mpi: InMpi::default(),
            files,
            without_file: Default::default(),
            handles: vec![HandleCounters::default(); tables.handles.len()],
            processes: vec![ProcessCounters::default(); tables.processes.len()],
            busy_rows,
            busy: Bins::new(rows),
            slices: Slices::new(ranks),
            rank_places,
            rate: Bins::new(4),
            levels_differ: false,
            moved: Default::default(),
            begun: vec![Begun::default(); tables.processes.len()],
            later: Later::default(),
            moved_on_mpi_files: Moved::default(),
            moved_by_layer: Default::default(),
            any: Covered::default(),
            has_ranks: tables.processes.iter().any(|process| process.rank.is_some()),
        }
    }

    /// Notes that a part of the trace could not be read.
    pub(crate) fn add_damage(&mut self, what: impl Into<String>) {
        self.trouble.damage.push(what.into());
    }

    /// Counts one event.
    pub(crate) fn add(&mut self, event: &Seen<'_>) {
        self.add_shared(event);
        self.add_own(event);
    }

    /// Counts what is not of its process; events come in order of their start. With [`Totals::add_own`] of the same events the
    /// sums are those of [`Totals::add`].
    pub(crate) fn add_shared(&mut self, event: &Seen<'_>) {
        let request = self.in_turn[0].request(event);
        let event = &request.as_ref().map_or(*event, Seen::of);
        self.events += 1;
        self.last_end_ns = self.last_end_ns.max(event.end_ns());
        let physical = usize::from(event.is_physical());
        self.calls[physical][usize::from(event.call.number())].add(event);
        self.layers[event.layer() as usize][physical].add_size(event);
        self.add_trouble(event);
        self.in_mpi.add(event);
        if event.layer() != Layer::Message {
            let (program, file_system) = (!event.is_physical(), event.layer().is_at_files());
            self.add_data(event, program, file_system);
            let process = self.tables.processes.get(event.process.index());
            if !self.has_ranks || process.is_some_and(|process| process.rank.is_some()) {
                self.any.add(event.start_ns, event.end_ns());
            }
            self.add_to_file(event, program, file_system);
        }
        let begun = self.begun.get_mut(event.process.index());
        if let Some(moved) = begun.and_then(|begun| begun.add(event)) {
            self.moved[0].add_time(event, moved.writes);
            self.moved_by_layer[moved.layer as usize].add_time(event, moved.writes);
            self.later.add(moved, event.elapsed_ns);
        }
    }

    /// Counts what is of its process; events of each process come in order of their start.
    pub(crate) fn add_own(&mut self, event: &Seen<'_>) {
        let request = self.in_turn[1].request(event);
        let event = &request.as_ref().map_or(*event, Seen::of);
        if event.layer() == Layer::Message {
            self.add_message(event);
        } else {
            self.add_file_call(event);
        }
        if let Some(process) = self.processes.get_mut(event.process.index()) {
            let moves = !event.is_physical() && event.bytes > 0 && direction(event).is_some();
            if process.begun.add(event).is_some() || moves {
                process.data.add(event.start_ns, event.end_ns());
            }
            process.events += 1;
            process.think_ns = process.think_ns.saturating_add(event.think_ns);
        }
    }

    /// What was counted.
    pub(crate) fn finish(mut self) -> Explanation {
        let calls = self.add_calls_to_layers();
        self.tell_levels_apart();
        let duration_ns = self
            .tables
            .processes
            .iter()
            .filter_map(|process| process.end_ns)
            .fold(self.last_end_ns, u64::max);
        self.trouble.failures = failures(&self.failures);
        self.trouble.unfinished = self.unfinished.iter().map(|(&call, &count)| (call, count)).collect();

        let measured = self.measured();
        let process_count = measured.len() as u64;
        let processes: Vec<_> = measured.iter().map(|&index| self.process(index, duration_ns)).collect();
        let io_time = IoTime {
            process_ns: processes.iter().map(|process| u128::from(process.io_ns)).sum(),
            lifetime_ns: processes.iter().map(|process| u128::from(process.lifetime_ns)).sum(),
            any_ns: self.any.busy_ns,
        };
        let workload = self.workload(duration_ns);
        let (operations, asked_operations) = self.operations(process_count);
        let busy = self.take_busy(&measured, duration_ns);
        let apart = std::mem::replace(&mut self.slices, Slices::new(0)).finish(&processes, duration_ns);
        let rate = data_rate(std::mem::replace(&mut self.rate, Bins::new(0)), duration_ns);
        let merged = |pick: fn(&FileCounters) -> &Pattern| {
            self.files.iter().fold(Pattern::default(), |sum, file| sum.merged(pick(file)))
        };
        let (program_pattern, file_system_pattern) =
            (merged(|file| file.patterns.program()), merged(|file| file.patterns.file_system()));

        let mut layers = Vec::new();
        for layer in Layer::ALL {
            for physical in [false, true] {
                let table = std::mem::take(&mut self.layers[layer as usize][usize::from(physical)]);
                if !table.is_empty() {
                    layers.push(LayerTable { layer, physical, table });
                }
            }
        }
        let files = file_statistics(self.tables, self.files, &self.handles);
        Explanation {
            job: self.tables.job.clone(),
            notes: notes::of(self.tables),
            is_mpi: self.tables.processes.iter().any(|process| process.rank.is_some()),
            process_count,
            events: self.events,
            duration_ns,
            trouble: self.trouble,
            layers,
            operations,
            asked_operations,
            mpi_io: MpiIoTime::default(),
            in_mpi: self.in_mpi,
            calls,
            workload,
            imbalance: imbalance(&processes),
            file_systems: file_systems::of(self.tables, &files),
            files,
            processes,
            program_pattern,
            file_system_pattern,
            io_time,
            transfers: self.moved[0].transfers(),
            later: self.later,
            rate,
            busy,
            apart,
            findings: Vec::new(),
            not_advised: Vec::new(),
            other_files: Vec::new(),
            rhythm: Rhythm::default(),
            marked: Marked::default(),
            call_sites: Vec::new(),
            purposes: Vec::new(),
        }
    }

    /// The functions that were called; what each did, to the tables of its layer.
    fn add_calls_to_layers(&mut self) -> Vec<(Call, Tally)> {
        let mut called = Vec::new();
        for &call in Call::ALL {
            let by_cause = [0, 1].map(|physical| self.calls[physical][usize::from(call.number())]);
            for (table, tally) in self.layers[call.layer() as usize].iter_mut().zip(by_cause) {
                table.add_calls(call, tally);
            }
            let [logical, physical] = by_cause;
            called.push((call, logical.merged(physical)));
        }
        called.retain(|(_, tally)| tally.count > 0);
        called
    }

    fn add_trouble(&mut self, event: &Seen<'_>) {
        if event.failed {
            *self.failures.entry((event.call, event.result.saturating_neg())).or_default() += 1;
        }
        if event.flags.contains(Flags::UNFINISHED) {
            *self.unfinished.entry(event.call).or_default() += 1;
        }
    }

    fn add_message(&mut self, event: &Seen<'_>) {
        let strategy = event.is_physical() || event.call.is_of_strategy();
        let (mut mpi, mut any) = (strategy, strategy);
        if let Some(process) = self.processes.get_mut(event.process.index()) {
            process.messages.add(event);
            mpi |= process.mpi_files.any_at(event.start_ns);
            any |= process.any_files.any_at(event.start_ns);
        }
        if mpi {
            self.communication_mpi.add(event);
        }
        if any {
            self.communication_any.add(event);
        }
        if mpi && !strategy {
            self.own_messages_mpi.add(event);
        }
        if any && !strategy {
            self.own_messages_any.add(event);
        }
    }

    fn add_file_call(&mut self, event: &Seen<'_>) {
        let (program, file_system) = (!event.is_physical(), event.layer().is_at_files());
        self.add_io_time(event);
        if let Some(process) = self.processes.get_mut(event.process.index()) {
            process.levels.add(event, program, file_system);
            if event.layer() == Layer::MpiIo {
                process.mpi_files.add(event);
            }
            process.any_files.add(event);
        }
    }

    /// Counts a read or a write, and passes over all else.
    fn add_data(&mut self, event: &Seen<'_>, program: bool, file_system: bool) {
        let Some(writes) = direction(event) else { return };
        let rows = match writes {
            false => [PROGRAM_READ, FILE_SYSTEM_READ],
            true => [PROGRAM_WRITE, FILE_SYSTEM_WRITE],
        };
        if program != file_system {
            self.tell_levels_apart();
        }
        let bytes = event.bytes as f64;
        for (level, counts) in [program, file_system && self.levels_differ].into_iter().enumerate() {
            if counts {
                self.rate.spread(rows[level], event.start_ns, event.end_ns(), bytes);
                self.moved[level].add(event, writes);
            }
        }
        if program && !file_system {
            self.moved_by_layer[event.layer() as usize].add(event, writes);
        }
    }

    fn tell_levels_apart(&mut self) {
        if !self.levels_differ {
            self.levels_differ = true;
            self.rate.copy_row(PROGRAM_READ, FILE_SYSTEM_READ);
            self.rate.copy_row(PROGRAM_WRITE, FILE_SYSTEM_WRITE);
            self.moved[1] = self.moved[0];
        }
    }

    /// Adds the part of the call's time that no earlier call of the process covers.
    fn add_io_time(&mut self, event: &Seen<'_>) {
        let end = event.end_ns();
        let Some(process) = self.processes.get_mut(event.process.index()) else { return };
        let (start, added) = process.covered.add(event.start_ns, end);
        if added > 0
            && let Some(row) = self.busy_rows[event.process.index()]
        {
            self.busy.spread(row, start, end, added as f64);
            if let Some(place) = self.rank_places.get(event.process.index()).copied().flatten() {
                self.slices.add(place as usize, start, end);
            }
        }
    }

    fn add_to_file(&mut self, event: &Seen<'_>, program: bool, file_system: bool) {
        let Some(handle_id) = event.handle else {
            if let Some(writes) = direction(event).filter(|_| program) {
                self.without_file[usize::from(writes)].add(event.bytes);
            }
            return;
        };
        let Some(handle) = self.tables.handles.get(handle_id.index()) else { return };
        let Some(file) = self.files.get_mut(handle.file.index()) else { return };
        file.used = true;
        file.by_mpi_io |= event.layer() == Layer::MpiIo;
        let noted = &mut self.handles[handle_id.index()].process;
        if *noted != Some(event.process) {
            file.processes.insert(event.process);
            *noted = Some(event.process);
        }
        file.levels.add(event, program, file_system);
        if file_system && !file.at_file_system {
            file.at_file_system = true;
            file.data = Covered::default();
        }
        if program {
            file.covered.add(event.start_ns, event.end_ns());
        }
        let on_mpi_files = file.by_mpi_io && matches!(event.layer(), Layer::Posix | Layer::Server);
        if on_mpi_files {
            self.on_mpi_files.add(event);
        }
        let Some(writes) = direction(event) else { return };
        if on_mpi_files {
            self.moved_on_mpi_files.add(event, writes);
        }
        if event.bytes > 0 && (file_system || !file.at_file_system) {
            file.data.add(event.start_ns, event.end_ns());
        }
        if program {
            let amount = if writes { &mut file.program_write } else { &mut file.program_read };
            amount.add(event.bytes);
            let span = file.spans[usize::from(writes)].get_or_insert((event.start_ns, event.start_ns));
            span.1 = span.1.max(event.start_ns);
        }
        let Some((view, start)) = position(event).filter(|_| !event.failed) else { return };
        let length = event.bytes;
        if let Some(end) = end_offset(self.tables, view, start, length) {
            file.size_bytes = file.size_bytes.max(end);
        }
        let handle = &mut self.handles[handle_id.index()];
        if program {
            handle.program_bytes = handle.program_bytes.saturating_add(length);
        }
        if file_system {
            handle.file_system_bytes = handle.file_system_bytes.saturating_add(length);
        }
        let access = Access { writes, view, start, length, program, file_system };
        file.patterns.add(&mut handle.cursors, &access);
    }

    /// Indices of the processes by which the job is measured, in order of rank.
    fn measured(&self) -> Vec<usize> {
        let order = ordered(&self.tables.processes);
        if self.has_ranks {
            order.into_iter().filter(|&index| self.tables.processes[index].rank.is_some()).collect()
        } else {
            order.into_iter().filter(|&index| self.processes[index].events > 0).collect()
        }
    }

    fn process(&self, index: usize, duration_ns: u64) -> ProcessStatistics {
        let (process, counted) = (&self.tables.processes[index], &self.processes[index]);
        ProcessStatistics {
            process: ProcessId(index as u32),
            rank: process.rank,
            program_name: process.program_name().to_owned(),
            pid: process.pid,
            host: process.host.clone(),
            lifetime_ns: process.end_ns.unwrap_or(duration_ns).saturating_sub(process.start_ns),
            io_ns: counted.covered.busy_ns,
            think_ns: counted.think_ns,
            program: counted.levels.program(),
            file_system: counted.levels.file_system(),
            transfer: Transfer {
                bytes: counted.levels.program().data().bytes,
                busy_ns: counted.data.busy_ns,
            },
            messages: counted.messages,
        }
    }

    /// Thakur's view, and that of the uppermost library (HDF5, PnetCDF, MPI-IO) where it is another one.
    fn operations(&self, processes: u64) -> (OperationView, Option<OperationView>) {
        let view = |layer, files: &OperationTable, messages: (&OperationTable, Tally), moved: &Moved| {
            let (communication, own_messages) = messages;
            let mut table = files.clone();
            table.operations.merge(&communication.operations);
            table.acknowledgements = communication.acknowledgements;
            let Transfers { read, write, .. } = moved.transfers();
            OperationView { layer, processes, table, own_messages, read, write }
        };
        let by_layer = |layer: Layer| &self.moved_by_layer[layer as usize];
        let uppermost = [Layer::Hdf5, Layer::Pnetcdf, Layer::MpiIo]
            .into_iter()
            .map(|layer| (layer, &self.layers[layer as usize][0]))
            .find(|(_, asked)| !asked.is_empty());
        let through_mpi = self.layers[Layer::MpiIo as usize].iter().any(|table| !table.is_empty());
        let (of_mpi, of_any) = (
            (&self.communication_mpi, self.own_messages_mpi),
            (&self.communication_any, self.own_messages_any),
        );
        let (files, messages, moved) = match uppermost.is_some() && through_mpi {
            true => (self.on_mpi_files.clone(), of_mpi, &self.moved_on_mpi_files),
            false => (self.at_file_system(), of_any, &self.moved[1]),
        };
        match uppermost {
            Some((layer, asked)) if files.is_empty() => (view(layer, asked, messages, by_layer(layer)), None),
            Some((layer, asked)) => {
                let none = (&OperationTable::default(), Tally::default());
                let asked = view(layer, asked, none, by_layer(layer));
                (view(Layer::Posix, &files, messages, moved), Some(asked))
            }
            None => (view(Layer::Posix, &files, messages, moved), None),
        }
    }

    /// POSIX and stdio calls and requests to I/O servers, whoever made them.
    fn at_file_system(&self) -> OperationTable {
        let layers = Layer::ALL.into_iter().filter(|layer| layer.is_at_files());
        let tables = layers.flat_map(|layer| &self.layers[layer as usize]);
        tables.fold(OperationTable::default(), |sum, table| sum.merged(table))
    }

    fn workload(&self, duration_ns: u64) -> Workload {
        let think_ns: u64 =
            self.processes.iter().map(|process| process.think_ns).fold(0, u64::saturating_add);
        let mut workload = Workload {
            cpu_s: think_ns as f64 / 1e9,
            wall_s: duration_ns as f64 / 1e9,
            read: self.without_file[0],
            write: self.without_file[1],
            ..Workload::default()
        };
        for file in &self.files {
            if file.program_read.count + file.program_write.count == 0 {
                continue;
            }
            workload.files += 1;
            workload.data_size_bytes = workload.data_size_bytes.saturating_add(file.size_bytes);
            workload.read.merge(file.program_read);
            workload.write.merge(file.program_write);
            if file.size_bytes >= Workload::LARGE_FILE_BYTES {
                workload.large_files += 1;
                workload.large_read.merge(file.program_read);
                workload.large_write.merge(file.program_write);
            }
        }
        workload
    }

    fn take_busy(&mut self, measured: &[usize], duration_ns: u64) -> Busy {
        let (bin_ns, bins) = std::mem::replace(&mut self.busy, Bins::new(0)).finish(duration_ns);
        let mut rows: Vec<BusyRow> = Vec::new();
        let mut current = None;
        for (position, &index) in measured.iter().enumerate() {
            let row = self.busy_rows[index];
            match rows.last_mut() {
                Some(last) if row == current => last.processes += 1,
                _ => {
                    let fraction = row.and_then(|row| bins.get(row).cloned()).unwrap_or_default();
                    rows.push(BusyRow { first: position, processes: 1, fraction });
                    current = row;
                }
            }
        }
        for row in &mut rows {
            let count = row.fraction.len();
            for (bin, value) in row.fraction.iter_mut().enumerate() {
                // The last bin may reach beyond the end of the job.
                let width = if bin + 1 == count {
                    duration_ns.saturating_sub(bin as u64 * bin_ns).max(1)
                } else {
                    bin_ns
                };
                *value = (*value / (width as f64 * row.processes as f64)).min(1.0);
            }
        }
        Busy { bin_ns, rows }
    }
}

/// Indices of the processes: by rank, then those without one.
fn ordered(processes: &[Process]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..processes.len()).collect();
    order.sort_by_key(|&index| (processes[index].rank.is_none(), processes[index].rank, index));
    order
}

/// The row of each process in the picture of who was in I/O when, and the number of rows.
fn busy_rows(processes: &[Process]) -> (Vec<Option<usize>>, usize) {
    let mut order = ordered(processes);
    if processes.iter().any(|process| process.rank.is_some()) {
        order.retain(|&index| processes[index].rank.is_some());
    }
    let rows = order.len().min(BUSY_ROWS);
    let mut row_of = vec![None; processes.len()];
    for (position, &index) in order.iter().enumerate() {
        row_of[index] = Some(position * rows / order.len());
    }
    (row_of, rows)
}

/// The place of each process among those with a rank, in order of rank; none if they are few. And their number.
fn rank_places(processes: &[Process]) -> (Vec<Option<u32>>, usize) {
    let mut order = ordered(processes);
    order.retain(|&index| processes[index].rank.is_some());
    if order.len() < CROWD {
        return (Vec::new(), 0);
    }
    let mut places = vec![None; processes.len()];
    for (&index, place) in order.iter().zip(0..) {
        places[index] = Some(place);
    }
    (places, order.len())
}

/// Where an access starts: in the numbering of a view, or in bytes of the file.
fn position(event: &Seen<'_>) -> Option<(Option<ViewId>, u64)> {
    match event.target {
        Target::Extent { offset } | Target::Server { offset, .. } => Some((None, offset)),
        Target::View { view, position } => Some((Some(view), position)),
        Target::None | Target::Peer { .. } | Target::Name { .. } | Target::Mark { .. } => None,
    }
}

/// Whether a read or write is a write; none of all else.
pub(crate) fn direction(event: &Seen<'_>) -> Option<bool> {
    match event.op() {
        Op::Read => Some(false),
        Op::Write => Some(true),
        _ => None,
    }
}

/// File offset behind the last byte of an access; none if it has no byte.
fn end_offset(tables: &Tables, view: Option<ViewId>, start: u64, length: u64) -> Option<u64> {
    let last = start.checked_add(length.checked_sub(1)?)?;
    match view {
        None => last.checked_add(1),
        Some(view) => tables.views.get(view.index())?.offset_of(last)?.checked_add(1),
    }
}

fn failures(counts: &BTreeMap<(Call, i64), u64>) -> Vec<Failure> {
    let mut failures: Vec<_> =
        counts.iter().map(|(&(call, error), &count)| Failure { call, error, count }).collect();
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    failures
}

fn data_rate(bins: Bins, duration_ns: u64) -> DataRate {
    let (bin_ns, rows) = bins.finish(duration_ns);
    let mut rows = rows.into_iter();
    let mut next = || rows.next().unwrap_or_default();
    DataRate {
        bin_ns,
        program_read: next(),
        program_write: next(),
        file_system_read: next(),
        file_system_write: next(),
    }
}

fn file_statistics(
    tables: &Tables,
    files: Vec<FileCounters>,
    handles: &[HandleCounters],
) -> Vec<FileStatistics> {
    let imbalances = file_imbalances(tables, handles);
    let named = tables.files.iter().zip(files).enumerate().filter(|(_, (_, counted))| counted.used);
    named
        .map(|(index, (file, counted))| FileStatistics {
            file: FileId(index as u32),
            path: file.path.clone(),
            on: tables.file_system_of(FileId(index as u32)).cloned(),
            striping: tables.placement_of(FileId(index as u32)).and_then(|placement| placement.striping),
            size_bytes: counted.size_bytes,
            by_mpi_io: counted.by_mpi_io,
            processes: counted.processes.len() as u64,
            imbalance: imbalances.get(index).copied().flatten(),
            program: counted.levels.program(),
            file_system: counted.levels.file_system(),
            program_pattern: counted.patterns.program().clone(),
            file_system_pattern: counted.patterns.file_system().clone(),
            busy_ns: counted.covered.busy_ns,
            transfer: transfer(&counted),
            read_span: counted.spans[0],
            write_span: counted.spans[1],
            purpose: None,
        })
        .collect()
}

/// Its reads and writes at the file system if it saw any call on it.
fn transfer(file: &FileCounters) -> Transfer {
    let counted = if file.at_file_system { file.levels.file_system() } else { file.levels.program() };
    Transfer { bytes: counted.data().bytes, busy_ns: file.data.busy_ns }
}

/// Largest over mean of the bytes that each of a file's processes moved.
fn file_imbalances(tables: &Tables, handles: &[HandleCounters]) -> Vec<Option<f64>> {
    let mut shares: Vec<BTreeMap<ProcessId, [u64; 2]>> = vec![BTreeMap::new(); tables.files.len()];
    for (handle, counted) in tables.handles.iter().zip(handles) {
        if let Some(shares) = shares.get_mut(handle.file.index()) {
            let [program, file_system] = shares.entry(handle.process).or_default();
            *program = program.saturating_add(counted.program_bytes);
            *file_system = file_system.saturating_add(counted.file_system_bytes);
        }
    }
    let imbalance = |shares: &BTreeMap<ProcessId, [u64; 2]>| {
        let of = |level: usize| largest_over_mean(shares.values().map(move |bytes| bytes[level]));
        of(1).or(of(0))
    };
    shares.iter().map(imbalance).collect()
}

/// None if all are 0, or there are none.
fn largest_over_mean(values: impl Iterator<Item = u64> + Clone) -> Option<f64> {
    let largest = values.clone().max()? as f64;
    let mean = values.clone().map(|value| value as f64).sum::<f64>() / values.count() as f64;
    (mean > 0.0).then(|| largest / mean)
}

fn imbalance(processes: &[ProcessStatistics]) -> Option<Imbalance> {
    if processes.is_empty() {
        return None;
    }
    let of = |value: fn(&ProcessStatistics) -> u64| largest_over_mean(processes.iter().map(value));
    Some(Imbalance {
        program_bytes: of(|process| process.program.data().bytes),
        file_system_bytes: of(|process| process.file_system.data().bytes),
        io_time: of(|process| process.io_ns),
    })
}

#[cfg(test)]
mod tests {
    use pio_trace::{Event, File, Handle, HandleId, Process};
    use proptest::prelude::*;

    use super::*;

    const PROCESSES: u32 = 70;

    fn tables() -> Tables {
        let process = |number| Process {
            rank: (number != 3).then_some(number),
            pid: number,
            host: format!("node{}", number / 8),
            command: "app".into(),
            start_ns: 0,
            end_ns: None,
        };
        let handle = |number| Handle {
            file: FileId(number % 2),
            process: ProcessId(number / 2),
            ranks: 1,
            collective: 0,
        };
        Tables {
            processes: (0..PROCESSES).map(process).collect(),
            files: (0..2).map(|file| File { path: format!("/data/{file}") }).collect(),
            handles: (0..PROCESSES * 2).map(handle).collect(),
            ..Tables::default()
        }
    }

    /// A call of any layer; some processes are not in the tables.
    fn call() -> impl Strategy<Value = Event> {
        let calls: Vec<Call> = Call::ALL.iter().copied().filter(|call| call.layer() != Layer::Mark).collect();
        let numbers = (0..PROCESSES + 2, 0..2_u32, 0..100_u64, 0..3_000_u64, 0..5_000_u64);
        (prop::sample::select(calls), numbers, any::<bool>()).prop_map(
            |(call, (process, file, place, size, elapsed_ns), is_physical)| {
                let moves = matches!(call.op(), Op::Read | Op::Write);
                let offset = place * 1000;
                Event {
                    handle: Some(HandleId(process * 2 + file)),
                    target: match call.layer() {
                        Layer::Server => Target::Server { server: 0, offset },
                        _ if moves => Target::Extent { offset },
                        _ => Target::None,
                    },
                    size: if moves { size } else { 0 },
                    result: if moves { size as i64 } else { 0 },
                    elapsed_ns,
                    think_ns: size,
                    flags: if is_physical { Flags::PHYSICAL } else { Flags::NONE },
                    ..Event::new(call, ProcessId(process), 0)
                }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn by_process_the_sums_are_the_same(blocks in prop::collection::vec(prop::collection::vec(call(), 0..300), 1..4)) {
            let tables = tables();
            let (mut in_order, mut by_process) = (Totals::new(&tables), Totals::new(&tables));
            let mut start_ns = 0;
            for mut events in blocks {
                for event in &mut events {
                    start_ns += event.think_ns / 50;
                    event.start_ns = start_ns;
                }
                events.iter().for_each(|event| in_order.add(&Seen::of(event)));
                events.iter().for_each(|event| by_process.add_shared(&Seen::of(event)));
                events.sort_by_key(|event| event.process);
                events.iter().for_each(|event| by_process.add_own(&Seen::of(event)));
            }
            prop_assert_eq!(in_order.finish(), by_process.finish());
        }
    }
}
