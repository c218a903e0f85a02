//! Tables of calls with a column a field: what any program can write.
//!
//! The first line names the columns, in any order. A call is a row:
//!
//! | column | |
//! |---|---|
//! | `start_s` | when it began, seconds from anywhere; needed |
//! | `call` | its name (`pread`, `MPI_File_write_at`, …), or `read`, `write`; needed |
//! | `file` | the file's path |
//! | `offset`, `size` | which bytes |
//! | `elapsed_s` | how long it took, seconds |
//! | `result` | bytes moved, or minus the error number; `size` if it is not there |
//! | `rank`, `pid`, `host` | who made it |
//! | `thread` | which thread of that process |
//!
//! Other columns are left alone.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use crate::builder::Builder;
use crate::collective::is_collective;
use crate::error::ImportError;
use crate::lines::seconds_ns;
use crate::sort::Access;
use pio_trace::Flags;
use pio_trace::names;
use pio_trace::{Call, Op};
use pio_trace::{FileId, HandleId, ProcessId};

/// Later than this nothing can have happened.
const LATEST_S: f64 = 1e10;

/// A row is no longer than this: what a quotation mark that is not closed takes in may be all that follows.
const MOST_ROW_BYTES: usize = 1 << 20;

/// What spreadsheets put before the text (the mark of UTF-8). The reader of tables passes over it.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Columns that every table has.
const NEEDED: [&str; 2] = ["start_s", "call"];

/// Whether a file that starts so is such a table, if perhaps not a whole one: its first line names several columns, and one of them
/// is needed.
pub(super) fn is_table(start: &[u8]) -> bool {
    let start = start.strip_prefix(MARK).unwrap_or(start);
    let first = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let columns: Vec<&str> = first.split(',').map(|column| column.trim().trim_matches('"')).collect();
    columns.len() > 1 && columns.iter().any(|column| NEEDED.contains(column))
}

/// Writes what a table holds as a trace to `out`; `name` stands for its path in errors. Returns the number of events.
pub(super) fn write_trace(
    log: impl BufRead,
    path: &Path,
    out: impl Write,
    name: &Path,
) -> Result<u64, ImportError> {
    let left = Cell::new(MOST_ROW_BYTES);
    let log = Rows { log, left: &left };
    let mut table = csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::Headers).from_reader(log);
    let names = table.byte_headers().map_err(|error| unreadable(path, error))?;
    if let Some(missing) =
        NEEDED.into_iter().find(|needed| !names.iter().any(|name| name == needed.as_bytes()))
    {
        return Err(ImportError::NoColumn { path: path.to_owned(), missing });
    }
    let (columns, width) = (Columns::of(names), names.len());
    let mut reading =
        Reading { builder: Builder::new(path, "CSV"), processes: HashMap::new(), handles: HashMap::new() };
    let mut row = csv::ByteRecord::new();
    while table.read_byte_record(&mut row).map_err(|error| unreadable(path, error))? {
        let line = row.position().map_or(0, |position| position.line());
        if left.replace(MOST_ROW_BYTES) == 0 {
            reading.builder.skip(|| {
                format!("all from line {line} on (a row of more than {MOST_ROW_BYTES} bytes: a quotation mark that is not closed)")
            });
            break;
        }
        if columns.took_in_more(&row, width) {
            let last = line + more_lines(&row);
            let lines = if last > line { format!("lines {line} to {last}") } else { format!("line {line}") };
            reading.builder.skip(|| format!("{lines} (a quotation mark that is not closed)"));
        } else if let Err(reason) = reading.read(&columns, &row)? {
            reading.builder.skip(|| format!("line {line} ({reason})"));
        }
    }
    let end_ns = reading.builder.last_end_ns();
    for process in reading.processes.values() {
        if let Some(process) = reading.builder.process(*process) {
            process.end_ns = Some(end_ns);
        }
    }
    reading.builder.begin_with_first_call();
    reading.builder.write(out, name)
}

/// A table that ends where a row is too long.
struct Rows<'a, R> {
    log: R,
    /// Bytes that the row may still have, and what is read ahead of it; 0 once it had more.
    left: &'a Cell<usize>,
}

impl<R: Read> Read for Rows<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.left.get());
        let read = self.log.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - read);
        Ok(read)
    }
}

/// How many lines a row has but for its first.
fn more_lines(row: &csv::ByteRecord) -> u64 {
    let ends = row.iter().flatten().filter(|&&byte| byte == b'\n').count() as u64;
    let at_end = row.iter().next_back().is_some_and(|field| field.ends_with(b"\n"));
    ends - u64::from(at_end)
}

fn unreadable(path: &Path, error: csv::Error) -> ImportError {
    ImportError::io(path, "read")(std::io::Error::other(error))
}

/// Where each field stands.
struct Columns {
    start: Option<usize>,
    elapsed: Option<usize>,
    call: Option<usize>,
    file: Option<usize>,
    offset: Option<usize>,
    size: Option<usize>,
    result: Option<usize>,
    rank: Option<usize>,
    pid: Option<usize>,
    host: Option<usize>,
    thread: Option<usize>,
}

impl Columns {
    fn of(names: &csv::ByteRecord) -> Columns {
        let column = |name: &str| names.iter().position(|known| known == name.as_bytes());
        Columns {
            start: column("start_s"),
            elapsed: column("elapsed_s"),
            call: column("call"),
            file: column("file"),
            offset: column("offset"),
            size: column("size"),
            result: column("result"),
            rank: column("rank"),
            pid: column("pid"),
            host: column("host"),
            thread: column("thread"),
        }
    }

    /// Whether a field of a row goes on over the lines that follow, because a quotation mark is not closed: fields are
    /// missing then, or are those of the line that has the next mark. Names may hold ends of lines, but no rows.
    fn took_in_more(&self, row: &csv::ByteRecord, width: usize) -> bool {
        let mut lines = row.iter().flat_map(|field| field.split(|&byte| byte == b'\n').skip(1)).peekable();
        lines.peek().is_some() && (row.len() < width || lines.any(|line| self.begin_row(line)))
    }

    fn begin_row(&self, line: &[u8]) -> bool {
        let field = |column: Option<usize>| {
            let field = line.split(|&byte| byte == b',').nth(column?)?;
            std::str::from_utf8(field).ok().map(str::trim)
        };
        field(self.start).and_then(time_ns).is_some() && field(self.call).and_then(call_of).is_some()
    }
}

/// Who made a call: rank, process number, host.
type Maker = (Option<u32>, u32, String);

struct Reading {
    builder: Builder,
    processes: HashMap<Maker, ProcessId>,
    handles: HashMap<(FileId, ProcessId), HandleId>,
}

impl Reading {
    /// Or the column that cannot be understood.
    fn read(
        &mut self,
        columns: &Columns,
        row: &csv::ByteRecord,
    ) -> Result<Result<(), &'static str>, ImportError> {
        Ok(match self.access(columns, row) {
            Ok(access) => {
                self.builder.push(access)?;
                Ok(())
            }
            Err(column) => Err(column),
        })
    }

    fn access(&mut self, columns: &Columns, row: &csv::ByteRecord) -> Result<Access, &'static str> {
        let given = |column: Option<usize>| {
            let field = row.get(column?)?.trim_ascii();
            (!field.is_empty()).then(|| names::of_bytes(field))
        };
        let time = |text: Cow<str>| time_ns(&text);
        let start_ns = given(columns.start).and_then(time).ok_or("start_s")?;
        let elapsed_ns = given(columns.elapsed).map_or(Some(0), time).ok_or("elapsed_s")?;
        let call = given(columns.call).and_then(|name| call_of(&name)).ok_or("call")?;
        let number = |column, name| match given(column) {
            Some(text) => text.parse::<u64>().map(Some).map_err(|_| name),
            None => Ok(None),
        };
        let small = |column, name| match number(column, name)? {
            Some(value) => u32::try_from(value).map(Some).map_err(|_| name),
            None => Ok(None),
        };
        let offset = number(columns.offset, "offset")?;
        let size = number(columns.size, "size")?.unwrap_or(0);
        let moves = matches!(call.op(), Op::Read | Op::Write);
        let result = match given(columns.result) {
            Some(text) => text.parse().map_err(|_| "result")?,
            None if moves => i64::try_from(size).unwrap_or(i64::MAX),
            None => 0,
        };
        let rank = small(columns.rank, "rank")?;
        let pid = small(columns.pid, "pid")?.unwrap_or(0);
        let thread = small(columns.thread, "thread")?.unwrap_or(0);
        let process = self.process((rank, pid, given(columns.host).unwrap_or_default().into_owned()));
        let handle = given(columns.file).map(|path| {
            let file = self.builder.file(&path);
            let builder = &mut self.builder;
            *self.handles.entry((file, process)).or_insert_with(|| builder.add_handle(file, process))
        });
        let flags = if is_collective(call) { Flags::COLLECTIVE } else { Flags::NONE };
        Ok(Access {
            call,
            flags,
            process,
            thread,
            handle,
            offset,
            size,
            result,
            start_ns,
            elapsed_ns,
            name: None,
            other: None,
            operation: 0,
        })
    }

    fn process(&mut self, maker: Maker) -> ProcessId {
        let builder = &mut self.builder;
        *self
            .processes
            .entry(maker)
            .or_insert_with_key(|(rank, pid, host)| builder.add_process(*pid, *rank, host, 0))
    }
}

fn time_ns(text: &str) -> Option<u64> {
    seconds_ns(text).or_else(|| {
        let seconds: f64 = text.parse().ok()?;
        (0.0..LATEST_S).contains(&seconds).then(|| (seconds * 1e9).round() as u64)
    })
}

fn call_of(name: &str) -> Option<Call> {
    Call::ALL.iter().copied().find(|call| call.name() == name)
}
