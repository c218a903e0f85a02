//! *Here*: a place of this host, where files are. What `machines calibrate` finds out of it is kept in the user's cache, and
//! found again under the name `here`.
//!
//! A place is a file system as this host has it mounted, or the I/O servers of a store. Descriptions are kept in
//! `pioscope/HOST/PLACE.toml`: several hosts may share one home. What was measured on several nodes, which share the file system,
//! is kept in `pioscope/@all-hosts/`, by the mount point, the kind and the source of the file system: jobs run on other nodes
//! each time, and login nodes predict for them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pio_machine::{Machine, Storage};
use pio_record::{Mount, host, mount_of, mounts};
use pio_trace::{Op, Tables, Trace};

use crate::mpi;

/// The name of the machine, among machines and in results.
pub(crate) const NAME: &str = "here";

/// A place of this host. Different folders of a file system are the same place: they differ in how to ask for it alone.
#[derive(Clone, Debug)]
pub(crate) struct Here {
    /// Its name as a file's.
    name: String,
    /// The name of what was measured on several nodes; none where that is kept for each host.
    of_all_hosts: Option<String>,
    /// The options of `machines calibrate` that mean it.
    options: String,
}

impl Here {
    /// The file system of a folder.
    ///
    /// # Errors
    /// If the folder does not exist.
    pub(crate) fn of_folder(folder: &Path) -> Result<Here> {
        let folder =
            folder.canonicalize().with_context(|| format!("{}: no such folder", folder.display()))?;
        let mount = mount_of(&folder).unwrap_or_else(unknown_root);
        Ok(Here { options: format!("--folder {}", folder.display()), ..Here::of_mount(&mount) })
    }

    fn of_mount(mount: &Mount) -> Here {
        /// Of all, so that the name is one of a file; the mount point comes first.
        const LONGEST: usize = 200;
        let point = mount.point.as_os_str().as_bytes();
        let words = [point, mount.kind.as_bytes(), mount.source.as_bytes()];
        let mut of_all_hosts = name_of(&words.join(&b' '));
        of_all_hosts.truncate(LONGEST);
        Here { name: name_of(point), of_all_hosts: Some(of_all_hosts), options: String::new() }
    }

    /// The I/O servers that a file describes.
    ///
    /// # Errors
    /// If the file does not exist.
    pub(crate) fn of_store(description: &Path) -> Result<Here> {
        let path = description.canonicalize();
        let path = path.with_context(|| format!("{}: cannot find it", description.display()))?;
        // No mount's name has this sign.
        let name = format!("store@{}", name_of(path.as_os_str().as_bytes()));
        Ok(Here { name, of_all_hosts: None, options: format!("--store {}", path.display()) })
    }

    /// Where a recorded program's files are: the folder of that which it wrote most to, if it is on this host; else the
    /// current folder.
    ///
    /// # Errors
    /// If the current folder is gone.
    pub(crate) fn of_trace(trace: Option<&Trace>) -> Result<Here> {
        let folder = trace.and_then(folder_of_data).filter(|folder| folder.is_dir());
        Here::of_folder(folder.as_deref().unwrap_or(Path::new(".")))
    }

    /// The same of a run that was made here.
    ///
    /// # Errors
    /// If its files are not on this host.
    pub(crate) fn of_run(trace: &Trace) -> Result<Here> {
        let Some(folder) = folder_of_data(trace) else { bail!("it read and wrote no file") };
        if !folder.is_dir() {
            bail!("its files were in {}, which is not on this host", folder.display());
        }
        Here::of_folder(&folder)
    }

    /// The file system that a folder is or was in.
    fn of_lost_folder(folder: &Path) -> Option<Here> {
        folder.ancestors().find_map(|folder| Here::of_folder(folder).ok())
    }

    /// Whether both are the same file system, or the same servers.
    pub(crate) fn is_same(&self, other: &Here) -> bool {
        (&self.name, &self.of_all_hosts) == (&other.name, &other.of_all_hosts)
    }

    /// Whether a trace is of a run on this host alone, with files in the file system that a machine was measured with.
    pub(crate) fn ran_on(trace: &Trace, machine: &Machine) -> bool {
        let (tables, here) = (trace.tables(), host());
        // Files of simulated runs, of generated ones, and on I/O servers are nowhere.
        let is_real = tables.epoch_ns > 0 && tables.note(Tables::STORE).is_none();
        let is_alone =
            machine.nodes.count == 1 && tables.processes.iter().all(|process| process.host == here);
        let has_files = matches!(machine.storage, Storage::Local { .. } | Storage::Shared(_));
        let measured_here = machine.measured_on().filter(|(host, _)| *host == here);
        let Some((_, folder)) = measured_here.filter(|_| is_real && is_alone && has_files) else {
            return false;
        };
        let used = folder_of_data(trace).and_then(|folder| Here::of_lost_folder(&folder));
        let calibrated = Here::of_lost_folder(Path::new(folder));
        used.zip(calibrated).is_some_and(|(used, calibrated)| used.is_same(&calibrated))
    }

    /// The file of its description, whether there is one or not: of this host's and that of all hosts, the last one made.
    ///
    /// # Errors
    /// If this user has no cache.
    pub(crate) fn file(&self) -> Result<PathBuf> {
        let made = |file: &PathBuf| file.metadata().and_then(|file| file.modified()).ok();
        let (own, all) = (self.file_to_make(false)?, self.file_to_make(true)?);
        Ok(if made(&all) > made(&own) { all } else { own })
    }

    /// The file for a new description, of this host or of several nodes.
    ///
    /// # Errors
    /// If this user has no cache.
    pub(crate) fn file_to_make(&self, is_of_nodes: bool) -> Result<PathBuf> {
        let (folder, name) = match self.of_all_hosts.as_ref().filter(|_| is_of_nodes) {
            Some(name) => (folder_of_all_hosts()?, name),
            None => (folder_of_host()?, &self.name),
        };
        Ok(folder.join(format!("{name}.toml")))
    }

    /// Whether it was calibrated.
    pub(crate) fn is_calibrated(&self) -> bool {
        self.file().is_ok_and(|file| file.is_file())
    }

    /// Its description.
    ///
    /// # Errors
    /// If it was not calibrated, says how to; or if the description cannot be read.
    pub(crate) fn load(&self) -> Result<Machine> {
        if !self.is_calibrated() {
            bail!(
                "{NAME}: this place is not calibrated: run `pioscope machines calibrate {}`, or name a machine with \
                 --machine",
                self.options
            );
        }
        Ok(Machine { name: NAME.to_owned(), ..Machine::load(&self.file()?)? })
    }
}

/// The place of a folder, as it was calibrated.
///
/// # Errors
/// If it was not calibrated, says how to; or if the description cannot be read.
pub fn machine_of_folder(folder: &Path) -> Result<Machine> {
    Here::of_folder(folder)?.load()
}

/// The I/O servers that a file describes, as they were calibrated.
///
/// # Errors
/// As [`machine_of_folder()`].
pub fn machine_of_store(description: &Path) -> Result<Machine> {
    Here::of_store(description)?.load()
}

/// The place where a recorded program's files are, as it was calibrated.
///
/// # Errors
/// As [`machine_of_folder()`].
pub fn machine_of_trace(trace: &Trace) -> Result<Machine> {
    Here::of_trace(Some(trace))?.load()
}

/// The descriptions that are kept of this host, by name, and those of all hosts for what is mounted here.
pub(crate) fn kept() -> Vec<PathBuf> {
    let entries = folder_of_host().and_then(|folder| Ok(fs::read_dir(folder)?));
    let files = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
    files.sort();
    let of_all = |mount: Mount| Here::of_mount(&mount).file_to_make(true).ok();
    let of_all: BTreeSet<_> = mounts().into_iter().filter_map(of_all).collect();
    files.extend(of_all.into_iter().filter(|file| file.is_file()));
    files
}

/// The folders below which files are on a place that was calibrated, and its description. One that cannot be read is none.
pub(crate) fn calibrated_folders() -> Vec<(PathBuf, Machine)> {
    let mounts: BTreeMap<_, _> = mounts().into_iter().map(|mount| (mount.point.clone(), mount)).collect();
    let of = |(point, mount): (PathBuf, Mount)| Some((point, Here::of_mount(&mount).load().ok()?));
    mounts.into_iter().filter_map(of).collect()
}

fn folder_of_host() -> Result<PathBuf> {
    let host = host();
    Ok(cache()?.join(if host.is_empty() { "localhost".to_owned() } else { name_of(host.as_bytes()) }))
}

/// No host's name has this sign.
fn folder_of_all_hosts() -> Result<PathBuf> {
    Ok(cache()?.join("@all-hosts"))
}

fn cache() -> Result<PathBuf> {
    mpi::user_cache().context("no place for what is kept: neither XDG_CACHE_HOME nor HOME is set")
}

/// The name of a file that says a path, and no other's: `/dev/shm` is `dev-shm`, `/` is `root`.
fn name_of(path: &[u8]) -> String {
    if path == b"/" {
        return "root".to_owned();
    }
    let mut name = String::new();
    // Where this is a mount of its own, it must not be taken for `/`.
    let path = if path == b"/root" { path } else { path.strip_prefix(b"/").unwrap_or(path) };
    for (index, &byte) in path.iter().enumerate() {
        match byte {
            b'/' if index > 0 => name.push('-'),
            b'.' if index > 0 => name.push('.'),
            _ if byte.is_ascii_alphanumeric() || byte == b'_' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name
}

/// Below a `chroot` into a folder, nothing is mounted on `/`.
fn unknown_root() -> Mount {
    Mount { device: (0, 0), point: "/".into(), kind: String::new(), source: OsString::new() }
}

/// The folder of the file that a program wrote most to (a program that writes none: read most from); its ranks rather than
/// their launcher. The first file that is written is often a log, which may be anywhere.
fn folder_of_data(trace: &Trace) -> Option<PathBuf> {
    let tables = trace.tables();
    let has_ranks = tables.processes.iter().any(|process| process.rank.is_some());
    let mut bytes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let blocks = (0..trace.blocks().len()).filter_map(|index| trace.block(index).ok());
    for event in blocks.flatten() {
        let is_rank = !has_ranks || tables.processes[event.process.index()].rank.is_some();
        let Some(file) = tables.file_of_event(&event).filter(|_| is_rank) else { continue };
        let (written, read) = bytes.entry(&file.path).or_default();
        match event.op() {
            Op::Write => *written = written.saturating_add(event.transferred()),
            Op::Read => *read = read.saturating_add(event.transferred()),
            _ => {}
        }
    }
    let files = bytes.into_iter().filter(|(path, _)| is_for_data(Path::new(path)));
    let (most, _) = files.max_by_key(|(_, moved)| *moved)?;
    Path::new(most).parent().map(Path::to_owned)
}

/// Not a device, a pipe, or a way to talk to the kernel.
fn is_for_data(path: &Path) -> bool {
    let is_kernels = ["/dev", "/proc", "/sys"].iter().any(|folder| path.starts_with(folder));
    path.is_absolute() && (!is_kernels || path.starts_with("/dev/shm"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use super::*;

    #[test]
    fn every_place_has_a_name_of_its_own() {
        let paths =
            ["/", "/root", "/home", "/dev/shm", "/a/b", "/a-b", "/a/-b", "/a-/b", "/.hidden", "/über"];
        let names = paths.map(|path| name_of(path.as_bytes()));
        assert_eq!(names[..4], ["root", "%2froot", "home", "dev-shm"]);
        let mut sorted = names.to_vec();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), paths.len(), "{names:?}");
        assert!(names.iter().all(|name| !name.starts_with('.') && !name.contains('/')), "{names:?}");
    }

    /// Runs in different folders were refused as of different places.
    #[test]
    fn folders_of_a_file_system_are_one_place() {
        let place = tempfile::tempdir().unwrap();
        let folders = ["a", "b"].map(|name| place.path().join(name));
        folders.iter().for_each(|folder| fs::create_dir(folder).unwrap());
        let [one, other] = folders.each_ref().map(|folder| Here::of_folder(folder).unwrap());
        assert!(one.is_same(&other) && one.options != other.options);
        assert!(!one.is_same(&Here::of_folder(Path::new("/proc")).unwrap()));
        let [one, other] = folders.each_ref().map(|folder| Here::of_store(folder).unwrap());
        assert!(one.is_same(&one) && !one.is_same(&other));
    }

    #[test]
    fn devices_and_pipes_say_nothing_of_where_data_are() {
        for (path, expected) in [
            ("/data/a", true),
            ("/dev/shm/a", true),
            ("/dev/pts/0", false),
            ("/proc/self/x", false),
            ("pipe:[7]", false),
        ] {
            assert_eq!(is_for_data(Path::new(path)), expected, "{path}");
        }
    }
}
