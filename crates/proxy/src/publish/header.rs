//! The PROXY protocol's header (haproxy.org, *The PROXY protocol*, sections 2.1 and 2.2): the
//! addresses of the client and of the port that it has connected to.

use super::spec::ProxyHeader;
use std::net::{IpAddr, SocketAddr};

/// Signature of version 2.
const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// The header of a connection of `client` to `to`, which are of the same IP version.
pub(super) fn header(version: ProxyHeader, client: SocketAddr, to: SocketAddr) -> Vec<u8> {
    match version {
        ProxyHeader::V1 => {
            let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
            let (from, at) = (client.port(), to.port());
            format!("PROXY {family} {} {} {from} {at}\r\n", client.ip(), to.ip()).into_bytes()
        }
        ProxyHeader::V2 => {
            // Version 2, command PROXY; then the family and a stream.
            let mut header = [SIGNATURE, &[0x21, if client.is_ipv4() { 0x11 } else { 0x21 }]].concat();
            let mut addresses = vec![];
            for address in [client.ip(), to.ip()] {
                match address {
                    IpAddr::V4(v4) => addresses.extend(v4.octets()),
                    IpAddr::V6(v6) => addresses.extend(v6.octets()),
                }
            }
            addresses.extend([client.port(), to.port()].map(u16::to_be_bytes).concat());
            header.extend(u16::try_from(addresses.len()).unwrap_or(u16::MAX).to_be_bytes());
            header.extend(addresses);
            header
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_tell_both_addresses() {
        let [client, to] = ["192.0.2.1:56324", "192.0.2.9:443"].map(|text| text.parse().expect("an address"));
        assert_eq!(header(ProxyHeader::V1, client, to), b"PROXY TCP4 192.0.2.1 192.0.2.9 56324 443\r\n");
        let v2 = header(ProxyHeader::V2, client, to);
        assert_eq!(v2[..12], *SIGNATURE);
        assert_eq!(v2[12..], [0x21, 0x11, 0, 12, 192, 0, 2, 1, 192, 0, 2, 9, 0xdc, 0x04, 0x01, 0xbb]);
        let [client, to] = ["[fd00::1]:1", "[fd00::9]:2"].map(|text| text.parse().expect("an address"));
        assert_eq!(header(ProxyHeader::V1, client, to), b"PROXY TCP6 fd00::1 fd00::9 1 2\r\n");
        let v2 = header(ProxyHeader::V2, client, to);
        assert_eq!((v2.len(), &v2[12..16]), (12 + 4 + 36, &[0x21, 0x21, 0, 36][..]));
    }
}
