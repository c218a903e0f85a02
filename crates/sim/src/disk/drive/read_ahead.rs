//! What the arm does between two requests: it reads on, or writes out what the buffer holds.

use pio_machine::disk::ReadAhead;
use pio_plan::Direction;

use super::{Background, DriveModel};
use crate::disk::Request;
use crate::kernel::Time;

impl DriveModel {
    /// Keeps the sectors of the track that passed while the first wanted one was waited for.
    pub(super) fn keep_free_blocks(&mut self, segment: usize, request: Request) {
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
    pub(super) fn read_ahead(&mut self, segment: usize, request: Request) {
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
    pub(super) fn let_pass(&mut self, now: Time) {
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
    pub(super) fn stop_read_ahead(&mut self, now: Time) {
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
}
