//! How a session begins: both sides show that they know the store's token, and neither ever says it.
//!
//! | step | message | fields |
//! |---|---|---|
//! | 1, client | hello | `1`, version, store (16 bytes), client (16 bytes), server index, nonce (32 bytes) |
//! | 2, server | challenge | `2`, nonce (32 bytes) |
//! | 3, client | proof | `3`, HMAC-SHA-256 (32 bytes), process: host (string), number, beginning, start of the machine (16 bytes), namespace |
//! | 4, server | welcome | `4`, HMAC-SHA-256 (32 bytes), bytes of data and of head that a message may have |
//! | instead of 2 or 4 | refused | `5`, reason (string) |
//! | instead of 4 | busy | `6`: work of the client's last connection is not over yet; come again soon |

use crate::error::ProtocolError;
use crate::process::{ClientId, ClientProcess};
use crate::wire::{Input, put, put_bytes};

/// A message before a session exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// Who is there, and wants to talk to whom.
    Hello {
        /// Version of the protocol.
        version: u32,
        /// Which store.
        store: u128,
        /// Who.
        client: ClientId,
        /// Which server of the store is expected here.
        server: u32,
        /// A random number.
        nonce: [u8; 32],
    },
    /// Prove it.
    Challenge {
        /// Another random number.
        nonce: [u8; 32],
    },
    /// The client's proof.
    Proof {
        /// Keyed hash of what was said.
        mac: [u8; 32],
        /// The client's process.
        process: ClientProcess,
    },
    /// The server's proof, and what the client has to know.
    Welcome {
        /// Keyed hash of what was said.
        mac: [u8; 32],
        /// Bytes of data that a message may have.
        data_bytes: u32,
        /// Bytes of head that a message may have.
        head_bytes: u32,
    },
    /// No.
    Refused {
        /// Why not.
        reason: String,
    },
    /// The last connection's work is not over yet.
    Busy,
}

/// Bytes that a greeting has at most: nobody has shown a token yet.
pub const GREETING_BYTES: u32 = 512;
/// Bytes of the reason of a refusal at most.
pub const REASON_BYTES: usize = 256;

impl Greeting {
    /// The greeting as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(96);
        match self {
            Greeting::Hello { version, store, client, server, nonce } => {
                out.push(1);
                put(&mut out, u64::from(*version));
                out.extend(store.to_le_bytes());
                out.extend(client.0.to_le_bytes());
                put(&mut out, u64::from(*server));
                out.extend(nonce);
            }
            Greeting::Challenge { nonce } => {
                out.push(2);
                out.extend(nonce);
            }
            Greeting::Proof { mac, process } => {
                out.push(3);
                out.extend(mac);
                process.encode(&mut out);
            }
            Greeting::Welcome { mac, data_bytes, head_bytes } => {
                out.push(4);
                out.extend(mac);
                put(&mut out, u64::from(*data_bytes));
                put(&mut out, u64::from(*head_bytes));
            }
            Greeting::Refused { reason } => {
                out.push(5);
                put_bytes(&mut out, reason.as_bytes());
            }
            Greeting::Busy => out.push(6),
        }
        out
    }

    /// The greeting in these bytes.
    ///
    /// # Errors
    /// If they are not exactly one.
    pub fn decode(bytes: &[u8]) -> Result<Greeting, ProtocolError> {
        let mut input = Input::new(bytes);
        let greeting = match input.byte("a kind of greeting")? {
            1 => Greeting::Hello {
                version: input.small("a version")?,
                store: u128::from_le_bytes(input.array("a store")?),
                client: ClientId(u128::from_le_bytes(input.array("a client")?)),
                server: input.small("a server")?,
                nonce: input.array("a nonce")?,
            },
            2 => Greeting::Challenge { nonce: input.array("a nonce")? },
            3 => {
                Greeting::Proof { mac: input.array("a proof")?, process: ClientProcess::decode(&mut input)? }
            }
            4 => Greeting::Welcome {
                mac: input.array("a proof")?,
                data_bytes: input.small("a length")?,
                head_bytes: input.small("a length")?,
            },
            5 => Greeting::Refused { reason: input.string(REASON_BYTES, "a reason")? },
            6 => Greeting::Busy,
            _ => return Err(ProtocolError::Malformed { expected: "a kind of greeting from 1 to 6" }),
        };
        input.end()?;
        Ok(greeting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn greetings_go_there_and_back() {
        for greeting in [
            Greeting::Hello { version: 1, store: 7, client: ClientId(u128::MAX), server: 3, nonce: [5; 32] },
            Greeting::Challenge { nonce: [6; 32] },
            Greeting::Proof {
                mac: [7; 32],
                process: ClientProcess {
                    host: "h".repeat(64),
                    pid: u32::MAX,
                    began: u64::MAX,
                    boot: u128::MAX,
                    namespace: u64::MAX,
                },
            },
            Greeting::Welcome { mac: [8; 32], data_bytes: 4 << 20, head_bytes: 9 },
            Greeting::Refused { reason: "another store".into() },
            Greeting::Busy,
        ] {
            assert!(greeting.encode().len() <= GREETING_BYTES as usize);
            assert_eq!(Greeting::decode(&greeting.encode()), Ok(greeting));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_or_fail_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Greeting::decode(&bytes);
        }
    }
}
