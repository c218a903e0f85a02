//! A replacement policy alone: what stays and what leaves when everything is here at once.

use std::ops::Range;

use crate::event::FileId;
use crate::files::Files;
use crate::index::RunId;
use crate::policy::{Incoming, Policy, Replacer};
use crate::runs::{self, Data, Runs, Traits};
use crate::settings::{SettingsError, check_policy};

/// The replacement of [`Cache`](crate::Cache) alone, on blocks that are here as soon as they are asked for: for counting
/// misses.
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
    replacer: Replacer,
    runs: Runs,
    files: Files,
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
        let (replacer, runs) = Replacer::new(policy, blocks);
        Ok(Replacement { replacer, runs, files: Files::default() })
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
        for group in extents.chunks(runs::GROUP) {
            self.runs.warm(file, group);
            for blocks in group {
                self.touch_extent(file, blocks.clone(), &mut total);
            }
        }
        total
    }

    /// Number of blocks that are here.
    pub fn resident(&self) -> u64 {
        self.replacer.resident(&self.runs)
    }

    fn touch_extent(&mut self, file: u32, mut blocks: Range<u64>, total: &mut Touched) {
        while blocks.start < blocks.end {
            let found = self.runs.find(file, blocks.start);
            let here = found.filter(|run| self.runs.get(*run).traits.data != Data::Gone);
            let touched = match here {
                Some(run) => self.hit(run, &blocks),
                None => self.miss(file, found, &blocks),
            };
            *(if here.is_some() { &mut total.hits } else { &mut total.misses }) += touched;
            blocks.start += touched;
        }
    }

    /// Touches as many of the first blocks, which are in `run` and here, as have the same fate: how many.
    #[inline]
    fn hit(&mut self, run: RunId, blocks: &Range<u64>) -> u64 {
        let end = self.runs.get(run).end().min(blocks.end);
        let run = self.runs.isolate(run, blocks.start, end - blocks.start);
        self.replacer.hit(&mut self.runs, run)
    }

    /// Takes in as many of the first blocks, which are not here, as have the same fate: how many.
    #[inline]
    fn miss(&mut self, file: u32, history: Option<RunId>, blocks: &Range<u64>) -> u64 {
        let start = blocks.start;
        let end = match history {
            Some(run) => self.runs.get(run).end().min(blocks.end),
            None => self.runs.gap_end(file, start, blocks.end),
        };
        let length = end - start;
        let history = history.map(|run| self.runs.isolate(run, start, length));
        let incoming = Incoming { file, start, length, traits: Traits::CLEAN, history, evict_from: None };
        let taken = self.replacer.admit(&mut self.runs, incoming);
        assert!(taken > 0, "of blocks that are all clean one can be evicted");
        taken
    }
}
