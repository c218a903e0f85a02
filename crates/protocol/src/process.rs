//! The process that a client is: so that a server can say who holds a lock, and see at once that it died.
//!
//! A connection that is closed does not say that: a client also closes one that does not work, and comes again.

use crate::error::ProtocolError;
use crate::wire::{Input, put, put_bytes};

/// A client, by a random number that it keeps through all its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u128);

/// Bytes of a host's name: Linux has at most 64.
pub const HOST_BYTES: usize = 64;

/// A process of some machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientProcess {
    /// Name of the machine, of at most 64 bytes.
    pub host: String,
    /// Its number, in its own namespace.
    pub pid: u32,
    /// When it began, in clock ticks since the start of the machine; 0 if it does not know.
    pub began: u64,
    /// The start of its machine (Linux's boot id); 0 if it does not know.
    pub boot: u128,
    /// The inode number of its namespace of process numbers; 0 if it does not know.
    pub namespace: u64,
}

impl ClientProcess {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_bytes(out, self.host.as_bytes());
        put(out, u64::from(self.pid));
        put(out, self.began);
        out.extend(self.boot.to_le_bytes());
        put(out, self.namespace);
    }

    pub(crate) fn decode(input: &mut Input) -> Result<ClientProcess, ProtocolError> {
        Ok(ClientProcess {
            host: input.string(HOST_BYTES, "the name of a host")?,
            pid: input.small("a process")?,
            began: input.number("a time")?,
            boot: u128::from_le_bytes(input.array("a start of a machine")?),
            namespace: input.number("a namespace")?,
        })
    }
}
