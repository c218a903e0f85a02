//! A connection through UCX.

use std::io::{self, ErrorKind, IoSlice};
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pio_protocol::frame::{PREFIX_BYTES, Prefix};
use pio_protocol::handshake::GREETING_BYTES;
use pio_protocol::{Limits, ProtocolError};

use super::inbox::{Arrived, Body, NUMBER_BYTES};
use super::worker::{Worker, available, malformed};
use crate::transport::address::Address;
use crate::transport::connection::{Breaker, Connection, Traffic};

/// More bytes of data stay with their sender until they are fetched; fewer go with their message.
const RENDEZVOUS_FROM_BYTES: usize = 8 << 10;
/// Longer heads go before their data: in a header they would take the way that is for short messages.
const HEADER_BYTES: usize = 2 << 10;
/// How long a server waits for a client to take its last word before it closes: closing may overtake the word.
const LINGER: Duration = Duration::from_millis(500);

/// A connection through UCX.
#[derive(Debug)]
pub struct UcxConnection {
    worker: Worker,
    limits: Limits,
    /// The number of the next message to be sent.
    number: u64,
    /// The data of the message received last, while they are still to be taken, and their checksum.
    pending: Option<Body>,
    checksum: u32,
    receive_timeout: Option<Duration>,
    send_timeout: Option<Duration>,
    /// How much memory was lent.
    lent: usize,
    scratch: Vec<u8>,
    header: Vec<u8>,
    /// Whether the other side may not have our last word when we close.
    lingers: bool,
    is_server: bool,
    /// Headers and data; what UCX adds is not known.
    traffic: Traffic,
}

impl UcxConnection {
    /// Connects to the server that listens through UCX at `address`, within `timeout`.
    ///
    /// # Errors
    /// If nobody listens there, or there is no UCX here.
    pub fn connect(address: &str, timeout: Duration) -> io::Result<UcxConnection> {
        available()?;
        let address = Address::parse(address)
            .ucx()
            .ok_or_else(|| io::Error::new(ErrorKind::NotFound, "the server does not listen through UCX"))?;
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in address.to_socket_addrs()? {
            match Worker::connect(&address, timeout) {
                Ok(worker) => return Ok(UcxConnection::new(worker, false)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub(super) fn new(worker: Worker, is_server: bool) -> UcxConnection {
        UcxConnection {
            worker,
            limits: Limits { head_bytes: GREETING_BYTES, data_bytes: 0, ..Limits::DEFAULT },
            number: 0,
            pending: None,
            checksum: 0,
            receive_timeout: None,
            send_timeout: None,
            lent: 0,
            scratch: Vec::new(),
            header: Vec::new(),
            lingers: false,
            is_server,
            traffic: Traffic::default(),
        }
    }

    /// Makes the header of the next message, of which `parts` is the rest.
    fn next_header(&mut self, parts: &[&[u8]]) -> Vec<u8> {
        let mut header = std::mem::take(&mut self.header);
        header.clear();
        header.extend(self.number.to_le_bytes());
        parts.iter().for_each(|part| header.extend_from_slice(part));
        self.number += 1;
        self.traffic.sent += header.len() as u64;
        self.lingers = self.is_server;
        header
    }

    /// Makes the header of the message that has the data; a long head goes before, and with it all if there are no data.
    fn put_head(&mut self, prefix: &Prefix, head: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let has_data = prefix.data_len > 0;
        self.traffic.sent += u64::from(prefix.data_len);
        let prefix = prefix.encode();
        let most = HEADER_BYTES.min(self.worker.header_bytes());
        if NUMBER_BYTES + PREFIX_BYTES + head.len() <= most {
            return Ok(Some(self.next_header(&[&prefix, head])));
        }
        self.header = self.next_header(&[&prefix]);
        self.traffic.sent += head.len() as u64;
        let rendezvous = head.len() >= RENDEZVOUS_FROM_BYTES;
        let deadline = after(self.send_timeout);
        self.worker.send(&self.header, &[IoSlice::new(head)], rendezvous, deadline)?;
        Ok(has_data.then(|| self.next_header(&[])))
    }

    /// Sends the first `len` bytes of the room there is.
    fn post(&mut self, head: &[u8], len: usize) -> io::Result<()> {
        let prefix = Prefix::new(head, len as u32, crc32fast::hash(self.worker.posted(len)));
        let Some(header) = self.put_head(&prefix, head)? else { return Ok(()) };
        self.header = header;
        self.worker.post(&self.header, len, len >= RENDEZVOUS_FROM_BYTES)
    }

    /// Waits for the next message in the middle of one; its body is what is pending then.
    fn receive_more(&mut self) -> io::Result<Vec<u8>> {
        let waited = self.worker.wait(after(self.receive_timeout), |worker| worker.inbox().has_next());
        if let Err(error) = waited {
            self.worker.close();
            return Err(match error.kind() {
                ErrorKind::TimedOut => {
                    io::Error::new(ErrorKind::ConnectionAborted, "a message stopped in the middle")
                }
                _ => error,
            });
        }
        let Arrived { header, body } = self.worker.inbox().next().ok_or(ErrorKind::ConnectionAborted)?;
        self.traffic.received += (header.len() + body.len()) as u64;
        self.pending = Some(body);
        Ok(header)
    }

    /// Puts what is pending, here or with its sender, into `out`, which is as long.
    fn take(&mut self, out: &mut [u8]) -> io::Result<()> {
        match self.pending.take() {
            None => {}
            Some(Body::Here(data)) => out.copy_from_slice(&data),
            Some(Body::There { descriptor, .. }) => {
                self.worker.fetch(descriptor, out, after(self.receive_timeout))?;
            }
        }
        Ok(())
    }

    fn discard_pending(&mut self) {
        if let Some(Body::There { descriptor, .. }) = self.pending.take() {
            self.worker.discard(descriptor);
        }
    }

    fn pending_len(&self) -> usize {
        self.pending.as_ref().map_or(0, Body::len)
    }
}

impl Connection for UcxConnection {
    fn send(&mut self, head: &[u8], data: &[IoSlice<'_>]) -> io::Result<()> {
        let mut checksum = crc32fast::Hasher::new();
        data.iter().for_each(|piece| checksum.update(piece));
        let len = data.iter().map(|piece| piece.len()).sum::<usize>();
        let prefix = Prefix::new(head, len as u32, if len == 0 { 0 } else { checksum.finalize() });
        let Some(header) = self.put_head(&prefix, head)? else { return Ok(()) };
        self.header = header;
        let deadline = after(self.send_timeout);
        self.worker.send(&self.header, data, len >= RENDEZVOUS_FROM_BYTES, deadline)
    }

    fn send_filled(
        &mut self,
        head: &[u8],
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if len >= RENDEZVOUS_FROM_BYTES {
            fill(self.worker.room(len, after(self.send_timeout))?)?;
            return self.post(head, len);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(len, 0);
        let sent = fill(&mut scratch).and_then(|()| self.send(head, &[IoSlice::new(&scratch)]));
        self.scratch = scratch;
        sent
    }

    fn lend(&mut self, len: usize) -> Option<&mut [u8]> {
        self.lent = 0;
        if len < RENDEZVOUS_FROM_BYTES {
            return None;
        }
        let room = self.worker.room(len, after(self.send_timeout)).ok()?;
        self.lent = len;
        Some(room)
    }

    fn send_lent(&mut self, head: &[u8], len: usize) -> io::Result<()> {
        if len > std::mem::take(&mut self.lent) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "no memory was lent, or less"));
        }
        self.post(head, len)
    }

    fn receive(&mut self, head: &mut Vec<u8>) -> io::Result<usize> {
        self.discard_pending();
        self.worker.wait(after(self.receive_timeout), |worker| worker.inbox().has_next())?;
        let header = self.receive_more()?;
        self.lingers = false;
        let Some((prefix, rest)) = header.split_first_chunk::<PREFIX_BYTES>() else {
            return Err(malformed("a prefix"));
        };
        let prefix = Prefix::decode(prefix, &self.limits)?;
        let (head_len, data_len) = (prefix.head_len as usize, prefix.data_len as usize);
        head.resize(head_len, 0);
        if rest.len() == head_len {
            head.copy_from_slice(rest);
        } else if rest.is_empty() && self.pending_len() == head_len {
            self.take(head)?;
            if data_len > 0 {
                self.receive_more()?;
            }
        } else {
            return Err(malformed("as much head as the prefix says"));
        }
        prefix.check_head(head)?;
        if self.pending_len() != data_len {
            return Err(malformed("as much data as the prefix says"));
        }
        self.checksum = prefix.data_checksum;
        Ok(data_len)
    }

    fn receive_into(&mut self, out: &mut [u8]) -> io::Result<()> {
        if out.len() != self.pending_len() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "memory of another length than the data"));
        }
        self.take(out)?;
        if out.is_empty() || crc32fast::hash(out) == self.checksum {
            return Ok(());
        }
        Err(ProtocolError::Checksum { what: "data" }.into())
    }

    fn receive_data(&mut self) -> io::Result<&[u8]> {
        let len = self.pending_len();
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(len, 0);
        let received = self.receive_into(&mut scratch);
        self.scratch = scratch;
        received?;
        Ok(&self.scratch)
    }

    fn set_limits(&mut self, limits: &Limits) {
        self.limits = *limits;
        self.worker.inbox().set_most_bytes(limits.head_bytes as usize + limits.data_bytes as usize);
    }

    fn set_timeouts(&mut self, receive: Option<Duration>, send: Option<Duration>) -> io::Result<()> {
        (self.receive_timeout, self.send_timeout) = (receive, send);
        Ok(())
    }

    fn trim(&mut self) {
        self.scratch = Vec::new();
        self.worker.trim();
    }

    fn traffic(&self) -> Traffic {
        self.traffic
    }

    fn breaker(&self) -> io::Result<Breaker> {
        let interrupt = Arc::clone(self.worker.interrupt());
        Ok(Box::new(move || interrupt.set()))
    }
}

impl Drop for UcxConnection {
    fn drop(&mut self) {
        self.discard_pending();
        if self.lingers {
            // Until the client goes.
            let _ = self.worker.wait(after(Some(LINGER)), |_| false);
        }
    }
}

/// The end of a wait that begins now; none if it may take for ever.
fn after(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

#[cfg(test)]
mod tests;
