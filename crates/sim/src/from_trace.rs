//! A recorded trace as a workload: the calls that the program made, and the time between them.
//!
//! Replayed are: MPI-IO opens, closes, views, seeks, changes of size, syncs, reads and writes, as the program asked for them
//! (what a strategy made of them then is left out: here another one may carry them out); the same calls of POSIX
//! that no MPI-IO call caused (what goes to a file that the MPI library opened is the library's, whenever it goes there:
//! nonblocking operations go on while the program waits for them); and collective calls of MPI in which all processes meet,
//! or get a broadcast.
//!
//! The time between calls that are replayed is processor time as far as the process used a processor: its think times, and
//! what it used within calls of MPI that are not replayed, mostly to wait for others. It takes that processor time
//! from its neighbours wherever it runs, though where ranks share processors and their MPI gives them away in waiting
//! it would take less: what it waits for is not known, and messages that were made while no file was open,
//! which are not recorded, count as think time in the same way. The rest is time that passes by itself, the time of all
//! other calls included, without the part in which the process waited for a processor: where it runs next, that may take
//! longer or shorter. A trace that knows no think times was computing all the time.
//!
//! I/O calls that are not replayed count as such with the time that they took, and with the bytes that they moved. Those that name a file, and that some machines
//! know (`stat`, `unlink`), are noted beside, with what the process did before them.
//!
//! Where all ranks came to a collective call within a small part of the time that each had been busy with other
//! things, messages that were not recorded had brought them together, and do so wherever they run.

use std::collections::{BTreeMap, BTreeSet};

use pio_layout::View;
use pio_machine::{Duration, Machine};
use pio_plan::{Direction, Hints};
use pio_trace::{
    Call, CrowdedHost, Event, FileId, Flags, GivenHints, HandleId, Layer, Op, ProcessorWait, Tables, Target,
    Trace, ViewId,
};

use crate::error::SimError;
use crate::workload::{Moves, Named, Naming, Open, Step, What, Workload};

impl Workload {
    /// The workload that a trace recorded.
    ///
    /// # Errors
    /// If the trace cannot be read, or has no process.
    pub fn from_trace(trace: &Trace) -> Result<Workload, SimError> {
        let mut reader = Reader::of(trace)?;
        for event in trace.events() {
            reader.read(&event?);
        }
        let slept = reader.take_out_waits_for_processors();
        reader.add_stretches();
        reader.add_rendezvous(slept);
        reader.add_unreplayed();
        Ok(reader.workload)
    }
}

/// Which calls of a trace a simulation of it makes on a machine.
pub struct SimulatedCalls<'t> {
    reader: Reader<'t>,
    machine: &'t Machine,
}

impl<'t> SimulatedCalls<'t> {
    /// Of this trace, on this machine.
    ///
    /// # Errors
    /// If the trace cannot be read, or has no process.
    pub fn of(trace: &'t Trace, machine: &'t Machine) -> Result<SimulatedCalls<'t>, SimError> {
        Ok(SimulatedCalls { reader: Reader::of(trace)?, machine })
    }

    /// Takes the trace's next event. Whether the simulation makes the call itself, as one of the program, whichever library made
    /// it (`true`), or another call makes it there (`false`); none if neither is so: its time is taken as recorded.
    pub fn next(&mut self, event: &Event) -> Option<bool> {
        match self.reader.read(event)? {
            Taken::Step => Some(true),
            Taken::Name(naming) => naming.is_known_to(self.machine).then_some(true),
            Taken::Within => Some(false),
        }
    }
}

/// What a call of a trace becomes.
enum Taken {
    /// A step of its rank.
    Step,
    /// A step on the machines that say what it takes.
    Name(Naming),
    /// A part of a step.
    Within,
}

/// Less than this beside the processor time between two calls is no sleep, for which a process gives its processor away,
/// but interrupts, and what two clocks are apart.
const SHORTEST_SLEEP_NS: u64 = 10_000;

/// Ranks that were busy for less than this may have come at the same time by themselves: the kernel interrupts none of them.
const BUSY_NS: u64 = 20_000_000;
/// Ranks that met are nearer than this part of the time that they were busy.
const NEAR: u64 = 20;
/// Where ranks that share processors sleep until messages come, who is woken waits for a turn of each that goes before it.
const TURN_NS: u64 = 4_000_000;
/// That makes them no later than this part of the time that they were busy.
const NEAR_BY_TURNS: u64 = 4;
/// By this part of a wait for processors, the kernel's clocks and the program's may be apart.
const CLOCKS_APART: u64 = 20;

/// Calls that give a file another size.
const RESIZING: [Call; 4] =
    [Call::Ftruncate, Call::Fallocate, Call::MpiFileSetSize, Call::MpiFilePreallocate];
/// Calls that wait until the data of a file are on its device.
const SYNCING: [Call; 3] = [Call::Fsync, Call::Fdatasync, Call::MpiFileSync];

/// What must be known of the whole trace before its calls are read.
#[derive(Default)]
struct Survey {
    /// Handles that MPI-IO calls use.
    mpi_handles: BTreeSet<HandleId>,
    /// Whether every process made the same collective calls of MPI, in one job: only then do we know that they were calls of all.
    collectives_agree: bool,
    /// Whether the trace knows think times.
    knows_think_times: bool,
    /// Of each file, when it was first opened, and whether it was cold then.
    opened: BTreeMap<FileId, (u64, bool)>,
    /// Opens for something else than the page cache, or that cut their file.
    modes: BTreeMap<HandleId, Flags>,
}

impl Survey {
    fn of(trace: &Trace) -> Result<Survey, SimError> {
        let mut survey = Survey::default();
        let ranks = ranks_of(trace.tables());
        let mut collectives: BTreeMap<u32, Vec<Together>> =
            ranks.values().map(|rank| (*rank, Vec::new())).collect();
        for event in trace.events() {
            let event = event?;
            if let (Layer::MpiIo, Some(handle)) = (event.layer(), event.handle) {
                survey.mpi_handles.insert(handle);
            }
            survey.knows_think_times |= event.think_ns > 0;
            if let (Op::Open, Layer::Posix | Layer::Stdio, Some(handle)) =
                (event.op(), event.layer(), event.handle)
            {
                let first = (event.start_ns, event.flags.contains(Flags::COLD));
                let opened =
                    survey.opened.entry(trace.tables().handles[handle.index()].file).or_insert(first);
                *opened = first.min(*opened);
                if [Flags::DIRECT, Flags::SYNC, Flags::TRUNCATE]
                    .iter()
                    .any(|mode| event.flags.contains(*mode))
                {
                    survey.modes.insert(handle, event.flags);
                }
            }
            if let (Some(together), Some(rank)) = (together(&event), ranks.get(&event.process.0)) {
                collectives.entry(*rank).or_default().push(together);
            }
        }
        let mut lists = collectives.values();
        let first = lists.next();
        survey.collectives_agree =
            !trace.tables().has_several_jobs() && first.is_some_and(|first| lists.all(|list| list == first));
        Ok(survey)
    }

    /// The numbers of the files that were cold when they were first opened.
    fn cold_files(&self) -> BTreeSet<u32> {
        self.opened.iter().filter(|(_, (_, is_cold))| *is_cold).map(|(file, _)| file.0).collect()
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

fn time(ns: u64) -> Duration {
    Duration::from_picoseconds(ns.saturating_mul(1000))
}

/// The time that calls cover, which are added in the order in which they began.
#[derive(Clone, Copy, Default)]
struct Covered {
    until_ns: u64,
    sum_ns: u64,
}

impl Covered {
    fn add(&mut self, event: &Event) {
        let from_ns = event.start_ns.max(self.until_ns);
        self.until_ns = self.until_ns.max(event.end_ns());
        self.sum_ns += self.until_ns - from_ns.min(self.until_ns);
    }
}

/// How a rank began.
#[derive(Clone, Copy, Default)]
struct Start {
    /// It was in MPI_Init since its last replayed call.
    in_init: bool,
    /// It has begun an operation that is in the trace.
    is_over: bool,
    /// So many of its first steps come after launching or MPI_Init: what passed before them passes again.
    steps: usize,
}

/// How a rank came to a collective call.
#[derive(Clone, Copy)]
struct Arrival {
    /// Index of the call in the rank's program.
    step: usize,
    at_ns: u64,
    gap_ns: u64,
}

struct Reader<'t> {
    tables: &'t Tables,
    /// Whether how processes begin is a part of the trace: a generated one begins with its program.
    starts_recorded: bool,
    survey: Survey,
    ranks: BTreeMap<u32, u32>,
    workload: Workload,
    /// A view of the whole file, for accesses that name offsets.
    whole: ViewId,
    /// How each rank began.
    starts: Vec<Start>,
    /// When each rank's last replayed call ended.
    last_end_ns: Vec<u64>,
    /// The processor time that each rank has used since.
    used_ns: Vec<u64>,
    /// The same of each rank's last call that is replayed or only names a file: when it ended, and what was used up to then.
    last_noted: Vec<(u64, u64)>,
    /// How long each rank was without a processor in MPI calls that are replayed, as far as it was not at files there.
    without_processor: Vec<WithoutProcessor>,
    /// The calls of all ranks together: the step, when it began, and how long after the call before.
    together: Vec<Vec<Arrival>>,
    /// The time that I/O calls of each rank cover: all, and those that are replayed with what they cause.
    covered: Vec<[Covered; 2]>,
    /// The same of reads and writes, all ranks together.
    moving: [Covered; 2],
    /// Its last MPI-IO call: when it ended, and its number. What it caused lies before, and has the number.
    last_mpi: Vec<(u64, u64)>,
    /// Handles that MPI-IO calls opened for themselves.
    inner: BTreeSet<HandleId>,
}

/// How long a rank was without a processor in calls of MPI: an MPI library waits by spinning, or lets others go first, so that
/// it is one whose turn it is not, unless it waits for a file.
#[derive(Clone, Copy, Debug, Default)]
struct WithoutProcessor {
    in_calls_ns: u64,
    /// What files took within them.
    at_files_ns: u64,
}

impl WithoutProcessor {
    fn add(&mut self, event: &Event, is_inside: bool, is_replayed: bool) {
        match (event.layer(), event.used_ns) {
            (Layer::Posix, _) if is_inside => {
                self.at_files_ns = self.at_files_ns.saturating_add(event.elapsed_ns)
            }
            (Layer::MpiIo | Layer::Message, Some(used_ns)) if is_replayed => {
                let without_ns = event.elapsed_ns.saturating_sub(used_ns);
                self.in_calls_ns = self.in_calls_ns.saturating_add(without_ns);
            }
            _ => {}
        }
    }

    fn waited_ns(self) -> u64 {
        self.in_calls_ns.saturating_sub(self.at_files_ns)
    }
}

impl<'t> Reader<'t> {
    fn of(trace: &'t Trace) -> Result<Reader<'t>, SimError> {
        let survey = Survey::of(trace)?;
        let tables = trace.tables();
        let ranks = ranks_of(tables);
        let count = ranks.len();
        if count == 0 {
            return Err(SimError::NoProcess { workload: tables.job.clone() });
        }
        let mut views = tables.views.clone();
        let whole = ViewId(views.len() as u32);
        views.push(View::contiguous(0));
        let (handles, groups) = handles_of(tables, &survey, &ranks);
        let workload = Workload {
            name: tables.job.clone(),
            files: tables.files.clone(),
            views,
            groups,
            programs: vec![Vec::new(); count],
            cold_files: survey.cold_files(),
            modes: survey.modes.clone(),
            stretches: Vec::new(),
            unreplayed: Vec::new(),
            unreplayed_moves: Moves::default(),
            named: vec![Vec::new(); count],
            untold_waits: Duration::ZERO,
            hints: hints_of(tables, &handles),
            site_hints: Hints::of_program(tables.site_hints()),
            handles,
        };
        let (last_end_ns, used_ns) = (vec![0; count], vec![0; count]);
        let (last_mpi, inner, together) = (vec![(0, 0); count], BTreeSet::new(), vec![Vec::new(); count]);
        let starts_recorded = tables.notes.iter().any(|(name, _)| name == "recorder");
        Ok(Reader {
            tables,
            starts_recorded,
            survey,
            ranks,
            workload,
            whole,
            starts: vec![Start::default(); count],
            last_end_ns,
            used_ns,
            last_noted: vec![(0, 0); count],
            without_processor: vec![WithoutProcessor::default(); count],
            together,
            covered: vec![[Covered::default(); 2]; count],
            moving: [Covered::default(); 2],
            last_mpi,
            inner,
        })
    }

    fn read(&mut self, event: &Event) -> Option<Taken> {
        // What the program says of itself is no call to be replayed.
        if event.layer() == Layer::Mark {
            return None;
        }
        let rank = *self.ranks.get(&event.process.0)? as usize;
        let (until_ns, number) = self.last_mpi[rank];
        let is_caused = event.is_physical() && number != 0 && event.operation == number;
        let is_of_mpi = event.handle.is_some_and(|handle| self.inner.contains(&handle));
        let is_within = event.start_ns < until_ns || is_caused;
        let is_of_init = self.is_of_init(rank, event);
        let is_inside = is_of_init || (event.layer() == Layer::Posix && (is_within || is_of_mpi));
        // Where calls say what caused them, another thread's file does not become the library's.
        if is_inside && event.op() == Op::Open && (is_caused || number == 0) {
            self.inner.extend(event.handle);
        }
        if event.layer() == Layer::MpiIo {
            self.last_mpi[rank] = (until_ns.max(event.end_ns()), event.operation);
        }
        let what = if is_inside { None } else { self.call(event) };
        if event.layer() != Layer::Message {
            let [all, replayed] = &mut self.covered[rank];
            all.add(event);
            if is_inside || what.is_some() || event.layer() == Layer::Server {
                replayed.add(event);
            }
        }
        self.add_move(event, is_inside || is_caused || what.is_some());
        self.without_processor[rank].add(event, is_inside, what.is_some());
        if is_inside {
            return (!is_of_init).then_some(Taken::Within);
        }
        self.used_ns[rank] = self.used_ns[rank].saturating_add(event.think_ns);
        let Some(what) = what else {
            if is_within {
                return None;
            }
            let naming = self.note_name(rank, event);
            self.leave_out(rank, event);
            return naming.map(Taken::Name);
        };
        let gap_ns = event.start_ns.saturating_sub(self.last_end_ns[rank]);
        let used_ns = std::mem::take(&mut self.used_ns[rank]);
        let mut think_ns = match self.survey.knows_think_times {
            true if self.is_start(rank) => 0,
            true => used_ns.min(gap_ns),
            false => gap_ns,
        };
        if think_ns > 0 && gap_ns - think_ns < SHORTEST_SLEEP_NS {
            think_ns = gap_ns;
        }
        if self.is_start(rank) {
            self.starts[rank].in_init = false;
            self.starts[rank].steps = self.workload.programs[rank].len() + 1;
        }
        if self.is_of_all(&what) {
            let step = self.workload.programs[rank].len();
            self.together[rank].push(Arrival { step, at_ns: event.start_ns, gap_ns });
        }
        self.workload.programs[rank].push(Step {
            think: time(think_ns),
            idle: time(gap_ns - think_ns),
            what,
        });
        self.last_end_ns[rank] = self.last_end_ns[rank].max(event.end_ns());
        self.last_noted[rank] = (self.last_end_ns[rank], 0);
        Some(Taken::Step)
    }

    /// Takes note of a read or write. Of libraries above MPI-IO, the calls that they make count.
    fn add_move(&mut self, event: &Event, is_replayed: bool) {
        let is_of_files = matches!(event.layer(), Layer::MpiIo | Layer::Posix | Layer::Stdio);
        let bytes = event.transferred();
        if !is_of_files || !matches!(event.op(), Op::Read | Op::Write) || (bytes == 0 && !is_replayed) {
            return;
        }
        let [all, replayed] = &mut self.moving;
        all.add(event);
        if is_replayed {
            replayed.add(event);
            return;
        }
        let moves = &mut self.workload.unreplayed_moves;
        let sum = if event.op() == Op::Read { &mut moves.bytes_read } else { &mut moves.bytes_written };
        *sum = sum.saturating_add(bytes);
    }

    /// Whether a call is MPI_Init's own. It is the first operation of a process of MPI, and no event itself.
    fn is_of_init(&mut self, rank: usize, event: &Event) -> bool {
        const FIRST: u64 = 1;
        let start = &mut self.starts[rank];
        start.is_over |= event.operation >= FIRST && !event.is_physical();
        let is_mpi = self.tables.processes[event.process.0 as usize].rank.is_some();
        let is_of_init = is_mpi && !start.is_over && event.is_physical() && event.operation == FIRST;
        start.in_init |= is_of_init;
        is_of_init
    }

    /// Whether a rank's next step comes after launching, or MPI_Init, in which ranks wait for each other: they come out of it as they
    /// came.
    fn is_start(&self, rank: usize) -> bool {
        self.starts_recorded && (self.workload.programs[rank].is_empty() || self.starts[rank].in_init)
    }

    /// Takes note of a call that only names a file, and of what the process did since the call before.
    fn note_name(&mut self, rank: usize, event: &Event) -> Option<Naming> {
        let (naming, Target::Name { file, .. }) = (Naming::of(event.call)?, event.target) else {
            return None;
        };
        let (last_end_ns, last_used_ns) = self.last_noted[rank];
        // One that another thread made at the same time has no place between the others.
        if event.start_ns < last_end_ns {
            return None;
        }
        let gap_ns = event.start_ns - last_end_ns;
        let think_ns = match self.survey.knows_think_times {
            true if self.is_start(rank) && self.workload.named[rank].is_empty() => 0,
            true => (self.used_ns[rank] - last_used_ns).min(gap_ns),
            false => gap_ns,
        };
        self.workload.named[rank].push(Named {
            before: self.workload.programs[rank].len(),
            think: time(think_ns),
            idle: time(gap_ns - think_ns),
            call: event.call,
            file: file.0,
            elapsed: time(event.elapsed_ns),
        });
        self.last_noted[rank] = (event.end_ns(), self.used_ns[rank]);
        Some(naming)
    }

    /// Takes note of a call that is not replayed, nor within one that is.
    fn leave_out(&mut self, rank: usize, event: &Event) {
        if !matches!(event.layer(), Layer::Message | Layer::MpiIo) {
            return;
        }
        match event.used_ns {
            Some(used_ns) => self.used_ns[rank] = self.used_ns[rank].saturating_add(used_ns),
            None => {
                let untold = &mut self.workload.untold_waits;
                *untold = untold.saturating_add(time(event.elapsed_ns));
            }
        }
    }

    /// Whether all ranks make the call together.
    fn is_of_all(&self, what: &What) -> bool {
        let (What::Open(handle)
        | What::Close(handle)
        | What::SetView(handle, _)
        | What::Resize(handle, ..)
        | What::Sync(handle, _)
        | What::Access { handle, collective: true, .. }) = what
        else {
            return false;
        };
        let group = self.workload.handles[handle.index()].group;
        group.is_some_and(|group| self.workload.groups[group as usize].len() == self.ranks.len())
    }

    /// Lets the ranks meet before the calls to which they came together; whether they slept between their calls.
    fn add_rendezvous(&mut self, slept: bool) {
        let calls = self.together.first().map_or(0, Vec::len);
        // A generated trace says all that its ranks do; and calls that were lost would pair others.
        let is_whole = self.together.iter().all(|arrivals| arrivals.len() == calls);
        if !self.starts_recorded || !is_whole || self.ranks.len() < 2 {
            return;
        }
        let turns_ns = if slept { self.turns_ns() } else { 0 };
        let met: Vec<usize> = (0..calls).filter(|call| self.met_before(*call, turns_ns)).collect();
        if met.is_empty() {
            return;
        }
        let programs = self.workload.programs.iter_mut().zip(&mut self.workload.named);
        for ((program, named), arrivals) in programs.zip(&self.together) {
            let steps: Vec<usize> = met.iter().map(|call| arrivals[*call].step).collect();
            add_rendezvous_before(program, &steps);
            for named in named {
                named.before += steps.partition_point(|step| *step < named.before);
            }
        }
    }

    /// The turns of all other ranks that share the processor of one.
    fn turns_ns(&self) -> u64 {
        let others = |host: &CrowdedHost| host.ranks.div_ceil(host.processors) - 1;
        let most = CrowdedHost::of(self.tables).iter().map(others).max().unwrap_or(0);
        most.saturating_mul(TURN_NS)
    }

    /// Whether all ranks came together to a collective call, of those of all ranks the one with this number, but for what turns may
    /// have held them up.
    fn met_before(&self, call: usize, turns_ns: u64) -> bool {
        let arrivals = || self.together.iter().map(|arrivals| arrivals[call]);
        let first_ns = arrivals().map(|one| one.at_ns).min().unwrap_or(0);
        let last_ns = arrivals().map(|one| one.at_ns).max().unwrap_or(0);
        let busy_ns = arrivals().map(|one| one.gap_ns).min().unwrap_or(0);
        let near_ns = (busy_ns / NEAR + turns_ns).min(busy_ns / NEAR_BY_TURNS);
        busy_ns >= BUSY_NS && last_ns - first_ns <= near_ns
    }

    fn add_unreplayed(&mut self) {
        let unreplayed_ns = |[all, replayed]: &[Covered; 2]| all.sum_ns.saturating_sub(replayed.sum_ns);
        self.workload.unreplayed = self.covered.iter().map(|covered| time(unreplayed_ns(covered))).collect();
        self.workload.unreplayed_moves.time = time(unreplayed_ns(&self.moving));
    }

    /// How long ranks used a processor between calls before they gave it away, in the mean. In each call they may have slept
    /// once.
    fn add_stretches(&mut self) {
        self.workload.stretches = vec![None; self.ranks.len()];
        for wait in ProcessorWait::of(self.tables) {
            let (Some(rank), Some(sleeps)) = (self.ranks.get(&wait.process.0), wait.sleeps) else { continue };
            let program = &self.workload.programs[*rank as usize];
            let think: u128 = program.iter().map(|step| u128::from(step.think.picoseconds())).sum();
            let between = u128::from(sleeps.saturating_sub(program.len() as u64));
            let stretch = think.checked_div(between).filter(|stretch| *stretch > 0);
            self.workload.stretches[*rank as usize] =
                stretch.map(|stretch| Duration::from_picoseconds(stretch as u64));
        }
    }

    /// Takes the time out in which each rank waited for a processor. The kernel counted it from MPI_Init to the end; what of it was not
    /// within calls of MPI that are replayed must have passed between calls, beside processor time and sleeps. Whether anything but
    /// errors of the clocks is left is asked of all ranks at once: they may all be near to that, and those on one side of it would else
    /// come late to where they meet the others. Says whether they slept.
    fn take_out_waits_for_processors(&mut self) -> bool {
        let mut slept = Vec::new();
        let (mut all_left, mut all_errors) = (0_u128, 0_u128);
        for wait in ProcessorWait::of(self.tables) {
            let Some(rank) = self.ranks.get(&wait.process.0) else { continue };
            let launched = self.starts[*rank as usize].steps.max(1);
            let Some(program) = self.workload.programs[*rank as usize].get(launched..) else { continue };
            let idle: u128 = program.iter().map(|step| u128::from(step.idle.picoseconds())).sum();
            let within_ns = self.without_processor[*rank as usize].waited_ns();
            let between_ps = u128::from(wait.waited_ns.saturating_sub(within_ns)) * 1000;
            let left = idle.saturating_sub(between_ps);
            all_left += left;
            all_errors += u128::from(wait.waited_ns / CLOCKS_APART) * 1000;
            slept.push((*rank as usize, launched, idle, left));
        }
        for (rank, launched, idle, left) in slept {
            let rest = if all_left > all_errors { left } else { 0 };
            let program = &mut self.workload.programs[rank][launched..];
            for step in program.iter_mut().filter(|step| step.idle > Duration::ZERO) {
                let part = u128::from(step.idle.picoseconds()) * rest / idle;
                step.idle = Duration::from_picoseconds(part as u64);
            }
        }
        all_left > all_errors
    }

    /// The call to replay, if the event is one.
    fn call(&self, event: &Event) -> Option<What> {
        let collective = is_collective(event);
        if event.layer() == Layer::Message {
            return Some(match together(event).filter(|_| self.survey.collectives_agree)? {
                Together::Broadcast { root, bytes } => What::Broadcast { root, bytes },
                Together::Meet { call } => What::Meet { call, bytes: event.size },
            });
        }
        let handle = event.handle?;
        // A collective call that failed for one rank was still made by the others, which wait for it.
        let takes_part = collective
            || (event.layer() == Layer::MpiIo && matches!(event.op(), Op::Close | Op::View | Op::Sync));
        if event.result < 0 && !takes_part {
            return None;
        }
        match (event.layer(), event.op()) {
            (Layer::MpiIo | Layer::Posix, Op::Open) => Some(What::Open(handle)),
            (Layer::MpiIo | Layer::Posix, Op::Close) => Some(What::Close(handle)),
            (Layer::MpiIo | Layer::Posix, Op::Seek) => Some(What::Seek(handle, event.call)),
            _ if RESIZING.contains(&event.call) => {
                let from = if let Target::Extent { offset } = event.target { offset } else { 0 };
                Some(What::Resize(handle, event.call, from.saturating_add(event.size)))
            }
            _ if SYNCING.contains(&event.call) => Some(What::Sync(handle, event.call)),
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
                    Target::None
                    | Target::Peer { .. }
                    | Target::Server { .. }
                    | Target::Name { .. }
                    | Target::Mark { .. } => (self.whole, 0),
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

/// Lets a rank meet the others before some steps of its program, ascending: after what passed before each.
fn add_rendezvous_before(program: &mut Vec<Step>, steps: &[usize]) {
    let all = Vec::with_capacity(program.len() + steps.len());
    let mut next = steps.iter().peekable();
    for (index, mut step) in std::mem::replace(program, all).into_iter().enumerate() {
        if next.next_if(|next| **next == index).is_some() {
            let (think, idle) = (std::mem::take(&mut step.think), std::mem::take(&mut step.idle));
            program.push(Step { think, idle, what: What::Rendezvous });
        }
        program.push(step);
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
    // All ranks of an open have the same group: its members are looked at once.
    let mut of_opens: BTreeMap<u64, u32> = BTreeMap::new();
    let mut opens = Vec::with_capacity(tables.handles.len());
    for (index, handle) in tables.handles.iter().enumerate() {
        let rank = rank_of(handle).unwrap_or(0);
        let mut open = Open { file: handle.file.0, rank, group: None, collective: handle.collective };
        let takes_part = rank_of(handle).is_some();
        if takes_part && survey.mpi_handles.contains(&HandleId(index as u32)) {
            let mut group_of = |members: Vec<u32>| {
                let count = groups.len() as u32;
                *groups.entry(members).or_insert(count)
            };
            open.group = Some(match together.get(&handle.collective) {
                Some(members) => *of_opens
                    .entry(handle.collective)
                    .or_insert_with(|| group_of(members.iter().copied().collect())),
                None => {
                    next += 1;
                    open.collective = next;
                    group_of(vec![rank])
                }
            });
        }
        opens.push(open);
    }
    let mut lists = vec![Vec::new(); groups.len()];
    for (members, index) in groups {
        lists[index as usize] = members;
    }
    (opens, lists)
}

/// The hints that the program gave, by collective open: those of the first rank count, which the others are to give alike.
fn hints_of(tables: &Tables, handles: &[Open]) -> BTreeMap<u64, Hints> {
    let mut hints = BTreeMap::new();
    for given in GivenHints::of(tables) {
        let Some(open) = handles.get(given.handle.index()).filter(|open| open.group.is_some()) else {
            continue;
        };
        let pairs = given.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        hints.entry(open.collective).or_insert_with(|| Hints::of_program(pairs));
    }
    hints
}

/// A collective call of MPI in which the ranks wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Together {
    Broadcast { root: u32, bytes: u64 },
    Meet { call: Call },
}

fn together(event: &Event) -> Option<Together> {
    if event.is_physical() {
        return None;
    }
    match (event.call, event.target) {
        (Call::MpiBcast, Target::Peer { rank }) => {
            Some(Together::Broadcast { root: rank, bytes: event.size })
        }
        (
            Call::MpiBarrier
            | Call::MpiAllreduce
            | Call::MpiAllgather
            | Call::MpiAllgatherv
            | Call::MpiAlltoall
            | Call::MpiAlltoallv,
            _,
        ) => Some(Together::Meet { call: event.call }),
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

    fn process(end_ns: u64) -> Process {
        Process {
            rank: Some(0),
            pid: 1,
            host: "node1".into(),
            command: "app".into(),
            start_ns: 0,
            end_ns: Some(end_ns),
        }
    }

    #[test]
    fn hints_that_the_program_gave_are_its_first_ranks() {
        let handle = |rank| Handle { file: FileId(0), process: ProcessId(rank), ranks: 2, collective: 7 };
        let given = |handle, pairs: &[(&str, &str)]| {
            let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            let given = GivenHints { handle: HandleId(handle), pairs: pairs.iter().map(pair).collect() };
            (GivenHints::NOTE.to_owned(), given.to_string())
        };
        let site = (Tables::SITE_HINTS.to_owned(), "cb_nodes=8, striping_unit=4096".to_owned());
        let tables = Tables {
            processes: vec![process(100), Process { rank: Some(1), pid: 2, ..process(100) }],
            files: vec![File { path: "/f".into() }],
            handles: vec![handle(0), handle(1)],
            notes: vec![
                given(0, &[("cb_nodes", "1"), ("romio_cb_write", "enable"), ("colour", "red")]),
                given(1, &[("cb_nodes", "2")]),
                given(9, &[("cb_nodes", "3")]),
                site,
            ],
            ..Tables::default()
        };
        let open = |rank: u32| Event {
            handle: Some(HandleId(rank)),
            elapsed_ns: 5,
            ..Event::new(Call::MpiFileOpen, ProcessId(rank), 10)
        };
        let workload = workload_of(tables, &[open(0), open(1)]);
        let texts: Vec<_> = workload.hints.iter().map(|(open, hints)| (*open, hints.to_text())).collect();
        assert_eq!(texts, [(7, "cb_nodes=1,romio_cb_write=enable".to_owned())]);
        assert_eq!(workload.site_hints.to_text(), "cb_nodes=8,striping_unit=4096");
    }

    fn workload_of(tables: Tables, events: &[Event]) -> Workload {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pio");
        let mut writer = TraceWriter::create(&path, tables).unwrap();
        events.iter().for_each(|event| writer.push(event).unwrap());
        writer.finish().unwrap();
        Workload::from_trace(&Trace::open(&path).unwrap()).unwrap()
    }

    /// Two ranks, busy for so long before they open a file together, and so far apart when they do.
    fn opened(busy_ns: u64, apart_ns: u64, notes: &[(&str, &str)]) -> Workload {
        let note = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let end_ns = busy_ns + apart_ns + 10;
        let handle = |rank| Handle { file: FileId(0), process: ProcessId(rank), ranks: 2, collective: 1 };
        let tables = Tables {
            processes: vec![process(end_ns), Process { rank: Some(1), pid: 2, ..process(end_ns) }],
            files: vec![File { path: "/f".into() }],
            handles: vec![handle(0), handle(1)],
            notes: notes.iter().map(note).collect(),
            ..Tables::default()
        };
        let open = |rank: u32| Event {
            handle: Some(HandleId(rank)),
            think_ns: busy_ns,
            elapsed_ns: 5,
            ..Event::new(Call::MpiFileOpen, ProcessId(rank), busy_ns + apart_ns * u64::from(rank))
        };
        workload_of(tables, &[open(0), open(1)])
    }

    #[test]
    fn who_comes_together_after_much_work_has_met() {
        let recorded = [("recorder", "")];
        let met = opened(1_000_000_000, 1_000_000, &recorded);
        let steps = |rank: usize| met.programs[rank].iter().map(|step| step.what.clone()).collect::<Vec<_>>();
        assert_eq!(steps(1), [What::Rendezvous, What::Open(HandleId(1))]);
        assert_eq!((met.programs[0][1].think, met.programs[0][1].idle), (Duration::ZERO, Duration::ZERO));
        // Apart by a tenth of their work; after little work; and in a generated trace.
        for alone in [
            opened(1_000_000_000, 100_000_000, &recorded),
            opened(1_000_000, 1_000, &recorded),
            opened(1_000_000_000, 1_000_000, &[]),
        ] {
            assert_eq!(alone.programs.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1]);
        }
    }

    /// Two ranks that open a file together and close it after 50 ms of computing in 100: so far apart, and what is noted of them.
    fn closed(apart_ns: u64, processors: &str, waited_ns: [u64; 2]) -> Workload {
        const MS: u64 = 1_000_000;
        let handle = |rank| Handle { file: FileId(0), process: ProcessId(rank), ranks: 2, collective: 1 };
        let waits = [0, 1].map(|rank| ProcessorWait {
            process: ProcessId(rank),
            waited_ns: waited_ns[rank as usize],
            sleeps: None,
        });
        let mut notes = vec![("recorder".to_owned(), String::new())];
        notes.push((CrowdedHost::NOTE.to_owned(), processors.to_owned()));
        notes.extend(waits.map(|wait| (ProcessorWait::NOTE.to_owned(), wait.to_string())));
        let tables = Tables {
            processes: vec![process(200 * MS), Process { rank: Some(1), pid: 2, ..process(200 * MS) }],
            files: vec![File { path: "/f".into() }],
            handles: vec![handle(0), handle(1)],
            notes,
            ..Tables::default()
        };
        let event = |call, rank: u32, start_ns, think_ns, operation| Event {
            handle: Some(HandleId(rank)),
            think_ns,
            operation,
            elapsed_ns: 5,
            ..Event::new(call, ProcessId(rank), start_ns)
        };
        let close =
            |rank: u32| event(Call::MpiFileClose, rank, 100 * MS + apart_ns * u64::from(rank), 50 * MS, 2);
        let open = |rank: u32| event(Call::MpiFileOpen, rank, 10, 5, 1);
        workload_of(tables, &[open(0), open(1), close(0), close(1)])
    }

    fn has_met(workload: &Workload) -> bool {
        workload.programs[0].iter().any(|step| step.what == What::Rendezvous)
    }

    #[test]
    fn who_sleeps_until_messages_come_is_late_by_turns_of_a_processor() {
        const MS: u64 = 1_000_000;
        let crowded = "node1 1";
        // Apart by more than a twentieth of 100 ms; and by more than a turn beyond that.
        assert!(has_met(&closed(8 * MS, crowded, [10 * MS; 2])));
        assert!(!has_met(&closed(10 * MS, crowded, [10 * MS; 2])));
        // Each with a processor; and if all that they did not compute, they waited for one.
        assert!(!has_met(&closed(8 * MS, "node1 2", [10 * MS; 2])));
        assert!(!has_met(&closed(8 * MS, crowded, [60 * MS; 2])));
    }

    #[test]
    fn whether_ranks_slept_is_asked_of_all_at_once() {
        const MS: u64 = 1_000_000;
        let idle = |waited_ns| {
            let found = closed(0, "node1 1", waited_ns);
            let of =
                |program: &Vec<Step>| program.iter().map(|step| step.idle.picoseconds() / 1000).sum::<u64>();
            // But for what passed before they came.
            [of(&found.programs[0]), of(&found.programs[1])].map(|idle| (idle - 10) / MS)
        };
        // 2 ms are less than a twentieth of what the second waited, and 4 more than that of what the first did.
        assert_eq!(idle([46 * MS, 48 * MS]), [3, 1]);
        assert_eq!(idle([49 * MS, 48 * MS]), [0, 0]);
    }

    #[test]
    fn io_calls_that_are_not_replayed_count_with_their_time() {
        let tables = Tables {
            processes: vec![process(1_000)],
            files: vec![File { path: "/f".into() }],
            handles: vec![Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 1 }],
            ..Tables::default()
        };
        let event = |call, start_ns, elapsed_ns, operation, flags| Event {
            handle: Some(HandleId(0)),
            elapsed_ns,
            operation,
            flags,
            ..Event::new(call, ProcessId(0), start_ns)
        };
        let target = Target::Name { file: FileId(0), other: None };
        let workload = workload_of(
            tables,
            &[
                event(Call::MpiFileOpen, 10, 100, 1, Flags::NONE),
                event(Call::Open, 20, 50, 1, Flags::PHYSICAL),
                Event { handle: None, target, ..event(Call::Unlink, 200, 7, 0, Flags::NONE) },
                event(Call::H5Dwrite, 300, 100, 2, Flags::NONE),
                event(Call::MpiFileWriteAtAll, 320, 60, 3, Flags::PHYSICAL),
                event(Call::Pwrite, 330, 40, 3, Flags::PHYSICAL),
                event(Call::MpiBarrier, 500, 30, 0, Flags::NONE),
            ],
        );
        let whats =
            workload.programs[0].iter().filter(|step| !matches!(step.what, What::Meet { .. })).count();
        assert_eq!(whats, 2);
        assert_eq!(workload.unreplayed, [Duration::from_picoseconds((7 + 40) * 1000)]);
        let named =
            workload.named[0].iter().map(|named| (named.before, named.call, named.think, named.elapsed));
        assert_eq!(named.collect::<Vec<_>>(), [(1, Call::Unlink, time(90), time(7))]);
    }

    /// Bandwidth is bytes over time: both or none of a call have to count.
    #[test]
    fn what_c_streams_move_counts_with_their_time() {
        let tables = || Tables {
            processes: vec![process(10_000)],
            files: vec![File { path: "/f".into() }],
            handles: vec![Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 0 }],
            ..Tables::default()
        };
        let event = |call, start_ns, elapsed_ns, result| Event {
            handle: Some(HandleId(0)),
            elapsed_ns,
            result,
            target: Target::Extent { offset: 0 },
            ..Event::new(call, ProcessId(0), start_ns)
        };
        let streams = [
            event(Call::Fopen, 10, 10, 0),
            event(Call::Fwrite, 100, 2_000, 4_000),
            event(Call::Fread, 2_500, 400, 1_000),
            event(Call::Fread, 3_000, 500, -5),
        ];
        let machine = pio_machine::Machine::built_in("sp-argonne").unwrap();
        let predict = |workload: &Workload| {
            let (strategy, hints, options) =
                (pio_plan::Strategy::Independent, Hints::default(), crate::Options::default());
            crate::simulate(&machine, workload, strategy, &hints, &options, None, &mut |_| ()).unwrap()
        };
        let alone = workload_of(tables(), &streams);
        let expected = Moves { bytes_read: 1_000, bytes_written: 4_000, time: time(2_400) };
        assert_eq!(alone.unreplayed_moves, expected);
        let found = predict(&alone);
        assert_eq!((found.bytes_read, found.bytes_written, found.moving), (1_000, 4_000, time(2_400)));
        // Beside a call that is simulated, what the simulation says of it counts.
        let write = event(Call::Pwrite, 4_000, 1_000, 5_000);
        let both = workload_of(tables(), &[&streams[..], std::slice::from_ref(&write)].concat());
        assert_eq!(both.unreplayed_moves, expected);
        let (found, of_write) = (predict(&both), predict(&workload_of(tables(), &[write])));
        assert_eq!((found.bytes_read, found.bytes_written), (1_000, 9_000));
        assert_eq!(found.moving, of_write.moving.saturating_add(time(2_400)));
    }

    #[test]
    fn a_rank_that_slept_between_its_calls_gives_its_processor_away_there() {
        let handle = Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 0 };
        let stretches = |wait: &str| {
            let tables = Tables {
                processes: vec![process(100_000)],
                files: vec![File { path: "/f".into() }],
                handles: vec![handle.clone()],
                notes: vec![(ProcessorWait::NOTE.into(), wait.into())],
                ..Tables::default()
            };
            let event = |call, start_ns, think_ns| Event {
                handle: Some(HandleId(0)),
                elapsed_ns: 1_000,
                think_ns,
                ..Event::new(call, ProcessId(0), start_ns)
            };
            let calls = [(Call::Open, 9_000), (Call::Ftruncate, 30_000), (Call::Fsync, 50_000)];
            let events = calls.map(|(call, start_ns)| event(call, start_ns, 9_000));
            let workload = workload_of(tables, &events);
            let whats: Vec<_> = workload.programs[0].iter().map(|step| step.what.clone()).collect();
            let handle = HandleId(0);
            let expected = [
                What::Open(handle),
                What::Resize(handle, Call::Ftruncate, 0),
                What::Sync(handle, Call::Fsync),
            ];
            assert_eq!(whats, expected);
            workload.stretches[0].map(|stretch| stretch.picoseconds() / 1000)
        };
        // 27 us of processor time, and in each of three calls it may have slept.
        assert_eq!(stretches("process 0: 5 ns, 12 sleeps"), Some(3_000));
        assert_eq!(stretches("process 0: 5 ns, 3 sleeps"), None);
        assert_eq!(stretches("process 0: 5 ns"), None);
        assert_eq!(stretches("process 1: 5 ns, 12 sleeps"), None);
    }

    #[test]
    fn the_time_between_calls_is_processor_time_and_what_passes_beside_it() {
        let handle = Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 0 };
        let tables = |notes: &[(&str, &str)]| Tables {
            processes: vec![process(100_000)],
            files: vec![File { path: "/f".into() }],
            handles: vec![handle.clone()],
            notes: notes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..Tables::default()
        };
        let events = |knows: bool| {
            let event = |call, start_ns, elapsed_ns, think_ns| Event {
                handle: Some(HandleId(0)),
                elapsed_ns,
                think_ns: if knows { think_ns } else { 0 },
                ..Event::new(call, ProcessId(0), start_ns)
            };
            // The second call is not replayed; what was computed before it was computed before the third.
            [
                event(Call::Open, 10_000, 1_000, 10_000),
                event(Call::Stat, 20_000, 5_000, 3_000),
                event(Call::Close, 41_000, 1_000, 2_000),
            ]
        };
        let gaps = |notes: &[(&str, &str)], knows| {
            let workload = workload_of(tables(notes), &events(knows));
            let gap = |step: &Step| (step.think.picoseconds() / 1000, step.idle.picoseconds() / 1000);
            workload.programs[0].iter().map(gap).collect::<Vec<_>>()
        };
        // How a recorded process began, it begins again.
        assert_eq!(gaps(&[], true), [(10_000, 0), (5_000, 25_000)]);
        assert_eq!(gaps(&[("recorder", "")], true), [(0, 10_000), (5_000, 25_000)]);
        // It had no processor for a part of the time in which it did not compute.
        let waited = |wait: &str| gaps(&[("recorder", ""), (ProcessorWait::NOTE, wait)], true);
        assert_eq!(waited("process 0: 14000 ns"), [(0, 10_000), (5_000, 11_000)]);
        assert_eq!(waited("process 0: 99000 ns"), [(0, 10_000), (5_000, 0)]);
        assert_eq!(gaps(&[], false), [(10_000, 0), (30_000, 0)]);
    }

    /// Between two calls of MPI-IO it slept for 300 us; it waited for a processor within them, and in its first for a file.
    #[test]
    fn who_waited_for_a_processor_within_calls_slept_between_them() {
        let idle_us = |waited: &str| {
            let tables = Tables {
                processes: vec![process(1_000_000)],
                files: vec![File { path: "/f".into() }],
                handles: vec![Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 1 }],
                notes: vec![(ProcessorWait::NOTE.into(), waited.into())],
                ..Tables::default()
            };
            let event = |call, start_ns, elapsed_ns, operation| Event {
                handle: Some(HandleId(0)),
                elapsed_ns,
                operation,
                used_ns: Some(10_000),
                think_ns: 5_000,
                ..Event::new(call, ProcessId(0), start_ns)
            };
            let at_files = Event { used_ns: None, ..event(Call::Open, 60_000, 40_000, 1) };
            let events = [
                event(Call::MpiFileOpen, 50_000, 150_000, 1),
                Event { flags: Flags::PHYSICAL, ..at_files },
                event(Call::MpiFileClose, 505_000, 110_000, 2),
            ];
            let workload = workload_of(tables, &events);
            workload.programs[0].last().unwrap().idle.picoseconds() / 1_000_000
        };
        // Within calls it had no processor for 140 and 100 us, of which files may have taken 40.
        assert_eq!(idle_us("process 0: 200000 ns"), 300);
        assert_eq!(idle_us("process 0: 250000 ns"), 250);
        assert_eq!(idle_us("process 0: 900000 ns"), 0);
    }

    #[test]
    fn opens_past_the_page_cache_are_known() {
        let handle = || Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 0 };
        let tables = Tables {
            processes: vec![process(100_000)],
            files: vec![File { path: "/f".into() }],
            handles: vec![handle(), handle(), handle()],
            ..Tables::default()
        };
        let opened = |number: u32, flags| Event {
            handle: Some(HandleId(number)),
            flags,
            ..Event::new(Call::Open, ProcessId(0), u64::from(number) * 1000)
        };
        let direct = Flags::DIRECT | Flags::SYNC;
        let events = [opened(0, Flags::APPEND), opened(1, direct), opened(2, Flags::SYNC)];
        let modes = workload_of(tables, &events).modes;
        assert_eq!(modes, [(HandleId(1), direct), (HandleId(2), Flags::SYNC)].into());
    }

    /// Another thread of the MPI opens a file of its own meanwhile; and the process waited for a processor all the time.
    #[test]
    fn ranks_come_out_of_mpi_init_as_they_came() {
        let handle = || Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 1 };
        let tables = Tables {
            processes: vec![process(200_000)],
            files: vec![File { path: "/f".into() }],
            handles: vec![handle(), handle(), handle()],
            notes: [("recorder", ""), (ProcessorWait::NOTE, "process 0: 500000 ns")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            ..Tables::default()
        };
        let event = |call, handle, start_ns, think_ns, operation| Event {
            handle: Some(HandleId(handle)),
            elapsed_ns: 1_000,
            think_ns,
            operation,
            flags: if operation == 1 { Flags::PHYSICAL } else { Flags::NONE },
            ..Event::new(call, ProcessId(0), start_ns)
        };
        let workload = workload_of(
            tables,
            &[
                event(Call::Open, 0, 10_000, 0, 1),
                event(Call::Open, 1, 20_000, 5_000, 0),
                event(Call::Read, 0, 30_000, 0, 1),
                event(Call::MpiFileOpen, 2, 100_000, 1_000, 2),
                event(Call::MpiFileClose, 2, 150_000, 2_000, 3),
            ],
        );
        let gap = |step: &Step| (step.think.picoseconds() / 1000, step.idle.picoseconds() / 1000);
        let gaps: Vec<_> = workload.programs[0].iter().map(gap).collect();
        assert_eq!(gaps, [(0, 20_000), (0, 79_000), (2_000, 0)]);
    }

    /// Between two calls that are replayed a rank waits 10 ms for a message, and computes 5 ms.
    #[test]
    fn who_waits_by_spinning_uses_its_processor() {
        const MS: u64 = 1_000_000;
        let handle = Handle { file: FileId(0), process: ProcessId(0), ranks: 1, collective: 1 };
        let before_the_close = |wait: &Event| {
            let tables = Tables {
                processes: vec![process(100 * MS)],
                files: vec![File { path: "/f".into() }],
                handles: vec![handle.clone()],
                ..Tables::default()
            };
            let event = |call, start_ns, operation| Event {
                handle: Some(HandleId(0)),
                elapsed_ns: MS,
                operation,
                ..Event::new(call, ProcessId(0), start_ns)
            };
            let wait = Event { elapsed_ns: 10 * MS, ..wait.clone() };
            let close = Event { think_ns: 5 * MS, ..event(Call::MpiFileClose, 30 * MS, 2) };
            let workload = workload_of(tables, &[event(Call::MpiFileOpen, MS, 1), wait, close]);
            let step = workload.programs[0].last().unwrap();
            let ms = |time: Duration| time.picoseconds() / 1000 / MS;
            (ms(step.think), ms(step.idle), ms(workload.untold_waits))
        };
        let wait = |used_ns| Event { used_ns, ..Event::new(Call::MpiWait, ProcessId(0), 5 * MS) };
        assert_eq!(before_the_close(&wait(Some(10 * MS))), (15, 13, 0), "it span");
        assert_eq!(before_the_close(&wait(Some(0))), (5, 23, 0), "it slept");
        assert_eq!(before_the_close(&wait(Some(4 * MS))), (9, 19, 0), "it did both");
        assert_eq!(before_the_close(&wait(None)), (5, 23, 10), "not known");
        // What HDF5 waits for between its calls of MPI-IO is between calls that are replayed, too.
        let below = Event { flags: Flags::PHYSICAL, operation: 7, ..wait(Some(10 * MS)) };
        assert_eq!(before_the_close(&below), (15, 13, 0));
        // What the open itself waited for is not.
        let inside = Event { start_ns: MS, operation: 1, ..below };
        assert_eq!(before_the_close(&inside), (5, 23, 0));
    }

    /// The library writes after `MPI_File_iwrite` returned, while the program waits; another file is the program's own.
    #[test]
    fn what_nonblocking_calls_do_later_is_not_the_programs() {
        let handle =
            |file, collective| Handle { file: FileId(file), process: ProcessId(0), ranks: 1, collective };
        let tables = Tables {
            processes: vec![process(1000)],
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
        let workload = workload_of(tables, &events);
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
