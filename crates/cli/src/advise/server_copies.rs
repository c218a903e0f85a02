//! Copies of files on I/O servers: a folder of the store in which a program's files are while settings are tried.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result};
use pio_protocol::Failure;
use pio_store::StoreError;
use pio_store::auth::random;
use pio_store::client::Store;

use crate::output::note;
use crate::store;

/// Names the folder to the MPI-IO library.
const VARIABLE: &str = "PIOSCOPE_STORE_FOLDER";

/// The folder, which goes with this.
pub(super) struct ServerCopies {
    store: Store,
    folder: String,
    /// Files of the store that each run begins with.
    files: Vec<String>,
}

impl ServerCopies {
    /// An empty one in the store of this description.
    pub(super) fn new(description: &Path) -> Result<ServerCopies> {
        let number = u64::from_le_bytes(random().context("no random numbers")?);
        let folder = format!(".pioscope-scratch-{number:016x}");
        Ok(ServerCopies { store: Store::connect(description)?, folder, files: Vec::new() })
    }

    /// The variable that puts a job's files there.
    pub(super) fn variable(&self) -> (OsString, OsString) {
        (VARIABLE.into(), self.folder.clone().into())
    }

    /// Of the files that a program names so, those of the store are there when its next runs begin. A program may name a file
    /// by another path than the trace does: from its working folder, or absolutely.
    pub(super) fn begin_with<'p>(
        &mut self,
        paths: impl Iterator<Item = &'p str>,
        working_folders: &[&Path],
    ) -> Result<()> {
        for path in paths {
            let path = Path::new(path);
            let relative = working_folders.iter().filter_map(|folder| path.strip_prefix(folder).ok());
            for name in relative.chain([path]).filter_map(Path::to_str) {
                let name = name.trim_start_matches('/');
                match self.store.stat(name) {
                    Ok(_) if !self.files.iter().any(|known| known == name) => {
                        self.files.push(name.to_owned())
                    }
                    Ok(_) | Err(StoreError::Failed { failure: Failure::NotFound, .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// As at the beginning, whatever a run has made of it.
    pub(super) fn renew(&mut self) -> Result<()> {
        self.clear()?;
        for file in &self.files {
            store::copy_within(&self.store, file, &format!("{}/{file}", self.folder))?;
        }
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        store::remove_folder(&self.store, &self.folder)
    }
}

impl Drop for ServerCopies {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            note!("scratch copies are left on the servers, in {}: {error:#}", self.folder);
        }
    }
}
