//! List I/O (Ching, Choudhary, Liao, Ross and Gropp 2002): every rank for itself, requests that each list many pieces.
//!
//! A request names at most [`EXTENTS`] contiguous pieces, as in PVFS, whose list shares one packet with the start of
//! the data.

use crate::access::{Access, Direction, IoError, Rank};
use crate::guard::Guard;
use crate::machine::{Action, Event, Io, StateMachine};

/// Most pieces that a request lists.
pub const EXTENTS: usize = 64;

/// One operation of one rank, as list requests.
#[derive(Debug)]
pub struct List {
    rank: Rank,
    direction: Direction,
    access: Access,
    /// Where the next request begins.
    next: u64,
    /// Whether a request moved fewer bytes than asked for: the file ends there.
    ended: bool,
    moved: u64,
    guard: Guard,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Locking,
    /// Requested so many bytes.
    Moving(u64),
    /// With this outcome.
    Unlocking(Result<u64, IoError>),
    Finished,
}

impl List {
    /// The machine for one operation of `rank`, which keeps out others that sieve as `guard` says.
    pub fn new(rank: Rank, direction: Direction, access: Access, guard: Guard) -> List {
        let next = access.positions.start;
        List { rank, direction, access, next, ended: false, moved: 0, guard, state: State::New }
    }

    fn request(&mut self, actions: &mut Vec<Action>) {
        let rest = self.next..self.access.positions.end;
        if rest.is_empty() || self.ended {
            return self.leave(Ok(self.moved), actions);
        }
        let bytes = self.access.view.extents(rest).take(EXTENTS).map(|extent| extent.len).sum::<u64>();
        let positions = self.next..self.next + bytes;
        self.next = positions.end;
        self.state = State::Moving(bytes);
        actions.push(Action::Io(Io::List { direction: self.direction, positions }));
    }

    fn leave(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        if self.guard != Guard::Open {
            self.state = State::Unlocking(result);
            actions.push(Action::Io(Io::Unlock { file: self.access.bounds() }));
        } else {
            self.state = State::Finished;
            actions.push(Action::Finish { result });
        }
    }
}

impl StateMachine for List {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match (self.state, event) {
            (State::New, Event::Start) if self.access.bytes() == 0 => {
                self.state = State::Finished;
                actions.push(Action::Finish { result: Ok(0) });
            }
            (State::New, Event::Start) if self.guard != Guard::Open => {
                self.state = State::Locking;
                actions.push(Action::Io(self.guard.lock(self.access.bounds())));
            }
            (State::New, Event::Start) => self.request(actions),
            (State::Locking, Event::IoDone { result: Ok(_) }) => self.request(actions),
            (State::Locking, Event::IoDone { result: Err(error) }) => {
                // Nobody sieves where nothing can be locked.
                self.guard = Guard::Open;
                match error.says_that_nothing_can_be_locked() {
                    true => self.request(actions),
                    false => self.leave(Err(error), actions),
                }
            }
            (State::Moving(_), Event::IoDone { result: Err(error) }) => self.leave(Err(error), actions),
            (State::Moving(bytes), Event::IoDone { result: Ok(moved) }) => {
                self.moved += moved;
                self.ended = moved < bytes;
                self.request(actions);
            }
            (State::Unlocking(result), Event::IoDone { result: unlocked }) => {
                self.state = State::Finished;
                // Who lost the lock meanwhile may have been undone by another.
                let result = result.and_then(|moved| unlocked.map(|_| moved));
                actions.push(Action::Finish { result });
            }
            (state, event) => panic!("{event:?} while {state:?}"),
        }
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        (rank == self.rank).then_some(&self.access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pio_layout::{Datatype, View};

    #[test]
    fn a_request_lists_no_more_pieces_than_it_may() {
        let tile = Datatype::bytes(4).resized(0, 10).unwrap();
        let access = Access { view: View::new(0, 1, tile).unwrap(), positions: 2..4 * 100 };
        let mut machine = List::new(Rank(0), Direction::Write, access, Guard::Open);
        let mut asked = Vec::new();
        let mut event = Event::Start;
        loop {
            let mut actions = Vec::new();
            machine.handle(event, &mut actions);
            match &actions[..] {
                [Action::Io(Io::List { positions, .. })] => {
                    asked.push(positions.clone());
                    event = Event::IoDone { result: Ok(positions.end - positions.start) };
                }
                [Action::Finish { result }] => break assert_eq!(*result, Ok(398)),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(asked, [2..256, 256..400]);
    }

    #[test]
    fn a_lock_that_fails_or_was_lost_is_an_error() {
        let outcome = |fails| {
            let access = crate::sieving::tests::access(100, 4, 12);
            let mut list = List::new(Rank(0), Direction::Write, access, Guard::Shared);
            crate::sieving::tests::outcome_of(&mut list, fails)
        };
        let errno = |errno| Err(IoError { errno });
        assert_eq!(outcome(|io| matches!(io, Io::Unlock { .. }).then_some(37)), errno(37));
        assert_eq!(outcome(|io| matches!(io, Io::Lock { .. }).then_some(110)), errno(110));
        assert_eq!(outcome(|io| matches!(io, Io::Lock { .. }).then_some(95)), Ok(400));
        assert_eq!(outcome(|io| (!matches!(io, Io::Lock { .. })).then_some(28)), errno(28));
    }
}
