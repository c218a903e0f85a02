//! A replacement policy alone: what stays and what leaves when everything is here at once.

use std::ops::Range;

use crate::event::FileId;
use crate::files::Files;
use crate::policy::{Incoming, Policy, Replacer};
use crate::runs::{self, Data, Runs, Traits};
use crate::settings::{SettingsError, check_policy};

/// A replacement policy at work on blocks that are here as soon as they are asked for: for counting misses.
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
        let file = self.files.number(file);
        let mut touched = Touched::default();
        let mut block = blocks.start;
        while block < blocks.end {
            let found = self.runs.find(file, block);
            let end = match found {
                Some(run) => self.runs.get(run).end().min(blocks.end),
                None => self.runs.gap_end(file, block, blocks.end),
            };
            let run = found.map(|run| self.runs.isolate(run, block, end - block));
            match run.filter(|run| self.runs.get(*run).traits.data != Data::Gone) {
                Some(run) => {
                    let hits = self.replacer.hit(&mut self.runs, run);
                    touched.hits += hits;
                    block += hits;
                }
                None => {
                    let (start, length, history) = (block, end - block, run);
                    let traits = Traits::CLEAN;
                    let incoming = Incoming { file, start, length, traits, history, evict_from: None };
                    let misses = self.replacer.admit(&mut self.runs, incoming);
                    assert!(misses > 0, "of blocks that are all clean one can be evicted");
                    touched.misses += misses;
                    block += misses;
                }
            }
        }
        touched
    }

    /// Touches extents of a file one after the other, as [`Replacement::touch`] does each.
    ///
    /// Faster for many at once: where the first blocks of the next extents are found is looked up together, so that the
    /// processor waits for its memory once and not for each.
    pub fn touch_all(&mut self, file: FileId, extents: &[Range<u64>]) -> Touched {
        let number = self.files.number(file);
        let mut total = Touched::default();
        for group in extents.chunks(runs::GROUP) {
            self.runs.warm(number, group);
            for blocks in group {
                let touched = self.touch(file, blocks.clone());
                total.hits += touched.hits;
                total.misses += touched.misses;
            }
        }
        total
    }

    /// Number of blocks that are here.
    pub fn resident(&self) -> u64 {
        self.replacer.resident(&self.runs)
    }
}
