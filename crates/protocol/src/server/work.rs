//! What takes a disk.

use crate::placement::{Placement, SlotStrips};
use crate::process::ClientId;
use crate::request::{FileId, FileRef, Name};

/// Something to do with files, names or records, for a client's request.
#[derive(Clone, Debug)]
pub struct Work {
    /// Whose.
    pub client: ClientId,
    /// Of which request.
    pub number: u64,
    /// What.
    pub task: Task,
}

impl Work {
    /// Bytes of data that the work reads at most.
    pub fn reads(&self) -> u64 {
        match self.task {
            Task::Read { bytes, .. } => bytes,
            _ => 0,
        }
    }
}

impl PartialEq for Work {
    /// The same request is the same work.
    fn eq(&self, other: &Work) -> bool {
        (self.client, self.number) == (other.client, other.number)
    }
}

/// What is to be done; see [`crate::Body`], which it was checked from.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields are those of the request")]
pub enum Task {
    LookUp { name: Name },
    Create { name: Name, exclusive: bool, placement: Placement },
    Unlink { name: Name },
    Link { name: Name, file: FileId },
    List { prefix: String, after: String, most: u32 },
    Describe { file: FileId },
    Forget { file: FileId },
    MovePointer { file: FileId, by: u64 },
    SetPointer { file: FileId, value: u64 },
    Write { file: FileRef, strips: SlotStrips, bytes: u64 },
    Read { file: FileRef, strips: SlotStrips, bytes: u64 },
    Length { file: FileRef },
    SetLength { file: FileRef, bytes: u64 },
    Preallocate { file: FileRef, bytes: u64 },
    Extend { file: FileRef, bytes: u64 },
    Sync { file: FileRef },
    RemovePart { file: FileRef },
    Check { file: FileRef },
    Usage,
    Goodbye,
    Parts { from: FileId, most: u32 },
}
