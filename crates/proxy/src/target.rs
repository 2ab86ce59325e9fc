//! Where clients want to go.

use serde::Deserialize;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A destination, and the name that the client knows it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The address and port that the client wrote into its packets.
    pub address: SocketAddr,
    /// The name that it asked the resolver for.
    pub name: Option<Arc<str>>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}:{}", self.address.port()),
            None => self.address.fmt(f),
        }
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self { address, name: None }
    }
}

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Flows of datagrams.
    Udp,
}

/// A gateway may carry packets for this address on (RFC 1122, section 3.2.1.3; RFC 4291, section 2.5). One of the loopback is
/// another machine's as seen from a client, and must not become this one's.
pub(crate) fn can_be_carried(address: IpAddr) -> bool {
    let wrong = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    match address {
        IpAddr::V4(v4) => !wrong && !v4.is_broadcast() && v4.octets()[0] != 0,
        IpAddr::V6(v6) => !wrong && v6.to_ipv4_mapped().is_none() && !v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_one_machine_or_link_is_not_carried() {
        for (address, can) in [
            ("192.0.2.1", true),
            ("10.0.0.1", true),
            ("2001:db8::1", true),
            ("fd00::1", true),
            ("127.0.0.1", false),
            ("127.1.2.3", false),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("ff02::1", false),
            ("fe80::1", false),
        ] {
            assert_eq!(can_be_carried(address.parse().expect("an address")), can, "{address}");
        }
    }
}
