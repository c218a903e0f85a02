//! Which transport there is to a server.

use std::io;
use std::time::Duration;

use super::{Connection, Listener, SharedConnection, SharedListener, TcpConnection};
use crate::auth::Token;
use crate::error::StoreError;

/// The variable that forces a transport.
const VARIABLE: &str = "PIOSCOPE_TRANSPORT";

/// Which transport to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Shared memory to a server on the same machine, TCP to others.
    #[default]
    Nearest,
    /// TCP, wherever the server is.
    Tcp,
    /// Shared memory, or nothing.
    Shared,
}

impl Way {
    /// What `PIOSCOPE_TRANSPORT` says: `tcp`, `shared`, or nothing.
    ///
    /// # Errors
    /// If it says anything else.
    pub fn from_environment() -> Result<Way, StoreError> {
        match std::env::var_os(VARIABLE) {
            None => Ok(Way::Nearest),
            Some(value) => Way::parse(&value.to_string_lossy()),
        }
    }

    fn parse(value: &str) -> Result<Way, StoreError> {
        match value {
            "" => Ok(Way::Nearest),
            "tcp" => Ok(Way::Tcp),
            "shared" => Ok(Way::Shared),
            _ => Err(StoreError::Config {
                path: VARIABLE.into(),
                what: format!("the transport is '{value}': expected tcp or shared"),
            }),
        }
    }

    /// Connects to the server that listens at `address`.
    ///
    /// # Errors
    /// If it is not there.
    pub fn connect(self, address: &str, token: &Token, timeout: Duration) -> io::Result<Box<dyn Connection>> {
        if self != Way::Tcp {
            match SharedConnection::connect(token.store(), address, timeout) {
                Ok(connection) => return Ok(Box::new(connection)),
                Err(error) if self == Way::Shared => return Err(error),
                Err(_) => {}
            }
        }
        Ok(Box::new(TcpConnection::connect(address, timeout)?))
    }

    /// Where clients on the same machine as the server at `address` come in; `None` if they cannot, or are not to.
    pub fn listen(self, token: &Token, address: &str) -> Option<Box<dyn Listener>> {
        if self == Way::Tcp {
            return None;
        }
        SharedListener::bind(token.store(), address)
            .ok()
            .map(|listener| Box::new(listener) as Box<dyn Listener>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_is_tcp_or_shared() {
        assert_eq!(Way::parse("").unwrap(), Way::Nearest);
        assert_eq!(Way::parse("tcp").unwrap(), Way::Tcp);
        assert_eq!(Way::parse("shared").unwrap(), Way::Shared);
        assert!(Way::parse("rdma").unwrap_err().to_string().contains("expected tcp or shared"));
    }
}
