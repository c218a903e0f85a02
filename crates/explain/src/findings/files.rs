//! What all processes together do with one file.

use std::collections::BTreeMap;

use pio_trace::{ProcessId, Tables};

use super::limits::PAGE;
use super::ranges::Ranges;

/// Pages remembered of a file that several processes have open.
const PAGES: u64 = 4096;

/// One file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileState {
    /// Whether several processes have it open.
    pub(crate) shared: bool,
    /// Bytes written that nobody has read, synced or closed since.
    pub(crate) unused: Ranges,
    /// Bytes that some rank has read by itself.
    pub(crate) read: Ranges,
    /// Page and latest writer, by the page's number modulo [`PAGES`]: most files have few.
    pages: BTreeMap<u16, (u64, u32)>,
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
            let known = self.pages.entry((page % PAGES) as u16).or_insert((page, process.0));
            shares |= known.0 == page && known.1 != process.0;
            *known = (page, process.0);
        }
        shares
    }
}
