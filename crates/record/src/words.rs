//! The words of a command as one text: a trace's name of its job, and what users are told to type. A shell reads the same words
//! back from it, unless one has bytes that are no UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use pio_trace::names;

/// A command as it would be typed.
pub fn typed(command: &[OsString]) -> String {
    command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it back.
pub fn quoted(word: &OsStr) -> String {
    let word = names::of_bytes(word.as_bytes());
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        let command = ["./a", "--mesh=64x64", "it's", "", "a b; c"].map(OsString::from);
        assert_eq!(typed(&command), r"./a --mesh=64x64 'it'\''s' '' 'a b; c'");
    }
}
