//! Files that are there whole or not at all.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::{Builder, NamedTempFile};

/// A file that is written under another name and takes its own, and the place of what had it, once it is complete.
///
/// Dropped before, it leaves what was there as it was. A device or a pipe is written to at once: there is nothing to
/// replace.
pub(crate) struct WholeFile {
    path: PathBuf,
    writes_to: WritesTo,
}

enum WritesTo {
    Replacement(NamedTempFile),
    Device(File),
}

impl WholeFile {
    /// Begins to write `path`.
    pub(crate) fn create(path: &Path) -> Result<WholeFile> {
        let context = || format!("{}: cannot create", path.display());
        // Of a link, what it names is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let writes_to = if path.exists() && !path.is_file() {
            WritesTo::Device(File::options().write(true).open(&path).with_context(context)?)
        } else {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            WritesTo::Replacement(
                Builder::new()
                    .permissions(Permissions::from_mode(0o666))
                    .tempfile_in(folder.unwrap_or(Path::new(".")))
                    .with_context(context)?,
            )
        };
        Ok(WholeFile { path, writes_to })
    }

    /// What is written to.
    pub(crate) fn file(&self) -> &File {
        match &self.writes_to {
            WritesTo::Replacement(file) => file.as_file(),
            WritesTo::Device(file) => file,
        }
    }

    /// It is complete.
    pub(crate) fn keep(self) -> Result<()> {
        let context = || format!("{}: cannot write", self.path.display());
        if let WritesTo::Replacement(file) = self.writes_to {
            file.persist(&self.path).map_err(|error| error.error).with_context(context)?;
        }
        Ok(())
    }
}

/// Makes sure that a file can be written, before the work whose result it is to hold; changes nothing.
pub(crate) fn check(path: &Path) -> Result<()> {
    WholeFile::create(path).map(drop)
}

/// Makes a folder for results unless it is there, and makes sure that files can be written in it.
pub(crate) fn check_folder(path: &Path) -> Result<()> {
    let context = || format!("{}: cannot write in this folder", path.display());
    std::fs::create_dir_all(path).with_context(context)?;
    tempfile::tempfile_in(path).map(drop).with_context(context)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot set up its scene fails there.
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_replaced_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "before").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let given_up = WholeFile::create(&link).unwrap();
        given_up.file().write_all(b"half").unwrap();
        drop(given_up);
        assert_eq!(fs::read_to_string(&file).unwrap(), "before");
        let whole = WholeFile::create(&link).unwrap();
        whole.file().write_all(b"after").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "before");
        whole.keep().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
