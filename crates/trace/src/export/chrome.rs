//! Chrome's trace-event JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
//!
//! One complete event ("X") a recorded call. The viewer's processes are the job's, its threads theirs; calls that an
//! MPI-IO call caused lie within it in time and are drawn below it. Complete events of a thread must nest: calls that return
//! before their data have moved are pairs of asynchronous events ("b", "e").

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::call::Layer;
use crate::error::TraceError;
use crate::event::{Event, Flags, Target};
use crate::reader::Trace;
use crate::splits::{Split, Splits};
use crate::tables::{Process, Tables};

/// Writes `trace` to `file`, which is empty and has the name `path`, as Chrome trace-event JSON, in memory that does not
/// grow with its length.
///
/// A collective call whose split is known has its parts among its arguments.
///
/// Times are microseconds with three digits behind the point, so no nanosecond is lost.
///
/// `progress` is told the number of events that are done, now and then.
///
/// # Errors
/// If the trace cannot be read, or the file cannot be written.
pub fn chrome(
    trace: &Trace,
    splits: &Splits,
    file: &File,
    path: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<(), TraceError> {
    let mut out = BufWriter::new(file);
    let tables = trace.tables();
    write_start(&mut out, tables).map_err(TraceError::io(path, "write"))?;
    let (mut text, mut splits) = (String::new(), splits.walk());
    for (done, event) in (0..).zip(trace.events()) {
        let event = event?;
        if done % super::STEP == 0 {
            progress(done);
        }
        text.clear();
        // An event has a process, so its name at least stands before.
        text.push_str(",\n");
        // Writing to a string cannot fail.
        let _ = put_event(&mut text, done, &event, splits.of(&event), tables);
        out.write_all(text.as_bytes()).map_err(TraceError::io(path, "write"))?;
    }
    out.write_all(b"\n]}\n").and_then(|()| out.flush()).map_err(TraceError::io(path, "write"))
}

/// What the trace says of itself, and the names of the processes.
fn write_start(out: &mut impl Write, tables: &Tables) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"job\":{}", Json(&tables.job))?;
    for (name, text) in tables.notes_by_name() {
        write!(out, ",{}:{}", Json(&format!("note: {name}")), Json(&text))?;
    }
    write!(out, "}},\"traceEvents\":[")?;
    for (id, process) in tables.processes.iter().enumerate() {
        let name = Json(&name_of(process)).to_string();
        let comma = if id == 0 { "" } else { "," };
        write!(
            out,
            "{comma}\n{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{id},\"args\":{{\"name\":{name}}}}}"
        )?;
        let order = process.rank.unwrap_or(u32::MAX);
        write!(
            out,
            ",\n{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{id},\"args\":{{\"sort_index\":{order}}}}}"
        )?;
    }
    Ok(())
}

fn name_of(process: &Process) -> String {
    let Process { rank, pid, host, command, .. } = process;
    match rank {
        Some(rank) => format!("rank {rank} ({host}, pid {pid}): {command}"),
        None => format!("{host}, pid {pid}: {command}"),
    }
}

/// Whether others of its thread may be under way beside it.
fn may_overlap(event: &Event) -> bool {
    event.call.is_asynchronous() || event.flags.contains(Flags::ASYNC) || event.layer() == Layer::Server
}

/// The event of a number. What follows of it is its end, if it is asynchronous.
fn put_event(
    out: &mut String,
    number: u64,
    event: &Event,
    split: Option<Split>,
    tables: &Tables,
) -> fmt::Result {
    let is_asynchronous = may_overlap(event);
    let head = |out: &mut String, kind: &str, at_ns: u64| {
        write!(
            out,
            "{{\"ph\":\"{kind}\",\"name\":{},\"cat\":\"{},{}\",\"pid\":{},\"tid\":{},\"ts\":{}",
            // A phase is shown under its own name.
            Json(tables.mark_of_event(event).unwrap_or(event.call.name())),
            event.layer().name(),
            event.op().name(),
            event.process.0,
            event.thread,
            Microseconds(at_ns),
        )?;
        if is_asynchronous { write!(out, ",\"id\":{number}") } else { Ok(()) }
    };
    if is_asynchronous {
        head(out, "b", event.start_ns)?;
    } else {
        head(out, "X", event.start_ns)?;
        write!(out, ",\"dur\":{}", Microseconds(event.elapsed_ns))?;
    }
    out.push_str(",\"args\":{");
    if let Some(file) = tables.file_of_event(event) {
        write!(out, "\"file\":{},", Json(&file.path))?;
    }
    if let Some(file) = tables.other_file_of_event(event) {
        write!(out, "\"other_file\":{},", Json(&file.path))?;
    }
    match event.target {
        Target::None | Target::Name { .. } => {}
        Target::Extent { offset } => write!(out, "\"offset\":{offset},")?,
        Target::View { view, position } => write!(out, "\"view\":{},\"position\":{position},", view.0)?,
        Target::Peer { rank } => write!(out, "\"peer\":{rank},")?,
        Target::Server { server, offset } => write!(out, "\"server\":{server},\"offset\":{offset},")?,
        Target::Mark { number, .. } => match tables.call_site_of_event(event) {
            Some(site) => write!(out, "\"call_site\":{},", Json(&site.to_string()))?,
            None => write!(out, "\"number\":{number},")?,
        },
    }
    if event.operation != 0 {
        write!(out, "\"operation\":{},", event.operation)?;
    }
    if let Some(used_ns) = event.used_ns {
        write!(out, "\"used_ns\":{used_ns},")?;
    }
    if let Some(Split { late_ns, library_ns, files_ns }) = split {
        write!(out, "\"late_ns\":{late_ns},\"library_ns\":{library_ns},")?;
        if let Some(files_ns) = files_ns {
            write!(out, "\"files_ns\":{files_ns},")?;
        }
    }
    write!(out, "\"size\":{},\"result\":{}}}}}", event.size, event.result)?;
    if is_asynchronous {
        out.push_str(",\n");
        head(out, "e", event.start_ns.saturating_add(event.elapsed_ns))?;
        out.push('}');
    }
    Ok(())
}

/// Nanoseconds, written as microseconds.
struct Microseconds(u64);

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A string, written as JSON.
struct Json<'a>(&'a str);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for char in self.0.chars() {
            match char {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                control if control < ' ' => write!(f, "\\u{:04x}", u32::from(control))?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}
