//! What messages to and from servers like Pioscope's own take: counted by the protocol that they speak, on links as the
//! library has them.

use std::collections::BTreeMap;

use pio_layout::Striping;
use pio_machine::Storage;
use pio_plan::{Access, Direction};
use pio_protocol::client::{
    self, CHUNK_BYTES, ClientSession, Exchange, MOST_STRIPS, Split, chunk_bytes, exchange,
};
use pio_protocol::{FileId, FileRef, Placement};

use crate::process::Scattered;

/// A server numbers its files from the seconds of its first start on, times 65,536: so many bytes a file's number takes.
const FILE_COUNT: u64 = 1 << 46;

/// What messages take, by server.
pub(super) type Exchanges = BTreeMap<u32, Exchange>;

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
    /// What the messages of an access of a rank take, for each server that has some of it.
    pub(super) fn exchanges(
        &mut self,
        rank: u32,
        file: u32,
        striping: Striping,
        scattered: &Scattered,
        direction: Direction,
    ) -> Exchanges {
        let Striping { unit, factor, first, .. } = striping;
        let Some(placement) = Placement::new(unit, factor, first, factor) else { return Exchanges::new() };
        let file = FileRef { id: FileId::new(0, FILE_COUNT + u64::from(file)), placement };
        let direction = match direction {
            Direction::Read => client::Direction::Read,
            Direction::Write => client::Direction::Write,
        };
        let Scattered { access: Access { view, positions }, naming } = scattered;
        let mut sums = Exchanges::new();
        let most = chunk_bytes(CHUNK_BYTES, direction, view);
        for chunk in Split::new(&placement, view, positions.clone(), most, MOST_STRIPS) {
            let server = placement.server_of_slot(chunk.slot);
            let link = self.links.entry((rank, server)).or_default();
            let bytes = exchange(link, file, view, *naming, chunk, direction)
                .expect("a strategy lists no more pieces than a request may name");
            let sum = sums.entry(server).or_default();
            sum.request_bytes += bytes.request_bytes;
            sum.answer_bytes += bytes.answer_bytes;
        }
        sums
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
        let striping = Striping::new(1 << 16, 2, 1).unwrap();
        let view = View::new(0, 1, Datatype::bytes(4).resized(0, 1024).unwrap()).unwrap();
        let mut links = StoreLinks::default();
        let mut heads = |naming, pieces: u64| -> u64 {
            let access = Access { view: view.clone(), positions: 0..4 * pieces };
            let sums = links.exchanges(0, 0, striping, &Scattered { access, naming }, Direction::Write);
            sums.values().map(|sum| sum.request_bytes).sum::<u64>() - 4 * pieces
        };
        let (few, many) = (heads(Naming::List, 8), heads(Naming::List, 64));
        assert!(many >= few + 3 * 56 && many <= few + 6 * 56, "{few}, {many}");
        let first = heads(Naming::View, 64);
        let (next, long) = (heads(Naming::View, 64), heads(Naming::View, 64_000));
        assert!(next < first && next < few && long <= 2 * next + 60, "{first}, {next}, {long}");
    }
}
