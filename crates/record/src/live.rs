//! What a job does while it runs: reads of its spools what has been added since the last look.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use pio_trace::{Call, Flags, Layer, Op};

use crate::members;
use crate::spool::{self, Chunk, Spool};

/// Calls and bytes, of the job so far or of a while of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of all kinds that the program made.
    pub calls: u64,
    /// Reads among them.
    pub reads: u64,
    /// Bytes that these moved.
    pub read_bytes: u64,
    /// Calls that wrote, so far.
    pub writes: u64,
    /// Bytes that these moved.
    pub written_bytes: u64,
    /// Opens, closes, and all else that moves no data.
    pub others: u64,
    /// Time inside the calls, of all threads together, ns.
    pub elapsed_ns: u64,
}

/// A look at a running job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// Processes seen so far.
    pub processes: usize,
    /// Since the job began.
    pub total: Counts,
    /// Since the last look.
    pub since_last: Counts,
    /// How long ago that was, seconds.
    pub since_last_s: f64,
}

impl Look {
    /// So much of what has been counted since the last look as a second saw, on average.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.since_last_s > 0.0 { count as f64 / self.since_last_s } else { 0.0 }
    }
}

/// How often a hole in a spool is looked at before it counts as one that stays.
const LOOKS_AT_HOLES: u32 = 16;

/// Follows the spools in a folder.
#[derive(Debug)]
pub struct Watch {
    folders: Vec<PathBuf>,
    spools: HashMap<PathBuf, Followed>,
    total: Counts,
    looked: Instant,
}

#[derive(Debug, Default)]
struct Followed {
    /// Up to here chunks are known.
    known_to: u64,
    /// What may become a chunk, and how often it was not.
    holes: Vec<(u64, u32)>,
    chunks: Vec<u64>,
    /// Records counted, by thread, kind and number of the chunk: a chunk may move.
    counted: HashMap<(u32, bool, u32), usize>,
}

impl Watch {
    /// Of the job whose spools are in `folder`.
    pub fn new(folder: &Path) -> Watch {
        Watch::of(vec![folder.to_path_buf()])
    }

    /// Of the job whose spools are in these folders.
    pub(crate) fn of(folders: Vec<PathBuf>) -> Watch {
        Watch { folders, spools: HashMap::new(), total: Counts::default(), looked: Instant::now() }
    }

    /// Counts what has been added.
    pub fn look(&mut self) -> io::Result<Look> {
        let before = self.total;
        for folder in &self.folders {
            for path in members::files_of(folder, "spool")? {
                if let Ok(spool) = Spool::open(&path) {
                    self.spools.entry(path).or_default().follow(&spool, &mut self.total)?;
                }
            }
        }
        let looked = std::mem::replace(&mut self.looked, Instant::now());
        Ok(Look {
            processes: self.spools.len(),
            total: self.total,
            since_last: self.total.since(&before),
            since_last_s: self.looked.duration_since(looked).as_secs_f64(),
        })
    }
}

impl Followed {
    fn follow(&mut self, spool: &Spool, total: &mut Counts) -> io::Result<()> {
        let found = spool.places(self.known_to)?;
        self.known_to = found.end;
        self.holes.extend(found.holes.into_iter().map(|offset| (offset, 0)));
        self.chunks.extend(found.chunks);
        let mut holes = Vec::new();
        for (offset, looks) in self.holes.drain(..) {
            // A hole of many steps becomes one chunk: its other steps go when they have been looked at often enough.
            match spool.chunk(offset)? {
                Some(_) => self.chunks.push(offset),
                None if looks < LOOKS_AT_HOLES => holes.push((offset, looks + 1)),
                None => {}
            }
        }
        self.holes = holes;
        let mut i = 0;
        while i < self.chunks.len() {
            match self.count(spool, self.chunks[i], total)? {
                Stays::Open => i += 1,
                Stays::Closed => {
                    self.chunks.swap_remove(i);
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, spool: &Spool, offset: u64, total: &mut Counts) -> io::Result<Stays> {
        let Some(chunk) = spool.chunk(offset)? else { return Ok(Stays::Open) };
        let bytes = spool.read_chunk(chunk)?;
        // The thread may have emptied it while we read.
        if spool.chunk(offset)?.is_none_or(|now| now.sequence != chunk.sequence) {
            return Ok(Stays::Open);
        }
        let key = |sequence| (chunk.thread, chunk.is_short, sequence);
        let counted = self.counted.entry(key(chunk.sequence)).or_default();
        for (record, _) in spool::records(&bytes).skip(*counted) {
            let flags = Flags::from_bits(record.flags.into());
            let call = Call::from_number(record.call);
            // A phase may go on for long: its thread's calls are counted meanwhile.
            let is_mark = call.is_some_and(|call| call.layer() == Layer::Mark);
            if flags.contains(Flags::UNFINISHED) && !is_mark {
                return Ok(Stays::Open); // its record will change, and others follow it
            }
            *counted += 1;
            if let Some(call) = call
                && !is_mark
                && call.layer() != Layer::Message
                && !flags.contains(Flags::PHYSICAL)
            {
                total.add(call, record.result, record.elapsed_ns);
            }
        }
        Ok(match self.is_left_behind(&chunk) {
            true => Stays::Closed,
            false => Stays::Open,
        })
    }

    /// Whether its thread writes to a later chunk by now.
    fn is_left_behind(&self, chunk: &Chunk) -> bool {
        self.counted.contains_key(&(chunk.thread, chunk.is_short, chunk.sequence.wrapping_add(1)))
    }
}

enum Stays {
    Open,
    Closed,
}

impl Counts {
    fn add(&mut self, call: Call, result: i64, elapsed_ns: u64) {
        let bytes = u64::try_from(result).unwrap_or(0);
        self.calls += 1;
        self.elapsed_ns = self.elapsed_ns.saturating_add(elapsed_ns);
        match call.op() {
            Op::Read => {
                self.reads += 1;
                self.read_bytes = self.read_bytes.saturating_add(bytes);
            }
            Op::Write => {
                self.writes += 1;
                self.written_bytes = self.written_bytes.saturating_add(bytes);
            }
            _ => self.others += 1,
        }
    }

    fn since(&self, before: &Counts) -> Counts {
        Counts {
            calls: self.calls - before.calls,
            reads: self.reads - before.reads,
            read_bytes: self.read_bytes - before.read_bytes,
            writes: self.writes - before.writes,
            written_bytes: self.written_bytes - before.written_bytes,
            others: self.others - before.others,
            elapsed_ns: self.elapsed_ns - before.elapsed_ns,
        }
    }
}
