//! Files that are there whole or not at all.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use pio_record::PassingFile;
use pio_trace::Trace;

/// A [`pio_record::WholeFile`] whose errors say what was to be done, and of which an interrupt leaves nothing.
pub(crate) struct WholeFile {
    whole: pio_record::WholeFile,
    _passing: Option<PassingFile>,
}

impl WholeFile {
    /// Begins to write `path`, which is to be no trace: it does not take the place of one, of which it may have been made.
    pub(crate) fn create(path: &Path) -> Result<WholeFile> {
        ensure!(
            Trace::open(path).is_err(),
            "{}: is there, and is a trace: expected another name",
            path.display()
        );
        WholeFile::replacing(path)
    }

    /// Begins to write a trace, which does not take the place of one that was recorded: that could not be made again.
    pub(crate) fn of_trace(path: &Path) -> Result<WholeFile> {
        let is_recorded = Trace::open(path).is_ok_and(|trace| trace.tables().note("recorder").is_some());
        ensure!(!is_recorded, "{}: is there, and was recorded: expected another name", path.display());
        WholeFile::replacing(path)
    }

    /// Begins to write `path`, whatever is there.
    pub(crate) fn replacing(path: &Path) -> Result<WholeFile> {
        let context = || format!("{}: cannot create", path.display());
        let make = || {
            let whole = pio_record::WholeFile::create(path)?;
            // A device is written to itself.
            let beside = (whole.place() != whole.path()).then(|| whole.place().to_owned());
            Ok((whole, beside))
        };
        let (whole, passing) = PassingFile::made_by(make).with_context(context)?;
        Ok(WholeFile { whole, _passing: passing })
    }

    /// What is written to.
    pub(crate) fn file(&self) -> &File {
        self.whole.file()
    }

    /// Where that is.
    pub(crate) fn place(&self) -> &Path {
        self.whole.place()
    }

    /// It is complete.
    pub(crate) fn keep(self) -> Result<()> {
        let path = self.whole.path().to_owned();
        self.whole.keep().with_context(|| format!("{}: cannot write", path.display()))
    }
}

/// Makes sure that a file can be written, before the work whose result it is to hold; changes nothing.
pub(crate) fn check(path: &Path) -> Result<()> {
    WholeFile::create(path).map(drop)
}

/// Makes sure that a result does not take the place of what it is made of.
pub(crate) fn check_other(result: &Path, source: &Path) -> Result<()> {
    let same =
        result.canonicalize().is_ok_and(|result| source.canonicalize().is_ok_and(|source| result == source));
    ensure!(!same, "{}: is what is read: expected another name for what is written", result.display());
    Ok(())
}

/// Makes a folder for results unless it is there, and makes sure that files can be written in it.
pub(crate) fn check_folder(path: &Path) -> Result<()> {
    ensure!(
        !path.exists() || path.is_dir(),
        "{}: is no folder (expected one, or a free name)",
        path.display()
    );
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
