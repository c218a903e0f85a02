//! Logs of other tools as traces: Darshan, DFTracer, Recorder, `strace`, `fio`, `blktrace`, and tables of calls.
//!
//! [`recognise`] tells whose log a file is, [`open`] makes a trace of it, or opens one of Pioscope's own.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

mod blktrace;
mod builder;
mod collective;
mod csv;
pub mod darshan;
mod dftracer;
mod error;
mod fio;
mod fio_latency;
mod kinds;
mod lines;
mod opened;
mod order;
mod paths;
pub mod recorder;
mod sort;
mod strace;

use pio_trace::{Trace, TraceError};

pub use error::ImportError;

/// Another tool's log, by what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A log of Darshan.
    Darshan,
    /// The calls that another tool wrote down.
    Calls(Tool),
    /// A folder of Recorder.
    Recorder,
    /// A folder with logs of DFTracer, one a process.
    DftracerFolder,
    /// A folder with logs of latencies of fio, one a job.
    FioFolder,
}

/// A tool whose logs hold calls and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `strace -f -ttt -T`.
    Strace,
    /// `fio --write_iolog`.
    Fio,
    /// `fio --write_lat_log`: the log of one job.
    FioLatency,
    /// `blktrace`.
    Blktrace,
    /// DFTracer: the log of one process.
    Dftracer,
    /// A table of calls, a line each.
    Csv,
}

/// Bytes that tell what a file is: a line of strace may be long.
const TELLING_BYTES: u64 = 16 << 10;

/// Tells from the first bytes of a file whose log it is, and of a folder from the files in it.
/// None for a trace of Pioscope, and for what is not known.
///
/// # Errors
/// If it cannot be read.
pub fn recognise(path: &Path) -> Result<Option<Format>, ImportError> {
    if path.is_dir() {
        return Ok(match () {
            () if recorder::is_folder(path) => Some(Format::Recorder),
            () if dftracer::is_folder(path) => Some(Format::DftracerFolder),
            () if fio_latency::is_folder(path) => Some(Format::FioFolder),
            () => None,
        });
    }
    let mut start = Vec::new();
    File::open(path)
        .map_err(ImportError::io(path, "open"))?
        .take(TELLING_BYTES)
        .read_to_end(&mut start)
        .map_err(ImportError::io(path, "read"))?;
    Ok(match () {
        () if darshan::is_log(&start) => Some(Format::Darshan),
        () if fio::is_log(&start) => Some(Format::Calls(Tool::Fio)),
        () if blktrace::is_trace(&start) => Some(Format::Calls(Tool::Blktrace)),
        () if dftracer::is_log(&start) => Some(Format::Calls(Tool::Dftracer)),
        () if fio_latency::is_log(&start) => Some(Format::Calls(Tool::FioLatency)),
        () if csv::is_table(&start) => Some(Format::Calls(Tool::Csv)),
        () if strace::is_output(&start) => Some(Format::Calls(Tool::Strace)),
        () => None,
    })
}

/// Opens a trace, or another tool's log, whatever it is: that becomes a trace in a temporary file, which goes away with it.
///
/// # Errors
/// If it cannot be read, or is nothing that is known, or the temporary file cannot be written.
pub fn open(path: &Path) -> Result<Trace, ImportError> {
    match recognise(path)? {
        Some(format) => in_temporary_file(path, |out| write_trace(format, path, out, path)),
        None if path.is_dir() => Err(ImportError::NotAFolderOfLogs { path: path.to_owned() }),
        None => Trace::open(path).map_err(|error| match error {
            TraceError::NotATrace { path, found } => ImportError::NotKnown { path, found },
            error => error.into(),
        }),
    }
}

/// The accesses that a Darshan log holds, as a trace in a temporary file.
///
/// # Errors
/// If the log cannot be read, or the temporary file cannot be written.
pub fn trace_of_log(log: &darshan::Log) -> Result<Trace, ImportError> {
    in_temporary_file(log.path(), |out| darshan::write_trace(log, out, log.path()))
}

fn in_temporary_file(
    log: &Path,
    write: impl FnOnce(BufWriter<File>) -> Result<u64, ImportError>,
) -> Result<Trace, ImportError> {
    let file = tempfile::tempfile().map_err(ImportError::io(log, "make a temporary file for"))?;
    let out = file.try_clone().map_err(ImportError::io(log, "make a temporary file for"))?;
    write(BufWriter::with_capacity(1 << 20, out))?;
    Ok(Trace::from_file(file, log)?)
}

/// Writes the calls of another tool's log as a trace to `out`, in memory that does not grow with their number (but for
/// names). `name` stands for the trace's path in errors. Returns the number of events.
///
/// # Errors
/// If the log cannot be read, or the trace, or the temporary file that sorting may need, cannot be written. What is not
/// understood is no error: the trace has what was, and a note.
pub fn write_trace(format: Format, log: &Path, out: impl Write, name: &Path) -> Result<u64, ImportError> {
    match format {
        Format::Darshan => darshan::write_trace(&darshan::Log::open(log)?, out, name),
        Format::Recorder => recorder::write_trace(&recorder::Folder::at(log), out, name),
        Format::DftracerFolder => dftracer::write_trace_of_folder(log, out, name),
        Format::FioFolder => fio_latency::write_trace_of_folder(log, out, name),
        Format::Calls(tool) => {
            let input = File::open(log).map_err(ImportError::io(log, "open"))?;
            write_trace_from(tool, input, log, out, name)
        }
    }
}

/// The same of a log of calls, from anything that can be read. `path` names the log.
///
/// # Errors
/// As [`write_trace`].
pub fn write_trace_from(
    tool: Tool,
    log: impl Read,
    path: &Path,
    out: impl Write,
    name: &Path,
) -> Result<u64, ImportError> {
    let input = BufReader::with_capacity(1 << 18, log);
    match tool {
        Tool::Strace => strace::write_trace(input, path, out, name),
        Tool::Fio => fio::write_trace(input, path, out, name),
        Tool::FioLatency => fio_latency::write_trace(input, path, out, name),
        Tool::Blktrace => blktrace::write_trace(input, path, out, name),
        Tool::Dftracer => dftracer::write_trace(input, path, out, name),
        Tool::Csv => csv::write_trace(input, path, out, name),
    }
}
