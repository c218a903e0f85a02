//! Reading a trace.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::block;
use crate::block_events::BlockEvents;
use crate::definitions;
use crate::error::{Damage, TraceError};
use crate::event::Event;
use crate::format::{
    self, BLOCK_HEADER_LEN, BlockHeader, BlockKind, FILE_HEADER_LEN, HeaderError, MAX_DEFINITIONS_LEN,
    TRAILER_LEN, VERSION,
};
use crate::index::{self, Located};
use crate::records::by_process::FirstHandles;
use crate::records::{by_process, in_turn};
use crate::source::Source;
use crate::tables::Tables;

/// A trace, open for reading.
///
/// Holds the tables and a list of the blocks in memory; events are read and decoded a block at a time, from as many
/// threads as wanted. All ids in the events that it gives are in the tables.
///
/// A file that is cut or damaged opens too, if its header is whole: it then gives the events that are whole, and
/// [`Trace::damage`] says what is missing. All checksums are compared when the file is opened, so that everybody who uses
/// the trace uses the same part of it: of a file whose index is whole all blocks but the damaged ones, of another those
/// before the damage.
pub struct Trace {
    source: Source,
    path: PathBuf,
    tables: Tables,
    first_handles: FirstHandles,
    blocks: Vec<Block>,
    event_count: u64,
    duration_ns: u64,
    damage: Option<Damage>,
}

/// What is known of a block of events without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    located: Located,
}

impl Block {
    /// How many events it has: 1 to 524 288.
    pub fn event_count(&self) -> usize {
        self.located.header.count as usize
    }

    /// Start of its first event, nanoseconds since the start of the job.
    pub fn first_start_ns(&self) -> u64 {
        self.located.header.first_start_ns
    }

    /// Start of its last event.
    pub fn last_start_ns(&self) -> u64 {
        self.located.header.last_start_ns
    }

    /// Latest return of any of its events.
    pub fn end_ns(&self) -> u64 {
        self.located.header.end_ns
    }

    /// Bytes it takes in the file.
    pub fn file_bytes(&self) -> u64 {
        self.located.end() - self.located.offset
    }
}

/// Why reading a block failed: the system, or the bytes.
enum ReadError {
    System(std::io::Error),
    Expected(String),
}

impl From<String> for ReadError {
    fn from(expected: String) -> ReadError {
        ReadError::Expected(expected)
    }
}

impl Trace {
    /// Opens the file `path`.
    pub fn open(path: &Path) -> Result<Trace, TraceError> {
        let file = File::open(path).map_err(TraceError::io(path, "open"))?;
        let source = Source::file(file).map_err(TraceError::io(path, "ask for the length"))?;
        Trace::read(source, path.to_path_buf())
    }

    /// Opens a file that is open already, whatever its name (a temporary one has none). `name` stands for the path in
    /// errors.
    pub fn from_file(file: File, name: &Path) -> Result<Trace, TraceError> {
        let source = Source::file(file).map_err(TraceError::io(name, "ask for the length"))?;
        Trace::read(source, name.to_path_buf())
    }

    /// Opens a trace in memory. `name` stands for the path in errors.
    pub fn from_bytes(bytes: Vec<u8>, name: &str) -> Result<Trace, TraceError> {
        Trace::read(Source::Memory(bytes), PathBuf::from(name))
    }

    /// The path it was opened with.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the events refer to.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// How many events there are.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    /// When the last call returned or the last process ended, nanoseconds since the start of the job.
    pub fn duration_ns(&self) -> u64 {
        self.duration_ns
    }

    /// What is missing, if the file is not whole.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// The blocks of events, in order of time.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The events of block `index` of [`Trace::blocks`], in order of start; those that start together in order of process.
    /// Works on any thread.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    pub fn block(&self, index: usize) -> Result<Vec<Event>, TraceError> {
        let mut events = BlockEvents::default();
        self.read_block(index, &mut events)?;
        Ok(events.into_order())
    }

    /// Makes `events` those of a block. After an error there are none.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    pub fn read_block(&self, index: usize, events: &mut BlockEvents) -> Result<(), TraceError> {
        events.clear();
        let located = &self.blocks[index].located;
        let raw = read_block(&self.source, located).map_err(|e| self.block_error(located, e))?;
        let decoded = match located.header.kind {
            BlockKind::ByProcess => {
                by_process::decode(&raw, &located.header, &self.tables, &self.first_handles, events)
            }
            _ => in_turn::decode(&raw, &located.header, &self.tables, &mut events.events),
        };
        decoded.map_err(|expected| {
            events.clear();
            self.block_error(located, expected.into())
        })
    }

    /// All events, in order of start. Ends after the first error.
    pub fn events(&self) -> Events<'_> {
        Events { trace: self, next_block: 0, events: Vec::new().into_iter() }
    }

    fn block_error(&self, block: &Located, error: ReadError) -> TraceError {
        match error {
            ReadError::System(error) => TraceError::io(&self.path, "read")(error),
            ReadError::Expected(expected) => {
                TraceError::Damaged { path: self.path.clone(), offset: block.offset, expected }
            }
        }
    }

    fn read(source: Source, path: PathBuf) -> Result<Trace, TraceError> {
        check_file_header(&source, &path)?;
        let found = match Contents::from_index(&source) {
            Ok(contents) => Ok(contents),
            Err(ReadError::Expected(_)) => Contents::from_scan(&source),
            Err(ReadError::System(error)) => Err(error),
        };
        let contents = found.map_err(TraceError::io(&path, "read"))?;
        let mut trace = Trace {
            source,
            path,
            tables: Tables::default(),
            first_handles: FirstHandles::default(),
            blocks: Vec::new(),
            event_count: 0,
            duration_ns: 0,
            damage: None,
        };
        trace.load(contents)?;
        Ok(trace)
    }

    /// Reads the tables, and takes note of the blocks of events that are whole and of what is not.
    fn load(&mut self, contents: Contents) -> Result<(), TraceError> {
        let Contents { blocks, damage, is_checked } = contents;
        let mut definitions_len = 0;
        let mut last_start_ns = 0;
        let mut stop = None;
        let mut lost = Lost::default();
        for block in &blocks {
            let header = &block.header;
            match header.kind {
                BlockKind::InTurn | BlockKind::ByProcess => {
                    if header.first_start_ns < last_start_ns {
                        stop = Some((block.offset, "blocks in order of time".to_owned()));
                        break;
                    }
                    last_start_ns = header.last_start_ns;
                    self.duration_ns = self.duration_ns.max(header.end_ns);
                    match if is_checked { Ok(()) } else { check_block(&self.source, block) } {
                        Ok(()) => {
                            self.event_count += u64::from(header.count);
                            self.blocks.push(Block { located: *block });
                        }
                        Err(ReadError::Expected(expected)) => lost.add(block, expected),
                        Err(error) => return Err(self.block_error(block, error)),
                    }
                }
                BlockKind::Definitions | BlockKind::Index => {
                    definitions_len += u64::from(header.raw_len);
                    match self.load_definitions(block, definitions_len) {
                        Ok(()) => {}
                        // What follows refers to what they would have defined.
                        Err(ReadError::Expected(expected)) => {
                            stop = Some((block.offset, expected));
                            break;
                        }
                        Err(error) => return Err(self.block_error(block, error)),
                    }
                }
            }
        }
        self.first_handles.update(&self.tables);
        let ends = self.tables.processes.iter().filter_map(|process| process.end_ns);
        self.duration_ns = ends.fold(self.duration_ns, u64::max);
        self.damage = match (stop.or(damage), lost.first) {
            (Some((offset, expected)), _) => Some(Damage {
                offset,
                expected,
                events_saved: self.event_count,
                events_lost: None,
                bytes_lost: self.source.len().saturating_sub(offset),
            }),
            (None, Some((offset, expected))) => Some(Damage {
                offset,
                expected,
                events_saved: self.event_count,
                events_lost: Some(lost.events),
                bytes_lost: lost.bytes,
            }),
            (None, None) => None,
        };
        Ok(())
    }

    fn load_definitions(&mut self, block: &Located, definitions_len: u64) -> Result<(), ReadError> {
        if definitions_len > MAX_DEFINITIONS_LEN {
            return Err(ReadError::Expected(format!("at most {MAX_DEFINITIONS_LEN} bytes of definitions")));
        }
        let raw = read_block(&self.source, block)?;
        Ok(definitions::decode(&raw, block.header.count, &mut self.tables)?)
    }
}

/// The events of a trace, in order of start; see [`Trace::events`].
pub struct Events<'a> {
    trace: &'a Trace,
    next_block: usize,
    events: std::vec::IntoIter<Event>,
}

impl Iterator for Events<'_> {
    type Item = Result<Event, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.events.next() {
                return Some(Ok(event));
            }
            if self.next_block >= self.trace.blocks.len() {
                return None;
            }
            match self.trace.block(self.next_block) {
                Ok(events) => {
                    self.events = events.into_iter();
                    self.next_block += 1;
                }
                Err(error) => {
                    self.next_block = usize::MAX;
                    return Some(Err(error));
                }
            }
        }
    }
}

fn check_file_header(source: &Source, path: &Path) -> Result<(), TraceError> {
    let bytes = source.read(0, FILE_HEADER_LEN).map_err(TraceError::io(path, "read"))?;
    format::check_file_header(&bytes).map_err(|error| {
        let path = path.to_path_buf();
        match error {
            HeaderError::Magic => TraceError::NotATrace { path, found: describe(&bytes) },
            HeaderError::Version(version) => TraceError::TooNew { path, version, known: VERSION },
            HeaderError::Damaged(expected) => {
                TraceError::Damaged { path, offset: 0, expected: expected.into() }
            }
        }
    })
}

/// The first bytes of a file that is no trace, as people can read them.
fn describe(bytes: &[u8]) -> String {
    match bytes.get(..8).unwrap_or(bytes) {
        [] => "an empty file".into(),
        start => format!("'{}'", start.escape_ascii()),
    }
}

/// The blocks of definitions and events of a file, and where it stops being readable.
struct Contents {
    blocks: Vec<Located>,
    damage: Option<(u64, String)>,
    /// Whether the blocks were compared with their checksums.
    is_checked: bool,
}

/// Blocks of events that the index names and that are not whole.
#[derive(Default)]
struct Lost {
    /// Offset of the first, and what was expected there.
    first: Option<(u64, String)>,
    events: u64,
    bytes: u64,
}

impl Lost {
    fn add(&mut self, block: &Located, expected: String) {
        self.first.get_or_insert((block.offset, expected));
        self.events += u64::from(block.header.count);
        self.bytes = self.bytes.saturating_add(block.end() - block.offset);
    }
}

impl Contents {
    /// What the index says.
    fn from_index(source: &Source) -> Result<Contents, ReadError> {
        let trailer_offset =
            source.len().checked_sub(TRAILER_LEN as u64).ok_or_else(|| "a trailer".to_owned())?;
        let trailer = source.read(trailer_offset, TRAILER_LEN).map_err(ReadError::System)?;
        let index_offset = trailer
            .first_chunk()
            .and_then(format::index_offset)
            .filter(|offset| *offset >= FILE_HEADER_LEN as u64 && *offset < trailer_offset)
            .ok_or_else(|| "a trailer".to_owned())?;
        let index = Located { offset: index_offset, header: read_header(source, index_offset)? };
        if index.header.kind != BlockKind::Index || index.end() != trailer_offset {
            return Err(ReadError::Expected("an index between the blocks and the trailer".into()));
        }
        let raw = read_block(source, &index)?;
        let blocks = index::decode(&raw, index.header.count, index_offset)?;
        Ok(Contents { blocks, damage: None, is_checked: false })
    }

    /// What is there, whole block by whole block.
    fn from_scan(source: &Source) -> std::io::Result<Contents> {
        let mut blocks = Vec::new();
        let mut offset = FILE_HEADER_LEN as u64;
        let expected = loop {
            if offset == source.len() {
                break "an index: the trace was not finished".to_owned();
            }
            match scan_block(source, offset) {
                Ok(block) if block.header.kind == BlockKind::Index => {
                    // All blocks are there, but the index or the trailer behind it could not be used.
                    break "an index and a trailer that fit the blocks".to_owned();
                }
                Ok(block) => {
                    offset = block.end();
                    blocks.push(block);
                }
                Err(ReadError::Expected(expected)) => break expected,
                Err(ReadError::System(error)) => return Err(error),
            }
        };
        Ok(Contents { blocks, damage: Some((offset, expected)), is_checked: true })
    }
}

/// Reads a block's header and makes sure that the whole block is there.
fn scan_block(source: &Source, offset: u64) -> Result<Located, ReadError> {
    let block = Located { offset, header: read_header(source, offset)? };
    let payload_offset = offset + BLOCK_HEADER_LEN as u64;
    let stored = source.read(payload_offset, block.header.stored_len as usize).map_err(ReadError::System)?;
    block::check_payload(&block.header, &stored)?;
    Ok(block)
}

fn read_header(source: &Source, offset: u64) -> Result<BlockHeader, ReadError> {
    let bytes = source.read(offset, BLOCK_HEADER_LEN).map_err(ReadError::System)?;
    let bytes = bytes.first_chunk().ok_or_else(|| {
        format!("a block header of {BLOCK_HEADER_LEN} bytes, found {} before the end", bytes.len())
    })?;
    Ok(BlockHeader::from_bytes(bytes)?)
}

/// The decompressed payload of a block that the index names.
fn read_block(source: &Source, block: &Located) -> Result<Vec<u8>, ReadError> {
    let bytes = stored(source, block)?;
    Ok(block::unseal(&block.header, &bytes[BLOCK_HEADER_LEN..])?)
}

/// Whether a block that the index names is there and whole.
fn check_block(source: &Source, block: &Located) -> Result<(), ReadError> {
    stored(source, block).map(|_| ())
}

/// Header and payload of a block that the index names, both as expected.
fn stored(source: &Source, block: &Located) -> Result<Vec<u8>, ReadError> {
    let len = BLOCK_HEADER_LEN + block.header.stored_len as usize;
    let bytes = source.read(block.offset, len).map_err(ReadError::System)?;
    let Some((header, stored)) = bytes.split_first_chunk() else {
        return Err(ReadError::Expected("a block, found the end of the file".into()));
    };
    if BlockHeader::from_bytes(header)? != block.header {
        return Err(ReadError::Expected("the block that the index names".into()));
    }
    block::check_payload(&block.header, stored)?;
    Ok(bytes)
}
