//! Files that nobody but their owner can read or write: 0600 in folders of 0700, whatever the umask says.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::error::StoreError;

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
/// What group and others may do.
const OTHERS: u32 = 0o077;
/// What lets group and others write.
const OTHERS_WRITE: u32 = 0o022;
/// In such a folder, only its owner can remove or rename a file.
const STICKY: u32 = 0o1000;

/// Options to open a file with: if it is made, then for its owner only.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Makes a file, or empties the one there is.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

/// Makes a folder, and those above it, unless they are there.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Takes from group and others what they may do with a file, or with a folder and all files and folders in it. Says with
/// how many of them that was needed.
///
/// # Errors
/// If one cannot be looked at or changed.
pub fn close_to_others(path: &Path) -> io::Result<u64> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_dir() {
        return close(path, metadata.mode(), FILE_MODE);
    }
    // First the folder: then nobody puts anything else in the place of its files meanwhile.
    let mut closed = close(path, metadata.mode(), FOLDER_MODE)?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_file() || kind.is_dir() {
            closed += close_to_others(&entry.path())?;
        }
    }
    Ok(closed)
}

fn close(path: &Path, mode: u32, wanted: u32) -> io::Result<u64> {
    if mode & OTHERS == 0 {
        return Ok(0);
    }
    fs::set_permissions(path, Permissions::from_mode(wanted))?;
    Ok(1)
}

/// Makes the folder of a store, or takes the one there is; says whether others could look into it and now cannot. A folder
/// that has other files than a store's stays open to those who may look into it: the servers' own folders in it are closed.
///
/// # Errors
/// If others can write to it, or it cannot be made.
pub fn prepare_folder(path: &Path) -> Result<bool, StoreError> {
    let failed = |error: io::Error| wrong(path, error.to_string());
    create_folder(path).map_err(|error| wrong(path, format!("cannot be a folder for the store: {error}")))?;
    let mode = fs::metadata(path).map_err(failed)?.mode();
    refuse_writers(path, mode)?;
    if mode & OTHERS == 0 || !is_a_stores_alone(path).map_err(failed)? {
        return Ok(false);
    }
    close(path, mode, FOLDER_MODE).map_err(failed)?;
    Ok(true)
}

/// Makes sure that nobody else can replace files in a folder.
///
/// # Errors
/// If others can, or it cannot be looked at.
pub fn refuse_replaceable(path: &Path) -> Result<(), StoreError> {
    let mode = fs::metadata(path).map_err(|error| wrong(path, error.to_string()))?.mode();
    if mode & STICKY != 0 { Ok(()) } else { refuse_writers(path, mode) }
}

fn refuse_writers(path: &Path, mode: u32) -> Result<(), StoreError> {
    if mode & OTHERS_WRITE == 0 {
        return Ok(());
    }
    let shown = path.display();
    let remedy = match mode & STICKY {
        0 => format!("`chmod go-w {shown}`, or name another folder"),
        _ => format!("name a folder of its own, such as {}", path.join("store").display()),
    };
    let mode = mode & 0o7777;
    Err(wrong(
        path,
        format!("others can write to this folder (mode {mode:04o}), so a store is not safe there: {remedy}"),
    ))
}

/// Whether a folder has nothing but what servers make.
fn is_a_stores_alone(folder: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with("server-") && !name.starts_with("store.") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn wrong(path: &Path, what: String) -> StoreError {
    StoreError::Config { path: path.to_owned(), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_folder_is_closed_with_all_that_is_in_it() {
        let place = tempfile::tempdir().unwrap();
        let (inner, file) = (place.path().join("parts"), place.path().join("parts/data"));
        create_folder(&inner).unwrap();
        fs::write(&file, b"").unwrap();
        std::os::unix::fs::symlink("/", place.path().join("link")).unwrap();
        set(&inner, 0o775);
        set(&file, 0o664);
        set(place.path(), 0o755);
        assert_eq!(close_to_others(place.path()).unwrap(), 3);
        assert_eq!((mode(place.path()), mode(&inner), mode(&file)), (0o700, 0o700, 0o600));
        assert_eq!(close_to_others(place.path()).unwrap(), 0);
    }

    #[test]
    fn a_folder_that_others_write_to_is_refused_and_one_that_they_read_is_closed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("store");
        assert!(!prepare_folder(&path).unwrap());
        assert_eq!(mode(&path), 0o700);
        fs::write(path.join("store.toml"), b"").unwrap();
        set(&path, 0o755);
        assert!(prepare_folder(&path).unwrap());
        assert_eq!(mode(&path), 0o700);
        for (mode, remedy) in [(0o770, "chmod go-w"), (0o702, "chmod go-w"), (0o1777, "store/store")] {
            set(&path, mode);
            let said = prepare_folder(&path).unwrap_err().to_string();
            assert!(said.contains(&format!("(mode {mode:04o})")) && said.contains(remedy), "{said}");
        }
        assert!(refuse_replaceable(&path).is_ok());
        // Somebody's home, say.
        fs::write(path.join("letter"), b"").unwrap();
        set(&path, 0o755);
        assert!(!prepare_folder(&path).unwrap());
        assert_eq!(mode(&path), 0o755);
    }
}
