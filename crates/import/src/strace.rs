//! The output of `strace -f -ttt -T`: for programs that a preloaded library cannot see (static ones, Go's).
//!
//! Lines stand in the order in which calls ended or were interrupted; a trace is in the order of their starts. What a
//! descriptor stands for follows from the calls before: [`descriptors`] keeps that.

mod calls;
mod descriptors;
mod errors;
mod in_flight;
mod line;
mod tasks;

use std::io::{BufRead, Write};
use std::path::Path;

use self::calls::Reading;
use self::line::{Line, Syscall, What};
use crate::error::ImportError;
use crate::lines::{Lines, excerpt};

/// Whether a file that starts so is strace's output: one of its first whole lines is a call with a time.
pub(super) fn is_output(start: &[u8]) -> bool {
    String::from_utf8_lossy(start).lines().take(3).filter_map(Line::of).any(|line| match line.what {
        What::Call(call) => Syscall::of(call).is_some() || call.starts_with("execve("),
        What::Begin(_) | What::End(_) | What::Exited | What::Killed => true,
        What::Other => false,
    })
}

/// Writes what strace saw as a trace to `out`; `name` stands for its path in errors. Returns the number of events.
pub(super) fn write_trace(
    log: impl BufRead,
    path: &Path,
    out: impl Write,
    name: &Path,
) -> Result<u64, ImportError> {
    let mut lines = Lines::new(log, path);
    let mut reading = Reading::new(path);
    while let Some((number, text)) = lines.next()? {
        if text.trim().is_empty() {
            continue;
        }
        let understood = match Line::of(&text) {
            Some(line) => reading.read(&line)?,
            None => is_remark(&text),
        };
        if !understood {
            reading.builder.skip(|| format!("line {number} '{}'", excerpt(&text)));
        }
    }
    reading.finish(out, name)
}

/// What strace says of itself: `strace: Process 12 attached`.
fn is_remark(text: &str) -> bool {
    text.starts_with("strace: ")
}
