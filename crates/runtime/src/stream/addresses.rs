//! The addresses of a connection, in fewer bytes than two of [`SocketAddr`].

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Local and remote address and port. Without IPv6 scope and flow label, which the core does not
/// have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Addresses {
    V4(SocketAddrV4, SocketAddrV4),
    V6((Ipv6Addr, u16), (Ipv6Addr, u16)),
}

impl Addresses {
    /// Of a connection: both are of one family.
    pub(super) fn new((local, remote): (SocketAddr, SocketAddr)) -> Self {
        match (local, remote) {
            (SocketAddr::V4(local), SocketAddr::V4(remote)) => Self::V4(local, remote),
            _ => Self::V6(wide(local), wide(remote)),
        }
    }

    pub(super) const fn local(&self) -> SocketAddr {
        match self {
            Self::V4(local, _) => SocketAddr::V4(*local),
            Self::V6((address, port), _) => SocketAddr::V6(SocketAddrV6::new(*address, *port, 0, 0)),
        }
    }

    pub(super) const fn remote(&self) -> SocketAddr {
        match self {
            Self::V4(_, remote) => SocketAddr::V4(*remote),
            Self::V6(_, (address, port)) => SocketAddr::V6(SocketAddrV6::new(*address, *port, 0, 0)),
        }
    }
}

fn wide(address: SocketAddr) -> (Ipv6Addr, u16) {
    let ip = match address {
        SocketAddr::V4(address) => address.ip().to_ipv6_mapped(),
        SocketAddr::V6(address) => *address.ip(),
    };
    (ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_come_back() {
        for (local, remote) in [("10.0.0.2:80", "10.0.0.1:40000"), ("[fd00::2]:443", "[fd00::1]:65535")] {
            let pair: (SocketAddr, SocketAddr) = (local.parse().unwrap(), remote.parse().unwrap());
            let addresses = Addresses::new(pair);
            assert_eq!((addresses.local(), addresses.remote()), pair);
        }
        assert!(size_of::<Addresses>() <= 38, "{}", size_of::<Addresses>());
    }
}
