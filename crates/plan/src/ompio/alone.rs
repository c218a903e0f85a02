//! What OMPIO does for a rank alone: a request for each piece; pieces to read that are small and near to each other are
//! sieved.

use std::ops::Range;

use crate::access::{Access, Direction, IoError, Piece, Rank};
use crate::machine::{Action, Event, Io, StateMachine};
use crate::ompio::requests;

/// One operation of one rank.
#[derive(Debug)]
pub(super) struct Alone {
    rank: Rank,
    direction: Direction,
    access: Access,
    /// What is to be read and sieved, the last first.
    intervals: Vec<Range<u64>>,
    /// The interval that is being read.
    reading: Option<Range<u64>>,
    moved: u64,
}

impl Alone {
    pub(super) fn new(rank: Rank, direction: Direction, access: Access) -> Alone {
        Alone { rank, direction, access, intervals: Vec::new(), reading: None, moved: 0 }
    }

    fn start(&mut self, actions: &mut Vec<Action>) {
        let positions = self.access.positions.clone();
        if positions.is_empty() {
            return actions.push(Action::Finish { result: Ok(0) });
        }
        let pieces = self.access.view.layout_of(positions.clone()).ok();
        let sieved = pieces.filter(|_| self.direction == Direction::Read);
        match sieved.and_then(|pieces| requests::sieved(&pieces)) {
            Some(intervals) => {
                self.intervals = intervals;
                self.intervals.reverse();
                self.go_on(actions);
            }
            None => actions.push(Action::Io(Io::Pieces { direction: self.direction, positions })),
        }
    }

    fn go_on(&mut self, actions: &mut Vec<Action>) {
        let Some(file) = self.intervals.pop() else {
            return actions.push(Action::Finish { result: Ok(self.moved) });
        };
        self.reading = Some(file.clone());
        actions.push(Action::Io(Io::window(Direction::Read, file)));
    }

    fn done(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        let Some(window) = self.reading.take() else { return actions.push(Action::Finish { result }) };
        let read = match result {
            Ok(read) => read,
            Err(_) => return actions.push(Action::Finish { result }),
        };
        let positions = self.access.within(window.start..window.start + read);
        self.moved += positions.end - positions.start;
        if !positions.is_empty() {
            actions.push(Action::Copy { piece: Piece::alone(self.rank, window, positions) });
        }
        self.go_on(actions);
    }
}

impl StateMachine for Alone {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => self.start(actions),
            Event::IoDone { result } => self.done(result, actions),
            Event::Received { .. } | Event::Data { .. } | Event::Room { .. } => {
                panic!("nobody sends to a rank alone")
            }
        }
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        (rank == self.rank).then_some(&self.access)
    }
}
