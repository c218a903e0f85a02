//! Files that are there whole or not at all.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that is written under another name and takes its own, and the place of what had it, once it is complete.
///
/// Dropped before, it leaves what was there as it was. A device or a pipe is written to at once: there is nothing to
/// replace.
pub struct WholeFile {
    path: PathBuf,
    writes_to: WritesTo,
}

enum WritesTo {
    Replacement(NamedTempFile),
    Device(File),
}

impl WholeFile {
    /// Begins to write `path`.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub fn create(path: &Path) -> io::Result<WholeFile> {
        let path = named_by(path);
        let writes_to = if path.exists() && !path.is_file() {
            WritesTo::Device(File::options().write(true).open(&path)?)
        } else {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(".");
            let beside = tempfile::Builder::new()
                .prefix(&name)
                .suffix(".part")
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(folder.unwrap_or(Path::new(".")))?;
            WritesTo::Replacement(beside)
        };
        Ok(WholeFile { path, writes_to })
    }

    /// The file that it becomes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is written to.
    pub fn file(&self) -> &File {
        match &self.writes_to {
            WritesTo::Replacement(file) => file.as_file(),
            WritesTo::Device(file) => file,
        }
    }

    /// Where that is.
    pub fn place(&self) -> &Path {
        match &self.writes_to {
            WritesTo::Replacement(file) => file.path(),
            WritesTo::Device(_) => &self.path,
        }
    }

    /// It is complete.
    ///
    /// # Errors
    /// If it cannot take its place.
    pub fn keep(self) -> io::Result<()> {
        if let WritesTo::Replacement(file) = self.writes_to {
            file.persist(&self.path).map_err(|error| error.error)?;
        }
        Ok(())
    }
}

/// Of a link, what it names is replaced, not the link: also where that is not there yet.
pub(crate) fn named_by(path: &Path) -> PathBuf {
    // As many as the kernel follows.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path.canonicalize().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_there_goes_when_the_file_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("run.pio"), folder.path().join("link.pio"));
        fs::write(&path, "earlier").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let written = |path: &Path| {
            let whole = WholeFile::create(path).unwrap();
            fs::write(whole.place(), "new").unwrap();
            whole
        };
        drop(written(&path));
        assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
        written(&link).keep().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(link.is_symlink());
        let readable = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        let usual = folder.path().join("usual");
        fs::write(&usual, "").unwrap();
        assert_eq!(readable(&path), readable(&usual));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left over");
        // A link to what is not there yet stays, too.
        fs::create_dir(folder.path().join("far")).unwrap();
        let dangling = folder.path().join("dangling.pio");
        std::os::unix::fs::symlink("far/run.pio", &dangling).unwrap();
        written(&dangling).keep().unwrap();
        assert!(dangling.is_symlink());
        assert_eq!(fs::read_to_string(folder.path().join("far/run.pio")).unwrap(), "new");
        // A device stays.
        written(Path::new("/dev/null")).keep().unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }
}
