//! The four-tuple of a connection: two addresses, two ports (RFC 9293, section 3.3.1).

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A connection's local and remote address and port, in 37 bytes.
///
/// Stored as the bytes that are hashed and compared, in network byte order: local address, remote
/// address, local port, remote port. It does not include IPv6 scope or flow label.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FourTuple(Bytes);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Bytes {
    V4([u8; 12]),
    V6([u8; 36]),
}

impl FourTuple {
    /// Another one for each number: IPv4 if it is even, IPv6 if it is odd.
    #[cfg(test)]
    pub(crate) fn numbered(number: u32) -> Self {
        let [a, b, c, d] = number.to_be_bytes();
        let (low, port) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let at = |host: u16, port: u16| match number % 2 {
            0 => SocketAddr::from(([10, 0, host as u8, (host >> 8) as u8], port)),
            _ => SocketAddr::from((Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host), port)),
        };
        Self::new(at(1, 443), at(low, port))
    }

    /// The four-tuple of the connection between `local` and `remote`.
    ///
    /// In every packet both are of one family. If a caller mixes them, the IPv4 address is mapped
    /// to IPv6 (RFC 4291, section 2.5.5.2), so the result matches no packet's connection.
    #[must_use]
    pub fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        if let (IpAddr::V4(local_addr), IpAddr::V4(remote_addr)) = (local.ip(), remote.ip()) {
            let mut bytes = [0; 12];
            bytes[..4].copy_from_slice(&local_addr.octets());
            bytes[4..8].copy_from_slice(&remote_addr.octets());
            bytes[8..10].copy_from_slice(&local.port().to_be_bytes());
            bytes[10..].copy_from_slice(&remote.port().to_be_bytes());
            Self(Bytes::V4(bytes))
        } else {
            let mut bytes = [0; 36];
            bytes[..16].copy_from_slice(&to_ipv6(local.ip()).octets());
            bytes[16..32].copy_from_slice(&to_ipv6(remote.ip()).octets());
            bytes[32..34].copy_from_slice(&local.port().to_be_bytes());
            bytes[34..].copy_from_slice(&remote.port().to_be_bytes());
            Self(Bytes::V6(bytes))
        }
    }

    /// True if `new` would return the same four-tuple. Compares without building one, since each
    /// packet pays for it.
    #[must_use]
    pub(crate) fn is(&self, local: IpAddr, local_port: u16, remote: IpAddr, remote_port: u16) -> bool {
        if self.local_port() != local_port || self.remote_port() != remote_port {
            return false;
        }
        match (&self.0, local, remote) {
            (Bytes::V4(bytes), IpAddr::V4(local), IpAddr::V4(remote)) => {
                bytes[..4] == local.octets() && bytes[4..8] == remote.octets()
            }
            (Bytes::V6(bytes), IpAddr::V6(local), IpAddr::V6(remote)) => {
                bytes[..16] == local.octets() && bytes[16..32] == remote.octets()
            }
            _ => false,
        }
    }

    /// Local address.
    #[must_use]
    pub(crate) fn local_ip(&self) -> IpAddr {
        match self.0 {
            Bytes::V4([a, b, c, d, ..]) => Ipv4Addr::new(a, b, c, d).into(),
            Bytes::V6(bytes) => ipv6(&bytes, 0),
        }
    }

    /// Remote address.
    #[must_use]
    pub(crate) fn remote_ip(&self) -> IpAddr {
        match self.0 {
            Bytes::V4([_, _, _, _, a, b, c, d, ..]) => Ipv4Addr::new(a, b, c, d).into(),
            Bytes::V6(bytes) => ipv6(&bytes, 16),
        }
    }

    /// Local port.
    #[must_use]
    pub(crate) const fn local_port(&self) -> u16 {
        match self.0 {
            Bytes::V4([.., high, low, _, _]) | Bytes::V6([.., high, low, _, _]) => {
                u16::from_be_bytes([high, low])
            }
        }
    }

    /// Remote port.
    #[must_use]
    pub(crate) const fn remote_port(&self) -> u16 {
        match self.0 {
            Bytes::V4([.., high, low]) | Bytes::V6([.., high, low]) => u16::from_be_bytes([high, low]),
        }
    }

    /// Local address and port.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local_ip(), self.local_port())
    }

    /// Remote address and port.
    #[must_use]
    pub fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.remote_ip(), self.remote_port())
    }

    /// The bytes to hash: 12 for IPv4 and 36 for IPv6.
    #[must_use]
    pub(crate) const fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::V4(bytes) => bytes,
            Bytes::V6(bytes) => bytes,
        }
    }
}

/// The IPv6 address, or the IPv4-mapped one.
pub(crate) fn to_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The address in the sixteen bytes at `at`, which is 0 or 16.
fn ipv6(bytes: &[u8; 36], at: usize) -> IpAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&bytes[at..at + 16]);
    Ipv6Addr::from(octets).into()
}

impl fmt::Debug for FourTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<->{}", self.local(), self.remote())
    }
}

#[cfg(test)]
mod tests {
    use super::FourTuple;
    use core::net::{Ipv4Addr, SocketAddr};
    use proptest::prelude::*;

    #[test]
    fn is_small() {
        assert_eq!(size_of::<FourTuple>(), 37);
    }

    #[test]
    fn families_do_not_collide() {
        let v4 = SocketAddr::from(([10, 0, 0, 1], 80));
        let mapped = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped(), 80));
        assert_ne!(FourTuple::new(v4, v4), FourTuple::new(mapped, mapped));
        assert_ne!(FourTuple::new(v4, v4), FourTuple::new(v4, mapped));
        assert_eq!(FourTuple::new(v4, mapped).local(), mapped);
    }

    #[test]
    fn directions_are_told_apart() {
        let (a, b) = (SocketAddr::from(([10, 0, 0, 1], 80)), SocketAddr::from(([10, 0, 0, 2], 80)));
        assert_ne!(FourTuple::new(a, b), FourTuple::new(b, a));
    }

    proptest! {
        #[test]
        fn keeps_what_it_was_given(v6: bool, a: [u8; 16], b: [u8; 16], local_port: u16, remote_port: u16) {
            let address = |octets: [u8; 16], port: u16| match v6 {
                true => SocketAddr::from((octets, port)),
                false => SocketAddr::from(([octets[0], octets[1], octets[2], octets[3]], port)),
            };
            let (local, remote) = (address(a, local_port), address(b, remote_port));
            let tuple = FourTuple::new(local, remote);
            prop_assert_eq!((tuple.local(), tuple.remote()), (local, remote));
            prop_assert_eq!((tuple.local_port(), tuple.remote_port()), (local_port, remote_port));
            prop_assert_eq!((tuple.local_ip(), tuple.remote_ip()), (local.ip(), remote.ip()));
            prop_assert_eq!(tuple.as_bytes().len(), if v6 { 36 } else { 12 });
        }

        #[test]
        fn is_what_an_equal_one_is_made_of(
            v6: bool, a in 0u8..3, b in 0u8..3, c in 0u8..3, d in 0u8..3, ports in prop::array::uniform4(1u16..3),
        ) {
            let address = |last: u8, port: u16| match v6 {
                true => SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, u16::from(last)], port)),
                false => SocketAddr::from(([10, 0, 0, last], port)),
            };
            let tuple = FourTuple::new(address(a, ports[0]), address(b, ports[1]));
            let (local, remote) = (address(c, ports[2]), address(d, ports[3]));
            let is = tuple.is(local.ip(), local.port(), remote.ip(), remote.port());
            prop_assert_eq!(is, tuple == FourTuple::new(local, remote));
            let mapped = Ipv4Addr::new(10, 0, 0, a).to_ipv6_mapped().into();
            prop_assert!(!tuple.is(mapped, ports[0], address(b, 0).ip(), ports[1]));
        }
    }
}
