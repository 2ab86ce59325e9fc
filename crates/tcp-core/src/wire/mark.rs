//! The ECN field of packets that have been built (RFC 3168, section 5), to read and to mark.

use super::{Ecn, checksum};

/// The codepoint of an IPv4 or IPv6 packet; [`Ecn::NotEct`] for anything else.
#[must_use]
pub fn codepoint(packet: &[u8]) -> Ecn {
    match packet.first_chunk() {
        Some([first, second]) if first >> 4 == 4 => Ecn::from_bits(*second),
        Some([first, second]) if first >> 4 == 6 => Ecn::from_bits(second >> 4),
        _ => Ecn::NotEct,
    }
}

/// Gives a packet that is ECN-capable the codepoint CE, and an IPv4 header the checksum that it has
/// with it (RFC 1624). The transport's checksum does not depend on it. False if the packet is not
/// ECN-capable.
pub fn mark(packet: &mut [u8]) -> bool {
    if codepoint(packet) == Ecn::NotEct {
        return false;
    }
    let Some([first, second]) = packet.first_chunk_mut() else { return false };
    if *first >> 4 != 4 {
        *second |= Ecn::Ce.bits() << 4;
        return true;
    }
    let from = u16::from_be_bytes([*first, *second]);
    *second |= Ecn::Ce.bits();
    let to = u16::from_be_bytes([*first, *second]);
    if let Some(sum) = packet.get_mut(10..12).and_then(|field| field.first_chunk_mut::<2>()) {
        *sum = checksum::update(u16::from_be_bytes(*sum), from, to).to_be_bytes();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{HeaderBuf, RxPacket, TcpFlags, TcpHeader, TxChecksumMode, emit_tcp, parse};
    use std::net::SocketAddr;

    fn headers(local: &str, remote: &str, ecn: Ecn) -> HeaderBuf {
        let [local, remote] = [local, remote].map(|text| text.parse::<SocketAddr>().unwrap());
        let mut header = TcpHeader::new(local, remote);
        header.flags = TcpFlags::ACK;
        // Expedited forwarding.
        header.tos = 46 << 2 | ecn.bits();
        let mut buf = HeaderBuf::new();
        emit_tcp(&header, [&[], &[]], TxChecksumMode::Complete, &mut buf).unwrap();
        buf
    }

    #[test]
    fn a_marked_packet_is_as_if_it_had_been_built_so() {
        for (local, remote) in [("10.0.0.1:1", "10.0.0.2:2"), ("[fd00::1]:1", "[fd00::2]:2")] {
            for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                let mut packet = headers(local, remote, ecn);
                assert_eq!(codepoint(packet.as_slice()), ecn);
                assert!(mark(packet.as_mut_slice()));
                assert_eq!(packet.as_slice(), headers(local, remote, Ecn::Ce).as_slice(), "{ecn:?}");
                assert!(parse(&RxPacket::new(packet.as_slice())).is_ok());
            }
            let mut packet = headers(local, remote, Ecn::NotEct);
            assert!(!mark(packet.as_mut_slice()));
            assert_eq!(packet.as_slice(), headers(local, remote, Ecn::NotEct).as_slice());
        }
    }

    #[test]
    fn what_is_no_packet_is_left_alone() {
        for octets in [&mut [][..], &mut [0x45], &mut [0x15, 3], &mut [0x45, 2]] {
            let before = octets.to_vec();
            let capable = codepoint(octets) != Ecn::NotEct;
            assert_eq!(mark(octets), capable, "{before:?}");
        }
    }
}
