//! Tells who wants to know of the requests that move data.

use std::time::Instant;

use pio_layout::View;
use pio_protocol::client::{Chunk, Direction};

/// A request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The server's number in the store.
    pub server: u32,
    /// Which way the data went.
    pub direction: Direction,
    /// Offset in the file of the first byte.
    pub offset: u64,
    /// Bytes that were to be moved.
    pub bytes: u64,
    /// When the request was sent.
    pub sent: Instant,
    /// Bytes that were moved (what the file does not have is not sent), or the operating system's error number.
    pub result: Result<u64, i32>,
}

/// Is told of requests, in the thread that made them.
pub type Watch = fn(&Moved);

/// The requests of an operation that are under way; nothing is kept if nobody wants to know.
pub(super) struct Watched {
    watch: Option<Watch>,
    under_way: Vec<Moved>,
}

impl Watched {
    pub(super) fn new(watch: Option<Watch>) -> Watched {
        Watched { watch, under_way: Vec::new() }
    }

    /// The request for a chunk of a view is about to be sent.
    pub(super) fn sends(&mut self, server: u32, direction: Direction, view: &View, chunk: &Chunk) {
        if self.watch.is_some() {
            let (offset, bytes) = (chunk.offset(view), chunk.len);
            self.under_way.push(Moved {
                server,
                direction,
                offset,
                bytes,
                sent: Instant::now(),
                result: Ok(0),
            });
        }
    }

    /// It was answered.
    pub(super) fn answered(&mut self, server: u32, view: &View, chunk: &Chunk, result: Result<u64, i32>) {
        let Some(watch) = self.watch else { return };
        let offset = chunk.offset(view);
        let found = self.under_way.iter().position(|one| one.server == server && one.offset == offset);
        if let Some(index) = found {
            watch(&Moved { result, ..self.under_way.remove(index) });
        }
    }
}
