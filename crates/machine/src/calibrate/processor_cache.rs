//! Reads and writes of files that the caches of the processors hold.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{MIDDLE, each, fresh, rate};
use crate::machine::CallCost;
use crate::processor_cache::ProcessorCache;
use crate::spreads::Spreads;

/// Bytes of a file that is gone through again and again: some that each core has room for, and more than most caches have.
const FOOTPRINTS: [usize; 6] = [1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20];
/// Bytes that are moved of each, at least.
const MOVED: u64 = 16 << 20;
/// Where it takes more than this part of the time with the least footprint, there is nothing to tell.
const LEAST: f64 = 0.8;

/// Seconds of calls, in each run, by [`FOOTPRINTS`].
#[derive(Default)]
pub(super) struct Calls {
    reads: [Vec<f64>; FOOTPRINTS.len()],
    writes: [Vec<f64>; FOOTPRINTS.len()],
}

impl Calls {
    /// One run, with calls of these data, [`MIDDLE`] bytes.
    pub(super) fn measure(&mut self, path: &Path, data: &mut [u8]) -> io::Result<()> {
        for (footprint, (reads, writes)) in
            FOOTPRINTS.into_iter().zip(self.reads.iter_mut().zip(&mut self.writes))
        {
            let file = fresh(path)?;
            let size = data.len() as u64;
            let places = footprint as u64 / size;
            let calls = places.max(MOVED / size);
            let place = |index: u64| index % places * size;
            // Its pages are to be there.
            each(places, |index| file.write_all_at(data, place(index)))?;
            writes.push(each(calls, |index| file.write_all_at(data, place(index)))?);
            reads.push(each(calls, |index| file.read_exact_at(data, place(index)))?);
        }
        Ok(())
    }

    /// What all runs tell, where a call of a few bytes costs so much.
    pub(super) fn found(
        self,
        read: &CallCost,
        write: &CallCost,
        spreads: &mut Spreads,
    ) -> Option<ProcessorCache> {
        let middles = |runs: &[Vec<f64>; FOOTPRINTS.len()]| runs.clone().map(super::middle);
        let (reads, writes) = (middles(&self.reads), middles(&self.writes));
        let both: Vec<f64> = reads.iter().zip(&writes).map(|(read, write)| read + write).collect();
        let (first, last) = (both[0], both[both.len() - 1]);
        if first > last * LEAST {
            return None;
        }
        let held = both.iter().rposition(|seconds| *seconds < f64::midpoint(first, last))?;
        spreads.note_runs("calls.processor-cache.read", &self.reads[0]);
        spreads.note_runs("calls.processor-cache.write", &self.writes[0]);
        let beyond = |seconds: f64, cost: &CallCost| rate((seconds - cost.call.seconds()) / MIDDLE as f64);
        Some(ProcessorCache {
            size: FOOTPRINTS[held] as u64,
            read: beyond(reads[0], read),
            write: beyond(writes[0], write),
        })
    }
}
