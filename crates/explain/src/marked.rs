//! What the program marked: how long it was in each epoch, step and wait for input, and what the job read and wrote
//! meanwhile.
//!
//! A phase lasts as the program says; a mark lasts until the next of its name in its process, or until the process ends. A
//! call counts for the phase of each name that its own process is in. A process that marks nothing works for one that does,
//! as the workers of a data loader do: its calls count for the phases that the first such process is in.

use std::collections::BTreeMap;

use pio_trace::{Call, Event, Flags, HandleId, Layer, MarkNameId, Op, ProcessId, Tables, Target};

use crate::tally::{Seen, Tally};

/// Numbers of a name that are kept apart; the others are in its sum.
const MOST_ROWS: usize = 4096;
/// Names that are kept.
const MOST_NAMES: usize = 256;

/// All phases and marks of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marked {
    /// By name, in order of first use.
    pub names: Vec<MarkedName>,
    /// The processes that marked.
    pub processes: Vec<ProcessId>,
}

/// All phases, or marks, of a name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarkedName {
    /// The name.
    pub name: String,
    /// Processes that had any.
    pub processes: u64,
    /// All of them together.
    pub sum: MarkedTime,
    /// Those of each number, in order; of so many numbers at most.
    pub numbers: Vec<(u64, MarkedTime)>,
    /// Whether there are more numbers, of which only the sum is known.
    pub has_more: bool,
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
    /// Reads of files that memory had, as far as the kernel says it, at the file system.
    pub from_memory: Tally,
    /// Reads of files of which memory had less than half when they were opened.
    pub from_storage: Tally,
    /// Writes at the file system.
    pub written: Tally,
    /// Opens, and other calls.
    pub other: Tally,
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

    fn add_call(&mut self, event: &Seen<'_>, is_cold: bool) {
        let tally = match event.op() {
            Op::Read if is_cold => &mut self.from_storage,
            Op::Read => &mut self.from_memory,
            Op::Write => &mut self.written,
            _ => &mut self.other,
        };
        tally.add(event);
    }
}

impl Marked {
    /// The index of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|one| one.name == name)
    }
}

/// A phase that a process is in.
#[derive(Clone, Copy)]
struct Current {
    name: usize,
    number: u64,
    start_ns: u64,
    /// None for a mark: it ends with the next.
    end_ns: Option<u64>,
}

#[derive(Default)]
struct Name {
    id: u32,
    processes: Vec<bool>,
    sum: MarkedTime,
    numbers: BTreeMap<u64, MarkedTime>,
    has_more: bool,
}

/// Takes events in order of their start.
pub(crate) struct Marks<'a> {
    tables: &'a Tables,
    names: Vec<Name>,
    /// By process: the phases that it is in.
    current: Vec<Vec<Current>>,
    /// By process: whether it marks.
    marks: Vec<bool>,
    /// The first process that does, in the order of the table.
    first: Option<usize>,
    /// By handle: whether its file was cold when it was opened.
    cold: Vec<bool>,
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
            marks: vec![false; many(tables.processes.len())],
            first: None,
            cold: vec![false; many(tables.handles.len())],
            last_ns: 0,
        }
    }

    /// Takes one event. Costs nothing where the trace has no marks.
    pub(crate) fn add(&mut self, event: &Seen<'_>) {
        if self.current.is_empty() {
            return;
        }
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
        self.marks[process] = true;
        self.first = Some(self.first.map_or(process, |first| first.min(process)));
        self.names[name].processes[process] = true;
        let is_phase = event.call == Call::Phase;
        let end_ns = match is_phase {
            true if event.flags.contains(Flags::UNFINISHED) => Some(self.process_end(process)),
            true => Some(event.end_ns()),
            false => None,
        };
        if !is_phase {
            self.end_mark(process, name, event.start_ns);
        }
        let phase = Current { name, number, start_ns: event.start_ns, end_ns };
        if let Some(end_ns) = end_ns {
            self.count(process, &phase, end_ns);
        }
        self.current[process].push(phase);
    }

    /// When a process ended, as far as that is known.
    fn process_end(&self, process: usize) -> u64 {
        self.tables.processes.get(process).and_then(|one| one.end_ns).unwrap_or(u64::MAX)
    }

    /// Forgets the phases that are over.
    fn end_before(&mut self, process: usize, now_ns: u64) {
        self.current[process].retain(|phase| phase.end_ns.is_none_or(|end_ns| end_ns > now_ns));
    }

    /// The mark of this name ends where the next begins.
    fn end_mark(&mut self, process: usize, name: usize, now_ns: u64) {
        let is_it = |phase: &Current| phase.name == name && phase.end_ns.is_none();
        if let Some(at) = self.current[process].iter().position(is_it) {
            let phase = self.current[process].remove(at);
            self.count(process, &phase, now_ns);
        }
    }

    /// Counts a phase; and its time within those around it.
    fn count(&mut self, process: usize, phase: &Current, end_ns: u64) {
        let end_ns = if end_ns == u64::MAX { self.last_ns.max(phase.start_ns) } else { end_ns };
        let elapsed_ns = end_ns.saturating_sub(phase.start_ns);
        self.at(phase.name, phase.number, |time| time.add_phase(elapsed_ns));
        let around: Vec<Current> =
            self.current[process].iter().filter(|one| one.name != phase.name).copied().collect();
        for outer in around {
            if outer.start_ns <= phase.start_ns {
                self.at(outer.name, outer.number, |time| time.add_within(phase.name, elapsed_ns));
            }
        }
    }

    fn add_call(&mut self, event: &Seen<'_>) {
        let is_cold = self.coldness(event);
        let process = match self.marks.get(event.process.index()) {
            Some(true) => event.process.index(),
            _ => match self.first {
                Some(first) => first,
                None => return,
            },
        };
        self.end_before(process, event.start_ns);
        let around: Vec<Current> = self.current[process].clone();
        for phase in around {
            self.at(phase.name, phase.number, |time| time.add_call(event, is_cold));
        }
    }

    /// Whether a read is of a file that was cold; learns it from opens.
    fn coldness(&mut self, event: &Event) -> bool {
        let Some(cold) = event.handle.and_then(|HandleId(id)| self.cold.get_mut(id as usize)) else {
            return false;
        };
        if event.op() == Op::Open {
            *cold = event.flags.contains(Flags::COLD);
        }
        *cold
    }

    fn index_of(&mut self, id: MarkNameId) -> Option<usize> {
        let known = self.names.iter().position(|name| name.id == id.0);
        known.or_else(|| {
            (self.names.len() < MOST_NAMES).then(|| {
                let processes = vec![false; self.tables.processes.len()];
                self.names.push(Name { id: id.0, processes, ..Name::default() });
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

    pub(crate) fn finish(mut self) -> Marked {
        for process in 0..self.current.len() {
            for phase in std::mem::take(&mut self.current[process]) {
                if phase.end_ns.is_none() {
                    let end_ns = self.process_end(process);
                    self.count(process, &phase, end_ns);
                }
            }
        }
        let tables = self.tables;
        let names = self.names.into_iter().map(|name| MarkedName {
            name: tables.mark_names.get(name.id as usize).cloned().unwrap_or_default(),
            processes: name.processes.iter().filter(|has| **has).count() as u64,
            sum: name.sum,
            numbers: name.numbers.into_iter().collect(),
            has_more: name.has_more,
        });
        let marks = self.marks.iter().enumerate().filter(|(_, marks)| **marks);
        Marked {
            names: names.collect(),
            processes: marks.map(|(index, _)| ProcessId(index as u32)).collect(),
        }
    }
}
