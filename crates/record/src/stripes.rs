//! How the job's shared files lie on a parallel file system: asked of it once the job is over.
//!
//! Hosts that write parts of the same stripe wait for each other's locks. Only files that processes of several hosts opened
//! matter, and of these the first so many are asked for: each may take a message to a server.
#![allow(unsafe_code)] // statfs(2) and getxattr(2) exist in C only.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pio_trace::{Stripes, Striping, Tables};

use crate::{lustre, members};

/// Files that are asked for.
pub(crate) const MOST: usize = 1000;
/// What the kernel calls these file systems.
const LUSTRE: u64 = 0x0BD0_0BD0;
const GPFS: u64 = 0x4750_4653;
/// No extended attribute is longer, bytes.
const ATTRIBUTE_BYTES: usize = 64 << 10;

/// The notes for a job's files on this host's parallel file systems.
pub(crate) fn notes(tables: &Tables) -> Vec<Stripes> {
    let mut kinds = BTreeMap::new();
    let mut unit_of = |index, path| if index < MOST { unit_bytes(path, &mut kinds) } else { None };
    let units = shared(tables).into_iter().enumerate().map(|(index, path)| (path, unit_of(index, path)));
    fold(units.collect())
}

/// Files that processes of several hosts opened, one of them this one.
fn shared(tables: &Tables) -> BTreeSet<&str> {
    let host = members::host();
    let (mut here, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
    for handle in &tables.handles {
        if let Some(process) = tables.processes.get(handle.process.index()) {
            (if process.host == host { &mut here } else { &mut elsewhere }).insert(handle.file.index());
        }
    }
    let both = here.intersection(&elsewhere).filter_map(|index| tables.files.get(*index));
    both.map(|file| file.path.as_str()).collect()
}

/// One note for a folder of which all shared files are known and alike, else one for each file that is known.
fn fold(units: Vec<(&str, Option<u64>)>) -> Vec<Stripes> {
    let mut folders: BTreeMap<&str, Vec<(&str, Option<u64>)>> = BTreeMap::new();
    for (path, unit) in units {
        if let Some(folder) = Stripes::folder_of(path) {
            folders.entry(folder).or_default().push((path, unit));
        }
    }
    let of_folder = |(folder, files): (&str, Vec<(&str, Option<u64>)>)| {
        let note =
            |path: &str, unit_bytes, of_folder| Stripes { unit_bytes, path: path.to_owned(), of_folder };
        match files[0].1 {
            Some(unit) if files.len() > 1 && files.iter().all(|(_, other)| *other == Some(unit)) => {
                vec![note(folder, unit, true)]
            }
            _ => files.into_iter().filter_map(|(path, unit)| Some(note(path, unit?, false))).collect(),
        }
    };
    folders.into_iter().flat_map(of_folder).collect()
}

/// The unit of striping of a file; none if it is gone, or on no parallel file system. `kinds` are those of the file systems
/// that are known already, by device.
fn unit_bytes(path: &str, kinds: &mut BTreeMap<u64, Option<u64>>) -> Option<u64> {
    let found = fs::metadata(Path::new(path)).ok().filter(fs::Metadata::is_file)?;
    let path = CString::new(Path::new(path).as_os_str().as_bytes()).ok()?;
    match (*kinds.entry(found.dev()).or_insert_with(|| kind_of(&path)))? {
        LUSTRE => Some(striping(&path)?.unit_bytes),
        // A block is what it locks and moves as a whole.
        GPFS => Some(found.blksize()).filter(|bytes| *bytes > 0),
        _ => None,
    }
}

/// How a file of this host lies on Lustre; none if it is gone. It is read as Lustre's library does it, which need not be there.
pub(crate) fn on_lustre(path: &str) -> Option<Striping> {
    striping(&CString::new(path).ok()?)
}

fn striping(path: &CString) -> Option<Striping> {
    lustre::striping(&attribute(path, c"lustre.lov")?)
}

/// The number of the file system that a file is on.
fn kind_of(path: &CString) -> Option<u64> {
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends with a zero, and `found` has room for what the call fills in.
    if unsafe { libc::statfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call succeeded.
    let kind = unsafe { found.assume_init() }.f_type;
    // Its type differs between C libraries; the number has 32 bits.
    #[allow(clippy::unnecessary_cast)]
    Some(u64::from(kind as u32))
}

fn attribute(path: &CString, name: &std::ffi::CStr) -> Option<Vec<u8>> {
    let mut value = vec![0_u8; ATTRIBUTE_BYTES];
    // SAFETY: path and name end with a zero, and `value` has room for as many bytes as the call is told.
    let length =
        unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
    value.truncate(usize::try_from(length).ok()?);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pio_trace::{File, FileId, Handle, Process, ProcessId};

    #[test]
    fn files_of_a_folder_share_a_note_only_if_they_are_alike() {
        let told = |units: &[(&'static str, Option<u64>)]| -> Vec<String> {
            fold(units.to_vec()).iter().map(Stripes::to_string).collect()
        };
        assert_eq!(told(&[("/s/a", Some(4096)), ("/s/b", Some(4096))]), ["4096 bytes, files in /s"]);
        assert_eq!(told(&[("/s/a", Some(4096))]), ["4096 bytes, file /s/a"]);
        assert_eq!(
            told(&[("/s/a", Some(4096)), ("/s/b", Some(8192)), ("/t/c", Some(8192))]),
            ["4096 bytes, file /s/a", "8192 bytes, file /s/b", "8192 bytes, file /t/c"]
        );
        assert_eq!(told(&[("/s/a", None), ("/s/b", Some(8192))]), ["8192 bytes, file /s/b"]);
        assert!(told(&[("/s/a", None), ("relative", Some(8192))]).is_empty());
    }

    #[test]
    fn only_files_of_this_host_and_another_are_asked_for() {
        let process = |host: &str| Process {
            rank: None,
            pid: 1,
            host: host.into(),
            command: "app".into(),
            start_ns: 0,
            end_ns: None,
        };
        let handle = |file, process| Handle {
            file: FileId(file),
            process: ProcessId(process),
            ranks: 1,
            collective: 0,
        };
        let tables = Tables {
            processes: vec![
                process(&members::host()),
                process("elsewhere"),
                process("elsewhere"),
                process(&members::host()),
            ],
            files: ["/both", "/here", "/there"].map(|path| File { path: path.into() }).into(),
            handles: vec![handle(0, 0), handle(0, 1), handle(1, 0), handle(1, 3), handle(2, 1), handle(2, 2)],
            ..Tables::default()
        };
        assert_eq!(shared(&tables).into_iter().collect::<Vec<_>>(), ["/both"]);
    }

    #[test]
    fn files_of_other_file_systems_have_no_unit() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let path = file.path().to_str().expect("a path");
        let mut kinds = BTreeMap::new();
        let unit = unit_bytes(path, &mut kinds);
        // Unless the temporary folder is on one that stripes.
        assert!(unit.is_none() || kinds.values().any(|kind| matches!(kind, Some(LUSTRE | GPFS))));
        assert!(matches!(kinds.values().collect::<Vec<_>>()[..], [Some(kind)] if *kind > 0));
        assert_eq!(unit_bytes("/not/there", &mut kinds), None);
        assert_eq!(unit_bytes("/", &mut kinds), None);
    }
}
