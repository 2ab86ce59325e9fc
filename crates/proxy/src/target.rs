//! Where clients want to go.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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

/// Transport protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Flows of datagrams.
    Udp,
}

/// A gateway may carry packets for this address on. It may not if the address is of one machine or
/// link (RFC 1122, section 3.2.1.3; RFC 3927, section 2.7; RFC 4291, section 2.5): as seen from a
/// client it is another machine's, and must not become this one's, or that of a service on this
/// one's link, as a cloud's metadata are. Nor may it if the address stands for such an IPv4
/// address.
pub(crate) fn can_be_carried(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let of_one_machine = v4.octets()[0] == 0 || v4.is_loopback();
            !of_one_machine && !v4.is_link_local() && !v4.is_multicast() && !v4.is_broadcast()
        }
        IpAddr::V6(v6) => {
            // `::`, `::1`, and IPv4 addresses as sockets write them (RFC 4291, section 2.5.5),
            // which no packet has.
            let is_of_sockets = v6.to_ipv4().is_some();
            !is_of_sockets
                && !v6.is_unicast_link_local()
                && !v6.is_multicast()
                && embedded(address).into_iter().all(|v4| can_be_carried(v4.into()))
        }
    }
}

/// The IPv4 addresses to which packets for `address` may be carried on the way: by a translator
/// (NAT64, RFC 6052) or a tunnel (6to4, RFC 3056; Teredo, RFC 4380, by its server and to the
/// client).
pub(crate) fn embedded(address: IpAddr) -> Vec<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return vec![] };
    let octets = v6.octets();
    let at = |places: [usize; 4]| Ipv4Addr::from(places.map(|place| octets[place]));
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => vec![at([12, 13, 14, 15])],
        // RFC 8215: how long the prefix is, is the network's choice. RFC 6052, section 2.2, has the
        // address at one of four places for that. Zeros at the others are no address.
        [0x64, 0xff9b, 1, ..] => {
            let places = [[6, 7, 9, 10], [7, 9, 10, 11], [9, 10, 11, 12], [12, 13, 14, 15]];
            places.map(at).into_iter().filter(|v4| v4.octets()[0] != 0).collect()
        }
        [0x2002, ..] => vec![at([2, 3, 4, 5])],
        [0x2001, 0, ..] => vec![at([4, 5, 6, 7]), !at([12, 13, 14, 15])],
        _ => vec![],
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
            ("169.254.169.254", false),
            // NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056), and IPv4 addresses as sockets write
            // them.
            ("64:ff9b::192.0.2.1", true),
            ("64:ff9b::169.254.169.254", false),
            ("64:ff9b::127.0.0.1", false),
            ("64:ff9b::", false),
            ("64:ff9b:1::192.0.2.1", true),
            ("64:ff9b:1::127.0.0.1", false),
            ("64:ff9b:1:aa:bb::169.254.0.1", false),
            // The table of RFC 6052, section 2.2, with prefixes of 48, 56 and 64 bits.
            ("64:ff9b:1:c000:2:2100::", true),
            ("64:ff9b:1:7f00:0:100::", false),
            ("64:ff9b:1:12a9:fe:a9fe::", false),
            ("64:ff9b:1:1234:a9:fea9:fe00:0", false),
            ("64:ff9b:2::127.0.0.1", true),
            ("2002:c000:201::1", true),
            ("2002:a9fe:a9fe::1", false),
            ("2002:7f00:1::1", false),
            // Teredo (RFC 4380, section 4): a server, and the client with each bit inverted.
            ("2001:0:c000:201:0:0:3fff:fdfe", true),
            ("2001:0:7f00:1:0:0:3fff:fdfe", false),
            ("2001:0:c000:201:0:0:80ff:fffe", false),
            ("2001:1::1", true),
            ("::192.0.2.1", false),
            ("::ffff:192.0.2.1", false),
        ] {
            assert_eq!(can_be_carried(address.parse().expect("an address")), can, "{address}");
        }
    }
}
