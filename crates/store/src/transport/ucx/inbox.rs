//! What came for a worker and was not taken yet: messages, put in order by their numbers; requests to be connected; what
//! the endpoint failed with.
//!
//! UCX delivers whenever it makes progress, also while we wait for something else. So there are bounds to what waits here:
//! a peer that passes them has failed. Large data are not here but with their sender until they are fetched.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

use super::handles::{ConnectionRequest, Descriptor};
use super::library::Status;

/// Bytes of a message's number, in front of its header.
pub(super) const NUMBER_BYTES: usize = 8;
/// Bytes of messages that may wait while strangers may send greetings only.
const GREETING_QUEUE_BYTES: usize = 64 << 10;
/// Messages that may wait, or overtake another.
const MOST_MESSAGES: usize = 4096;
/// Clients that may wait to be connected.
const MOST_REQUESTS: usize = 1024;

/// Where a message's data are.
#[derive(Debug)]
pub(super) enum Body {
    /// They came with it.
    Here(Vec<u8>),
    /// They are with their sender.
    There {
        /// What they are fetched with.
        descriptor: Descriptor,
        /// How many bytes.
        len: usize,
    },
}

impl Body {
    pub(super) fn len(&self) -> usize {
        match self {
            Body::Here(data) => data.len(),
            Body::There { len, .. } => *len,
        }
    }
}

/// A message that came.
#[derive(Debug)]
pub(super) struct Arrived {
    /// Without the number.
    pub(super) header: Vec<u8>,
    pub(super) body: Body,
}

/// Why nothing more can come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// UCX says so.
    Status(Status),
    /// The peer sent something that makes no sense: this was expected.
    Malformed(&'static str),
}

/// What came and was not taken yet. Shared with UCX's handlers, which run only while its owner makes progress.
#[derive(Debug)]
pub(super) struct Inbox {
    arrived: RefCell<BTreeMap<u64, Arrived>>,
    /// The number of the message to be taken next.
    next: Cell<u64>,
    queued_bytes: Cell<usize>,
    most_bytes: Cell<usize>,
    requests: RefCell<VecDeque<ConnectionRequest>>,
    failed: Cell<Option<Failed>>,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox {
            arrived: RefCell::default(),
            next: Cell::new(0),
            queued_bytes: Cell::new(0),
            most_bytes: Cell::new(GREETING_QUEUE_BYTES),
            requests: RefCell::default(),
            failed: Cell::new(None),
        }
    }
}

impl Inbox {
    /// How many bytes of messages may wait from now on, beside those of greetings.
    pub(super) fn set_most_bytes(&self, bytes: usize) {
        self.most_bytes.set(GREETING_QUEUE_BYTES.saturating_add(bytes));
    }

    /// Whether there is room for a message whose `len` bytes of data came with it. If not, the peer has failed.
    pub(super) fn admits(&self, header: &[u8], len: usize) -> bool {
        let Some(number) = header.first_chunk::<NUMBER_BYTES>().map(|number| u64::from_le_bytes(*number))
        else {
            return self.refuse("a message's number");
        };
        let bytes = self.queued_bytes.get().saturating_add(header.len()).saturating_add(len);
        if bytes > self.most_bytes.get() {
            return self.refuse("no more than the limits allow");
        }
        let ahead = number.checked_sub(self.next.get());
        if ahead.is_none_or(|ahead| ahead >= MOST_MESSAGES as u64)
            || self.arrived.borrow().contains_key(&number)
        {
            return self.refuse("the number of a message to come");
        }
        true
    }

    /// Takes a message in; false if there is no room for it.
    pub(super) fn take(&self, header: &[u8], body: Body) -> bool {
        let here = if let Body::Here(data) = &body { data.len() } else { 0 };
        if !self.admits(header, here) {
            return false;
        }
        let Some((number, rest)) = header.split_first_chunk::<NUMBER_BYTES>() else { return false };
        self.queued_bytes.set(self.queued_bytes.get() + rest.len() + here);
        let arrived = Arrived { header: rest.to_vec(), body };
        self.arrived.borrow_mut().insert(u64::from_le_bytes(*number), arrived);
        true
    }

    pub(super) fn has_next(&self) -> bool {
        self.arrived.borrow().contains_key(&self.next.get())
    }

    /// The next message in order, if it came.
    pub(super) fn next(&self) -> Option<Arrived> {
        let arrived = self.arrived.borrow_mut().remove(&self.next.get())?;
        let here = if let Body::Here(data) = &arrived.body { data.len() } else { 0 };
        self.queued_bytes.set(self.queued_bytes.get() - arrived.header.len() - here);
        self.next.set(self.next.get() + 1);
        Some(arrived)
    }

    /// All that was not taken.
    pub(super) fn empty(&self) -> Vec<Body> {
        self.queued_bytes.set(0);
        std::mem::take(&mut *self.arrived.borrow_mut()).into_values().map(|arrived| arrived.body).collect()
    }

    /// A client wants to be connected.
    pub(super) fn take_request(&self, request: ConnectionRequest) {
        self.requests.borrow_mut().push_back(request);
    }

    /// The last that came, if more wait than may.
    pub(super) fn surplus_request(&self) -> Option<ConnectionRequest> {
        let mut requests = self.requests.borrow_mut();
        if requests.len() > MOST_REQUESTS { requests.pop_back() } else { None }
    }

    pub(super) fn has_request(&self) -> bool {
        !self.requests.borrow().is_empty()
    }

    pub(super) fn next_request(&self) -> Option<ConnectionRequest> {
        self.requests.borrow_mut().pop_front()
    }

    /// Notes that nothing more can come; the first reason counts.
    pub(super) fn fail(&self, failed: Failed) {
        if self.failed.get().is_none() {
            self.failed.set(Some(failed));
        }
    }

    pub(super) fn failed(&self) -> Option<Failed> {
        self.failed.get()
    }

    fn refuse(&self, expected: &'static str) -> bool {
        self.fail(Failed::Malformed(expected));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(number: u64, rest: &[u8]) -> Vec<u8> {
        [&number.to_le_bytes(), rest].concat()
    }

    #[test]
    fn messages_are_taken_in_the_order_of_their_numbers() {
        let inbox = Inbox::default();
        for number in [2, 0, 3, 1] {
            assert!(inbox.take(&header(number, b"h"), Body::Here(vec![number as u8])));
        }
        for number in 0..4_u8 {
            let Some(Arrived { header, body: Body::Here(data) }) = inbox.next() else { panic!("a message") };
            assert_eq!((&header[..], data), (&b"h"[..], vec![number]));
        }
        assert!(!inbox.has_next() && inbox.next().is_none() && inbox.failed().is_none());
    }

    #[test]
    fn what_passes_the_bounds_is_a_failure() {
        let refused = |header: &[u8], len: usize| {
            let inbox = Inbox::default();
            assert!(inbox.take(&[0; 8], Body::Here(Vec::new())));
            !inbox.take(header, Body::Here(vec![0; len])) && inbox.failed().is_some()
        };
        assert!(!refused(&header(1, &[]), 1000));
        assert!(refused(&header(0, &[]), 0), "twice");
        assert!(refused(&header(4096, &[]), 0), "too far ahead");
        assert!(refused(b"short", 0));
        assert!(refused(&header(1, &[]), GREETING_QUEUE_BYTES));
        let inbox = Inbox::default();
        inbox.set_most_bytes(1 << 20);
        assert!(inbox.take(&header(0, &[]), Body::Here(vec![0; GREETING_QUEUE_BYTES])));
        // What was taken makes room.
        for number in 1..200 {
            inbox.next();
            assert!(inbox.take(&header(number, &[]), Body::Here(vec![0; 1 << 20])));
        }
    }
}
