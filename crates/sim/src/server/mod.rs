//! I/O servers: take in parts of requests, and give them out when they are done.

mod io_node;
mod part;
mod strips;
mod threads;

use pio_machine::{Machine, Storage};
use pio_plan::Direction;

use crate::error::SimError;
use crate::io_node::IoNodeError;
use crate::kernel::{Model, Queue, Time};
use crate::prediction::ServerTotal;
use io_node::NodeServer;
pub(crate) use part::Part;
use strips::{Costs, StripServer};
pub(crate) use threads::{Next, Threads};

/// An I/O server.
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
    Strips(Box<StripServer>),
    Node(Box<NodeServer>),
}

impl Server {
    /// A server of the machine on this node; none where files are in a file system.
    pub(crate) fn new(machine: &Machine, node: u32) -> Result<Option<Server>, SimError> {
        let kind = match (&machine.storage, &machine.io_node) {
            (Storage::Striped { strip, read, write, memory, arm, .. }, _) => {
                let memory = write.bandwidth.time_of(*memory);
                let (read, write) = (read.clone(), write.clone());
                let costs = Costs { strip: *strip, read, write, memory, arm: *arm };
                Kind::Strips(Box::new(StripServer::new(costs)))
            }
            (Storage::IoNodes { strip, request, cache, .. }, Some(inside)) => {
                let has_adapter = machine.network.has_adapters();
                Kind::Node(Box::new(NodeServer::new(inside, has_adapter, *strip, *request, cache.as_ref())?))
            }
            (Storage::IoNodes { .. }, None)
            | (Storage::Local { .. } | Storage::Shared(_) | Storage::Parallel(_), _) => {
                return Ok(None);
            }
        };
        let done = ServerTotal { requests: 0, bytes_read: 0, bytes_written: 0 };
        Ok(Some(Server { node, done, armed: None, placing: Queue::default(), kind }))
    }

    /// Takes in a part at `now`.
    pub(crate) fn arrive(&mut self, now: Time, part: Part) -> Result<(), IoNodeError> {
        self.count(&part);
        match &mut self.kind {
            Kind::Strips(server) => server.arrive(now, part),
            Kind::Node(server) => server.arrive(now, part)?,
        }
        Ok(())
    }

    /// A file has no bytes any more.
    pub(crate) fn empty(&mut self, now: Time, file: u32) -> Result<(), IoNodeError> {
        match &mut self.kind {
            Kind::Strips(_) => Ok(()),
            Kind::Node(server) => server.empty(now, file),
        }
    }

    /// Whether it tells a rank that all is written that is still on its way to the disks.
    pub(crate) fn writes_behind(&self) -> bool {
        match &self.kind {
            Kind::Strips(server) => server.writes_behind(),
            Kind::Node(server) => server.has_memory(),
        }
    }

    /// Counts a part among those it was asked for.
    pub(crate) fn count(&mut self, part: &Part) {
        self.done.requests += u64::from(!part.syncs);
        match part.direction {
            Direction::Read => self.done.bytes_read += part.bytes,
            Direction::Write => self.done.bytes_written += part.bytes,
        }
    }
}

impl Model for Server {
    /// A part that is done; or why the server can serve no more.
    type Out = Result<Part, IoNodeError>;

    fn next_time(&self) -> Option<Time> {
        match &self.kind {
            Kind::Strips(server) => server.next_time(),
            Kind::Node(server) => server.next_time(),
        }
    }

    fn advance(&mut self, until: Time, done: &mut Vec<Self::Out>) {
        match &mut self.kind {
            Kind::Strips(server) => server.advance(until, done),
            Kind::Node(server) => server.advance(until, done),
        }
    }
}
