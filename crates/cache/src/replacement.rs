//! A replacement policy alone: what stays and what leaves when everything is here at once.

use std::ops::Range;

use crate::blocks::Blocks;
use crate::event::FileId;
use crate::files::Files;
use crate::policy::{Incoming, Policy, Replacer};
use crate::runs::{self, Data, Runs, Traits};
use crate::settings::{SettingsError, check_policy};

/// Single blocks that are touched in the time in which a run is.
const BLOCKS_PER_RUN: u64 = 8;

/// Single blocks that are touched in the time that turning one of them into a part of a run, or back, takes.
const BLOCKS_PER_CONVERSION: u64 = 4;

/// Extents between two looks at whether the other form would be faster.
const GROUP: usize = 256;

/// A replacement policy at work on blocks that are here as soon as they are asked for: for counting misses.
///
/// It keeps what it knows as single blocks or as runs of them, whichever is faster for the requests it sees; what it
/// counts does not depend on it.
///
/// ```
/// use pio_cache::{FileId, Policy, Replacement};
///
/// let mut lru = Replacement::new(Policy::Lru, 3).unwrap();
/// assert_eq!(lru.touch(FileId(1), 0..3).misses, 3);
/// assert_eq!(lru.touch(FileId(1), 2..4).hits, 1); // block 3 takes the place of block 0
/// assert_eq!(lru.touch(FileId(1), 0..1).misses, 1);
/// ```
pub struct Replacement {
    policy: Policy,
    capacity: u64,
    known: Known,
    /// What the requests so far would have saved in the other form, in touches of a single block; 0 if nothing.
    loss: u64,
    files: Files,
}

/// What is known of the blocks.
enum Known {
    Blocks(Box<Blocks>),
    Runs(Replacer, Box<Runs>),
}

/// What a touch of some blocks found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Blocks that were here.
    pub hits: u64,
    /// Blocks that were not.
    pub misses: u64,
}

impl Replacement {
    /// A policy on a cache of so many blocks, empty.
    pub fn new(policy: Policy, blocks: u64) -> Result<Replacement, SettingsError> {
        check_policy(policy, blocks)?;
        let known = Known::Blocks(Box::new(Blocks::new(policy, blocks)));
        Ok(Replacement { policy, capacity: blocks, known, loss: 0, files: Files::default() })
    }

    /// Touches blocks of a file one after the other, in ascending order.
    pub fn touch(&mut self, file: FileId, blocks: Range<u64>) -> Touched {
        self.touch_all(file, &[blocks])
    }

    /// Touches extents of a file one after the other, as [`Replacement::touch`] does each.
    ///
    /// Faster for many at once: where the first blocks of the next extents are found is looked up together, so that the
    /// processor waits for its memory once and not for each.
    pub fn touch_all(&mut self, file: FileId, extents: &[Range<u64>]) -> Touched {
        let file = self.files.number(file);
        let mut total = Touched::default();
        for group in extents.chunks(GROUP) {
            let single = all_single(group);
            let blocks = if single {
                group.len() as u64
            } else {
                group.iter().map(|extent| extent.end.saturating_sub(extent.start)).sum()
            };
            self.choose(group.len() as u64, blocks);
            let hits = match &mut self.known {
                Known::Blocks(known) => known.touch(file, group, single),
                Known::Runs(replacer, runs) => {
                    let (hits, pieces) = touch_runs(replacer, runs, file, group);
                    self.loss = (self.loss + BLOCKS_PER_RUN * pieces).saturating_sub(blocks);
                    hits
                }
            };
            total.hits += hits;
            total.misses += blocks - hits;
        }
        total
    }

    /// Number of blocks that are here.
    pub fn resident(&self) -> u64 {
        match &self.known {
            Known::Blocks(blocks) => blocks.resident(),
            Known::Runs(replacer, runs) => replacer.resident(runs),
        }
    }

    /// Changes the form in which blocks are known before the next extents are touched, if the other would have saved
    /// more by now than the change costs.
    #[inline]
    fn choose(&mut self, extents: u64, blocks: u64) {
        let known = match &self.known {
            Known::Blocks(known) => {
                self.loss = (self.loss + blocks).saturating_sub(BLOCKS_PER_RUN * extents);
                known.known()
            }
            Known::Runs(_, runs) => runs.known(),
        };
        if self.loss > BLOCKS_PER_CONVERSION * known + 1000 {
            self.turn();
        }
    }

    /// Changes the form in which blocks are known.
    fn turn(&mut self) {
        let (policy, capacity) = (self.policy, self.capacity);
        self.loss = 0;
        self.known = match &self.known {
            Known::Blocks(known) => {
                let (replacer, runs) = known.to_runs(policy, capacity);
                Known::Runs(replacer, Box::new(runs))
            }
            Known::Runs(replacer, runs) => {
                Known::Blocks(Box::new(Blocks::from_runs(policy, capacity, replacer, runs)))
            }
        };
    }
}

/// Whether each extent is one block. Without a branch an extent, for most often they are all alike.
fn all_single(extents: &[Range<u64>]) -> bool {
    extents.iter().fold(0, |others, extent| others | extent.end.wrapping_sub(extent.start) ^ 1) == 0
}

/// Touches extents of a file; gives how many blocks were here, and in how many pieces.
fn touch_runs(replacer: &mut Replacer, runs: &mut Runs, file: u32, extents: &[Range<u64>]) -> (u64, u64) {
    let (mut hits, mut pieces) = (0, 0);
    for group in extents.chunks(runs::GROUP) {
        runs.warm(file, group);
        for blocks in group {
            let mut block = blocks.start;
            while block < blocks.end {
                let (touched, hit) = touch_piece(replacer, runs, file, block..blocks.end);
                hits += if hit { touched } else { 0 };
                pieces += 1;
                block += touched;
            }
        }
    }
    (hits, pieces)
}

/// Touches as many of some blocks as have the same fate: how many, and whether they were here.
#[inline]
fn touch_piece(replacer: &mut Replacer, runs: &mut Runs, file: u32, blocks: Range<u64>) -> (u64, bool) {
    let start = blocks.start;
    let found = runs.find(file, start);
    let end = match found {
        Some(run) => runs.get(run).end().min(blocks.end),
        None => runs.gap_end(file, start, blocks.end),
    };
    let length = end - start;
    let history = found.map(|run| runs.isolate(run, start, length));
    if let Some(run) = history.filter(|run| runs.get(*run).traits.data != Data::Gone) {
        return (replacer.hit(runs, run), true);
    }
    let incoming = Incoming { file, start, length, traits: Traits::CLEAN, history, evict_from: None };
    let misses = replacer.admit(runs, incoming);
    assert!(misses > 0, "of blocks that are all clean one can be evicted");
    (misses, false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Extents of one of two files, and whether to change the form before it.
    fn requests() -> impl Strategy<Value = Vec<(u64, u64, u64, bool)>> {
        let extent = prop_oneof![(0..60u64, 1..40u64), (0..60u64, Just(1)), (0..6u64, 1..3u64)];
        let request = (0..2u64, extent, prop::bool::weighted(0.2));
        prop::collection::vec(
            request.prop_map(|(file, (start, length), turn)| (file, start, length, turn)),
            1..150,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Single blocks, runs, and changing between them: all the same.
        #[test]
        fn the_form_does_not_matter(capacity in 5..160u64, policy in 0..Policy::ALL.len(), requests in requests()) {
            let policy = Policy::ALL[policy];
            let [mut blocks, mut runs, mut either] = [(); 3].map(|()| Replacement::new(policy, capacity).unwrap());
            runs.turn();
            for (number, (file, start, length, turn)) in requests.into_iter().enumerate() {
                if turn {
                    either.turn();
                }
                let touched = [&mut blocks, &mut runs, &mut either].map(|replacement| {
                    replacement.loss = 0;
                    let touched = replacement.touch(FileId(file), start..start + length);
                    (touched, replacement.resident())
                });
                prop_assert!(matches!(blocks.known, Known::Blocks(_)) && matches!(runs.known, Known::Runs(..)));
                prop_assert_eq!(touched[0], touched[1], "request {} with {}", number, policy);
                prop_assert_eq!(touched[0], touched[2], "request {} with {}, changed", number, policy);
            }
        }
    }

    /// What is kept follows what is asked for: an extent that nobody could keep block by block included.
    #[test]
    fn the_form_follows_the_requests() {
        let mut lru = Replacement::new(Policy::Lru, 1 << 50).unwrap();
        lru.touch(FileId(1), 0..10);
        assert!(matches!(lru.known, Known::Blocks(_)));
        assert_eq!(lru.touch(FileId(1), 0..1 << 50).hits, 10);
        assert!(matches!(lru.known, Known::Runs(..)));

        let mut arc = Replacement::new(Policy::Arc, 1000).unwrap();
        arc.touch(FileId(1), 0..5000);
        assert!(matches!(arc.known, Known::Runs(..)));
        for step in 0..5000 {
            arc.touch(FileId(1), step * 7 % 900..step * 7 % 900 + 1);
        }
        assert!(matches!(arc.known, Known::Blocks(_)));
    }
}
