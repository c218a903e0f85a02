//! Data of an access to servers that work on the ranks' cores: its rank copies them part by part, while threads of the servers
//! work on others. Before a part of a write is sent its data are copied to where the thread finds them; those of a read, when they
//! have come, from where the thread has left them.

use pio_machine::Duration;
use pio_protocol::client::Exchange;

use super::Engine;
use super::requests::share;
use super::sites::Dealt;
use crate::process::Then;
use crate::server::Part;

impl Engine<'_> {
    /// Whether ranks copy the data of this file so.
    pub(super) fn copies_by_parts(&self, file: u32) -> bool {
        self.threads.is_some() && matches!(self.files[file as usize].dealt, Some(Dealt::ByStore(_)))
    }

    /// The parts of a rank's write go off, as soon as the data of each are copied.
    pub(super) fn send_by_parts(&mut self, rank: u32, mut parts: Vec<(Part, Exchange)>) {
        let Some(transfer) = &mut self.processes[rank as usize].transfer else { return };
        transfer.parts_left = parts.len() as u32;
        // They are taken from the end on.
        parts.reverse();
        transfer.to_send = parts;
        self.copy_next(rank);
    }

    /// The data of the next part of a write are copied.
    fn copy_next(&mut self, rank: u32) {
        let next = self.processes[rank as usize].transfer.as_ref().and_then(|it| it.to_send.last());
        let Some((part, _)) = next.cloned() else { return };
        let copy = self.time_to_copy_part(rank, part.bytes);
        let memory = self.time_for_memory_of_rank(&part);
        self.compute(rank, copy.saturating_add(memory), Then::SendPart);
    }

    /// They are: the part goes off. Behind the last one, the rank waits.
    pub(super) fn send_copied(&mut self, rank: u32) {
        let Some(transfer) = &mut self.processes[rank as usize].transfer else { return };
        let Some((part, exchange)) = transfer.to_send.pop() else { return };
        let is_last = transfer.to_send.is_empty();
        self.send_part(part, exchange);
        if is_last {
            self.begin_asking(rank, part.bytes);
        } else {
            self.copy_next(rank);
        }
    }

    /// A server has sent the data of a part of a read.
    pub(super) fn take_part(&mut self, part: &Part) {
        let Some(transfer) = &mut self.processes[part.rank as usize].transfer else { return };
        transfer.copies.come += part.bytes;
        if !transfer.copies.is_busy {
            self.take_what_has_come(part.rank);
        }
    }

    fn take_what_has_come(&mut self, rank: u32) {
        self.end_asking(rank);
        let Some(transfer) = &mut self.processes[rank as usize].transfer else { return };
        transfer.copies.is_busy = true;
        let bytes = std::mem::take(&mut transfer.copies.come);
        let time = self.time_to_copy_part(rank, bytes);
        self.compute(rank, time, Then::TakeParts);
    }

    /// What had come is copied: the rank goes on with what has come meanwhile, or waits for the rest.
    pub(super) fn go_on_taking(&mut self, rank: u32) {
        let Some(transfer) = &mut self.processes[rank as usize].transfer else { return };
        transfer.copies.is_busy = false;
        if transfer.copies.come > 0 {
            self.take_what_has_come(rank);
        } else if transfer.parts_left == 0 {
            self.complete(rank);
        } else {
            self.begin_asking(rank, 0);
        }
    }

    /// So many of the bytes of a request have their share of what all of them take.
    fn time_to_copy_part(&self, rank: u32, bytes: u64) -> Duration {
        let current = self.processes[rank as usize].transfer.as_ref().and_then(|transfer| transfer.current);
        let Some(request) = current else { return Duration::ZERO };
        let all = self.costs_of(request.direction).moving(request.bytes);
        Duration::from_picoseconds(share(all.picoseconds(), bytes, request.bytes))
    }
}
