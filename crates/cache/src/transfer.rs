//! Transfers between the cache and what is below, and what follows when they end.

use std::ops::Range;

use crate::cache::{Cache, Request};
use crate::event::{Action, ProcessId, TransferId};
use crate::index::{NONE, RunId};
use crate::runs::Data;
use crate::settings::Writes;

/// A transfer under way.
pub(crate) struct Transfer {
    pub kind: Kind,
    pub file: u32,
    /// Its first block, and the first behind it.
    pub blocks: Range<u64>,
    /// Requests that wait for it, and the bytes to copy for them then.
    pub waiting: Vec<(u32, Option<Range<u64>>)>,
    /// Writers that cannot go on before it has ended.
    pub stopped: Vec<u32>,
    /// Requests that wait for what was changed while it was being written to be written again.
    pub waiting_for_next: Vec<u32>,
}

/// What a transfer does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Fetch { ahead: bool },
    Write,
}

impl Transfer {
    pub(crate) fn new(kind: Kind, file: u32, start: u64) -> Transfer {
        Transfer {
            kind,
            file,
            blocks: start..start,
            waiting: Vec::new(),
            stopped: Vec::new(),
            waiting_for_next: Vec::new(),
        }
    }
}

impl Cache {
    /// Asks for a transfer whose blocks are settled; `used_end` is the last byte that somebody needs of it.
    pub(crate) fn ask_for(&mut self, number: u32, process: u32, used_end: u64, actions: &mut Vec<Action>) {
        let transfer = self.transfers.get(number).expect("a transfer that begins is known");
        let block_bytes = self.settings.block_bytes;
        let offset = transfer.blocks.start * block_bytes;
        let end = transfer.blocks.end.saturating_mul(block_bytes);
        let file = self.files.id(transfer.file);
        let transfer_id = TransferId(number);
        actions.push(match transfer.kind {
            Kind::Fetch { ahead } => {
                let end = end.min(self.files.end_below(transfer.file).max(used_end));
                let length = end - offset;
                self.statistics.fetched_bytes += length;
                self.statistics.ahead_bytes += if ahead { length } else { 0 };
                let process = ProcessId(process);
                Action::Fetch { transfer: transfer_id, process, file, offset, length, ahead }
            }
            Kind::Write => {
                let length = end.min(self.files.known_end(transfer.file)) - offset;
                self.statistics.written_below_bytes += length;
                Action::Write { transfer: transfer_id, file, offset, length }
            }
        });
    }

    /// What was asked for is here.
    pub(crate) fn fetched(&mut self, number: u32, actions: &mut Vec<Action>) {
        let transfer = self.transfers.remove(number).expect("only a transfer that is under way ends");
        self.each_run(&transfer, number, |cache, run, _| cache.set_data(run, Data::Clean, NONE));
        for (slot, bytes) in transfer.waiting {
            if let Some(bytes) = bytes {
                self.copy(slot, bytes, actions);
            }
            self.waited(slot, actions);
        }
        for slot in transfer.stopped {
            self.go_on(slot, actions);
        }
    }

    /// What was newer than below is below.
    pub(crate) fn written(&mut self, number: u32, actions: &mut Vec<Action>) {
        let transfer = self.transfers.remove(number).expect("only a transfer that is under way ends");
        self.writing_blocks -= transfer.blocks.end - transfer.blocks.start;
        let mut again: Vec<Range<u64>> = Vec::new();
        self.each_run(&transfer, number, |cache, run, blocks| {
            if cache.runs.get(run).traits.data == Data::Rewritten {
                cache.set_data(run, Data::Dirty, NONE);
                match again.last_mut() {
                    Some(last) if last.end == blocks.start => last.end = blocks.end,
                    _ => again.push(blocks),
                }
            } else {
                cache.set_data(run, Data::Clean, NONE);
                cache.dirty_blocks -= blocks.end - blocks.start;
            }
        });
        let at_once =
            !matches!(self.settings.writes, Writes::Back { .. }) || !transfer.waiting_for_next.is_empty();
        for blocks in again {
            if at_once {
                self.write_below(transfer.file, blocks, &transfer.waiting_for_next, actions);
            } else {
                self.dirty.push_back((transfer.file, blocks.start, blocks.end - blocks.start));
            }
        }
        for (slot, _) in transfer.waiting {
            self.waited(slot, actions);
        }
        for slot in transfer.waiting_for_next {
            self.waited(slot, actions);
        }
    }

    /// Begins to write blocks that are dirty; some requests wait for that.
    pub(crate) fn write_below(
        &mut self,
        file: u32,
        blocks: Range<u64>,
        waiting: &[u32],
        actions: &mut Vec<Action>,
    ) {
        let number = self.begin(Kind::Write, file, blocks.start);
        for &slot in waiting {
            self.request(slot).waits_for += 1;
        }
        self.writing_blocks += blocks.end - blocks.start;
        if let Some(transfer) = self.transfers.get_mut(number) {
            transfer.blocks.end = blocks.end;
            transfer.waiting.extend(waiting.iter().map(|slot| (*slot, None)));
        }
        let mut block = blocks.start;
        while block < blocks.end {
            let run = self.runs.find(file, block).expect("a dirty block is here");
            let length = self.runs.get(run).end().min(blocks.end) - block;
            let run = self.runs.isolate(run, block, length);
            self.set_data(run, Data::Writing, number);
            block += length;
        }
        self.ask_for(number, 0, 0, actions);
    }

    /// Copies bytes between the cache and a request.
    pub(crate) fn copy(&mut self, slot: u32, bytes: Range<u64>, actions: &mut Vec<Action>) {
        let Request { id: request, .. } = *self.request(slot);
        actions.push(Action::Copy { request, offset: bytes.start, length: bytes.end - bytes.start });
    }

    /// Does something with each run that a transfer moves.
    fn each_run(
        &mut self,
        transfer: &Transfer,
        number: u32,
        mut act: impl FnMut(&mut Cache, RunId, Range<u64>),
    ) {
        let mut block = transfer.blocks.start;
        while block < transfer.blocks.end {
            let Some(run) = self.runs.find(transfer.file, block) else {
                // Forgotten meanwhile.
                block = self.runs.gap_end(transfer.file, block, transfer.blocks.end);
                continue;
            };
            let found = *self.runs.get(run);
            let blocks = block..found.end().min(transfer.blocks.end);
            block = blocks.end;
            let under_way = matches!(found.traits.data, Data::Fetching | Data::Writing | Data::Rewritten);
            if under_way && found.traits.transfer == number {
                act(self, run, blocks);
            }
        }
    }
}
