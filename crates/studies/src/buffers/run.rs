//! The simulation: processes on processors, over buffers and disks.

use pio_machine::{Computer, Duration};
use pio_sim::SimError;
use pio_sim::cpu::{Next, Scheduler, Turn, Usage};
use pio_sim::kernel::{self, Events, Simulation, Time};

use super::outcome::{Outcome, ProcessOutcome};
use super::program::{Program, TimedAccess};
use super::storage::{News, Storage, Transfer};

/// One process that is to run.
#[derive(Clone, Copy, Debug)]
pub struct Instance<'a> {
    /// What it does.
    pub program: &'a Program,
    /// Added to the numbers of its files: two copies of a program that have files of their own differ in it.
    pub first_file: u64,
}

/// What to tell besides totals.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Width of the bins of rates over time.
    pub bin: Duration,
    /// Asynchronous requests of a process that may be under way when it makes another: a buffer for each.
    pub requests_ahead: u32,
}

impl Default for Options {
    /// Bins of a second, one request ahead (double buffering).
    fn default() -> Options {
        Options { bin: Duration::from_picoseconds(1_000_000_000_000), requests_ahead: 1 }
    }
}

/// Runs processes that all start at once, until the last one ends.
///
/// # Errors
/// If the buffers cannot be as described, there is no process, or the run takes longer than 213 days.
pub fn run(computer: &Computer, processes: &[Instance<'_>], options: &Options) -> Result<Outcome, SimError> {
    if processes.is_empty() {
        return Err(SimError::NoProcess { workload: computer.name.clone() });
    }
    let mut run = Run::new(computer, processes, options)?;
    kernel::run(&mut run)?;
    if run.running > 0 {
        return Err(run.stuck());
    }
    run.drain();
    Ok(run.outcome())
}

/// What happens.
#[derive(Clone, Copy, Debug)]
enum What {
    TurnEnds(Turn),
    DiskIsDone(Transfer),
}

/// What a process is waiting for, or on its way to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A processor, until its next access.
    Computing,
    /// Its access to be complete.
    Waiting,
    /// One of its asynchronous accesses to be complete, before it makes another, or ends.
    WaitingAhead,
    Ended,
}

struct Running<'a> {
    process: Instance<'a>,
    state: State,
    /// The access that it computes for, or waits for.
    next: usize,
    /// Asynchronous accesses under way.
    ahead: u32,
    /// Processor time that it owes for transfers from and to the solid-state disk.
    owed: u64,
    waits_since: Time,
    outcome: ProcessOutcome,
}

struct Run<'a> {
    computer: &'a Computer,
    options: &'a Options,
    scheduler: Scheduler,
    storage: Storage,
    events: Events<What>,
    turns: Vec<Turn>,
    news: News,
    processes: Vec<Running<'a>>,
    running: usize,
    /// When the last process ended, and what processors had done until then.
    end: Time,
    usage: Usage,
}

impl<'a> Run<'a> {
    fn new(
        computer: &'a Computer,
        processes: &[Instance<'a>],
        options: &'a Options,
    ) -> Result<Run<'a>, SimError> {
        let count = processes.len() as u32;
        let mut storage = Storage::new(computer, count, options.bin)?;
        for (file, bytes) in sizes(processes) {
            storage.size(file, bytes);
        }
        let begin = |process: &Instance<'a>| Running {
            process: *process,
            state: State::Computing,
            next: 0,
            ahead: 0,
            owed: 0,
            waits_since: Time::default(),
            outcome: ProcessOutcome { name: process.program.name.clone(), ..ProcessOutcome::default() },
        };
        let mut run = Run {
            computer,
            options,
            scheduler: Scheduler::new(&computer.cpu, Next::Longest, count),
            storage,
            events: Events::new(),
            turns: Vec::new(),
            news: News::default(),
            processes: processes.iter().map(begin).collect(),
            running: processes.len(),
            end: Time::default(),
            usage: Usage::default(),
        };
        for process in 0..count {
            run.compute(Time::default(), process);
        }
        run.schedule();
        Ok(run)
    }

    fn happen(&mut self, now: Time, what: What) {
        match what {
            What::TurnEnds(turn) => {
                if let Some(process) = self.scheduler.end_turn(now, turn, &mut self.turns) {
                    self.act(now, turn, process);
                }
            }
            What::DiskIsDone(transfer) => {
                self.scheduler.interrupt(now, &mut self.turns);
                self.storage.done(now, transfer, &mut self.news);
                self.hear(now, None);
            }
        }
        self.schedule();
    }

    /// A process has computed all that it wanted to before its next access, and makes it.
    fn act(&mut self, now: Time, turn: Turn, process: u32) {
        let one = &mut self.processes[process as usize];
        let program = one.process.program;
        let Some(access) = program.accesses.get(one.next) else {
            self.end_process(now, turn, process);
            return;
        };
        if access.asynchronous && one.ahead >= self.options.requests_ahead {
            one.wait(now, State::WaitingAhead);
            self.scheduler.leave(now, turn, &mut self.turns);
            return;
        }
        let (id, file) = ((process, one.next as u32), one.process.first_file + u64::from(access.file));
        one.outcome.accesses += 1;
        if access.asynchronous {
            one.ahead += 1;
        } else {
            one.wait(now, State::Waiting);
        }
        self.storage.access(now, id, file, access, &mut self.news);
        let complete = self.hear(now, Some(process));
        if complete || access.asynchronous {
            self.processes[process as usize].next += 1;
            let demand = self.next_demand(process);
            self.scheduler.go_on(now, turn, demand, &mut self.turns);
        } else {
            self.scheduler.leave(now, turn, &mut self.turns);
        }
    }

    /// Takes note of what buffers and disks say. Whether the access is complete that `acting`, which still has its
    /// processor, just made.
    fn hear(&mut self, now: Time, acting: Option<u32>) -> bool {
        let mut news = std::mem::take(&mut self.news);
        for (end, transfer) in news.begun.drain(..) {
            self.events.add(end, What::DiskIsDone(transfer));
        }
        for (process, cost) in news.costs.drain(..) {
            self.processes[process as usize].owed += cost.picoseconds();
        }
        let mut done = false;
        for (process, number) in news.complete.drain(..) {
            let one = &mut self.processes[process as usize];
            if one.process.program.accesses[number as usize].asynchronous {
                one.ahead -= 1;
                if one.state == State::WaitingAhead {
                    one.go_on(now);
                    // It has computed already: only a processor is missing.
                    let owed = Duration::from_picoseconds(std::mem::take(&mut one.owed));
                    one.outcome.system += owed.picoseconds();
                    self.scheduler.demand(now, process, owed, &mut self.turns);
                }
            } else if acting == Some(process) {
                one.go_on(now);
                done = true;
            } else {
                one.go_on(now);
                one.next += 1;
                self.compute(now, process);
            }
        }
        self.news = news;
        done
    }

    /// A process that had to wait begins to compute for its next access.
    fn compute(&mut self, now: Time, process: u32) {
        let demand = self.next_demand(process);
        self.scheduler.demand(now, process, demand, &mut self.turns);
    }

    /// Processor time until its next access: what it owes for the last one, what it computes, and the call.
    fn next_demand(&mut self, process: u32) -> Duration {
        let call = self.computer.cpu.system_call.picoseconds();
        let one = &mut self.processes[process as usize];
        let program = one.process.program;
        let owed = std::mem::take(&mut one.owed);
        let (think, call) = match program.accesses.get(one.next) {
            Some(access) => (access.think.picoseconds(), call),
            None => (program.last.picoseconds(), 0),
        };
        one.outcome.think += think;
        one.outcome.system += owed + call;
        Duration::from_picoseconds(owed + think + call)
    }

    fn end_process(&mut self, now: Time, turn: Turn, process: u32) {
        let one = &mut self.processes[process as usize];
        if one.ahead > 0 {
            one.wait(now, State::WaitingAhead);
        } else {
            one.state = State::Ended;
            one.outcome.end = now.since(Time::default());
            self.running -= 1;
            self.end = now;
        }
        self.scheduler.leave(now, turn, &mut self.turns);
    }

    fn schedule(&mut self) {
        for turn in self.turns.drain(..) {
            self.events.add(turn.at, What::TurnEnds(turn));
        }
    }

    /// What is still on its way to the disks gets there, though nobody waits for it.
    fn drain(&mut self) {
        self.usage = self.scheduler.usage();
        while let Some((now, what)) = self.events.pop() {
            let What::DiskIsDone(transfer) = what else { continue };
            self.storage.done(now, transfer, &mut self.news);
            for (end, transfer) in self.news.begun.drain(..) {
                self.events.add(end, What::DiskIsDone(transfer));
            }
        }
    }

    fn stuck(&self) -> SimError {
        let stuck = self.processes.iter().position(|one| one.state != State::Ended).unwrap_or(0);
        let one = &self.processes[stuck];
        let steps = one.process.program.accesses.len();
        SimError::Stuck { rank: stuck as u32, step: (one.next + 1).min(steps), steps }
    }

    fn outcome(self) -> Outcome {
        Outcome {
            elapsed: self.end.since(Time::default()),
            processors: self.computer.cpu.count,
            usage: self.usage,
            processes: self.processes.into_iter().map(|one| one.outcome).collect(),
            buffers: self.storage.statistics(),
            disk_time: self.storage.disk_time(),
            flow: self.storage.flow,
        }
    }
}

impl Simulation<1> for Run<'_> {
    type Error = SimError;

    fn next_times(&self) -> [Option<Time>; 1] {
        [self.events.next_time()]
    }

    /// When all processes have ended.
    fn is_over(&self, _next: Time) -> bool {
        self.running == 0
    }

    fn proceed(&mut self, _model: usize, _until: Time) -> Result<(), SimError> {
        let Some((now, what)) = self.events.pop() else { return Ok(()) };
        if now == Time::NEVER {
            return Err(SimError::TooLong { machine: self.computer.name.clone() });
        }
        self.happen(now, what);
        Ok(())
    }
}

impl Running<'_> {
    fn wait(&mut self, now: Time, state: State) {
        self.state = state;
        self.waits_since = now;
    }

    fn go_on(&mut self, now: Time) {
        self.state = State::Computing;
        self.outcome.waiting += now.since(self.waits_since).picoseconds();
    }
}

/// Number and size of every file: behind the last byte that anybody reads or writes.
fn sizes(processes: &[Instance<'_>]) -> std::collections::BTreeMap<u64, u64> {
    let mut sizes = std::collections::BTreeMap::new();
    for process in processes {
        for TimedAccess { file, offset, bytes, .. } in &process.program.accesses {
            let size = sizes.entry(process.first_file + u64::from(*file)).or_insert(0);
            *size = offset.saturating_add(*bytes).max(*size);
        }
    }
    sizes
}
