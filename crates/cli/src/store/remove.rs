//! `pioscope store rm`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use pio_protocol::Failure;
use pio_report::units::things;
use pio_store::StoreError;
use pio_store::client::{Mode, Store, StripingHints};

use super::{inside, unfinished};
use crate::output;
use crate::progress::Progress;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope store rm run/mesh.nc
  pioscope store rm --recursive run old/results
  pioscope store rm --force run/mesh.nc

As rm of files: what can be removed is removed, and the exit code is not 0 if something could not be.")]
pub(super) struct Arguments {
    /// Files of the store; with --recursive, also folders
    #[arg(required = true)]
    paths: Vec<String>,
    /// Remove folders, with all that is in them
    #[arg(short, long, visible_short_alias = 'R')]
    recursive: bool,
    /// Say nothing of what is not there
    #[arg(short, long)]
    force: bool,
}

/// Removes what it can, and says a line for each path that it cannot remove.
pub(super) fn run(store: &Store, arguments: &Arguments) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for path in &arguments.paths {
        if let Err(error) = remove(store, inside(path), arguments) {
            output::error(&crate::one_line(&error));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

fn remove(store: &Store, path: &str, arguments: &Arguments) -> Result<()> {
    let wanted = path.trim_matches('/');
    if wanted.is_empty() {
        bail!("that is all of the store: expected files or folders in it, as `pioscope store ls` names them");
    }
    // What ends so is meant to be a folder.
    let removed = match path.ends_with('/') {
        true => false,
        false => removed(store, wanted)?,
    };
    let inside: Vec<String> = match removed && !arguments.recursive {
        true => return Ok(()),
        false => store.list(&format!("{wanted}/"))?.into_iter().map(|(path, _)| path).collect(),
    };
    match (inside.len(), arguments.recursive) {
        (0, _) if removed || arguments.force => Ok(()),
        (0, _) => bail!("{wanted}: no such file or folder in the store"),
        (count, false) => {
            let files = things(count as u64, "file", "files");
            bail!("{wanted}: a folder of {files}: expected --recursive, to remove all of it")
        }
        (_, true) => all(store, wanted, &inside),
    }
}

/// Removes all files of a folder; none are there if it is not.
pub(crate) fn folder(store: &Store, name: &str) -> Result<()> {
    let inside: Vec<_> = store.list(&format!("{name}/"))?.into_iter().map(|(path, _)| path).collect();
    all(store, name, &inside)
}

fn all(store: &Store, folder: &str, inside: &[String]) -> Result<()> {
    let progress = Progress::new(&format!("removing {folder}"), inside.len() as u64);
    for (done, path) in (1..).zip(inside) {
        // Somebody else may have been faster.
        removed(store, path)?;
        progress.set(done);
    }
    Ok(())
}

/// Removes a file; false if there is none.
fn removed(store: &Store, path: &str) -> Result<bool> {
    let removed = || match unfinished::target(path) {
        None => store.remove(path),
        Some(_) => match store.open(path, Mode::default(), StripingHints::default()) {
            // The name alone is left.
            Err(error) if unfinished::is_missing(&error) => store.remove(path),
            file => unfinished::drop_name(store, path, file?.file().id),
        },
    };
    match removed() {
        Ok(()) => Ok(true),
        Err(StoreError::Failed { failure: Failure::NotFound, .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
