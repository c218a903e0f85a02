//! A part's file, mapped: small pieces are copied straight to and from the page cache.
//!
//! To read a window, put pieces in and write it back copies each byte of the window twice, and each piece once; here only
//! the pieces are copied. What lies in the page cache outlives the server, whichever way it came there.
//!
//! A mapped access has no error but the signal that ends the process. So nothing is touched that was not faulted in before by
//! a call that does return errors (`MADV_POPULATE_READ`, `MADV_POPULATE_WRITE`): where that fails, because the disk is full,
//! cannot be read, or Linux is older than 5.14, the caller reads and writes instead, and has the error from there.

#![allow(unsafe_code)] // Mapped memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use memmap2::{Advice, MmapOptions, MmapRaw};

/// It is noted for so many bytes together whether they were faulted in.
const GRANULE_BYTES: u64 = 64 << 10;
/// Least length of a page.
const PAGE_BYTES: u64 = 4096;
/// Where a mapping may begin; it goes on for the longest access behind the next such place.
const REGION_BYTES: u64 = 64 << 20;
/// Longest access.
const MOST_BYTES: u64 = 1 << 20;
/// Mappings of a part that are kept: as many as clients usually write at the same moment.
const MOST_REGIONS: usize = 4;
/// For so long pages that were faulted in are taken to be there: the kernel writes dirty pages back after seconds, and drops
/// those first that were used longest ago. To ask each time costs a third of the time to copy 4-byte pieces.
const STAYING: Duration = Duration::from_secs(1);

/// The mappings of a part that nobody uses at the moment.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    free: Mutex<Vec<Region>>,
}

/// Part of a file, mapped. Each of those who access it at the same moment has a mapping of its own.
#[derive(Debug)]
struct Region {
    start: u64,
    memory: MmapRaw,
    /// When which granule was faulted in, and for what.
    faulted: Vec<Option<(Instant, For)>>,
}

/// What pages are faulted in for; those for writing can be read, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum For {
    Reading,
    Writing,
}

impl Mappings {
    /// Calls `access` with these bytes of the file, which must lie before its end and stay there meanwhile; `None` if they
    /// cannot be mapped or faulted in.
    pub(super) fn write<T>(
        &self,
        file: &File,
        bytes: &Range<u64>,
        access: impl FnOnce(&mut [u8]) -> T,
    ) -> Option<T> {
        self.with(file, bytes, For::Writing, access)
    }

    /// As [`Mappings::write`], but the bytes can only be read.
    pub(super) fn read<T>(
        &self,
        file: &File,
        bytes: &Range<u64>,
        access: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        self.with(file, bytes, For::Reading, |bytes| access(bytes))
    }

    fn with<T>(
        &self,
        file: &File,
        bytes: &Range<u64>,
        what_for: For,
        access: impl FnOnce(&mut [u8]) -> T,
    ) -> Option<T> {
        if bytes.end - bytes.start > MOST_BYTES {
            return None;
        }
        let mut region = self.take(file, bytes.start).ok()?;
        region.fault_in(bytes, what_for).ok()?;
        let outcome = access(region.bytes_mut(bytes));
        let mut free = self.free();
        if free.len() >= MOST_REGIONS {
            free.remove(0);
        }
        free.push(region);
        Some(outcome)
    }

    /// Takes the mappings away that nobody uses. Before pages are written back: of each that is mapped, the kernel tells
    /// every processor that it must not be written to unnoticed, one by one.
    pub(super) fn unmap(&self) {
        self.free().clear();
    }

    /// The mapping used last that begins where `offset` asks for, or a new one.
    fn take(&self, file: &File, offset: u64) -> io::Result<Region> {
        let start = offset - offset % REGION_BYTES;
        let mut free = self.free();
        if let Some(at) = free.iter().rposition(|region| region.start == start) {
            return Ok(free.remove(at));
        }
        drop(free);
        Region::map(file, start)
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Region>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Region {
    fn map(file: &File, start: u64) -> io::Result<Region> {
        let len = REGION_BYTES + MOST_BYTES;
        let memory = MmapOptions::new().offset(start).len(len as usize).map_raw(file)?;
        Ok(Region { start, memory, faulted: vec![None; len.div_ceil(GRANULE_BYTES) as usize] })
    }

    /// Has the pages there, or says why they cannot be.
    fn fault_in(&mut self, bytes: &Range<u64>, what_for: For) -> io::Result<()> {
        let now = Instant::now();
        let bytes = bytes.start - self.start..bytes.end - self.start;
        // Whole pages, but none that has nothing of what was asked for: the file may end before it.
        let pages = bytes.start / PAGE_BYTES * PAGE_BYTES..bytes.end.next_multiple_of(PAGE_BYTES);
        let granules = bytes.start / GRANULE_BYTES..bytes.end.div_ceil(GRANULE_BYTES);
        let there = |faulted: &Option<(Instant, For)>| {
            faulted.is_some_and(|(when, other)| other >= what_for && now - when < STAYING)
        };
        let mut from = granules.start;
        while from < granules.end {
            let mut to = from + 1;
            if there(&self.faulted[from as usize]) {
                from = to;
                continue;
            }
            while to < granules.end && !there(&self.faulted[to as usize]) {
                to += 1;
            }
            let asked = pages.start.max(from * GRANULE_BYTES)..pages.end.min(to * GRANULE_BYTES);
            let advice = match what_for {
                For::Reading => Advice::PopulateRead,
                For::Writing => Advice::PopulateWrite,
            };
            self.memory.advise_range(advice, asked.start as usize, (asked.end - asked.start) as usize)?;
            let whole = asked.start.div_ceil(GRANULE_BYTES)..asked.end / GRANULE_BYTES;
            for granule in whole {
                self.faulted[granule as usize] = Some((now, what_for));
            }
            from = to;
        }
        Ok(())
    }

    fn bytes_mut(&mut self, bytes: &Range<u64>) -> &mut [u8] {
        let range = (bytes.start - self.start) as usize..(bytes.end - self.start) as usize;
        assert!(range.start <= range.end && range.end <= self.memory.len());
        // SAFETY: within the mapping, which nobody else uses. The pages are there: the file does not get shorter meanwhile,
        // as the caller sees to, and they were faulted in. Other mappings of the file may change bytes meanwhile, as other
        // processes could: they are only copied, and nothing is decided by them.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().add(range.start), range.len()) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn file(bytes: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(bytes).unwrap();
        file
    }

    #[test]
    fn what_is_written_through_a_mapping_is_in_the_file_and_the_other_way_round() {
        let end = 3 * REGION_BYTES;
        let (file, mappings) = (file(end), Mappings::default());
        for start in [0, 5, GRANULE_BYTES - 1, REGION_BYTES - 3, REGION_BYTES, end - 1000] {
            let bytes = start..start + 1000;
            mappings.write(&file, &bytes, |memory| memory.fill(7)).unwrap();
            let mut there = [0; 1000];
            file.read_exact_at(&mut there, start).unwrap();
            assert_eq!(there, [7; 1000]);
            file.write_all_at(&[8; 1000], start).unwrap();
            assert!(mappings.read(&file, &bytes, |memory| memory == [8; 1000]).unwrap());
        }
        assert!(mappings.free().len() <= MOST_REGIONS);
    }

    #[test]
    fn what_is_not_there_is_refused_rather_than_touched() {
        let (file, mappings) = (file(10 * 4096), Mappings::default());
        assert!(mappings.write(&file, &(9 * 4096..11 * 4096), |_| ()).is_none());
        assert!(mappings.read(&file, &(GRANULE_BYTES..GRANULE_BYTES + 1), |_| ()).is_none());
        assert!(mappings.read(&file, &(0..MOST_BYTES + 1), |_| ()).is_none());
        assert!(mappings.read(&file, &(0..10 * 4096), |_| ()).is_some());
    }
}
