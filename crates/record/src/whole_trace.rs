//! A trace that is there whole or not at all.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::error::Error;

/// A trace that is written beside its place, and takes it, and that of what was there, once it is complete. Dropped before, it
/// leaves that as it was.
pub(crate) struct WholeTrace {
    path: PathBuf,
    /// None if the place is a device or a pipe, which has nothing to replace.
    beside: Option<TempPath>,
}

impl WholeTrace {
    pub(crate) fn begin(path: &Path) -> Result<WholeTrace, Error> {
        // Of a link, what it names is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if path.exists() && !path.is_file() {
            return Ok(WholeTrace { path, beside: None });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".");
        let file = tempfile::Builder::new()
            .prefix(&name)
            .suffix(".part")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(Error::io(&path, "create the file"))?;
        Ok(WholeTrace { path, beside: Some(file.into_temp_path()) })
    }

    /// What is written to.
    pub(crate) fn place(&self) -> &Path {
        self.beside.as_deref().unwrap_or(&self.path)
    }

    /// It is complete.
    pub(crate) fn keep(self) -> Result<(), Error> {
        let WholeTrace { path, beside } = self;
        let kept = beside.map_or(Ok(()), |beside| beside.persist(&path).map_err(|failed| failed.error));
        kept.map_err(Error::io(&path, "write the file"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_there_goes_when_the_trace_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("run.pio"), folder.path().join("link.pio"));
        fs::write(&path, "earlier").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let written = |path: &Path| {
            let trace = WholeTrace::begin(path).unwrap();
            fs::write(trace.place(), "new").unwrap();
            trace
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
        // A device stays.
        written(Path::new("/dev/null")).keep().unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }
}
