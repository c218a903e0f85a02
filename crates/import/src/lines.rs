//! Lines of a log, of bounded length.

use std::borrow::Cow;
use std::io::{BufRead, Read};
use std::path::Path;

use crate::error::ImportError;
use pio_trace::names;

/// Longer lines are no tool's: what is beyond is passed over.
pub(super) const MOST_LINE_BYTES: u64 = 1 << 20;

/// Reads a log line by line.
pub(super) struct Lines<'a, R> {
    input: R,
    path: &'a Path,
    /// What stands before the two digits of a byte that is no UTF-8.
    escape: &'static str,
    line: Vec<u8>,
    /// Of the line read last, from 1.
    number: u64,
}

impl<'a, R: BufRead> Lines<'a, R> {
    /// `path` names the log in errors.
    pub(super) fn new(input: R, path: &'a Path) -> Lines<'a, R> {
        Lines { input, path, escape: names::ESCAPE, line: Vec::new(), number: 0 }
    }

    /// For a log whose lines are JSON, where a backslash of a text is written as two.
    pub(super) fn of_json(input: R, path: &'a Path) -> Lines<'a, R> {
        Lines { escape: r"\\x", ..Lines::new(input, path) }
    }

    /// The next line without its end, and its number; none at the end of the log. Bytes that are no UTF-8 are escaped:
    /// paths may hold any.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Cow<'_, str>)>, ImportError> {
        self.line.clear();
        let failed = ImportError::io(self.path, "read");
        if self.input.by_ref().take(MOST_LINE_BYTES).read_until(b'\n', &mut self.line).map_err(failed)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() as u64 == MOST_LINE_BYTES {
            self.input.skip_until(b'\n').map_err(ImportError::io(self.path, "read"))?;
        }
        Ok(Some((self.number, names::escaped(&self.line, self.escape))))
    }
}

/// The first characters of a line, for people.
pub(super) fn excerpt(line: &str) -> String {
    line.chars().take(60).collect()
}

/// Seconds in decimal, to the nanosecond: a float has not enough digits for times since 1970.
pub(super) fn seconds_ns(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !(whole.len() + fraction.len() > 0
        && whole.bytes().chain(fraction.bytes()).all(|it| it.is_ascii_digit()))
    {
        return None;
    }
    let seconds: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let fraction_ns = digits.fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_takes_no_memory_without_end() -> Result<(), ImportError> {
        let mut text = vec![b'x'; 3 << 20];
        text.extend(b"\nshort\n\nlast");
        let mut lines = Lines::new(&text[..], Path::new("log"));
        assert_eq!(lines.next()?.map(|(number, line)| (number, line.len())), Some((1, 1 << 20)));
        for (number, expected) in [(2, "short"), (3, ""), (4, "last")] {
            assert_eq!(lines.next()?, Some((number, expected.into())));
        }
        assert_eq!(lines.next()?, None);
        Ok(())
    }

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds_ns("1700000000.000000001"), Some(1_700_000_000_000_000_001));
        assert_eq!(seconds_ns("0.25"), Some(250_000_000));
        assert_eq!(seconds_ns(".5"), Some(500_000_000));
        assert_eq!(seconds_ns("7"), Some(7_000_000_000));
        assert_eq!(seconds_ns("0.1234567899999"), Some(123_456_789));
        for wrong in ["", ".", "-1", "1e3", "x", "99999999999"] {
            assert_eq!(seconds_ns(wrong), None, "{wrong}");
        }
    }
}
