//! What the ranks of one open file talk through: a communicator of their own, and shared memory.
//!
//! A channel outlives the file: the next file on the same communicator takes it over, with its buffers mapped and warm.

use pio_plan::IoError;

use super::communicator::{Communicator, Sending};
use super::segment::{Address, Segment};
use super::status::Status;

/// Message tags go round: operations of one file that are so far apart are never under way together. MPI promises tags
/// up to 32767.
const TAGS: u32 = 32768;

/// A communicator, the collective buffers of its ranks, and scratch memory.
#[derive(Debug)]
pub struct Channel {
    /// Which of the channels of its communicator; the same on all ranks.
    pub id: u64,
    /// For messages.
    pub communicator: Communicator,
    /// This rank's collective buffer.
    pub own: Segment,
    /// Those of the ranks that share memory with this one (itself not among them).
    others: Vec<Option<Segment>>,
    operations: u32,
    /// Sends that are not yet complete.
    pub sending: Vec<Sending>,
    /// For requests to the file that do not go straight to or from memory.
    pub block: Vec<u8>,
    /// For messages that carry data.
    pub received: Vec<u8>,
}

impl Channel {
    /// A new channel. `node` tells for each rank the least rank that shares memory with it; none if none does.
    /// Collective.
    pub fn new(id: u64, communicator: Communicator, node: Option<&[u32]>) -> Result<Channel, Status> {
        let (own, others) = match node {
            None => (Segment::private(), (0..communicator.ranks()).map(|_| None).collect()),
            Some(node) => share(&communicator, node)?,
        };
        let (sending, block, received) = Default::default();
        Ok(Channel { id, communicator, own, others, operations: 0, sending, block, received })
    }

    /// The tag of the next operation.
    pub fn next_tag(&mut self) -> i32 {
        self.operations = (self.operations + 1) % TAGS;
        self.operations as i32
    }

    /// Whether this rank shares memory with another.
    pub fn shares_with(&self, rank: u32) -> bool {
        self.others.get(rank as usize).is_some_and(Option::is_some)
    }

    /// The first bytes of another rank's collective buffer.
    pub fn buffer_of(&mut self, rank: u32, len: u64) -> Result<&mut [u8], IoError> {
        match self.others.get_mut(rank as usize) {
            Some(Some(segment)) => segment.bytes(len),
            _ => Err(IoError { errno: libc::EPROTO }),
        }
    }
}

fn share(communicator: &Communicator, node: &[u32]) -> Result<(Segment, Vec<Option<Segment>>), Status> {
    // A rank that cannot share still takes part: the others see that its inode is 0, which no file has.
    let (own, address) = match Segment::shared() {
        Ok((own, address)) => (own, address),
        Err(_) => (Segment::private(), Address { process: 0, descriptor: 0, inode: 0 }),
    };
    let mine = [u64::from(address.process), u64::from(address.descriptor), address.inode];
    let me = communicator.rank() as usize;
    let others =
        communicator.gather(mine)?.into_iter().enumerate().map(|(rank, [process, descriptor, inode])| {
            let address = Address { process: process as u32, descriptor: descriptor as u32, inode };
            let shares = rank != me && node[rank] == node[me] && inode != 0 && mine[2] != 0;
            shares.then(|| Segment::of(address))
        });
    Ok((own, others.collect()))
}
