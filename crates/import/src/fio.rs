//! Logs of fio (`--write_iolog`), versions 2 and 3.
//!
//! A line is `file action`, or `file action offset length`, with a time stamp in front in version 3: microseconds since
//! the job began (fio's own page says milliseconds; fio 3 writes microseconds). Version 2 has no times, but lines
//! `wait` that say how long to pause. Neither says how long a call took. Jobs with one log (`numjobs`) append theirs one after
//! the other, each with a first line of its own.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::Path;

use crate::builder::Builder;
use crate::error::ImportError;
use crate::lines::{Lines, excerpt};
use crate::sort::Access;
use pio_trace::Call;
use pio_trace::Flags;
use pio_trace::{HandleId, ProcessId};

const VERSION_2: &str = "fio version 2 iolog";
const VERSION_3: &str = "fio version 3 iolog";

/// Whether a file that starts so is such a log.
pub(super) fn is_log(start: &[u8]) -> bool {
    [VERSION_2, VERSION_3].iter().any(|line| start.starts_with(line.as_bytes()))
}

/// Writes what a log holds as a trace to `out`; `name` stands for its path in errors. Returns the number of events.
pub(super) fn write_trace(
    log: impl BufRead,
    path: &Path,
    out: impl Write,
    name: &Path,
) -> Result<u64, ImportError> {
    let mut lines = Lines::new(log, path);
    let mut reading = Reading::new(path);
    while let Some((number, line)) = lines.next()? {
        match line.trim() {
            VERSION_3 => reading.begin_job(true),
            VERSION_2 => reading.begin_job(false),
            "" => {}
            line => {
                if reading.jobs == 0 {
                    reading.begin_job(false);
                }
                if reading.read(line)?.is_none() {
                    reading.builder.skip(|| format!("line {number} '{}'", excerpt(line)));
                }
            }
        }
    }
    reading.end_job();
    if !reading.has_times {
        let value = "none: a version 2 log has no times, but pauses (wait)".to_owned();
        reading.builder.note("times", value);
    }
    reading.builder.write(out, name)
}

struct Reading {
    builder: Builder,
    /// The job whose lines are being read; its number, from 1, stands for its pid.
    process: ProcessId,
    jobs: u32,
    has_times: bool,
    now_ns: u64,
    /// Open files, by name. A log holds as many as its job.
    open: HashMap<String, HandleId>,
}

impl Reading {
    fn new(path: &Path) -> Reading {
        Reading {
            builder: Builder::new(path, "fio"),
            process: ProcessId(0),
            jobs: 0,
            has_times: false,
            now_ns: 0,
            open: HashMap::new(),
        }
    }

    fn begin_job(&mut self, has_times: bool) {
        self.end_job();
        self.jobs = self.jobs.saturating_add(1);
        self.process = self.builder.add_process(self.jobs, None, "", 0);
        self.has_times = has_times;
        self.now_ns = 0;
        self.open.clear();
    }

    fn end_job(&mut self) {
        if let Some(process) = self.builder.process(self.process) {
            process.command = "fio".to_owned();
            process.end_ns = Some(self.now_ns);
        }
    }

    /// None if the line is not one.
    fn read(&mut self, line: &str) -> Result<Option<()>, ImportError> {
        let Some(action) = Action::of(line, self.has_times) else { return Ok(None) };
        // A log is in the order of what happened, so a clock that went back is no new order.
        self.now_ns = self.now_ns.max(action.start_ns.unwrap_or(0));
        let call = match action.name {
            "add" => return Ok(Some(())),
            "wait" => {
                if self.has_times {
                    return Ok(None);
                }
                self.now_ns = self.now_ns.saturating_add(action.offset.saturating_mul(1000));
                return Ok(Some(()));
            }
            "open" => Call::Open,
            "close" => Call::Close,
            "read" => Call::Pread,
            "write" => Call::Pwrite,
            "sync" | "sync_file_range" => Call::Fsync,
            "datasync" => Call::Fdatasync,
            "trim" => Call::Fallocate,
            _ => return Ok(None),
        };
        let handle = match call {
            Call::Close => self.open.remove(action.file),
            Call::Open => None,
            _ => self.open.get(action.file).copied(),
        };
        let handle = handle.unwrap_or_else(|| {
            let file = self.builder.file(action.file);
            let handle = self.builder.add_handle(file, self.process);
            if call != Call::Close {
                self.open.insert(action.file.to_owned(), handle);
            }
            handle
        });
        let moves = matches!(call, Call::Pread | Call::Pwrite);
        let has_place = moves || call == Call::Fallocate;
        self.builder.push(Access {
            call,
            flags: Flags::NONE,
            process: self.process,
            thread: 0,
            handle: Some(handle),
            offset: has_place.then_some(action.offset),
            size: if has_place { action.length } else { 0 },
            result: if moves { i64::try_from(action.length).unwrap_or(i64::MAX) } else { 0 },
            start_ns: self.now_ns,
            elapsed_ns: 0,
            name: None,
            other: None,
            operation: 0,
        })?;
        Ok(Some(()))
    }
}

struct Action<'a> {
    start_ns: Option<u64>,
    file: &'a str,
    name: &'a str,
    offset: u64,
    length: u64,
}

impl<'a> Action<'a> {
    /// File names may hold blanks: fields are taken from both ends.
    fn of(line: &'a str, has_time: bool) -> Option<Action<'a>> {
        let (start_ns, rest) = if has_time {
            let (time_us, rest) = line.split_once(' ')?;
            (Some(time_us.parse::<u64>().ok()?.checked_mul(1000)?), rest)
        } else {
            (None, line)
        };
        if let Some((file, name @ ("add" | "open" | "close"))) = rest.rsplit_once(' ') {
            return Some(Action { start_ns, file, name, offset: 0, length: 0 });
        }
        let (rest, length) = rest.rsplit_once(' ')?;
        let (rest, offset) = rest.rsplit_once(' ')?;
        let (file, name) = rest.rsplit_once(' ')?;
        Some(Action { start_ns, file, name, offset: offset.parse().ok()?, length: length.parse().ok()? })
    }
}
