//! Writing, through or behind, and flushing.

use std::ops::Range;

use crate::cache::{Cache, Request, Stop, Wait};
use crate::event::{Action, ProcessId, RequestId};
use crate::index::NONE;
use crate::runs::{Data, Traits};
use crate::settings::Writes;
use crate::transfer::Kind;
use crate::waiting::HeldUp;

impl Cache {
    /// A process wants to write.
    pub(crate) fn write(
        &mut self,
        id: RequestId,
        process: ProcessId,
        file: u32,
        bytes: Range<u64>,
        actions: &mut Vec<Action>,
    ) {
        self.statistics.writes += 1;
        self.statistics.written_bytes += bytes.end - bytes.start;
        let (start, next, end) = (bytes.start, bytes.start, bytes.end);
        let request = Request {
            id,
            process,
            file,
            is_write: true,
            start,
            next,
            end,
            ahead: 0,
            hit: false,
            waits_for: 1,
        };
        self.start(request, actions);
    }

    /// Somebody wants to know when all that was written to a file is below.
    pub(crate) fn flush(&mut self, id: RequestId, file: u32, actions: &mut Vec<Action>) {
        let mine: Vec<_> = self.dirty.iter().copied().filter(|extent| extent.0 == file).collect();
        self.dirty.retain(|extent| extent.0 != file);
        for (file, start, length) in mine {
            self.write_if_dirty(file, start..start + length, actions);
        }
        let process = ProcessId(0);
        let request = Request {
            id,
            process,
            file,
            is_write: true,
            start: 0,
            next: 0,
            end: 0,
            ahead: 0,
            hit: false,
            waits_for: 1,
        };
        let slot = self.requests.add(request);
        let mut waits_for = 0;
        for (number, transfer) in self.transfers.iter_mut() {
            if transfer.kind != Kind::Write || transfer.file != file {
                continue;
            }
            waits_for += 1;
            let again = (self.runs).any(file, transfer.blocks.clone(), |traits| {
                traits.data == Data::Rewritten && traits.transfer == number
            });
            if again {
                transfer.waiting_for_next.push(slot);
            } else {
                transfer.waiting.push((slot, None));
            }
        }
        self.request(slot).waits_for += waits_for;
        self.waited(slot, actions);
    }

    /// Takes in what is to be written, as far as there is room and the dirty limit allows.
    pub(crate) fn proceed_to_write(
        &mut self,
        slot: u32,
        held_up: HeldUp<'_>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Stop> {
        let mut write = None;
        let mut result = Ok(());
        while let Some((block, behind)) = self.blocks_left(slot) {
            let file = self.request(slot).file;
            let step = match self.runs.find(file, block).map(|run| *self.runs.get(run)) {
                Some(run) if run.traits.data == Data::Fetching => {
                    self.stop_for(slot, run.traits.transfer);
                    Err(Stop::Transfer)
                }
                Some(run) if run.traits.data != Data::Gone => {
                    let blocks = block..run.end().min(behind);
                    self.overwrite(slot, blocks, run.traits, held_up, &mut write, actions)
                }
                _ => self.write_new(slot, block..behind, held_up, &mut write, actions),
            };
            if let Err(stop) = step {
                result = Err(stop);
                break;
            }
        }
        self.ask_for_write(slot, write, actions);
        result
    }

    /// Writes over blocks that are here.
    fn overwrite(
        &mut self,
        slot: u32,
        blocks: Range<u64>,
        traits: Traits,
        held_up: HeldUp<'_>,
        write: &mut Option<u32>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Stop> {
        let file = self.request(slot).file;
        let (data, transfer, length) = match traits.data {
            Data::Clean => {
                let length = self.allowed_to_dirty(blocks.end - blocks.start, held_up, actions)?;
                let (data, transfer) = self.make_dirty(slot, blocks.start, length, write, actions);
                (data, transfer, length)
            }
            Data::Writing | Data::Rewritten => {
                if self.settings.writes == Writes::Through {
                    self.wait_for_next(slot, traits.transfer);
                }
                (Data::Rewritten, traits.transfer, blocks.end - blocks.start)
            }
            data => (data, traits.transfer, blocks.end - blocks.start),
        };
        let blocks = blocks.start..blocks.start + length;
        self.note_use(file, blocks.clone(), traits);
        let run = self.runs.find(file, blocks.start).expect("a block that is overwritten is here");
        let run = self.runs.isolate(run, blocks.start, length);
        self.set_data(run, data, transfer);
        self.touch(file, blocks.start, length, traits.ahead);
        self.take(slot, blocks.end, actions);
        Ok(())
    }

    /// Writes to blocks that are not here: what is below has to be fetched first if part of a block stays.
    fn write_new(
        &mut self,
        slot: u32,
        blocks: Range<u64>,
        held_up: HeldUp<'_>,
        write: &mut Option<u32>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Stop> {
        let Request { file, process, .. } = *self.request(slot);
        self.check_turn(process.0, held_up).map_err(Stop::Wait)?;
        if self.keeps_part(slot, blocks.start) {
            // Not before the block may become dirty: it might be evicted again while the request waits for that.
            self.allowed_to_dirty(1, held_up, actions)?;
            return Err(self.fill(slot, blocks.start, actions));
        }
        let last = blocks.end - 1;
        let end = if last > blocks.start && self.keeps_part(slot, last) { last } else { blocks.end };
        let length = self.allowed_to_dirty(end - blocks.start, held_up, actions)?;
        let (data, transfer) = self.make_dirty_transfer(slot, blocks.start, write, actions);
        let traits = Traits { data, owner: process.0, transfer, ..Traits::CLEAN };
        match self.admit(file, blocks.start, length, traits, actions) {
            Ok(admitted) => {
                self.count_dirty(file, blocks.start, admitted, transfer);
                self.take(slot, blocks.start + admitted, actions);
                Ok(())
            }
            Err(wait) => {
                self.drop_if_empty(write);
                Err(Stop::Wait(wait))
            }
        }
    }

    /// Whether part of a block, all of which is not here, is below and not written by a request.
    fn keeps_part(&mut self, slot: u32, block: u64) -> bool {
        let block_bytes = self.settings.block_bytes;
        let Request { file, next, end, .. } = *self.request(slot);
        let below = self.files.end_below(file);
        let (start, behind) = (block * block_bytes, (block + 1).saturating_mul(block_bytes));
        (next > start && below > start) || (end < behind && below > end)
    }

    /// Fetches a block of which a request writes a part.
    fn fill(&mut self, slot: u32, block: u64, actions: &mut Vec<Action>) -> Stop {
        let Request { file, process, .. } = *self.request(slot);
        let number = self.begin(Kind::Fetch { ahead: false }, file, block);
        let traits = Traits { data: Data::Fetching, owner: process.0, transfer: number, ..Traits::CLEAN };
        if let Err(wait) = self.admit(file, block, 1, traits, actions) {
            self.transfers.remove(number);
            return Stop::Wait(wait);
        }
        self.transfers.get_mut(number).expect("a transfer that begins is known").blocks.end = block + 1;
        self.ask_for(number, process.0, 0, actions);
        self.stop_for(slot, number);
        Stop::Transfer
    }

    /// How many of some clean blocks may become dirty.
    fn allowed_to_dirty(
        &mut self,
        blocks: u64,
        held_up: HeldUp<'_>,
        actions: &mut Vec<Action>,
    ) -> Result<u64, Stop> {
        let allowed = self.dirty_limit() - self.dirty_blocks;
        if allowed < blocks {
            self.write_oldest(blocks - allowed, actions);
        }
        if allowed == 0 || held_up.contains(Wait::DirtyLimit) {
            return Err(Stop::Wait(Wait::DirtyLimit));
        }
        Ok(blocks.min(allowed))
    }

    /// Blocks that are here become dirty: gives what their data and their transfer are then.
    fn make_dirty(
        &mut self,
        slot: u32,
        start: u64,
        length: u64,
        write: &mut Option<u32>,
        actions: &mut Vec<Action>,
    ) -> (Data, u32) {
        let file = self.request(slot).file;
        let (data, transfer) = self.make_dirty_transfer(slot, start, write, actions);
        self.count_dirty(file, start, length, transfer);
        (data, transfer)
    }

    /// What the data and the transfer of blocks from `start` on are when they become dirty.
    fn make_dirty_transfer(
        &mut self,
        slot: u32,
        start: u64,
        write: &mut Option<u32>,
        actions: &mut Vec<Action>,
    ) -> (Data, u32) {
        if matches!(self.settings.writes, Writes::Back { .. }) {
            return (Data::Dirty, NONE);
        }
        if let Some(number) = *write
            && self.transfers.get(number).is_some_and(|transfer| transfer.blocks.end == start)
        {
            return (Data::Writing, number);
        }
        self.ask_for_write(slot, write.take(), actions);
        let file = self.request(slot).file;
        (Data::Writing, *write.insert(self.begin(Kind::Write, file, start)))
    }

    /// Notes blocks that became dirty.
    fn count_dirty(&mut self, file: u32, start: u64, length: u64, transfer: u32) {
        self.dirty_blocks += length;
        match self.transfers.get_mut(transfer) {
            Some(transfer) => {
                transfer.blocks.end += length;
                self.writing_blocks += length;
            }
            None => match self.dirty.back_mut() {
                Some(last) if last.0 == file && last.1 + last.2 == start => last.2 += length,
                _ => self.dirty.push_back((file, start, length)),
            },
        }
    }

    /// The bytes of a request up to the given block are in the cache.
    fn take(&mut self, slot: u32, behind: u64, actions: &mut Vec<Action>) {
        let file = self.request(slot).file;
        let bytes = self.advance(slot, behind);
        self.files.wrote(file, bytes.end);
        self.copy(slot, bytes, actions);
    }

    /// Asks for what a request wrote to be written below.
    fn ask_for_write(&mut self, slot: u32, mut write: Option<u32>, actions: &mut Vec<Action>) {
        self.drop_if_empty(&mut write);
        let Some(number) = write else { return };
        if self.settings.writes == Writes::Through {
            self.request(slot).waits_for += 1;
            let transfer = self.transfers.get_mut(number).expect("a transfer that begins is known");
            transfer.waiting.push((slot, None));
        }
        self.ask_for(number, 0, 0, actions);
    }

    fn drop_if_empty(&mut self, write: &mut Option<u32>) {
        if let Some(number) = *write
            && self.transfers.get(number).is_some_and(|transfer| transfer.blocks.is_empty())
        {
            self.transfers.remove(number);
            *write = None;
        }
    }

    /// A request goes on when a transfer has ended.
    fn stop_for(&mut self, slot: u32, transfer: u32) {
        let transfer = self.transfers.get_mut(transfer).expect("what is on its way has a transfer");
        transfer.stopped.push(slot);
    }

    /// A request waits for what it changes while it is being written to be written again.
    fn wait_for_next(&mut self, slot: u32, transfer: u32) {
        let transfer = self.transfers.get_mut(transfer).expect("what is being written has a transfer");
        if !transfer.waiting_for_next.contains(&slot) {
            transfer.waiting_for_next.push(slot);
            self.request(slot).waits_for += 1;
        }
    }

    /// Begins to write the oldest dirty blocks, until at least so many are being written.
    pub(crate) fn write_oldest(&mut self, blocks: u64, actions: &mut Vec<Action>) {
        while self.writing_blocks < blocks {
            let Some((file, start, length)) = self.dirty.pop_front() else { return };
            self.write_if_dirty(file, start..start + length, actions);
        }
    }

    /// Begins to write those blocks of an extent that are still dirty.
    fn write_if_dirty(&mut self, file: u32, blocks: Range<u64>, actions: &mut Vec<Action>) {
        let mut found: Vec<Range<u64>> = Vec::new();
        let mut block = blocks.start;
        while block < blocks.end {
            let Some(run) = self.runs.find(file, block).map(|run| *self.runs.get(run)) else {
                block = self.runs.gap_end(file, block, blocks.end);
                continue;
            };
            let piece = block..run.end().min(blocks.end);
            block = piece.end;
            match found.last_mut() {
                _ if run.traits.data != Data::Dirty => {}
                Some(last) if last.end == piece.start => last.end = piece.end,
                _ => found.push(piece),
            }
        }
        for blocks in found {
            self.write_below(file, blocks, &[], actions);
        }
    }
}
