//! The choice of a strategy, operation by operation.
//!
//! The ranks describe their accesses to each other, or add up what they access together, as for two-phase I/O. Every rank then
//! knows, of all: bytes, pieces and bounds. From these each makes the same choice, by the [cost model](crate::cost), and goes on as the chosen
//! strategy.
//!
//! To describe is to wait for the last rank, and it takes longer than many an operation. So the ranks also tell each other how
//! long they waited the last time (or, the first time, when they last met), and where they are best off each for itself, they go
//! on so for a while without a word: see [`Remembered`](crate::Remembered).

use crate::access::{Access, Direction, Group, IoError, Rank};
use crate::cost::{self, Setting};
use crate::descriptions::Descriptions;
use crate::machine::{Action, Choice, Event, StateMachine};
use crate::remembered::Recalled;
use crate::site::Context;
use crate::strategy::Strategy;
use crate::two_phase::TwoPhase;

/// Where so many ranks share a processor at most, they read without a word.
///
/// A hand-over between ranks that wait for a processor costs whole turns, milliseconds, while all bytes of a file in
/// memory are read by every rank at gigabytes a second. With more ranks, all that each reads in vain would count.
const MOST_RANKS_OF_A_PROCESSOR: u32 = 4;
/// A file of which less can be read in a turn is not in memory: 50 MB of one that is, 0.2 MB of one behind a slow link.
const BYTES_OF_A_TURN: f64 = 4e6;

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
    Chosen(Box<dyn StateMachine + Send>),
    Failed,
}

impl Auto {
    /// The machine of one rank for one operation. All ranks of the group must be given the same direction and context.
    pub fn new(group: Group, direction: Direction, access: Access, context: &Context) -> Auto {
        let descriptions = Descriptions::new(group, &access, context);
        let context = context.clone();
        Auto { group, direction, access, context, phase: Phase::Describing(descriptions), choice: None }
    }

    fn describe(&mut self, event: Event, actions: &mut Vec<Action>) {
        let Phase::Describing(descriptions) = &mut self.phase else { return };
        match event {
            Event::Start => {
                if reads_without_a_word(self.group, self.direction, &self.context) {
                    let strategy = Strategy::Sieving;
                    let reason =
                        "more ranks than processors: what they told each other would take longer".to_owned();
                    self.choice = Some(Choice { strategy, holds: 0, expected_us: 0, reason });
                    return self.begin_alone(strategy, actions);
                }
                if let Some(strategy) = self.context.remembered.strategy {
                    return self.begin_alone(strategy, actions);
                }
                descriptions.tell(actions);
            }
            Event::Received { from, message } if Descriptions::concern(&message) => {
                if descriptions.take(from, message, actions).is_err() {
                    self.phase = Phase::Failed;
                    actions.push(Action::Finish { result: Err(IoError::PROTOCOL) });
                    return;
                }
            }
            event => descriptions.early.push(event),
        }
        if descriptions.are_summed() {
            self.choose(actions);
        }
    }

    /// Goes on as a strategy under which ranks say nothing to each other.
    fn begin_alone(&mut self, strategy: Strategy, actions: &mut Vec<Action>) {
        let mut machine = strategy.alone(self.group.rank, self.direction, self.access.clone(), &self.context);
        machine.handle(Event::Start, actions);
        self.phase = Phase::Chosen(machine);
    }

    /// What all ranks access together is known.
    fn choose(&mut self, actions: &mut Vec<Action>) {
        let Phase::Describing(mut descriptions) = std::mem::replace(&mut self.phase, Phase::Failed) else {
            return;
        };
        let early = std::mem::take(&mut descriptions.early);
        let ranks = self.group.ranks;
        let operation = descriptions.operation(self.direction);
        let Recalled { is_first, has_exchanged, meets_next, .. } = self.context.remembered;
        // Ranks that meet right after it wait for each other, whatever they do.
        let waits_s = if meets_next { 0.0 } else { descriptions.waits_s(is_first) };
        let setting = Setting {
            described: true,
            is_first,
            waits_s,
            has_exchanged,
            meets_next,
            ..Setting::of(&self.context, self.direction, ranks)
        };
        let choice = cost::choose(&operation, &setting, &self.context.terms);
        let strategy = choice.strategy;
        self.choice = Some(choice);
        if strategy.sends_messages() {
            let access = self.access.clone();
            let mut machine =
                TwoPhase::begun(descriptions, self.group, self.direction, access, &self.context);
            machine.exchange(actions);
            self.phase = Phase::Chosen(Box::new(machine));
        } else {
            self.begin_alone(strategy, actions);
        }
        for event in early {
            self.handle(event, actions);
        }
    }
}

/// Whether to read as all ranks know is best, whatever they access: a file in the memory of a node with more ranks than
/// processors.
fn reads_without_a_word(group: Group, direction: Direction, context: &Context) -> bool {
    let processors = context.processors;
    let is_crowded =
        processors < group.ranks && group.ranks <= processors.saturating_mul(MOST_RANKS_OF_A_PROCESSOR);
    let terms = &context.terms;
    let is_fast = terms.read_bytes_per_s * terms.turn_s >= BYTES_OF_A_TURN;
    let in_memory = terms.are_of_node(context.servers) && is_fast;
    direction == Direction::Read && in_memory && context.shared_memory && is_crowded
}

impl StateMachine for Auto {
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

    fn place_of(&self, rank: Rank) -> Option<&Access> {
        if let Phase::Chosen(machine) = &self.phase { machine.place_of(rank) } else { None }
    }

    fn choice(&self) -> Option<&Choice> {
        self.choice.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use pio_layout::{Datatype, View};

    use super::*;
    use crate::cost::Terms;
    use crate::hints::Hints;
    use crate::nodes::Nodes;
    use crate::site::{Gaps, Site, Via, Views};

    fn first_actions(
        direction: Direction,
        ranks: u32,
        nodes: u32,
        processors: u32,
        terms: Terms,
    ) -> Vec<Action> {
        let tile = Datatype::bytes(4).resized(0, i64::from(ranks) * 4).unwrap();
        let access = Access { view: View::new(0, 4, tile).unwrap(), positions: 0..400 };
        let site = Site {
            ranks,
            nodes: Some(Nodes::of((0..ranks).map(|rank| rank % nodes)).into()),
            processors,
            via: Via::Kernel,
            terms: terms.into(),
        };
        let views = Views { each: None, gaps: Gaps::of(&access.view) };
        let context = site.context(&views, &Hints::default(), direction);
        let mut actions = Vec::new();
        Auto::new(Group { rank: Rank(0), ranks }, direction, access, &context)
            .handle(Event::Start, &mut actions);
        actions
    }

    #[test]
    fn ranks_that_share_processors_read_without_a_word() {
        // Rank 0 of many waits for others first.
        let speaks = |direction, ranks, nodes, processors| {
            first_actions(direction, ranks, nodes, processors, Terms::MEASURED)
                .iter()
                .all(|action| matches!(action, Action::Send { .. }))
        };
        assert!(!speaks(Direction::Read, 4, 1, 2));
        assert!(!speaks(Direction::Read, 8, 1, 2));
        for (direction, ranks, nodes, processors) in [
            (Direction::Write, 4, 1, 2),
            (Direction::Read, 4, 1, 4),
            (Direction::Read, 9, 1, 2),
            (Direction::Read, 4, 2, 2),
        ] {
            assert!(speaks(direction, ranks, nodes, processors), "{direction:?} {ranks} {processors}");
        }
        let slow = Terms { read_bytes_per_s: 50e6, ..Terms::MEASURED };
        let actions = first_actions(Direction::Read, 4, 1, 2, slow);
        assert!(matches!(actions[0], Action::Send { .. }), "{actions:?}");
    }
}
