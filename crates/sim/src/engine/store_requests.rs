//! Requests to servers like Pioscope's own: those that the library's client sends, by the protocol that both speak, on
//! links as the library has them.
//!
//! A server on a node of its own takes all requests of a rank's access together, as one part; one that works on the ranks' cores
//! takes each by itself, as its rank [copies](super::side_by_side) the next meanwhile.

use std::collections::BTreeMap;

use pio_machine::{Duration, Storage};
use pio_plan::{Access, Direction};
use pio_protocol::client::{
    self, CHUNK_BYTES, ClientSession, Exchange, MOST_STRIPS, Split, chunk_bytes, exchange,
};
use pio_protocol::{FileId, FileRef, Placement, in_whole_blocks};
use pio_trace::{Call, Event, Flags, HandleId, Target};

use super::Engine;
use super::requests::share;
use super::scattered::lie_apart;
use crate::kernel::Time;
use crate::process::{Scattered, StoreRequest};
use crate::server::Part;

/// A server numbers its files from the seconds of its first start on, times 65,536: so many bytes a file's number takes.
const FILE_COUNT: u64 = 1 << 46;

/// The links of all ranks to all servers.
#[derive(Debug, Default)]
pub(super) struct StoreLinks {
    links: BTreeMap<(u32, u32), ClientSession>,
}

/// Whether servers speak the protocol of Pioscope's own.
pub(super) fn speak_protocol(storage: &Storage) -> bool {
    matches!(storage, Storage::Striped { takes_views: true, .. })
}

impl StoreLinks {
    /// The requests of an access of a rank, in the order in which they are sent.
    fn requests(
        &mut self,
        rank: u32,
        file: u32,
        placement: Placement,
        scattered: &Scattered,
        direction: Direction,
    ) -> Vec<StoreRequest> {
        let file = FileRef { id: FileId::new(0, FILE_COUNT + u64::from(file)), placement };
        let direction = match direction {
            Direction::Read => client::Direction::Read,
            Direction::Write => client::Direction::Write,
        };
        let Scattered { access: Access { view, positions }, naming } = scattered;
        let most = chunk_bytes(CHUNK_BYTES, direction, view);
        let ask = |chunk: client::Chunk| {
            let (server, offset, bytes) =
                (placement.server_of_slot(chunk.slot), chunk.offset(view), chunk.len);
            let link = self.links.entry((rank, server)).or_default();
            let exchange = exchange(link, file, view, *naming, chunk, direction)
                .expect("a strategy lists no more pieces than a request may name");
            StoreRequest { server, part: 0, offset, bytes, exchange }
        };
        Split::new(&placement, view, positions.clone(), most, MOST_STRIPS).map(ask).collect()
    }
}

impl Engine<'_> {
    /// An access goes off to the servers of a store. `pieces`, if its bytes are not contiguous.
    pub(super) fn ask_store(
        &mut self,
        rank: u32,
        file: u32,
        placement: Placement,
        scattered: &Scattered,
        (direction, pieces): (Direction, bool),
    ) {
        let mut requests = self.links.requests(rank, file, placement, scattered, direction);
        let by_parts = self.copies_by_parts(file);
        let mut parts: Vec<(Part, Exchange)> = Vec::new();
        for request in &mut requests {
            let known = parts.iter().position(|(part, _)| part.server == request.server);
            let index = known.filter(|_| !by_parts).unwrap_or_else(|| {
                let part = first_of(rank, file, direction, placement, request);
                let number = parts.len() as u32;
                parts.push((Part { number, follows: known.is_some(), ..part }, Exchange::default()));
                parts.len() - 1
            });
            let (part, sum) = &mut parts[index];
            request.part = part.number;
            part.bytes += request.bytes;
            sum.request_bytes += request.exchange.request_bytes;
            sum.answer_bytes += request.exchange.answer_bytes;
        }
        let mut new_bytes = 0;
        if let Some(transfer) = &mut self.processes[rank as usize].transfer {
            transfer.asked = requests;
            new_bytes = transfer.new_bytes;
        }
        let all_bytes: u64 = parts.iter().map(|(part, _)| part.bytes).sum();
        let Access { view, positions } = &scattered.access;
        let pieces = pieces && !view.is_contiguous_over(positions.clone());
        let apart = pieces && lie_apart(&scattered.access);
        let shares = if pieces { placement.striping().shares(view, positions.clone()) } else { Vec::new() };
        for (part, _) in &mut parts {
            part.first_strip = part.first_strip.min(part.bytes);
            part.new_bytes = share(new_bytes, part.bytes, all_bytes);
            let slot = placement.slot_of_server(part.server);
            if let Some(of_server) = slot.and_then(|slot| shares.get(slot as usize)) {
                let pieces = share(of_server.pieces, part.bytes, of_server.bytes);
                part.pieces = pieces.max(of_server.pieces.min(1));
                part.apart = apart;
            }
            self.note_unsummed(part);
        }
        if let Some(transfer) = &mut self.processes[rank as usize].transfer {
            transfer.to_send = parts;
        }
        self.connect_and_send(rank);
    }

    /// The parts of a rank's request go off: of a write whose data it copies first, one after the other.
    pub(super) fn send_parts(&mut self, rank: u32) {
        let Some(transfer) = &mut self.processes[rank as usize].transfer else { return };
        let (current, file, parts) = (transfer.current, transfer.file, std::mem::take(&mut transfer.to_send));
        let (count, writes) =
            (parts.len() as u32, current.is_some_and(|it| it.direction == Direction::Write));
        if writes && count > 0 && self.copies_by_parts(file) {
            return self.send_by_parts(rank, parts);
        }
        parts.into_iter().for_each(|(part, exchange)| self.send_part(part, exchange));
        self.sent_parts(rank, count);
    }

    /// What of a write its server must sum at the next sync.
    fn note_unsummed(&mut self, part: &Part) {
        if part.direction == Direction::Write {
            let run = part.offset..part.offset + part.bytes;
            let summed = if part.pieces > 0 { 0 } else { in_whole_blocks(&run) };
            self.files[part.file as usize].unsummed_bytes += part.bytes - summed;
        }
    }

    /// How long servers sum so many bytes.
    pub(super) fn time_to_sum(&self, bytes: u64) -> Duration {
        match &self.machine.storage {
            Storage::Striped { summing: Some(rate), .. } => rate.time_of(bytes),
            _ => Duration::ZERO,
        }
    }

    /// A server of a store has answered a rank's requests: in the trace they stand in the place of calls to the kernel.
    pub(super) fn store_answered(&mut self, part: Part) {
        let process = &self.processes[part.rank as usize];
        let Some(transfer) = process.transfer.as_ref().filter(|transfer| transfer.physical) else { return };
        let operation = process.operation + 1;
        let (asked, handle) = (&transfer.asked, transfer.opened);
        let Some(start) = transfer.current.map(|request| request.start) else { return };
        let call = call_of(part.direction);
        let events: Vec<Event> = asked
            .iter()
            .filter(|request| request.part == part.number)
            .map(|request| self.request_event(part.rank, request, (call, handle, start, operation)))
            .collect();
        events.into_iter().for_each(|event| self.write(event));
    }

    fn request_event(
        &self,
        rank: u32,
        request: &StoreRequest,
        (call, handle, start, operation): (Call, HandleId, Time, u64),
    ) -> Event {
        Event {
            handle: Some(handle),
            target: Target::Server { server: request.server, offset: request.offset },
            size: request.bytes,
            result: request.bytes as i64,
            flags: Flags::PHYSICAL,
            operation,
            ..self.event(rank, call, start)
        }
    }
}

/// The call that a request to a server is.
pub(super) fn call_of(direction: Direction) -> Call {
    match direction {
        Direction::Read => Call::ServerRead,
        Direction::Write => Call::ServerWrite,
    }
}

/// The part that the first request to a server begins.
fn first_of(rank: u32, file: u32, direction: Direction, placement: Placement, first: &StoreRequest) -> Part {
    let striping = placement.striping();
    Part {
        rank,
        file,
        server: first.server,
        number: 0,
        follows: false,
        direction,
        offset: striping.server_offset(first.offset),
        bytes: 0,
        first_strip: striping.unit - first.offset % striping.unit,
        pieces: 0,
        apart: false,
        new_bytes: 0,
        answer_bytes: 0,
        syncs: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pio_layout::{Datatype, View};
    use pio_protocol::client::Naming;

    /// A list takes a few bytes a piece, a view tens of bytes whatever their number, once its number is known.
    #[test]
    fn lists_take_bytes_by_the_piece_and_views_do_not() {
        let placement = Placement::new(1 << 16, 2, 1, 2).unwrap();
        let view = View::new(0, 1, Datatype::bytes(4).resized(0, 1024).unwrap()).unwrap();
        let mut links = StoreLinks::default();
        let mut heads = |naming, pieces: u64| -> u64 {
            let access = Access { view: view.clone(), positions: 0..4 * pieces };
            let scattered = Scattered { access, naming };
            let sent = links.requests(0, 0, placement, &scattered, Direction::Write);
            sent.iter().map(|request| request.exchange.request_bytes).sum::<u64>() - 4 * pieces
        };
        let (few, many) = (heads(Naming::List, 8), heads(Naming::List, 64));
        assert!(many >= few + 3 * 56 && many <= few + 6 * 56, "{few}, {many}");
        let first = heads(Naming::View, 64);
        let (next, long) = (heads(Naming::View, 64), heads(Naming::View, 64_000));
        assert!(next < first && next < few && long <= 2 * next + 60, "{first}, {next}, {long}");
    }
}
