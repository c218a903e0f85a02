//! What a rank lets the others of its node reach in memory: its collective buffers, what it gathers for them, and its outbox.
//!
//! Data go from rank to rank on one of two [paths](super::transfer_path). The client puts them into an aggregator's collective buffer, or
//! takes them out of it, where they belong. Or the sender packs them into its *outbox*, past its caches, for the receiver to unpack:
//! one more copy, but no processor then writes to lines of memory that another has in its cache: see [`super::copy`].
//!
//! What an operation put into an outbox stays there until the next one in which this rank sends data: by then every rank has
//! described its part, and is through with this one.

use std::ops::Range;

use pio_plan::{IoError, Slot};

use crate::core::mpi::communicator::Communicator;
use crate::core::mpi::shared_memory::{Address, Segment};
use crate::core::mpi::status::Status;

/// More data of an operation than that do not go through outboxes.
const MOST_OUTBOX_BYTES: u64 = 16 << 20;
/// What an outbox holds for a rank begins with a line of memory.
const LINE_BYTES: u64 = 64;
/// Of a rank.
const SEGMENTS: usize = Slot::BUFFERS + 1;

/// The buffers of one rank, this or another.
#[derive(Debug)]
pub(crate) struct Buffers {
    collective: [Segment; Slot::BUFFERS],
    outbox: Segment,
    /// How much of it the operation has used.
    used: u64,
}

impl Buffers {
    /// Of this rank alone.
    pub(crate) fn private() -> Buffers {
        Buffers::of_segments(std::array::from_fn(|_| Segment::private()))
    }

    fn of_segments([first, second, gathered, outbox]: [Segment; SEGMENTS]) -> Buffers {
        Buffers { collective: [first, second, gathered], outbox, used: 0 }
    }

    /// The first bytes of a collective buffer, or of what is gathered.
    pub(crate) fn collective(&mut self, slot: Slot, len: u64) -> Result<&mut [u8], IoError> {
        self.collective[slot.index()].bytes(len)
    }

    /// What was put into the outbox is no longer needed.
    pub(crate) fn empty_outbox(&mut self) {
        self.used = 0;
    }

    /// Room for so many bytes in the outbox, and where it begins; and the first bytes of a collective buffer. None if there is
    /// no room.
    pub(crate) fn room(
        &mut self,
        len: u64,
        slot: Slot,
        collective_len: u64,
    ) -> Option<(u64, &mut [u8], &mut [u8])> {
        let start = self.used;
        let end = start.checked_add(len).filter(|end| *end <= MOST_OUTBOX_BYTES)?;
        let collective = self.collective[slot.index()].bytes(collective_len).ok()?;
        let room = self.outbox.bytes(end).ok()?.get_mut(start as usize..)?;
        self.used = end.next_multiple_of(LINE_BYTES);
        Some((start, room, collective))
    }

    /// What is in the outbox there.
    pub(crate) fn sent(&mut self, place: Range<u64>) -> Result<&[u8], IoError> {
        let nowhere = IoError { errno: libc::EPROTO };
        if place.end > MOST_OUTBOX_BYTES {
            return Err(nowhere);
        }
        self.outbox.bytes(place.end)?.get(place.start as usize..).ok_or(nowhere)
    }
}

/// This rank's buffers, and those of the ranks that share memory with it. `node` tells for each rank the least rank of its node.
/// Collective.
pub(crate) fn share(control: &Communicator, node: &[u32]) -> Result<(Buffers, Vec<Option<Buffers>>), Status> {
    // A rank that cannot share still takes part: the others see that its inodes are 0, which no file has.
    let segments = [(); SEGMENTS].map(|()| Segment::shared_by_file());
    let (own, addresses) = match segments {
        [Ok((first, a)), Ok((second, b)), Ok((gathered, c)), Ok((outbox, d))] => {
            (Buffers::of_segments([first, second, gathered, outbox]), [a, b, c, d])
        }
        _ => (Buffers::private(), [Address { process: 0, descriptor: 0, inode: 0 }; SEGMENTS]),
    };
    let mut mine = [[0; 3]; SEGMENTS];
    for (words, address) in mine.iter_mut().zip(addresses) {
        *words = address.words();
    }
    let [[a, b, c], [d, e, f], [g, h, i], [j, k, l]] = mine;
    let all = control.gather([a, b, c, d, e, f, g, h, i, j, k, l])?;
    let me = control.rank() as usize;
    let others = all.iter().enumerate().map(|(rank, words)| {
        let addresses = words.as_chunks::<3>().0.iter().map(|words| Address::of_words(*words));
        let addresses: [Address; SEGMENTS] = addresses.collect::<Vec<_>>().try_into().ok()?;
        let shares = rank != me && node[rank] == node[me] && addresses[0].inode != 0 && mine[0][2] != 0;
        shares.then(|| Buffers::of_segments(addresses.map(Segment::of)))
    });
    Ok((own, others.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outbox_fills_line_by_line_until_it_is_emptied() {
        let mut buffers = Buffers::private();
        let slot = Slot::of(0);
        let mut place =
            |len| buffers.room(len, slot, 10).map(|(start, room, own)| (start, room.len(), own.len()));
        assert_eq!(place(100), Some((0, 100, 10)));
        assert_eq!(place(1), Some((128, 1, 10)));
        assert_eq!(place(MOST_OUTBOX_BYTES), None);
        assert_eq!(place(64), Some((192, 64, 10)));
        buffers.empty_outbox();
        assert_eq!(buffers.room(7, slot, 0).map(|(start, ..)| start), Some(0));
        assert_eq!(buffers.sent(2..7).map(<[u8]>::len), Ok(5));
        assert!(buffers.sent(0..MOST_OUTBOX_BYTES + 1).is_err());
        assert!(buffers.sent(u64::MAX - 1..u64::MAX).is_err());
    }
}
