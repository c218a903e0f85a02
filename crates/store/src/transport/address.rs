//! What clients connect to, as the description of a store has it: host and port of TCP, and the port of UCX if the server
//! listens there too: `node1:4000` or `node1:4000,ucx=4001`.

use std::fmt::{self, Display};

const UCX: &str = ",ucx=";

/// The address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// Host and port of TCP.
    pub tcp: &'a str,
    /// The port of UCX.
    pub ucx_port: Option<u16>,
}

impl<'a> Address<'a> {
    /// The parts of an address. What is not understood is left to whoever looks for a host of that name.
    pub fn parse(address: &'a str) -> Address<'a> {
        if let Some((tcp, port)) = address.rsplit_once(UCX)
            && let Ok(port) = port.parse()
        {
            return Address { tcp, ucx_port: Some(port) };
        }
        Address { tcp: address, ucx_port: None }
    }

    /// The same server, listening through UCX at this port.
    pub(super) fn with_ucx(self, port: u16) -> Address<'a> {
        Address { ucx_port: Some(port), ..self }
    }

    /// Host and port of UCX, if the server listens there.
    pub(super) fn ucx(&self) -> Option<String> {
        let host = self.tcp.rsplit_once(':').map_or(self.tcp, |(host, _)| host);
        self.ucx_port.map(|port| format!("{host}:{port}"))
    }
}

impl Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tcp)?;
        self.ucx_port.map_or(Ok(()), |port| write!(f, "{UCX}{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_there_and_back() {
        for (text, tcp, ucx) in [
            ("node1:4000", "node1:4000", None),
            ("node1:4000,ucx=4001", "node1:4000", Some("node1:4001")),
            ("[::1]:4000,ucx=1", "[::1]:4000", Some("[::1]:1")),
            ("node1:4000,ucx=x", "node1:4000,ucx=x", None),
        ] {
            let address = Address::parse(text);
            assert_eq!((address.tcp, address.ucx().as_deref()), (tcp, ucx));
            assert_eq!(address.to_string(), text);
        }
    }
}
