//! ECIO (Hong, You and Chung 2006): every rank sends its data straight to the I/O servers, and no data go from rank to
//! rank.
//!
//! The servers are told the view and the positions, tens of bytes however many pieces there are, and put the pieces in
//! place in their own memory.

use crate::access::{Access, Direction, Rank};
use crate::machine::{Action, Event, Io, StateMachine};

/// One operation of one rank on I/O servers.
#[derive(Debug)]
pub struct Ecio {
    rank: Rank,
    direction: Direction,
    access: Access,
}

impl Ecio {
    /// The machine for one operation of `rank`.
    pub fn new(rank: Rank, direction: Direction, access: Access) -> Ecio {
        Ecio { rank, direction, access }
    }
}

impl StateMachine for Ecio {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start if self.access.bytes() == 0 => actions.push(Action::Finish { result: Ok(0) }),
            Event::Start => {
                let positions = self.access.positions.clone();
                actions.push(Action::Io(Io::Ship { direction: self.direction, positions }));
            }
            Event::IoDone { result } => actions.push(Action::Finish { result }),
            Event::Received { .. } | Event::Data { .. } | Event::Room { .. } => {
                panic!("nobody sends to a rank that asks servers")
            }
        }
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        (rank == self.rank).then_some(&self.access)
    }
}
