//! Calls that only name a file, on machines that say what they take.
//!
//! Where a machine does not, a call takes the time that it took where it was recorded. That time, and what the rank did before,
//! is a part of what lies between two other calls. Where it does, the call becomes one of its own.

use std::borrow::Cow;

use pio_machine::{Duration, Machine, Storage};
use pio_trace::Call;

use super::steps::{Step, What, Workload};

/// What a call that only names a file wants of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// What is known of it: `stat`, `access`.
    Ask,
    /// To remove it: `unlink`, `MPI_File_delete`.
    Remove,
}

impl Naming {
    /// What a call wants; nothing if it is none of these.
    pub fn of(call: Call) -> Option<Naming> {
        match call {
            Call::Stat | Call::Access => Some(Naming::Ask),
            Call::Unlink | Call::MpiFileDelete => Some(Naming::Remove),
            _ => None,
        }
    }

    /// What it costs, of what the two cost.
    pub(crate) fn of_both<T>(self, ask: T, remove: T) -> T {
        match self {
            Naming::Ask => ask,
            Naming::Remove => remove,
        }
    }

    /// Whether a machine says what it takes where its files are.
    pub(crate) fn is_known_to(self, machine: &Machine) -> bool {
        let told = match &machine.storage {
            Storage::Local { .. } => [machine.calls.stat, machine.calls.unlink],
            Storage::Shared(files) => [files.stat, files.unlink],
            Storage::Parallel(files) => [files.metadata.stat, files.metadata.unlink],
            Storage::Striped { .. } | Storage::IoNodes { .. } => [None, None],
        };
        let [ask, remove] = told.map(|time| time.is_some());
        self.of_both(ask, remove)
    }
}

/// A call that only names a file, as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// Which of the rank's steps follows; as many as it has if none does.
    pub before: usize,
    /// Processor time since the rank's step or call of this kind before.
    pub think: Duration,
    /// Time that passed beside it.
    pub idle: Duration,
    /// The function.
    pub call: Call,
    /// Index of the file.
    pub file: u32,
    /// How long it took.
    pub elapsed: Duration,
}

impl Workload {
    /// The workload as a machine runs it: the calls that only name files are steps, as far as the machine says what they take.
    pub(crate) fn on(&self, machine: &Machine) -> Cow<'_, Workload> {
        let is_known =
            |named: &Named| Naming::of(named.call).is_some_and(|naming| naming.is_known_to(machine));
        if !self.named.iter().flatten().any(is_known) {
            return Cow::Borrowed(self);
        }
        let mut workload = self.clone();
        for (rank, named) in self.named.iter().enumerate() {
            let known: Vec<&Named> = named.iter().filter(|named| is_known(named)).collect();
            let Some(program) = workload.programs.get_mut(rank) else { continue };
            *program = with_calls(std::mem::take(program), &known);
            if let Some(unreplayed) = workload.unreplayed.get_mut(rank) {
                for named in known {
                    *unreplayed = less(*unreplayed, named.elapsed).0;
                }
            }
        }
        Cow::Owned(workload)
    }
}

/// A program with these calls, in their order, among its steps. What lay before a step is divided.
fn with_calls(program: Vec<Step>, known: &[&Named]) -> Vec<Step> {
    let mut known = known.iter().peekable();
    let mut steps = Vec::with_capacity(program.len() + known.len());
    for (place, mut step) in program.into_iter().enumerate() {
        while let Some(named) = known.next_if(|named| named.before <= place) {
            let (think, idle);
            (step.think, think) = less(step.think, named.think);
            (step.idle, idle) = less(step.idle, named.idle);
            let taken;
            (step.idle, taken) = less(step.idle, named.elapsed);
            // Where nobody recorded what is which, all of it is processor time.
            step.think = step.think.saturating_sub(named.elapsed.saturating_sub(taken));
            steps.push(Step { think, idle, what: What::Name { call: named.call, file: named.file } });
        }
        steps.push(step);
    }
    let last = |named: &&Named| Step {
        think: named.think,
        idle: named.idle,
        what: What::Name { call: named.call, file: named.file },
    };
    steps.extend(known.map(last));
    steps
}

/// What is left of a time, and what was taken from it.
fn less(time: Duration, wanted: Duration) -> (Duration, Duration) {
    let taken = time.min(wanted);
    (time.saturating_sub(taken), taken)
}

#[cfg(test)]
mod tests {
    use pio_trace::HandleId;

    use super::*;

    fn us(count: u64) -> Duration {
        Duration::from_picoseconds(count * 1_000_000)
    }

    fn step(think: u64, idle: u64, what: What) -> Step {
        Step { think: us(think), idle: us(idle), what }
    }

    fn named(before: usize, think: u64, idle: u64, call: Call, elapsed: u64) -> Named {
        Named { before, think: us(think), idle: us(idle), call, file: 0, elapsed: us(elapsed) }
    }

    #[test]
    fn what_lies_before_a_step_is_divided_among_it_and_the_calls() {
        let close = What::Close(HandleId(0));
        let program = vec![step(1, 2, What::Open(HandleId(0))), step(30, 50, close.clone())];
        let calls =
            [named(1, 10, 5, Call::Stat, 7), named(1, 4, 0, Call::Unlink, 8), named(2, 3, 1, Call::Stat, 9)];
        let found = with_calls(program, &calls.iter().collect::<Vec<_>>());
        let name = |call| What::Name { call, file: 0 };
        let expected = [
            step(1, 2, What::Open(HandleId(0))),
            step(10, 5, name(Call::Stat)),
            step(4, 0, name(Call::Unlink)),
            // 30 and 50, less what the calls had before them and took.
            step(16, 30, close),
            step(3, 1, name(Call::Stat)),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn without_recorded_processor_time_a_call_is_taken_from_what_there_is() {
        let found = with_calls(vec![step(30, 0, What::Rendezvous)], &[&named(0, 10, 0, Call::Stat, 7)]);
        let name = What::Name { call: Call::Stat, file: 0 };
        assert_eq!(found, [step(10, 0, name), step(13, 0, What::Rendezvous)]);
    }

    #[test]
    fn a_machine_that_does_not_say_runs_what_was_recorded() {
        let mut workload = Workload {
            programs: vec![vec![step(5, 9, What::Rendezvous)]],
            named: vec![vec![named(0, 1, 1, Call::Stat, 3)]],
            unreplayed: vec![us(8)],
            ..Workload::default()
        };
        let mut machine = Machine::built_in("sp-argonne").unwrap();
        assert!(matches!(workload.on(&machine), Cow::Borrowed(_)));
        machine.storage = Storage::Parallel(Box::new(crate::parallel::tests::costs()));
        let on = workload.on(&machine);
        assert_eq!((on.programs[0].len(), on.unreplayed[0]), (2, us(5)));
        // Of an unlink it may not say what of a stat it does.
        let Storage::Parallel(files) = &mut machine.storage else { unreachable!() };
        files.metadata.stat = None;
        assert!(matches!(workload.on(&machine), Cow::Borrowed(_)));
        workload.named[0].push(named(1, 1, 1, Call::Unlink, 3));
        assert_eq!(workload.on(&machine).programs[0].len(), 2);
        assert_eq!(Naming::of(Call::Rename), None);
    }
}
