//! Scratch copies of folders: a job runs in them, and the user's files stay as they are.
//!
//! A copy has a folder for each folder of the original, and for each file a link to it. A small C library that is loaded
//! into every process of the job ([`Scratch::library`]) takes names in the original for those in the copy, replaces a link
//! by a copy of its file before that is changed, and refuses (`EROFS`) to change anything elsewhere but at places for
//! temporary files. What has no C library, or goes round it, the kernel refuses (Landlock): [`Scratch::guard`].

mod copy;
mod guard;
mod leftover;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;
use thiserror::Error;

/// The library to preload: a shared object for this machine.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libpio_scratch.so"));

/// Why there is no scratch copy.
#[derive(Debug, Error)]
pub enum Error {
    /// The system refused.
    #[error("{path}: cannot {what}: {source}")]
    Io {
        /// Of which file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// A folder with too much in it.
    #[error("{0}: holds more than {most} files (expected a folder with no more to work in)", most = copy::MOST_FILES)]
    TooLarge(PathBuf),
    /// A name that the job cannot be told.
    #[error("{0}: has a line break in its name (expected none)")]
    LineBreak(PathBuf),
}

impl Error {
    fn io(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::Io { path, what, source }
    }
}

/// A folder and where its copy is.
#[derive(Clone, Debug)]
struct Copied {
    original: PathBuf,
    copy: PathBuf,
}

/// Copies of the folders in which a job works; they are removed with this.
#[derive(Debug)]
pub struct Scratch {
    /// Of which file systems the copies are, each beside or in its original; the first is the working folder's.
    holders: Vec<Holder>,
    copied: Vec<Copied>,
    /// Files that a job changed: the next one finds them copied, so that their copying is in no call of its.
    changed: BTreeSet<PathBuf>,
    /// What was made later in a place for temporary files, the job made.
    began: Duration,
}

/// A folder of ours in a folder of the user's.
#[derive(Debug)]
struct Holder {
    folder: TempDir,
    /// Locked as long as this process lives: who finds it unlocked may remove the folder.
    _alive: File,
}

impl Scratch {
    /// Copies `working`, where the job is to run, and `outputs`, other folders where it is to write (whether they exist or
    /// not). What is in them on another file system is copied there. What was left by a process that was killed is removed.
    ///
    /// # Errors
    /// If a folder cannot be read, holds too much, or cannot hold its copy.
    pub fn new(working: &Path, outputs: &[PathBuf]) -> Result<Scratch, Error> {
        let mut originals = vec![real(working)?];
        for output in outputs {
            let original = real(output)?;
            if !originals.iter().any(|outer| original.starts_with(outer)) {
                originals.push(original);
            }
        }
        originals.extend(mounted_below(&originals));
        let (mut holders, mut copied) = (Vec::new(), Vec::new());
        for original in originals {
            if original.as_os_str().as_bytes().contains(&b'\n') {
                return Err(Error::LineBreak(original));
            }
            // On the file system of the original, so that its calls cost what they cost there.
            let there = original.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
            let holder = Holder::new(there)?;
            let name = original.file_name().unwrap_or_else(|| "root".as_ref());
            let copy = holder.folder.path().join("copy").join(name);
            holders.push(holder);
            copied.push(Copied { original, copy });
        }
        let mut scratch = Scratch { holders, copied, changed: BTreeSet::new(), began: began() };
        let library = scratch.library();
        fs::write(&library, LIBRARY).map_err(Error::io(&library, "write"))?;
        scratch.renew()?;
        Ok(scratch)
    }

    /// Makes the copies anew, as the originals are now.
    ///
    /// # Errors
    /// As of [`Scratch::new`].
    pub fn renew(&mut self) -> Result<(), Error> {
        self.changed.extend(self.copied_in_calls());
        for file in [COPIED, REFUSED] {
            let _ = fs::remove_file(self.folder().join(file));
        }
        for Copied { original, copy } in &self.copied {
            let all = copy.parent().unwrap_or(copy);
            match fs::remove_dir_all(all) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io(all, "remove")(error));
                }
                _ => {}
            }
            fs::create_dir(all).map_err(Error::io(all, "create"))?;
            if original.is_dir() {
                copy::make(original, copy, &self.copied, &self.changed)?;
            }
        }
        Ok(())
    }

    /// The folders that are copied, and where their copies are; the working folder first.
    pub fn copies(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.copied.iter().map(|Copied { original, copy }| (original.as_path(), copy.as_path()))
    }

    /// A folder for files that are to go with this; the job may write there.
    pub fn folder(&self) -> &Path {
        self.holders[0].folder.path()
    }

    /// Where the job is to run.
    pub fn working_folder(&self) -> &Path {
        &self.copied[0].copy
    }

    /// The library to load into every process of the job.
    pub fn library(&self) -> PathBuf {
        self.folder().join("libpio_scratch.so")
    }

    /// What that library is to find in its environment.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut told = OsString::from(self.folder());
        told.push(format!("\n{}.{:09}\n", self.began.as_secs(), self.began.subsec_nanos()));
        let can_be_told =
            |place: &PathBuf| place.is_absolute() && !place.as_os_str().as_bytes().contains(&b'\n');
        for place in guard::places_for_temporary_files().filter(can_be_told) {
            told.push(place);
            told.push("\n");
        }
        told.push("\n");
        for Copied { original, copy } in &self.copied {
            for path in [original, copy] {
                told.push(path);
                told.push("\n");
            }
        }
        vec![("PIOSCOPE_SCRATCH".into(), told), ("PWD".into(), self.working_folder().into())]
    }

    /// What keeps a job from changing what is outside, whatever it does: rules of Landlock, to be enforced on its first
    /// process. None if this kernel has none.
    pub fn guard(&self) -> Option<Arc<OwnedFd>> {
        let own = self.holders.iter().map(|holder| holder.folder.path().to_owned());
        guard::rules(own).map(Arc::new)
    }

    /// Files that the job since the last [`Scratch::renew`] changed, and that were copied within its calls, which took longer
    /// for that.
    pub fn copied_in_calls(&self) -> BTreeSet<PathBuf> {
        self.noted(COPIED)
    }

    /// What it was refused to change.
    pub fn refused(&self) -> BTreeSet<PathBuf> {
        self.noted(REFUSED)
    }

    fn noted(&self, file: &str) -> BTreeSet<PathBuf> {
        let text = fs::read(self.folder().join(file)).unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| PathBuf::from(std::ffi::OsStr::from_bytes(line))).collect()
    }
}

/// Where the library notes what it copied, and what it refused (`c/pio_scratch.c`).
const COPIED: &str = "copied";
const REFUSED: &str = "refused";

impl Holder {
    fn new(there: &Path) -> Result<Holder, Error> {
        leftover::remove(there);
        let folder = tempfile::Builder::new().prefix(leftover::PREFIX).tempdir_in(there);
        let folder = folder.map_err(Error::io(there, "create a scratch folder"))?;
        let alive = leftover::hold(folder.path()).map_err(Error::io(folder.path(), "lock"))?;
        Ok(Holder { folder, _alive: alive })
    }
}

/// A time, since 1970, after which all files are stamped from now on, and none was before. File systems stamp by a clock that
/// the kernel sets at its ticks, up to 10 ms behind: this waits for the next.
fn began() -> Duration {
    const MOST_TICKS: usize = 100;
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let stamps = || Duration::try_from(clock_gettime(ClockId::RealtimeCoarse)).unwrap_or_default();
    for _ in 0..MOST_TICKS {
        if stamps() > began {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    began
}

/// Folders below these on which another file system is mounted.
fn mounted_below(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let below = |point: &PathBuf| folders.iter().any(|folder| point.starts_with(folder) && point != folder);
    let points = mounts.split(|byte| *byte == b'\n').filter_map(mount_point);
    // Others are not looked at: whoever serves them may not answer. What is mounted in one place several times counts once.
    points.filter(below).filter(|point| is_another(point)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether a folder is on another file system than the one that it is in.
fn is_another(point: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).ok().filter(|it| it.is_dir()).map(|it| it.dev());
    device(point).is_some_and(|own| point.parent().and_then(device).is_some_and(|outer| outer != own))
}

/// Of a line of `mountinfo`: the fifth word, in which blanks and the like are three octal digits behind a backslash.
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let word = line.split(|byte| *byte == b' ').nth(4)?;
    let mut path = Vec::new();
    let mut rest = word;
    while let [first, others @ ..] = rest {
        let digits =
            others.get(..3).filter(|_| *first == b'\\').and_then(|digits| str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(code.unwrap_or(*first));
        rest = if code.is_some() { &others[3..] } else { others };
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

/// A folder's path without links, as far as it exists.
fn real(folder: &Path) -> Result<PathBuf, Error> {
    let absolute = std::path::absolute(folder).map_err(Error::io(folder, "find"))?;
    for ancestor in absolute.ancestors() {
        match ancestor.canonicalize() {
            Ok(found) => {
                let rest = absolute.strip_prefix(ancestor).unwrap_or(Path::new(""));
                return Ok(if rest.as_os_str().is_empty() { found } else { found.join(rest) });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(ancestor, "find")(error)),
        }
    }
    Ok(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_blanks_and_all() {
        let of = |line: &str| mount_point(line.as_bytes()).map(|path| path.display().to_string());
        let line = "36 35 98:0 /mnt1 /mnt\\040two\\134 rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(of(line).as_deref(), Some("/mnt two\\"));
        assert_eq!(of("36 35 98:0 / /a\\9 rw").as_deref(), Some("/a\\9"));
        assert_eq!(of("36 35 98:0"), None);
        assert!(mounted_below(&[PathBuf::from("/")]).contains(&PathBuf::from("/proc")));
        assert!(!mounted_below(&[PathBuf::from("/proc")]).contains(&PathBuf::from("/proc")));
    }
}
