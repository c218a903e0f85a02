//! I/O servers: take in parts of requests, and tell when they are done.

mod io_node;
mod part;
mod strips;

use pio_machine::{Machine, Storage};
use pio_plan::Direction;

use crate::error::SimError;
use crate::kernel::{Queue, Time};
use crate::prediction::ServerTotal;
use io_node::NodeServer;
pub(crate) use part::Part;
use strips::{Costs, StripServer};

/// An I/O server: a simulation of its own, as a network is.
pub(crate) struct Server {
    pub(crate) node: u32,
    pub(crate) done: ServerTotal,
    /// When the engine will look after it.
    pub(crate) armed: Option<Time>,
    /// Puts pieces in their places: one request after the other.
    pub(crate) placing: Queue,
    kind: Kind,
}

enum Kind {
    Strips(StripServer),
    Node(Box<NodeServer>),
}

impl Server {
    /// A server of the machine on this node; none where storage is local.
    pub(crate) fn new(machine: &Machine, node: u32) -> Result<Option<Server>, SimError> {
        let kind = match (&machine.storage, &machine.io_node) {
            (Storage::Striped { strip, read, write, .. }, _) => {
                let costs = Costs { strip: *strip, read: read.clone(), write: write.clone() };
                Kind::Strips(StripServer::new(costs))
            }
            (Storage::IoNodes { strip, request, cache, .. }, Some(inside)) => {
                let has_adapter = machine.network.has_adapters();
                Kind::Node(Box::new(NodeServer::new(inside, has_adapter, *strip, *request, cache.as_ref())?))
            }
            (Storage::IoNodes { .. }, None) | (Storage::Local { .. }, _) => return Ok(None),
        };
        let done = ServerTotal { requests: 0, bytes_read: 0, bytes_written: 0 };
        Ok(Some(Server { node, done, armed: None, placing: Queue::default(), kind }))
    }

    /// Takes in a part at `now`.
    pub(crate) fn arrive(&mut self, now: Time, part: Part) -> Result<(), SimError> {
        self.done.requests += 1;
        match part.direction {
            Direction::Read => self.done.bytes_read += part.bytes,
            Direction::Write => self.done.bytes_written += part.bytes,
        }
        match &mut self.kind {
            Kind::Strips(server) => server.arrive(now, part),
            Kind::Node(server) => server.arrive(now, part)?,
        }
        Ok(())
    }

    /// When something happens next in it.
    pub(crate) fn next_time(&self) -> Option<Time> {
        match &self.kind {
            Kind::Strips(server) => server.next_time(),
            Kind::Node(server) => server.next_time(),
        }
    }

    /// Carries on up to `until`: what is done by then is added to `done`.
    pub(crate) fn advance(&mut self, until: Time, done: &mut Vec<Part>) -> Result<(), SimError> {
        match &mut self.kind {
            Kind::Strips(server) => server.advance(until, done),
            Kind::Node(server) => server.advance(until, done)?,
        }
        Ok(())
    }
}
