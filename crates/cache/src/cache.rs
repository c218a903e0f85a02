//! The cache: requests in, transfers out.

use std::collections::{BTreeSet, VecDeque};

use crate::event::{Action, Event, FileId, ProcessId, RequestId};
use crate::files::Files;
use crate::index::RunId;
use crate::owners::Owners;
use crate::policy::{Incoming, Replacer};
use crate::runs::{Data, Runs, Traits};
use crate::settings::{Settings, SettingsError, Writes};
use crate::slab::Slab;
use crate::statistics::Statistics;
use crate::transfer::{Kind, Transfer};
use crate::waiting::{HeldUp, Waiting};

/// An extent buffer cache, as a pure state machine: it says what has to be done, and is told what was done.
///
/// It holds no data, knows no time and starts nothing: whoever drives it carries out the [`Action`]s that
/// [`Cache::handle`] asks for. The simulator takes time for them; the tests move bytes.
pub struct Cache {
    pub(crate) settings: Settings,
    pub(crate) runs: Runs,
    pub(crate) replacer: Replacer,
    pub(crate) files: Files,
    pub(crate) owners: Owners,
    pub(crate) requests: Slab<Request>,
    pub(crate) transfers: Slab<Transfer>,
    /// Requests that wait for room or for the dirty limit.
    pub(crate) waiting: Waiting,
    /// Extents of blocks that became dirty and are not being written (or were not when they became so), the oldest
    /// first: file, first block, blocks.
    pub(crate) dirty: VecDeque<(u32, u64, u64)>,
    /// Blocks that are newer than below.
    pub(crate) dirty_blocks: u64,
    /// Blocks that are being written.
    pub(crate) writing_blocks: u64,
    pub(crate) statistics: Statistics,
}

/// A request under way.
pub(crate) struct Request {
    pub id: RequestId,
    pub process: ProcessId,
    pub file: u32,
    pub is_write: bool,
    pub start: u64,
    /// The first byte that is not yet taken care of.
    pub next: u64,
    pub end: u64,
    /// How much to read ahead behind the end.
    pub ahead: u64,
    /// Whether every byte up to `next` was here.
    pub hit: bool,
    /// Transfers that it waits for, plus one while some of its bytes are not yet taken care of.
    pub waits_for: u32,
}

/// What a request waits for that is not a transfer of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wait {
    /// Evictable blocks; of the given process, if it is at its limit.
    Room(Option<u32>),
    /// Fewer dirty blocks.
    DirtyLimit,
}

/// Why a request cannot go on.
pub(crate) enum Stop {
    /// There is something that it must wait for.
    Wait(Wait),
    /// A transfer has to end first; it has been told.
    Transfer,
}

impl Cache {
    /// An empty cache.
    pub fn new(settings: Settings) -> Result<Cache, SettingsError> {
        settings.check()?;
        let (replacer, mut runs) =
            Replacer::new(settings.policy, settings.capacity_bytes / settings.block_bytes);
        runs.record_evicted = true;
        Ok(Cache {
            settings,
            runs,
            replacer,
            files: Files::default(),
            owners: Owners::new(settings.process_limit_bytes.map(|bytes| bytes / settings.block_bytes)),
            requests: Slab::new(),
            transfers: Slab::new(),
            waiting: Waiting::default(),
            dirty: VecDeque::new(),
            dirty_blocks: 0,
            writing_blocks: 0,
            statistics: Statistics::default(),
        })
    }

    /// Takes in what happened, and adds what has to be done.
    ///
    /// # Panics
    ///
    /// If a transfer ends that is not under way.
    pub fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Read { request, process, file, offset, length } => {
                let file = self.files.number(file);
                self.read(request, process, file, offset..offset.saturating_add(length), actions);
            }
            Event::Write { request, process, file, offset, length } => {
                let file = self.files.number(file);
                self.write(request, process, file, offset..offset.saturating_add(length), actions);
            }
            Event::Flush { request, file } => {
                let file = self.files.number(file);
                self.flush(request, file, actions);
            }
            Event::Size { file, bytes } => {
                let file = self.files.number(file);
                self.files.tell(file, bytes);
            }
            Event::Forget { file } => self.forget(file, actions),
            Event::Fetched { transfer } => {
                self.fetched(transfer.0, actions);
                self.retry(actions);
            }
            Event::Written { transfer } => {
                self.written(transfer.0, actions);
                self.retry(actions);
            }
        }
    }

    /// What it counted.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Bytes of the blocks that are here, or on their way here.
    pub fn resident_bytes(&self) -> u64 {
        self.replacer.resident(&self.runs) * self.settings.block_bytes
    }

    /// Bytes of the blocks that are newer than below.
    pub fn dirty_bytes(&self) -> u64 {
        self.dirty_blocks * self.settings.block_bytes
    }

    /// Whether no request is under way and no transfer.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.transfers.is_empty()
    }

    /// Carries a request as far as it goes now, and sees to what it waits for then.
    pub(crate) fn start(&mut self, request: Request, actions: &mut Vec<Action>) {
        let slot = self.requests.add(request);
        self.go_on(slot, actions);
    }

    /// Carries a request on, which waits for nothing at the moment.
    pub(crate) fn go_on(&mut self, slot: u32, actions: &mut Vec<Action>) {
        let waiting = std::mem::take(&mut self.waiting);
        let proceeded = self.proceed(slot, HeldUp::AllOf(&waiting), actions);
        self.waiting = waiting;
        match proceeded {
            Ok(()) => self.all_taken_care_of(slot, actions),
            Err(Stop::Transfer) => {}
            Err(Stop::Wait(wait)) => {
                match wait {
                    Wait::Room(_) => self.statistics.waits_for_room += 1,
                    Wait::DirtyLimit => self.statistics.waits_for_dirty_limit += 1,
                }
                self.waiting.add(slot, wait);
            }
        }
    }

    /// Carries on what waited, the oldest first: nobody overtakes one that waits for the same.
    pub(crate) fn retry(&mut self, actions: &mut Vec<Action>) {
        if self.waiting.is_empty() {
            return;
        }
        let mut held_up = BTreeSet::new();
        // Nobody waits meanwhile: what is read ahead for one that goes on takes room before the next has its turn.
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut firsts = waiting.firsts();
        while let Some((turn, wait)) = firsts.pop_first() {
            if held_up.contains(&wait) {
                continue;
            }
            let Some(slot) = waiting.take_first(wait) else { continue };
            match self.proceed(slot, HeldUp::These(&held_up), actions) {
                Ok(()) => self.all_taken_care_of(slot, actions),
                Err(Stop::Transfer) => {}
                Err(Stop::Wait(next)) => {
                    held_up.insert(next);
                    waiting.put_back(slot, next, turn);
                }
            }
            firsts.extend(waiting.first(wait).map(|turn| (turn, wait)));
        }
        self.waiting = waiting;
    }

    fn proceed(&mut self, slot: u32, held_up: HeldUp<'_>, actions: &mut Vec<Action>) -> Result<(), Stop> {
        if self.request(slot).is_write {
            self.proceed_to_write(slot, held_up, actions)
        } else {
            self.proceed_to_read(slot, held_up, actions)
        }
    }

    /// Every byte of a request is taken care of: it is complete as soon as its transfers have ended.
    fn all_taken_care_of(&mut self, slot: u32, actions: &mut Vec<Action>) {
        let request = self.request(slot);
        let (file, process, end) = (request.file, request.process, request.end);
        let (hit, ahead) = (request.hit && !request.is_write, std::mem::take(&mut request.ahead));
        self.statistics.reads_hit += u64::from(hit);
        if ahead > 0 {
            self.read_ahead(process, file, end, ahead, actions);
        }
        self.waited(slot, actions);
    }

    /// One thing that a request waited for has come about.
    pub(crate) fn waited(&mut self, slot: u32, actions: &mut Vec<Action>) {
        let request = self.request(slot);
        request.waits_for -= 1;
        if request.waits_for == 0 {
            let request = request.id;
            self.requests.remove(slot);
            actions.push(Action::Complete { request });
        }
    }

    pub(crate) fn request(&mut self, slot: u32) -> &mut Request {
        self.requests.get_mut(slot).expect("a request is under way until it is complete")
    }

    /// Forgets all of a file.
    fn forget(&mut self, file: FileId, actions: &mut Vec<Action>) {
        let number = self.files.number(file);
        let block_bytes = self.settings.block_bytes;
        let mut block = 0;
        while let Some(run) = self.runs.find(number, block).or_else(|| self.runs.find_after(number, block)) {
            let found = *self.runs.get(run);
            block = found.end();
            match found.traits.data {
                Data::Gone => {
                    self.runs.remove(run);
                    continue;
                }
                Data::Dirty | Data::Writing | Data::Rewritten => self.dirty_blocks -= found.length(),
                Data::Clean | Data::Fetching => {}
            }
            self.owners.lost(found.traits.owner, found.length());
            self.replacer.forget(&mut self.runs, run);
            let (offset, length) = (found.start * block_bytes, found.length() * block_bytes);
            actions.push(Action::Evict { file, offset, length });
        }
        self.files.forget(number);
        self.retry(actions);
    }

    /// Notes that a request uses blocks that are here, all of them alike.
    pub(crate) fn touch(&mut self, file: u32, start: u64, length: u64, first_use: bool) {
        let end = start + length;
        let mut block = start;
        while block < end {
            let run = self.runs.find(file, block).expect("a block that is touched is here");
            let piece = self.runs.get(run).end().min(end) - block;
            let run = self.runs.isolate(run, block, piece);
            if first_use {
                self.replacer.first_use(&mut self.runs, run);
                block += piece;
            } else {
                block += self.replacer.hit(&mut self.runs, run);
            }
        }
    }

    /// Takes in as many as it can at once of some blocks that are not here.
    pub(crate) fn admit(
        &mut self,
        file: u32,
        start: u64,
        length: u64,
        traits: Traits,
        actions: &mut Vec<Action>,
    ) -> Result<u64, Wait> {
        let process = traits.owner;
        let allowance = self.owners.allowance(process);
        let (length, evict_from) =
            if allowance == 0 { (length, Some(process)) } else { (length.min(allowance), None) };
        let history = self.runs.find(file, start);
        let (length, history) = match history {
            Some(run) => {
                let length = length.min(self.runs.get(run).end() - start);
                (length, Some(self.runs.isolate(run, start, length)))
            }
            None => (self.runs.gap_end(file, start, start + length) - start, None),
        };
        let incoming = Incoming { file, start, length, traits, history, evict_from };
        let admitted = self.replacer.admit(&mut self.runs, incoming);
        if admitted == 0 {
            // Dirty blocks are in the way: those of one process may be anywhere among them.
            self.write_oldest(if evict_from.is_some() { u64::MAX } else { length }, actions);
            return Err(Wait::Room(evict_from));
        }
        self.owners.got(process, admitted);
        self.report_evicted(actions);
        Ok(admitted)
    }

    fn report_evicted(&mut self, actions: &mut Vec<Action>) {
        let block_bytes = self.settings.block_bytes;
        for evicted in self.runs.evicted.drain(..) {
            let (offset, length) = (evicted.start * block_bytes, evicted.length * block_bytes);
            self.statistics.evicted_bytes += length;
            if evicted.ahead {
                self.statistics.ahead_wasted_bytes += length;
            }
            self.owners.lost(evicted.owner, evicted.length);
            actions.push(Action::Evict { file: self.files.id(evicted.file), offset, length });
        }
    }

    /// Changes the data of all blocks of an extent that a transfer moves.
    pub(crate) fn set_data(&mut self, run: RunId, data: Data, transfer: u32) {
        let traits = self.runs.get(run).traits;
        self.runs.set_traits(run, Traits { data, transfer, ..traits });
    }

    /// Begins a transfer of blocks `start..end` of a file.
    pub(crate) fn begin(&mut self, kind: Kind, file: u32, start: u64) -> u32 {
        self.transfers.add(Transfer::new(kind, file, start))
    }

    /// How many bytes may be newer than below, in blocks.
    pub(crate) fn dirty_limit(&self) -> u64 {
        match self.settings.writes {
            Writes::Through => u64::MAX,
            Writes::Behind { dirty_limit_bytes } | Writes::Back { dirty_limit_bytes } => {
                dirty_limit_bytes / self.settings.block_bytes
            }
        }
    }
}
