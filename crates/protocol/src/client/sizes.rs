//! How many bytes the messages of an access have: what a simulated network carries for them.

use pio_layout::View;

use super::session::{ClientSession, Heard};
use super::split::Chunk;
use super::transfer::{Direction, Naming};
use crate::error::Failure;
use crate::frame::Prefix;
use crate::reply::{Answer, Reply};
use crate::request::FileRef;

/// Bytes of a request and of its answer on a stream of bytes, data included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// From the client to the server.
    pub request_bytes: u64,
    /// From the server to the client.
    pub answer_bytes: u64,
}

/// Asks for a chunk over `link` and answers it, all of it: what both messages take. The link is then as after the real thing.
///
/// # Errors
/// If the chunk is to be named by a list, and has more pieces than a request may name.
pub fn exchange(
    link: &mut ClientSession,
    file: FileRef,
    view: &View,
    naming: Naming,
    chunk: Chunk,
    direction: Direction,
) -> Result<Exchange, Failure> {
    let list = chunk.list(naming, view, &file.placement)?;
    let bytes = chunk.len;
    let request = link.ask_chunk(file, view, list, chunk, direction);
    let mut head = Vec::new();
    request.encode(&mut head);
    let (sent, received, answer) = match direction {
        Direction::Write => (bytes, 0, Answer::Written { epoch: 1 }),
        Direction::Read => (0, bytes, Answer::Data { bytes, epoch: 1 }),
    };
    let request_bytes = on_a_stream(&head, sent);
    let reply = Reply { number: request.number, body: Ok(answer) };
    head.clear();
    reply.encode(&mut head);
    let answer_bytes = on_a_stream(&head, received);
    let heard = link.hear(reply);
    debug_assert!(matches!(heard, Heard::Answer { .. }));
    Ok(Exchange { request_bytes, answer_bytes })
}

fn on_a_stream(head: &[u8], data_bytes: u64) -> u64 {
    let mut prefix = Vec::with_capacity(16);
    Prefix::new(head, data_bytes as u32, 0).pack(&mut prefix);
    (prefix.len() + head.len()) as u64 + data_bytes
}
