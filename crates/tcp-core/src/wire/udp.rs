//! The UDP header (RFC 768), as far as a host without UDP needs it: to whom a datagram was addressed, and
//! whether it is intact.

use super::checksum::Accumulator;
use super::tcp::upper_is_intact;
use super::{IpInfo, IpVersion, Payload, RxChecksum, WireError};
use core::net::IpAddr;

/// The protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

const HEADER_LEN: usize = 8;

/// The header of a received UDP datagram that passed all checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpDatagram {
    /// Source port; 0 if the sender wants no answer.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl UdpDatagram {
    /// Parses the datagram in `upper`.
    pub(super) fn parse(ip: &IpInfo, upper: Payload<'_>, checksum: RxChecksum) -> Result<Self, WireError> {
        let [head, ..] = upper.slices();
        let &[s0, s1, d0, d1, l0, l1, c0, c1] =
            head.first_chunk::<HEADER_LEN>().ok_or(WireError::UdpHeader)?;
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        if len < HEADER_LEN {
            return Err(WireError::UdpHeader);
        }
        if len > upper.len() {
            return Err(WireError::UdpHeader);
        }
        let unchecked = u16::from_be_bytes([c0, c1]) == 0;
        // RFC 8200, section 8.1: over IPv6 every datagram has a checksum.
        let intact = match ip.version {
            IpVersion::V4 if unchecked => true,
            IpVersion::V6 if unchecked => false,
            _ => {
                checksum != RxChecksum::Verify || {
                    // Octets after the datagram are not covered.
                    let mut datagram = upper;
                    datagram.truncate(len);
                    upper_is_intact(datagram, pseudo(ip, len))
                }
            }
        };
        if !intact {
            return Err(WireError::UdpChecksum);
        }
        Ok(Self { src_port: u16::from_be_bytes([s0, s1]), dst_port: u16::from_be_bytes([d0, d1]) })
    }
}

fn pseudo(ip: &IpInfo, len: usize) -> Accumulator {
    match (ip.src, ip.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => Accumulator::pseudo_v4(src, dst, PROTOCOL_UDP, len),
        (IpAddr::V6(src), IpAddr::V6(dst)) => Accumulator::pseudo_v6(src, dst, PROTOCOL_UDP, len),
        // Both are of the packet's IP version.
        _ => Accumulator::new(),
    }
}
