//! What ROMIO does for a rank alone: contiguous data in one request; else data sieving, or where that is switched off a
//! request for each piece.
//!
//! Windows of a write begin where the data go on, and are read whether they have gaps or not. A read that ends in the
//! middle of a piece is continued as long as if the piece had not been begun: the last one may read beyond the data.

use std::ops::Range;

use pio_layout::View;

use crate::access::{Access, Direction, IoError, Piece, Rank};
use crate::hints::Hints;
use crate::machine::{Action, Event, Io, StateMachine};
use crate::own_hints::Switch;

/// One operation of one rank.
#[derive(Debug)]
pub(super) struct Alone {
    rank: Rank,
    direction: Direction,
    access: Access,
    buffer_size: u64,
    sieves: bool,
    /// The first data byte of what is still to do.
    next: u64,
    moved: u64,
    state: State,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    New,
    /// Data bytes in one request each piece.
    Pieces(Range<u64>),
    /// Data bytes, and the interval of the file.
    Reading(Range<u64>, Range<u64>),
    Locking(Range<u64>, Range<u64>),
    Filling(Range<u64>, Range<u64>),
    Writing(Range<u64>, Range<u64>),
    /// Then goes on, or ends with this.
    Unlocking(Option<IoError>),
    Finished,
}

impl Alone {
    pub(super) fn new(rank: Rank, direction: Direction, access: Access, hints: &Hints) -> Alone {
        let switch = match direction {
            Direction::Read => hints.own.ds_read,
            Direction::Write => hints.own.ds_write,
        };
        let (next, buffer_size) = (access.positions.start, hints.sieve_size(direction).max(1));
        let sieves = switch != Some(Switch::Disable);
        Alone { rank, direction, access, buffer_size, sieves, next, moved: 0, state: State::New }
    }

    /// Begins what comes next.
    fn go_on(&mut self, actions: &mut Vec<Action>) {
        let rest = self.next..self.access.positions.end;
        let (Some(first), Some(last)) = (self.access.view.offset_of(rest.start), self.last_offset(&rest))
        else {
            return self.finish(Ok(self.moved), actions);
        };
        let is_new = rest.start == self.access.positions.start;
        if !self.sieves || (is_new && is_one_block(&self.access.view, &rest)) {
            let positions = self.of_tiles(rest);
            self.state = State::Pieces(positions.clone());
            return actions.push(Action::Io(Io::Pieces { direction: self.direction, positions }));
        }
        let begun = match self.direction {
            Direction::Read => first - self.begin_of_piece(rest.start),
            Direction::Write => 0,
        };
        let size = self.buffer_size.min(last.saturating_add(1) - first + begun);
        let window = first..first.saturating_add(size);
        let positions = self.access.view.positions_within(rest, window.clone());
        match self.direction {
            Direction::Read => {
                actions.push(Action::Io(Io::window(Direction::Read, window.clone())));
                self.state = State::Reading(positions, window);
            }
            Direction::Write => {
                actions.push(Action::Io(Io::Lock { file: window.clone(), shared: false }));
                self.state = State::Locking(positions, window);
            }
        }
    }

    /// Offset of the last byte; none if there is nothing.
    fn last_offset(&self, positions: &Range<u64>) -> Option<u64> {
        let last = positions.end.checked_sub(1).filter(|last| *last >= positions.start)?;
        self.access.view.offset_of(last)
    }

    /// The part of these data bytes to request piece by piece at once: where tiles of the view touch each other, ROMIO
    /// still sees two pieces.
    fn of_tiles(&self, positions: Range<u64>) -> Range<u64> {
        let view = &self.access.view;
        let tile = view.filetype().size().max(1);
        let touch = |end: u64| view.is_contiguous_over(end - 1..end.saturating_add(1));
        let end = (positions.start / tile + 1).saturating_mul(tile);
        if end < positions.end && !is_whole(view) && touch(end) {
            return positions.start..end;
        }
        positions
    }

    /// Offset of the first byte of the access in the piece that has the data byte at `position`, which was requested in
    /// part; or that byte's own, if it begins a piece.
    fn begin_of_piece(&self, position: u64) -> u64 {
        let view = &self.access.view;
        let tile = view.filetype().size().max(1);
        let least = self.access.positions.start.max(position / tile * tile);
        let Some(offset) = view.offset_of(position) else { return 0 };
        // How far back the data go without a gap: there are none behind the first that is found.
        let (mut without, mut with) = (position, least);
        while with < without {
            let middle = with + (without - with) / 2;
            let is_dense = view.offset_of(middle).is_some_and(|there| offset - there == position - middle);
            if is_dense { without = middle } else { with = middle + 1 }
        }
        offset - (position - without)
    }

    fn done(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        match std::mem::replace(&mut self.state, State::Finished) {
            State::Pieces(positions) => {
                self.moved += result.unwrap_or(0);
                let ended = result.is_ok_and(|moved| moved < positions.end - positions.start);
                self.next = if ended { self.access.positions.end } else { positions.end };
                self.go_on_unless(result.err(), actions);
            }
            State::Reading(positions, window) => {
                let read = window.start..window.start + result.unwrap_or(0);
                let there = self.access.view.positions_within(positions.clone(), read);
                self.moved += there.end - there.start;
                if !there.is_empty() {
                    actions.push(self.copy(there.clone(), &window));
                }
                self.next = if there.end < positions.end { self.access.positions.end } else { positions.end };
                self.go_on_unless(result.err(), actions);
            }
            State::Locking(positions, window) => {
                actions.push(Action::Io(Io::window(Direction::Read, window.clone())));
                self.state = State::Filling(positions, window);
            }
            State::Filling(positions, window) => match result {
                Ok(_) => {
                    actions.push(self.copy(positions.clone(), &window));
                    actions.push(Action::Io(Io::window(Direction::Write, window.clone())));
                    self.state = State::Writing(positions, window);
                }
                Err(error) => self.unlock(window, Some(error), actions),
            },
            State::Writing(positions, window) => {
                self.moved += positions.end - positions.start;
                self.next = positions.end;
                self.unlock(window, result.err(), actions);
            }
            State::Unlocking(error) => self.go_on_unless(error.or(result.err()), actions),
            State::New | State::Finished => panic!("no request was outstanding"),
        }
    }

    fn go_on_unless(&mut self, error: Option<IoError>, actions: &mut Vec<Action>) {
        match error {
            Some(error) => self.finish(Err(error), actions),
            None => self.go_on(actions),
        }
    }

    fn copy(&self, positions: Range<u64>, window: &Range<u64>) -> Action {
        Action::Copy { piece: Piece::alone(self.rank, window.clone(), positions) }
    }

    fn unlock(&mut self, file: Range<u64>, error: Option<IoError>, actions: &mut Vec<Action>) {
        self.state = State::Unlocking(error);
        actions.push(Action::Io(Io::Unlock { file }));
    }

    fn finish(&mut self, result: Result<u64, IoError>, actions: &mut Vec<Action>) {
        self.state = State::Finished;
        actions.push(Action::Finish { result });
    }
}

/// Whether a view shows every byte from its first on.
fn is_whole(view: &View) -> bool {
    view.is_contiguous_over(0..u64::MAX)
}

/// Whether these data bytes are in one piece of one tile of the view, or the view has no gaps at all.
fn is_one_block(view: &View, positions: &Range<u64>) -> bool {
    let tile = view.filetype().size().max(1);
    let is_in_one = positions.is_empty() || positions.start / tile == (positions.end - 1) / tile;
    is_whole(view) || (is_in_one && view.is_contiguous_over(positions.clone()))
}

impl StateMachine for Alone {
    fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Start => self.go_on(actions),
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

#[cfg(test)]
mod tests {
    use pio_layout::Datatype;

    use super::*;
    use crate::sieving::tests::{access, requests_of};

    fn requests(direction: Direction, access: Access, hints: &str) -> Vec<Io> {
        requests_of(&mut Alone::new(Rank(0), direction, access, &Hints::parse(hints).unwrap()), |_| false)
    }

    #[test]
    fn contiguous_data_are_one_request() {
        let whole = Access { view: View::contiguous(7), positions: 5..5000 };
        let io = |direction| Io::Pieces { direction, positions: 5..5000 };
        assert_eq!(requests(Direction::Write, whole.clone(), ""), [io(Direction::Write)]);
        assert_eq!(requests(Direction::Read, whole, ""), [io(Direction::Read)]);
        let nothing = Access { positions: 5..5, ..access(1, 10, 20) };
        assert_eq!(requests(Direction::Read, nothing, ""), []);
    }

    #[test]
    fn a_write_fills_window_after_window() {
        // Pieces at 0, 10, 20, … of 6 bytes; the first window ends in the middle of the third.
        let found = requests(Direction::Write, access(4, 6, 10), "ind_wr_buffer_size=23");
        let whole = |file: Range<u64>| {
            [
                Io::Lock { file: file.clone(), shared: false },
                Io::window(Direction::Read, file.clone()),
                Io::window(Direction::Write, file.clone()),
                Io::Unlock { file },
            ]
        };
        assert_eq!(found, [whole(0..23), whole(23..36)].concat());
    }

    #[test]
    fn a_read_that_goes_on_within_a_piece_is_longer() {
        let found = requests(Direction::Read, access(4, 6, 10), "ind_rd_buffer_size=23");
        assert_eq!(found, [Io::window(Direction::Read, 0..23), Io::window(Direction::Read, 23..39)]);
        let found = requests(Direction::Read, access(4, 6, 10), "ind_rd_buffer_size=26");
        assert_eq!(found, [Io::window(Direction::Read, 0..26), Io::window(Direction::Read, 30..36)]);
    }

    #[test]
    fn without_sieving_each_piece_is_a_request() {
        let found = requests(Direction::Write, access(4, 6, 10), "romio_ds_write=disable");
        assert_eq!(found, [Io::Pieces { direction: Direction::Write, positions: 0..24 }]);
        // The last piece of a tile touches the first of the next: still two requests.
        let tile = Datatype::hindexed(&[(4, 0), (4, 8)], &Datatype::bytes(1)).unwrap();
        let touching = Access { view: View::new(0, 1, tile).unwrap(), positions: 0..16 };
        let found = requests(Direction::Read, touching, "romio_ds_read=disable");
        let pieces = |positions| Io::Pieces { direction: Direction::Read, positions };
        assert_eq!(found, [pieces(0..8), pieces(8..16)]);
    }
}
