//! Logs of DFTracer (github.com/hariharan-devarajan/dftracer) and of what it was before, DLIO Profiler: `.pfw`, or
//! `.pfw.gz`, a file a process, in one folder.
//!
//! A line is a JSON object: a call with its times and arguments, or what a hash stands for. Names of files, hosts and
//! programs are hashes since version 1; a process that was forked knows the hashes of its parent, whose log says what they
//! mean. So logs are read in the order in which their processes began. Each part has a file here: [`members`] is where the
//! bytes come from, [`record`] what a line is, [`meaning`] which call of ours a call is, [`names`] what hashes stand for,
//! [`calls`] what becomes of it.

mod calls;
mod meaning;
mod members;
mod names;
mod others;
mod record;

use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use self::calls::Reading;
use self::members::Members;
use self::record::Record;
use crate::error::ImportError;
use crate::lines::{Lines, excerpt};

/// Endings of the names of logs.
const ENDINGS: [&str; 2] = [".pfw", ".pfw.gz"];

/// Records by which a log is told, or its begin: the first are of hashes and have no time.
const TELLING_LINES: usize = 64;

/// Whether a file that starts so is such a log, compressed or not.
pub(super) fn is_log(start: &[u8]) -> bool {
    let mut text = Vec::new();
    let unpacked: &[u8] = if members::is_packed(start) {
        // The start of a file ends within a member: what is before is enough.
        let _ = MultiGzDecoder::new(start).take(super::TELLING_BYTES).read_to_end(&mut text);
        &text
    } else {
        start
    };
    String::from_utf8_lossy(unpacked)
        .lines()
        .filter_map(record::object)
        .take(2)
        .any(|object| Record::of(object).is_some_and(|record| record.is_by_dftracer()))
}

/// Whether a folder has such logs.
pub(super) fn is_folder(path: &Path) -> bool {
    logs_of(path).is_ok_and(|logs| !logs.is_empty())
}

/// Writes what one log holds as a trace to `out`; `name` stands for its path in errors. Returns the number of events.
pub(super) fn write_trace(
    log: impl Read,
    path: &Path,
    out: impl Write,
    name: &Path,
) -> Result<u64, ImportError> {
    let mut reading = Reading::new(path);
    read(log, path, "", &mut reading)?;
    reading.finish(out, name)
}

/// Writes what the logs of a folder hold as one trace.
pub(super) fn write_trace_of_folder(folder: &Path, out: impl Write, name: &Path) -> Result<u64, ImportError> {
    let mut reading = Reading::new(folder);
    for log in in_order(logs_of(folder)?)? {
        let of_log = log.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = File::open(&log).map_err(ImportError::io(&log, "open"))?;
        read(file, &log, &format!("{of_log} "), &mut reading)?;
    }
    reading.finish(out, name)
}

/// Reads one log. `place` goes before the number of a line in notes.
fn read(log: impl Read, path: &Path, place: &str, reading: &mut Reading) -> Result<(), ImportError> {
    let mut members = Members::new(log);
    let mut lines = Lines::of_json(BufReader::with_capacity(1 << 18, &mut members), path);
    let mut log = reading.log();
    while let Some((number, line)) = lines.next()? {
        let Some(object) = record::object(&line) else { continue };
        let understood = match Record::of(object) {
            Some(record) => log.read(&record)?,
            None => false,
        };
        if !understood {
            log.reading.builder.skip(|| format!("{place}line {number} '{}'", excerpt(object)));
        }
    }
    log.finish(place)?;
    reading.damaged(place, members.damaged());
    Ok(())
}

/// The logs in a folder, by name. Of a log that is there both plain and compressed, the plain one: DFTracer compresses a
/// log when its process ends, and removes the plain one when that is done.
fn logs_of(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(folder).map_err(ImportError::io(folder, "read"))? {
        let path = entry.map_err(ImportError::io(folder, "read"))?.path();
        let name = path.to_string_lossy();
        let is_plain_too = || name.strip_suffix(".gz").is_some_and(|plain| Path::new(plain).is_file());
        if ENDINGS.iter().any(|ending| name.ends_with(ending)) && path.is_file() && !is_plain_too() {
            logs.push(path);
        }
    }
    logs.sort_unstable();
    Ok(logs)
}

/// Logs in the order of their first time, those without one last.
fn in_order(logs: Vec<PathBuf>) -> Result<Vec<PathBuf>, ImportError> {
    let mut keyed = Vec::with_capacity(logs.len());
    for log in logs {
        let file = File::open(&log).map_err(ImportError::io(&log, "open"))?;
        let mut lines = Lines::of_json(BufReader::new(Members::new(file)), &log);
        let mut first = u64::MAX;
        for _ in 0..TELLING_LINES {
            let Some((_, line)) = lines.next()? else { break };
            let start = record::object(&line).and_then(Record::of).and_then(|record| record.start);
            first = start.map_or(first, |start| first.min(start));
        }
        keyed.push((first, log));
    }
    keyed.sort_unstable();
    Ok(keyed.into_iter().map(|(_, log)| log).collect())
}
