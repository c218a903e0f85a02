//! Which files each loader of a training program reads, and which phases are within its epochs.
//!
//! A phase counts for the innermost epoch of its process alone, so that what is within an evaluation does not count for the
//! training that goes on around it. A call counts for the loader of the innermost epoch of its process; a process without
//! epochs, such as a worker, reads for the loader in whose epoch it made its first call.

use std::collections::BTreeMap;

use pio_trace::{FileId, HandleId, Op, ProcessId, Tables};

use crate::tally::{Amount, Seen};

/// Epochs whose order is kept.
const MOST_EPOCHS: usize = 1 << 20;

/// A loader, and what it did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loader {
    /// Its epochs, by their index in [`crate::Marked::names`].
    pub epochs: usize,
    /// Phases within its epochs and no epoch within them, by index of their name.
    pub within: BTreeMap<usize, Within>,
    /// Files that it opened or read.
    pub files: BTreeMap<FileId, Used>,
}

/// Phases of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// How many began.
    pub count: u64,
    /// How long they took, nanoseconds.
    pub time_ns: u64,
}

/// What was done with a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Times that it was opened.
    pub opens: u64,
    /// Reads, and the bytes that they moved.
    pub reads: Amount,
}

/// All loaders.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaders {
    /// In order of their first epoch.
    pub all: Vec<Loader>,
    /// Of the first process that has epochs: the loader of each, by its place in `all`, in the order in which they began.
    pub order: Vec<usize>,
    first: Option<ProcessId>,
    /// By process without epochs: the loader that it reads for.
    readers: Vec<Option<usize>>,
}

impl Loaders {
    pub(crate) fn new(processes: usize) -> Loaders {
        Loaders { readers: vec![None; processes], ..Loaders::default() }
    }

    /// The loader that a process without epochs reads for, by its place in `all`.
    pub(crate) fn read_by(&self, process: ProcessId) -> Option<usize> {
        *self.readers.get(process.index())?
    }

    /// An epoch begins.
    pub(crate) fn begin_epoch(&mut self, name: usize, process: ProcessId) {
        let loader = self.of_epochs(name);
        if *self.first.get_or_insert(process) == process && self.order.len() < MOST_EPOCHS {
            self.order.push(loader);
        }
    }

    /// A phase begins within an epoch.
    pub(crate) fn begin_within(&mut self, epoch: usize, name: usize) {
        self.within(epoch, name).count += 1;
    }

    /// It, or the epoch, ends.
    pub(crate) fn end_within(&mut self, epoch: usize, name: usize, elapsed_ns: u64) {
        let within = self.within(epoch, name);
        within.time_ns = within.time_ns.saturating_add(elapsed_ns);
    }

    /// A call of a process that is in an epoch itself.
    pub(crate) fn add_own(&mut self, epoch: usize, event: &Seen<'_>, tables: &Tables) {
        let loader = self.of_epochs(epoch);
        self.add(loader, event, tables);
    }

    /// A call of one that is not, while another is in this epoch.
    pub(crate) fn add_for(&mut self, epoch: usize, event: &Seen<'_>, tables: &Tables) {
        let loader = self.of_epochs(epoch);
        if let Some(reader) = self.readers.get_mut(event.process.index()) {
            let loader = *reader.get_or_insert(loader);
            self.add(loader, event, tables);
        }
    }

    fn add(&mut self, loader: usize, event: &Seen<'_>, tables: &Tables) {
        let handle = event.handle.and_then(|HandleId(id)| tables.handles.get(id as usize));
        let (Some(handle), false) = (handle, event.failed) else { return };
        let files = &mut self.all[loader].files;
        match event.op() {
            Op::Open => files.entry(handle.file).or_default().opens += 1,
            Op::Read => files.entry(handle.file).or_default().reads.add(event.bytes),
            _ => {}
        }
    }

    fn of_epochs(&mut self, name: usize) -> usize {
        let known = self.all.iter().position(|loader| loader.epochs == name);
        known.unwrap_or_else(|| {
            self.all.push(Loader { epochs: name, ..Loader::default() });
            self.all.len() - 1
        })
    }

    fn within(&mut self, epoch: usize, name: usize) -> &mut Within {
        let loader = self.of_epochs(epoch);
        self.all[loader].within.entry(name).or_default()
    }
}
