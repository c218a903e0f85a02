//! Which machine each strategy makes of an operation. A new strategy is entered here, and by name in [`Strategy`].

use crate::access::{Access, Direction, Group, Rank};
use crate::auto::Auto;
use crate::beside::Beside;
use crate::ecio::Ecio;
use crate::guard::Guard;
use crate::independent::Independent;
use crate::list::List;
use crate::machine::StateMachine;
use crate::ompio::{self, Ompio};
use crate::romio::{self, Romio};
use crate::sieving::Sieving;
use crate::site::Context;
use crate::strategy::Strategy;
use crate::two_phase::TwoPhase;

impl Strategy {
    /// The machine for a collective operation.
    pub fn collective(
        self,
        group: Group,
        direction: Direction,
        access: Access,
        context: &Context,
    ) -> Box<dyn StateMachine + Send> {
        // Known without a word: aggregators would help only where a strip has data of many ranks.
        let is_direct = context.contiguous && context.servers == 0 && context.hints.striping_unit.is_none();
        match self {
            Strategy::TwoPhase | Strategy::ViewBased | Strategy::Auto if is_direct => {
                Box::new(Independent::new(group.rank, direction, access))
            }
            // They differ in what ranks know of each other's views when they begin.
            Strategy::TwoPhase | Strategy::ViewBased => {
                Box::new(TwoPhase::new(group, direction, access, context))
            }
            Strategy::Auto => Box::new(Auto::new(group, direction, access, context)),
            // Two ranks have its component *individual*, each for itself.
            Strategy::Ompio if group.ranks <= 2 => ompio::alone(group.rank, direction, access),
            Strategy::Ompio => Box::new(Ompio::new(group, direction, access, context)),
            Strategy::Romio => Box::new(Romio::new(group, direction, access, context)),
            Strategy::Independent | Strategy::Sieving | Strategy::List | Strategy::Ecio => {
                self.alone(group.rank, direction, access, context)
            }
        }
    }

    /// Whether the ranks of a collective operation send each other messages; else each makes its own part alone.
    pub fn sends_messages(self) -> bool {
        match self {
            Strategy::TwoPhase | Strategy::ViewBased | Strategy::Auto | Strategy::Romio | Strategy::Ompio => {
                true
            }
            Strategy::Independent | Strategy::Sieving | Strategy::List | Strategy::Ecio => false,
        }
    }

    /// The machine for an operation of one rank: one that the program makes without the others, or in which they need
    /// not work together.
    pub fn alone(
        self,
        rank: Rank,
        direction: Direction,
        access: Access,
        context: &Context,
    ) -> Box<dyn StateMachine + Send> {
        let guard = context.guard_of(direction);
        match self {
            // Who fills gaps there must be kept out, but nobody sieves.
            _ if context.beside == Beside::Collective && direction == Direction::Write => {
                Box::new(List::new(rank, direction, access, Guard::Shared))
            }
            Strategy::Independent => Box::new(Independent::new(rank, direction, access)),
            Strategy::List => Box::new(List::new(rank, direction, access, guard)),
            Strategy::Ompio => ompio::alone(rank, direction, access),
            Strategy::Romio => romio::alone(rank, direction, access, context),
            Strategy::TwoPhase | Strategy::ViewBased | Strategy::Ecio | Strategy::Auto
                if context.servers > 0 =>
            {
                Box::new(Ecio::new(rank, direction, access))
            }
            Strategy::Sieving
            | Strategy::TwoPhase
            | Strategy::ViewBased
            | Strategy::Ecio
            | Strategy::Auto => Box::new(Sieving::new(rank, direction, access, &context.hints, guard)),
        }
    }
}
