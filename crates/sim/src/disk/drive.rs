//! A drive at work: one request at a time, while it reads ahead or writes out what it holds.
//!
//! Everything that a drive does between two requests follows from where its arm was left, so nothing needs an event: a
//! request first lets the time since the last one pass.

mod read_ahead;
#[cfg(test)]
mod tests;

use pio_machine::Duration;
use pio_machine::disk::{Drive, Watermark};
use pio_plan::Direction;

use super::arm::{Arm, Pass};
use super::geometry::Geometry;
use super::request::{DiskError, Outcome, Request, Served};
use super::segments::{Found, Kind, Segments};
use crate::kernel::Time;

/// A drive that remembers where its arm is and what its buffer holds.
#[derive(Clone, Debug)]
pub struct DriveModel {
    drive: Drive,
    geometry: Geometry,
    arm: Arm,
    segments: Segments,
    background: Background,
    /// What the last request was.
    last: Direction,
    /// Used in each request, kept for its memory.
    passes: Vec<Pass>,
}

/// What the arm does, or last did, without being waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Background {
    Nothing,
    /// Reads on: at least to `least` once begun, at most to `limit`.
    ReadAhead {
        segment: usize,
        least: u64,
        limit: u64,
    },
    /// Writes out the end of a segment, which nothing interrupts.
    WriteOut {
        segment: usize,
    },
}

/// Where data come from that are to be written: one block after the other over the bus.
#[derive(Clone, Copy)]
struct Supply {
    start: Time,
    block: Duration,
    /// The arm is not there before.
    least: Time,
}

/// How a write gets at the bus and the arm.
struct WritePhases {
    /// When the arm may move.
    arm: Time,
    /// When the bus is there for its data.
    bus: Time,
    /// To let go of the bus when the data are in the buffer.
    disconnect: Duration,
    /// To come back to it when they are on the surface.
    reselect: Duration,
}

impl DriveModel {
    /// A drive with nothing in its buffer and its arm at the first cylinder.
    pub fn new(drive: &Drive) -> DriveModel {
        DriveModel {
            drive: drive.clone(),
            geometry: Geometry::new(drive),
            arm: Arm::new(&drive.mechanics),
            segments: Segments::new(&drive.buffer),
            background: Background::Nothing,
            last: Direction::Read,
            passes: Vec::new(),
        }
    }

    /// How many blocks it holds.
    pub fn blocks(&self) -> u64 {
        self.geometry.blocks()
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u32 {
        self.drive.block_bytes
    }

    /// The cylinder of a block, which is one of the drive.
    pub fn cylinder(&self, block: u64) -> u32 {
        self.geometry.run(block, 1).track.cylinder
    }

    /// The cylinder where the arm is.
    pub fn arm_cylinder(&self) -> u32 {
        self.arm.track.cylinder
    }

    /// Serves a request that comes at `now`, which is not before the last one was done.
    ///
    /// # Errors
    /// If the drive has no such blocks.
    pub fn serve(&mut self, now: Time, request: Request) -> Result<Served, DiskError> {
        let end = request.block.checked_add(request.blocks).filter(|end| *end <= self.blocks());
        if end.is_none() || request.blocks == 0 {
            return Err(DiskError::NoSuchBlocks { request, blocks: self.blocks() });
        }
        let begin = now + self.drive.overheads.request;
        self.let_pass(begin);
        let served = match request.direction {
            Direction::Read => self.read(begin, request),
            Direction::Write => self.write(begin, request),
        };
        self.last = request.direction;
        Ok(served)
    }

    fn read(&mut self, now: Time, request: Request) -> Served {
        let buffer = self.drive.buffer;
        let (block, blocks) = (request.block, request.blocks);
        let active = self.read_ahead_segment();
        let found = if buffer.caches {
            self.segments.find(block, blocks, buffer.read_hits_on_writes, active, buffer.almost_hits)
        } else {
            Found::Nothing
        };
        match found {
            Found::Whole(segment) => self.read_hit(now, request, segment),
            Found::Part(segment) => self.read_partly(now, request, segment),
            Found::Nothing => self.read_miss(now, request),
        }
    }

    fn read_hit(&mut self, now: Time, request: Request, segment: usize) -> Served {
        let (overheads, after) = (self.drive.overheads, self.after());
        let waits = self.is_writing_out(now) && !self.drive.buffer.sneaky_hits.0;
        let start = if waits {
            (now + overheads.read_miss[after] + overheads.read_disconnect[after]).max(self.arm.free)
                + overheads.reselect
        } else {
            now + overheads.read_hit[after]
        };
        if self.read_ahead_segment() != Some(segment) {
            self.stop_read_ahead(now);
        }
        self.segments.touch(segment);
        let continues = self.read_ahead_segment().is_some();
        if continues || (self.drive.buffer.read_ahead_on_hit && self.background == Background::Nothing) {
            if !continues {
                self.arm.free = self.arm.free.max(now + overheads.read_miss[after]);
            }
            self.read_ahead(segment, request);
        }
        let sent =
            start + overheads.data_preparation + self.drive.bus_block.read.saturating_mul(request.blocks);
        Served { done: sent + overheads.read_completion, outcome: Outcome::Hit }
    }

    fn read_partly(&mut self, now: Time, request: Request, segment: usize) -> Served {
        let (overheads, after) = (self.drive.overheads, self.after());
        let held = self.segments.get(segment).end - request.block;
        let continues = self.read_ahead_segment() == Some(segment);
        let waits = self.is_writing_out(now) && !self.drive.buffer.sneaky_hits.1;
        if !continues {
            self.stop_read_ahead(now);
            self.arm.free = self.arm.free.max(now + overheads.read_miss[after]);
        }
        let rest = request.blocks - held;
        self.access(request.block + held, rest, Direction::Read, !continues, None);
        let enough =
            held > 0 && (self.drive.buffer.partial_transfer || held >= self.watermark(request.blocks));
        let start = if enough && !waits {
            now + overheads.read_hit[after]
        } else {
            self.reconnection(
                now + overheads.read_miss[after] + overheads.read_disconnect[after],
                request,
                held,
            )
        };
        let done = self.send(start + overheads.data_preparation, held);
        self.segments.touch(segment);
        self.segments.extend(segment, request.block + request.blocks);
        self.read_ahead(segment, request);
        Served { done: done + overheads.read_completion, outcome: Outcome::PartialHit }
    }

    fn read_miss(&mut self, now: Time, request: Request) -> Served {
        let (overheads, after) = (self.drive.overheads, self.after());
        self.stop_read_ahead(now);
        let apart = self.drive.buffer.separate_write_segment && self.drive.buffer.segments > 1;
        let segment = self.segments.take(request.block, Kind::Read, |index| !apart || index > 0);
        self.arm.free = self.arm.free.max(now + overheads.read_miss[after]);
        self.access(request.block, request.blocks, Direction::Read, true, None);
        let ready = now + overheads.read_miss[after] + overheads.read_disconnect[after];
        let start = self.reconnection(ready, request, 0);
        let done = self.send(start + overheads.data_preparation, 0);
        self.segments.extend(segment, request.block + request.blocks);
        self.keep_free_blocks(segment, request);
        self.read_ahead(segment, request);
        Served { done: done + overheads.read_completion, outcome: Outcome::Miss }
    }

    fn write(&mut self, now: Time, request: Request) -> Served {
        let overheads = self.drive.overheads;
        let (buffer, block, blocks) = (self.drive.buffer, request.block, request.blocks);
        self.stop_read_ahead(now);
        let appended = self.appended(now, request);
        let phases = self.write_phases(now, request, appended.is_some());
        let start = phases.bus + overheads.data_preparation;
        let least = phases.arm + if appended.is_none() { overheads.least_seek } else { Duration::ZERO };
        let supply = Supply { start, block: self.drive.bus_block.write, least };
        let apart = buffer.separate_write_segment;
        let segment = appended
            .unwrap_or_else(|| self.segments.take(block, Kind::Written, |index| !apart || index == 0));
        self.segments.invalidate(block, blocks, segment);
        self.segments.touch(segment);
        self.arm.free = self.arm.free.max(phases.arm);
        self.access(block, blocks, Direction::Write, appended.is_none(), Some(supply));
        self.segments.extend(segment, block + blocks);
        if !buffer.caches {
            self.segments.clear(segment);
        }
        let received = start + supply.block.saturating_mul(blocks);
        if buffer.fast_writes && blocks <= self.segments.size() {
            self.background = Background::WriteOut { segment };
            return Served { done: received + overheads.write_completion, outcome: Outcome::Hit };
        }
        let done = (received + phases.disconnect).max(self.arm.free) + phases.reselect;
        Served { done: done + overheads.write_completion, outcome: Outcome::Miss }
    }

    /// When a write that comes at `now` has the bus for its data, and the arm.
    fn write_phases(&self, now: Time, request: Request, appends: bool) -> WritePhases {
        let (overheads, after) = (self.drive.overheads, self.after());
        let overhead = if self.drive.buffer.fast_writes {
            overheads.write_hit[after]
        } else {
            overheads.write_miss[after]
        };
        let ready = now + overhead;
        let waits = self.is_writing_out(now) && !appends;
        let continues = self.segments.written_before(request.block).is_some();
        match overheads.extra_disconnect {
            Some(extra) if self.last == Direction::Write && !continues && !waits => WritePhases {
                arm: now + extra.command + extra.arm_delay,
                bus: now + extra.command + extra.first + extra.pause + overheads.reselect,
                disconnect: extra.second,
                reselect: overheads.reselect_again,
            },
            _ if waits => WritePhases {
                arm: ready,
                bus: (ready + overheads.write_disconnect).max(self.arm.free) + overheads.reselect,
                disconnect: overheads.write_disconnect,
                reselect: overheads.reselect_again,
            },
            _ => WritePhases {
                arm: ready,
                bus: ready,
                disconnect: overheads.write_disconnect,
                reselect: overheads.reselect,
            },
        }
    }

    /// The segment that is being written out, if a write continues it.
    fn appended(&self, now: Time, request: Request) -> Option<usize> {
        let Background::WriteOut { segment } = self.background else { return None };
        let continues = self.segments.written_before(request.block) == Some(segment);
        (self.is_writing_out(now) && self.drive.buffer.combine_writes && continues).then_some(segment)
    }

    /// Lets the arm read or write blocks from when it is free on; the passes of their sectors, in the order of the blocks,
    /// are left in `passes`.
    fn access(&mut self, block: u64, blocks: u64, direction: Direction, moves: bool, supply: Option<Supply>) {
        self.passes.clear();
        let buffer = &self.drive.buffer;
        let zero_latency = match direction {
            Direction::Read => buffer.zero_latency_read,
            Direction::Write => buffer.zero_latency_write,
        };
        let (begin, end) = (block, block + blocks);
        let mut block = block;
        while block < end {
            let run = self.geometry.run(block, end - block);
            let mut pass = self.arm.pass(self.arm.free, &run, direction, moves && block == begin);
            if let Some(supply) = supply {
                let last = supply.start + supply.block.saturating_mul(block + run.blocks - begin);
                let lead = pass.length(run.blocks - 1).picoseconds();
                let first = supply.start + supply.block.saturating_mul(block + 1 - begin);
                pass = pass.not_before(first.max(Time(last.0.saturating_sub(lead))).max(supply.least));
            }
            self.arm.track = run.track;
            match zero_latency.then(|| self.arm.zero_latency(&pass)).flatten() {
                Some(parts) => {
                    self.arm.free = parts[0].end().max(parts[1].end());
                    self.passes.extend(parts);
                }
                None => {
                    self.arm.free = pass.end();
                    self.passes.push(pass);
                }
            }
            block += run.blocks;
        }
    }

    /// When the drive is back on the bus for data that come from the surface, of which it held some.
    fn reconnection(&self, ready: Time, request: Request, held: u64) -> Time {
        let mut missing = self.watermark(request.blocks).saturating_sub(held);
        let mut reached = ready;
        for pass in &self.passes {
            if missing == 0 {
                break;
            }
            let blocks = missing.min(pass.blocks);
            reached = reached.max(pass.passed(blocks));
            missing -= blocks;
        }
        reached + self.drive.overheads.reselect
    }

    fn watermark(&self, blocks: u64) -> u64 {
        let size = self.segments.size();
        let mark = match self.drive.buffer.read_watermark {
            Watermark::OfRequest(millionths) => blocks.min(size) * u64::from(millionths) / 1_000_000,
            Watermark::OfSegment(millionths) => (size * u64::from(millionths)).div_ceil(1_000_000),
        };
        mark.clamp(1, blocks)
    }

    /// When the last block is over the bus, if it begins at `start` with so many that it held: then each as it is there.
    fn send(&self, start: Time, held: u64) -> Time {
        let bus = self.drive.bus_block.read;
        self.passes.iter().fold(start + bus.saturating_mul(held), |sent, pass| {
            // Blocks come evenly: either the first of them or the last is the one that is waited for.
            let steady = sent.max(pass.passed(1)) + bus.saturating_mul(pass.blocks);
            steady.max(pass.end() + bus)
        })
    }

    fn read_ahead_segment(&self) -> Option<usize> {
        match self.background {
            Background::ReadAhead { segment, .. } => Some(segment),
            _ => None,
        }
    }

    fn is_writing_out(&self, now: Time) -> bool {
        matches!(self.background, Background::WriteOut { .. }) && self.arm.free > now
    }

    /// Which of a pair of overheads: after a read or after a write.
    fn after(&self) -> usize {
        usize::from(self.last == Direction::Write)
    }
}
