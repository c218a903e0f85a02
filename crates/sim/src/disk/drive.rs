//! A drive at work: one request at a time, while it reads ahead or writes out what it holds.
//!
//! Everything that a drive does between two requests follows from where its arm was left, so nothing needs an event: a
//! request first lets the time since the last one pass.

use pio_machine::Duration;
use pio_machine::disk::{Drive, ReadAhead, Watermark};
use pio_plan::Direction;

use super::arm::{Arm, Pass};
use super::geometry::Geometry;
use super::segments::{Found, Kind, Segments};
use super::{DiskError, Outcome, Request, Served};
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
        let sent = start + overheads.data_preparation + times(self.drive.bus_block, request.blocks);
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
        let supply = Supply { start, block: self.drive.bus_block, least };
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
        let received = start + times(supply.block, blocks);
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
                let last = supply.start + times(supply.block, block + run.blocks - begin);
                let lead = pass.length(run.blocks - 1).picoseconds();
                let first = supply.start + times(supply.block, block + 1 - begin);
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
        let bus = self.drive.bus_block;
        self.passes.iter().fold(start + times(bus, held), |sent, pass| {
            // Blocks come evenly: either the first of them or the last is the one that is waited for.
            let steady = sent.max(pass.passed(1)) + times(bus, pass.blocks);
            steady.max(pass.end() + bus)
        })
    }

    /// Keeps the sectors of the track that passed while the first wanted one was waited for.
    fn keep_free_blocks(&mut self, segment: usize, request: Request) {
        let Some(pass) = self.passes.first().filter(|_| self.drive.buffer.read_free_blocks) else { return };
        let passed = pass.passed_before();
        let track = self.geometry.run(request.block, 1).track;
        let mut start = request.block.saturating_sub(passed);
        while start < request.block {
            let run = self.geometry.run(start, request.block - start);
            if run.track == track {
                break;
            }
            start += run.blocks;
        }
        self.segments.extend_front(segment, start);
    }

    /// Reads on after a request whose data end in `segment`, or goes on doing so.
    fn read_ahead(&mut self, segment: usize, request: Request) {
        if !self.drive.buffer.caches {
            return;
        }
        let end = request.block + request.blocks;
        let before = match self.background {
            Background::ReadAhead { segment: active, limit, .. } if active == segment => limit,
            _ => 0,
        };
        let limit = self.read_ahead_limit(segment, request).max(before);
        if self.segments.get(segment).end < limit {
            let least = (end + u64::from(self.drive.buffer.least_read_ahead)).min(limit);
            self.background = Background::ReadAhead { segment, least, limit };
        } else {
            self.background = Background::Nothing;
        }
    }

    fn read_ahead_limit(&self, segment: usize, request: Request) -> u64 {
        let buffer = &self.drive.buffer;
        let (end, size) = (request.block + request.blocks, self.segments.size());
        let most = match (u64::from(buffer.most_read_ahead), buffer.read_ahead_over_requested) {
            (0, true) => end + size,
            (0, false) => request.block + size,
            (most, true) => end + most,
            (most, false) => (end + most).min(request.block + size),
        };
        let limit = match buffer.read_ahead {
            ReadAhead::None => end,
            ReadAhead::Segment => most,
            ReadAhead::Track => most.min(self.geometry.track_end(end - 1)),
            ReadAhead::Cylinder => most.min(self.geometry.cylinder_end(end - 1)),
            ReadAhead::TrackAhead if end >= self.blocks() => end,
            ReadAhead::TrackAhead => {
                let run = self.geometry.run(end, 1);
                let began = self.geometry.run(self.segments.get(segment).start, 1).track;
                let more = if began == run.track { 0 } else { u64::from(run.sectors) };
                self.geometry.track_end(end) + more
            }
        };
        limit.min(self.blocks())
    }

    /// Lets what goes on in the background go on up to `now`.
    fn let_pass(&mut self, now: Time) {
        while let Background::ReadAhead { segment, limit, .. } = self.background {
            let end = self.segments.get(segment).end;
            if end >= limit {
                self.background = Background::Nothing;
                break;
            }
            let run = self.geometry.run(end, limit - end);
            let pass = self.arm.pass(self.arm.free, &run, Direction::Read, false);
            let passed = pass.count_at(now);
            if passed == 0 {
                break;
            }
            self.segments.extend(segment, end + passed);
            self.arm.track = run.track;
            self.arm.free = pass.passed(passed);
            if passed < run.blocks {
                break;
            }
        }
        if matches!(self.background, Background::WriteOut { .. }) && self.arm.free <= now {
            self.background = Background::Nothing;
        }
    }

    /// Ends reading ahead: at the end of the sector, or where it may.
    fn stop_read_ahead(&mut self, now: Time) {
        let Background::ReadAhead { segment, least, limit } = self.background else { return };
        self.background = Background::Nothing;
        let end = self.segments.get(segment).end;
        if end < least {
            self.access(end, least - end, Direction::Read, false, None);
            self.segments.extend(segment, least);
            return;
        }
        let run = self.geometry.run(end, limit - end);
        let pass = self.arm.pass(self.arm.free, &run, Direction::Read, false);
        let in_sector = pass.begin < now && pass.arrived <= now;
        if in_sector && !self.drive.buffer.stop_in_sector {
            self.segments.extend(segment, end + 1);
            self.arm.free = pass.passed(1);
        } else {
            self.arm.free = pass.arrived.max(self.arm.free);
        }
        self.arm.track = run.track;
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

fn times(duration: Duration, count: u64) -> Duration {
    Duration::from_picoseconds(duration.picoseconds().saturating_mul(count))
}

#[cfg(test)]
mod tests {
    use pio_machine::disk::{AccessModel, ExtraDisconnect, Overheads};

    use super::super::example::{drive, us};
    use super::*;

    /// Serves requests, each at a time in µs: when they are done, in µs, and what became of them.
    fn served(drive: &Drive, requests: &[(u64, Direction, u64, u64)]) -> Vec<(f64, Outcome)> {
        let mut model = DriveModel::new(drive);
        let serve = |(now, direction, block, blocks): &(u64, Direction, u64, u64)| {
            let request = Request { direction: *direction, block: *block, blocks: *blocks };
            let served = model.serve(Time(now * 1_000_000), request).unwrap();
            (served.done.0 as f64 / 1e6, served.outcome)
        };
        requests.iter().map(serve).collect()
    }

    const READ: Direction = Direction::Read;
    const WRITE: Direction = Direction::Write;

    #[test]
    fn a_read_is_seek_rotation_transfer_and_the_last_block_on_the_bus() {
        // Sector 5 of the first track passes from 5 to 6 ms; three sectors.
        assert_eq!(served(&drive(), &[(0, READ, 5, 3)]), [(8_100.0, Outcome::Miss)]);
        // Cylinder 10: 2 ms + 1 ms of seek. Its first sector is 10 × (1 + 3) sectors askew: it passes at 10 ms.
        assert_eq!(served(&drive(), &[(0, READ, 200, 1)]), [(11_100.0, Outcome::Miss)]);
        // Just late: the head is there at 3 ms; sector 2 of that track began to pass at 2 ms.
        assert_eq!(served(&drive(), &[(0, READ, 202, 1)]), [(13_100.0, Outcome::Miss)]);
        assert_eq!(served(&drive(), &[(0, READ, 203, 1)]), [(4_100.0, Outcome::Miss)]);
    }

    #[test]
    fn a_slow_bus_is_waited_for() {
        let drive = Drive { bus_block: us(3_000), ..drive() };
        assert_eq!(served(&drive, &[(0, READ, 5, 3)]), [(6_000.0 + 9_000.0, Outcome::Miss)]);
    }

    #[test]
    fn skew_lets_sequential_reads_go_on_across_tracks() {
        // Ten sectors; the head switches while one sector passes; ten more; a seek of one cylinder takes 2.1 of 3 ms.
        assert_eq!(
            served(&drive(), &[(0, READ, 0, 25)])[0].0,
            10_000.0 + 1_000.0 + 10_000.0 + 3_000.0 + 5_000.0 + 100.0
        );
    }

    #[test]
    fn rotation_goes_on_between_requests() {
        let all = served(&drive(), &[(0, READ, 0, 1), (5_500, READ, 1, 1), (37_000, READ, 6, 1)]);
        assert_eq!(all.iter().map(|(done, _)| *done).collect::<Vec<_>>(), [1_100.0, 12_100.0, 47_100.0]);
    }

    #[test]
    fn mean_rotational_latency_is_half_a_revolution() {
        let mut model = DriveModel::new(&drive());
        let mut sum = 0.0;
        for step in 0..1000 {
            // Times spread evenly over the revolution; all on one track.
            let now = Time(step * 100_000_000_000 + step * 10_000_000);
            let request = Request { direction: READ, block: step % 2, blocks: 1 };
            sum += model.serve(now, request).unwrap().done.since(now).seconds() - 1.1e-3;
        }
        assert!((sum / 1000.0 - 5e-3).abs() < 0.02e-3, "{sum}");
    }

    #[test]
    fn what_was_read_is_a_hit_until_its_segment_is_needed() {
        let overheads = Overheads { read_hit: [us(30), us(70)], ..drive().overheads };
        let drive = Drive { overheads, ..drive() };
        let requests = [(0, READ, 0, 4), (20_000, READ, 1, 3), (30_000, READ, 100, 1), (60_000, READ, 1, 3)];
        let outcomes = served(&drive, &requests);
        assert_eq!(outcomes[1], (20_000.0 + 30.0 + 300.0, Outcome::Hit));
        assert_eq!(outcomes[3].1, Outcome::Miss);
    }

    #[test]
    fn read_ahead_fills_the_segment_and_no_more() {
        let mut drive = drive();
        drive.buffer.read_ahead = ReadAhead::Segment;
        // Blocks 0 to 41 but no more are wanted; the segment holds the last 40.
        let requests = [(0, READ, 0, 2), (100_000, READ, 2, 40), (110_000, READ, 1, 1)];
        let outcomes = served(&drive, &requests);
        assert_eq!(outcomes[1], (100_000.0 + 4_000.0, Outcome::Hit));
        assert_eq!(outcomes[2].1, Outcome::Miss);
        drive.buffer.read_ahead = ReadAhead::Track;
        let requests = [(0, READ, 0, 2), (100_000, READ, 2, 8), (150_000, READ, 9, 2)];
        let outcomes = served(&drive, &requests);
        assert_eq!(outcomes[1].1, Outcome::Hit);
        assert_eq!(outcomes[2].1, Outcome::PartialHit);
    }

    #[test]
    fn a_read_joins_the_read_ahead_that_is_on_its_way() {
        let mut drive = drive();
        drive.buffer.read_ahead = ReadAhead::Segment;
        // At 4.5 ms sectors 0 to 3 are there; 4 to 5 come until 6 ms, and the last is sent.
        assert_eq!(
            served(&drive, &[(0, READ, 0, 1), (4_500, READ, 2, 4)])[1],
            (6_100.0, Outcome::PartialHit)
        );
    }

    #[test]
    fn a_prefetch_ends_with_its_sector() {
        let mut drive = drive();
        drive.buffer.read_ahead = ReadAhead::Segment;
        // At 4.5 ms the arm reads sector 4, until 5 ms. Then 3 ms of seek to cylinder 10: sector 8 passes at 8 ms.
        assert_eq!(served(&drive, &[(0, READ, 0, 1), (4_500, READ, 208, 1)])[1].0, 9_100.0);
        drive.buffer.stop_in_sector = true;
        // At 7.5 ms there already.
        assert_eq!(served(&drive, &[(0, READ, 0, 1), (4_500, READ, 207, 1)])[1].0, 18_100.0);
        assert_eq!(served(&drive, &[(0, READ, 0, 1), (3_900, READ, 207, 1)])[1].0, 8_100.0);
    }

    #[test]
    fn a_write_through_settles_and_is_done_on_the_surface() {
        // 3 ms of seek and 0.5 ms more: sector 3 has begun to pass, sector 4 is taken.
        assert_eq!(served(&drive(), &[(0, WRITE, 204, 1)]), [(5_000.0, Outcome::Miss)]);
        assert_eq!(served(&drive(), &[(0, WRITE, 203, 1)]), [(14_000.0, Outcome::Miss)]);
        // On its track there is nothing to settle, but the first block must be there: sector 0 passes again at 10 ms.
        assert_eq!(served(&drive(), &[(0, WRITE, 0, 2)]), [(12_000.0, Outcome::Miss)]);
    }

    #[test]
    fn a_fast_write_is_done_in_the_buffer_and_the_next_waits_for_the_surface() {
        let mut drive = drive();
        drive.buffer.fast_writes = true;
        drive.buffer.segments = 3;
        let requests = [(0, WRITE, 204, 2), (1_000, READ, 0, 1), (50_000, READ, 204, 2)];
        let outcomes = served(&drive, &requests);
        assert_eq!(outcomes[0], (200.0, Outcome::Hit));
        // Written until 6 ms, back at cylinder 0 at 9 ms, sector 0 at 10 ms.
        assert_eq!(outcomes[1], (11_100.0, Outcome::Miss));
        assert_eq!(outcomes[2], (50_200.0, Outcome::Hit));
    }

    #[test]
    fn writes_that_continue_each_other_do_not_lose_a_revolution() {
        let mut drive = drive();
        drive.buffer.fast_writes = true;
        let requests = [(0, WRITE, 1, 3), (500, WRITE, 4, 3), (1_000, READ, 50, 1)];
        let outcomes = served(&drive, &requests);
        assert_eq!(outcomes[1], (800.0, Outcome::Hit));
        // Sectors 1 to 6 pass from 1 to 7 ms; 2.2 ms to cylinder 2; block 50 is 4 + 4 + 1 sectors askew: 9 ms.
        assert_eq!(outcomes[2].0, 20_100.0);
        drive.buffer.combine_writes = false;
        assert!(served(&drive, &requests)[1].0 > 4_000.0);
    }

    #[test]
    fn a_track_in_any_order_takes_one_revolution() {
        let mut drive = drive();
        drive.buffer.zero_latency_read = true;
        // From the next whole sector on: 4 to 14 ms. Block 3 passes last; those after it are there, and follow it.
        assert_eq!(served(&drive, &[(3_500, READ, 0, 10)])[0].0, 14_000.0 + 7.0 * 100.0);
        assert_eq!(served(&drive, &[(3_500, READ, 5, 2)])[0].0, 7_100.0);
    }

    #[test]
    fn an_extra_disconnect_costs_a_write_that_follows_another() {
        let extra = ExtraDisconnect {
            command: us(600),
            first: us(50),
            pause: us(400),
            second: us(130),
            arm_delay: us(250),
        };
        let overheads = Overheads {
            extra_disconnect: Some(extra),
            write_miss: [us(800); 2],
            reselect: us(160),
            ..drive().overheads
        };
        let drive = Drive { overheads, ..drive() };
        let requests = [(0, WRITE, 3, 1), (20_000, WRITE, 1, 1), (40_000, WRITE, 2, 1)];
        let outcomes = served(&drive, &requests);
        assert_eq!(outcomes[0].0, 4_000.0 + 160.0);
        // Data on the bus from 600 + 50 + 400 + 160 µs on: sector 1 passes 10 ms later.
        assert_eq!(outcomes[1].0, 32_000.0);
        // What continues the last write does not suffer from it.
        assert_eq!(outcomes[2].0, 43_000.0 + 160.0);
    }

    #[test]
    fn plain_access_models() {
        let mut drive = drive();
        drive.mechanics.access = AccessModel::Constant(us(8_000));
        assert_eq!(served(&drive, &[(0, READ, 777, 3)])[0].0, 8_000.0 + 300.0);
        drive.mechanics.access = AccessModel::AverageRotation;
        assert_eq!(served(&drive, &[(0, READ, 207, 2)])[0].0, 3_000.0 + 5_000.0 + 2_000.0 + 100.0);
    }

    #[test]
    fn blocks_beyond_the_end_are_refused() {
        let mut model = DriveModel::new(&drive());
        for (block, blocks) in [(2000, 1), (1999, 2), (0, 0), (u64::MAX, 2)] {
            let request = Request { direction: READ, block, blocks };
            let error = model.serve(Time(0), request).unwrap_err();
            assert_eq!(error, DiskError::NoSuchBlocks { request, blocks: 2000 });
        }
        assert!(model.serve(Time(0), Request { direction: READ, block: 1999, blocks: 1 }).is_ok());
    }
}
