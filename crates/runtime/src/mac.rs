//! Ethernet addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An Ethernet address (EUI-48).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All stations.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// The address of one station: neither a group nor all zeros.
    #[must_use]
    pub const fn is_station(self) -> bool {
        let Self([first, rest @ ..]) = self;
        first & 1 == 0 && !matches!((first, rest), (0, [0, 0, 0, 0, 0]))
    }

    /// The Ethernet group for an IP multicast address: RFC 1112, section 6.4, and RFC 2464, section
    /// 7.
    #[must_use]
    pub const fn multicast(group: IpAddr) -> Self {
        match group {
            IpAddr::V4(group) => {
                let [_, b, c, d] = group.octets();
                Self([0x01, 0x00, 0x5e, b & 0x7f, c, d])
            }
            IpAddr::V6(group) => {
                let [.., a, b, c, d] = group.octets();
                Self([0x33, 0x33, a, b, c, d])
            }
        }
    }
}

/// In Linux's notation: `02:00:00:00:00:01`.
impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([a, b, c, d, e, g]) = self;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<[u8; 6]> for MacAddress {
    fn from(octets: [u8; 6]) -> Self {
        Self(octets)
    }
}

/// The text is not an Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an Ethernet address: six octets in hexadecimal with colons between, as 02:00:00:00:00:01"
)]
pub struct ParseMacError(String);

impl FromStr for MacAddress {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<Self, ParseMacError> {
        let bad = || ParseMacError(text.to_owned());
        let mut octets = [0; 6];
        let mut parts = text.split([':', '-']);
        for octet in &mut octets {
            let part = parts.next().ok_or_else(bad)?;
            // `from_str_radix` would accept a sign.
            if part.is_empty() || part.len() > 2 || !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(bad());
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| bad())?;
        }
        if parts.next().is_some() { Err(bad()) } else { Ok(Self(octets)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn groups_are_those_of_the_rfcs() {
        // RFC 1112, section 6.4: the low 23 bits.
        let group = MacAddress::multicast(IpAddr::V4(Ipv4Addr::new(239, 255, 1, 2)));
        assert_eq!(group.to_string(), "01:00:5e:7f:01:02");
        // RFC 2464, section 7.
        let group: Ipv6Addr = "ff02::1:ff0e:8c6c".parse().expect("an address");
        let group = MacAddress::multicast(IpAddr::V6(group));
        assert_eq!(group.to_string(), "33:33:ff:0e:8c:6c");
        assert!(!group.is_station() && !MacAddress::BROADCAST.is_station());
        assert!(!MacAddress::default().is_station());
        assert!(MacAddress([2, 0, 0, 0, 0, 0]).is_station());
    }

    #[test]
    fn text_reads_back() {
        let mac = MacAddress([0x02, 0, 0xab, 0xcd, 0xef, 0x01]);
        assert_eq!(mac.to_string().parse(), Ok(mac));
        assert_eq!("2:0:AB:cd:EF:1".parse(), Ok(mac));
        assert_eq!("02-00-ab-cd-ef-01".parse(), Ok(mac));
        for bad in ["", "02:00:ab:cd:ef", "02:00:ab:cd:ef:01:02", "02:00:ab:cd:ef:+1", "002:0:0:0:0:0", "x"] {
            let error = bad.parse::<MacAddress>().expect_err(bad);
            assert!(error.to_string().contains("02:00:00:00:00:01"), "{error}");
        }
    }
}
