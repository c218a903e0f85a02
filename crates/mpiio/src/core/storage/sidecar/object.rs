//! A sidecar on I/O servers: hidden files of the store, without data, one for each view whose pointer is used.
//!
//! The store has a counter and locks for each of its files, and repeats no request that was carried out. The pointer of
//! a view is the counter of its file; locks of atomic mode are those of the first view's file.

use std::collections::BTreeMap;
use std::ops::Range;

use pio_store::client::{Mode, Store, StoreFile, StripingHints};
use pio_store::{StoreError, client::Lock};

use crate::core::mpi::status::Status;
use crate::core::storage::servers::{self, LOCK_TIMEOUT, refused};

/// Counters are numbers of 63 bits that are not negative, and a pointer may be before where its view began (if that is
/// the end of the file). So pointers count modulo this.
const MODULUS: u64 = 1 << 62;
/// Whose file has the locks.
const FIRST_VIEW: u64 = 0;

/// Hidden files of the store.
#[derive(Debug)]
pub(crate) struct HiddenObject {
    /// Their path, without the number of the view.
    path: String,
    views: BTreeMap<u64, Opened>,
}

#[derive(Debug)]
struct Opened {
    store: Store,
    file: StoreFile,
    /// By this rank, which removes it.
    made: bool,
}

impl HiddenObject {
    /// For the file with a name in the store.
    pub(crate) fn new(name: &str, number: u64) -> HiddenObject {
        let folder = name.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        HiddenObject { path: folder + &super::name::name(number), views: BTreeMap::new() }
    }

    /// How far the pointer of a view has moved.
    pub(crate) fn get(&mut self, view: u64) -> Result<u64, Status> {
        self.fetch_add(view, 0)
    }

    /// Moves the pointer of a view on; where it was.
    pub(crate) fn fetch_add(&mut self, view: u64, etypes: u64) -> Result<u64, Status> {
        let before = self.opened(view)?.file.move_pointer(etypes % MODULUS).map_err(refused)?;
        Ok(pointer_of(before))
    }

    /// Puts the pointer of a view somewhere.
    pub(crate) fn set(&mut self, view: u64, etypes: u64) -> Result<(), Status> {
        Ok(self.opened(view)?.file.set_pointer(etypes % MODULUS).map_err(refused)?)
    }

    /// Does something while others are kept out. A lock that was lost meanwhile is an error: others may have come in.
    pub(crate) fn locked<T>(
        &mut self,
        bytes: Range<u64>,
        shared: bool,
        work: impl FnOnce() -> Result<T, Status>,
    ) -> Result<T, Status> {
        let file = &self.opened(FIRST_VIEW)?.file;
        let lock: Lock = file.lock(bytes, shared, LOCK_TIMEOUT).map_err(refused)?;
        let done = work();
        let unlocked = file.unlock(lock).map_err(|error| Status::from(refused(error)));
        done.and_then(|done| unlocked.map(|()| done))
    }

    /// Removes the files that this rank made.
    pub(crate) fn remove(&mut self) {
        for (view, opened) in std::mem::take(&mut self.views) {
            if opened.made {
                // If it cannot be removed, it is in nobody's way.
                let _ = opened.store.remove(&self.path_of(view));
            }
        }
    }

    fn path_of(&self, view: u64) -> String {
        format!("{}-{view}", self.path)
    }

    fn opened(&mut self, view: u64) -> Result<&Opened, Status> {
        if !self.views.contains_key(&view) {
            let opened = open(&self.path_of(view))?;
            self.views.insert(view, opened);
        }
        self.views.get(&view).ok_or(Status::Internal)
    }
}

/// Makes the file, or opens the one that another rank made.
fn open(path: &str) -> Result<Opened, Status> {
    let store = servers::store()?;
    let made = store.open(path, Mode { create: true, exclusive: true }, StripingHints::default());
    let (file, made) = match made {
        Ok(file) => (file, true),
        Err(StoreError::Failed { .. }) => {
            let mode = Mode { create: false, exclusive: false };
            (store.open(path, mode, StripingHints::default()).map_err(refused)?, false)
        }
        Err(error) => return Err(refused(error).into()),
    };
    Ok(Opened { store, file, made })
}

fn pointer_of(counter: u64) -> u64 {
    let counted = counter % MODULUS;
    if counted < MODULUS / 2 { counted } else { counted.wrapping_sub(MODULUS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_may_be_before_where_their_view_began() {
        let before = 0_u64.wrapping_sub(5);
        assert_eq!(pointer_of(before % MODULUS), before);
        assert_eq!(pointer_of(before % MODULUS + 12), 7);
        assert_eq!(pointer_of(7), 7);
    }

    #[test]
    fn hidden_files_are_beside_the_file() {
        assert_eq!(HiddenObject::new("run/a", 1).path_of(2), "run/.pioscope-0000000000000001-2");
        assert_eq!(HiddenObject::new("a", 1).path_of(0), ".pioscope-0000000000000001-0");
    }
}
