//! A stream socket: bytes read ahead, pieces gathered, and descriptors that come with bytes.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, Shutdown,
};

use super::connection::{Breaker, Traffic};
use crate::summed::BLOCK_BYTES;
use pio_protocol::Limits;
use pio_protocol::frame::Prefix;

/// Bytes read ahead of a message: enough for prefix and head of nearly all, and little to copy of the data behind.
const READ_AHEAD_BYTES: usize = 4096;
/// Pieces that the kernel takes at once (Linux's `UIO_MAXIOV`).
const MOST_PIECES: usize = 1024;
/// Descriptors that wait for the message they belong to.
const MOST_DESCRIPTORS: usize = 4;

/// A stream socket.
#[derive(Debug)]
pub(super) struct Stream {
    socket: OwnedFd,
    /// Received, and not yet taken: `buffer[from..to]`.
    buffer: Box<[u8; READ_AHEAD_BYTES]>,
    from: usize,
    to: usize,
    /// Whether the other side may send descriptors.
    takes_descriptors: bool,
    descriptors: VecDeque<OwnedFd>,
    receive_timeout: Option<Duration>,
    traffic: Traffic,
}

impl Stream {
    pub(super) fn new(socket: OwnedFd) -> Stream {
        Stream {
            socket,
            buffer: Box::new([0; READ_AHEAD_BYTES]),
            from: 0,
            to: 0,
            takes_descriptors: false,
            descriptors: VecDeque::new(),
            receive_timeout: None,
            traffic: Traffic::default(),
        }
    }

    /// Bytes that went over the socket.
    pub(super) fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Takes descriptors from now on: before, the kernel drops them.
    pub(super) fn take_descriptors(&mut self) {
        self.takes_descriptors = true;
    }

    /// The next descriptor that came.
    pub(super) fn descriptor(&mut self) -> Option<OwnedFd> {
        self.descriptors.pop_front()
    }

    /// Waits until there is something to read.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if nothing came.
    pub(super) fn wait(&mut self) -> io::Result<()> {
        if self.from == self.to { self.fill() } else { Ok(()) }
    }

    /// Looks for something to read, for so long at most, without going to sleep. The kernel wakes others on this processor meanwhile,
    /// as threads of other servers, and takes them nowhere else: they go first.
    pub(super) fn look_out(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while Instant::now() < until && !self.has_come() {
            std::thread::yield_now();
        }
    }

    /// Whether there is something to read.
    pub(super) fn has_come(&self) -> bool {
        if self.from < self.to {
            return true;
        }
        let (mut byte, flags) = ([0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(rustix::net::recv(&self.socket, &mut byte, flags), Ok((1, _)))
    }

    /// Whether there is something to read behind the next so many bytes, as far as they have come.
    pub(super) fn has_come_behind(&self, bytes: usize) -> bool {
        if bytes == 0 { self.has_come() } else { self.to - self.from > bytes }
    }

    /// Waits for a message within the limits, and puts its head into `head`.
    pub(super) fn receive_head(&mut self, limits: &Limits, head: &mut Vec<u8>) -> io::Result<Prefix> {
        self.wait()?;
        let prefix = Prefix::unpack(limits, || {
            let mut byte = [0];
            self.read_exact(&mut byte).map(|()| byte[0])
        })?;
        head.resize(prefix.head_len as usize, 0);
        self.read_exact(head)?;
        prefix.check_head(head)?;
        Ok(prefix)
    }

    /// Fills `out`, in the middle of a message; returns its CRC-32. In two steps: to stop for the sum after each piece of what
    /// is there makes the sender wake this side up more often, which costs more than the caches save.
    pub(super) fn read_summed(&mut self, out: &mut [u8]) -> io::Result<u32> {
        self.read_exact(out)?;
        Ok(crc32fast::hash(out))
    }

    /// The same; puts the CRC-32 of each block into `sums`.
    pub(super) fn read_summed_by_block(&mut self, out: &mut [u8], sums: &mut Vec<u32>) -> io::Result<u32> {
        self.read_exact(out)?;
        sums.clear();
        let mut whole = crc32fast::Hasher::new();
        for block in out.chunks(BLOCK_BYTES as usize) {
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(block);
            whole.combine(&hasher);
            sums.push(hasher.finalize());
        }
        Ok(whole.finalize())
    }

    /// Fills `out`, in the middle of a message.
    pub(super) fn read_exact(&mut self, mut out: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() {
            let buffered = &self.buffer[self.from..self.to];
            if !buffered.is_empty() {
                let len = buffered.len().min(out.len());
                let (now, later) = out.split_at_mut(len);
                now.copy_from_slice(&buffered[..len]);
                self.from += len;
                out = later;
            } else if out.len() < READ_AHEAD_BYTES {
                self.fill().map_err(in_the_middle)?;
            } else {
                let len = read_some(self.socket.as_fd(), out).map_err(in_the_middle)?;
                self.traffic.received += len as u64;
                out = &mut out[len..];
            }
        }
        Ok(())
    }

    /// Writes all pieces; a descriptor goes with the first byte.
    pub(super) fn write_all(
        &mut self,
        mut pieces: &mut [IoSlice<'_>],
        mut descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let first = descriptor.as_slice();
            if !first.is_empty() && !control.push(SendAncillaryMessage::ScmRights(first)) {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            let now = &pieces[..pieces.len().min(MOST_PIECES)];
            // A server that is gone is an error, not a signal that ends somebody's program.
            match rustix::net::sendmsg(&self.socket, now, &mut control, SendFlags::NOSIGNAL) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => {
                    descriptor = None;
                    self.traffic.sent += len as u64;
                    IoSlice::advance_slices(&mut pieces, len);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(error_of(errno)),
            }
        }
        Ok(())
    }

    pub(super) fn set_timeouts(
        &mut self,
        receive: Option<Duration>,
        send: Option<Duration>,
    ) -> io::Result<()> {
        self.receive_timeout = receive;
        sockopt::set_socket_timeout(&self.socket, Timeout::Recv, receive)?;
        Ok(sockopt::set_socket_timeout(&self.socket, Timeout::Send, send)?)
    }

    pub(super) fn breaker(&self) -> io::Result<Breaker> {
        let socket = self.socket.try_clone()?;
        Ok(Box::new(move || {
            // It may be broken already.
            let _ = rustix::net::shutdown(&socket, Shutdown::Both);
        }))
    }

    fn fill(&mut self) -> io::Result<()> {
        (self.from, self.to) = (0, 0);
        self.to = match self.takes_descriptors {
            true => self.fill_with_descriptors()?,
            false => read_some(self.socket.as_fd(), &mut self.buffer[..])?,
        };
        self.traffic.received += self.to as u64;
        Ok(())
    }

    /// From a Unix socket.
    fn fill_with_descriptors(&mut self) -> io::Result<usize> {
        loop {
            let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut out = [IoSliceMut::new(&mut self.buffer[..])];
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            let received = rustix::net::recvmsg(&self.socket, &mut out, &mut control, flags);
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    self.descriptors.extend(descriptors);
                }
            }
            if self.descriptors.len() > MOST_DESCRIPTORS {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "descriptors that nothing asked for"));
            }
            match received.map(|received| received.bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => return Ok(len),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.sleep_until_readable()?,
                Err(errno) => return Err(error_of(errno)),
            }
        }
    }

    /// Who sleeps within `recvmsg` is woken up, too, whenever the other side takes what was sent to it, for there is room to
    /// send more: twice as many wake-ups, some on processors that sleep. `poll` is told what for.
    fn sleep_until_readable(&self) -> io::Result<()> {
        let timeout = self.receive_timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Reads at least a byte.
fn read_some(socket: BorrowedFd<'_>, out: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::io::read(socket, &mut *out) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => return Ok(len),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(error_of(errno)),
        }
    }
}

/// An elapsed timeout of a socket has another name; what has that name says that the other side is gone: its machine answers
/// nothing, keepalive found. Nobody waited for an answer as long as he would.
fn error_of(errno: Errno) -> io::Error {
    match errno {
        Errno::AGAIN => io::ErrorKind::TimedOut.into(),
        Errno::TIMEDOUT => io::Error::new(io::ErrorKind::ConnectionReset, io::Error::from(errno)),
        _ => errno.into(),
    }
}

/// The error of a message that stopped in the middle.
fn in_the_middle(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::TimedOut => {
            io::Error::new(io::ErrorKind::ConnectionAborted, "a message stopped in the middle")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    /// A client that has waited for an answer in vain gives up; over a connection that broke it asks again.
    #[test]
    fn a_connection_that_the_kernel_gave_up_is_broken() {
        assert_eq!(error_of(Errno::AGAIN).kind(), io::ErrorKind::TimedOut);
        assert_eq!(error_of(Errno::TIMEDOUT).kind(), io::ErrorKind::ConnectionReset);
        assert!(error_of(Errno::TIMEDOUT).to_string().contains("timed out"));
    }

    #[test]
    fn data_behind_a_head_are_no_other_message() {
        let flags = SocketFlags::CLOEXEC;
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let (mut near, mut far) = (Stream::new(near), Stream::new(far));
        near.write_all(&mut [IoSlice::new(&[1; 5])], None).unwrap();
        far.wait().unwrap();
        assert_eq!([0, 4, 5, 6].map(|bytes| far.has_come_behind(bytes)), [true, true, false, false]);
        far.read_exact(&mut [0; 5]).unwrap();
        assert!(!far.has_come_behind(0));
        near.write_all(&mut [IoSlice::new(&[1; 5])], None).unwrap();
        assert!(far.has_come_behind(0));
    }
}
