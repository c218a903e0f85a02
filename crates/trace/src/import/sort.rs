//! Brings accesses into the order of their start, in memory that does not grow with their number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

/// A read or write of another tool's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) start_ns: u64,
    pub(super) elapsed_ns: u64,
    /// −1 if not known.
    pub(super) offset: i64,
    pub(super) length: u64,
    pub(super) handle: u32,
    /// What the caller wants to know again.
    pub(super) tag: u32,
}

/// Bytes of an access in the temporary file.
const LEN: usize = 40;

/// Accesses kept in memory: 40 MB.
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
        self.accesses.extend(bytes.as_chunks().0.iter().map(Access::from_bytes));
        self.at = 0;
        self.next += count;
        Ok(())
    }
}

impl Access {
    fn to_bytes(self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let words = [
            self.start_ns,
            self.elapsed_ns,
            self.offset as u64,
            self.length,
            u64::from(self.handle) << 32 | u64::from(self.tag),
        ];
        for (field, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *field = word.to_le_bytes();
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; LEN]) -> Access {
        let words = bytes.as_chunks().0;
        let word = |index: usize| u64::from_le_bytes(words[index]);
        Access {
            start_ns: word(0),
            elapsed_ns: word(1),
            offset: word(2) as i64,
            length: word(3),
            handle: (word(4) >> 32) as u32,
            tag: word(4) as u32,
        }
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
                .map(|(&start_ns, tag)| Access {
                    start_ns,
                    elapsed_ns: 7,
                    offset: -1,
                    length: 1 << 40,
                    handle: u32::MAX,
                    tag,
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
