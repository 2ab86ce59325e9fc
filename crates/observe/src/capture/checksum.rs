//! Checksums that somebody else was to complete.

use ackline_tcp_core::wire::checksum::Accumulator;
use ackline_tcp_core::wire::{PROTOCOL_TCP, PROTOCOL_UDP};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Completes the checksum of a TCP or UDP packet of `length` octets: `packet` are the first, and
/// `rest` is the sum of the others. `None` if it is another packet, or is cut before the checksum.
pub(super) fn complete(packet: &mut [u8], length: usize, rest: u16) -> Option<()> {
    let (protocol, start) = transport(packet)?;
    let field = start
        + match protocol {
            PROTOCOL_TCP => 16,
            PROTOCOL_UDP => 6,
            _ => return None,
        };
    let upper = length.checked_sub(start)?;
    let mut sum = if packet[0] >> 4 == 4 {
        let address = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
        Accumulator::pseudo_v4(address(12)?, address(16)?, protocol, upper)
    } else {
        let address = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
        Accumulator::pseudo_v6(address(8)?, address(24)?, protocol, upper)
    };
    packet.get_mut(field..field + 2)?.fill(0);
    sum.add(packet.get(start..)?);
    sum.add(&rest.to_be_bytes());
    let checksum = match sum.checksum() {
        // A UDP checksum of zero means that there is none (RFC 768).
        0 if protocol == PROTOCOL_UDP => 0xffff,
        checksum => checksum,
    };
    packet.get_mut(field..field + 2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// The protocol of a packet, and where its header begins; `None` if the packet is cut before that,
/// or has extension headers.
pub(super) fn transport(packet: &[u8]) -> Option<(u8, usize)> {
    match packet.first()? >> 4 {
        4 => Some((*packet.get(9)?, usize::from(packet[0] & 15) * 4)),
        6 => Some((*packet.get(6)?, 40)),
        _ => None,
    }
}
