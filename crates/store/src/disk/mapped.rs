//! A part's file, mapped: small pieces are copied straight to and from the page cache.
//!
//! To read a window, put pieces in and write it back copies each byte of the window twice, and each piece once; here only
//! the pieces are copied. What lies in the page cache outlives the server, whichever way it came there.
//!
//! A mapped access has no error but the signal that ends the process. So nothing is touched that was not faulted in before by
//! a call that does return errors (`MADV_POPULATE_READ`, `MADV_POPULATE_WRITE`): where that fails, because the disk is full,
//! cannot be read, or Linux is older than 5.14, the caller reads and writes instead, and has the error from there.
//!
//! Each of those who access a part at the same moment has a mapping of its own, and faults in each page once more. So there
//! are few: with many clients and few processors the faults took longer than all copying.

#![allow(unsafe_code)] // Mapped memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
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
/// Mappings of a part, used or kept.
const MOST_REGIONS: usize = 4;
/// Those of them that are used at the same moment: one a processor.
static MOST_USED: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, |count| count.get().min(MOST_REGIONS)));
/// Least access that goes through a mapping: to fault in the few pages of a shorter one takes longer than to read and write
/// them, which is done by one client at a time.
const LEAST_BYTES: u64 = 16 << 10;
/// For so long pages that were faulted in are taken to be there: the kernel writes dirty pages back after seconds, and drops
/// those first that were used longest ago. To ask each time costs a third of the time to copy 4-byte pieces.
const STAYING: Duration = Duration::from_secs(1);

/// The mappings of a part.
#[derive(Debug, Default)]
pub(super) struct Mappings {
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    /// Used last, last.
    free: Vec<Region>,
    used: usize,
}

/// A mapping in use.
struct Lent<'a> {
    mappings: &'a Mappings,
    /// None before it is mapped, or if it cannot be.
    region: Option<Region>,
}

/// Part of a file, mapped.
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
    /// Whether an access to these bytes goes through a mapping.
    pub(super) fn are_for(bytes: &Range<u64>) -> bool {
        (LEAST_BYTES..=MOST_BYTES).contains(&(bytes.end - bytes.start))
    }

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
        if !Mappings::are_for(bytes) {
            return None;
        }
        let mut lent = self.lend(bytes.start);
        let region = lent.region(file, bytes.start).ok()?;
        region.fault_in(bytes, what_for).ok()?;
        Some(access(region.bytes_mut(bytes)))
    }

    /// Takes the mappings away that nobody uses. Before pages are written back: of each that is mapped, the kernel tells
    /// every processor that it must not be written to unnoticed, one by one.
    pub(super) fn unmap(&self) {
        self.pool().free.clear();
    }

    /// Waits for its turn; then the mapping used last that begins where `offset` asks for, if there is one.
    fn lend(&self, offset: u64) -> Lent<'_> {
        let mut pool = self.pool();
        while pool.used >= *MOST_USED {
            pool = self.returned.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
        pool.used += 1;
        let start = Region::start_of(offset);
        let at = pool.free.iter().rposition(|region| region.start == start);
        let region = at.map(|at| pool.free.remove(at));
        Lent { mappings: self, region }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lent<'_> {
    /// The mapping for `offset`, made if there is none yet.
    fn region(&mut self, file: &File, offset: u64) -> io::Result<&mut Region> {
        let region = match self.region.take() {
            Some(region) => region,
            None => Region::map(file, Region::start_of(offset))?,
        };
        Ok(self.region.insert(region))
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut pool = self.mappings.pool();
        pool.used -= 1;
        pool.free.extend(self.region.take());
        let too_many = pool.free.len() + pool.used > MOST_REGIONS;
        let oldest = too_many.then(|| pool.free.remove(0));
        drop(pool);
        self.mappings.returned.notify_one();
        // Now that nobody waits for it.
        drop(oldest);
    }
}

impl Region {
    fn start_of(offset: u64) -> u64 {
        offset - offset % REGION_BYTES
    }

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

    /// Bytes of the accesses here.
    const LEN: u64 = GRANULE_BYTES + 1000;

    #[test]
    fn what_is_written_through_a_mapping_is_in_the_file_and_the_other_way_round() {
        let end = 3 * REGION_BYTES;
        let (file, mappings) = (file(end), Mappings::default());
        for start in [0, 5, GRANULE_BYTES - 1, REGION_BYTES - 3, REGION_BYTES, end - LEN] {
            let bytes = start..start + LEN;
            mappings.write(&file, &bytes, |memory| memory.fill(7)).unwrap();
            let mut there = [0; LEN as usize];
            file.read_exact_at(&mut there, start).unwrap();
            assert_eq!(there, [7; LEN as usize]);
            file.write_all_at(&[8; LEN as usize], start).unwrap();
            assert!(mappings.read(&file, &bytes, |memory| memory == [8; LEN as usize]).unwrap());
        }
        assert!(mappings.pool().free.len() <= MOST_REGIONS);
    }

    #[test]
    fn those_who_come_together_have_their_turn() {
        const THREADS: u64 = 8;
        let (file, mappings) = (file(REGION_BYTES), Mappings::default());
        let panics = thread::scope(|scope| {
            let threads = (0..THREADS).map(|number| {
                let (file, mappings) = (&file, &mappings);
                scope.spawn(move || {
                    for turn in 0..100 {
                        let start = (number * 100 + turn) * 100;
                        let put = |memory: &mut [u8]| memory[..100].fill(number as u8);
                        mappings.write(file, &(start..start + LEN), put).unwrap();
                    }
                    // A turn ends however it does.
                    mappings.write(file, &(0..LEN), |_| panic!("on purpose"));
                })
            });
            threads.collect::<Vec<_>>().into_iter().filter_map(|thread| thread.join().err()).count()
        });
        assert_eq!(panics as u64, THREADS);
        for number in 0..THREADS {
            let start = number * 10_000;
            let own = |memory: &[u8]| memory[..10_000] == [number as u8; 10_000];
            assert!(mappings.read(&file, &(start..start + LEN), own).unwrap());
        }
        assert_eq!(mappings.pool().used, 0);
    }

    #[test]
    fn what_is_not_there_is_refused_rather_than_touched() {
        let end = GRANULE_BYTES + 10 * PAGE_BYTES;
        let (file, mappings) = (file(end), Mappings::default());
        assert!(mappings.write(&file, &(PAGE_BYTES..end + PAGE_BYTES), |_| ()).is_none());
        assert!(mappings.read(&file, &(end..end + GRANULE_BYTES), |_| ()).is_none());
        assert!(mappings.read(&file, &(0..MOST_BYTES + 1), |_| ()).is_none());
        assert!(mappings.read(&file, &(0..LEAST_BYTES - 1), |_| ()).is_none());
        assert!(mappings.read(&file, &(0..end), |_| ()).is_some());
    }
}
