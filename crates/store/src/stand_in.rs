//! What listens in the place of a server that cannot be started: clients hear at once why, instead of trying until their
//! patience ends. Only who shows the token hears it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::auth::Token;
use crate::greet;
use crate::transport::{Connection, Listener};
use pio_protocol::handshake::{Greeting, REASON_BYTES};

/// How long a client may take to show the token.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients that are told at a time; others come again.
const MOST_AT_ONCE: usize = 256;

struct StandIn {
    index: u32,
    token: Token,
    reason: String,
    talking: AtomicUsize,
}

/// Refuses, until the process ends, all clients of server `index` that come in through `listeners`.
pub fn start(index: u32, token: Token, reason: &str, listeners: Vec<Box<dyn Listener>>) {
    let end = (0..=reason.len().min(REASON_BYTES)).rev().find(|end| reason.is_char_boundary(*end));
    let reason = reason[..end.unwrap_or(0)].to_owned();
    let stand_in = Arc::new(StandIn { index, token, reason, talking: AtomicUsize::new(0) });
    for listener in listeners {
        let stand_in = stand_in.clone();
        thread::spawn(move || stand_in.accept(listener));
    }
}

impl StandIn {
    fn accept(self: Arc<Self>, mut listener: Box<dyn Listener>) {
        loop {
            let Ok(connection) = listener.accept() else {
                thread::sleep(Duration::from_millis(20));
                continue;
            };
            let stand_in = self.clone();
            if self.talking.fetch_add(1, Ordering::SeqCst) < MOST_AT_ONCE {
                thread::spawn(move || {
                    // Whoever does not listen to the end comes again if it wants to.
                    let _ = stand_in.refuse(connection);
                    stand_in.talking.fetch_sub(1, Ordering::SeqCst);
                });
            } else {
                self.talking.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    fn refuse(&self, mut connection: Box<dyn Connection>) -> io::Result<()> {
        connection.set_timeouts(Some(PATIENCE), Some(PATIENCE))?;
        if greet::receive(&mut *connection, &self.token, self.index)?.is_some() {
            greet::say(&mut *connection, &Greeting::Refused { reason: self.reason.clone() })?;
        }
        Ok(())
    }
}
