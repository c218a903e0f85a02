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
were killed left behind. --repair removes these, and nothing else: damaged files stay as they are, and so do parts whose
file's name may have been kept by a server that lost its folder, unless --remove-lost is given, too.")]
pub(super) struct Arguments {
    /// Files of the store [default: all]
    paths: Vec<String>,
    /// Remove what belongs to no file; nobody may be renaming files meanwhile
    #[arg(long, conflicts_with = "paths")]
    repair: bool,
    /// Also remove what is left of files whose names a server lost with its folder
    #[arg(long, requires = "repair")]
    remove_lost: bool,
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
    /// Parts that are left of files whose names a server lost.
    nameless_parts: u64,
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
        found.nameless_parts = find_leftovers(store, &paths, arguments)?;
    }
    let Found { files, damaged_files, blocks, damaged_blocks, unchecked_files, refusing, nameless_parts } =
        found;
    let all = format!("{}, {}", things(files, "file", "files"), things(blocks, "block", "blocks"));
    let damaged = things(damaged_blocks, "block", "blocks");
    if !refusing.is_empty() {
        let unchecked = things(unchecked_files, "file", "files");
        crate::print(&format!(
            "{all}: damaged: {damaged}; could not be checked: {unchecked}, and files whose names are on a server that did not start\n"
        ))?;
        return Ok(ExitCode::FAILURE);
    }
    let nameless = match nameless_parts {
        0 => String::new(),
        parts => format!("; of files whose names are lost: {}", things(parts, "part", "parts")),
    };
    if damaged_files == 0 {
        crate::print(&format!("{all}: all checksums match{nameless}\n"))?;
    } else {
        let files = things(damaged_files, "file", "files");
        crate::print(&format!("{all}: damaged: {files}, {damaged}{nameless}\n"))?;
    }
    Ok(if damaged_files + nameless_parts == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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

/// Says what belongs to no file, a line each, and removes it if it is to be repaired. Says how many parts are left of files whose
/// names may be lost.
fn find_leftovers(store: &Store, paths: &[String], arguments: &Arguments) -> Result<u64> {
    let &Arguments { repair, remove_lost, .. } = arguments;
    let copies = unfinished::abandoned(store, paths)?;
    for path in &copies {
        let done = if repair { ": removed" } else { "" };
        crate::print(&format!("{path}: of a copy that was not completed{done}\n"))?;
        if repair {
            unfinished::remove(store, path)?;
        }
    }
    let parts = store.unreferenced()?;
    let (mut left, mut nameless) = (copies.len() as u64, 0);
    for part in &parts {
        let Unreferenced { server, file, bytes, name_lost_by } = part;
        let removed = repair && (name_lost_by.is_none() || remove_lost);
        if removed {
            store.remove_unreferenced(part)?;
        }
        let why = match name_lost_by {
            None => "belongs to no file".to_owned(),
            Some(other) => {
                format!("of a file whose name may be one that server {other} lost with its folder")
            }
        };
        if !removed {
            *if name_lost_by.is_none() { &mut left } else { &mut nameless } += 1;
        }
        let done = if removed { ": removed" } else { "" };
        let id = file.id.0;
        crate::print(&format!("server {server}: part {id:016x}, {bytes} B, {why}{done}\n"))?;
    }
    if !repair && left > 0 {
        crate::print("`pioscope store check --repair` removes what belongs to no file\n")?;
    }
    if nameless > 0 {
        crate::print(
            "if that folder cannot be brought back, `pioscope store check --repair --remove-lost` removes what is left of its files\n",
        )?;
    }
    Ok(nameless)
}

fn is_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(unfinished::is_missing)
}

fn check(store: &Store, path: &str, found: &mut Found) -> Result<()> {
    let checked = store.check(path);
    found.files += u64::from(!checked.as_ref().is_err_and(unfinished::is_missing));
    let parts = match checked {
        // Its record went with a server's folder.
        Err(StoreError::Failed { path, server, failure: failure @ Failure::FolderLost }) => {
            found.damaged_files += 1;
            return crate::print(&format!("{path}: server {server}: {failure}\n"));
        }
        Err(StoreError::Refused { server, reason, .. }) => {
            found.unchecked_files += 1;
            return found.refused(server, &reason);
        }
        checked => checked?,
    };
    // Its size is known if no server finds that its part is cut.
    let stat = match store.stat(path) {
        Err(StoreError::Failed { failure: Failure::Damaged { .. }, .. }) => None,
        stat => Some(stat?),
    };
    let without = stat.as_ref().map_or(&[][..], |stat| &stat.servers_without);
    let mut is_damaged = false;
    for (server, part) in &parts {
        let text = match part {
            Ok(_) if without.contains(server) => {
                is_damaged = true;
                format!(
                    "{path}: server {server} has nothing of it: what belongs there is lost, or was never written\n"
                )
            }
            // The file ends before the first byte that would be there, if it is known where it ends.
            Err(Failure::FolderLost) if stat.is_some() && !without.contains(server) => continue,
            Ok(part) => {
                found.blocks += part.blocks;
                found.damaged_blocks += part.damaged;
                is_damaged |= part.damaged > 0;
                said(path, *server, stat.as_ref(), part)
            }
            Err(failure) => {
                found.damaged_blocks += u64::from(*failure != Failure::FolderLost);
                is_damaged = true;
                format!("{path}: server {server}: {failure}\n")
            }
        };
        crate::print(&text)?;
    }
    found.damaged_files += u64::from(is_damaged);
    Ok(())
}

/// A line a damaged block.
fn said(path: &str, server: u32, stat: Option<&Stat>, part: &Checked) -> String {
    let Checked { damaged, first, .. } = part;
    let mut text = String::new();
    for block in first {
        let place = stat.and_then(|stat| place(stat, server, *block)).unwrap_or_default();
        text.push_str(&format!("{path}: server {server}: block {block} is damaged{place}\n"));
    }
    let more = damaged - first.len() as u64;
    if more > 0 {
        text.push_str(&format!("{path}: server {server}: and {more} blocks more\n"));
    }
    text
}

/// Which bytes of the file a block of a server has, as words.
fn place(stat: &Stat, server: u32, block: u64) -> Option<String> {
    let Stat { placement, size, .. } = stat;
    let striping = placement.striping();
    let slot = placement.slot_of_server(server)?;
    let start = striping.file_offset(slot, block * BLOCK_BYTES)?;
    let last = striping.file_offset(slot, (block + 1) * BLOCK_BYTES - 1)?;
    let last = last.min(size.saturating_sub(1)).max(start);
    // Strips of other servers lie between those of a block.
    let some = if striping.unit < BLOCK_BYTES && striping.factor > 1 { "some of " } else { "" };
    Some(format!(": {some}bytes {start} to {last} of the file"))
}
