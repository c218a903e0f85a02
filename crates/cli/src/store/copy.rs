//! `pioscope store cp`.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use pio_protocol::{Name, PATH_BYTES};
use pio_store::client::{Mode, Stat, Store, StoreFile, StripingHints};

use super::unfinished;
use crate::output::warning;
use crate::progress::Progress;
use crate::serve::strip;
use crate::whole_file::WholeFile;

/// What tells a path of the store from one of the file system.
pub(super) const MARK: &str = "pioscope:";

/// Bytes that are copied at a time.
const CHUNK_BYTES: usize = 8 << 20;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pioscope store cp mesh.nc pioscope:run/mesh.nc --strip '1 MiB'
  pioscope store cp pioscope:run/result.nc results/
  pioscope store cp pioscope:run/a.nc pioscope:run/b.nc

The target is there whole or not at all: until the copy is complete it has another name.")]
pub(super) struct Arguments {
    /// What to copy: a file, or pioscope:PATH in the store
    source: String,
    /// Where to: a file or folder, or pioscope:PATH in the store
    target: String,
    /// Bytes of a strip of the copy in the store [default: as the store's description says]
    #[arg(long, value_name = "SIZE", value_parser = strip)]
    strip: Option<u64>,
    /// Over how many servers the copy in the store goes [default: all]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    servers: Option<u32>,
}

pub(super) fn run(store: &Store, arguments: &Arguments) -> Result<()> {
    let Arguments { source, target, strip, servers } = arguments;
    let striping = StripingHints { unit: strip.unwrap_or(0), factor: servers.unwrap_or(0) };
    if let Some(factor) = servers {
        ensure!(
            *factor <= store.servers(),
            "the store has {} servers: expected at most as many",
            store.servers()
        );
    }
    match (source.strip_prefix(MARK), target.strip_prefix(MARK)) {
        (None, None) => {
            bail!("neither {source} nor {target} is in the store: expected {MARK}PATH as one of them")
        }
        (Some(from), None) => {
            ensure!(
                strip.is_none() && servers.is_none(),
                "--strip and --servers are for copies in the store"
            );
            let folder = Path::new(target);
            ensure!(
                !target.ends_with('/') || folder.is_dir(),
                "{target}: no such folder (expected one that is there, or a file without / at its end)"
            );
            out_of(store, from, folder)
        }
        (None, Some(to)) => into(store, &mut Outside::open(Path::new(source))?, &named(to, source), striping),
        (Some(from), Some(to)) => into(store, &mut Inside::open(store, from)?, &named(to, from), striping),
    }
}

/// Copies a file within the store, with the strips that it has.
pub(crate) fn within(store: &Store, from: &str, to: &str) -> Result<()> {
    let striping = store.stat(from)?.placement.striping();
    let striping = StripingHints { unit: striping.unit, factor: striping.factor };
    into(store, &mut Inside::open(store, from)?, to, striping)
}

/// A target that is a folder: the file keeps its name there.
fn named(target: &str, source: &str) -> String {
    let name = source.rsplit('/').next().unwrap_or(source);
    if target.is_empty() || target.ends_with('/') { format!("{target}{name}") } else { target.to_owned() }
}

/// Where bytes come from.
trait Origin {
    /// What to call it.
    fn name(&self) -> String;
    /// Bytes, as far as is known.
    fn size(&self) -> u64;
    /// Fills `out` from where the last call ended; less only at the end.
    fn next(&mut self, out: &mut [u8]) -> Result<usize>;
}

/// A file of the file system.
struct Outside {
    path: PathBuf,
    file: File,
    size: u64,
}

impl Outside {
    fn open(path: &Path) -> Result<Outside> {
        let context = || format!("{}: cannot read", path.display());
        let file = File::open(path).with_context(context)?;
        let metadata = file.metadata().with_context(context)?;
        ensure!(!metadata.is_dir(), "{}: is a folder: expected a file", path.display());
        Ok(Outside { path: path.to_owned(), file, size: metadata.len() })
    }
}

impl Origin for Outside {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn next(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < out.len() {
            match self.file.read(&mut out[done..]) {
                Ok(0) => break,
                Ok(len) => done += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(|| format!("{}: cannot read", self.name())),
            }
        }
        Ok(done)
    }
}

/// A file of the store.
struct Inside<'s> {
    store: &'s Store,
    file: StoreFile,
    size: u64,
    done: u64,
}

impl<'s> Inside<'s> {
    fn open(store: &'s Store, path: &str) -> Result<Inside<'s>> {
        let file = store.open(path, Mode::default(), StripingHints::default())?;
        let Stat { size, servers_without, .. } = file.stat()?;
        for server in servers_without {
            warning!(
                "{MARK}{path}: server {server} has nothing of it: what belongs there is copied as zeros, as if it had never been written"
            );
        }
        Ok(Inside { store, file, size, done: 0 })
    }

    /// Whether its name still is this file's: of one that is removed, servers that have nothing of it any more read zeros.
    fn is_there(&self) -> bool {
        self.store.stat(self.file.path()).is_ok_and(|found| found.file == self.file.file().id)
    }
}

impl Origin for Inside<'_> {
    fn name(&self) -> String {
        format!("{MARK}{}", self.file.path())
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn next(&mut self, out: &mut [u8]) -> Result<usize> {
        let len = self.file.read_at(self.done, out)?;
        self.done += len;
        if len < out.len() as u64 {
            ensure!(
                self.done >= self.size && self.is_there(),
                "{}: removed, replaced or cut while it was copied",
                self.name()
            );
        }
        Ok(len as usize)
    }
}

/// Copies all of `origin`, chunk by chunk.
fn copy(origin: &mut dyn Origin, mut put: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<()> {
    let progress = Progress::new(&format!("copying {}", origin.name()), origin.size());
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut done = 0;
    loop {
        let len = origin.next(&mut chunk)?;
        put(done, &chunk[..len])?;
        done += len as u64;
        progress.set(done);
        if len < chunk.len() {
            return Ok(());
        }
    }
}

/// Copies into the store.
fn into(store: &Store, origin: &mut dyn Origin, path: &str, striping: StripingHints) -> Result<()> {
    // As the store has it, or what other copies to the same file left would not be found.
    let name = Name::new(path)
        .with_context(|| format!("{path}: expected a path of 1 to {PATH_BYTES} bytes without `..`"))?;
    let path = name.as_str();
    let named: Vec<String> = store.list(&format!("{path}."))?.into_iter().map(|(name, _)| name).collect();
    for left in unfinished::abandoned(store, &named)? {
        if unfinished::target(&left) == Some(path) {
            // Somebody else may have been faster.
            let _ = unfinished::remove(store, &left);
        }
    }
    let (unfinished, file, _lock) = unfinished::create(store, path, striping)?;
    let id = file.file().id;
    let copied = copy(origin, |offset, chunk| Ok(file.write_at(offset, chunk)?))
        .and_then(|()| Ok(file.close()?))
        .and_then(|()| Ok(store.rename(&unfinished, path)?));
    if copied.is_err() {
        // As far as it is possible: the first error is the one to tell.
        let _ = unfinished::drop_name(store, &unfinished, id);
    }
    copied
}

/// Copies out of the store.
fn out_of(store: &Store, path: &str, target: &Path) -> Result<()> {
    let mut origin = Inside::open(store, path)?;
    let target = match target.is_dir() {
        true => target.join(named("", origin.file.path())),
        false => target.to_owned(),
    };
    let copied = WholeFile::replacing(&target)?;
    copy(&mut origin, |_, chunk| {
        copied.file().write_all(chunk).with_context(|| format!("{}: cannot write", target.display()))
    })?;
    copied.keep()
}
