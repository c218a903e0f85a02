//! Names of files, as text.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A name as text. Bytes that are not UTF-8 are written as `\xNN`, so that names that differ stay different.
pub(crate) fn text_of(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // To write into a text does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The same of a path.
pub(crate) fn text_of_path(path: &Path) -> String {
    text_of(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_stay_different() {
        assert_eq!(text_of("/a/Größe 1".as_bytes()), "/a/Größe 1");
        assert_eq!(text_of(b"/a/\xff"), "/a/\\xff");
        assert_eq!(text_of(b"/a/\xfe\xffz"), "/a/\\xfe\\xffz");
    }
}
