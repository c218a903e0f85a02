//! What every transport is: connections, and listeners that they come in through.

use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::ops::Add;
use std::time::Duration;

use pio_protocol::Limits;

use crate::summed::Summed;

/// Bytes that went between a client and its servers, all that its transport said included: greetings, prefixes and heads of
/// messages, views, and data, through whatever they went. What a network adds to carry them (the headers of TCP, say) is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

impl Add for Traffic {
    type Output = Traffic;

    fn add(self, other: Traffic) -> Traffic {
        Traffic { sent: self.sent + other.sent, received: self.received + other.received }
    }
}

/// A connection: messages go both ways, whole, in order, checked; or it breaks.
///
/// A message is a head and data. On an error the connection is of no more use.
pub trait Connection: Debug + Send {
    /// Sends a message whose data are gathered from where they lie.
    ///
    /// # Errors
    /// If the other side is gone, or takes nothing for as long as the timeout.
    fn send(&mut self, head: &[u8], data: &[IoSlice<'_>]) -> io::Result<()>;

    /// Sends a message whose `len` bytes of data `fill` writes, once, into memory on their way.
    ///
    /// # Errors
    /// As [`Connection::send`], and what `fill` fails with: nothing of the message is sent then.
    fn send_filled(
        &mut self,
        head: &[u8],
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> io::Result<()>,
    ) -> io::Result<()>;

    /// Memory on its way, for the `len` bytes of data of the next message: [`Connection::send_lent`] sends it. `None` if this
    /// way has no such memory.
    fn lend(&mut self, _len: usize) -> Option<&mut [u8]> {
        None
    }

    /// Sends a message whose data are the first `len` bytes of what was lent last.
    ///
    /// # Errors
    /// As [`Connection::send`], and if nothing was lent, or less.
    fn send_lent(&mut self, _head: &[u8], _len: usize) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "no memory was lent"))
    }

    /// Sends messages that have no data, together.
    ///
    /// # Errors
    /// As [`Connection::send`].
    fn send_heads(&mut self, heads: &[Vec<u8>]) -> io::Result<()> {
        heads.iter().try_for_each(|head| self.send(head, &[]))
    }

    /// Whether some of the next message is there already. `false` if this way cannot tell, or nothing will come.
    fn has_come(&mut self) -> bool {
        false
    }

    /// Waits for the next message, puts its head into `head`, and says how many bytes of data it has. Data of the
    /// message before that nobody took are skipped.
    ///
    /// # Errors
    /// If the other side is gone, stops in the middle of a message for as long as the timeout, or sends what is no message
    /// within the limits. [`io::ErrorKind::TimedOut`] alone says that nothing came at all: then one may go on waiting.
    fn receive(&mut self, head: &mut Vec<u8>) -> io::Result<usize>;

    /// Takes the data of the message received last, straight into `out`, which is as long.
    ///
    /// # Errors
    /// As [`Connection::receive`]; `out` may then hold anything.
    fn receive_into(&mut self, out: &mut [u8]) -> io::Result<()>;

    /// Takes the data of the message received last, wherever they are.
    ///
    /// # Errors
    /// As [`Connection::receive`].
    fn receive_data(&mut self) -> io::Result<&[u8]>;

    /// The same, with the CRC-32 of each [`BLOCK_BYTES`](crate::summed::BLOCK_BYTES) of them (the last may be fewer) if this way has summed them.
    ///
    /// # Errors
    /// As [`Connection::receive`].
    fn receive_summed(&mut self) -> io::Result<Summed<'_>> {
        Ok(Summed { data: self.receive_data()?, sums: &[] })
    }

    /// The caller is done with the data received last: their memory may be used for others. Else it is when the next message
    /// is received, which may be after the other side has sent it, to memory that nobody has touched yet.
    fn release(&mut self) {}

    /// What messages may be like from now on.
    fn set_limits(&mut self, limits: &Limits);

    /// How long to wait for a message, and for the other side to take one; for ever if `None`.
    ///
    /// # Errors
    /// If the operating system refuses.
    fn set_timeouts(&mut self, receive: Option<Duration>, send: Option<Duration>) -> io::Result<()>;

    /// Gives back memory that is kept from message to message.
    fn trim(&mut self);

    /// Bytes that went over this connection, counted from its beginning.
    fn traffic(&self) -> Traffic;

    /// What breaks the connection from another thread: whoever waits on it gets an error.
    ///
    /// # Errors
    /// If the process has no more descriptors.
    fn breaker(&self) -> io::Result<Breaker>;
}

/// Breaks a connection, or wakes up who waits for one.
pub type Breaker = Box<dyn Fn() + Send + Sync>;

/// Where clients come in.
pub trait Listener: Debug + Send {
    /// Waits for the next client.
    ///
    /// # Errors
    /// If the operating system has no more connections to give: worth trying again.
    fn accept(&mut self) -> io::Result<Box<dyn Connection>>;

    /// What makes an [`Listener::accept`] that waits in another thread return.
    fn waker(&self) -> Breaker;

    /// What clients connect to.
    fn address(&self) -> &str;
}
