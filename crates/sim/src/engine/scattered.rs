//! Requests that name many pieces, by list or by view: each server puts (or picks) its own in place.

use pio_layout::Striping;
use pio_plan::Direction;

use super::{Cargo, Engine};
use crate::kernel::Time;
use crate::process::{Naming, Scattered};
use crate::server::Part;

/// Offset and length of a piece in a request that lists it; positions of a view in one that names it.
const LISTED_PIECE_BYTES: u64 = 16;

impl Engine<'_> {
    /// A request for many pieces goes off to the servers that have some of them, each of which gets its own part.
    pub(super) fn issue_scattered(
        &mut self,
        rank: u32,
        file: u32,
        direction: Direction,
        striping: Striping,
        scattered: &Scattered,
    ) {
        let Scattered { access, naming } = scattered;
        let node = self.processes[rank as usize].node;
        let mut count = 0;
        for server in 0..striping.factor {
            let own = striping.intersect(server, &access.view, access.positions.clone());
            if own.is_empty() {
                continue;
            }
            let pieces: u64 = own.runs(0..own.size()).map(|run| run.count).sum();
            let first = own.lower_bound() as u64;
            let head = match naming {
                Naming::List => pieces * LISTED_PIECE_BYTES,
                Naming::View => {
                    let mut head = Vec::new();
                    access.view.encode(&mut head);
                    head.len() as u64 + LISTED_PIECE_BYTES
                }
            };
            let bytes = own.size();
            let part = Part {
                rank,
                file,
                server,
                direction,
                offset: striping.server_offset(first),
                bytes,
                first_strip: bytes.min(striping.unit - first % striping.unit),
                pieces,
            };
            let data = if direction == Direction::Write { bytes } else { 0 };
            let server_node = self.hardware.servers[server as usize].node;
            self.ship(node, server_node, self.control_bytes() + head + data, Cargo::Request(part));
            count += 1;
        }
        match &mut self.processes[rank as usize].transfer {
            Some(transfer) if count > 0 => transfer.parts_left = count,
            _ => self.complete(rank),
        }
    }

    /// A server's processor moves pieces to or from their places: when it is done.
    pub(super) fn place(&mut self, part: Part) -> Time {
        let cost = self.copy_time(part.bytes, part.pieces);
        self.hardware.servers[part.server as usize].placing.serve(self.now, cost).1
    }
}
