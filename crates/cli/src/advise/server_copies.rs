//! Copies of files on I/O servers: a folder of the store in which a program's files are while settings are tried.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pio_protocol::Failure;
use pio_scratch::Scratch;
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
    /// The folder of the store in which the user has the job's files; empty if in none.
    own: String,
    /// Names, in that folder, of the files that each run begins with.
    files: Vec<String>,
}

impl ServerCopies {
    /// An empty one in the store of this description.
    pub(super) fn new(description: &Path) -> Result<ServerCopies> {
        let number = u64::from_le_bytes(random().context("no random numbers")?);
        let folder = format!(".pioscope-scratch-{number:016x}");
        let own = std::env::var_os(VARIABLE).unwrap_or_default().to_string_lossy().into_owned();
        Ok(ServerCopies { store: store::connect(description, None)?, folder, own, files: Vec::new() })
    }

    /// The variable that puts a job's files there.
    pub(super) fn variable(&self) -> (OsString, OsString) {
        (VARIABLE.into(), self.folder.clone().into())
    }

    /// Of these files, as the trace of a run in scratch copies names them, those that the store has are there when the next runs
    /// begin.
    pub(super) fn begin_with(&mut self, paths: &[String], scratch: &Scratch) -> Result<()> {
        for name in paths.iter().flat_map(|path| names(Path::new(path), scratch.copies())) {
            match self.store.stat(&in_folder(&self.own, &name)) {
                Ok(_) if !self.files.contains(&name) => self.files.push(name),
                // What cannot be a name in the store is none.
                Ok(_)
                | Err(StoreError::Failed { failure: Failure::NotFound, .. } | StoreError::Invalid { .. }) => {
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// As at the beginning, whatever a run has made of it.
    pub(super) fn renew(&mut self) -> Result<()> {
        self.clear()?;
        for file in &self.files {
            store::copy_within(&self.store, &in_folder(&self.own, file), &in_folder(&self.folder, file))?;
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

/// The names that the MPI-IO library may have given a file: a program names it from its working folder, which is the first of the
/// copies, or absolutely, where it is or where its copy is.
fn names<'f>(path: &Path, copies: impl Iterator<Item = (&'f Path, &'f Path)>) -> Vec<String> {
    let mut paths = vec![path.to_owned()];
    for (number, (original, copy)) in copies.enumerate() {
        let in_copy = path.strip_prefix(copy);
        if let Ok(inside) = in_copy {
            paths.push(original.join(inside));
        }
        if let (0, Ok(inside)) = (number, in_copy.or_else(|_| path.strip_prefix(original))) {
            paths.push(inside.to_owned());
        }
    }
    let name = |path: PathBuf| Some(path.to_str()?.trim_start_matches('/').to_owned());
    paths.into_iter().filter_map(name).collect()
}

/// A name in a folder of the store, or in none.
fn in_folder(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{}/{name}", folder.trim_matches('/')) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_looked_for_under_each_name_that_a_program_may_give_it() {
        let copies = [("/home/run", "/home/run/.s/copy/run"), ("/data", "/data/.s/copy/data")];
        let named = |path: &str| {
            names(
                Path::new(path),
                copies.iter().map(|(original, copy)| (Path::new(original), Path::new(copy))),
            )
        };
        assert_eq!(named("/home/run/.s/copy/run/a/b")[1..3], ["home/run/a/b", "a/b"]);
        assert_eq!(named("/home/run/a"), ["home/run/a", "a"]);
        assert_eq!(named("/data/.s/copy/data/c")[1..], ["data/c"]);
        assert_eq!(named("/data/c"), ["data/c"]);
        assert_eq!(in_folder("mine/", "a"), "mine/a");
        assert_eq!(in_folder("", "a"), "a");
    }
}
