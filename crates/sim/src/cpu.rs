//! Processes take processors by turns: with a quantum, and what it costs to switch.
//!
//! A state machine: who runs and for how long is decided here; when those times are over, the caller says. A process
//! has a *demand*, processor time that it needs before it has something to do with the outside. It keeps its processor
//! until the demand is met or the quantum is over while another waits; who is next, [`Next`] says. An interrupt takes a
//! processor that is idle, if there is one, or else holds up the first. While nobody waits, a process runs on without an end
//! of its quantum; who comes then waits for the end of the quantum that it is in.
//!
//! A process may also *spin*: it has nothing to do but to look for something, and keeps its processor as one with a demand
//! does, until it is told to stop.
//!
//! Every moment of every processor is running, switching, serving an interrupt, or idle: [`Usage`] adds them up.

use std::collections::BTreeSet;

use pio_machine::{Cpu, Duration};

use crate::kernel::Time;

/// Who of those that want a processor has it next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Who has waited longest (Miller and Katz).
    Longest,
    /// Who has had least. Who comes back from waiting for something else is owed what it was owed when it began to wait, up
    /// to a quantum; had it had more than its share, it waits until the others have had as much. If it is the next, it takes a
    /// processor at once from one that has had as much, and has it for as long as a slice already, or has had more than its
    /// share, while this one has not. Turns end at the kernel's ticks, a quantum apart, after at least a
    /// slice. So do kernels that share processors evenly (Linux: earliest eligible virtual deadline first since 6.6, which keeps
    /// what sleepers have had too much since 6.12).
    Least {
        /// Less than the quantum: if not, turns are as long as a quantum, whenever they begin.
        slice: Duration,
        /// When the first tick is.
        tick: Duration,
    },
}

/// Who waits, and who is next.
#[derive(Debug)]
pub struct Scheduler {
    costs: Cpu,
    next: Next,
    processors: Vec<Processor>,
    /// Whether there is a processor for every process, and nothing else takes one: then nobody ever waits, and what each has had
    /// decides nothing.
    nobody_waits: bool,
    /// The processor that each process had last.
    last: Vec<u32>,
    /// Who wants a processor: what counts of what it has had, its number in the order of coming, and the process.
    ready: BTreeSet<(u64, u64, u32)>,
    /// The sum of what they have had.
    had_by_ready: u128,
    /// For each process, its place there.
    places: Vec<Option<(u64, u64)>>,
    /// How many have come.
    came: u64,
    /// What each process has had of processors, or counts as having had, picoseconds.
    had: Vec<u64>,
    /// By how much less than the mean that was when it began to wait for something else; 0 if it was no less.
    owed: Vec<u64>,
    /// The mean of those that wanted a processor or had one, when that was last asked.
    mean: u64,
    /// Of each process: what is left of its demand, picoseconds.
    demand: Vec<u64>,
    usage: Usage,
}

/// A turn that ends, unless it is held up: give it back with [`Scheduler::end_turn`] at `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Which processor.
    pub processor: u32,
    /// Tells it from turns that were held up.
    pub number: u64,
    /// When it ends.
    pub at: Time,
}

/// What processors did, picoseconds over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Met demands of processes.
    pub running: u64,
    /// Put another process on.
    pub switching: u64,
    /// Served interrupts.
    pub interrupts: u64,
}

#[derive(Debug, Default)]
struct Processor {
    state: State,
    /// Number of the turn that is going on.
    turn: u64,
    /// When it ends.
    until: Time,
    /// The process that was on it last.
    last: Option<u32>,
    /// Since when it has it.
    since: Time,
    /// What the process may still run before another has its turn, picoseconds: counted from when its turn began.
    quantum: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// Serves an interrupt, with no process on it.
    Interrupted,
    /// Runs so much of a process's demand.
    Running { process: u32, work: u64 },
    /// A process has its demand met and keeps the processor until the caller says what it does next.
    Met { process: u32 },
}

impl Scheduler {
    /// Idle processors, and so many processes without demand.
    pub fn new(costs: &Cpu, next: Next, processes: u32) -> Scheduler {
        Scheduler {
            costs: costs.clone(),
            next,
            processors: (0..costs.count).map(|_| Processor::default()).collect(),
            nobody_waits: processes <= costs.count && costs.interrupt == Duration::ZERO,
            last: vec![0; processes as usize],
            ready: BTreeSet::new(),
            had_by_ready: 0,
            places: vec![None; processes as usize],
            came: 0,
            had: vec![0; processes as usize],
            owed: vec![0; processes as usize],
            mean: 0,
            demand: vec![0; processes as usize],
            usage: Usage::default(),
        }
    }

    /// A process that had none has a demand, and waits for a processor.
    pub fn demand(&mut self, now: Time, process: u32, demand: Duration, turns: &mut Vec<Turn>) {
        self.demand[process as usize] = demand.picoseconds();
        self.mean = self.mean_had(now);
        let had = &mut self.had[process as usize];
        *had = match self.owed[process as usize] {
            0 => self.mean.max(*had),
            owed => self.mean.saturating_sub(owed),
        };
        self.wait(process);
        match self.idle_for(process) {
            Some(idle) => self.dispatch(now, idle, turns),
            None => match self.has_had_more(now, process) {
                Some(index) => self.interrupt_turn(now, index, turns),
                None => self.end_a_quantum(now, turns),
            },
        }
    }

    /// An idle processor, if there is one: that which the process had last, if that is idle.
    fn idle_for(&self, process: u32) -> Option<usize> {
        let own = |one: &Processor| one.state == State::Idle && one.last == Some(process);
        if self.nobody_waits {
            // There is but one that it had last: it leaves that only to who takes it from it.
            let last = self.last[process as usize] as usize;
            if own(&self.processors[last]) {
                return Some(last);
            }
        }
        let idle = self.processors.iter().position(|one| one.state == State::Idle)?;
        Some(self.processors.iter().position(own).unwrap_or(idle))
    }

    /// What those that want a processor or have one have had, in the mean; without any, what the last ones had.
    fn mean_had(&self, now: Time) -> u64 {
        if self.nobody_waits {
            return 0;
        }
        let (mut sum, mut count) = (self.had_by_ready, self.ready.len() as u128);
        for (_, had) in (0..self.processors.len()).filter_map(|index| self.had_by(now, index)) {
            (sum, count) = (sum + u128::from(had), count + 1);
        }
        sum.checked_div(count).map_or(self.mean, |mean| mean as u64)
    }

    /// A process that wants no processor any more is owed what it has had less than the mean.
    fn remember(&mut self, now: Time, process: u32) {
        self.mean = self.mean_had(now);
        let owed = self.mean.saturating_sub(self.had[process as usize]);
        self.owed[process as usize] = owed.min(self.costs.quantum.picoseconds());
    }

    /// The process on a processor, and what it has had by now.
    fn had_by(&self, now: Time, index: usize) -> Option<(u32, u64)> {
        let processor = &self.processors[index];
        match processor.state {
            State::Running { process, work } => {
                let left = processor.until.since(now).picoseconds().min(work);
                Some((process, self.had[process as usize].saturating_add(work - left)))
            }
            State::Met { process } => Some((process, self.had[process as usize])),
            State::Idle | State::Interrupted => None,
        }
    }

    /// The processor of the process that has had most, if it is to have it no more now that this one has come.
    fn has_had_more(&self, now: Time, process: u32) -> Option<usize> {
        let Next::Least { slice, .. } = self.next else { return None };
        if self.ready.first().is_none_or(|(_, _, first)| *first != process) {
            return None;
        }
        let own = self.had[process as usize];
        let mean = self.mean_had(now);
        let gives_way = |index: usize| {
            let processor = &self.processors[index];
            let State::Running { .. } = processor.state else { return None };
            let (_, had) = self.had_by(now, index)?;
            // Who has had more than its share is owed nothing: its slice does not protect it.
            let is_unprotected = had > mean && own < mean || processor.since + slice <= now;
            (had >= own && is_unprotected).then_some((had, index))
        };
        (0..self.processors.len()).filter_map(gives_way).max().map(|(_, index)| index)
    }

    /// A process loses its processor before its turn is over.
    fn interrupt_turn(&mut self, now: Time, index: usize, turns: &mut Vec<Turn>) {
        let State::Running { process, work } = self.processors[index].state else { return };
        let left = self.processors[index].until.since(now).picoseconds().min(work);
        self.worked(process, work - left);
        self.wait(process);
        self.dispatch(now, index, turns);
    }

    /// A process has done so much of what it wants to do.
    fn worked(&mut self, process: u32, work: u64) {
        self.usage.running += work;
        let had = &mut self.had[process as usize];
        *had = had.saturating_add(work);
        let demand = &mut self.demand[process as usize];
        if *demand != SPINS {
            *demand -= work;
        }
    }

    /// A process joins those that want a processor.
    fn wait(&mut self, process: u32) {
        let had = match self.next {
            Next::Longest => 0,
            Next::Least { .. } => self.had[process as usize],
        };
        self.came += 1;
        self.places[process as usize] = Some((had, self.came));
        self.ready.insert((had, self.came, process));
        self.had_by_ready += u128::from(had);
    }

    /// A process that spins has found what it looked for: it has this demand left. One that waits for its turn goes on
    /// waiting.
    pub fn stop(&mut self, now: Time, process: u32, demand: Duration, turns: &mut Vec<Turn>) {
        let runs = |one: &Processor| matches!(one.state, State::Running { process: on, .. } if on == process);
        let index = self.processors.iter().position(runs);
        let Some((index, State::Running { work, .. })) =
            index.map(|index| (index, self.processors[index].state))
        else {
            self.demand[process as usize] = demand.picoseconds();
            return;
        };
        // What it has spun for is not used up before another's turn, unless the quantum was over: then nobody waited.
        let left = self.processors[index].until.since(now).picoseconds().min(work);
        self.worked(process, work - left);
        self.demand[process as usize] = demand.picoseconds();
        let processor = &mut self.processors[index];
        processor.quantum = left_of_quantum(processor.quantum, work - left, self.costs.quantum.picoseconds());
        self.next_turn(now, index, process, turns);
    }

    /// A process that spins gives up: it wants no processor until its next [`Scheduler::demand`].
    pub fn block(&mut self, now: Time, process: u32, turns: &mut Vec<Turn>) {
        if let Some((had, came)) = self.places[process as usize].take() {
            self.remember(now, process);
            self.ready.remove(&(had, came, process));
            self.had_by_ready -= u128::from(had);
        }
        let runs = |one: &Processor| matches!(one.state, State::Running { process: on, .. } if on == process);
        let index = self.processors.iter().position(runs);
        let Some((index, State::Running { work, .. })) =
            index.map(|index| (index, self.processors[index].state))
        else {
            self.demand[process as usize] = 0;
            return;
        };
        self.remember(now, process);
        let left = self.processors[index].until.since(now).picoseconds().min(work);
        self.worked(process, work - left);
        self.demand[process as usize] = 0;
        // The turn that was going on is none any more.
        self.processors[index].turn += 1;
        self.dispatch(now, index, turns);
    }

    /// The end of a turn has come. Says whose demand is met, if one is: that process keeps its processor until
    /// [`Scheduler::go_on`] or [`Scheduler::leave`], which must follow at the same time.
    pub fn end_turn(&mut self, now: Time, turn: Turn, turns: &mut Vec<Turn>) -> Option<u32> {
        let index = turn.processor as usize;
        let processor = &mut self.processors[index];
        if processor.turn != turn.number {
            return None;
        }
        match processor.state {
            State::Interrupted => {
                self.dispatch(now, index, turns);
                None
            }
            State::Running { process, work } => {
                processor.quantum =
                    left_of_quantum(processor.quantum, work, self.costs.quantum.picoseconds());
                self.worked(process, work);
                if self.demand[process as usize] == 0 {
                    self.processors[index].state = State::Met { process };
                    return Some(process);
                }
                self.next_turn(now, index, process, turns);
                None
            }
            State::Idle | State::Met { .. } => unreachable!("no turn is going on"),
        }
    }

    /// The process whose demand was met has another at once.
    pub fn go_on(&mut self, now: Time, turn: Turn, demand: Duration, turns: &mut Vec<Turn>) {
        let index = turn.processor as usize;
        let State::Met { process } = self.processors[index].state else { unreachable!("no demand was met") };
        self.demand[process as usize] = demand.picoseconds();
        self.next_turn(now, index, process, turns);
    }

    /// The process whose demand was met waits for something, and looks for it without end: until [`Scheduler::stop`].
    pub fn spin(&mut self, now: Time, turn: Turn, turns: &mut Vec<Turn>) {
        let index = turn.processor as usize;
        let State::Met { process } = self.processors[index].state else { unreachable!("no demand was met") };
        self.demand[process as usize] = SPINS;
        self.next_turn(now, index, process, turns);
    }

    /// The process whose demand was met waits for something else than a processor, or is over.
    pub fn leave(&mut self, now: Time, turn: Turn, turns: &mut Vec<Turn>) {
        if let State::Met { process } = self.processors[turn.processor as usize].state {
            self.remember(now, process);
        }
        self.dispatch(now, turn.processor as usize, turns);
    }

    /// An interrupt comes.
    pub fn interrupt(&mut self, now: Time, turns: &mut Vec<Turn>) {
        let cost = self.costs.interrupt;
        if cost == Duration::ZERO {
            return;
        }
        self.usage.interrupts += cost.picoseconds();
        let idle = self.processors.iter().position(|one| one.state == State::Idle);
        let index = idle.unwrap_or(0);
        let processor = &mut self.processors[index];
        if idle.is_some() {
            processor.state = State::Interrupted;
            processor.until = now;
        }
        processor.begin(index, processor.until + cost, turns);
    }

    /// Whether a process is on a processor.
    pub fn is_running(&self, process: u32) -> bool {
        self.processors[self.last[process as usize] as usize].runs() == Some(process)
    }

    /// The processes that are on processors.
    pub fn on_processors(&self) -> impl Iterator<Item = u32> {
        self.processors.iter().filter_map(Processor::runs)
    }

    /// What processors did until now. A turn counts when it is over.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// A process that is not done goes on, or lets the next have its turn.
    fn next_turn(&mut self, now: Time, index: usize, process: u32, turns: &mut Vec<Turn>) {
        if self.processors[index].quantum > 0 {
            self.run(now, index, process, turns);
        } else {
            self.wait(process);
            self.dispatch(now, index, turns);
        }
    }

    /// Gives the processor to whom it is due.
    fn dispatch(&mut self, now: Time, index: usize, turns: &mut Vec<Turn>) {
        let Some((had, _, process)) = self.ready.pop_first() else {
            self.processors[index].state = State::Idle;
            return;
        };
        self.places[process as usize] = None;
        self.had_by_ready -= u128::from(had);
        let mut start = now;
        let processor = &mut self.processors[index];
        if processor.last.is_some_and(|last| last != process) {
            start = now + self.costs.switch;
            self.usage.switching += self.costs.switch.picoseconds();
        }
        let length = self.turn_from(start);
        let processor = &mut self.processors[index];
        processor.last = Some(process);
        self.last[process as usize] = index as u32;
        processor.since = start;
        processor.quantum = length;
        self.run(start, index, process, turns);
    }

    /// How long a turn lasts that begins then, if others wait, picoseconds.
    fn turn_from(&self, start: Time) -> u64 {
        let quantum = self.costs.quantum.picoseconds();
        match self.next {
            Next::Least { slice, tick } if slice < self.costs.quantum => {
                let earliest = (start + slice).0;
                let tick = tick.picoseconds();
                tick + earliest.saturating_sub(tick).div_ceil(quantum) * quantum - start.0
            }
            Next::Least { .. } | Next::Longest => quantum,
        }
    }

    fn run(&mut self, start: Time, index: usize, process: u32, turns: &mut Vec<Turn>) {
        let processor = &mut self.processors[index];
        let demand = self.demand[process as usize];
        let nobody_waits = self.ready.is_empty();
        let work = if nobody_waits { demand } else { demand.min(processor.quantum) };
        processor.state = State::Running { process, work };
        processor.begin(index, start + Duration::from_picoseconds(work), turns);
    }

    /// Somebody waits now: of the processes that run without an end of their quantum, each ends the one that it is in.
    fn end_a_quantum(&mut self, now: Time, turns: &mut Vec<Turn>) {
        let quantum = self.costs.quantum.picoseconds();
        for index in 0..self.processors.len() {
            let processor = &mut self.processors[index];
            let State::Running { process, work } = processor.state else { continue };
            let left = processor.until.since(now).picoseconds().min(work);
            let (ran, first) = (work - left, processor.quantum);
            // The first end of a quantum that is not past.
            let end = first + ran.saturating_sub(first).div_ceil(quantum) * quantum;
            if end < work {
                processor.state = State::Running { process, work: end };
                let until =
                    now + Duration::from_picoseconds(processor.until.since(now).picoseconds() - (work - end));
                processor.begin(index, until, turns);
            }
        }
    }
}

/// The demand of a process that spins, in picoseconds: longer than anything is simulated.
const SPINS: u64 = u64::MAX / 4;

/// What is left of a quantum, of which so much was left, after so much work: if that was more, others began meanwhile.
fn left_of_quantum(left: u64, work: u64, quantum: u64) -> u64 {
    match work.checked_sub(left) {
        None => left - work,
        Some(more) if more % quantum == 0 => 0,
        Some(more) => quantum - more % quantum,
    }
}

impl Usage {
    /// All of it.
    pub fn busy(&self) -> u64 {
        self.running + self.switching + self.interrupts
    }
}

impl Processor {
    /// The process that is on it.
    fn runs(&self) -> Option<u32> {
        match self.state {
            State::Running { process, .. } | State::Met { process } => Some(process),
            State::Idle | State::Interrupted => None,
        }
    }

    /// Another turn, or another end of the one that is going on. That of a process that spins has none of its own.
    fn begin(&mut self, index: usize, until: Time, turns: &mut Vec<Turn>) {
        self.turn += 1;
        self.until = until;
        if !matches!(self.state, State::Running { work: SPINS, .. }) {
            turns.push(Turn { processor: index as u32, number: self.turn, at: until });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Events;

    const MS: u64 = 1_000_000_000;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_picoseconds(milliseconds * MS)
    }

    fn costs(count: u32, switch: Duration) -> Cpu {
        Cpu { count, quantum: ms(10), switch, system_call: Duration::ZERO, interrupt: ms(2) }
    }

    /// Processes that only compute: when each is done, and what processors did. Interrupts come at the given times.
    fn compute(costs: &Cpu, demands: &[Duration], interrupts: &[Time]) -> (Vec<Time>, Usage) {
        let mut scheduler = Scheduler::new(costs, Next::Longest, demands.len() as u32);
        let (mut events, mut turns) = (Events::new(), Vec::new());
        let mut ends = vec![Time::NEVER; demands.len()];
        for (process, demand) in demands.iter().enumerate() {
            scheduler.demand(Time(0), process as u32, *demand, &mut turns);
        }
        for at in interrupts {
            events.add(*at, None);
        }
        turns.drain(..).for_each(|turn| events.add(turn.at, Some(turn)));
        while let Some((now, what)) = events.pop() {
            match what {
                None => scheduler.interrupt(now, &mut turns),
                Some(turn) => {
                    if let Some(process) = scheduler.end_turn(now, turn, &mut turns) {
                        ends[process as usize] = now;
                        scheduler.leave(now, turn, &mut turns);
                    }
                }
            }
            turns.drain(..).for_each(|turn| events.add(turn.at, Some(turn)));
        }
        (ends, scheduler.usage())
    }

    #[test]
    fn who_comes_back_goes_before_those_that_have_had_more_where_kernels_share_evenly() {
        let next_of = |next| {
            let (mut scheduler, mut turns) = (Scheduler::new(&costs(1, Duration::ZERO), next, 3), Vec::new());
            // Two compute by turns; the third comes when the first has had its quantum, and waits behind the second's.
            scheduler.demand(Time(0), 0, ms(50), &mut turns);
            scheduler.demand(Time(0), 1, ms(50), &mut turns);
            let first = turns.pop().expect("the first has a turn that ends");
            assert_eq!(scheduler.end_turn(first.at, first, &mut turns), None);
            scheduler.demand(first.at, 2, ms(1), &mut turns);
            let second = turns.pop().expect("so has the second");
            assert_eq!(scheduler.end_turn(second.at, second, &mut turns), None);
            (0..3).find(|process| scheduler.is_running(*process))
        };
        assert_eq!(next_of(Next::Longest), Some(0));
        assert_eq!(next_of(Next::Least { slice: ms(1), tick: Duration::ZERO }), Some(2));
    }

    #[test]
    fn processes_that_compute_share_the_processor_to_the_quantum() {
        // A, B, C by turns of 10 ms: C ends in the third round's third turn, A with the last of its 30 ms before it.
        let (ends, usage) = compute(&costs(1, Duration::ZERO), &[ms(30), ms(45), ms(25)], &[]);
        assert_eq!(ends, [Time(70 * MS), Time(100 * MS), Time(85 * MS)]);
        assert_eq!(usage, Usage { running: 100 * MS, switching: 0, interrupts: 0 });
    }

    #[test]
    fn a_switch_costs_only_where_another_process_comes() {
        let (ends, usage) = compute(&costs(1, ms(1)), &[ms(30)], &[]);
        assert_eq!((ends[0], usage.switching), (Time(30 * MS), 0));
        // Turns A B A B: the processor begins with A for nothing.
        let (ends, usage) = compute(&costs(1, ms(1)), &[ms(20), ms(20)], &[]);
        assert_eq!(ends, [Time(32 * MS), Time(43 * MS)]);
        assert_eq!(usage.switching, 3 * MS);
    }

    #[test]
    fn an_interrupt_holds_up_who_runs_or_takes_a_processor_that_is_idle() {
        let one = compute(&costs(1, Duration::ZERO), &[ms(8)], &[Time(3 * MS)]);
        assert_eq!((one.0[0], one.1.interrupts), (Time(10 * MS), 2 * MS));
        let two = compute(&costs(2, Duration::ZERO), &[ms(8)], &[Time(3 * MS), Time(3 * MS)]);
        // The first goes to the idle processor, the second holds up the other.
        assert_eq!((two.0[0], two.1.interrupts), (Time(10 * MS), 4 * MS));
    }

    #[test]
    fn who_is_woken_takes_the_processor_of_one_that_has_it_for_a_slice() {
        let next = Next::Least { slice: ms(3), tick: ms(1) };
        let begins = |woken_at: u64| {
            let (mut scheduler, mut turns) = (Scheduler::new(&costs(1, Duration::ZERO), next, 2), Vec::new());
            scheduler.demand(Time(0), 0, ms(50), &mut turns);
            let first = turns.pop().expect("nobody waits: a turn to the end");
            assert_eq!(first.at, Time(50 * MS));
            let woken_at = Time(woken_at * MS);
            scheduler.demand(woken_at, 1, ms(2), &mut turns);
            if scheduler.is_running(1) {
                return woken_at;
            }
            let cut = turns.pop().expect("the turn ends earlier");
            assert_eq!(scheduler.end_turn(cut.at, cut, &mut turns), None);
            assert!(scheduler.is_running(1), "it has had nothing");
            cut.at
        };
        assert_eq!(begins(5), Time(5 * MS));
        assert_eq!(begins(3), Time(3 * MS));
        // Too early: at the first tick that comes when the other has had a slice.
        assert_eq!(begins(2), Time(11 * MS));
    }

    #[test]
    fn who_waits_for_something_else_is_owed_what_it_had_less_than_the_mean() {
        let next = Next::Least { slice: Duration::ZERO, tick: Duration::ZERO };
        let (mut scheduler, mut turns) = (Scheduler::new(&costs(1, Duration::ZERO), next, 3), Vec::new());
        // The first has a long turn alone, in which the second comes, and leaves after a moment.
        scheduler.demand(Time(0), 0, ms(100), &mut turns);
        scheduler.demand(Time(8 * MS), 1, ms(1), &mut turns);
        assert!(
            scheduler.is_running(1),
            "the mean of those that were there is more than nothing, but less than 8 ms"
        );
        let short = turns.pop().expect("a turn that ends");
        assert_eq!(scheduler.end_turn(short.at, short, &mut turns), Some(1));
        scheduler.leave(short.at, short, &mut turns);
        assert!(scheduler.is_running(0));
        // It takes the processor again when it comes back: what it was owed, it still is.
        scheduler.demand(Time(30 * MS), 1, ms(1), &mut turns);
        assert!(scheduler.is_running(1));
    }

    #[test]
    fn who_has_had_too_much_does_not_lose_that_by_waiting_for_something_else() {
        let next = Next::Least { slice: ms(1), tick: Duration::ZERO };
        let (mut scheduler, mut turns) = (Scheduler::new(&costs(1, Duration::ZERO), next, 2), Vec::new());
        scheduler.demand(Time(0), 0, ms(10), &mut turns);
        scheduler.demand(Time(0), 1, ms(50), &mut turns);
        let first = turns.pop().expect("a turn that ends");
        assert_eq!(scheduler.end_turn(first.at, first, &mut turns), Some(0));
        scheduler.leave(first.at, first, &mut turns);
        // The first has had 10 ms, the second 2 ms when the first is back: it has to wait for the rest of them.
        scheduler.demand(Time(12 * MS), 0, ms(1), &mut turns);
        assert!(scheduler.is_running(1));
        let second = turns.pop().expect("the turn ends earlier");
        assert_eq!((second.at, scheduler.end_turn(second.at, second, &mut turns)), (Time(20 * MS), None));
        assert!(scheduler.is_running(0));
    }

    #[test]
    fn who_spins_keeps_its_processor_until_it_is_stopped() {
        let mut scheduler = Scheduler::new(&costs(1, Duration::ZERO), Next::Longest, 2);
        let mut turns = Vec::new();
        scheduler.demand(Time(0), 0, ms(1), &mut turns);
        let first = turns.pop().unwrap();
        assert_eq!(scheduler.end_turn(first.at, first, &mut turns), Some(0));
        scheduler.spin(first.at, first, &mut turns);
        // Nobody waits: it spins without an end.
        assert!(turns.is_empty() && scheduler.is_running(0));
        // Its quantum ends, 10 ms after it began, when another has a demand.
        scheduler.demand(Time(4 * MS), 1, ms(3), &mut turns);
        let end = turns.pop().unwrap();
        assert_eq!(end.at, Time(10 * MS));
        assert_eq!(scheduler.end_turn(end.at, end, &mut turns), None);
        assert!(scheduler.is_running(1) && !scheduler.is_running(0));
        // What it looked for is there, but it must wait for its turn to see that.
        scheduler.stop(Time(11 * MS), 0, ms(2), &mut turns);
        let other = turns.pop().unwrap();
        assert_eq!((other.at, scheduler.end_turn(other.at, other, &mut turns)), (Time(13 * MS), Some(1)));
        scheduler.leave(other.at, other, &mut turns);
        let last = turns.pop().unwrap();
        assert_eq!((last.at, scheduler.end_turn(last.at, last, &mut turns)), (Time(15 * MS), Some(0)));
    }

    #[test]
    fn more_processors_are_all_used() {
        let (ends, usage) = compute(&costs(3, Duration::ZERO), &[ms(7); 3], &[]);
        assert_eq!(ends, [Time(7 * MS); 3]);
        assert_eq!(usage.running, 21 * MS);
    }
}
