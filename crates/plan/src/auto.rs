//! The choice of a strategy, operation by operation.
//!
//! The ranks describe their accesses to each other, as for two-phase I/O. Every rank then knows, of all: bytes, pieces
//! and bounds. From these each makes the same choice, by the [cost model](crate::cost), and goes on as the chosen
//! strategy.

use crate::cost::{self, Operation, Setting, Terms};
use crate::descriptions::Descriptions;
use crate::domain::Domains;
use crate::machine::{
    Access, Action, Choice, Context, Direction, Event, Group, IoError, Machine, Rank, Strategy,
};
use crate::message::Message;
use crate::two_phase::TwoPhase;

/// A message that the protocol does not allow at this point.
const PROTOCOL_ERROR: IoError = IoError { errno: 71 };

/// One collective operation of one rank, under the strategy that suits it.
pub struct Auto {
    group: Group,
    direction: Direction,
    access: Access,
    context: Context,
    phase: Phase,
    choice: Option<Choice>,
}

enum Phase {
    Describing(Descriptions),
    Chosen(Box<dyn Machine + Send>),
    Failed,
}

impl Auto {
    /// The machine of one rank for one operation. All ranks of the group must be given the same direction and context.
    pub fn new(group: Group, direction: Direction, access: Access, context: &Context) -> Auto {
        let descriptions = Descriptions::new(group, &access, context.views.clone());
        let context = context.clone();
        Auto { group, direction, access, context, phase: Phase::Describing(descriptions), choice: None }
    }

    fn describe(&mut self, event: Event, actions: &mut Vec<Action>) {
        let Phase::Describing(descriptions) = &mut self.phase else { return };
        let domains = Domains::new(&self.context.hints, self.group.ranks);
        match event {
            Event::Start => {
                descriptions.tell(self.group, &self.access, |to| domains.aggregates(to), actions);
            }
            Event::Received { from, message: message @ (Message::Describe(_) | Message::TakePart(_)) } => {
                if !descriptions.take(from, message, domains.aggregates(self.group.rank)) {
                    self.phase = Phase::Failed;
                    actions.push(Action::Finish { result: Err(PROTOCOL_ERROR) });
                    return;
                }
            }
            event => descriptions.early.push(event),
        }
        if descriptions.are_complete() {
            self.choose(actions);
        }
    }

    /// All descriptions are known.
    fn choose(&mut self, actions: &mut Vec<Action>) {
        let Phase::Describing(mut descriptions) = std::mem::replace(&mut self.phase, Phase::Failed) else {
            return;
        };
        let early = std::mem::take(&mut descriptions.early);
        let ranks = self.group.ranks;
        let operation = Operation::of(self.direction, ranks, descriptions.busy());
        let processors = self.context.processors.unwrap_or(ranks).min(ranks);
        let setting =
            Setting { described: true, ..Setting::of(&self.context, self.direction, ranks, processors) };
        let choice = cost::choose(&operation, &setting, &Terms::MEASURED);
        let (access, hints) = (self.access.clone(), &self.context.hints);
        let mut machine: Box<dyn Machine + Send> =
            if matches!(choice.strategy, Strategy::TwoPhase | Strategy::ViewBased) {
                let mut machine = TwoPhase::begun(descriptions, self.group, self.direction, access, hints);
                machine.exchange(actions);
                Box::new(machine)
            } else {
                let mut machine =
                    choice.strategy.alone(self.group.rank, self.direction, access, &self.context);
                machine.handle(Event::Start, actions);
                machine
            };
        for event in early {
            machine.handle(event, actions);
        }
        self.choice = Some(choice);
        self.phase = Phase::Chosen(machine);
    }
}

impl Machine for Auto {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match &mut self.phase {
            Phase::Describing(_) => self.describe(event, actions),
            Phase::Chosen(machine) => machine.handle(event, actions),
            Phase::Failed => {}
        }
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        match &self.phase {
            Phase::Chosen(machine) => machine.access_of(rank),
            // A faster rank may have chosen, and be sending data.
            Phase::Describing(descriptions) if rank != self.group.rank => descriptions.access_of(rank),
            _ => (rank == self.group.rank).then_some(&self.access),
        }
    }

    fn choice(&self) -> Option<&Choice> {
        self.choice.as_ref()
    }
}
