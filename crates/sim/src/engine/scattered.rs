//! Requests that name many pieces, by list or by view: each server puts (or picks) its own in place.

use pio_layout::{Share, Striping};
use pio_machine::{Duration, Pieces, Storage};
use pio_plan::{Access, Direction};
use pio_protocol::client::Naming;
use pio_protocol::goes_along;

use super::Engine;
use super::operations::time_to_copy;
use crate::kernel::Time;
use crate::process::Scattered;
use crate::server::Part;

/// Offset and length of a piece in a request that lists it; positions of a view in one that names it.
const LISTED_PIECE_BYTES: u64 = 16;
/// What a piece that is an access of its own to a server's file takes beyond its bytes was measured with pieces so long.
const ALONE_BYTES: u64 = 4096;

/// Whether the pieces of an access are, in the mean, so far apart that a server makes an access to its file for each.
pub(super) fn lie_apart(access: &Access) -> bool {
    let Access { view, positions } = access;
    let pieces = view.pieces(positions.clone());
    let bytes = positions.end - positions.start;
    let ends = [positions.start, positions.end.saturating_sub(1)].map(|at| view.offset_of(at));
    let ([Some(first), Some(last)], Some(gaps)) = (ends, pieces.checked_sub(1).filter(|gaps| *gaps > 0))
    else {
        return false;
    };
    let gap = (last + 1).saturating_sub(first).saturating_sub(bytes) / gaps;
    !goes_along(gap, bytes / pieces)
}

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
        let mut view = Vec::new();
        if *naming == Naming::View {
            access.view.encode(&mut view);
        }
        let in_pieces = !access.view.is_contiguous_over(access.positions.clone());
        let apart = in_pieces && lie_apart(access);
        let mut count = 0;
        for (server, share) in (0..).zip(striping.shares(&access.view, access.positions.clone())) {
            let Share { first, bytes, pieces } = share;
            if bytes == 0 {
                continue;
            }
            let head = match naming {
                Naming::List => pieces * LISTED_PIECE_BYTES,
                Naming::View => view.len() as u64 + LISTED_PIECE_BYTES,
            };
            let part = Part {
                rank,
                file,
                server,
                number: count,
                follows: false,
                direction,
                offset: striping.server_offset(first),
                bytes,
                first_strip: bytes.min(striping.unit - first % striping.unit),
                pieces: if in_pieces { pieces } else { 0 },
                apart,
                new_bytes: 0,
                answer_bytes: 0,
                syncs: false,
            };
            let exchange = self.plain_exchange(&part, head);
            self.send_part(part, exchange);
            count += 1;
        }
        self.sent_parts(rank, count);
    }

    /// What a caller's own analysis of a request for many pieces takes it; nothing for other requests, or if the machine's
    /// description says nothing of it.
    pub(super) fn analysis_time(&self, rank: u32, direction: Direction) -> Duration {
        let transfer = self.processes[rank as usize].transfer.as_ref();
        let scattered = transfer.and_then(|transfer| transfer.scattered.as_ref());
        let (Some(Scattered { access, .. }), Some(costs)) = (scattered, self.piece_costs()) else {
            return Duration::ZERO;
        };
        let piece = match direction {
            Direction::Read => costs.read,
            Direction::Write => costs.write,
        };
        let pieces = access.view.pieces(access.positions.clone());
        piece.saturating_mul(pieces)
    }

    /// A server's processor moves pieces to or from their places: when it is done.
    pub(super) fn place(&mut self, part: Part) -> Time {
        let cost = self.time_to_place(&part);
        self.hardware.servers[part.server as usize].placing.serve(self.now, cost).1
    }

    /// How long it takes a server to move the pieces of a part.
    pub(super) fn time_to_place(&self, part: &Part) -> Duration {
        match self.piece_costs() {
            Some(Pieces { server, .. }) => {
                let alone = part.pieces.saturating_mul(ALONE_BYTES);
                let bytes = if part.apart { alone } else { part.bytes.min(alone) };
                time_to_copy(server, bytes, part.pieces)
            }
            None => time_to_copy(&self.machine.nodes.copy, part.bytes, part.pieces),
        }
    }

    /// What writes of a part to new pages take longer: one for each piece that is one, or one.
    pub(super) fn time_for_new_pages(&self, part: &Part) -> Duration {
        let new = self.machine.calls.new_pages.as_ref().filter(|_| part.new_bytes > 0);
        let Some(cost) = new else { return Duration::ZERO };
        let writes = if part.apart { part.pieces } else { 1 };
        // Of these, those to new pages; where they end, a page has other bytes, too.
        let share = u128::from(writes) * u128::from(part.new_bytes) / u128::from(part.bytes.max(1));
        let to_new = u64::try_from(share).unwrap_or(writes).clamp(1, writes);
        let folios = match part.pieces {
            0 => self.time_for_folios(part.offset, part.bytes, part.new_bytes),
            _ => Duration::ZERO,
        };
        cost.of(part.new_bytes / to_new).saturating_mul(to_new).saturating_add(folios)
    }

    fn piece_costs(&self) -> Option<&Pieces> {
        match &self.machine.storage {
            Storage::Striped { pieces, .. } => pieces.as_ref(),
            Storage::Local { .. } | Storage::Shared(_) | Storage::Parallel(_) | Storage::IoNodes { .. } => {
                None
            }
        }
    }
}
