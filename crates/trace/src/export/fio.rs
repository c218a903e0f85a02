//! fio's log of requests (version 3), which `fio --read_iolog` carries out on a real disk.
//!
//! What reached the files is what counts: of a trace with *physical* calls those and stdio's, of others (simulated ones,
//! DXT of MPI-IO alone) every call. Failed calls, and what fio has no word for (seeks, names, messages), are left out.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::call::{Call, Layer, Op};
use crate::error::TraceError;
use crate::event::{Event, Target};
use crate::reader::Trace;
use crate::tables::{FileId, Tables};

/// What an iolog has of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Reads, writes and syncs that it has.
    pub written: u64,
    /// Reads and writes that it lacks, as nothing says which bytes of which file they moved.
    pub nowhere: u64,
}

/// Writes `trace` to `file`, which is empty and has the name `path`, as an iolog, in memory that does not grow with its
/// length.
///
/// Requests of all processes stand in one order, that of their starts, with times in microseconds. A noncontiguous access
/// is a request for each of its extents. fio takes names without white space only: an underscore stands for it, and a
/// number follows where another file has that name.
///
/// `progress` is told the number of events that are done, now and then.
///
/// # Errors
/// If the trace cannot be read, or the file cannot be written.
pub fn fio(
    trace: &Trace,
    file: &File,
    path: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<Requests, TraceError> {
    let (only_physical, used) = survey(trace)?;
    let out = BufWriter::new(file);
    let mut log = Log::begin(out, trace.tables(), &used).map_err(TraceError::io(path, "write"))?;
    for (done, event) in (0..).zip(trace.events()) {
        let event = event?;
        if done % super::STEP == 0 {
            progress(done);
        }
        if counts(&event, only_physical) {
            log.put(&event).map_err(TraceError::io(path, "write"))?;
        }
    }
    log.out.flush().map_err(TraceError::io(path, "write"))?;
    Ok(log.requests)
}

/// Whether a call that was made is one of the log, of a trace with or without physical calls.
fn counts(event: &Event, only_physical: bool) -> bool {
    let is_of_files = match event.layer() {
        Layer::Posix | Layer::Stdio => true,
        Layer::MpiIo => !only_physical,
        // Requests to servers need not be contiguous: the calls that caused them say which bytes they moved.
        Layer::Server | Layer::Message | Layer::Hdf5 | Layer::Pnetcdf | Layer::Mark => false,
    };
    is_of_files && event.result >= 0
}

/// Whether there are physical calls; and of each file, whether it is in the log: others were only named, or could not be opened,
/// and fio would make them.
fn survey(trace: &Trace) -> Result<(bool, Vec<bool>), TraceError> {
    let tables = trace.tables();
    let mut only_physical = false;
    let mut used = [vec![false; tables.files.len()], vec![false; tables.files.len()]];
    for event in trace.events() {
        let event = event?;
        only_physical |= event.is_physical() && matches!(event.layer(), Layer::Posix | Layer::Stdio);
        let Some(handle) = event.handle.and_then(|handle| tables.handles.get(handle.index())) else {
            continue;
        };
        for (used, only_physical) in used.iter_mut().zip([false, true]) {
            used[handle.file.index()] |= counts(&event, only_physical);
        }
    }
    let [of_all, of_physical] = used;
    Ok((only_physical, if only_physical { of_physical } else { of_all }))
}

/// Names of the files as fio takes them, different ones for different paths: it would put two files' requests on one.
fn names(tables: &Tables) -> Vec<String> {
    let paths = || tables.files.iter().map(|file| file.path.as_str());
    let mut taken: HashSet<String> =
        paths().filter(|path| !path.contains(char::is_whitespace)).map(str::to_owned).collect();
    let mut renamed: HashMap<&str, String> = HashMap::new();
    for path in paths().filter(|path| path.contains(char::is_whitespace)) {
        renamed.entry(path).or_insert_with(|| {
            let plain = path.replace(char::is_whitespace, "_");
            let numbered = (2_u64..).map(|number| format!("{plain}-{number}"));
            let free = std::iter::once(plain.clone()).chain(numbered).find(|name| !taken.contains(name));
            let name = free.unwrap_or(plain);
            taken.insert(name.clone());
            name
        });
    }
    paths().map(|path| renamed.get(path).map_or(path, String::as_str).to_owned()).collect()
}

struct Log<'a, W> {
    out: W,
    tables: &'a Tables,
    names: Vec<String>,
    /// Handles by which each file is open.
    open: Vec<u32>,
    requests: Requests,
}

impl<'a, W: Write> Log<'a, W> {
    fn begin(mut out: W, tables: &'a Tables, used: &[bool]) -> io::Result<Log<'a, W>> {
        let names = names(tables);
        writeln!(out, "fio version 3 iolog")?;
        for (name, _) in names.iter().zip(used).filter(|(_, used)| **used) {
            writeln!(out, "0 {name} add")?;
        }
        let open = vec![0; names.len()];
        Ok(Log { out, tables, names, open, requests: Requests::default() })
    }

    fn put(&mut self, event: &Event) -> io::Result<()> {
        let Some(handle) = event.handle.and_then(|handle| self.tables.handles.get(handle.index())) else {
            let moves = matches!(event.op(), Op::Read | Op::Write) && event.transferred() > 0;
            self.requests.nowhere += u64::from(moves);
            return Ok(());
        };
        let (file, start_us) = (handle.file, event.start_ns / 1000);
        match event.op() {
            Op::Open => self.open(file, start_us),
            Op::Close => self.close(file, start_us),
            Op::Read => self.put_extents(event, file, "read"),
            Op::Write => self.put_extents(event, file, "write"),
            Op::Sync => {
                let action = if event.call == Call::Fdatasync { "datasync" } else { "sync" };
                self.request(file, start_us, action, 0, 0)
            }
            Op::Seek | Op::View | Op::Metadata | Op::Communicate | Op::Mark => Ok(()),
        }
    }

    fn put_extents(&mut self, event: &Event, file: FileId, action: &str) -> io::Result<()> {
        let (start_us, moved) = (event.start_ns / 1000, event.transferred());
        match event.target {
            Target::Extent { offset } if moved > 0 => self.request(file, start_us, action, offset, moved),
            Target::View { view, position } => {
                let Some(view) = self.tables.views.get(view.index()) else { return Ok(()) };
                for extent in view.extents(position..position.saturating_add(moved)) {
                    // Views lie in files, from 0 on.
                    let offset = u64::try_from(extent.offset).unwrap_or_default();
                    self.request(file, start_us, action, offset, extent.len)?;
                }
                Ok(())
            }
            _ => {
                self.requests.nowhere += u64::from(moved > 0);
                Ok(())
            }
        }
    }

    /// fio has each file open once.
    fn open(&mut self, file: FileId, start_us: u64) -> io::Result<()> {
        self.open[file.index()] += 1;
        if self.open[file.index()] == 1 {
            writeln!(self.out, "{start_us} {} open", self.names[file.index()])?;
        }
        Ok(())
    }

    fn close(&mut self, file: FileId, start_us: u64) -> io::Result<()> {
        let open = &mut self.open[file.index()];
        if *open == 1 {
            writeln!(self.out, "{start_us} {} close", self.names[file.index()])?;
        }
        *open = open.saturating_sub(1);
        Ok(())
    }

    fn request(
        &mut self,
        file: FileId,
        start_us: u64,
        action: &str,
        offset: u64,
        length: u64,
    ) -> io::Result<()> {
        if self.open[file.index()] == 0 {
            self.open(file, start_us)?;
        }
        self.requests.written += 1;
        writeln!(self.out, "{start_us} {} {action} {offset} {length}", self.names[file.index()])
    }
}
