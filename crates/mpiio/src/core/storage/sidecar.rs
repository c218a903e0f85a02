//! The sidecar of an open file: what owns its shared file pointer and the locks of atomic mode.
//!
//! No rank's help is needed for either: whoever uses the sidecar asks it alone. It is a hidden file, beside the file in
//! its file system ([`mod@file`]) or in the store ([`object`]). It is made by the first use, so that files without shared
//! pointers have none, and removed when the file is closed. Its name is the same on all ranks and no other open file's.
//! Where rank 0 may not create files beside the file, or the file is on I/O servers, and all ranks are on one node, it
//! lies in memory (`/dev/shm`).
//!
//! Each view has a pointer of its own, because setting a view puts the pointer to zero: then no rank must wait until
//! others have done with the last one.

pub(crate) mod file;
mod name;
mod object;

use std::ops::Range;
use std::path::Path;

use self::file::HiddenFile;
use self::name::folder_of;
use self::object::HiddenObject;
use crate::core::mpi::status::Status;

/// A file's sidecar, made or not.
#[derive(Debug)]
pub(crate) enum Sidecar {
    /// In a file system.
    File(HiddenFile),
    /// On I/O servers.
    Object(HiddenObject),
}

/// Where sidecars can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SidecarPlace {
    /// In the file's own folder.
    Beside,
    /// In the node's memory.
    Memory,
    /// On the I/O servers that have the file.
    Servers,
}

impl Sidecar {
    /// The sidecar of the file at `path`, of `name` if it is on I/O servers; `number` is the same on all ranks, and
    /// different for all open files.
    pub(crate) fn new(
        path: &Path,
        name: Option<&str>,
        place: SidecarPlace,
        number: u64,
    ) -> Result<Sidecar, Status> {
        Ok(match (place, name) {
            (SidecarPlace::Servers, Some(name)) => Sidecar::Object(HiddenObject::new(name, number)),
            (SidecarPlace::Memory, _) => Sidecar::File(HiddenFile::new(Path::new("/dev/shm"), number)?),
            _ => Sidecar::File(HiddenFile::new(&folder_of(path), number)?),
        })
    }

    /// How far the pointer of a view has moved.
    pub(crate) fn get(&mut self, view: u64) -> Result<u64, Status> {
        match self {
            Sidecar::File(file) => file.get(view),
            Sidecar::Object(object) => object.get(view),
        }
    }

    /// Moves the pointer of a view on; where it was.
    pub(crate) fn fetch_add(&mut self, view: u64, etypes: u64) -> Result<u64, Status> {
        match self {
            Sidecar::File(file) => file.fetch_add(view, etypes),
            Sidecar::Object(object) => object.fetch_add(view, etypes),
        }
    }

    /// Puts the pointer of a view somewhere.
    pub(crate) fn set(&mut self, view: u64, etypes: u64) -> Result<(), Status> {
        match self {
            Sidecar::File(file) => file.set(view, etypes),
            Sidecar::Object(object) => object.set(view, etypes),
        }
    }

    /// Does something while other ranks (if `shared`, those that write) are kept out of the bytes `file` of the file.
    pub(crate) fn locked<T>(
        &mut self,
        file: Range<u64>,
        shared: bool,
        work: impl FnOnce() -> Result<T, Status>,
    ) -> Result<T, Status> {
        match self {
            Sidecar::File(hidden) => {
                let _lock = hidden.lock(file, shared)?;
                work()
            }
            Sidecar::Object(object) => object.locked(file, shared, work),
        }
    }

    /// Removes what there is in its place. When all ranks have done with the file, rank 0 (`first`) and whoever made
    /// something of it on servers must call this.
    pub(crate) fn remove(&mut self, first: bool) {
        match self {
            Sidecar::File(file) if first => file.remove(),
            Sidecar::File(_) => {}
            Sidecar::Object(object) => object.remove(),
        }
    }
}
