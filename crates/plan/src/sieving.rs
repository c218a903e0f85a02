//! Data sieving (Thakur, Gropp and Lusk 1999): every rank for itself, large requests, the pieces picked out in memory.
//!
//! A read takes a whole window of the file and copies the pieces out of it. A write reads the window, puts the pieces
//! in, and writes it back: meanwhile nobody else may write into the gaps, so the window is locked. Where the pieces of a
//! window are large, or far apart, they are requested one by one instead; so they are where nothing can be locked, and
//! where the file cannot be read.

use std::ops::Range;

use crate::access::{Access, Direction, IoError, Piece, Rank};
use crate::guard::Guard;
use crate::hints::Hints;
use crate::machine::{Action, Event, Io, StateMachine};

/// What a request costs beside its bytes, in bytes: a window of fewer pieces than it has multiples of this is not
/// sieved. In the time of a call, 5 KB of a file in memory can be read and 22 KB written
/// ([`crate::cost::Terms::MEASURED`]); disks and servers put the border higher.
const PIECE_BYTES: u64 = 8 << 10;

/// Whether so many pieces of a window are requested one by one.
pub(crate) fn are_far_apart(pieces: u64, window: u64) -> bool {
    pieces.saturating_mul(PIECE_BYTES) <= window
}

/// One operation of one rank, sieved.
#[derive(Debug)]
pub struct Sieving {
    rank: Rank,
    direction: Direction,
    access: Access,
    buffer_size: u64,
    guard: Guard,
    /// Whether windows are sieved at all.
    sieves: bool,
    /// The first data byte of what is still to do.
    next: u64,
    moved: u64,
    state: State,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    New,
    /// Data bytes, and the interval of the file from the first to the last.
    Locking(Range<u64>, Range<u64>),
    Filling(Range<u64>, Range<u64>),
    Writing(Range<u64>, Range<u64>),
    /// Reads a window.
    Reading(Range<u64>, Range<u64>),
    /// Pieces one by one; the lock to give back afterwards.
    Pieces(Range<u64>, Option<Range<u64>>),
    /// Then goes on, or ends with this.
    Unlocking(Option<Result<u64, IoError>>),
    Finished,
}

impl Sieving {
    /// The machine for one operation of `rank`. What it writes without sieving, it keeps others out of as `guard` says.
    pub fn new(rank: Rank, direction: Direction, access: Access, hints: &Hints, guard: Guard) -> Sieving {
        let next = access.positions.start;
        Sieving {
            rank,
            direction,
            access,
            buffer_size: hints.sieve_size(direction),
            guard,
            sieves: hints.sieves(direction),
            next,
            moved: 0,
            state: State::New,
        }
    }

    /// Begins what comes next.
    fn go_on(&mut self, actions: &mut Vec<Action>) {
        let rest = self.next..self.access.positions.end;
        let Some(first) = self.access.view.offset_of(rest.start).filter(|_| !rest.is_empty()) else {
            return self.finish(Ok(self.moved), actions);
        };
        if !self.sieves || self.access.view.is_contiguous_over(rest.clone()) {
            return self.begin_pieces(rest, actions);
        }
        let window = first..first.saturating_add(self.buffer_size);
        let positions = self.access.view.positions_within(rest, window);
        let part = Access { view: self.access.view.clone(), positions };
        let span = part.bounds();
        if are_far_apart(part.pieces(), span.end - span.start) {
            return self.begin_pieces(part.positions, actions);
        }
        if self.direction == Direction::Read {
            actions.push(Action::Io(Io::window(Direction::Read, span.clone())));
            self.state = State::Reading(part.positions, span);
        } else {
            actions.push(Action::Io(Io::Lock { file: span.clone(), shared: false }));
            self.state = State::Locking(part.positions, span);
        }
    }

    fn begin_pieces(&mut self, positions: Range<u64>, actions: &mut Vec<Action>) {
        if self.guard == Guard::Open {
            return self.request_pieces(positions, None, actions);
        }
        let part = Access { view: self.access.view.clone(), positions: positions.clone() };
        let file = part.bounds();
        actions.push(Action::Io(self.guard.lock(file.clone())));
        self.state = State::Pieces(positions, Some(file));
    }

    fn request_pieces(&mut self, positions: Range<u64>, lock: Option<Range<u64>>, actions: &mut Vec<Action>) {
        self.next = positions.end;
        self.state = State::Pieces(positions.clone(), lock);
        actions.push(Action::Io(Io::Pieces { direction: self.direction, positions }));
    }

    fn done(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        match std::mem::replace(&mut self.state, State::Finished) {
            State::Reading(positions, span) => match result {
                Ok(read) => self.take_out(positions, &span, read, actions),
                Err(error) => self.finish(Err(error), actions),
            },
            State::Locking(positions, span) => match result {
                Ok(_) if positions.end - positions.start == span.end - span.start => {
                    self.put_in(positions, span, actions);
                }
                Ok(_) => {
                    actions.push(Action::Io(Io::window(Direction::Read, span.clone())));
                    self.state = State::Filling(positions, span);
                }
                Err(error) if error.says_that_nothing_can_be_locked() => {
                    (self.sieves, self.guard) = (false, Guard::Open);
                    self.go_on(actions);
                }
                Err(error) => self.finish(Err(error), actions),
            },
            State::Filling(positions, span) => match result {
                Ok(_) => self.put_in(positions, span, actions),
                Err(_) => {
                    self.sieves = false;
                    self.unlock(span, None, actions);
                }
            },
            State::Writing(positions, span) => {
                self.moved += positions.end - positions.start;
                self.next = positions.end;
                self.unlock(span, result.err().map(Err), actions);
            }
            State::Pieces(positions, lock) if self.next < positions.end => match result {
                Ok(_) => self.request_pieces(positions, lock, actions),
                Err(error) if error.says_that_nothing_can_be_locked() => {
                    // Nobody sieves there.
                    self.guard = Guard::Open;
                    self.request_pieces(positions, None, actions);
                }
                Err(error) => self.finish(Err(error), actions),
            },
            State::Pieces(positions, lock) => {
                self.moved += result.unwrap_or(0);
                let ended = result.is_ok_and(|moved| moved < positions.end - positions.start);
                let outcome = if ended { Some(Ok(self.moved)) } else { result.err().map(Err) };
                match (lock, outcome) {
                    (Some(lock), outcome) => self.unlock(lock, outcome, actions),
                    (None, Some(outcome)) => self.finish(outcome, actions),
                    (None, None) => self.go_on(actions),
                }
            }
            // Who lost the lock meanwhile may have undone what another wrote, or been undone.
            State::Unlocking(outcome) => match outcome.or(result.err().map(Err)) {
                Some(outcome) => self.finish(outcome, actions),
                None => self.go_on(actions),
            },
            State::New | State::Finished => panic!("no request was outstanding"),
        }
    }

    /// Copies the pieces of a window that was read, as far as the file goes.
    fn take_out(&mut self, positions: Range<u64>, span: &Range<u64>, read: u64, actions: &mut Vec<Action>) {
        let there = self.access.view.positions_within(positions.clone(), span.start..span.start + read);
        self.moved += there.end - there.start;
        let ended = there.end < positions.end;
        if !there.is_empty() {
            actions.push(self.copy(there, span));
        }
        self.next = if ended { self.access.positions.end } else { positions.end };
        self.go_on(actions);
    }

    /// Copies the pieces into a window, and writes it.
    fn put_in(&mut self, positions: Range<u64>, span: Range<u64>, actions: &mut Vec<Action>) {
        actions.push(self.copy(positions.clone(), &span));
        actions.push(Action::Io(Io::window(Direction::Write, span.clone())));
        self.state = State::Writing(positions, span);
    }

    fn copy(&self, positions: Range<u64>, span: &Range<u64>) -> Action {
        Action::Copy { piece: Piece::alone(self.rank, span.clone(), positions) }
    }

    fn unlock(&mut self, file: Range<u64>, outcome: Option<Result<u64, IoError>>, actions: &mut Vec<Action>) {
        self.state = State::Unlocking(outcome);
        actions.push(Action::Io(Io::Unlock { file }));
    }

    fn finish(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        self.state = State::Finished;
        actions.push(Action::Finish { result });
    }
}

impl StateMachine for Sieving {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => {
                assert_eq!(self.state, State::New, "started twice");
                self.go_on(actions);
            }
            Event::IoDone { result } => self.done(result, actions),
            Event::Received { .. } | Event::Data { .. } | Event::Room { .. } => {
                panic!("nobody sends to a rank that sieves")
            }
        }
    }

    fn access_of(&self, rank: Rank) -> Option<&Access> {
        (rank == self.rank).then_some(&self.access)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use pio_layout::{Datatype, View};

    use super::*;

    /// `count` pieces of `piece` bytes, each `stride` after the one before.
    pub(crate) fn access(count: u64, piece: u64, stride: i64) -> Access {
        let tile = Datatype::bytes(piece).resized(0, stride).unwrap();
        Access { view: View::new(0, 1, tile).unwrap(), positions: 0..count * piece }
    }

    /// The requests that a machine makes if all goes well but those for which `fails` holds. It must
    /// end with all of its access moved.
    pub(crate) fn requests_of(machine: &mut dyn StateMachine, fails: fn(&Io) -> bool) -> Vec<Io> {
        let all = machine.access_of(Rank(0)).unwrap().bytes();
        let mut asked = Vec::new();
        let result = carried_out(machine, &mut |io| {
            asked.push(io.clone());
            fails(io).then_some(9)
        });
        assert_eq!(result, Ok(all));
        asked
    }

    /// What a machine ends with if requests for which `fails` gives an error number fail with it.
    pub(crate) fn outcome_of(
        machine: &mut dyn StateMachine,
        mut fails: fn(&Io) -> Option<i32>,
    ) -> Result<u64, IoError> {
        carried_out(machine, &mut fails)
    }

    fn carried_out(
        machine: &mut dyn StateMachine,
        fails: &mut dyn FnMut(&Io) -> Option<i32>,
    ) -> Result<u64, IoError> {
        let mut event = Event::Start;
        loop {
            let mut actions = Vec::new();
            machine.handle(event, &mut actions);
            event = match actions.pop() {
                Some(Action::Io(io)) => {
                    let bytes = match &io {
                        Io::Pieces { positions, .. } | Io::List { positions, .. } => {
                            positions.end - positions.start
                        }
                        Io::Window { file, .. } => file.end - file.start,
                        _ => 0,
                    };
                    Event::IoDone { result: fails(&io).map_or(Ok(bytes), |errno| Err(IoError { errno })) }
                }
                Some(Action::Finish { result }) => return result,
                other => panic!("{other:?}"),
            };
        }
    }

    /// The bytes of another rank were lost without a word.
    #[test]
    fn a_lock_that_fails_or_was_lost_is_an_error() {
        let lost = |io: &Io| matches!(io, Io::Unlock { .. }).then_some(37);
        let unreachable = |io: &Io| matches!(io, Io::Lock { .. }).then_some(110);
        let no_locks = |io: &Io| matches!(io, Io::Lock { .. }).then_some(95);
        let full = |io: &Io| match io {
            Io::Lock { .. } => None,
            Io::Unlock { .. } => Some(37),
            _ => Some(28),
        };
        for (guard, access) in [(Guard::Open, access(100, 4, 12)), (Guard::Alone, access(10, 8192, 9000))] {
            let outcome = |fails| {
                let hints = Hints::default();
                let mut sieving = Sieving::new(Rank(0), Direction::Write, access.clone(), &hints, guard);
                outcome_of(&mut sieving, fails)
            };
            assert_eq!(outcome(lost), Err(IoError { errno: 37 }));
            assert_eq!(outcome(unreachable), Err(IoError { errno: 110 }));
            assert_eq!(outcome(no_locks), Ok(access.bytes()));
            if guard == Guard::Alone {
                assert_eq!(outcome(full), Err(IoError { errno: 28 }));
            }
        }
    }

    fn requests(direction: Direction, access: Access, guard: Guard, fails: fn(&Io) -> bool) -> Vec<Io> {
        requests_of(&mut Sieving::new(Rank(0), direction, access, &Hints::default(), guard), fails)
    }

    #[test]
    fn a_write_reads_changes_and_writes_back_what_it_has_locked() {
        let found = requests(Direction::Write, access(100, 4, 12), Guard::Open, |_| false);
        let file = 0..99 * 12 + 4;
        let expected = [
            Io::Lock { file: file.clone(), shared: false },
            Io::window(Direction::Read, file.clone()),
            Io::window(Direction::Write, file.clone()),
            Io::Unlock { file },
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_read_takes_a_window_at_a_time() {
        let found = requests(Direction::Read, access(1 << 20, 4, 8), Guard::Open, |_| false);
        assert_eq!(
            found,
            [
                Io::window(Direction::Read, 0..(4 << 20) - 4),
                Io::window(Direction::Read, 4 << 20..(8 << 20) - 4)
            ]
        );
    }

    #[test]
    fn large_or_distant_pieces_are_requested_one_by_one() {
        for access in [access(10, 8192, 9000), access(10, 4, 10_000), access(1, 100, 100)] {
            let positions = access.positions.clone();
            let direction = Direction::Write;
            let found = requests(direction, access.clone(), Guard::Open, |_| false);
            assert_eq!(found, [Io::Pieces { direction, positions: positions.clone() }]);
            // Others may be sieving around them.
            for (guard, shared) in [(Guard::Alone, false), (Guard::Shared, true)] {
                let (file, positions) = (access.bounds(), positions.clone());
                let found = requests(direction, access.clone(), guard, |_| false);
                let lock = Io::Lock { file: file.clone(), shared };
                assert_eq!(found, [lock, Io::Pieces { direction, positions }, Io::Unlock { file }]);
            }
        }
    }

    #[test]
    fn a_lock_that_is_not_to_be_had_is_asked_for_once() {
        // Each window has few pieces.
        let access = access(1000, 4096, 100_000);
        let found = requests(Direction::Write, access, Guard::Shared, |io| matches!(io, Io::Lock { .. }));
        let is_pieces = |io: &Io| matches!(io, Io::Pieces { .. });
        assert!(found.len() > 3 && matches!(found[0], Io::Lock { .. }), "{found:?}");
        assert!(found[1..].iter().all(is_pieces), "{found:?}");
    }

    #[test]
    fn what_cannot_be_locked_or_read_is_written_one_by_one() {
        let pieces = Io::Pieces { direction: Direction::Write, positions: 0..400 };
        let unlockable =
            requests(Direction::Write, access(100, 4, 12), Guard::Open, |io| matches!(io, Io::Lock { .. }));
        assert_eq!(unlockable.last(), Some(&pieces));
        assert_eq!(unlockable.len(), 2);
        let unreadable = |io: &Io| matches!(io, Io::Window { direction: Direction::Read, .. });
        let unreadable = requests(Direction::Write, access(100, 4, 12), Guard::Open, unreadable);
        assert_eq!(unreadable[3..], [pieces]);
    }
}
