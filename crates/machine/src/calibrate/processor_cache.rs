//! Reads and writes of files that the caches of the processors hold.

use std::array;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{MIDDLE, each, fresh, rate, time};
use crate::machine::CallCost;
use crate::processor_cache::ProcessorCache;
use crate::spreads::Spreads;

/// Bytes of a file that is gone through again and again: some that each core has room for, and more than most caches have.
const FOOTPRINTS: [usize; 6] = [1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20];
const LARGEST: usize = FOOTPRINTS[FOOTPRINTS.len() - 1];
/// Bytes that are moved of each, at least.
const MOVED: u64 = 16 << 20;
/// Bytes of a call here and there; how far such calls are apart, so that each is in another page, and in other lines of it; and how
/// many there are: those in the first half of the largest footprint, which is no longer in a cache once it was gone through.
const SMALL: usize = 512;
const APART: u64 = 4096 + 9 * 64;
const SMALL_CALLS: u64 = (LARGEST / 2) as u64 / APART;
/// Where it takes more than this part of the time with the least footprint, there is nothing to tell.
const LEAST: f64 = 0.8;

/// Seconds of calls, in each run, by [`FOOTPRINTS`].
#[derive(Default)]
pub(super) struct Calls {
    reads: [Vec<f64>; FOOTPRINTS.len()],
    writes: [Vec<f64>; FOOTPRINTS.len()],
    /// Of reads here and there.
    read_apart: Vec<f64>,
    write_apart: Vec<f64>,
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
            if footprint == LARGEST {
                let small = &mut data[..SMALL];
                let read = each(SMALL_CALLS, |index| file.read_exact_at(small, index * APART))?;
                let between = APART / 2;
                let write = each(SMALL_CALLS, |index| file.write_all_at(small, index * APART + between))?;
                self.read_apart.push(read);
                self.write_apart.push(write);
            }
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
        let mut gather = |key: &str, runs: &[Vec<f64>; FOOTPRINTS.len()]| {
            array::from_fn(|at| {
                let key = format!("calls.processor-cache.{key}.{} B", FOOTPRINTS[at]);
                spreads.gather(&key, runs[at].clone())
            })
        };
        let all_reads: [Vec<f64>; FOOTPRINTS.len()] = gather("read", &self.reads);
        let all_writes: [Vec<f64>; FOOTPRINTS.len()] = gather("write", &self.writes);
        let (reads, writes) = (all_reads.clone().map(super::middle), all_writes.clone().map(super::middle));
        let both: Vec<f64> = reads.iter().zip(&writes).map(|(read, write)| read + write).collect();
        if both[0] > both[both.len() - 1] * LEAST {
            return None;
        }
        spreads.note_runs("calls.processor-cache.read", &all_reads[0]);
        spreads.note_runs("calls.processor-cache.write", &all_writes[0]);
        let beyond = |seconds: f64, cost: &CallCost| rate((seconds - cost.call.seconds()) / MIDDLE as f64);
        let mut miss = |key: &str, apart: Vec<f64>, cost: &CallCost| {
            time((spreads.middle(key, apart) - cost.of(SMALL as u64).seconds()).max(0.0))
        };
        let read_miss = miss("calls.processor-cache.read-miss", self.read_apart, read);
        let write_miss = miss("calls.processor-cache.write-miss", self.write_apart, write);
        // The memory of the calls is held, too.
        Some(ProcessorCache {
            size: footprint_half_way(&both)? + MIDDLE as u64,
            read: beyond(reads[0], read),
            write: beyond(writes[0], write),
            read_miss,
            write_miss,
        })
    }
}

/// With how many bytes calls take half-way between what they take with the least footprint and with the most: caches hold ever less of
/// what is larger than they are, so that on the line between two footprints is the size that tells best what is held.
fn footprint_half_way(seconds: &[f64]) -> Option<u64> {
    let half_way = f64::midpoint(*seconds.first()?, *seconds.last()?);
    let held = seconds.iter().rposition(|seconds| *seconds < half_way)?;
    let (below, above) = (seconds[held], *seconds.get(held + 1)?);
    let part = (half_way - below) / (above - below);
    let bytes = FOOTPRINTS[held] as f64 + part * (FOOTPRINTS[held + 1] - FOOTPRINTS[held]) as f64;
    Some((bytes as u64).next_multiple_of(MIDDLE as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_where_calls_take_half_way() {
        let of =
            |seconds: [f64; 6]| footprint_half_way(&seconds).map(|bytes| bytes as f64 / f64::from(1 << 20));
        assert_eq!(of([1.0, 1.0, 1.0, 1.0, 3.0, 3.0]), Some(12.0));
        assert_eq!(of([1.0, 1.0, 1.0, 1.5, 3.5, 3.0]), Some(10.0));
        assert_eq!(of([1.0, 1.0, 1.0, 1.0, 1.0, 3.0]), Some(24.0));
        assert_eq!(of([1.0; 6]), None);
    }
}
