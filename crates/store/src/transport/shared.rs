//! Messages between processes of one machine: heads over a Unix socket, data through [shared memory](super::segment).
//!
//! A message is a packed [frame](pio_protocol::frame) whose head begins with two numbers (LEB128). The first says where its
//! data are: 0, behind the head, as over TCP; else its upper bits are an offset in the sender's segment, and its lowest bit
//! says that this message brings the segment. The second is the processor that the sender runs on, for a server to
//! [follow](super::follow).
//!
//! Data in a segment carry no checksum: there is no wire. A server listens at a name that follows from its store (which
//! only those can tell who know the token) and its TCP address, in the abstract namespace of the machine: so a client
//! finds it if it is on the same machine, and else goes over TCP.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::thread::sched_getcpu;
use sha2::{Digest, Sha256};

use super::connection::{Breaker, Connection, Listener, Traffic};
use super::follow::Follower;
use super::segment::{Incoming, Outgoing};
use super::stream::Stream;
use pio_protocol::Limits;
use pio_protocol::VERSION;
use pio_protocol::frame::Prefix;
use pio_protocol::handshake::GREETING_BYTES;
use pio_protocol::waiting::look_out;
use pio_protocol::wire::{Input, put};

/// Fewer bytes of data go behind their head: they are in the same system call.
const SEGMENT_FROM_BYTES: usize = 2048;
/// Bytes that say where data and sender are, at most.
const PLACE_BYTES: u32 = 20;

/// A connection through shared memory.
#[derive(Debug)]
pub struct SharedConnection {
    stream: Stream,
    /// On the server's side.
    follower: Option<Follower>,
    /// The processor that the other side ran on when it sent the last message.
    other_at: Option<u64>,
    limits: Limits,
    /// Whether both sides have shown the token: before, there is no shared memory.
    greeted: bool,
    outgoing: Option<Outgoing>,
    /// This machine has no such memory.
    without_segment: bool,
    incoming: Option<Incoming>,
    /// Of the message received last, while its data are still to be taken.
    pending: Option<Pending>,
    /// Where our segment has room for the next message that the caller fills, and how much.
    lent: Option<(usize, usize)>,
    /// Data in the segment that the caller may still be looking at.
    held: bool,
    /// Bytes of data in the message sent last.
    sent_len: usize,
    /// Bytes of data that went through segments.
    placed: Traffic,
    head: Vec<u8>,
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Pending {
    Behind(Prefix),
    Placed { start: usize, len: usize },
}

impl Pending {
    fn len(&self) -> usize {
        match *self {
            Pending::Behind(prefix) => prefix.data_len as usize,
            Pending::Placed { len, .. } => len,
        }
    }
}

impl SharedConnection {
    /// Connects to the server of a store that has this TCP address, if it is on this machine.
    ///
    /// # Errors
    /// If there is none, or what is there is another user's.
    pub fn connect(store: u128, address: &str, timeout: Duration) -> io::Result<SharedConnection> {
        let socket = socket()?;
        // Connecting waits, too, when the server is too busy to accept.
        sockopt::set_socket_timeout(&socket, Timeout::Send, Some(timeout))?;
        rustix::net::connect(&socket, &name(store, address)?)?;
        let peer = sockopt::socket_peercred(&socket)?.uid;
        // Whoever comes first has the name. Somebody else's server could not show the token, but we would wait for it.
        if peer != rustix::process::geteuid() && !peer.is_root() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the server's name is another user's",
            ));
        }
        Ok(SharedConnection::new(socket, None))
    }

    fn new(socket: OwnedFd, follower: Option<Follower>) -> SharedConnection {
        SharedConnection {
            stream: Stream::new(socket),
            follower,
            other_at: None,
            limits: Limits { head_bytes: GREETING_BYTES, data_bytes: 0, ..Limits::DEFAULT },
            greeted: false,
            outgoing: None,
            without_segment: false,
            incoming: None,
            pending: None,
            lent: None,
            held: false,
            sent_len: 0,
            placed: Traffic::default(),
            head: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Room in our segment, if there is any.
    fn place(&mut self, len: usize) -> Option<usize> {
        if let (Some(_), Some(outgoing)) = (self.lent.take(), &mut self.outgoing) {
            outgoing.take_back();
        }
        if len < SEGMENT_FROM_BYTES || !self.greeted || self.without_segment {
            return None;
        }
        if self.outgoing.is_none() {
            self.outgoing = Outgoing::new().ok();
            self.without_segment = self.outgoing.is_none();
        }
        self.outgoing.as_mut()?.put(len)
    }

    /// Sends a message whose data are in our segment.
    fn send_placed(&mut self, head: &[u8], start: usize, len: usize) -> io::Result<()> {
        let Some(outgoing) = &mut self.outgoing else { return Err(io::ErrorKind::NotConnected.into()) };
        let place = Place::Segment { start, new: !outgoing.announced };
        let prefix = put_head(&mut self.head, place, head, len, 0);
        let descriptor = (!outgoing.announced).then(|| outgoing.file());
        self.stream.write_all(&mut [IoSlice::new(&prefix), IoSlice::new(&self.head)], descriptor)?;
        outgoing.announced = true;
        self.sent_len = len;
        self.placed.sent += len as u64;
        Ok(())
    }

    fn send_behind(&mut self, head: &[u8], data: &[IoSlice<'_>]) -> io::Result<()> {
        let mut checksum = crc32fast::Hasher::new();
        data.iter().for_each(|piece| checksum.update(piece));
        let len = data.iter().map(|piece| piece.len()).sum();
        self.sent_len = len;
        let prefix = put_head(&mut self.head, Place::Behind, head, len, checksum.finalize());
        let mut pieces = Vec::with_capacity(2 + data.len());
        pieces.push(IoSlice::new(&prefix));
        pieces.push(IoSlice::new(&self.head));
        pieces.extend_from_slice(data);
        self.stream.write_all(&mut pieces, None)
    }

    /// Where the data of a message are, as its head says.
    fn locate(&mut self, prefix: Prefix, place: Place) -> io::Result<Option<Pending>> {
        let len = prefix.data_len as usize;
        let (start, new) = match place {
            Place::Behind => return Ok((len > 0).then_some(Pending::Behind(prefix))),
            Place::Segment { start, new } => (start, new),
        };
        if new {
            let file = self.stream.descriptor().ok_or_else(|| wrong("a segment"))?;
            self.incoming = Some(Incoming::new(file)?);
        }
        let there = self.incoming.as_ref().is_some_and(|incoming| incoming.data(start, len).is_some());
        if !there {
            return Err(wrong("data within the segment"));
        }
        self.placed.received += len as u64;
        Ok(Some(Pending::Placed { start, len }))
    }

    fn data_at(&self, start: usize, len: usize) -> io::Result<&[u8]> {
        let incoming = self.incoming.as_ref();
        incoming
            .and_then(|incoming| incoming.data(start, len))
            .ok_or_else(|| wrong("data within the segment"))
    }
}

impl Connection for SharedConnection {
    fn send(&mut self, head: &[u8], data: &[IoSlice<'_>]) -> io::Result<()> {
        let len = data.iter().map(|piece| piece.len()).sum();
        let Some(start) = self.place(len) else { return self.send_behind(head, data) };
        let mut room = self.outgoing.as_mut().map(Outgoing::room).unwrap_or_default();
        for piece in data {
            let (now, later) = room.split_at_mut(piece.len());
            now.copy_from_slice(piece);
            room = later;
        }
        self.send_placed(head, start, len)
    }

    fn send_filled(
        &mut self,
        head: &[u8],
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(start) = self.place(len)
            && let Some(outgoing) = &mut self.outgoing
        {
            if let Err(error) = fill(outgoing.room()) {
                outgoing.take_back();
                return Err(error);
            }
            return self.send_placed(head, start, len);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(len, 0);
        let sent = fill(&mut scratch).and_then(|()| self.send_behind(head, &[IoSlice::new(&scratch)]));
        self.scratch = scratch;
        sent
    }

    fn lend(&mut self, len: usize) -> Option<&mut [u8]> {
        let start = self.place(len)?;
        self.lent = Some((start, len));
        self.outgoing.as_mut().map(Outgoing::room)
    }

    fn send_lent(&mut self, head: &[u8], len: usize) -> io::Result<()> {
        match self.lent.take() {
            Some((start, room)) if len <= room => self.send_placed(head, start, len),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "no memory was lent, or less")),
        }
    }

    fn send_heads(&mut self, heads: &[Vec<u8>]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(heads.len() * 40);
        self.sent_len = 0;
        for head in heads {
            let prefix = put_head(&mut self.head, Place::Behind, head, 0, 0);
            bytes.extend(prefix);
            bytes.extend_from_slice(&self.head);
        }
        self.stream.write_all(&mut [IoSlice::new(&bytes)], None)
    }

    fn has_come(&mut self) -> bool {
        // Data that nobody took yet are of the message before.
        !matches!(self.pending, Some(Pending::Behind(_))) && self.stream.has_come()
    }

    fn receive(&mut self, head: &mut Vec<u8>) -> io::Result<usize> {
        if let Some(Pending::Behind(_)) = self.pending {
            self.receive_data()?;
        }
        self.release();
        if self.other_at.is_some_and(|at| at != sched_getcpu() as u64) {
            self.stream.look_out(look_out(self.sent_len as u64));
        }
        let head_bytes = self.limits.head_bytes.saturating_add(PLACE_BYTES);
        let prefix = self.stream.receive_head(&Limits { head_bytes, ..self.limits }, head)?;
        let mut input = Input::new(head);
        let place = Place::of(input.number("where the data are")?)?;
        let cpu = input.number("the sender's processor")?;
        self.other_at = Some(cpu);
        let behind = head.len() - input.rest.len();
        head.drain(..behind);
        self.pending = self.locate(prefix, place)?;
        let len = prefix.data_len as usize;
        // Data that come behind this head are no other message.
        let behind = if matches!(self.pending, Some(Pending::Behind(_))) { len } else { 0 };
        if let Some(follower) = &mut self.follower {
            follower.asked(cpu, len.max(self.sent_len), || self.stream.has_come_behind(behind));
        }
        Ok(len)
    }

    fn receive_into(&mut self, out: &mut [u8]) -> io::Result<()> {
        if out.len() != self.pending.as_ref().map_or(0, Pending::len) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "memory of another length than the data",
            ));
        }
        match self.pending {
            None => Ok(()),
            Some(Pending::Behind(prefix)) => {
                self.pending = None;
                Ok(prefix.check_data(self.stream.read_summed(out)?)?)
            }
            Some(Pending::Placed { start, len }) => {
                out.copy_from_slice(self.data_at(start, len)?);
                self.release();
                Ok(())
            }
        }
    }

    fn receive_data(&mut self) -> io::Result<&[u8]> {
        if let Some(Pending::Placed { start, len }) = self.pending {
            self.pending = None;
            self.held = true;
            return self.data_at(start, len);
        }
        let len = self.pending.as_ref().map_or(0, Pending::len);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize(len, 0);
        let received = self.receive_into(&mut scratch);
        self.scratch = scratch;
        received?;
        Ok(&self.scratch)
    }

    fn release(&mut self) {
        let skipped = self.pending.take_if(|pending| matches!(pending, Pending::Placed { .. })).is_some();
        if let (true, Some(incoming)) = (self.held || skipped, &mut self.incoming) {
            incoming.release();
        }
        self.held = false;
    }

    fn set_limits(&mut self, limits: &Limits) {
        self.limits = *limits;
        self.greeted = true;
        self.stream.take_descriptors();
    }

    fn set_timeouts(&mut self, receive: Option<Duration>, send: Option<Duration>) -> io::Result<()> {
        self.stream.set_timeouts(receive, send)
    }

    fn trim(&mut self) {
        self.scratch = Vec::new();
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.trim();
        }
    }

    fn traffic(&self) -> Traffic {
        self.stream.traffic() + self.placed
    }

    fn breaker(&self) -> io::Result<Breaker> {
        self.stream.breaker()
    }
}

/// Where the data of a message are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Behind,
    /// In the sender's segment, which this message brings if it is new.
    Segment {
        start: usize,
        new: bool,
    },
}

impl Place {
    fn number(self) -> u64 {
        match self {
            Place::Behind => 0,
            Place::Segment { start, new } => (start as u64) << 1 | u64::from(new),
        }
    }

    fn of(number: u64) -> io::Result<Place> {
        match usize::try_from(number >> 1) {
            Ok(0) if number == 0 => Ok(Place::Behind),
            Ok(start) => Ok(Place::Segment { start, new: number & 1 == 1 }),
            Err(_) => Err(wrong("a place in memory")),
        }
    }
}

/// Puts place and head into `out`; returns the frame's prefix, packed.
fn put_head(out: &mut Vec<u8>, place: Place, head: &[u8], len: usize, checksum: u32) -> Vec<u8> {
    out.clear();
    put(out, place.number());
    put(out, sched_getcpu() as u64);
    out.extend_from_slice(head);
    let mut prefix = Vec::with_capacity(16);
    Prefix::new(out, len as u32, checksum).pack(&mut prefix);
    prefix
}

fn wrong(expected: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed message: expected {expected}"))
}

fn socket() -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// The name of the server at `address`. Two stores with one token, of which one is a copy of the other, differ in that. Sides
/// with different versions do not meet here, where even greetings may look different: over TCP they are told.
fn name(store: u128, address: &str) -> io::Result<SocketAddrUnix> {
    let hash = Sha256::new()
        .chain_update(VERSION.to_le_bytes())
        .chain_update(store.to_le_bytes())
        .chain_update(address)
        .finalize();
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Ok(SocketAddrUnix::new_abstract_name(format!("pioscope-{hex}").as_bytes())?)
}

/// Where clients of the same machine come in.
#[derive(Debug)]
pub struct SharedListener {
    socket: OwnedFd,
    name: SocketAddrUnix,
    address: String,
}

impl SharedListener {
    /// Listens for clients of the server of a store that has this TCP address.
    ///
    /// # Errors
    /// If somebody does already.
    pub fn bind(store: u128, address: &str) -> io::Result<SharedListener> {
        let (socket, name) = (socket()?, name(store, address)?);
        rustix::net::bind(&socket, &name)?;
        rustix::net::listen(&socket, 4096)?;
        Ok(SharedListener { socket, name, address: "shared memory".into() })
    }
}

impl Listener for SharedListener {
    fn accept(&mut self) -> io::Result<Box<dyn Connection>> {
        let socket = rustix::net::accept_with(self.socket.as_fd(), SocketFlags::CLOEXEC)?;
        Ok(Box::new(SharedConnection::new(socket, Some(Follower::default()))))
    }

    fn waker(&self) -> Breaker {
        let name = self.name.clone();
        Box::new(move || {
            if let Ok(socket) = socket() {
                let _ = rustix::net::connect(&socket, &name);
            }
        })
    }

    fn address(&self) -> &str {
        &self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(address: &str) -> (Box<dyn Connection>, Box<dyn Connection>) {
        // A store of this process.
        let store = u128::from(std::process::id());
        let mut listener = SharedListener::bind(store, address).unwrap();
        let near = SharedConnection::connect(store, address, Duration::from_secs(5)).unwrap();
        let mut near: Box<dyn Connection> = Box::new(near);
        let mut far = listener.accept().unwrap();
        for side in [&mut near, &mut far] {
            side.set_limits(&Limits::DEFAULT);
            let patience = Some(Duration::from_secs(5));
            side.set_timeouts(patience, patience).unwrap();
        }
        (near, far)
    }

    fn bytes(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 31 + at / 251 + seed) as u8).collect()
    }

    #[test]
    fn messages_arrive_whole_and_in_order_wherever_their_data_are() {
        const LENGTHS: [usize; 12] =
            [10, 0, 2047, 2048, 100_000, 3 << 20, 4 << 20, 5000, 4 << 20, 1, 4 << 20, 1 << 20];
        let (mut near, mut far) = pair("a:1");
        let sender = std::thread::spawn(move || {
            for (number, len) in LENGTHS.into_iter().enumerate() {
                let (head, data) = ([number as u8], bytes(len, number));
                if let (2, Some(room)) = (number % 3, near.lend(len + 1)) {
                    room[..len].copy_from_slice(&data);
                    near.send_lent(&head, len).unwrap();
                    continue;
                }
                match number % 2 {
                    0 => near.send(&head, &[IoSlice::new(&data[..len / 3]), IoSlice::new(&data[len / 3..])]),
                    _ => near.send_filled(&head, len, &mut |out| {
                        out.copy_from_slice(&data);
                        Ok(())
                    }),
                }
                .unwrap();
            }
            near
        });
        let mut head = Vec::new();
        for (number, len) in LENGTHS.into_iter().enumerate() {
            assert_eq!(far.receive(&mut head).unwrap(), len);
            assert_eq!(head, [number as u8]);
            match number % 3 {
                0 => assert!(far.receive_data().unwrap() == bytes(len, number)),
                1 => {
                    let mut taken = vec![0; len];
                    far.receive_into(&mut taken).unwrap();
                    assert!(taken == bytes(len, number));
                }
                // Skipped.
                _ => {}
            }
        }
        drop(sender.join().unwrap());
        assert_eq!(far.receive(&mut head).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    /// Pages and caches stay warm only if a message goes where the one before it was.
    #[test]
    fn memory_is_used_again_as_soon_as_it_is_released() {
        let store = u128::from(std::process::id());
        let mut listener = SharedListener::bind(store, "a:6").unwrap();
        let mut near = SharedConnection::connect(store, "a:6", Duration::from_secs(5)).unwrap();
        let mut far = listener.accept().unwrap();
        near.set_limits(&Limits::DEFAULT);
        far.set_limits(&Limits::DEFAULT);
        let mut starts = Vec::new();
        for released in [true, true, false, false] {
            let start = near.place(5000).unwrap();
            starts.push(start);
            near.send_placed(b"x", start, 5000).unwrap();
            assert_eq!(far.receive(&mut Vec::new()).unwrap(), 5000);
            far.receive_data().unwrap();
            if released {
                far.release();
                far.release();
            }
        }
        assert_eq!(starts[..3], [starts[0]; 3]);
        assert!(starts[3] > starts[0]);
    }

    #[test]
    fn a_message_that_cannot_be_filled_is_not_sent() {
        let (mut near, mut far) = pair("a:2");
        for len in [10, 10_000] {
            let failed = near.send_filled(b"one", len, &mut |_| Err(io::ErrorKind::Other.into()));
            assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::Other);
        }
        near.send(b"two", &[IoSlice::new(&[7; 5000])]).unwrap();
        let mut head = Vec::new();
        assert_eq!((far.receive(&mut head).unwrap(), &head[..]), (5000, &b"two"[..]));
        assert_eq!(far.receive_data().unwrap(), [7; 5000]);
    }

    #[test]
    fn heads_come_together_and_are_seen_to_have_come() {
        let (mut near, mut far) = pair("a:5");
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
    fn strangers_send_no_memory_and_no_data() {
        let store = u128::from(std::process::id());
        let mut listener = SharedListener::bind(store, "a:3").unwrap();
        let mut near = SharedConnection::connect(store, "a:3", Duration::from_secs(5)).unwrap();
        let mut far = listener.accept().unwrap();
        near.set_limits(&Limits::DEFAULT);
        near.send(b"hello", &[IoSlice::new(&[7; 5000])]).unwrap();
        assert_eq!(far.receive(&mut Vec::new()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(SharedListener::bind(store, "a:3").is_err());
    }

    #[test]
    fn places_that_cannot_be_are_refused() {
        let segment = |start, new| Place::Segment { start, new };
        let most = usize::MAX >> 1;
        for (place, len) in [
            (segment(4096, false), 10),
            (segment(4096, true), 10),
            (segment(0, true), 0),
            (segment(most, false), 1),
        ] {
            let store = u128::from(std::process::id());
            let mut listener = SharedListener::bind(store, "a:4").unwrap();
            let mut near = SharedConnection::connect(store, "a:4", Duration::from_secs(5)).unwrap();
            let mut far = listener.accept().unwrap();
            far.set_limits(&Limits::DEFAULT);
            let mut head = Vec::new();
            let prefix = put_head(&mut head, place, b"x", len, 0);
            near.stream.write_all(&mut [IoSlice::new(&prefix), IoSlice::new(&head)], None).unwrap();
            assert_eq!(far.receive(&mut Vec::new()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
