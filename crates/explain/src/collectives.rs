//! Where the time of MPI-IO calls goes: waiting for late ranks, the MPI library, the files.
//!
//! A collective call ends nowhere before all ranks have come to it. So the time of a rank's call falls into three parts:
//!
//! - *late ranks*: from its own arrival to that of the last rank. (Of a call that returns before all have come, to the
//!   arrival of the last that came before it returned: it can have waited for no other.) What the rank does at the files
//!   meanwhile is time at the files.
//! - *files*: after that, the time in which any rank is at the files for this call. The others wait for it: to call that
//!   the library's time would send the reader the wrong way.
//! - *library*: the rest: exchange, copies, waiting for messages.
//!
//! A call that is not collective waits for no rank, nor does a collective one of a communicator of one (`MPI_COMM_SELF`):
//! what it does at the files is *files*, the rest *library*.
//!
//! Which calls of different ranks are one: the k-th collective call through the handles that one collective open gave.
//! Where ranks are missing, or their calls do not match, the parts are *not known*. Clocks of different hosts are as exact
//! as the hosts keep them: what ranks of several hosts wait is known no better.
//!
//! One pass, in order of start: when the last rank comes, all that began before is known. A call is kept until its ranks
//! have all come and left; memory does not grow with the number of calls.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

use pio_trace::{BlockEvents, Call, Event, Flags, Layer, Op, ProcessId, Splits, Tables, Trace, TraceError};

use crate::findings::Charge;
use crate::tally::{Amount, Seen};

/// Collective calls of one group of handles to which some ranks have come and others not. MPI does not make every
/// collective call wait, but ranks that are so far apart do not make the same calls.
const MOST_PENDING: usize = 1 << 14;
/// What others must wait for a rank for it to be late, nanoseconds: less is how any program runs.
const LATE_NS: u64 = 1_000_000;

/// Where the time of some calls went; sums over the processes, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSplit {
    /// Number of calls.
    pub calls: u64,
    /// Waiting for ranks that came later.
    pub late_ns: u64,
    /// Inside the MPI library, but neither waiting for late ranks nor for the files. If the trace saw nothing of the files
    /// ([`MpiIoTime::files_seen`]), their time too.
    pub library_ns: u64,
    /// At the files: of a collective call the time in which any of its ranks was.
    pub files_ns: u64,
    /// Of collective calls of which it is not known which part is what ([`NotKnown`]).
    pub unknown_ns: u64,
}

impl TimeSplit {
    /// All of it, nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.late_ns
            .saturating_add(self.library_ns)
            .saturating_add(self.files_ns)
            .saturating_add(self.unknown_ns)
    }

    fn merge(&mut self, other: &TimeSplit) {
        self.calls += other.calls;
        self.late_ns = self.late_ns.saturating_add(other.late_ns);
        self.library_ns = self.library_ns.saturating_add(other.library_ns);
        self.files_ns = self.files_ns.saturating_add(other.files_ns);
        self.unknown_ns = self.unknown_ns.saturating_add(other.unknown_ns);
    }
}

/// Why it is not known where the time of a collective call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKnown {
    /// The trace lacks calls of some of its ranks.
    Lacking,
    /// Ranks made different calls, or a file was opened by more of them at once than its communicator has: which calls are
    /// one cannot be told.
    Unmatched,
    /// The trace does not say which ranks opened a file together.
    Opens,
}

/// Where the time of all calls of MPI-IO went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MpiIoTime {
    /// By operation, in order of [`Op`]: what occurs.
    pub operations: Vec<(Op, TimeSplit)>,
    /// Whether the trace says what MPI-IO did at the files. It does not where they are on Pioscope's servers, or where a
    /// filter left those calls out.
    pub files_seen: bool,
    /// Why most of what is not known is not; none if all is known.
    pub not_known: Option<NotKnown>,
}

impl MpiIoTime {
    /// All operations together.
    pub fn total(&self) -> TimeSplit {
        let mut sum = TimeSplit::default();
        for (_, split) in &self.operations {
            sum.merge(split);
        }
        sum
    }
}

/// Where the time of each rank's calls of MPI-IO in a trace went, for its exports and its timeline. Looks at
/// all events, unless no process is one of MPI.
///
/// # Errors
/// If the trace cannot be read.
pub fn splits(trace: &Trace) -> Result<Splits, TraceError> {
    let mut gathered = Gathered::new(trace.tables());
    if trace.tables().processes.iter().any(|process| process.rank.is_some()) {
        let mut events = BlockEvents::default();
        for block in 0..trace.blocks().len() {
            trace.read_block(block, &mut events)?;
            gathered.splits.begin_block();
            events.each_in_order(|_, event| gathered.add(event));
        }
    }
    Ok(gathered.finish())
}

/// The same of events that are no trace file; they come in order of their start.
pub fn splits_of<'e>(tables: &Tables, events: impl IntoIterator<Item = &'e Event>) -> Splits {
    let mut gathered = Gathered::new(tables);
    gathered.splits.begin_block();
    events.into_iter().for_each(|event| gathered.add(event));
    gathered.finish()
}

struct Gathered {
    collectives: Collectives,
    splits: Splits,
}

impl Gathered {
    fn new(tables: &Tables) -> Gathered {
        Gathered { collectives: Collectives::new(tables), splits: Splits::default() }
    }

    fn add(&mut self, event: &Event) {
        self.splits.add(event);
        self.collectives.add(&Seen::of(event), None);
        self.collectives.waits.clear();
        self.take();
    }

    fn finish(mut self) -> Splits {
        self.collectives.end();
        self.take();
        self.splits.set_files_seen(self.collectives.files_seen);
        self.splits
    }

    fn take(&mut self) {
        for Settled { number, split, .. } in self.collectives.settled.drain(..) {
            if let Some(number) = number.filter(|_| split.unknown_ns == 0) {
                self.splits.set(number, [split.late_ns, split.library_ns, split.files_ns]);
            }
        }
    }
}

/// A call whose parts are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) process: ProcessId,
    pub(crate) charge: Option<Charge>,
    pub(crate) op: Op,
    pub(crate) bytes: u64,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) collective: bool,
    /// If the call has a split in the exports, its number there.
    pub(crate) number: Option<usize>,
    /// Of all ranks of the call: reads and writes at the files, and their bytes.
    pub(crate) requests: Amount,
    /// Of this one call.
    pub(crate) split: TimeSplit,
}

/// What the others wait for one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lateness {
    /// Collective calls to which it came last, and made others wait remarkably long.
    pub(crate) calls: u64,
    /// What the others waited then, all together, nanoseconds.
    pub(crate) waited_ns: u64,
    /// CPU time that it used before these calls, since its last collective one, nanoseconds.
    pub(crate) think_ns: u64,
    /// Time of its other I/O before these calls, since its last collective one, nanoseconds.
    pub(crate) io_ns: u64,
    /// Time before these calls in which it neither computed nor was in I/O, beyond that of who waited longest: it slept, or
    /// waited for a processor or for something else.
    pub(crate) idle_ns: u64,
    /// What the others waited for no other reason than that.
    pub(crate) waited_idle_ns: u64,
}

/// A rank's part in a call.
#[derive(Clone, Copy, Debug)]
struct Member {
    process: ProcessId,
    charge: Option<Charge>,
    op: Op,
    number: Option<usize>,
    bytes: u64,
    start_ns: u64,
    end_ns: u64,
    /// Its own time at the files: no instant counts twice. Known up to `covered_ns`.
    files_ns: u64,
    first_file_ns: u64,
    covered_ns: u64,
    late_ns: u64,
    /// Its time at the files before the last rank came.
    files_before_ns: u64,
    think_ns: u64,
    io_ns: u64,
    /// Time since its last collective call in which it neither computed nor was in I/O.
    idle_ns: u64,
}

impl Member {
    /// Counts a call at the files, if it is within this one: they come in order of start.
    fn at_files(&mut self, start_ns: u64, end_ns: u64) {
        let (start_ns, end_ns) = (start_ns.max(self.covered_ns), end_ns.min(self.end_ns));
        if end_ns > start_ns {
            self.first_file_ns = self.first_file_ns.min(start_ns);
            self.files_ns += end_ns - start_ns;
            self.covered_ns = end_ns;
        }
    }

    /// What of its time at the files was before some time, as far as it can be told.
    fn files_until(&self, time_ns: u64) -> u64 {
        let after_ns = self.covered_ns.saturating_sub(time_ns);
        let most_ns = time_ns.saturating_sub(self.first_file_ns);
        self.files_ns.saturating_sub(after_ns).min(most_ns)
    }

    fn settled(&self, files_ns: u64, collective: bool) -> Settled {
        let elapsed_ns = self.end_ns - self.start_ns;
        let library_ns = elapsed_ns.saturating_sub(self.late_ns).saturating_sub(files_ns);
        let split = TimeSplit { calls: 1, late_ns: self.late_ns, library_ns, files_ns, unknown_ns: 0 };
        self.with(split, collective)
    }

    fn not_known(&self) -> Settled {
        let unknown_ns = self.end_ns - self.start_ns;
        self.with(TimeSplit { calls: 1, unknown_ns, ..TimeSplit::default() }, true)
    }

    fn with(&self, split: TimeSplit, collective: bool) -> Settled {
        let &Member { process, charge, op, number, bytes, start_ns, end_ns, .. } = self;
        Settled {
            process,
            charge,
            op,
            bytes,
            start_ns,
            end_ns,
            collective,
            number,
            requests: Amount::default(),
            split,
        }
    }
}

/// One collective call of all its ranks.
#[derive(Clone, Debug)]
struct Instance {
    call: Call,
    /// In order of arrival; in order of their end once all have come.
    members: Vec<Member>,
    /// Until all have come: where each is among them.
    places: HashMap<ProcessId, u32>,
    /// Start of the last to come.
    last_ns: u64,
    /// Once all have come: the time since then with any rank at the files, known up to `covered_ns`.
    any_ns: u64,
    covered_ns: u64,
    complete: bool,
    /// Members whose parts are known.
    settled: usize,
    /// Reads and writes at the files.
    requests: Amount,
}

impl Instance {
    fn new(call: Call) -> Instance {
        Instance {
            call,
            members: Vec::new(),
            places: HashMap::new(),
            last_ns: 0,
            any_ns: 0,
            covered_ns: 0,
            complete: false,
            settled: 0,
            requests: Amount::default(),
        }
    }

    /// The last rank has come: how long each waited is known.
    fn complete(&mut self) {
        self.last_ns = self.members.last().map_or(0, |last| last.start_ns);
        let arrivals: Vec<u64> = self.members.iter().map(|member| member.start_ns).collect();
        self.covered_ns = self.last_ns;
        for member in &mut self.members {
            // Who has left by then waited for those alone that came before.
            let came = arrivals.partition_point(|&arrival_ns| arrival_ns < member.end_ns).max(1);
            let until_ns = arrivals[came - 1].max(member.start_ns);
            member.files_before_ns = member.files_until(until_ns);
            member.late_ns = (until_ns - member.start_ns).saturating_sub(member.files_before_ns);
            // A call at the files that goes on beyond the last arrival.
            self.covered_ns = self.covered_ns.max(member.covered_ns);
        }
        self.any_ns = self.covered_ns - self.last_ns;
        self.complete = true;
        self.places = HashMap::new();
        self.members.sort_by_key(|member| member.end_ns);
    }

    /// A rank is at the files, after all have come.
    fn at_files(&mut self, start_ns: u64, end_ns: u64, out: &mut Vec<Settled>) {
        let start_ns = start_ns.max(self.covered_ns);
        if end_ns <= start_ns {
            return;
        }
        while let Some(member) = self.members.get(self.settled).filter(|member| member.end_ns <= start_ns) {
            out.push(self.parts_of(member, self.any_ns));
            self.settled += 1;
        }
        while let Some(member) = self.members.get(self.settled).filter(|member| member.end_ns <= end_ns) {
            let any_ns = self.any_ns + (member.end_ns - start_ns);
            out.push(self.parts_of(member, any_ns));
            self.settled += 1;
        }
        self.any_ns += end_ns - start_ns;
        self.covered_ns = end_ns;
    }

    /// Whether all have come, and left by then.
    fn is_over(&self, time_ns: u64) -> bool {
        self.complete && self.members.last().is_none_or(|last| last.end_ns <= time_ns)
    }

    fn parts_of(&self, member: &Member, any_ns: u64) -> Settled {
        let files_ns = match member.end_ns <= self.last_ns {
            true => member.files_ns,
            // A call at the files may have gone on beyond the end of who left meanwhile.
            false => member.files_before_ns + any_ns.min(member.end_ns - self.last_ns),
        };
        Settled { requests: self.requests, ..member.settled(files_ns, true) }
    }
}

/// The collective calls through the handles of one collective open.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Ranks that opened together; 0 if they are not all in the trace.
    ranks: usize,
    /// Number of the first of `pending`.
    first: u64,
    pending: VecDeque<Instance>,
    /// Why its calls cannot be told apart; none as long as they can.
    broken: Option<NotKnown>,
}

/// A call of MPI-IO that is under way in a process.
#[derive(Clone, Copy, Debug)]
enum UnderWay {
    Alone(Member),
    /// Number `call` of a group, in which a process has one part.
    Together {
        group: u32,
        call: u64,
    },
}

#[derive(Clone, Debug, Default)]
struct Process {
    /// Operation and end of calls that are under way: mostly one.
    calls: Vec<(u64, u64, UnderWay)>,
    /// Calls at the files of an operation that was not seen to begin yet: both may be told to begin at the same time.
    early: Option<(u64, u64, u64)>,
    /// Since its last collective call, which ended at `left_ns`.
    think_ns: u64,
    io_ns: u64,
    left_ns: Option<u64>,
    late: Lateness,
}

/// Follows the calls of MPI-IO. Its memory grows with handles and processes, not with events.
#[derive(Debug)]
pub(crate) struct Collectives {
    processes: Vec<Process>,
    groups: Vec<Group>,
    /// By handle: its group, and the number of its next collective call.
    handles: Vec<(Option<u32>, u64)>,
    files_seen: bool,
    /// Whether the recorder left calls out: then they cannot be matched.
    thinned: bool,
    /// Whether handles say which ranks opened together: logs of other tools do not.
    opens_are_known: bool,
    sums: [TimeSplit; Op::ALL.len()],
    unknown: Unknown,
    /// Collective calls that all ranks came to.
    pub(crate) instances: u64,
    pub(crate) together: Together,
    /// Calls of ranks that have a split in the exports.
    numbered: usize,
    settled: Vec<Settled>,
    waits: Vec<(ProcessId, u64)>,
    /// Whether Pioscope's own strategies carried out the calls: their messages are in the trace.
    pub(crate) by_pioscope: bool,
}

impl Collectives {
    pub(crate) fn new(tables: &Tables) -> Collectives {
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut seen: Vec<usize> = Vec::new();
        let mut handles = Vec::with_capacity(tables.handles.len());
        for handle in &tables.handles {
            let group = (handle.collective != 0 && handle.ranks > 1).then(|| {
                *numbers.entry(handle.collective).or_insert_with(|| {
                    groups.push(Group { ranks: handle.ranks as usize, ..Group::default() });
                    seen.push(0);
                    groups.len() as u32 - 1
                })
            });
            if let Some(group) = group {
                seen[group as usize] += 1;
            }
            handles.push((group, 0));
        }
        for (group, seen) in groups.iter_mut().zip(seen) {
            group.broken = match seen.cmp(&group.ranks) {
                Ordering::Less => Some(NotKnown::Lacking),
                Ordering::Equal => None,
                // Jobs that open the same file at the same time.
                Ordering::Greater => Some(NotKnown::Unmatched),
            };
        }
        let ranked = tables.processes.iter().filter(|process| process.rank.is_some()).count();
        // What we record says it of every open, and of those of a communicator of one that nobody else took part.
        let opens_are_known = !groups.is_empty() || ranked < 2 || tables.note("imported from").is_none();
        Collectives {
            processes: vec![Process::default(); tables.processes.len()],
            groups,
            handles,
            files_seen: false,
            thinned: is_thinned(&tables.notes),
            opens_are_known,
            sums: [TimeSplit::default(); Op::ALL.len()],
            unknown: Unknown::default(),
            instances: 0,
            together: Together::default(),
            numbered: 0,
            settled: Vec::new(),
            waits: Vec::new(),
            by_pioscope: false,
        }
    }

    /// Takes a call of any layer; they come in order of start. What a call of MPI-IO is charged to is given back with its
    /// parts.
    #[inline]
    pub(crate) fn add(&mut self, event: &Seen<'_>, charge: Option<Charge>) {
        let at_files = event.layer().is_at_files();
        if !event.is_physical()
            && let Some(process) = self.processes.get_mut(event.process.index())
        {
            process.think_ns = process.think_ns.saturating_add(event.think_ns);
            if at_files {
                process.io_ns = process.io_ns.saturating_add(event.elapsed_ns);
            }
        }
        if event.layer() == Layer::Message {
            self.by_pioscope |= event.call.number() >= Call::StrategyDescribe.number();
        } else if event.layer() == Layer::MpiIo {
            self.add_call(event, charge);
        } else if at_files && event.operation != 0 && event.is_physical() {
            self.add_at_files(event);
        }
    }

    /// Whether there is something to take: after most events there is not.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        !self.waits.is_empty() || !self.settled.is_empty()
    }

    /// Processes that have just been found to wait for late ranks, and how long; their calls have not ended.
    pub(crate) fn take_waits(&mut self) -> std::vec::Drain<'_, (ProcessId, u64)> {
        self.waits.drain(..)
    }

    /// Calls whose parts have become known.
    pub(crate) fn take_settled(&mut self) -> std::vec::Drain<'_, Settled> {
        self.settled.drain(..)
    }

    /// All events were seen: the rest becomes known too, as far as it can.
    pub(crate) fn end(&mut self) {
        for process in &mut self.processes {
            for (_, _, call) in std::mem::take(&mut process.calls) {
                if let UnderWay::Alone(member) = call {
                    settle(&mut self.sums, &mut self.settled, member.settled(member.files_ns, false));
                }
            }
        }
        for group in &mut self.groups {
            let why = group.broken.unwrap_or(NotKnown::Lacking);
            for instance in &std::mem::take(&mut group.pending) {
                if !instance.complete {
                    instance.members.iter().for_each(|member| self.unknown.add(why, member));
                }
                retire(instance, &mut self.sums, &mut self.settled);
            }
        }
    }

    /// Where the time went.
    pub(crate) fn time(&self) -> MpiIoTime {
        let operations = Op::ALL.into_iter().zip(self.sums).filter(|(_, split)| split.calls > 0).collect();
        MpiIoTime { operations, files_seen: self.files_seen, not_known: self.unknown.most() }
    }

    /// What others wait for each process that made them wait.
    pub(crate) fn late(&self) -> impl Iterator<Item = (ProcessId, Lateness)> + '_ {
        let all = self.processes.iter().enumerate();
        all.map(|(index, process)| (ProcessId(index as u32), process.late)).filter(|(_, late)| late.calls > 0)
    }

    fn add_call(&mut self, event: &Seen<'_>, charge: Option<Charge>) {
        let number = Splits::has_one(event).then_some(self.numbered);
        self.numbered += usize::from(number.is_some());
        let Some(process) = self.processes.get_mut(event.process.index()) else { return };
        let start_ns = event.start_ns;
        let (sums, settled) = (&mut self.sums, &mut self.settled);
        process.calls.retain(|(_, end_ns, call)| {
            let under_way = *end_ns > start_ns;
            if let (false, UnderWay::Alone(member)) = (under_way, call) {
                settle(sums, settled, member.settled(member.files_ns, false));
            }
            under_way
        });
        let mut member = Member {
            process: event.process,
            charge,
            op: event.op(),
            number,
            bytes: event.bytes,
            start_ns,
            end_ns: event.end_ns(),
            files_ns: 0,
            first_file_ns: u64::MAX,
            covered_ns: start_ns,
            late_ns: 0,
            files_before_ns: 0,
            think_ns: process.think_ns,
            io_ns: process.io_ns,
            idle_ns: process.left_ns.map_or(0, |left_ns| {
                start_ns
                    .saturating_sub(left_ns)
                    .saturating_sub(process.think_ns)
                    .saturating_sub(process.io_ns)
            }),
        };
        if let Some((_, from_ns, until_ns)) =
            process.early.take().filter(|early| early.0 == event.operation && event.operation != 0)
        {
            self.files_seen = true;
            member.at_files(from_ns, until_ns);
        }
        let waits = event.flags.contains(Flags::COLLECTIVE) && !starts_alone(event.call);
        let handle = event.handle.and_then(|handle| self.handles.get_mut(handle.index())).filter(|_| waits);
        let call = match handle {
            Some((Some(group), next)) => {
                UnderWay::Together { group: *group, call: std::mem::replace(next, *next + 1) }
            }
            _ if waits && !self.opens_are_known => {
                self.unknown.add(NotKnown::Opens, &member);
                settle(sums, settled, member.not_known());
                return;
            }
            _ => {
                process.io_ns = process.io_ns.saturating_add(event.elapsed_ns);
                UnderWay::Alone(member)
            }
        };
        process.calls.push((event.operation, event.end_ns(), call));
        if let UnderWay::Together { group, call } = call {
            (process.think_ns, process.io_ns) = (0, 0);
            process.left_ns = Some(member.end_ns);
            self.join(group, call, event.call, member);
        }
    }

    fn join(&mut self, group: u32, number: u64, call: Call, member: Member) {
        let group = &mut self.groups[group as usize];
        let (sums, settled) = (&mut self.sums, &mut self.settled);
        let index = number.checked_sub(group.first).map(|index| index as usize);
        if self.thinned {
            group.broken = Some(NotKnown::Lacking);
        }
        let Some(index) = index.filter(|index| *index < MOST_PENDING && group.broken.is_none()) else {
            let why = *group.broken.get_or_insert(NotKnown::Unmatched);
            self.unknown.add(why, &member);
            settle(sums, settled, member.not_known());
            return;
        };
        while group.pending.len() <= index {
            group.pending.push_back(Instance::new(call));
        }
        let instance = &mut group.pending[index];
        let has_come = instance.places.contains_key(&member.process);
        if instance.call != call || instance.complete || has_come {
            group.broken = Some(NotKnown::Unmatched);
            self.unknown.add(NotKnown::Unmatched, &member);
            settle(sums, settled, member.not_known());
            return;
        }
        instance.places.insert(member.process, instance.members.len() as u32);
        instance.members.push(member);
        if instance.members.len() == group.ranks {
            self.instances += 1;
            instance.complete();
            let waits = instance.members.iter().map(|member| (member.process, member.late_ns));
            let known = self.waits.len();
            self.waits.extend(waits.filter(|(_, late_ns)| *late_ns > 0));
            let waits = self.waits[known..].iter().map(|(_, late_ns)| *late_ns);
            let waited_ns = waits.clone().fold(0, u64::saturating_add);
            let longest_ns = waits.max().unwrap_or(0);
            let first_ns = instance.members.iter().map(|member| member.start_ns).min();
            self.together.add(waited_ns, group.ranks, first_ns.unwrap_or(0), member.start_ns);
            let idle = |other: &Member| (other.late_ns, member.idle_ns.saturating_sub(other.idle_ns));
            let waited_idle_ns =
                instance.members.iter().map(idle).map(|(late_ns, idle_ns)| late_ns.min(idle_ns));
            let waited_idle_ns = waited_idle_ns.fold(0, u64::saturating_add);
            let idle_ns = instance.members.iter().map(idle).max().map_or(0, |(_, idle_ns)| idle_ns);
            if let Some(process) =
                self.processes.get_mut(member.process.index()).filter(|_| longest_ns >= LATE_NS)
            {
                let late = &mut process.late;
                late.calls += 1;
                late.waited_ns = late.waited_ns.saturating_add(waited_ns);
                late.think_ns = late.think_ns.saturating_add(member.think_ns);
                late.io_ns = late.io_ns.saturating_add(member.io_ns);
                late.idle_ns = late.idle_ns.saturating_add(idle_ns);
                late.waited_idle_ns = late.waited_idle_ns.saturating_add(waited_idle_ns);
            }
        }
        while let Some(instance) = group.pending.front().filter(|instance| instance.is_over(member.start_ns))
        {
            retire(instance, sums, settled);
            group.pending.pop_front();
            group.first += 1;
        }
    }

    fn add_at_files(&mut self, event: &Seen<'_>) {
        let Some(process) = self.processes.get_mut(event.process.index()) else { return };
        let (start_ns, end_ns) = (event.start_ns, event.end_ns());
        let call = process.calls.iter_mut().rev().find(|(operation, _, _)| *operation == event.operation);
        let Some((_, call_end_ns, call)) = call else {
            let early = process.early.filter(|early| early.0 == event.operation);
            let (_, from_ns, until_ns) = early.unwrap_or((0, start_ns, end_ns));
            process.early = Some((event.operation, from_ns, until_ns.max(end_ns)));
            return;
        };
        if start_ns >= *call_end_ns {
            return;
        }
        self.files_seen = true;
        match call {
            UnderWay::Alone(member) => member.at_files(start_ns, end_ns),
            UnderWay::Together { group, call } => {
                let group = &mut self.groups[*group as usize];
                let index = call.checked_sub(group.first).map(|index| index as usize);
                let Some(instance) = index.and_then(|index| group.pending.get_mut(index)) else { return };
                if matches!(event.op(), Op::Read | Op::Write) {
                    instance.requests.add(event.bytes);
                }
                if instance.complete {
                    let known = self.settled.len();
                    instance.at_files(start_ns, end_ns.min(*call_end_ns), &mut self.settled);
                    for one in &self.settled[known..] {
                        self.sums[one.op as usize].merge(&one.split);
                    }
                } else if let Some(place) = instance.places.get(&event.process)
                    && let Some(member) = instance.members.get_mut(*place as usize)
                {
                    member.at_files(start_ns, end_ns);
                }
            }
        }
    }
}

/// Who waits for late ranks at the same time: all ranks of a collective call, and those of others that go on beside it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Together {
    waited_ns: u64,
    /// What each call's ranks waited on average, nanoseconds.
    mean_ns: f64,
    /// From the first to the last arrival of each call, the sum, and the same where time counts once; nanoseconds.
    spans_ns: u64,
    covered_ns: u64,
    until_ns: u64,
}

impl Together {
    /// Takes a call to which the last rank has come: they come in order of that.
    fn add(&mut self, waited_ns: u64, ranks: usize, first_ns: u64, last_ns: u64) {
        self.waited_ns = self.waited_ns.saturating_add(waited_ns);
        self.mean_ns += waited_ns as f64 / ranks.max(1) as f64;
        self.spans_ns = self.spans_ns.saturating_add(last_ns.saturating_sub(first_ns));
        self.covered_ns += last_ns.saturating_sub(first_ns.max(self.until_ns));
        self.until_ns = self.until_ns.max(last_ns);
    }

    /// Ranks by which the sum of their waiting is divided to be time of the job.
    pub(crate) fn ranks(&self) -> f64 {
        if self.mean_ns <= 0.0 {
            return 1.0;
        }
        let calls = self.spans_ns as f64 / self.covered_ns.max(1) as f64;
        (self.waited_ns as f64 / self.mean_ns * calls.max(1.0)).max(1.0)
    }
}

/// Time of which it is not known where it went, nanoseconds, by why.
#[derive(Clone, Debug, Default)]
struct Unknown([(Option<NotKnown>, u64); 3]);

impl Unknown {
    fn add(&mut self, why: NotKnown, member: &Member) {
        let (known, sum_ns) = &mut self.0[why as usize];
        *known = Some(why);
        *sum_ns = sum_ns.saturating_add(member.end_ns - member.start_ns);
    }

    fn most(&self) -> Option<NotKnown> {
        self.0.iter().max_by_key(|(_, sum_ns)| sum_ns).and_then(|(why, _)| *why)
    }
}

fn settle(sums: &mut [TimeSplit; Op::ALL.len()], settled: &mut Vec<Settled>, one: Settled) {
    sums[one.op as usize].merge(&one.split);
    settled.push(one);
}

/// A call from which nothing more comes.
fn retire(instance: &Instance, sums: &mut [TimeSplit; Op::ALL.len()], settled: &mut Vec<Settled>) {
    let known = settled.len();
    if instance.complete {
        let rest = &instance.members[instance.settled..];
        settled.extend(rest.iter().map(|member| instance.parts_of(member, instance.any_ns)));
    } else {
        settled.extend(instance.members.iter().map(Member::not_known));
    }
    for one in &settled[known..] {
        sums[one.op as usize].merge(&one.split);
    }
}

/// A collective call that returns without waiting for anybody.
fn starts_alone(call: Call) -> bool {
    use Call::{MpiFileIreadAll, MpiFileIreadAtAll, MpiFileIwriteAll, MpiFileIwriteAtAll};
    matches!(call, MpiFileIreadAll | MpiFileIreadAtAll | MpiFileIwriteAll | MpiFileIwriteAtAll)
}

/// Whether the trace lacks calls here and there, so that the k-th of one rank may not be the k-th of another.
fn is_thinned(notes: &[(String, String)]) -> bool {
    notes.iter().any(|(key, value)| match key.as_str() {
        "thinned out" | "lost calls" => true,
        "filter" => value.contains("at least "),
        _ => false,
    })
}
