//! Runs: events put aside on a disk, to be merged.
//!
//! Whoever has the events of many processes, each in order of start, but not the memory to look at all processes at once,
//! merges some of them at a time into a *run*, and then the runs. A run takes as little room as in a trace.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::block::{self, SealError, Sealer};
use crate::block_events::BlockEvents;
use crate::error::TraceError;
use crate::event::Event;
use crate::format::{BLOCK_HEADER_LEN, BlockHeader, BlockKind};
use crate::records::by_process::{self, Encoder, FirstHandles};
use crate::tables::Tables;

/// Events in a block. Of each run, so many are in memory while the runs are merged.
const BLOCK_EVENTS: usize = 1 << 12;

/// Events in runs: those of a run are added in order of start.
pub struct Runs {
    file: File,
    /// Names it in errors.
    path: PathBuf,
    len: u64,
    /// Blocks of each run that is complete, and of the one that is added to.
    runs: Vec<Vec<Stored>>,
    first_handles: FirstHandles,
    encoder: Encoder,
    sealer: Sealer,
    raw: Vec<u8>,
}

/// A block in the file.
struct Stored {
    offset: u64,
    header: BlockHeader,
}

impl Runs {
    /// No events yet. They go to `file`, which is empty and open for reading and writing. `name` stands for its path in errors.
    ///
    /// # Errors
    /// If there is no memory for compressing.
    pub fn new(file: File, name: &Path) -> Result<Runs, TraceError> {
        let sealer = Sealer::new().map_err(TraceError::io(name, "start zstd"))?;
        Ok(Runs {
            file,
            path: name.to_path_buf(),
            len: 0,
            runs: vec![Vec::new()],
            first_handles: FirstHandles::default(),
            encoder: Encoder::default(),
            sealer,
            raw: Vec::new(),
        })
    }

    /// Adds an event to the run, which refers to nothing that is not in `tables`. It starts no earlier than the last one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(&mut self, event: &Event, tables: &Tables) -> Result<(), TraceError> {
        self.encoder.push(event);
        if self.encoder.count() >= BLOCK_EVENTS { self.write(tables) } else { Ok(()) }
    }

    /// Ends the run: what is added now begins another.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn end_run(&mut self, tables: &Tables) -> Result<(), TraceError> {
        self.write(tables)?;
        self.runs.push(Vec::new());
        Ok(())
    }

    /// All events in order of start; those that start together in order of the runs. All that they refer to must be in the
    /// `tables` that [`Merged::next`] is given.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn merge(mut self, tables: &Tables) -> Result<Merged, TraceError> {
        self.end_run(tables)?;
        self.first_handles.update(tables);
        let runs = std::mem::take(&mut self.runs);
        let cursors = runs.into_iter().map(|blocks| Cursor {
            blocks: blocks.into_iter(),
            events: Vec::new().into_iter(),
            head: None,
        });
        let mut merged = Merged { stored: self, cursors: cursors.collect(), heads: BinaryHeap::new() };
        for index in 0..merged.cursors.len() {
            merged.advance(index, tables)?;
        }
        Ok(merged)
    }

    fn write(&mut self, tables: &Tables) -> Result<(), TraceError> {
        if self.encoder.count() == 0 {
            return Ok(());
        }
        self.first_handles.update(tables);
        let (times, count) = (self.encoder.times(), self.encoder.count() as u32);
        self.raw.clear();
        self.encoder.drain_to(tables, &self.first_handles, &mut self.raw);
        let (header, bytes) =
            self.sealer.seal(BlockKind::ByProcess, &self.raw, count, times).map_err(|error| match error {
                SealError::TooLarge(_) => unreachable!("4096 events take less than 64 MiB"),
                SealError::Compression(error) => TraceError::io(&self.path, "compress")(error),
            })?;
        self.file.write_all_at(bytes, self.len).map_err(TraceError::io(&self.path, "put events aside in"))?;
        if let Some(run) = self.runs.last_mut() {
            run.push(Stored { offset: self.len, header });
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn read(&self, block: &Stored, tables: &Tables) -> Result<Vec<Event>, TraceError> {
        let mut bytes = vec![0; block.header.stored_len as usize];
        self.file
            .read_exact_at(&mut bytes, block.offset + BLOCK_HEADER_LEN as u64)
            .map_err(TraceError::io(&self.path, "read events that were put aside in"))?;
        let damaged =
            |expected| TraceError::Damaged { path: self.path.clone(), offset: block.offset, expected };
        block::check_payload(&block.header, &bytes).map_err(damaged)?;
        let raw = block::unseal(&block.header, &bytes).map_err(damaged)?;
        let mut events = BlockEvents::default();
        by_process::decode(&raw, &block.header, tables, &self.first_handles, &mut events).map_err(damaged)?;
        Ok(events.into_order())
    }
}

/// The events of [`Runs`], merged.
#[must_use = "the events are taken by `next`"]
pub struct Merged {
    stored: Runs,
    cursors: Vec<Cursor>,
    /// Start of each run's next event, and the run.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
}

/// Where in a run the merge is.
struct Cursor {
    blocks: std::vec::IntoIter<Stored>,
    events: std::vec::IntoIter<Event>,
    head: Option<Event>,
}

impl Merged {
    /// The next event.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn next(&mut self, tables: &Tables) -> Result<Option<Event>, TraceError> {
        let Some(Reverse((_, index))) = self.heads.pop() else { return Ok(None) };
        let event = self.cursors[index].head.take();
        self.advance(index, tables)?;
        Ok(event)
    }

    fn advance(&mut self, index: usize, tables: &Tables) -> Result<(), TraceError> {
        let cursor = &mut self.cursors[index];
        if cursor.events.len() == 0
            && let Some(block) = cursor.blocks.next()
        {
            cursor.events = self.stored.read(&block, tables)?.into_iter();
        }
        cursor.head = cursor.events.next();
        if let Some(event) = &cursor.head {
            self.heads.push(Reverse((event.start_ns, index)));
        }
        Ok(())
    }
}
