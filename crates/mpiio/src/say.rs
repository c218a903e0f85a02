//! What the library says on the standard error output.

use std::fmt::Display;
use std::io::Write;

/// Says a line in one write, so that those of several ranks do not mix: `eprintln!` makes one write for each part of a line.
pub(crate) fn say(line: impl Display) {
    // Nobody may be listening.
    let _ = std::io::stderr().write_all(format!("pioscope: {line}\n").as_bytes());
}
