//! Brings accesses into the order of their start, in memory that does not grow with their number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use pio_trace::Call;
use pio_trace::{Event, Flags, Target};
use pio_trace::{FileId, HandleId, ProcessId};

/// A call of another tool's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) call: Call,
    pub(super) flags: Flags,
    pub(super) process: ProcessId,
    pub(super) thread: u32,
    pub(super) handle: Option<HandleId>,
    /// The file that it names, if it has no handle.
    pub(super) name: Option<FileId>,
    /// The other file that it names, of calls on two paths.
    pub(super) other: Option<FileId>,
    /// If it is known.
    pub(super) offset: Option<u64>,
    pub(super) size: u64,
    pub(super) result: i64,
    pub(super) start_ns: u64,
    pub(super) elapsed_ns: u64,
    /// As an event's: 0 where nothing tells what caused what.
    pub(super) operation: u32,
}

impl From<Access> for Event {
    fn from(access: Access) -> Event {
        Event {
            call: access.call,
            process: access.process,
            thread: access.thread,
            handle: access.handle,
            target: match (access.offset, access.name) {
                (Some(offset), _) => Target::Extent { offset },
                (None, Some(file)) => Target::Name { file, other: access.other },
                (None, None) => Target::None,
            },
            memory: None,
            size: access.size,
            result: access.result,
            start_ns: access.start_ns,
            elapsed_ns: access.elapsed_ns,
            think_ns: 0,
            used_ns: None,
            flags: access.flags,
            operation: access.operation.into(),
        }
    }
}

/// Bytes of an access in the temporary file.
const LEN: usize = 72;

/// Accesses kept in memory: 80 MiB.
const MOST_IN_MEMORY: usize = 1 << 20;

/// Accesses of a run that are read at once.
const MOST_READ: usize = 4096;

/// Takes accesses in any order. Those of equal start stay in the order in which they came.
pub(super) struct Sorter {
    accesses: Vec<Access>,
    most: usize,
    spilled: Option<Spilled>,
}

struct Spilled {
    file: File,
    /// Where each run ends, in accesses.
    ends: Vec<u64>,
}

impl Sorter {
    pub(super) fn new() -> Sorter {
        Sorter { accesses: Vec::new(), most: MOST_IN_MEMORY, spilled: None }
    }

    pub(super) fn push(&mut self, access: Access) -> io::Result<()> {
        if self.accesses.len() >= self.most {
            self.spill()?;
        }
        self.accesses.push(access);
        Ok(())
    }

    /// All accesses, in order.
    pub(super) fn finish(mut self) -> io::Result<Sorted> {
        if self.spilled.is_some() && !self.accesses.is_empty() {
            self.spill()?;
        }
        self.accesses.sort_by_key(|access| access.start_ns);
        let mut sorted = Sorted { file: None, runs: Vec::new(), heads: BinaryHeap::new() };
        match self.spilled {
            None => sorted.runs.push(Run { accesses: self.accesses, at: 0, next: 0, end: 0 }),
            Some(spilled) => {
                let mut start = 0;
                for end in spilled.ends {
                    sorted.runs.push(Run { accesses: Vec::new(), at: 0, next: start, end });
                    start = end;
                }
                sorted.file = Some(spilled.file);
            }
        }
        for run in 0..sorted.runs.len() {
            sorted.show_head(run)?;
        }
        Ok(sorted)
    }

    fn spill(&mut self) -> io::Result<()> {
        self.accesses.sort_by_key(|access| access.start_ns);
        let spilled = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert(Spilled { file: tempfile::tempfile()?, ends: Vec::new() }),
        };
        let mut out = BufWriter::with_capacity(1 << 18, &spilled.file);
        for access in &self.accesses {
            out.write_all(&access.to_bytes())?;
        }
        out.flush()?;
        drop(out);
        let start = spilled.ends.last().copied().unwrap_or(0);
        spilled.ends.push(start + self.accesses.len() as u64);
        self.accesses.clear();
        Ok(())
    }
}

/// Accesses in order of their start.
pub(super) struct Sorted {
    file: Option<File>,
    runs: Vec<Run>,
    /// Start of the next access of each run that has one.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
}

/// Accesses in order, of which some are in memory.
struct Run {
    accesses: Vec<Access>,
    at: usize,
    /// What of the file is not in memory yet.
    next: u64,
    end: u64,
}

impl Sorted {
    pub(super) fn next(&mut self) -> io::Result<Option<Access>> {
        let Some(Reverse((_, index))) = self.heads.pop() else {
            return Ok(None);
        };
        let run = &mut self.runs[index];
        let access = run.accesses[run.at];
        run.at += 1;
        self.show_head(index)?;
        Ok(Some(access))
    }

    fn show_head(&mut self, index: usize) -> io::Result<()> {
        let run = &mut self.runs[index];
        if run.at == run.accesses.len()
            && run.next < run.end
            && let Some(file) = &self.file
        {
            run.load(file)?;
        }
        if let Some(access) = run.accesses.get(run.at) {
            self.heads.push(Reverse((access.start_ns, index)));
        }
        Ok(())
    }
}

impl Run {
    fn load(&mut self, file: &File) -> io::Result<()> {
        let count = (self.end - self.next).min(MOST_READ as u64);
        let mut bytes = vec![0; count as usize * LEN];
        file.read_exact_at(&mut bytes, self.next * LEN as u64)?;
        self.accesses.clear();
        self.accesses.extend(bytes.as_chunks().0.iter().filter_map(Access::from_bytes));
        if self.accesses.len() as u64 != count {
            return Err(io::Error::other("the temporary file was changed"));
        }
        self.at = 0;
        self.next += count;
        Ok(())
    }
}

/// Stands for no handle, no name, and for no offset, in the temporary file.
const NO_HANDLE: u32 = u32::MAX;
const NO_OFFSET: u64 = u64::MAX;

impl Access {
    fn to_bytes(self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let words = [
            self.start_ns,
            self.elapsed_ns,
            self.offset.unwrap_or(NO_OFFSET),
            self.size,
            self.result as u64,
            pair(self.handle.map_or(NO_HANDLE, |handle| handle.0), self.process.0),
            pair(self.thread, u32::from(self.call.number()) << 16 | u32::from(self.flags.bits())),
            pair(self.name.map_or(NO_HANDLE, |file| file.0), self.operation),
            self.other.map_or(NO_OFFSET, |file| file.0.into()),
        ];
        let (fields, _) = bytes.as_chunks_mut();
        for (field, word) in fields.iter_mut().zip(words) {
            *field = word.to_le_bytes();
        }
        bytes
    }

    /// None for bytes that are not of [`Access::to_bytes`].
    fn from_bytes(bytes: &[u8; LEN]) -> Option<Access> {
        let (words, _) = bytes.as_chunks();
        let word = |index: usize| u64::from_le_bytes(words[index]);
        Some(Access {
            start_ns: word(0),
            elapsed_ns: word(1),
            offset: Some(word(2)).filter(|&offset| offset != NO_OFFSET),
            size: word(3),
            result: word(4) as i64,
            handle: Some((word(5) >> 32) as u32).filter(|&handle| handle != NO_HANDLE).map(HandleId),
            process: ProcessId(word(5) as u32),
            thread: (word(6) >> 32) as u32,
            call: Call::from_number((word(6) >> 16) as u16)?,
            flags: Flags::from_bits(word(6) as u16),
            name: Some((word(7) >> 32) as u32).filter(|&file| file != NO_HANDLE).map(FileId),
            operation: word(7) as u32,
            other: u32::try_from(word(8)).ok().map(FileId),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort(starts in prop::collection::vec(0u64..50, 0..200), most in 1usize..40) {
            let accesses: Vec<_> = starts
                .iter()
                .zip(0..)
                .map(|(&start_ns, thread)| Access {
                    call: Call::MpiFileWriteAll,
                    flags: Flags::PHYSICAL | Flags::ASYNC,
                    process: ProcessId(u32::MAX),
                    thread,
                    handle: (thread % 2 == 0).then_some(HandleId(7)),
                    name: (thread % 5 == 0).then_some(FileId(9)),
                    other: (thread % 10 == 0).then_some(FileId(0)),
                    offset: (thread % 3 == 0).then_some(1 << 50),
                    size: 1 << 40,
                    result: -5,
                    start_ns,
                    elapsed_ns: 7,
                    operation: u32::MAX - thread,
                })
                .collect();
            let mut sorter = Sorter { most, ..Sorter::new() };
            for access in &accesses {
                sorter.push(*access)?;
            }
            let mut sorted = sorter.finish()?;
            let mut found = Vec::new();
            while let Some(access) = sorted.next()? {
                found.push(access);
            }
            let mut expected = accesses;
            expected.sort_by_key(|access| access.start_ns);
            prop_assert_eq!(found, expected);
        }
    }
}
