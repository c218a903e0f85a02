//! Data in rounds, as the MPI libraries' own collective calls move them: each round a window of each aggregator.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::access::{Access, Direction, IoError, Piece, Rank};
use crate::machine::Action;

/// What a rank has moved and been told in an operation of rounds, for its outcome.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// How many pieces of data came, by round.
    arrived: BTreeMap<u64, u32>,
    /// Bytes that were read for this rank.
    moved: u64,
    /// The first error.
    error: Option<IoError>,
}

impl Tally {
    /// A piece of data came. What is read says how much there was, and with what error.
    pub(crate) fn arrived(&mut self, direction: Direction, piece: &Piece, error: Option<IoError>) {
        if direction == Direction::Read {
            self.moved(piece);
            self.failed(error);
        }
        *self.arrived.entry(piece.index).or_insert(0) += 1;
    }

    /// Whether so many pieces of a round came; if so, they are taken off.
    pub(crate) fn are_all_here(&mut self, round: u64, awaited: u32) -> bool {
        let all = self.arrived.get(&round).copied().unwrap_or(0) >= awaited;
        if all {
            self.arrived.remove(&round);
        }
        all
    }

    fn moved(&mut self, piece: &Piece) {
        self.moved += piece.positions.end - piece.positions.start;
    }

    /// Something failed, or not.
    pub(crate) fn failed(&mut self, error: Option<IoError>) {
        self.error = self.error.or(error);
    }

    /// The first error, if there was one.
    pub(crate) fn error(&self) -> Option<IoError> {
        self.error
    }

    /// What the program is told: a write that did not fail moved all of `access`.
    pub(crate) fn outcome(&self, direction: Direction, access: &Access) -> Result<u64, IoError> {
        let moved = match direction {
            Direction::Read => self.moved,
            Direction::Write => access.bytes(),
        };
        self.error.map_or(Ok(moved), Err)
    }
    /// An aggregator of a read gives its clients what is in its window of a round, as far as the file went.
    pub(crate) fn send_to_clients(
        &mut self,
        me: Rank,
        clients: &BTreeMap<Rank, Access>,
        (index, window): (u64, &Range<u64>),
        read: Result<Range<u64>, IoError>,
        actions: &mut Vec<Action>,
    ) {
        let there = read.clone().unwrap_or(window.start..window.start);
        for (&client, access) in clients {
            let all = access.within(window.clone());
            if all.is_empty() {
                continue;
            }
            let there = access.within(there.clone());
            let positions = if there.is_empty() { all.start..all.start } else { there };
            let piece = Piece { client, index, window: window.clone(), positions };
            if client != me {
                actions.push(Action::SendData { to: client, piece, error: read.clone().err() });
            } else if !piece.positions.is_empty() {
                self.moved(&piece);
                actions.push(Action::Copy { piece });
            }
        }
    }
}

/// A rank of a write gives each aggregator what it has in its window of a round.
pub(crate) fn send_to_aggregators(
    client: Rank,
    access: &Access,
    index: u64,
    windows: impl Iterator<Item = (Rank, Range<u64>)>,
    actions: &mut Vec<Action>,
) {
    for (aggregator, window) in windows {
        let positions = access.within(window.clone());
        if positions.is_empty() {
            continue;
        }
        let piece = Piece { client, index, window, positions };
        actions.push(if aggregator == client {
            Action::Copy { piece }
        } else {
            Action::SendData { to: aggregator, piece, error: None }
        });
    }
}
