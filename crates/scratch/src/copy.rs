//! A folder's copy: folders, and links to files.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;

use crate::{Copied, Error, leftover};

/// Files in a folder that is copied: links to more would keep the user waiting, at every run.
pub(crate) const MOST_FILES: usize = 200_000;

/// Makes the copy of a folder; files that are `changed` in it are copied, too.
pub(crate) fn make(
    original: &Path,
    copy: &Path,
    copied: &[Copied],
    changed: &BTreeSet<PathBuf>,
) -> Result<(), Error> {
    let mut files = 0;
    let mut folders = vec![(original.to_owned(), copy.to_owned())];
    while let Some((from, to)) = folders.pop() {
        let entries = match fs::read_dir(&from) {
            Ok(entries) => entries,
            // What the user may not read, the job may not either: it meets the folder itself, and the same refusal.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && from != original => {
                link(&from, &to)?;
                continue;
            }
            Err(error) => return Err(Error::io(&from, "read")(error)),
        };
        fs::create_dir(&to).map_err(Error::io(&to, "create"))?;
        for entry in entries {
            let entry = entry.map_err(Error::io(&from, "read"))?;
            if entry.file_name().as_encoded_bytes().starts_with(leftover::OURS.as_bytes()) {
                continue;
            }
            files += 1;
            if files > MOST_FILES {
                return Err(Error::TooLarge(original.to_owned()));
            }
            let (path, place) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type().map_err(Error::io(&path, "look at"))?;
            if kind.is_dir() {
                match copied.iter().find(|one| one.original == path) {
                    Some(own) => link(&own.copy, &place)?,
                    None => folders.push((path, place)),
                }
            } else if kind.is_symlink() {
                copy_link(&path, &place, copied)?;
            } else if kind.is_fifo() {
                // To copy what it holds would be to wait for who writes to it.
                rustix::fs::mkfifoat(rustix::fs::CWD, &place, Mode::RUSR | Mode::WUSR)
                    .map_err(|errno| Error::io(&place, "create")(errno.into()))?;
            } else if changed.contains(&path) {
                fs::copy(&path, &place).map_err(Error::io(&path, "copy"))?;
            } else {
                link(&path, &place)?;
            }
        }
        let mode = fs::metadata(&from).map_err(Error::io(&from, "look at"))?.permissions().mode();
        // The owner may write in it, or we could not remove it.
        let rights = Permissions::from_mode(mode | 0o700);
        fs::set_permissions(&to, rights).map_err(Error::io(&to, "set the rights of"))?;
    }
    Ok(())
}

fn link(target: &Path, place: &Path) -> Result<(), Error> {
    symlink(target, place).map_err(Error::io(place, "create"))
}

/// The same link; one that leads to where a copy is leads there.
fn copy_link(path: &Path, place: &Path, copied: &[Copied]) -> Result<(), Error> {
    let target = fs::read_link(path).map_err(Error::io(path, "read"))?;
    let meant = path.parent().unwrap_or(path).join(&target);
    // Its end, if there is one: links and `..` on the way may lead anywhere.
    let meant = meant.canonicalize().unwrap_or(meant);
    let within = copied.iter().find_map(|Copied { original, copy }| {
        let rest = meant.strip_prefix(original).ok()?;
        Some(if rest.as_os_str().is_empty() { copy.clone() } else { copy.join(rest) })
    });
    link(&within.unwrap_or(meant), place)
}
