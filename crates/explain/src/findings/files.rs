//! What all processes together do with one file.

use pio_trace::{ProcessId, Tables};

use super::limits::PAGE;
use super::ranges::Ranges;

/// Pages remembered of a file that several processes have open.
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
    pages: Pages,
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
    for handle in &tables.handles {
        let index = handle.file.index();
        if let (Some(first), Some(file)) = (first.get_mut(index), files.get_mut(index)) {
            file.shared |= *first.get_or_insert(handle.process) != handle.process;
        }
    }
    files
}

impl FileState {
    /// Whether a write shares a page with the latest write of another process there.
    pub(crate) fn shares_page(&mut self, process: ProcessId, start: u64, end: u64) -> bool {
        if !self.shared || start >= end {
            return false;
        }
        let edges = [
            (!start.is_multiple_of(PAGE)).then_some(start / PAGE),
            (!end.is_multiple_of(PAGE)).then_some(end / PAGE),
        ];
        let mut shares = false;
        for page in edges.into_iter().flatten() {
            shares |= self.pages.replace(page, process).is_some_and(|before| before != process);
        }
        shares
    }
}
