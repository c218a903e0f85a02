//! What the program marked: how long it was in each epoch, step and wait for input, and what the job read and wrote
//! meanwhile.
//!
//! A phase lasts as the program says, and one that it never ended until the next of its name and thread; a mark lasts until
//! the next of its name in its process. All end with their process. A call counts for the phase of each name that its own
//! process is in. A process works for one that marks more, as the workers of a data loader do: for names that it did not mark
//! itself, its calls count for the phases that the first marking process is in.

use std::collections::{BTreeMap, BTreeSet};

use pio_trace::{Call, Event, Flags, HandleId, Layer, MarkNameId, Op, ProcessId, Tables, Target};

use crate::call_sites::{CallSiteId, CallSiteStatistics, CallSites, Moved};
use crate::loaders::Loaders;
use crate::tally::{Seen, Tally};

/// Numbers of a name that are kept apart; the others are in its sum.
const MOST_ROWS: usize = 4096;
/// Names that are kept.
const MOST_NAMES: usize = 256;
/// Phases of a name that are kept for a drawing of them; of more, neighbours become one.
const MOST_SPANS: usize = 4096;
/// Lines of the program that are kept apart within the phases of a number.
const MOST_SITES: usize = 64;

/// How names of the epochs of loaders begin.
const OF_LOADERS: &str = "epoch, ";
/// The name of those that a program marks itself.
pub(crate) const OWN_EPOCHS: &str = "epoch";
/// What names that say a loader's setting end in: their numbers are that.
const SETTINGS: [&str; 2] = [", batch size", ", workers"];

/// All phases and marks of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marked {
    /// By name, in order of first use.
    pub names: Vec<MarkedName>,
    /// Those that have epochs; where no loader marked any, the program itself with its phases or marks `epoch`.
    pub loaders: Loaders,
}

/// All phases, or marks, of a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarkedName {
    /// The name.
    pub name: String,
    /// Processes that had any.
    pub processes: Vec<ProcessId>,
    /// All of them together.
    pub sum: MarkedTime,
    /// Those of each number, in order; of so many numbers at most.
    pub numbers: Vec<(u64, MarkedTime)>,
    /// Whether there are more numbers, of which only the sum is known.
    pub has_more: bool,
    /// When those of the first of `processes` were, in order of their start.
    pub spans: Vec<MarkedSpan>,
}

impl MarkedName {
    /// Whether it says what a loader was told, and is no phase.
    pub fn is_setting(&self) -> bool {
        self.name.starts_with("loader ") && SETTINGS.iter().any(|setting| self.name.ends_with(setting))
    }
}

/// A phase of a process; or several, one behind the other, where there are too many to keep all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkedSpan {
    /// The number of the first.
    pub number: u64,
    /// How many.
    pub count: u64,
    /// Start of the first, nanoseconds since the start of the job.
    pub start_ns: u64,
    /// The latest end.
    pub end_ns: u64,
    /// How long they took in all, nanoseconds: less than from start to end where pauses are between them.
    pub time_ns: u64,
}

impl MarkedSpan {
    fn merged(self, next: MarkedSpan) -> MarkedSpan {
        MarkedSpan {
            count: self.count + next.count,
            end_ns: self.end_ns.max(next.end_ns),
            time_ns: self.time_ns.saturating_add(next.time_ns),
            ..self
        }
    }
}

/// Phases of a name, and what went on in them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarkedTime {
    /// How many.
    pub count: u64,
    /// How long they took in all, nanoseconds.
    pub time_ns: u64,
    /// The longest, nanoseconds.
    pub longest_ns: u64,
    /// Of their time, that in phases within them, by index of the name; nanoseconds.
    pub within_ns: BTreeMap<usize, u64>,
    /// Calls at the file system that began within; opens are among those that move nothing.
    pub moved: Moved,
    /// The same calls by the line of the program that opened their file, where that is known.
    pub by_site: BTreeMap<CallSiteId, Tally>,
}

impl MarkedTime {
    fn add_phase(&mut self, elapsed_ns: u64) {
        self.count += 1;
        self.time_ns = self.time_ns.saturating_add(elapsed_ns);
        self.longest_ns = self.longest_ns.max(elapsed_ns);
    }

    fn add_within(&mut self, name: usize, elapsed_ns: u64) {
        let sum = self.within_ns.entry(name).or_default();
        *sum = sum.saturating_add(elapsed_ns);
    }

    fn add_call(&mut self, event: &Seen<'_>, is_cold: bool, site: Option<CallSiteId>) {
        self.moved.add(event, is_cold);
        if let Some(site) = site
            && (self.by_site.len() < MOST_SITES || self.by_site.contains_key(&site))
        {
            self.by_site.entry(site).or_default().add(event);
        }
    }
}

impl Marked {
    /// The index of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|one| one.name == name)
    }

    /// What a loader was told, such as its `batch size`; of its epochs, the name.
    pub fn setting(&self, epochs: &str, setting: &str) -> Option<u64> {
        let loader = epochs.strip_prefix(OF_LOADERS)?;
        let found = self.find(&format!("{loader}, {setting}"))?;
        self.names[found].numbers.first().map(|(number, _)| *number)
    }
}

/// A phase that a process is in.
#[derive(Clone, Copy)]
struct Current {
    name: usize,
    number: u64,
    thread: u32,
    start_ns: u64,
    /// At the latest: with the process.
    end_ns: u64,
    /// How what comes next may end it earlier.
    until: Until,
    /// The name of the innermost epoch that it began in, as long as that goes on.
    epoch: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// A phase: nothing does.
    Told,
    /// A phase that was never ended: the next of its name and thread.
    NextOfThread,
    /// A mark: the next of its name.
    Next,
}

#[derive(Default)]
struct Name {
    id: u32,
    /// Whether its phases are the epochs that [`Loaders`] wants.
    is_epoch: bool,
    processes: Vec<bool>,
    sum: MarkedTime,
    numbers: BTreeMap<u64, MarkedTime>,
    has_more: bool,
    spans: Spans,
}

/// When the phases of the first process of a name were.
#[derive(Default)]
struct Spans {
    /// By its index.
    process: usize,
    all: Vec<MarkedSpan>,
}

impl Spans {
    /// Takes a phase that is over. In order of their ends: that of their starts where none lies within another.
    fn add(&mut self, process: usize, span: MarkedSpan) {
        if self.all.is_empty() || process < self.process {
            self.process = process;
            self.all.clear();
        }
        if process == self.process {
            self.all.push(span);
        }
        if self.all.len() >= 2 * MOST_SPANS {
            self.join_neighbours();
        }
    }

    fn join_neighbours(&mut self) {
        self.sort();
        let joined = |pair: &[MarkedSpan]| match pair {
            [one, next] => one.merged(*next),
            alone => alone[0],
        };
        self.all = self.all.chunks(2).map(joined).collect();
    }

    fn sort(&mut self) {
        self.all.sort_by_key(|span| (span.start_ns, span.end_ns));
    }

    fn finish(mut self) -> Vec<MarkedSpan> {
        if self.all.len() > MOST_SPANS {
            self.join_neighbours();
        }
        self.sort();
        self.all
    }
}

/// Takes events in order of their start.
pub(crate) struct Marks<'a> {
    tables: &'a Tables,
    names: Vec<Name>,
    /// By process: the phases that it is in.
    current: Vec<Vec<Current>>,
    /// Processes that may be in any phase, in the order of the table.
    going: BTreeSet<usize>,
    /// The phases that a call counts for, and whether its own thread is in them.
    chosen: Vec<(Current, bool)>,
    /// By handle: whether its file was cold when it was opened, or goes past the page cache.
    cold: Vec<bool>,
    sites: CallSites,
    loaders: Loaders,
    /// Whether loaders have marked epochs; else those of the program are taken.
    has_loaders: bool,
    last_ns: u64,
}

impl<'a> Marks<'a> {
    pub(crate) fn new(tables: &'a Tables) -> Marks<'a> {
        let any = !tables.mark_names.is_empty();
        let many = |count: usize| if any { count } else { 0 };
        Marks {
            tables,
            names: Vec::new(),
            current: vec![Vec::new(); many(tables.processes.len())],
            going: BTreeSet::new(),
            chosen: Vec::new(),
            cold: vec![false; many(tables.handles.len())],
            sites: CallSites::default(),
            loaders: Loaders::new(many(tables.processes.len())),
            has_loaders: tables.mark_names.iter().any(|name| name.starts_with(OF_LOADERS)),
            last_ns: 0,
        }
    }

    /// Takes one event. Costs nothing where the trace has no marks.
    #[inline]
    pub(crate) fn add(&mut self, event: &Seen<'_>) {
        if !self.current.is_empty() {
            self.take(event);
        }
    }

    fn take(&mut self, event: &Seen<'_>) {
        self.last_ns = self.last_ns.max(event.end_ns());
        match event.layer() {
            Layer::Mark => self.add_mark(event),
            layer if layer.is_at_files() => self.add_call(event),
            _ => {}
        }
    }

    fn add_mark(&mut self, event: &Event) {
        let Target::Mark { name, number } = event.target else { return };
        let process = event.process.index();
        let (Some(name), Some(_)) = (self.index_of(name), self.current.get(process)) else { return };
        self.end_before(process, event.start_ns);
        self.going.insert(process);
        self.names[name].processes[process] = true;
        let until = match event.call {
            Call::Phase if event.flags.contains(Flags::UNFINISHED) => Until::NextOfThread,
            Call::Phase => Until::Told,
            _ => Until::Next,
        };
        let is_next = |before: &Current| {
            before.name == name
                && match before.until {
                    Until::Told => false,
                    Until::NextOfThread => event.call == Call::Phase && before.thread == event.thread,
                    Until::Next => until == Until::Next,
                }
        };
        while let Some(at) = self.current[process].iter().position(is_next) {
            self.end(process, at, event.start_ns);
        }
        let end_ns = if until == Until::Told { event.end_ns() } else { self.process_end(process) };
        let epoch = self.innermost(process);
        if let Some(epoch) = epoch {
            self.loaders.begin_within(epoch, name);
        }
        if self.names[name].is_epoch {
            self.loaders.begin_epoch(name, event.process);
        }
        let (thread, start_ns) = (event.thread, event.start_ns);
        self.current[process].push(Current { name, number, thread, start_ns, end_ns, until, epoch });
    }

    /// When a process ended, as far as that is known.
    fn process_end(&self, process: usize) -> u64 {
        self.tables.processes.get(process).and_then(|one| one.end_ns).unwrap_or(u64::MAX)
    }

    /// Counts the phases that are over.
    fn end_before(&mut self, process: usize, now_ns: u64) {
        let is_over = |phase: &Current| phase.until == Until::Told && phase.end_ns <= now_ns;
        while let Some(at) = self.current[process].iter().position(is_over) {
            let end_ns = self.current[process][at].end_ns;
            self.end(process, at, end_ns);
        }
    }

    /// Counts a phase; and, for itself and each phase that still goes on, the time of one within the other.
    fn end(&mut self, process: usize, at: usize, end_ns: u64) {
        let phase = self.current[process].remove(at);
        let end_ns = if end_ns == u64::MAX { self.last_ns } else { end_ns };
        let time_ns = end_ns.saturating_sub(phase.start_ns);
        self.at(phase.name, phase.number, |time| time.add_phase(time_ns));
        let span = MarkedSpan {
            number: phase.number,
            count: 1,
            start_ns: phase.start_ns,
            end_ns: phase.start_ns + time_ns,
            time_ns,
        };
        self.names[phase.name].spans.add(process, span);
        let mut others = std::mem::take(&mut self.current[process]);
        if let Some(epoch) = phase.epoch {
            self.loaders.end_within(epoch, phase.name, time_ns);
        }
        // The wait that brings the end of an epoch ends after it; others are over, and were not counted yet.
        for inner in others[at..].iter_mut().filter(|_| self.names[phase.name].is_epoch) {
            if inner.epoch.take_if(|epoch| *epoch == phase.name).is_some() {
                let within_ns = end_ns.min(inner.end_ns).saturating_sub(inner.start_ns);
                self.loaders.end_within(phase.name, inner.name, within_ns);
            }
        }
        for (place, other) in others.iter().enumerate().filter(|(_, other)| other.name != phase.name) {
            let (outer, inner) = if place < at { (other, &phase) } else { (&phase, other) };
            let within_ns = end_ns.min(other.end_ns).saturating_sub(inner.start_ns);
            if within_ns > 0 {
                self.at(outer.name, outer.number, |time| time.add_within(inner.name, within_ns));
            }
        }
        self.current[process] = others;
    }

    /// The name of the epoch that a process began last.
    fn innermost(&self, process: usize) -> Option<usize> {
        let mut names = self.current[process].iter().rev().map(|phase| phase.name);
        names.find(|name| self.names[*name].is_epoch)
    }

    /// The first process that is in any phase.
    fn leader(&mut self, now_ns: u64) -> Option<usize> {
        while let Some(&process) = self.going.first() {
            self.end_before(process, now_ns);
            if self.current[process].iter().any(|phase| phase.end_ns > now_ns) {
                return Some(process);
            }
            self.going.remove(&process);
        }
        None
    }

    fn add_call(&mut self, event: &Seen<'_>) {
        let is_cold = self.coldness(event);
        let site = self.sites.find(event, self.tables);
        if let Some(site) = site {
            self.sites.count(site, event, is_cold);
        }
        let (own, now_ns) = (event.process.index(), event.start_ns);
        if own >= self.current.len() {
            return;
        }
        self.end_before(own, now_ns);
        let leader = self.leader(now_ns).filter(|leader| *leader != own);
        match (self.innermost(own), leader.and_then(|leader| self.innermost(leader))) {
            (Some(epoch), _) => self.loaders.add_own(epoch, event, self.tables),
            (None, Some(epoch)) => self.loaders.add_for(epoch, event, self.tables),
            (None, None) => {}
        }
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.clear();
        for phase in &self.current[own] {
            choose(&mut chosen, phase, phase.thread == event.thread);
        }
        for phase in leader.iter().flat_map(|leader| &self.current[*leader]) {
            if phase.end_ns > now_ns && !self.names[phase.name].processes[own] {
                choose(&mut chosen, phase, false);
            }
        }
        let id = site.map(|site| self.sites.id(site));
        for (phase, _) in &chosen {
            self.at(phase.name, phase.number, |time| time.add_call(event, is_cold, id));
            if let Some(site) = site {
                self.sites.count_within(site, phase.name, event.elapsed_ns);
            }
        }
        self.chosen = chosen;
    }

    /// Whether a read is of a file that was cold; learns it from opens.
    fn coldness(&mut self, event: &Event) -> bool {
        let Some(cold) = event.handle.and_then(|HandleId(id)| self.cold.get_mut(id as usize)) else {
            return false;
        };
        if event.op() == Op::Open {
            *cold = event.flags.contains(Flags::COLD) || event.flags.contains(Flags::DIRECT);
        }
        *cold
    }

    fn index_of(&mut self, id: MarkNameId) -> Option<usize> {
        let known = self.names.iter().position(|name| name.id == id.0);
        known.or_else(|| {
            (self.names.len() < MOST_NAMES).then(|| {
                let processes = vec![false; self.tables.processes.len()];
                let name = self.tables.mark_names.get(id.index()).map_or("", String::as_str);
                let is_epoch =
                    if self.has_loaders { name.starts_with(OF_LOADERS) } else { name == OWN_EPOCHS };
                self.names.push(Name { id: id.0, is_epoch, processes, ..Name::default() });
                self.names.len() - 1
            })
        })
    }

    fn at(&mut self, name: usize, number: u64, change: impl Fn(&mut MarkedTime)) {
        let name = &mut self.names[name];
        change(&mut name.sum);
        if name.numbers.len() < MOST_ROWS || name.numbers.contains_key(&number) {
            change(name.numbers.entry(number).or_default());
        } else {
            name.has_more = true;
        }
    }

    /// What was marked, and what each line of the program did, those that took the most time first.
    pub(crate) fn finish(mut self) -> (Marked, Vec<CallSiteStatistics>) {
        for process in 0..self.current.len() {
            while let Some(phase) = self.current[process].last() {
                self.end(process, self.current[process].len() - 1, phase.end_ns);
            }
        }
        let tables = self.tables;
        let names = self.names.into_iter().map(|name| MarkedName {
            name: tables.mark_names.get(name.id as usize).cloned().unwrap_or_default(),
            processes: (0..)
                .zip(name.processes)
                .filter(|(_, has)| *has)
                .map(|(index, _)| ProcessId(index))
                .collect(),
            sum: name.sum,
            numbers: name.numbers.into_iter().collect(),
            has_more: name.has_more,
            spans: name.spans.finish(),
        });
        let marked = Marked { names: names.collect(), loaders: self.loaders };
        (marked, self.sites.finish(tables))
    }
}

/// Of each name one: the latest of the call's own thread, else of all.
fn choose(chosen: &mut Vec<(Current, bool)>, phase: &Current, is_of_thread: bool) {
    match chosen.iter_mut().find(|(known, _)| known.name == phase.name) {
        Some((_, true)) if !is_of_thread => {}
        Some(known) => *known = (*phase, is_of_thread),
        None => chosen.push((*phase, is_of_thread)),
    }
}
