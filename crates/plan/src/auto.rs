//! The choice of a strategy, operation by operation.
//!
//! The ranks describe their accesses to each other, as for two-phase I/O. Every rank then knows, of all: bytes, pieces
//! and bounds. From these each makes the same choice, and goes on as the chosen strategy.

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
        let choice = best(&descriptions, self.group, self.direction, &self.context);
        let (access, hints) = (self.access.clone(), &self.context.hints);
        let mut machine: Box<dyn Machine + Send> = if choice.strategy == Strategy::TwoPhase {
            let mut machine = TwoPhase::begun(descriptions, self.group, self.direction, access, hints);
            machine.exchange(actions);
            Box::new(machine)
        } else {
            let mut machine = choice.strategy.alone(self.group.rank, self.direction, access, &self.context);
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
            _ => (rank == self.group.rank).then_some(&self.access),
        }
    }

    fn choice(&self) -> Option<&Choice> {
        self.choice.as_ref()
    }
}

/// What a request to a file costs beside its bytes, in bytes that could have been copied meanwhile.
const REQUEST_BYTES: u64 = 8 << 10;

/// What a message from rank to rank costs beside its bytes, in the same measure.
const MESSAGE_BYTES: u64 = 16 << 10;

/// The cheapest strategy, by the bytes that the busiest rank moves under each; the simplest one among equals.
fn best(descriptions: &Descriptions, group: Group, direction: Direction, context: &Context) -> Choice {
    let (mut bytes, mut pieces, mut span) = (0_u64, 0_u64, 0_u64);
    for description in descriptions.busy() {
        bytes = bytes.max(description.bytes);
        pieces = pieces.max(description.pieces);
        span = span.max(description.bounds.end - description.bounds.start);
    }
    let total = descriptions.bytes();
    let all = descriptions.bounds();
    let ranks = u64::from(group.ranks);
    let aggregators = u64::from(context.hints.aggregators(group.ranks));
    let independent = bytes.saturating_add(pieces.saturating_mul(REQUEST_BYTES));
    // Those who write into each other's gaps wait for each other.
    let sieving = match direction {
        Direction::Read => span.saturating_add(bytes),
        Direction::Write => span.saturating_mul(2).saturating_mul(descriptions.busy().count() as u64),
    };
    let share = (all.end - all.start).min(total.saturating_mul(2)).div_ceil(aggregators);
    let messages = (ranks - 1).saturating_mul(MESSAGE_BYTES).saturating_mul(2);
    let two_phase = bytes.saturating_add(share).saturating_add(messages).saturating_add(REQUEST_BYTES);
    let mut costs = vec![
        (independent, Strategy::Independent),
        (sieving.saturating_add(REQUEST_BYTES), Strategy::Sieving),
        (two_phase, Strategy::TwoPhase),
    ];
    if context.servers > 0 {
        let requests = u64::from(context.servers).saturating_mul(MESSAGE_BYTES);
        costs.push((bytes.saturating_add(requests), Strategy::Ecio));
    }
    let (cost, strategy) =
        costs.iter().copied().min_by_key(|(cost, _)| *cost).unwrap_or((0, Strategy::TwoPhase));
    let others = costs.iter().filter(|(_, other)| *other != strategy);
    let others: Vec<String> = others
        .map(|(other, name)| format!("{name} {:.1} times", *other as f64 / cost.max(1) as f64))
        .collect();
    let reason = format!(
        "{bytes} bytes in {pieces} pieces on the busiest of {} ranks; estimated cost of the others: {}",
        group.ranks,
        others.join(", ")
    );
    Choice { strategy, reason }
}
