//! Writing a trace.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::block::{SealError, Sealer, TimeRange};
use crate::definitions::{DefinitionsEncoder, Refusal};
use crate::error::TraceError;
use crate::event::{Event, Target};
use crate::format::{
    self, BLOCK_EVENTS_OF_PROCESS, BLOCK_HEADER_LEN, BlockKind, FEW_BLOCK_EVENTS, FILE_HEADER_LEN,
    MAX_BLOCK_EVENTS, MAX_DEFINITIONS_LEN,
};
use crate::index;
use crate::records::by_process::{Encoder, FirstHandles};
use crate::tables::Tables;

/// Writes a trace, event by event, in memory that does not grow with the number of events (but for some 30 bytes a
/// block of 65 536 or more).
///
/// ```no_run
/// # use pio_trace::{Call, Event, Flags, Process, ProcessId, Tables, Target, TraceWriter};
/// let process =
///     Process { rank: Some(0), pid: 4891, host: "n0".into(), command: "venus".into(), start_ns: 0, end_ns: None };
/// let tables = Tables { job: "venus".into(), processes: vec![process], ..Tables::default() };
/// let mut writer = TraceWriter::create("venus.pio".as_ref(), tables)?;
/// writer.push(&Event {
///     call: Call::MpiBarrier,
///     process: ProcessId(0),
///     thread: 0,
///     handle: None,
///     target: Target::None,
///     memory: None,
///     size: 0,
///     result: 0,
///     start_ns: 35_900,
///     elapsed_ns: 1_290,
///     think_ns: 100,
///     used_ns: Some(1_290),
///     flags: Flags::COLLECTIVE,
///     operation: 1,
/// })?;
/// writer.finish()?;
/// # Ok::<(), pio_trace::TraceError>(())
/// ```
#[must_use = "a trace is complete only after `finish`"]
pub struct TraceWriter<W: Write> {
    out: W,
    /// Names the file in errors.
    path: PathBuf,
    /// The file to force to the device at the end, if it is one.
    file: Option<File>,
    tables: Tables,
    tables_touched: bool,
    definitions: DefinitionsEncoder,
    definitions_len: u64,
    first_handles: FirstHandles,
    events: Encoder,
    event_count: u64,
    last_start_ns: u64,
    sealer: Sealer,
    raw: Vec<u8>,
    offset: u64,
    index: Vec<u8>,
    index_count: u32,
    broken: bool,
}

impl TraceWriter<File> {
    /// Creates the file `path`, or replaces it. Until [`TraceWriter::finish`] has returned, readers see a trace that is
    /// cut off.
    pub fn create(path: &Path, tables: Tables) -> Result<TraceWriter<File>, TraceError> {
        let out = File::create(path).map_err(TraceError::io(path, "create the file"))?;
        let file = out.try_clone().map_err(TraceError::io(path, "duplicate the file's handle"))?;
        TraceWriter::start(out, path.to_path_buf(), Some(file), tables)
    }
}

impl<W: Write> TraceWriter<W> {
    /// Writes the trace to `out`, a block at a time.
    pub fn new(out: W, tables: Tables) -> Result<TraceWriter<W>, TraceError> {
        TraceWriter::start(out, PathBuf::from("trace"), None, tables)
    }

    fn start(mut out: W, path: PathBuf, file: Option<File>, tables: Tables) -> Result<Self, TraceError> {
        out.write_all(&format::file_header()).map_err(TraceError::io(&path, "write"))?;
        let sealer = Sealer::new().map_err(TraceError::io(&path, "start zstd"))?;
        Ok(TraceWriter {
            out,
            path,
            file,
            tables,
            tables_touched: true,
            definitions: DefinitionsEncoder::default(),
            definitions_len: 0,
            first_handles: FirstHandles::default(),
            events: Encoder::default(),
            event_count: 0,
            last_start_ns: 0,
            sealer,
            raw: Vec::new(),
            offset: FILE_HEADER_LEN as u64,
            index: Vec::new(),
            index_count: 0,
            broken: false,
        })
    }

    /// What the events refer to.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The tables, to add to. An entry must be added before the first event that refers to it. Entries must not be
    /// changed or removed (the next block would be refused with [`TraceError::TablesChanged`]), but for a process's
    /// `end_ns`, which may become known.
    pub fn tables_mut(&mut self) -> &mut Tables {
        self.tables_touched = true;
        &mut self.tables
    }

    /// Adds an event. Refuses, and leaves the trace as it was, if it starts before its predecessor or refers to
    /// something that is not in the tables. Events of several processes that start together are read in order of process.
    pub fn push(&mut self, event: &Event) -> Result<(), TraceError> {
        if event.start_ns < self.last_start_ns {
            return Err(TraceError::OutOfOrder {
                path: self.path.clone(),
                index: self.event_count,
                start_ns: event.start_ns,
                previous_ns: self.last_start_ns,
            });
        }
        check_ids(event, &self.tables, &self.path)?;
        let of_processes = self.tables.processes.len().saturating_mul(BLOCK_EVENTS_OF_PROCESS);
        if self.events.count() >= of_processes.clamp(FEW_BLOCK_EVENTS, MAX_BLOCK_EVENTS) {
            self.write_events()?;
        }
        self.events.push(event);
        self.last_start_ns = event.start_ns;
        self.event_count += 1;
        Ok(())
    }

    /// Closes the current block: should this process die, readers get all events up to here. Blocks compress best when
    /// they are full, so this is for pauses, not for every event.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.write_events()?;
        self.out.flush().map_err(TraceError::io(&self.path, "write"))
    }

    /// Writes what is left, and the index that makes the trace complete. A file is then forced to its device.
    pub fn finish(mut self) -> Result<(), TraceError> {
        self.write_events()?;
        let index_offset = self.offset;
        let raw = std::mem::take(&mut self.index);
        self.write_block(BlockKind::Index, "the index", &raw, self.index_count, TimeRange::default())?;
        self.out.write_all(&format::trailer(index_offset)).map_err(TraceError::io(&self.path, "write"))?;
        self.out.flush().map_err(TraceError::io(&self.path, "write"))?;
        match &self.file {
            Some(file) => file.sync_all().map_err(TraceError::io(&self.path, "force to the device")),
            None => Ok(()),
        }
    }

    /// Writes the events so far, after the definitions that they need.
    fn write_events(&mut self) -> Result<(), TraceError> {
        self.write_definitions()?;
        if self.events.count() == 0 {
            return Ok(());
        }
        let (times, count) = (self.events.times(), self.events.count() as u32);
        let mut raw = std::mem::take(&mut self.raw);
        raw.clear();
        self.events.drain_to(&self.tables, &self.first_handles, &mut raw);
        let written = self.write_block(BlockKind::ByProcess, "a block of events", &raw, count, times);
        self.raw = raw;
        written
    }

    fn write_definitions(&mut self) -> Result<(), TraceError> {
        if !self.tables_touched {
            return Ok(());
        }
        let payloads = self.definitions.encode_new(&self.tables).map_err(|refusal| self.refused(refusal))?;
        self.tables_touched = false;
        self.first_handles.update(&self.tables);
        for payload in payloads {
            self.definitions_len += payload.raw.len() as u64;
            if self.definitions_len > MAX_DEFINITIONS_LEN {
                self.broken = true;
                return Err(self.too_large("the tables", self.definitions_len, MAX_DEFINITIONS_LEN));
            }
            let (raw, count) = (&payload.raw, payload.count);
            self.write_block(BlockKind::Definitions, "a definition", raw, count, TimeRange::default())?;
        }
        Ok(())
    }

    fn refused(&self, refusal: Refusal) -> TraceError {
        let path = self.path.clone();
        match refusal {
            Refusal::Changed(what) => TraceError::TablesChanged { path, what },
            Refusal::Unknown { what, id, known } => TraceError::Unknown { path, what, id, known },
        }
    }

    fn too_large(&self, what: &'static str, bytes: u64, limit: u64) -> TraceError {
        TraceError::TooLarge { path: self.path.clone(), what, bytes, limit }
    }

    fn write_block(
        &mut self,
        kind: BlockKind,
        what: &'static str,
        raw: &[u8],
        count: u32,
        times: TimeRange,
    ) -> Result<(), TraceError> {
        if self.broken {
            return Err(TraceError::Broken { path: self.path.clone() });
        }
        // Taken back at the end: a block half written is the last one that readers may find.
        self.broken = true;
        let (header, block) = match self.sealer.seal(kind, raw, count, times) {
            Ok(sealed) => sealed,
            Err(SealError::TooLarge(bytes)) => {
                return Err(self.too_large(what, bytes, format::MAX_RAW_LEN as u64));
            }
            Err(SealError::Compression(error)) => return Err(TraceError::io(&self.path, "compress")(error)),
        };
        self.out.write_all(block).map_err(TraceError::io(&self.path, "write"))?;
        index::put_entry(&mut self.index, &header);
        self.index_count += 1;
        self.offset += BLOCK_HEADER_LEN as u64 + u64::from(header.stored_len);
        self.broken = false;
        Ok(())
    }
}

/// Whether the tables have all that an event refers to.
fn check_ids(event: &Event, tables: &Tables, path: &Path) -> Result<(), TraceError> {
    let check = |what, id: Option<u32>, known: usize| match id {
        Some(id) if id as usize >= known => {
            Err(TraceError::Unknown { path: path.to_path_buf(), what, id, known })
        }
        _ => Ok(()),
    };
    let view = match event.target {
        Target::View { view, .. } => Some(view.0),
        _ => None,
    };
    let (named, other) = match event.target {
        Target::Name { file, other } => (Some(file.0), other.map(|other| other.0)),
        _ => (None, None),
    };
    let mark = match event.target {
        Target::Mark { name, .. } => Some(name.0),
        _ => None,
    };
    check("process", Some(event.process.0), tables.processes.len())?;
    check("handle", event.handle.map(|id| id.0), tables.handles.len())?;
    check("view", view, tables.views.len())?;
    check("file", named, tables.files.len())?;
    check("file", other, tables.files.len())?;
    check("name of a mark", mark, tables.mark_names.len())?;
    check("datatype", event.memory.map(|id| id.0), tables.datatypes.len())
}
