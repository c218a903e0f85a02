//! Names of files, as logs give them.

use std::borrow::Cow;

/// What stands before the two digits of a byte that is no UTF-8.
pub(super) const ESCAPE: &str = r"\x";

/// A name as text. Bytes that are no UTF-8 become `\xNN`: different names stay different, which they would not if one
/// character stood for all such bytes.
pub(super) fn of_bytes(bytes: &[u8]) -> Cow<'_, str> {
    escaped(bytes, ESCAPE)
}

/// The same with another mark before the digits.
pub(super) fn escaped<'a>(bytes: &'a [u8], mark: &str) -> Cow<'a, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("{mark}{byte:02x}"));
        }
    }
    Cow::Owned(text)
}

/// A path without `.`, `..` and empty parts, so that one file has one name. A log does not say which folders are links:
/// `..` behind one is taken for the folder before it.
pub(super) fn normal(path: &str) -> String {
    let is_absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if is_absolute => {}
            _ => parts.push(part),
        }
    }
    let path = parts.join("/");
    match path.as_str() {
        _ if is_absolute => format!("/{path}"),
        "" => ".".to_owned(),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_utf_8_stay_different() {
        assert_eq!(of_bytes("a\u{fc}".as_bytes()), "a\u{fc}");
        assert_eq!(of_bytes(b"a\xfcb\xe2\x82"), r"a\xfcb\xe2\x82");
        assert_ne!(of_bytes(b"\xfc"), of_bytes(b"\xfd"));
    }

    #[test]
    fn one_file_has_one_name() {
        for (path, expected) in [
            ("/a/b", "/a/b"),
            ("/a//b/", "/a/b"),
            ("/a/./b/../c", "/a/c"),
            ("/../a", "/a"),
            ("/", "/"),
            ("./a", "a"),
            ("../../a/..", "../.."),
            ("a/..", "."),
        ] {
            assert_eq!(normal(path), expected, "{path}");
        }
    }
}
