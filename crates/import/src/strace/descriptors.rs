//! What a process's descriptors stand for.

use std::collections::BTreeMap;

use pio_trace::FileId;

/// Index of an [`OpenFile`].
pub(super) type OpenFileId = usize;

/// What `open` made: descriptors that were duplicated or inherited share it, and so its position.
pub(super) struct OpenFile {
    pub(super) file: FileId,
    /// Where the next read or write goes; none once it is not known.
    pub(super) position: Option<u64>,
    /// Writes go to the end.
    pub(super) appends: bool,
}

/// What a descriptor stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Descriptor {
    /// A file of the job.
    File {
        open: OpenFileId,
        /// Whether it is closed when another program begins.
        closes_on_exec: bool,
    },
    /// A folder: calls name files in it.
    Folder(String),
    /// A copy of one that was open before, of which only the number is known.
    Nameless,
    /// A pipe, a socket, a device, …
    Other,
}

/// A process's descriptors.
#[derive(Clone, Debug, Default)]
pub(super) struct Descriptors {
    known: BTreeMap<i32, Descriptor>,
}

impl Descriptors {
    pub(super) fn get(&self, fd: i32) -> Option<&Descriptor> {
        self.known.get(&fd)
    }

    pub(super) fn set(&mut self, fd: i32, what: Descriptor) {
        self.known.insert(fd, what);
    }

    pub(super) fn close(&mut self, fd: i32) {
        self.known.remove(&fd);
    }

    /// `close_range`.
    pub(super) fn close_range(&mut self, first: i32, last: i32) {
        self.known.retain(|fd, _| *fd < first || *fd > last);
    }

    /// Another program begins.
    pub(super) fn exec(&mut self) {
        self.known.retain(|_, what| !matches!(what, Descriptor::File { closes_on_exec: true, .. }));
    }
}
