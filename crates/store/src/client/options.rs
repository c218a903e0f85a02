//! How a client behaves.

use std::fmt;
use std::io;
use std::time::Duration;

use pio_protocol::client::CHUNK_BYTES;

use crate::error::StoreError;
use crate::transport::Transport;

/// How a client behaves.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long to try to reach a server, or to wait for an answer, before giving an error.
    pub timeout: Duration,
    /// Bytes of data in a message at most: both sides work on one while the next is on its way. A message of a contiguous
    /// write has up to twice as many.
    pub chunk_bytes: u64,
    /// Messages on their way to or from a server at a time.
    pub window: usize,
    /// Which transport; `None`: as `PIOSCOPE_TRANSPORT` says.
    pub transport: Option<Transport>,
    /// Is told when a server cannot be reached for a second, and tried on: once, until it answers.
    pub waits: fn(&Unanswered<'_>),
}

/// A server that does not answer, for now.
#[derive(Debug)]
pub struct Unanswered<'a> {
    /// Its number in the store.
    pub server: u32,
    /// Where it is looked for.
    pub address: &'a str,
    /// What came of the last attempt.
    pub error: &'a io::Error,
    /// How long it is tried on.
    pub left: Duration,
}

impl fmt::Display for Unanswered<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unanswered { server, address, error, left } = self;
        write!(
            out,
            "server {server} at {address} does not answer ({error}): trying for {:.0} s more",
            left.as_secs_f64()
        )
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            timeout: Duration::from_secs(60),
            chunk_bytes: CHUNK_BYTES,
            window: 8,
            transport: None,
            waits: |_| {},
        }
    }
}

/// Says in seconds how long to try to reach a server.
const TIMEOUT: &str = "PIOSCOPE_TIMEOUT";
/// The longest timeout, a day: what depends on how much is to be done may take 20 times as long.
pub const MOST_SECONDS: u64 = 86_400;

impl Options {
    /// The default, with the timeout that `PIOSCOPE_TIMEOUT` says, if it is set.
    ///
    /// # Errors
    /// If it is not a number of seconds.
    pub fn from_environment() -> Result<Options, StoreError> {
        let options = Options::default();
        match std::env::var_os(TIMEOUT).filter(|value| !value.is_empty()) {
            None => Ok(options),
            Some(value) => match timeout_of(&value.to_string_lossy()) {
                Some(timeout) => Ok(Options { timeout, ..options }),
                None => Err(StoreError::Config {
                    path: TIMEOUT.into(),
                    what: format!(
                        "the timeout is '{}': expected a number of seconds from 1 to {MOST_SECONDS}",
                        value.to_string_lossy()
                    ),
                }),
            },
        }
    }
}

/// The timeout that a text says: a number of seconds from 1 to [`MOST_SECONDS`].
pub fn timeout_of(text: &str) -> Option<Duration> {
    text.parse().ok().filter(|seconds| (1..=MOST_SECONDS).contains(seconds)).map(Duration::from_secs)
}
