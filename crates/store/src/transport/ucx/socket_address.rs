//! Internet addresses as C programs have them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use super::library::SocketAddress;

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// Bytes of it.
pub(super) fn len(address: &SocketAddr) -> u32 {
    if address.is_ipv4() { 16 } else { 28 }
}

pub(super) fn encode(address: &SocketAddr) -> SocketAddress {
    let mut bytes = [0; 128];
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address {
        SocketAddr::V4(address) => {
            bytes[..2].copy_from_slice(&AF_INET.to_ne_bytes());
            bytes[4..8].copy_from_slice(&address.ip().octets());
        }
        SocketAddr::V6(address) => {
            bytes[..2].copy_from_slice(&AF_INET6.to_ne_bytes());
            bytes[4..8].copy_from_slice(&address.flowinfo().to_be_bytes());
            bytes[8..24].copy_from_slice(&address.ip().octets());
            bytes[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
        }
    }
    SocketAddress(bytes)
}

pub(super) fn decode(address: &SocketAddress) -> Option<SocketAddr> {
    let bytes = &address.0;
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    match u16::from_ne_bytes([bytes[0], bytes[1]]) {
        AF_INET => {
            let ip: [u8; 4] = bytes[4..8].try_into().ok()?;
            Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(ip)), port))
        }
        AF_INET6 => {
            let flow: [u8; 4] = bytes[4..8].try_into().ok()?;
            let ip: [u8; 16] = bytes[8..24].try_into().ok()?;
            let scope: [u8; 4] = bytes[24..28].try_into().ok()?;
            let (flow, scope) = (u32::from_be_bytes(flow), u32::from_ne_bytes(scope));
            Some(SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::from(ip), port, flow, scope)))
        }
        _ => None,
    }
}
