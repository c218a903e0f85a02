//! Messages over TCP: [frames](pio_protocol::frame) on a stream.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use super::connection::{Breaker, Connection, Listener, Traffic};
use super::stream::Stream;
use crate::summed::Summed;
use pio_protocol::Limits;
use pio_protocol::frame::Prefix;
use pio_protocol::handshake::GREETING_BYTES;

/// A connection over TCP.
#[derive(Debug)]
pub struct TcpConnection {
    stream: Stream,
    limits: Limits,
    /// Of the message received last, while its data are still to be taken.
    pending: Option<Prefix>,
    head: Vec<u8>,
    scratch: Vec<u8>,
    /// Checksums of the blocks of what is in `scratch`.
    sums: Vec<u32>,
}

impl TcpConnection {
    /// Connects to `address` (host and port) within `timeout`.
    ///
    /// # Errors
    /// If nobody listens there, or no such host is known.
    pub fn connect(address: &str, timeout: Duration) -> io::Result<TcpConnection> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let start = Instant::now();
        for address in address.to_socket_addrs()? {
            // A name may have several; a timeout of nothing is an error, which stands for the one that there was.
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            match TcpStream::connect_timeout(&address, left) {
                Ok(stream) => return TcpConnection::new(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn new(stream: TcpStream) -> io::Result<TcpConnection> {
        stream.set_nodelay(true)?;
        // A machine that went down says nothing: ask after it, or its client's locks would be kept for ever.
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, Duration::from_secs(60))?;
        sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(10))?;
        sockopt::set_tcp_keepcnt(&stream, 6)?;
        // Until both sides have shown the token there are greetings only.
        let limits = Limits { head_bytes: GREETING_BYTES, data_bytes: 0, ..Limits::DEFAULT };
        Ok(TcpConnection {
            stream: Stream::new(stream.into()),
            limits,
            pending: None,
            head: Vec::new(),
            scratch: Vec::new(),
            sums: Vec::new(),
        })
    }
}

impl Connection for TcpConnection {
    fn send(&mut self, head: &[u8], data: &[IoSlice<'_>]) -> io::Result<()> {
        let mut checksum = crc32fast::Hasher::new();
        let mut len = 0;
        for slice in data {
            checksum.update(slice);
            len += slice.len();
        }
        let checksum = if len == 0 { 0 } else { checksum.finalize() };
        self.head.clear();
        Prefix::new(head, len as u32, checksum).pack(&mut self.head);
        self.head.extend_from_slice(head);
        let mut slices = Vec::with_capacity(1 + data.len());
        slices.push(IoSlice::new(&self.head));
        slices.extend_from_slice(data);
        self.stream.write_all(&mut slices, None)
    }

    fn send_filled(
        &mut self,
        head: &[u8],
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(len, 0);
        let sent = fill(&mut scratch).and_then(|()| self.send(head, &[IoSlice::new(&scratch)]));
        self.scratch = scratch;
        sent
    }

    fn send_heads(&mut self, heads: &[Vec<u8>]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(heads.len() * 32);
        for head in heads {
            Prefix::new(head, 0, 0).pack(&mut bytes);
            bytes.extend_from_slice(head);
        }
        self.stream.write_all(&mut [IoSlice::new(&bytes)], None)
    }

    fn has_come(&mut self) -> bool {
        // Data that nobody took yet are of the message before.
        self.pending.is_none() && self.stream.has_come()
    }

    fn receive(&mut self, head: &mut Vec<u8>) -> io::Result<usize> {
        if self.pending.is_some() {
            self.receive_data()?;
        }
        let prefix = self.stream.receive_head(&self.limits, head)?;
        self.pending = (prefix.data_len > 0).then_some(prefix);
        Ok(prefix.data_len as usize)
    }

    fn receive_into(&mut self, out: &mut [u8]) -> io::Result<()> {
        if out.len() != self.pending.map_or(0, |prefix| prefix.data_len as usize) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "memory of another length than the data",
            ));
        }
        let Some(prefix) = self.pending.take() else { return Ok(()) };
        Ok(prefix.check_data(self.stream.read_summed(out)?)?)
    }

    fn receive_data(&mut self) -> io::Result<&[u8]> {
        self.receive_summed().map(|summed| summed.data)
    }

    fn receive_summed(&mut self) -> io::Result<Summed<'_>> {
        let Some(prefix) = self.pending.take() else { return Ok(Summed::default()) };
        self.scratch.resize(prefix.data_len as usize, 0);
        prefix.check_data(self.stream.read_summed_by_block(&mut self.scratch, &mut self.sums)?)?;
        Ok(Summed { data: &self.scratch, sums: &self.sums })
    }

    fn set_limits(&mut self, limits: &Limits) {
        self.limits = *limits;
    }

    fn set_timeouts(&mut self, receive: Option<Duration>, send: Option<Duration>) -> io::Result<()> {
        self.stream.set_timeouts(receive, send)
    }

    fn trim(&mut self) {
        self.scratch = Vec::new();
    }

    fn traffic(&self) -> Traffic {
        self.stream.traffic()
    }

    fn breaker(&self) -> io::Result<Breaker> {
        self.stream.breaker()
    }
}

/// Where clients come in over TCP.
#[derive(Debug)]
pub struct TcpListener {
    listener: std::net::TcpListener,
    address: String,
}

impl TcpListener {
    /// Listens at `address` (host and port; port 0: any free one).
    ///
    /// # Errors
    /// If the address is in use or not this machine's.
    pub fn bind(address: &str) -> io::Result<TcpListener> {
        let listener = std::net::TcpListener::bind(address)?;
        let local: SocketAddr = listener.local_addr()?;
        // The name that was given, as others may know the machine by it only; the port that was found.
        let address = match address.rsplit_once(':') {
            Some((host, _)) => format!("{host}:{}", local.port()),
            None => local.to_string(),
        };
        Ok(TcpListener { listener, address })
    }
}

impl Listener for TcpListener {
    fn accept(&mut self) -> io::Result<Box<dyn Connection>> {
        let (stream, _) = self.listener.accept()?;
        Ok(Box::new(TcpConnection::new(stream)?))
    }

    fn waker(&self) -> Breaker {
        let local = self.listener.local_addr();
        Box::new(move || {
            if let Ok(address) = &local {
                let _ = TcpStream::connect_timeout(address, Duration::from_secs(1));
            }
        })
    }

    fn address(&self) -> &str {
        &self.address
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn pair() -> (Box<dyn Connection>, Box<dyn Connection>) {
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpConnection::connect(listener.address(), Duration::from_secs(5)).unwrap();
        let mut near: Box<dyn Connection> = Box::new(near);
        let mut far = listener.accept().unwrap();
        for side in [&mut near, &mut far] {
            side.set_limits(&Limits::DEFAULT);
            let patience = Some(Duration::from_secs(5));
            side.set_timeouts(patience, patience).unwrap();
        }
        (near, far)
    }

    #[test]
    fn messages_arrive_whole_and_in_order() {
        let (mut near, mut far) = pair();
        let data: Vec<u8> = (0..100_000_u32).map(|byte| byte as u8).collect();
        let sender = std::thread::spawn(move || {
            near.send(b"one", &[IoSlice::new(&data[..10]), IoSlice::new(&[]), IoSlice::new(&data[10..])])
                .unwrap();
            near.send(b"two", &[]).unwrap();
            near.send_filled(b"three", 5, &mut |out| {
                out.copy_from_slice(b"abcde");
                Ok(())
            })
            .unwrap();
            near.send(b"four", &[IoSlice::new(b"skipped")]).unwrap();
            near.send(b"five", &[]).unwrap();
            (near, data)
        });
        let mut head = Vec::new();
        assert_eq!(far.receive(&mut head).unwrap(), 100_000);
        let mut taken = vec![0; 100_000];
        far.receive_into(&mut taken).unwrap();
        assert_eq!((far.receive(&mut head).unwrap(), &head[..]), (0, &b"two"[..]));
        assert_eq!((far.receive(&mut head).unwrap(), &head[..]), (5, &b"three"[..]));
        assert_eq!(far.receive_data().unwrap(), b"abcde");
        assert_eq!((far.receive(&mut head).unwrap(), &head[..]), (7, &b"four"[..]));
        assert_eq!((far.receive(&mut head).unwrap(), &head[..]), (0, &b"five"[..]));
        let (near, data) = sender.join().unwrap();
        assert_eq!(taken, data);
        drop(near);
        assert_eq!(far.receive(&mut head).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn blocks_are_summed_as_they_come() {
        let (mut near, mut far) = pair();
        let data: Vec<u8> = (0..200_000_u32).map(|byte| (byte / 7) as u8).collect();
        for len in [0, 1, 65_536, 65_537, 131_072, 200_000] {
            let data = data[..len].to_vec();
            let sender = std::thread::spawn(move || {
                near.send(b"head", &[IoSlice::new(&data)]).unwrap();
                (near, data)
            });
            far.receive(&mut Vec::new()).unwrap();
            let Summed { data: came, sums } = far.receive_summed().unwrap();
            let expected: Vec<u32> = came.chunks(65_536).map(crc32fast::hash).collect();
            assert_eq!(sums, expected);
            let (again, data) = sender.join().unwrap();
            assert!(came == data);
            near = again;
        }
    }

    #[test]
    fn damaged_data_are_noticed() {
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.address()).unwrap();
        let mut far = listener.accept().unwrap();
        far.set_limits(&Limits::DEFAULT);
        let mut message = Vec::new();
        Prefix::new(b"head", 4, crc32fast::hash(b"data")).pack(&mut message);
        message.extend(b"headDATA");
        near.write_all(&message).unwrap();
        let mut head = Vec::new();
        assert_eq!(far.receive(&mut head).unwrap(), 4);
        assert_eq!(far.receive_data().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn heads_come_together_and_are_seen_to_have_come() {
        let (mut near, mut far) = pair();
        assert!(!far.has_come());
        let heads = [b"one".to_vec(), b"two".to_vec()];
        near.send_heads(&heads).unwrap();
        let mut head = Vec::new();
        for expected in heads {
            assert!(far.has_come());
            assert_eq!((far.receive(&mut head).unwrap(), &head), (0, &expected));
        }
        assert!(!far.has_come());
        near.send(b"three", &[IoSlice::new(&[7; 100])]).unwrap();
        far.receive(&mut head).unwrap();
        assert!(!far.has_come(), "only data of the message before");
        far.receive_data().unwrap();
        assert_eq!(near.traffic().sent, far.traffic().received);
        drop(near);
        assert!(!far.has_come());
    }

    #[test]
    fn strangers_may_send_greetings_only() {
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.address()).unwrap();
        let mut far = listener.accept().unwrap();
        let mut message = Vec::new();
        Prefix::new(&[0; 600], 0, 0).pack(&mut message);
        near.write_all(&message).unwrap();
        assert_eq!(far.receive(&mut Vec::new()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn silence_ends_with_the_timeout() {
        let (_near, mut far) = pair();
        far.set_timeouts(Some(Duration::from_millis(10)), None).unwrap();
        assert_eq!(far.receive(&mut Vec::new()).unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
