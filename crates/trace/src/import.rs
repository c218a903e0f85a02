//! Traces and logs of other tools.

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub mod darshan;
mod sort;

use crate::error::TraceError;

/// What a file is, by what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A log of Darshan.
    Darshan,
    /// A trace of Pioscope, or nothing that is known.
    Other,
}

/// Tells from the first bytes of a file what it is. Its name does not matter.
///
/// # Errors
/// If it cannot be read.
pub fn recognise(path: &Path) -> Result<Format, TraceError> {
    let mut start = Vec::new();
    File::open(path)
        .map_err(TraceError::io(path, "open"))?
        .take(64)
        .read_to_end(&mut start)
        .map_err(TraceError::io(path, "read"))?;
    Ok(if darshan::is_log(&start) { Format::Darshan } else { Format::Other })
}
