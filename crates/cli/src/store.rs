//! `pioscope store`: what is kept on I/O servers.

mod check;
mod copy;
mod remove;
mod unfinished;

pub(crate) use copy::within as copy_within;
pub(crate) use remove::folder as remove_folder;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use pio_protocol::Failure;
use pio_report::Table;
use pio_report::units::bytes;
use pio_store::StoreError;
use pio_store::client::{MOST_SECONDS, Options, Stat, Store, timeout_of};
use pio_store::config::StoreDescription;

use crate::flags::JsonFlag;
use crate::json;
use crate::output::{note, warning};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  export PIOSCOPE_STORE=/scratch/me/store/store.toml
  pioscope store cp mesh.nc pioscope:run/mesh.nc
  pioscope store ls --long run/
  pioscope store cp pioscope:run/result.nc .
  pioscope store rm --recursive run
  pioscope store check
  pioscope store df")]
pub(crate) struct Arguments {
    /// The store's description [default: what PIOSCOPE_STORE says]
    #[arg(long, value_name = "FILE", global = true)]
    store: Option<PathBuf>,
    /// How long to try to reach a server, in seconds [default: what PIOSCOPE_TIMEOUT says, or 60]
    #[arg(long, value_name = "SECONDS", value_parser = timeout, global = true)]
    timeout: Option<Duration>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List files, one a line
    Ls {
        /// Only those whose path begins so: `run/` for all in that folder
        #[arg(value_name = "PREFIX")]
        prefixes: Vec<String>,
        /// Also say how many bytes each has
        #[arg(short, long)]
        long: bool,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Show the size of files and the servers that they are on
    Stat {
        /// Files of the store
        #[arg(required = true)]
        paths: Vec<String>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Copy a file into the store, out of it, or within it
    Cp(copy::Arguments),
    /// Remove files, and folders with all that is in them
    Rm(remove::Arguments),
    /// Say how much room there is on each server
    Df(JsonFlag),
    /// Compare files with their checksums; fails if any is damaged
    Check(check::Arguments),
}

fn timeout(text: &str) -> Result<Duration> {
    timeout_of(text).with_context(|| format!("expected a number of seconds from 1 to {MOST_SECONDS}"))
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let description = description(arguments.store)?;
    let store = connect(&description, arguments.timeout)?;
    match arguments.verb {
        Verb::Ls { prefixes, long, json } => list(&store, &prefixes, long, json)?,
        Verb::Stat { paths, json } => stat(&store, &paths, json)?,
        Verb::Cp(arguments) => copy::run(&store, &arguments)?,
        Verb::Rm(arguments) => return remove::run(&store, &arguments),
        Verb::Df(json) => usage(&store, &description, json)?,
        Verb::Check(arguments) => return check::run(&store, &arguments),
    }
    Ok(ExitCode::SUCCESS)
}

/// A client of the store that a file describes, which says so when it has to wait for a server. Without a timeout, the environment's.
///
/// # Errors
/// If the description or the environment is not as it should be.
pub(crate) fn connect(description: &Path, timeout: Option<Duration>) -> Result<Store> {
    let options = Options::from_environment()?;
    let timeout = timeout.unwrap_or(options.timeout);
    Ok(Store::connect_with(description, Options { timeout, waits: |server| note!("{server}"), ..options })?)
}

/// The description that `PIOSCOPE_STORE` names: programs with the MPI-IO library have their files there.
pub(crate) fn of_environment() -> Option<PathBuf> {
    std::env::var_os("PIOSCOPE_STORE").filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// Where the store's description is.
fn description(given: Option<PathBuf>) -> Result<PathBuf> {
    given
        .or_else(of_environment)
        .context("no store: expected --store FILE, or PIOSCOPE_STORE, with what `pioscope serve` wrote")
}

/// A path of the store, with or without the mark that tells it from others.
fn inside(path: &str) -> &str {
    path.strip_prefix(copy::MARK).unwrap_or(path)
}

fn list(store: &Store, prefixes: &[String], long: bool, JsonFlag { json }: JsonFlag) -> Result<()> {
    let mut found = BTreeSet::new();
    for prefix in prefixes.iter().map(|prefix| inside(prefix)) {
        // Paths have no slash in front.
        let here = store.list(prefix.trim_start_matches('/'))?;
        ensure!(!here.is_empty() || prefix.is_empty(), "{prefix}: no file of the store begins so");
        found.extend(here.into_iter().map(|(path, _)| path));
    }
    if prefixes.is_empty() {
        found.extend(store.list("")?.into_iter().map(|(path, _)| path));
    }
    let with_size = |path: String| match long.then(|| store.stat(&path)).transpose() {
        // It was removed since its name was read.
        Err(error) if unfinished::is_missing(&error) => Ok(None),
        Err(error @ StoreError::Failed { failure: Failure::Damaged { .. } | Failure::FolderLost, .. }) => {
            warning!("{error}");
            Ok(Some((None, path)))
        }
        stat => Ok(Some((stat?.map(|stat| stat.size), path))),
    };
    let found = found.into_iter().filter_map(|path| with_size(path).transpose());
    let found = found.collect::<Result<Vec<_>>>()?;
    if json {
        return json::print(&json::store::Listed::of(found.into_iter().map(|(size, path)| (path, size))));
    }
    let mut text = String::new();
    for (size, path) in found {
        if long {
            // Of what is damaged or lost, nobody knows.
            let size = size.map_or_else(|| "?".to_owned(), |size| size.to_string());
            text.push_str(&format!("{size:>15} "));
        }
        text.push_str(&format!("{path}\n"));
    }
    crate::print(&text)
}

fn stat(store: &Store, paths: &[String], JsonFlag { json }: JsonFlag) -> Result<()> {
    let stats = paths.iter().map(|path| store.stat(inside(path)));
    if json {
        return json::print(&json::store::Status::of(stats.collect::<Result<_, _>>()?));
    }
    for stat in stats {
        let Stat { path, file, size, placement, .. } = stat?;
        let striping = placement.striping();
        let servers: Vec<String> =
            (0..striping.factor).map(|slot| placement.server_of_slot(slot).to_string()).collect();
        crate::print(&format!(
            "{path}\n  size     {size} B\n  strips   {} B\n  servers  {}\n  id       {:016x}\n",
            striping.unit,
            servers.join(", "),
            file.0
        ))?;
    }
    Ok(())
}

fn usage(store: &Store, description: &Path, JsonFlag { json }: JsonFlag) -> Result<()> {
    let servers = StoreDescription::load(description)?.servers;
    let usage = store.usage()?.into_iter().zip(servers);
    if json {
        return json::print(&json::store::Room::of(usage.map(|(usage, server)| (server.address, usage))));
    }
    let rows = usage.enumerate().map(|(index, (usage, server))| {
        let sizes = [usage.used_bytes, usage.free_bytes, usage.total_bytes];
        let mut row = vec![index.to_string(), server.address, usage.files.to_string()];
        row.extend(sizes.map(|size| bytes(size as f64)));
        row
    });
    let table = Table {
        title: "Servers".to_owned(),
        note: "Used by the store; free and in all, on the file systems of the server's folders.".to_owned(),
        columns: vec![">server", "address", ">files", ">used", ">free", ">in all"],
        rows: rows.collect(),
    };
    crate::print(&table.text())
}
