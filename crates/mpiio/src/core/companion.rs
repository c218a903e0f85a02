//! The companion of an open file: what owns its shared file pointer and the locks of atomic mode.
//!
//! No rank's help is needed for either: whoever uses the companion asks it alone. It is a hidden file, beside the file in
//! its file system ([`plain`]) or in the store ([`remote`]). It is made by the first use, so that files without shared
//! pointers have none, and removed when the file is closed. Its name is the same on all ranks and no other open file's.
//! Where rank 0 may not create files beside the file, or the file is on I/O servers, and all ranks are on one node, it
//! lies in memory (`/dev/shm`).
//!
//! Each view has a pointer of its own, because setting a view puts the pointer to zero: then no rank must wait until
//! others have done with the last one.

pub mod plain;
pub mod remote;

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use self::plain::HiddenFile;
use self::remote::HiddenObject;
use super::status::Status;

/// A file's companion, made or not.
#[derive(Debug)]
pub enum Companion {
    /// In a file system.
    Plain(HiddenFile),
    /// On I/O servers.
    Remote(HiddenObject),
}

/// Where companions can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the file's own folder.
    Beside,
    /// In the node's memory.
    Memory,
    /// On the I/O servers that have the file.
    Servers,
}

impl Companion {
    /// The companion of the file at `path`, of `name` if it is on I/O servers; `number` is the same on all ranks, and
    /// different for all open files.
    pub fn new(path: &Path, name: Option<&str>, place: Place, number: u64) -> Result<Companion, Status> {
        Ok(match (place, name) {
            (Place::Servers, Some(name)) => Companion::Remote(HiddenObject::new(name, number)),
            (Place::Memory, _) => Companion::Plain(HiddenFile::new(Path::new("/dev/shm"), number)?),
            _ => Companion::Plain(HiddenFile::new(&folder_of(path), number)?),
        })
    }

    /// How far the pointer of a view has moved.
    pub fn get(&mut self, view: u64) -> Result<u64, Status> {
        match self {
            Companion::Plain(file) => file.get(view),
            Companion::Remote(object) => object.get(view),
        }
    }

    /// Moves the pointer of a view on; where it was.
    pub fn fetch_add(&mut self, view: u64, etypes: u64) -> Result<u64, Status> {
        match self {
            Companion::Plain(file) => file.fetch_add(view, etypes),
            Companion::Remote(object) => object.fetch_add(view, etypes),
        }
    }

    /// Puts the pointer of a view somewhere.
    pub fn set(&mut self, view: u64, etypes: u64) -> Result<(), Status> {
        match self {
            Companion::Plain(file) => file.set(view, etypes),
            Companion::Remote(object) => object.set(view, etypes),
        }
    }

    /// Does something while other ranks (if `shared`, those that write) are kept out of the bytes `file` of the file.
    pub fn locked<T>(
        &mut self,
        file: Range<u64>,
        shared: bool,
        work: impl FnOnce() -> Result<T, Status>,
    ) -> Result<T, Status> {
        match self {
            Companion::Plain(hidden) => {
                let _lock = hidden.lock(file, shared)?;
                work()
            }
            Companion::Remote(object) => object.locked(file, shared, work),
        }
    }

    /// Removes what there is in its place. When all ranks have done with the file, rank 0 (`first`) and whoever made
    /// something of it on servers must call this.
    pub fn remove(&mut self, first: bool) {
        match self {
            Companion::Plain(file) if first => file.remove(),
            Companion::Plain(_) => {}
            Companion::Remote(object) => object.remove(),
        }
    }
}

fn name(number: u64) -> String {
    format!(".pioscope-{number:016x}")
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != OsStr::from_bytes(b"") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
