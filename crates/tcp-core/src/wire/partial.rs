//! Checksum offload in software: what a device does that was left a partial checksum.

use super::checksum;
use super::gso::IpHeader;
use super::tcp::PROTOCOL_TCP;
use super::udp::PROTOCOL_UDP;

/// Completes the checksum of a packet of TCP or UDP whose field holds the sum of the pseudo-header
/// alone ([`RxChecksum::Partial`](super::RxChecksum::Partial)). False if it is another packet, or
/// cut off in its headers; it is left as it is.
pub fn complete_checksum(packet: &mut [u8]) -> bool {
    let Ok(ip) = IpHeader::read(packet) else { return false };
    let at = match ip.protocol {
        PROTOCOL_TCP => 16,
        PROTOCOL_UDP => 6,
        _ => return false,
    };
    let Some(transport) = packet.get_mut(ip.len..) else { return false };
    let sum = match checksum::checksum(transport) {
        // RFC 768: zero says that there is no checksum.
        0 if ip.protocol == PROTOCOL_UDP => 0xffff,
        sum => sum,
    };
    let Some(field) = transport.get_mut(at..at + 2) else { return false };
    field.copy_from_slice(&sum.to_be_bytes());
    true
}
