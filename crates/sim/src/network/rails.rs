//! Nodes with several links into a network.
//!
//! Each link of a node is an end of its own in the network beneath, which knows nothing of it: a node's links are ends with
//! successive numbers. A message goes in pieces of equal size, or in one, over links of its sender to links of its receiver,
//! which both take theirs in turn. It is there when its last piece is. Pieces may overtake each other, messages of one node to
//! another are handed over in their order, whichever links they took: a short one waits for a long one before it even if they
//! share none.
//!
//! So a rank that sends one undivided message at a time gets the bandwidth of one link, and all ranks of a node together that of
//! all its links, as where each rank is bound to one of them.

use super::carrier::{Delivery, MessageId, Network};
use super::pairs::Pairs;
use crate::kernel::{Model, Slab, Time};

/// A network some of whose nodes have several links.
pub struct Rails {
    inner: Box<dyn Network>,
    nodes: Vec<Node>,
    /// Bytes of a piece, at least; none if messages are not divided.
    piece: Option<u64>,
    messages: Slab<Message>,
    /// By the number of a piece: the message that it is of.
    pieces: Slab<u32>,
    /// The last message under way from a node to another.
    last: Pairs,
    /// What has come out of the network beneath; kept for its room.
    arrived: Vec<Delivery>,
}

/// A node's links.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The end that is its first link.
    first: u32,
    count: u32,
    /// The link whose turn it is, when it sends and when it receives.
    outgoing: u32,
    incoming: u32,
}

/// A message under way.
#[derive(Debug)]
struct Message {
    id: MessageId,
    from: u32,
    to: u32,
    /// Pieces on the way.
    pieces: u32,
    first_byte: Time,
    last_byte: Time,
    /// The next message to the same receiver, and whether an earlier one is under way.
    follower: Option<u32>,
    is_held: bool,
}

/// How many ends so many links of each node are.
pub(super) fn ends(links: &[u32]) -> u32 {
    links.iter().sum()
}

impl Rails {
    /// Puts nodes with so many links each, at least one, on a network with as many ends as they have links.
    pub fn new(inner: Box<dyn Network>, links: &[u32], piece: Option<u64>) -> Rails {
        assert!(ends(links) <= inner.nodes() && links.iter().all(|count| *count > 0));
        let mut first = 0;
        let mut node = |count: &u32| {
            let node = Node { first, count: *count, outgoing: 0, incoming: 0 };
            first += count;
            node
        };
        Rails {
            nodes: links.iter().map(&mut node).collect(),
            inner,
            piece,
            messages: Slab::new(),
            pieces: Slab::new(),
            last: Pairs::new(),
            arrived: Vec::new(),
        }
    }

    /// In how many pieces a message goes.
    fn pieces_of(&self, from: u32, to: u32, bytes: u64) -> u32 {
        let Some(piece) = self.piece else { return 1 };
        let links = self.nodes[from as usize].count.max(self.nodes[to as usize].count);
        (bytes / piece).clamp(1, links.into()) as u32
    }

    /// A piece has arrived; with the last one its message is delivered, and so is what waited for it.
    fn take(&mut self, arrived: &Delivery, delivered: &mut Vec<Delivery>) {
        let mut slot = self.pieces[arrived.message.0];
        self.pieces.remove(arrived.message.0);
        let message = &mut self.messages[slot];
        message.pieces -= 1;
        message.first_byte = message.first_byte.min(arrived.first_byte);
        message.last_byte = message.last_byte.max(arrived.last_byte);
        while self.messages[slot].pieces == 0 && !self.messages[slot].is_held {
            let &Message { id, from, to, first_byte, last_byte, follower, .. } = &self.messages[slot];
            delivered.push(Delivery { message: id, first_byte, last_byte });
            self.messages.remove(slot);
            let Some(next) = follower else {
                self.last.remove(from, to);
                return;
            };
            self.messages[next].is_held = false;
            slot = next;
        }
    }
}

impl Node {
    /// The end whose turn it is to send.
    fn sends(&mut self) -> u32 {
        let end = self.first + self.outgoing;
        self.outgoing = (self.outgoing + 1) % self.count;
        end
    }

    /// The end whose turn it is to receive.
    fn receives(&mut self) -> u32 {
        let end = self.first + self.incoming;
        self.incoming = (self.incoming + 1) % self.count;
        end
    }
}

impl Network for Rails {
    fn nodes(&self) -> u32 {
        self.nodes.len() as u32
    }

    fn send(&mut self, now: Time, message: MessageId, from: u32, to: u32, bytes: u64) {
        let pieces = self.pieces_of(from, to, bytes);
        let slot = self.messages.insert(Message {
            id: message,
            from,
            to,
            pieces,
            first_byte: Time::NEVER,
            last_byte: Time::default(),
            follower: None,
            is_held: false,
        });
        if let Some(before) = self.last.set(from, to, slot) {
            self.messages[before].follower = Some(slot);
            self.messages[slot].is_held = true;
        }
        for piece in 0..u64::from(pieces) {
            // The first ones have a byte more if they cannot be equal.
            let share = bytes / u64::from(pieces) + u64::from(piece < bytes % u64::from(pieces));
            let (out, into) = (self.nodes[from as usize].sends(), self.nodes[to as usize].receives());
            let number = self.pieces.insert(slot);
            self.inner.send(now, MessageId(number), out, into, share);
        }
    }
}

impl Model for Rails {
    type Out = Delivery;

    fn next_time(&self) -> Option<Time> {
        self.inner.next_time()
    }

    fn advance(&mut self, until: Time, delivered: &mut Vec<Delivery>) {
        let before = delivered.len();
        let mut arrived = std::mem::take(&mut self.arrived);
        while delivered.len() == before {
            self.inner.advance(until, &mut arrived);
            if arrived.is_empty() {
                break;
            }
            for piece in arrived.drain(..) {
                self.take(&piece, delivered);
            }
        }
        self.arrived = arrived;
    }
}
