//! Logs of latencies of fio (`--write_lat_log`), with offsets (`--log_offset=1`) or without.
//!
//! A line is `time, latency, direction, size`, then the offset if it was asked for, and the priority since version 3.18: milliseconds
//! since the job began, when the call ended; nanoseconds; 0 to 3 for read, write, trim and sync; bytes; bytes; 0, 1 or hexadecimal
//! digits. So of five columns the last is the offset in logs of older versions, and the priority in others. Each job has a file
//! of its own, `NAME_lat.1.log` and so on, or all have one, `NAME_lat.log`. `NAME_clat` is without the submission,
//! `NAME_slat` nothing but it; `NAME_bw` and `NAME_iops` look the same, and say how fast instead of how long: names
//! tell them apart.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::builder::Builder;
use crate::error::ImportError;
use crate::lines::{Lines, excerpt};
use crate::sort::Access;
use pio_trace::{Call, Flags, HandleId, ProcessId};

/// A histogram has 1,216 columns more.
const MOST_COLUMNS: usize = 7;

const MILLISECOND_NS: u64 = 1_000_000;

/// Whether a file that starts so is such a log, or one of those that look the same.
pub(super) fn is_log(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    // The last line may be cut.
    let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).take(3).peekable();
    lines.peek().is_some()
        && lines.all(|line| Entry::of(line.trim_end(), false).is_some() && line.contains(", "))
}

/// Whether the fifth column, if it is the last, has offsets: no priority is such a number. A job whose first offsets are all 0 is not
/// told from one without.
fn ends_in_offsets(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).any(|line| {
        let columns: Vec<_> = line.split(',').map(str::trim).collect();
        columns.len() == 5 && columns[4].parse::<u64>().is_ok_and(|number| number > 1)
    })
}

/// Whether a folder has logs of latencies.
pub(super) fn is_folder(path: &Path) -> bool {
    logs_of(path).is_ok_and(|logs| {
        logs.iter().any(|log| {
            let start = File::open(log).and_then(|file| Ok(BufReader::new(file).fill_buf()?.to_vec()));
            start.is_ok_and(|start| is_log(&start))
        })
    })
}

/// Writes what one log holds as a trace to `out`; `name` stands for its path in errors. Returns the number of events.
pub(super) fn write_trace(
    log: impl BufRead,
    path: &Path,
    out: impl Write,
    name: &Path,
) -> Result<u64, ImportError> {
    if Name::of(path).is_none() {
        let expected =
            "how long each call took: a log of fio --write_lat_log, NAME_lat.N.log or NAME_clat.N.log".into();
        return Err(ImportError::NoCalls { path: path.to_owned(), expected });
    }
    let mut reading = Reading::new(path);
    reading.read(log, path, "")?;
    reading.finish(path, out, name)
}

/// Writes what the logs of a folder hold as one trace, in which each job is a process.
pub(super) fn write_trace_of_folder(folder: &Path, out: impl Write, name: &Path) -> Result<u64, ImportError> {
    let mut reading = Reading::new(folder);
    for log in logs_of(folder)? {
        let place = format!("{} ", log.file_name().unwrap_or_default().to_string_lossy());
        let file = File::open(&log).map_err(ImportError::io(&log, "open"))?;
        reading.read(BufReader::with_capacity(1 << 18, file), &log, &place)?;
    }
    reading.finish(folder, out, name)
}

/// The logs of a folder, by name and number: of each job that which has the whole latency, if it is there.
fn logs_of(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let mut named = Vec::new();
    for entry in fs::read_dir(folder).map_err(ImportError::io(folder, "read"))? {
        let path = entry.map_err(ImportError::io(folder, "read"))?.path();
        if let Some(name) = Name::of(&path).filter(|_| path.is_file()) {
            named.push((name, path));
        }
    }
    named.sort_unstable();
    named.dedup_by(|(next, _), (kept, _)| (&next.job, next.number) == (&kept.job, kept.number));
    Ok(named.into_iter().map(|(_, path)| path).collect())
}

/// What the name of a log says.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    job: String,
    number: u32,
    /// Whether it leaves out the submission. The whole latency goes first.
    is_completion: bool,
}

impl Name {
    /// None if it is not one of latencies.
    fn of(path: &Path) -> Option<Name> {
        let name = path.file_name()?.to_string_lossy();
        let name = name.strip_suffix(".log")?;
        let (name, number) = match name.rsplit_once('.').map(|(name, number)| (name, number.parse())) {
            Some((name, Ok(number))) => (name, number),
            _ => (name, 0),
        };
        let (job, is_completion) = match (name.strip_suffix("_lat"), name.strip_suffix("_clat")) {
            (Some(job), _) => (job, false),
            (None, Some(job)) => (job, true),
            (None, None) => return None,
        };
        Some(Name { job: job.to_owned(), number, is_completion })
    }
}

struct Reading {
    builder: Builder,
    /// Jobs so far; a job's number, from 1, stands for its pid.
    jobs: u32,
    has_offsets: bool,
    /// Lines that stand for several calls.
    averaged: u64,
}

impl Reading {
    fn new(path: &Path) -> Reading {
        let builder = Builder::new(path, "fio, its log of latencies");
        Reading { builder, jobs: 0, has_offsets: false, averaged: 0 }
    }

    /// Reads the log of one job. `place` goes before the number of a line in notes.
    fn read(&mut self, mut log: impl BufRead, path: &Path, place: &str) -> Result<(), ImportError> {
        let ends_in_offsets = ends_in_offsets(log.fill_buf().map_err(ImportError::io(path, "read"))?);
        self.jobs = self.jobs.saturating_add(1);
        let process = self.builder.add_process(self.jobs, None, "", 0);
        let job = path.file_name().unwrap_or_default().to_string_lossy();
        let file = self.builder.file(&format!("file of {job}"));
        let handle = self.builder.add_handle(file, process);
        let mut lines = Lines::new(log, path);
        let mut free_ns = 0;
        while let Some((number, line)) = lines.next()? {
            if line.trim().is_empty() {
                continue;
            }
            let Some(entry) = Entry::of(&line, ends_in_offsets) else {
                self.builder.skip(|| format!("{place}line {number} '{}'", excerpt(&line)));
                continue;
            };
            if entry.size == 0 && entry.call != Call::Fsync {
                self.averaged += 1;
                continue;
            }
            self.has_offsets |= entry.offset.is_some();
            free_ns = self.push(&entry, process, handle, free_ns)?;
        }
        if let Some(entry) = self.builder.process(process) {
            entry.command = "fio".to_owned();
            entry.end_ns = Some(free_ns);
        }
        Ok(())
    }

    /// Adds a call, and returns when the latest so far has ended. `free_ns` is when that before it had.
    ///
    /// A log says in which millisecond a call ended. Calls of one millisecond are put one after the other, unless they
    /// do not fit into it: then they ran at the same time.
    fn push(
        &mut self,
        entry: &Entry,
        process: ProcessId,
        handle: HandleId,
        free_ns: u64,
    ) -> Result<u64, ImportError> {
        let earliest_ns = entry.ended_ns.saturating_sub(entry.elapsed_ns);
        let behind_ns = earliest_ns.max(free_ns);
        let ends_in_time =
            behind_ns.saturating_add(entry.elapsed_ns) < entry.ended_ns.saturating_add(MILLISECOND_NS);
        let start_ns = if ends_in_time { behind_ns } else { earliest_ns };
        let moves = matches!(entry.call, Call::Pread | Call::Pwrite);
        self.builder.push(Access {
            call: entry.call,
            flags: Flags::NONE,
            process,
            thread: 0,
            handle: Some(handle),
            offset: entry.offset,
            size: entry.size,
            result: if moves { i64::try_from(entry.size).unwrap_or(i64::MAX) } else { 0 },
            start_ns,
            elapsed_ns: entry.elapsed_ns,
            name: None,
            other: None,
            operation: 0,
        })?;
        Ok(free_ns.max(start_ns.saturating_add(entry.elapsed_ns)))
    }

    fn finish(mut self, log: &Path, out: impl Write, name: &Path) -> Result<u64, ImportError> {
        if self.builder.is_empty() && self.averaged > 0 {
            let expected = "single calls: a log of fio without --log_avg_msec".into();
            return Err(ImportError::NoCalls { path: log.to_owned(), expected });
        }
        if self.averaged > 0 {
            let value = format!("{} lines that stand for several calls (fio --log_avg_msec)", self.averaged);
            self.builder.note("lost calls", value);
        }
        if !self.has_offsets {
            self.builder.note("offsets", "none: fio was run without --log_offset=1".into());
        }
        self.builder
            .note("times", "in milliseconds: calls of one millisecond are put one after the other".into());
        self.builder.note("files", "fio's logs do not name them: each job's calls are put on one".into());
        self.builder.begin_with_first_call();
        self.builder.write(out, name)
    }
}

/// A line.
struct Entry {
    ended_ns: u64,
    elapsed_ns: u64,
    call: Call,
    size: u64,
    offset: Option<u64>,
}

impl Entry {
    fn of(line: &str, ends_in_offsets: bool) -> Option<Entry> {
        let mut columns = line.split(',').map(str::trim);
        let mut number = || columns.next()?.parse::<u64>().ok();
        let (ended_ms, elapsed_ns, direction, size) = (number()?, number()?, number()?, number()?);
        let rest: Vec<_> = columns.collect();
        if rest.len() + 4 > MOST_COLUMNS {
            return None;
        }
        let has_offset = rest.len() > 1 || (rest.len() == 1 && ends_in_offsets);
        let offset = if has_offset { Some(rest.first()?.parse().ok()?) } else { None };
        let call = match direction {
            0 => Call::Pread,
            1 => Call::Pwrite,
            2 => Call::Fallocate,
            3 => Call::Fsync,
            _ => return None,
        };
        Some(Entry { ended_ns: ended_ms.checked_mul(MILLISECOND_NS)?, elapsed_ns, call, size, offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_of_which_job_a_log_is() {
        let name = |name: &str| Name::of(Path::new(name)).map(|it| (it.job, it.number, it.is_completion));
        assert_eq!(name("/d/job_lat.3.log"), Some(("job".into(), 3, false)));
        assert_eq!(name("a.b_clat.12.log"), Some(("a.b".into(), 12, true)));
        assert_eq!(name("job_lat.log"), Some(("job".into(), 0, false)));
        for other in
            ["job_slat.1.log", "job_bw.1.log", "job_iops.1.log", "h_clat_hist.1.log", "job_lat.1.txt", "lat"]
        {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
