//! What all processes together do with one file.

use std::collections::HashMap;

use pio_trace::{ProcessId, Stripes, Tables};

use super::limits::{LARGE, PAGE};
use super::ranges::Ranges;

/// Pages (or stripes) remembered of a file that several processes have open.
const PAGES: usize = 4096;
/// … and places for a file at first.
const LEAST_PAGES: usize = 16;

/// One file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileState {
    /// Whether several processes have it open.
    pub(crate) shared: bool,
    /// Bytes written that nobody has read, synced or closed since.
    pub(crate) unused: Ranges,
    /// Bytes that some rank has read by itself.
    pub(crate) read: Ranges,
    /// What two hosts cannot write parts of at the same time, bytes: the file's stripe, if that is known and several hosts have
    /// the file open.
    pub(crate) stripe: Option<u64>,
    pages: Pages,
    stripes: Pages,
}

/// The latest writer of each of a number of pages: a table by the page's number, which doubles as long as two pages want
/// the same place, for most files have few.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages(Vec<Option<(u64, ProcessId)>>);

impl Pages {
    /// Takes note of a writer; says who was the one before, if that is still known.
    pub(super) fn replace(&mut self, page: u64, writer: ProcessId) -> Option<ProcessId> {
        if self.0.is_empty() {
            self.0 = vec![None; LEAST_PAGES];
        }
        loop {
            let places = self.0.len();
            // A power of two.
            let known = &mut self.0[page as usize & (places - 1)];
            match known.replace((page, writer)) {
                Some((same, before)) if same == page => return Some(before),
                Some(other) if places < PAGES => {
                    *known = Some(other);
                    self.double();
                }
                _ => return None,
            }
        }
    }

    /// Whether a write of less than `most` bytes has a part of a unit of which another writer has the latest one.
    fn share(&mut self, most: u64, unit: u64, writer: ProcessId, start: u64, end: u64) -> bool {
        if end - start >= most {
            return false;
        }
        let edges = [
            (!start.is_multiple_of(unit)).then_some(start / unit),
            (!end.is_multiple_of(unit)).then_some(end / unit),
        ];
        let mut shares = false;
        for part in edges.into_iter().flatten() {
            shares |= self.replace(part, writer).is_some_and(|before| before != writer);
        }
        shares
    }

    fn double(&mut self) {
        let length = self.0.len() * 2;
        let known = std::mem::replace(&mut self.0, vec![None; length]);
        for (page, writer) in known.into_iter().flatten() {
            self.0[page as usize & (length - 1)] = Some((page, writer));
        }
    }
}

/// The state of every file.
pub(crate) fn files(tables: &Tables) -> Vec<FileState> {
    let mut first: Vec<Option<ProcessId>> = vec![None; tables.files.len()];
    let mut files = vec![FileState::default(); tables.files.len()];
    let stripes = KnownStripes::of(tables);
    let host = |process: ProcessId| tables.processes.get(process.index()).map(|process| &process.host);
    for handle in &tables.handles {
        let index = handle.file.index();
        if let (Some(first), Some(file)) = (first.get_mut(index), files.get_mut(index)) {
            let first = *first.get_or_insert(handle.process);
            file.shared |= first != handle.process;
            if file.stripe.is_none() && !stripes.is_empty() && host(first) != host(handle.process) {
                file.stripe = stripes.of_file(&tables.files[index].path).filter(|stripe| *stripe > PAGE);
            }
        }
    }
    files
}

/// Of each process, the first one of its host: it stands for the host.
pub(crate) fn hosts(tables: &Tables) -> Vec<ProcessId> {
    let mut first = HashMap::new();
    let processes = tables.processes.iter().enumerate();
    processes.map(|(index, one)| *first.entry(&one.host).or_insert(ProcessId(index as u32))).collect()
}

/// Stripes, as the recorder found them, bytes.
struct KnownStripes {
    files: HashMap<String, u64>,
    folders: HashMap<String, u64>,
}

impl KnownStripes {
    fn of(tables: &Tables) -> KnownStripes {
        let mut known = KnownStripes { files: HashMap::new(), folders: HashMap::new() };
        for Stripes { unit_bytes, path, of_folder } in Stripes::of(tables) {
            (if of_folder { &mut known.folders } else { &mut known.files }).insert(path, unit_bytes);
        }
        known
    }

    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.folders.is_empty()
    }

    fn of_file(&self, path: &str) -> Option<u64> {
        let of_folder = || self.folders.get(Stripes::folder_of(path)?);
        self.files.get(path).or_else(of_folder).copied()
    }
}

impl FileState {
    /// Whether a write shares a page with the latest write of another process there, or a stripe with that of another host.
    pub(crate) fn shares(&mut self, process: ProcessId, host: ProcessId, start: u64, end: u64) -> bool {
        if !self.shared || start >= end {
            return false;
        }
        let shares_stripe =
            self.stripe.is_some_and(|stripe| self.stripes.share(stripe.max(LARGE), stripe, host, start, end));
        self.pages.share(LARGE, PAGE, process, start, end) || shares_stripe
    }
}
