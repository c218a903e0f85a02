//! Names of files as text, whatever their bytes are.

use std::borrow::Cow;

/// What stands before the two digits of a byte that is no UTF-8.
pub const ESCAPE: &str = r"\x";

/// A name as text. Bytes that are no UTF-8 become `\xNN`: different names stay different, which they would not if one
/// character stood for all such bytes.
pub fn of_bytes(bytes: &[u8]) -> Cow<'_, str> {
    escaped(bytes, ESCAPE)
}

/// The same with another mark before the digits.
pub fn escaped<'a>(bytes: &'a [u8], mark: &str) -> Cow<'a, str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_utf_8_stay_different() {
        assert_eq!(of_bytes("/a/Größe 1".as_bytes()), "/a/Größe 1");
        assert_eq!(of_bytes(b"a\xfcb\xe2\x82"), r"a\xfcb\xe2\x82");
        assert_ne!(of_bytes(b"\xfc"), of_bytes(b"\xfd"));
    }
}
