//! Which transport there is to a server.

use std::io;
use std::time::Duration;

use super::address::Address;
use super::connection::{Connection, Listener};
use super::shared::{SharedConnection, SharedListener};
use super::tcp::TcpConnection;
use super::ucx::{self, UcxConnection, UcxListener};
use crate::auth::Token;
use crate::error::StoreError;

/// The variable that forces a transport.
const VARIABLE: &str = "PIOSCOPE_TRANSPORT";

/// Which transport to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Shared memory to a server on the same machine; to others UCX where both sides have the hardware for it, else TCP.
    #[default]
    Nearest,
    /// TCP, wherever the server is.
    Tcp,
    /// Shared memory, or nothing.
    Shared,
    /// UCX, or nothing.
    Ucx,
}

impl Transport {
    /// What `PIOSCOPE_TRANSPORT` says: `tcp`, `shared`, `ucx`, or nothing.
    ///
    /// # Errors
    /// If it says anything else.
    pub fn from_environment() -> Result<Transport, StoreError> {
        match std::env::var_os(VARIABLE) {
            None => Ok(Transport::Nearest),
            Some(value) => Transport::parse(&value.to_string_lossy()),
        }
    }

    fn parse(value: &str) -> Result<Transport, StoreError> {
        match value {
            "" => Ok(Transport::Nearest),
            "tcp" => Ok(Transport::Tcp),
            "shared" => Ok(Transport::Shared),
            "ucx" => Ok(Transport::Ucx),
            _ => Err(StoreError::Config {
                path: VARIABLE.into(),
                what: format!("the transport is '{value}': expected tcp, shared or ucx"),
            }),
        }
    }

    /// Connects to the server that listens at `address`.
    ///
    /// # Errors
    /// If it is not there.
    pub fn connect(self, address: &str, token: &Token, timeout: Duration) -> io::Result<Box<dyn Connection>> {
        let Address { tcp, ucx_port } = Address::parse(address);
        match self {
            Transport::Tcp => return Ok(Box::new(TcpConnection::connect(tcp, timeout)?)),
            Transport::Shared => {
                return Ok(Box::new(SharedConnection::connect(token.store(), tcp, timeout)?));
            }
            Transport::Ucx => return Ok(Box::new(UcxConnection::connect(address, timeout)?)),
            Transport::Nearest => {}
        }
        if let Ok(connection) = SharedConnection::connect(token.store(), tcp, timeout) {
            return Ok(Box::new(connection));
        }
        if ucx_port.is_some()
            && ucx::has_hardware()
            && let Ok(connection) = UcxConnection::connect(address, timeout)
        {
            return Ok(Box::new(connection));
        }
        Ok(Box::new(TcpConnection::connect(tcp, timeout)?))
    }

    /// Where clients on the same machine as the server at `address` come in; `None` if they cannot, or are not to.
    pub fn listen(self, token: &Token, address: &str) -> Option<Box<dyn Listener>> {
        if self == Transport::Tcp {
            return None;
        }
        SharedListener::bind(token.store(), Address::parse(address).tcp)
            .ok()
            .map(|listener| Box::new(listener) as Box<dyn Listener>)
    }

    /// Where clients come in through UCX to the server at `address`, if they are to: when it is forced, or this machine
    /// has hardware for it. What it listens at ([`Listener::address`]) is what clients are to be told.
    ///
    /// # Errors
    /// If it is forced and there is no UCX here.
    pub fn listen_through_ucx(self, address: &str) -> io::Result<Option<Box<dyn Listener>>> {
        match self {
            Transport::Ucx => Ok(Some(Box::new(UcxListener::bind(address)?))),
            Transport::Nearest if ucx::has_hardware() => {
                Ok(UcxListener::bind(address).ok().map(|listener| Box::new(listener) as Box<dyn Listener>))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_has_a_name() {
        assert_eq!(Transport::parse("").unwrap(), Transport::Nearest);
        assert_eq!(Transport::parse("tcp").unwrap(), Transport::Tcp);
        assert_eq!(Transport::parse("shared").unwrap(), Transport::Shared);
        assert_eq!(Transport::parse("ucx").unwrap(), Transport::Ucx);
        assert!(Transport::parse("rdma").unwrap_err().to_string().contains("expected tcp, shared or ucx"));
    }
}
