//! The files that the kernel knows, by number, each held by a descriptor: a name may change or go while it is held.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::INodeNo;
use rustix::fs::{AtFlags, Mode, OFlags, Stat, openat, statat};

pub(crate) struct Inodes {
    root: Arc<OwnedFd>,
    known: Mutex<HashMap<u64, Known>>,
}

struct Known {
    descriptor: Arc<OwnedFd>,
    /// How often the kernel was told of it, less what it forgot.
    lookups: u64,
}

impl Inodes {
    pub(crate) fn new(root: OwnedFd) -> Inodes {
        Inodes { root: Arc::new(root), known: Mutex::default() }
    }

    /// The descriptor of a file; it only names the file.
    pub(crate) fn get(&self, number: INodeNo) -> io::Result<Arc<OwnedFd>> {
        if number == INodeNo::ROOT {
            return Ok(Arc::clone(&self.root));
        }
        self.lock()
            .get(&number.0)
            .map(|known| Arc::clone(&known.descriptor))
            .ok_or(io::Error::from_raw_os_error(nix::libc::ESTALE))
    }

    /// A path that leads to a file.
    pub(crate) fn path(&self, number: INodeNo) -> io::Result<String> {
        Ok(path_of(&*self.get(number)?))
    }

    /// A name in a folder: the kernel is told of the file.
    pub(crate) fn lookup(&self, folder: INodeNo, name: &OsStr) -> io::Result<Stat> {
        let folder = self.get(folder)?;
        let descriptor =
            openat(&*folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let stat = status(&descriptor)?;
        let mut known = self.lock();
        let known = known
            .entry(stat.st_ino)
            .or_insert_with(|| Known { descriptor: Arc::new(descriptor), lookups: 0 });
        known.lookups += 1;
        Ok(stat)
    }

    /// The kernel forgets a file so many times.
    pub(crate) fn forget(&self, number: INodeNo, times: u64) {
        let mut known = self.lock();
        if let Some(file) = known.get_mut(&number.0) {
            file.lookups = file.lookups.saturating_sub(times);
            if file.lookups == 0 {
                known.remove(&number.0);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of the file that a descriptor names.
pub(crate) fn status(descriptor: impl AsFd) -> io::Result<Stat> {
    Ok(statat(descriptor, "", AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW)?)
}

/// A path that leads to what a descriptor names.
pub(crate) fn path_of(descriptor: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}
