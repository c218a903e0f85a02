//! Independent I/O: every rank for itself, one request a contiguous piece.

use crate::access::{Access, Direction, Rank};
use crate::machine::{Action, Event, Io, StateMachine};

/// One request for each contiguous piece of the rank's own access; no message to anyone.
#[derive(Debug)]
pub struct Independent {
    rank: Rank,
    direction: Direction,
    access: Access,
}

impl Independent {
    /// The machine for one operation of `rank`.
    pub fn new(rank: Rank, direction: Direction, access: Access) -> Independent {
        Independent { rank, direction, access }
    }
}

impl StateMachine for Independent {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start if self.access.bytes() == 0 => actions.push(Action::Finish { result: Ok(0) }),
            Event::Start => {
                let positions = self.access.positions.clone();
                actions.push(Action::Io(Io::Pieces { direction: self.direction, positions }));
            }
            Event::IoDone { result } => actions.push(Action::Finish { result }),
            Event::Received { .. } | Event::Data { .. } | Event::Room { .. } => {
                panic!("nobody sends to an independent operation")
            }
        }
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        (rank == self.rank).then_some(&self.access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::IoError;
    use pio_layout::View;

    fn machine(positions: std::ops::Range<u64>) -> Independent {
        Independent::new(Rank(3), Direction::Write, Access { view: View::contiguous(100), positions })
    }

    #[test]
    fn writes_its_own_pieces_and_reports_the_outcome() {
        let mut machine = machine(5..25);
        let mut actions = Vec::new();
        machine.handle(Event::Start, &mut actions);
        assert_eq!(actions, [Action::Io(Io::Pieces { direction: Direction::Write, positions: 5..25 })]);
        actions.clear();
        let result = Err(IoError { errno: 28 });
        machine.handle(Event::IoDone { result }, &mut actions);
        assert_eq!(actions, [Action::Finish { result }]);
    }

    #[test]
    fn nothing_to_do_is_done_at_once() {
        let mut actions = Vec::new();
        machine(5..5).handle(Event::Start, &mut actions);
        assert_eq!(actions, [Action::Finish { result: Ok(0) }]);
    }
}
