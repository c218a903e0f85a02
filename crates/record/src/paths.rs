//! Paths without the symbolic links that folders are reached through.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pio_trace::names;

/// A path as text.
pub(crate) fn text_of(path: &Path) -> String {
    names::of_bytes(path.as_os_str().as_bytes()).into_owned()
}

/// Where folders are, by the names that calls have for them. Files that were opened are known by what the kernel says of their
/// descriptors, which has no symbolic links, and calls that only name a file (`stat`, `unlink`) by what the program gave.
#[derive(Default)]
pub(crate) struct Folders {
    known: HashMap<PathBuf, PathBuf>,
}

impl Folders {
    /// An absolute name with its folder as the kernel has it. Its last part stays: the call may be on a link itself.
    pub(crate) fn resolve(&mut self, name: &str) -> String {
        match name.rsplit_once('/') {
            Some((folder, last)) => text_of(&self.found(Path::new(folder)).join(last)),
            None => name.to_owned(),
        }
    }

    /// Where a folder is. Of one that is there no more, the part that still is.
    fn found(&mut self, folder: &Path) -> PathBuf {
        if let Some(known) = self.known.get(folder) {
            return known.clone();
        }
        let found = match (fs::canonicalize(folder), folder.parent(), folder.file_name()) {
            (Ok(found), ..) => found,
            (Err(_), Some(parent), Some(last)) => self.found(parent).join(last),
            _ => Path::new("/").join(folder),
        };
        self.known.insert(folder.to_owned(), found.clone());
        found
    }
}

/// Where the file or folder of an absolute name is; what is not there stays as it is named.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    Folders::default().found(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_found_as_far_as_they_are_there() {
        let place = tempfile::tempdir().expect("a folder");
        let place = place.path().canonicalize().expect("a folder");
        fs::create_dir(place.join("real")).expect("a folder");
        std::os::unix::fs::symlink("real", place.join("link")).expect("a link");
        std::os::unix::fs::symlink("nowhere", place.join("real/lost")).expect("a link");
        let mut folders = Folders::default();
        for (name, expected) in [
            ("link/a", "real/a"),
            ("link/gone/for/ever", "real/gone/for/ever"),
            ("real/a", "real/a"),
            ("link", "link"),
            ("link/lost", "real/lost"),
        ] {
            let expected = place.join(expected);
            assert_eq!(folders.resolve(&text_of(&place.join(name))), text_of(&expected), "{name}");
        }
        assert_eq!([folders.resolve("/a"), folders.resolve("/")], ["/a", "/"]);
        assert_eq!(resolved(&place.join("link")), place.join("real"));
    }
}
