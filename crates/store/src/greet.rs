//! The handshake, over any connection.

use std::io::{self, ErrorKind};

use pio_protocol::handshake::Greeting;
use pio_protocol::{ClientId, ClientProcess, Limits, VERSION};

use crate::auth::{Conversation, Role, Token, random};
use crate::process;
use crate::transport::Connection;

/// How a client was received.
#[derive(Debug)]
pub(crate) enum Greeted {
    /// The session may begin.
    Welcome {
        /// Bytes of the head that a message may have.
        head_bytes: u32,
        /// Bytes of data that a message may have.
        data_bytes: u32,
    },
    /// Come again soon.
    Busy,
    /// Never.
    Refused(String),
}

/// The client's side.
pub(crate) fn greet(
    connection: &mut dyn Connection,
    token: &Token,
    client: ClientId,
    server: u32,
) -> io::Result<Greeted> {
    let client_nonce = random()?;
    let hello =
        Greeting::Hello { version: VERSION, store: token.store(), client, server, nonce: client_nonce };
    say(connection, &hello)?;
    let server_nonce = match hear(connection)? {
        Greeting::Challenge { nonce } => nonce,
        Greeting::Refused { reason } => return Ok(Greeted::Refused(reason)),
        _ => return Err(unexpected()),
    };
    let conversation = Conversation { client, server, client_nonce, server_nonce };
    let mac = token.proof(Role::Client, &conversation);
    say(connection, &Greeting::Proof { mac, process: process::this() })?;
    match hear(connection)? {
        Greeting::Welcome { mac, data_bytes, head_bytes, .. } => {
            if !token.accepts(Role::Server, &conversation, &mac) {
                return Ok(Greeted::Refused("it does not know the store's token".into()));
            }
            connection.set_limits(&Limits { head_bytes, data_bytes, ..Limits::DEFAULT });
            Ok(Greeted::Welcome { head_bytes, data_bytes })
        }
        Greeting::Busy => Ok(Greeted::Busy),
        Greeting::Refused { reason } => Ok(Greeted::Refused(reason)),
        _ => Err(unexpected()),
    }
}

/// The server's side, up to the client's proof and its process; the caller says welcome. `None` if the client was refused.
pub(crate) fn receive(
    connection: &mut dyn Connection,
    token: &Token,
    index: u32,
) -> io::Result<Option<(Conversation, ClientProcess)>> {
    let Greeting::Hello { version, store, client, server, nonce: client_nonce } = hear(connection)? else {
        return Err(unexpected());
    };
    let wrong = if version != VERSION {
        Some(format!("the client speaks version {version} of the protocol, the server version {VERSION}"))
    } else if store != token.store() {
        Some("another store, or another token".into())
    } else if server != index {
        Some(format!("this is server {index}, not {server}"))
    } else {
        None
    };
    if let Some(reason) = wrong {
        say(connection, &Greeting::Refused { reason })?;
        return Ok(None);
    }
    let server_nonce = random()?;
    say(connection, &Greeting::Challenge { nonce: server_nonce })?;
    let Greeting::Proof { mac, process } = hear(connection)? else { return Err(unexpected()) };
    let conversation = Conversation { client, server, client_nonce, server_nonce };
    if !token.accepts(Role::Client, &conversation, &mac) {
        say(connection, &Greeting::Refused { reason: "a wrong token".into() })?;
        return Ok(None);
    }
    Ok(Some((conversation, process)))
}

/// Sends a greeting.
pub(crate) fn say(connection: &mut dyn Connection, greeting: &Greeting) -> io::Result<()> {
    connection.send(&greeting.encode(), &[])
}

fn hear(connection: &mut dyn Connection) -> io::Result<Greeting> {
    let mut head = Vec::new();
    connection.receive(&mut head)?;
    Ok(Greeting::decode(&head)?)
}

fn unexpected() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "not the greeting that was expected")
}
