//! `pioscope store check`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use pio_protocol::Failure;
use pio_report::units::things;
use pio_store::StoreError;
use pio_store::client::{Checked, Stat, Store, Unreferenced};
use pio_store::disk::BLOCK_BYTES;

use super::{inside, unfinished};
use crate::progress::Progress;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope store check
  pioscope store check --repair
  pioscope store check run/mesh.nc

Without files named, it also finds what belongs to no file: parts whose removal was cut short, and what copies that
were killed left behind. --repair removes these, and nothing else: damaged files stay as they are.")]
pub(super) struct Arguments {
    /// Files of the store [default: all]
    paths: Vec<String>,
    /// Remove what belongs to no file; nobody may be renaming files meanwhile
    #[arg(long, conflicts_with = "paths")]
    repair: bool,
}

/// What was found in all files.
#[derive(Default)]
struct Found {
    files: u64,
    damaged_files: u64,
    blocks: u64,
    damaged_blocks: u64,
    /// Files that are not, or not all, on servers that could be asked.
    unchecked_files: u64,
    /// Servers that refuse: they could not be started.
    refusing: BTreeSet<u32>,
}

/// Says what is damaged, one line a block; an exit code that is not 0 if anything is.
pub(super) fn run(store: &Store, arguments: &Arguments) -> Result<ExitCode> {
    let mut found = Found::default();
    let paths = match &arguments.paths[..] {
        [] => named(store, &mut found)?,
        paths => paths.iter().map(|path| inside(path).to_owned()).collect(),
    };
    let progress = Progress::new("comparing with checksums", paths.len() as u64);
    for (done, path) in (1..).zip(&paths) {
        match check(store, path, &mut found) {
            // It was removed, or got another name, since its name was read.
            Err(error) if arguments.paths.is_empty() && is_gone(&error) => {}
            checked => checked?,
        }
        progress.set(done);
    }
    drop(progress);
    // Without the names that a server keeps, its files would look as if they had none.
    if arguments.paths.is_empty() && found.refusing.is_empty() {
        find_leftovers(store, &paths, arguments.repair)?;
    }
    let Found { files, damaged_files, blocks, damaged_blocks, unchecked_files, refusing } = found;
    let all = format!("{}, {}", things(files, "file", "files"), things(blocks, "block", "blocks"));
    let damaged = things(damaged_blocks, "block", "blocks");
    if !refusing.is_empty() {
        let unchecked = things(unchecked_files, "file", "files");
        crate::print(&format!(
            "{all}: damaged: {damaged}; could not be checked: {unchecked}, and files whose names are on a server that did not start\n"
        ))?;
        return Ok(ExitCode::FAILURE);
    }
    if damaged_files == 0 {
        crate::print(&format!("{all}: all checksums match\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let files = things(damaged_files, "file", "files");
    crate::print(&format!("{all}: damaged: {files}, {damaged}\n"))?;
    Ok(ExitCode::FAILURE)
}

/// The paths of all files; without those of servers that refuse.
fn named(store: &Store, found: &mut Found) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for server in 0..store.servers() {
        match store.list_on(server, "") {
            Ok(names) => paths.extend(names.into_iter().map(|(path, _)| path)),
            Err(StoreError::Refused { server, reason, .. }) => found.refused(server, &reason)?,
            Err(error) => return Err(error.into()),
        }
    }
    paths.sort();
    Ok(paths)
}

impl Found {
    /// Notes a server that refuses, and says so once.
    fn refused(&mut self, server: u32, reason: &str) -> Result<()> {
        if self.refusing.insert(server) {
            crate::print(&format!("server {server}: {reason}\n"))?;
        }
        Ok(())
    }
}

/// Says what belongs to no file, a line each, and removes it if it is to be repaired.
fn find_leftovers(store: &Store, paths: &[String], repair: bool) -> Result<()> {
    let copies = unfinished::abandoned(store, paths)?;
    for path in &copies {
        let done = if repair { ": removed" } else { "" };
        crate::print(&format!("{path}: of a copy that was not completed{done}\n"))?;
        if repair {
            unfinished::remove(store, path)?;
        }
    }
    let parts = store.unreferenced()?;
    for part in &parts {
        if repair {
            store.remove_unreferenced(part)?;
        }
        let Unreferenced { server, file, bytes } = part;
        let done = if repair { ": removed" } else { "" };
        let id = file.id.0;
        crate::print(&format!("server {server}: part {id:016x}, {bytes} B, belongs to no file{done}\n"))?;
    }
    if !repair && copies.len() + parts.len() > 0 {
        crate::print("`pioscope store check --repair` removes what belongs to no file\n")?;
    }
    Ok(())
}

fn is_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(unfinished::is_missing)
}

fn check(store: &Store, path: &str, found: &mut Found) -> Result<()> {
    let checked = store.stat(path).and_then(|stat| Ok((store.check(path)?, stat)));
    found.files += u64::from(!checked.as_ref().is_err_and(unfinished::is_missing));
    let (parts, stat) = match checked {
        Ok(checked) => checked,
        // So damaged that the server cannot even tell which blocks there are.
        Err(StoreError::Failed { path, server, failure: failure @ Failure::Damaged { .. } }) => {
            found.damaged_files += 1;
            found.damaged_blocks += 1;
            return crate::print(&format!("{path}: server {server}: {failure}\n"));
        }
        Err(StoreError::Refused { server, reason, .. }) => {
            found.unchecked_files += 1;
            return found.refused(server, &reason);
        }
        Err(error) => return Err(error.into()),
    };
    found.blocks += parts.iter().map(|part| part.blocks).sum::<u64>();
    found.damaged_blocks += parts.iter().map(|part| part.damaged).sum::<u64>();
    found.damaged_files +=
        u64::from(!stat.servers_without.is_empty() || parts.iter().any(|part| part.damaged > 0));
    for server in &stat.servers_without {
        crate::print(&format!(
            "{path}: server {server} has nothing of it: what belongs there is lost, or was never written\n"
        ))?;
    }
    for part in &parts {
        crate::print(&said(&stat, part))?;
    }
    Ok(())
}

/// A line a damaged block.
fn said(stat: &Stat, part: &Checked) -> String {
    let Stat { path, placement, size, .. } = stat;
    let Checked { server, damaged, first, .. } = part;
    let mut text = String::new();
    for block in first {
        text.push_str(&format!("{path}: server {server}: block {block} is damaged"));
        let slot = placement.slot_of_server(*server);
        let offset = |in_part: u64| slot.and_then(|slot| placement.striping().file_offset(slot, in_part));
        let (start, end) = (block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
        if let (Some(start), Some(last)) = (offset(start), offset(end - 1)) {
            let last = last.min(size.saturating_sub(1)).max(start);
            // Strips of other servers lie between those of a block.
            let some = if placement.striping().unit < BLOCK_BYTES && placement.striping().factor > 1 {
                "some of "
            } else {
                ""
            };
            text.push_str(&format!(": {some}bytes {start} to {last} of the file"));
        }
        text.push('\n');
    }
    let more = damaged - first.len() as u64;
    if more > 0 {
        text.push_str(&format!("{path}: server {server}: and {more} blocks more\n"));
    }
    text
}
