//! What a cache knows of files.

use std::collections::HashMap;

use crate::event::{FileId, ProcessId};

/// The files of a cache, numbered from 0 in the order in which they were first named.
#[derive(Default)]
pub(crate) struct Files {
    numbers: HashMap<FileId, u32>,
    files: Vec<File>,
    /// The last one asked for: often the next one.
    last: Option<(FileId, u32)>,
}

struct File {
    id: FileId,
    told_bytes: Option<u64>,
    written_bytes: u64,
    /// Where each process stopped reading.
    stopped: HashMap<ProcessId, Stopped>,
}

struct Stopped {
    end: u64,
    /// From where it began again at the start, the latest first.
    turns: Vec<u64>,
}

/// So many places of a file from which a process goes back to its start are remembered: programs that go through their
/// data in cycles have one or two.
const MOST_TURNS: usize = 4;

impl Files {
    /// The number of a file.
    #[inline]
    pub(crate) fn number(&mut self, id: FileId) -> u32 {
        if let Some((last, number)) = self.last
            && last == id
        {
            return number;
        }
        let number = *self.numbers.entry(id).or_insert_with(|| {
            self.files.push(File { id, told_bytes: None, written_bytes: 0, stopped: HashMap::new() });
            (self.files.len() - 1) as u32
        });
        self.last = Some((id, number));
        number
    }

    pub(crate) fn id(&self, number: u32) -> FileId {
        self.files[number as usize].id
    }

    /// A file has so many bytes.
    pub(crate) fn tell(&mut self, number: u32, bytes: u64) {
        let file = &mut self.files[number as usize];
        file.told_bytes = Some(bytes);
        file.written_bytes = 0;
    }

    /// A file has at least so many bytes now.
    pub(crate) fn wrote(&mut self, number: u32, end: u64) {
        let file = &mut self.files[number as usize];
        file.written_bytes = file.written_bytes.max(end);
    }

    /// Nothing is known of a file any more.
    pub(crate) fn forget(&mut self, number: u32) {
        let file = &mut self.files[number as usize];
        *file = File { id: file.id, told_bytes: None, written_bytes: 0, stopped: HashMap::new() };
    }

    /// The first byte behind everything that there may be below.
    pub(crate) fn end_below(&self, number: u32) -> u64 {
        let file = &self.files[number as usize];
        file.told_bytes.map_or(u64::MAX, |told| told.max(file.written_bytes))
    }

    /// The first byte behind everything that is known to be in a file.
    pub(crate) fn known_end(&self, number: u32) -> u64 {
        let file = &self.files[number as usize];
        file.told_bytes.unwrap_or(0).max(file.written_bytes)
    }

    /// Whether a process reads on from where it stopped (or at the start), reading up to `end` now.
    pub(crate) fn reads_on(&mut self, number: u32, process: ProcessId, offset: u64, end: u64) -> bool {
        let stopped = &mut self.files[number as usize].stopped;
        match stopped.get_mut(&process) {
            Some(entry) => {
                let stopped = std::mem::replace(&mut entry.end, end);
                if offset == 0 && !entry.turns.contains(&stopped) {
                    entry.turns.truncate(MOST_TURNS - 1);
                    entry.turns.insert(0, stopped);
                }
                stopped == offset || offset == 0
            }
            None => {
                stopped.insert(process, Stopped { end, turns: Vec::new() });
                offset == 0
            }
        }
    }

    /// Whether a process has gone back to the start from here before: it may again.
    pub(crate) fn turns_at(&self, number: u32, process: ProcessId, offset: u64) -> bool {
        let stopped = &self.files[number as usize].stopped;
        stopped.get(&process).is_some_and(|entry| entry.turns.contains(&offset))
    }
}
