//! Memory that two processes share: one writes data into it, the other takes them out.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | how many messages' data were taken out, native order; written by the taker |
//! | 4096 | 10 MiB | data of messages, first in first out |
//!
//! The writer makes the memory and hands its descriptor over. Its length is sealed, so that no access can fail because
//! the other side cut it; pages are reserved before they are written to, so that none fails because memory is short.
//! Nothing is decided by what lies in it: where data are is said over the socket, and checked.

#![allow(unsafe_code)] // Mapped memory.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};

const DATA_START: usize = 4096;
/// Room for a window of messages of the usual length and one more; what finds no room goes over the socket.
const DATA_BYTES: usize = 10 << 20;
const SEGMENT_BYTES: usize = DATA_START + DATA_BYTES;
/// Pages of data are reserved so many bytes at a time.
const RESERVE_BYTES: usize = 64 << 10;
/// Data begin at the start of a cache line.
const ALIGN: usize = 64;

fn seals() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL
}

/// The writer's end.
#[derive(Debug)]
pub(super) struct Outgoing {
    memory: Memory,
    file: OwnedFd,
    /// Whether the other side has been given the descriptor.
    pub(super) announced: bool,
    /// Where data are that were not taken yet, oldest first.
    spans: VecDeque<Range<usize>>,
    /// How many messages' data were put in, and how many of those are known to be taken.
    put: u64,
    taken: u64,
    /// Up to where there are pages.
    reserved: usize,
}

impl Outgoing {
    pub(super) fn new() -> io::Result<Outgoing> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("pioscope", flags)?;
        rustix::fs::ftruncate(&file, SEGMENT_BYTES as u64)?;
        rustix::fs::fcntl_add_seals(&file, seals())?;
        let mut outgoing = Outgoing {
            memory: Memory::map(&file)?,
            file,
            announced: false,
            spans: VecDeque::new(),
            put: 0,
            taken: 0,
            reserved: 0,
        };
        outgoing.reserve_pages(DATA_START)?;
        Ok(outgoing)
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Room for the data of the next message; `None` if there is none now.
    pub(super) fn put(&mut self, len: usize) -> Option<usize> {
        self.collect();
        let end_of_segment = DATA_START + DATA_BYTES;
        let start = match (self.spans.front(), self.spans.back()) {
            // From the start again whenever all were taken: these bytes are in the caches still.
            (None, _) | (_, None) => DATA_START,
            (Some(first), Some(last)) => {
                let next = last.end.next_multiple_of(ALIGN);
                let wrapped = last.start < first.start;
                let end = if wrapped { first.start } else { end_of_segment };
                if next + len <= end {
                    next
                } else if !wrapped && DATA_START + len <= first.start {
                    DATA_START
                } else {
                    return None;
                }
            }
        };
        if start + len > end_of_segment || self.reserve_pages(start + len).is_err() {
            return None;
        }
        self.spans.push_back(start..start + len);
        self.put += 1;
        Some(start)
    }

    /// Takes the last [`Outgoing::put`] back: its message will not be sent.
    pub(super) fn take_back(&mut self) {
        self.spans.pop_back();
        self.put -= 1;
    }

    /// Where the data of the last [`Outgoing::put`] go.
    pub(super) fn room(&mut self) -> &mut [u8] {
        let span = self.spans.back().cloned().unwrap_or(DATA_START..DATA_START);
        self.memory.bytes_mut(span)
    }

    /// Gives most of the memory back.
    pub(super) fn trim(&mut self) {
        self.collect();
        let kept = DATA_START + RESERVE_BYTES;
        if self.spans.is_empty() && self.reserved > kept {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let (start, len) = (kept as u64, (self.reserved - kept) as u64);
            if rustix::fs::fallocate(&self.file, flags, start, len).is_ok() {
                self.reserved = kept;
            }
        }
    }

    /// Forgets what was taken meanwhile. A counter that makes no sense frees nothing.
    fn collect(&mut self) {
        let taken = self.memory.taken().load(Ordering::Acquire);
        while self.taken < taken.min(self.put) {
            self.spans.pop_front();
            self.taken += 1;
        }
    }

    fn reserve_pages(&mut self, end: usize) -> io::Result<()> {
        if end > self.reserved {
            let data = (end - DATA_START).next_multiple_of(RESERVE_BYTES);
            let end = (DATA_START + data).min(SEGMENT_BYTES);
            let (start, len) = (self.reserved as u64, (end - self.reserved) as u64);
            rustix::fs::fallocate(&self.file, FallocateFlags::empty(), start, len)?;
            self.reserved = end;
        }
        Ok(())
    }
}

/// The taker's end.
#[derive(Debug)]
pub(super) struct Incoming {
    memory: Memory,
    taken: u64,
}

impl Incoming {
    /// Maps what came from the other side.
    ///
    /// # Errors
    /// If it is not memory of the right length that stays so.
    pub(super) fn new(file: OwnedFd) -> io::Result<Incoming> {
        let sealed = rustix::fs::fcntl_get_seals(&file)?.contains(seals());
        if !sealed || rustix::fs::fstat(&file)?.st_size != SEGMENT_BYTES as i64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "memory that is not as it should be"));
        }
        Ok(Incoming { memory: Memory::map(&file)?, taken: 0 })
    }

    /// The data of a message; `None` if they cannot be there.
    pub(super) fn data(&self, start: usize, len: usize) -> Option<&[u8]> {
        let end = start.checked_add(len)?;
        (start >= DATA_START && end <= SEGMENT_BYTES).then(|| self.memory.bytes(start..end))
    }

    /// The data of the oldest message were taken.
    pub(super) fn release(&mut self) {
        self.taken += 1;
        self.memory.taken().store(self.taken, Ordering::Release);
    }
}

/// A mapped segment.
#[derive(Debug)]
struct Memory(MmapRaw);

impl Memory {
    fn map(file: &OwnedFd) -> io::Result<Memory> {
        MmapOptions::new().len(SEGMENT_BYTES).map_raw(file).map(Memory)
    }

    fn taken(&self) -> &AtomicU64 {
        // SAFETY: the mapping begins with the counter, is aligned to a page, and lives as long as `self`; both sides use
        // the counter as an atomic only.
        unsafe { AtomicU64::from_ptr(self.0.as_mut_ptr().cast()) }
    }

    fn bytes(&self, range: Range<usize>) -> &[u8] {
        assert!(DATA_START <= range.start && range.start <= range.end && range.end <= self.0.len());
        // SAFETY: within the mapping, whose file is sealed against getting shorter. The writer leaves data alone until
        // they are released; one that does not (it knows the token) makes its own data wrong, as they are only copied
        // and summed.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(range.start), range.len()) }
    }

    fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        assert!(DATA_START <= range.start && range.start <= range.end && range.end <= self.0.len());
        // SAFETY: as above; the taker reads them after they were announced only.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().add(range.start), range.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pair() -> (Outgoing, Incoming) {
        let outgoing = Outgoing::new().unwrap();
        let incoming = Incoming::new(outgoing.file().try_clone_to_owned().unwrap()).unwrap();
        (outgoing, incoming)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Whatever the order of puts and takes, data stay until they are taken.
        #[test]
        fn data_stay_until_they_are_taken(steps in proptest::collection::vec((any::<bool>(), 1usize..3 << 20), 1..40)) {
            let (mut outgoing, mut incoming) = pair();
            let mut waiting = VecDeque::new();
            for (number, (put, len)) in steps.into_iter().enumerate() {
                if put {
                    if let Some(start) = outgoing.put(len) {
                        // The ends tell whether somebody else wrote there.
                        let room = outgoing.room();
                        (room[0], room[len - 1]) = (number as u8, number as u8);
                        waiting.push_back((start, len, number as u8));
                    } else {
                        prop_assert!(!waiting.is_empty());
                    }
                } else if let Some((start, len, mark)) = waiting.pop_front() {
                    let data = incoming.data(start, len).unwrap();
                    prop_assert_eq!((data[0], data[len - 1]), (mark, mark));
                    incoming.release();
                }
            }
            for (start, len, mark) in waiting {
                let data = incoming.data(start, len).unwrap();
                prop_assert_eq!((data[0], data[len - 1]), (mark, mark));
            }
        }
    }

    #[test]
    fn only_whole_sealed_memory_is_taken() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("test", flags).unwrap();
        rustix::fs::ftruncate(&file, SEGMENT_BYTES as u64).unwrap();
        assert!(Incoming::new(file.try_clone().unwrap()).is_err());
        rustix::fs::fcntl_add_seals(&file, seals()).unwrap();
        let incoming = Incoming::new(file).unwrap();
        assert!(incoming.data(DATA_START, DATA_BYTES).is_some());
        for (start, len) in [(0, 8), (DATA_START, DATA_BYTES + 1), (usize::MAX, 2), (SEGMENT_BYTES, 1)] {
            assert!(incoming.data(start, len).is_none(), "{start} {len}");
        }
    }
}
