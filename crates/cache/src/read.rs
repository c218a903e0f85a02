//! Reading, and reading ahead.

use std::ops::Range;

use crate::cache::{Cache, Request, Stop, Wait};
use crate::event::{Action, ProcessId, RequestId};
use crate::policy::Policy;
use crate::runs::{Data, Traits};
use crate::settings::ReadAhead;
use crate::transfer::Kind;
use crate::waiting::HeldUp;

impl Cache {
    /// A process wants to read.
    pub(crate) fn read(
        &mut self,
        id: RequestId,
        process: ProcessId,
        file: u32,
        bytes: Range<u64>,
        actions: &mut Vec<Action>,
    ) {
        let length = bytes.end - bytes.start;
        self.statistics.reads += 1;
        self.statistics.read_bytes += length;
        let sequential = self.settings.read_ahead == ReadAhead::JustRead
            && self.files.reads_on(file, process, bytes.start, bytes.end);
        let ahead = if sequential { length } else { 0 };
        let (start, next, end) = (bytes.start, bytes.start, bytes.end);
        let request =
            Request { id, process, file, is_write: false, start, next, end, ahead, hit: true, waits_for: 1 };
        self.start(request, actions);
    }

    /// Delivers what is here, joins what is on its way, and fetches the rest as far as there is room.
    pub(crate) fn proceed_to_read(
        &mut self,
        slot: u32,
        held_up: HeldUp<'_>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Stop> {
        let mut fetch = None;
        let mut result = Ok(());
        while let Some((block, behind)) = self.blocks_left(slot) {
            let file = self.request(slot).file;
            match self.runs.find(file, block).map(|run| *self.runs.get(run)) {
                Some(run) if run.traits.data != Data::Gone => {
                    self.use_resident(slot, block..run.end().min(behind), run.traits, actions);
                }
                _ => match self.fetch_for(slot, block..behind, held_up, &mut fetch, actions) {
                    Ok(()) => {}
                    Err(wait) => {
                        result = Err(Stop::Wait(wait));
                        break;
                    }
                },
            }
        }
        self.ask_for_fetch(slot, fetch, actions);
        result
    }

    /// The first block of a request that is not taken care of, and the first block behind the request.
    pub(crate) fn blocks_left(&mut self, slot: u32) -> Option<(u64, u64)> {
        let block_bytes = self.settings.block_bytes;
        let request = self.request(slot);
        (request.next < request.end).then(|| (request.next / block_bytes, request.end.div_ceil(block_bytes)))
    }

    /// The bytes of a request that lie in the given blocks, which are next: they are taken care of.
    pub(crate) fn advance(&mut self, slot: u32, behind: u64) -> Range<u64> {
        let block_bytes = self.settings.block_bytes;
        let request = self.request(slot);
        let bytes = request.next..behind.saturating_mul(block_bytes).min(request.end);
        request.next = bytes.end;
        bytes
    }

    /// Takes care of blocks that are here or on their way.
    fn use_resident(&mut self, slot: u32, blocks: Range<u64>, traits: Traits, actions: &mut Vec<Action>) {
        let file = self.request(slot).file;
        let length = blocks.end - blocks.start;
        self.note_use(file, blocks.clone(), traits);
        self.touch(file, blocks.start, length, traits.ahead);
        let bytes = self.advance(slot, blocks.end);
        let count = bytes.end - bytes.start;
        if traits.data == Data::Fetching {
            self.statistics.joined_bytes += count;
            let request = self.request(slot);
            request.hit = false;
            request.waits_for += 1;
            let transfer =
                self.transfers.get_mut(traits.transfer).expect("what is on its way has a transfer");
            transfer.waiting.push((slot, Some(bytes)));
        } else {
            self.statistics.hit_bytes += count;
            self.copy(slot, bytes, actions);
        }
    }

    /// What was read ahead is used now.
    pub(crate) fn note_use(&mut self, file: u32, blocks: Range<u64>, traits: Traits) {
        if traits.ahead {
            let length = blocks.end - blocks.start;
            self.statistics.ahead_used_bytes += length * self.settings.block_bytes;
            let run = self.runs.find(file, blocks.start).expect("a block that is used is here");
            let run = self.runs.isolate(run, blocks.start, length);
            self.runs.set_traits(run, Traits { ahead: false, ..traits });
        }
    }

    /// Makes room for blocks that are not here, as many as it can at once, and adds them to what is to be fetched.
    fn fetch_for(
        &mut self,
        slot: u32,
        blocks: Range<u64>,
        held_up: HeldUp<'_>,
        fetch: &mut Option<u32>,
        actions: &mut Vec<Action>,
    ) -> Result<(), Wait> {
        let Request { file, process, .. } = *self.request(slot);
        self.check_turn(process.0, held_up)?;
        let number = self.fetch_number(slot, file, blocks.start, fetch, actions);
        let traits = Traits { data: Data::Fetching, owner: process.0, transfer: number, ..Traits::CLEAN };
        let admitted = self.admit(file, blocks.start, blocks.end - blocks.start, traits, actions);
        let transfer = self.transfers.get_mut(number).expect("a transfer that begins is known");
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(wait) => {
                if transfer.blocks.is_empty() {
                    self.transfers.remove(number);
                    *fetch = None;
                }
                return Err(wait);
            }
        };
        transfer.blocks.end += admitted;
        let bytes = self.advance(slot, blocks.start + admitted);
        self.statistics.missed_bytes += bytes.end - bytes.start;
        self.request(slot).hit = false;
        Ok(())
    }

    /// Whether it is a process's turn to ask for room, or others have waited for longer.
    pub(crate) fn check_turn(&self, process: u32, held_up: HeldUp<'_>) -> Result<(), Wait> {
        let wait = Wait::Room((self.owners.allowance(process) == 0).then_some(process));
        if held_up.contains(wait) { Err(wait) } else { Ok(()) }
    }

    /// The transfer that fetches `block`: the one that goes up to it, or a new one.
    fn fetch_number(
        &mut self,
        slot: u32,
        file: u32,
        block: u64,
        fetch: &mut Option<u32>,
        actions: &mut Vec<Action>,
    ) -> u32 {
        if let Some(number) = *fetch
            && self.transfers.get(number).is_some_and(|transfer| transfer.blocks.end == block)
        {
            return number;
        }
        self.ask_for_fetch(slot, *fetch, actions);
        *fetch.insert(self.begin(Kind::Fetch { ahead: false }, file, block))
    }

    /// Asks for what is to be fetched for a request, which waits for it.
    fn ask_for_fetch(&mut self, slot: u32, fetch: Option<u32>, actions: &mut Vec<Action>) {
        let Some(number) = fetch else { return };
        let block_bytes = self.settings.block_bytes;
        let transfer = self.transfers.get_mut(number).expect("a transfer that begins is known");
        let request = self.requests.get_mut(slot).expect("a request is under way until it is complete");
        let copied = transfer.blocks.end.saturating_mul(block_bytes).min(request.end);
        transfer.waiting.push((slot, Some((transfer.blocks.start * block_bytes).max(request.start)..copied)));
        request.waits_for += 1;
        let process = request.process.0;
        self.ask_for(number, process, copied, actions);
    }

    /// Reads ahead as much as there is room for at once.
    pub(crate) fn read_ahead(
        &mut self,
        process: ProcessId,
        file: u32,
        from: u64,
        length: u64,
        actions: &mut Vec<Action>,
    ) {
        let behind = self.files.end_below(file);
        self.read_ahead_of(process, file, from..from.saturating_add(length).min(behind), actions);
        if self.files.turns_at(file, process, from) {
            self.read_ahead_of(process, file, 0..length.min(behind), actions);
        }
    }

    fn read_ahead_of(&mut self, process: ProcessId, file: u32, bytes: Range<u64>, actions: &mut Vec<Action>) {
        let block_bytes = self.settings.block_bytes;
        let end = bytes.end.div_ceil(block_bytes);
        let mut block = bytes.start / block_bytes;
        while block < end {
            let found = self.runs.find(file, block).map(|run| *self.runs.get(run));
            if let Some(run) = found.filter(|run| run.traits.data != Data::Gone) {
                let behind = run.end().min(end);
                // As if it came in now: what is here by chance must not leave before it is asked for. Where the latest leave first,
                // that would hasten it.
                if self.settings.policy != Policy::Mru {
                    self.touch(file, block, behind - block, true);
                }
                block = behind;
                continue;
            }
            let read = self.read_ahead_gap(process, file, block..end, actions);
            if read == 0 {
                return;
            }
            block += read;
        }
    }

    /// Reads ahead blocks from the first on, as far as there is room and they are not here.
    fn read_ahead_gap(
        &mut self,
        process: ProcessId,
        file: u32,
        blocks: Range<u64>,
        actions: &mut Vec<Action>,
    ) -> u64 {
        if !self.waiting.is_empty() {
            return 0;
        }
        let number = self.begin(Kind::Fetch { ahead: true }, file, blocks.start);
        let traits =
            Traits { data: Data::Fetching, ahead: true, owner: process.0, transfer: number, ..Traits::CLEAN };
        let mut block = blocks.start;
        while block < blocks.end {
            let here = self.runs.find(file, block).map(|run| self.runs.get(run).traits.data);
            if here.is_some_and(|data| data != Data::Gone) {
                break;
            }
            match self.admit(file, block, blocks.end - block, traits, actions) {
                Ok(admitted) => block += admitted,
                Err(_) => break,
            }
        }
        if block == blocks.start {
            self.transfers.remove(number);
            return 0;
        }
        self.transfers.get_mut(number).expect("a transfer that begins is known").blocks.end = block;
        self.ask_for(number, process.0, 0, actions);
        block - blocks.start
    }
}
