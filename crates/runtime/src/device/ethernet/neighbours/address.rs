//! Addresses with a meaning of their own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All nodes of the link: RFC 4291, section 2.7.1.
pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The multicast address on which a host hears solicitations for `address`: RFC 4291, section
/// 2.7.1.
pub(super) const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | a as u16, (b as u16) << 8 | c as u16)
}

/// The address can be that of one host on a network.
pub(super) const fn is_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            !v4.is_unspecified()
                && !v4.is_multicast()
                && !v4.is_loopback()
                && !matches!(v4, Ipv4Addr::BROADCAST)
        }
        IpAddr::V6(v6) => !v6.is_unspecified() && !v6.is_multicast() && !v6.is_loopback(),
    }
}

/// RFC 4861, section 5.1: the link-local prefix is on-link on every interface.
pub(super) const fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_solicited_node_address_has_the_low_24_bits() {
        // RFC 4291, section 2.7.1, its own example.
        let address: Ipv6Addr = "4037::01:800:200e:8c6c".parse().expect("an address");
        assert_eq!(solicited_node(address).to_string(), "ff02::1:ff0e:8c6c");
    }
}
