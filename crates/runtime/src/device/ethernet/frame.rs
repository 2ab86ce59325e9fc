//! Ethernet frames: IEEE 802.3, with the type field of RFC 894 and RFC 2464.

use crate::mac::MacAddress;
use std::net::IpAddr;

/// Bytes of the header: destination, source, type.
pub(in crate::device) const HEADER_LEN: usize = 14;

const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const TYPE_ARP: [u8; 2] = [0x08, 0x06];
const TYPE_IPV6: [u8; 2] = [0x86, 0xdd];

const ICMPV6: u8 = 58;
/// Router solicitation to redirect: RFC 4861, section 4.
const DISCOVERY: std::ops::RangeInclusive<u8> = 133..=137;

/// What a frame is to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::device) enum Content {
    /// An IP packet, from behind the header up to this place in the frame; what follows is padding.
    Packet {
        /// The packet's end in the frame.
        end: usize,
    },
    /// ARP or neighbour discovery.
    Neighbours,
    /// Cut off, or of another length than its IP header says.
    Malformed,
    /// Of a type that a host on an Ethernet does not need.
    Other,
}

/// Looks at a whole frame. Short packets are padded to the least length of a frame (60 bytes), so
/// the packet ends where its own length says.
pub(in crate::device) fn content(frame: &[u8]) -> Content {
    let Some((header, packet)) = frame.split_first_chunk::<HEADER_LEN>() else { return Content::Malformed };
    let [.., high, low] = *header;
    let (length, least) = match [high, low] {
        TYPE_ARP => return Content::Neighbours,
        TYPE_IPV4 => (ipv4_length(packet), 20),
        TYPE_IPV6 => (ipv6_length(packet), 40),
        _ => return Content::Other,
    };
    match length {
        Some(length) if length >= least && length <= packet.len() => {
            if [high, low] == TYPE_IPV6 && is_discovery(packet) {
                Content::Neighbours
            } else {
                Content::Packet { end: HEADER_LEN + length }
            }
        }
        _ => Content::Malformed,
    }
}

fn ipv4_length(packet: &[u8]) -> Option<usize> {
    let [version, _, high, low] = *packet.first_chunk()?;
    (version >> 4 == 4).then_some(usize::from(u16::from_be_bytes([high, low])))
}

fn ipv6_length(packet: &[u8]) -> Option<usize> {
    let [version, _, _, _, high, low] = *packet.first_chunk()?;
    (version >> 4 == 6).then_some(40 + usize::from(u16::from_be_bytes([high, low])))
}

fn is_discovery(packet: &[u8]) -> bool {
    packet.get(6) == Some(&ICMPV6) && packet.get(40).is_some_and(|kind| DISCOVERY.contains(kind))
}

/// The header for an IP packet.
pub(in crate::device) fn header(to: MacAddress, from: MacAddress, packet: &[u8]) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..6].copy_from_slice(&to.0);
    header[6..12].copy_from_slice(&from.0);
    let v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    header[12..].copy_from_slice(&if v6 { TYPE_IPV6 } else { TYPE_IPV4 });
    header
}

/// The source and destination in an IP header; `None` if there is no such header.
pub(in crate::device) fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    fn at<const N: usize>(packet: &[u8], from: usize) -> Option<IpAddr>
    where
        IpAddr: From<[u8; N]>,
    {
        packet.get(from..)?.first_chunk::<N>().copied().map(IpAddr::from)
    }
    match packet.first()? >> 4 {
        4 => Some((at::<4>(packet, 12)?, at::<4>(packet, 16)?)),
        6 => Some((at::<16>(packet, 8)?, at::<16>(packet, 24)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    /// An Ethernet frame with `packet` in it, padded as a network card pads it.
    fn frame(kind: [u8; 2], packet: &[u8]) -> Vec<u8> {
        let mut frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], &kind[..], packet].concat();
        frame.resize(frame.len().max(60), 0);
        frame
    }

    fn ipv4(length: u16) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6];
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet.resize(usize::from(length).max(20), 7);
        packet
    }

    fn ipv6(payload: u16, next: u8, first: u8) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 255];
        packet[4..6].copy_from_slice(&payload.to_be_bytes());
        packet.resize(40 + usize::from(payload), first);
        packet
    }

    #[test]
    fn padding_is_not_part_of_the_packet() {
        // An acknowledgement without options: 40 bytes in a frame of 60.
        let padded = frame(TYPE_IPV4, &ipv4(40));
        assert_eq!(padded.len(), 60);
        assert_eq!(content(&padded), Content::Packet { end: 54 });
        assert_eq!(content(&frame(TYPE_IPV4, &ipv4(1500))), Content::Packet { end: 1514 });
        let mut trailer = frame(TYPE_IPV6, &ipv6(20, 6, 0));
        assert_eq!(content(&trailer), Content::Packet { end: 74 });
        trailer.extend([0; 4]);
        assert_eq!(content(&trailer), Content::Packet { end: 74 });
    }

    #[test]
    fn cut_and_lying_frames_are_malformed() {
        let whole = frame(TYPE_IPV4, &ipv4(100));
        for cut in 0..whole.len() {
            assert_eq!(content(&whole[..cut]), Content::Malformed, "cut at {cut}");
        }
        let whole = frame(TYPE_IPV6, &ipv6(100, 6, 0));
        for cut in 0..whole.len() {
            assert_eq!(content(&whole[..cut]), Content::Malformed, "cut at {cut}");
        }
        assert_eq!(content(&frame(TYPE_IPV4, &ipv4(19))), Content::Malformed, "shorter than its header");
        assert_eq!(
            content(&frame(TYPE_IPV4, &ipv6(20, 6, 0))),
            Content::Malformed,
            "type and version differ"
        );
        assert_eq!(content(&frame(TYPE_IPV6, &ipv4(60))), Content::Malformed, "type and version differ");
    }

    #[test]
    fn neighbours_are_told_apart() {
        assert_eq!(content(&frame(TYPE_ARP, &[0; 28])), Content::Neighbours);
        for kind in 133..=137 {
            assert_eq!(content(&frame(TYPE_IPV6, &ipv6(24, ICMPV6, kind))), Content::Neighbours);
        }
        // An echo request, a packet without a message, and TCP from port 0x8787.
        assert_eq!(content(&frame(TYPE_IPV6, &ipv6(24, ICMPV6, 128))), Content::Packet { end: 78 });
        assert_eq!(content(&frame(TYPE_IPV6, &ipv6(0, ICMPV6, 0))), Content::Packet { end: 54 });
        assert_eq!(content(&frame(TYPE_IPV6, &ipv6(24, 6, 135))), Content::Packet { end: 78 });
    }

    #[test]
    fn other_frames_are_left_alone() {
        // A tag that the kernel did not take out, LLDP, a length instead of a type.
        for kind in [[0x81, 0x00], [0x88, 0xcc], [0x00, 0x26]] {
            assert_eq!(content(&frame(kind, &ipv4(40))), Content::Other);
        }
    }

    #[test]
    fn a_header_names_both_stations_and_the_type() {
        let (to, from) = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
        for (kind, packet) in [(TYPE_IPV4, ipv4(40)), (TYPE_IPV6, ipv6(20, 6, 0))] {
            assert_eq!(header(to, from, &packet), frame(kind, &packet)[..HEADER_LEN]);
        }
    }

    #[test]
    fn addresses_are_read() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let mut packet = ipv4(40);
        packet[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 9]);
        assert_eq!(addresses(&packet), Some((ip("192.0.2.1"), ip("192.0.2.9"))));
        let mut packet = ipv6(20, 6, 0);
        packet[8..24].copy_from_slice(&"2001:db8::1".parse::<Ipv6Addr>().expect("an address").octets());
        packet[24..40].copy_from_slice(&"2001:db8::9".parse::<Ipv6Addr>().expect("an address").octets());
        assert_eq!(addresses(&packet), Some((ip("2001:db8::1"), ip("2001:db8::9"))));
        for bad in [&[][..], &[0x45; 19], &[0x60; 39], &[0; 60]] {
            assert_eq!(addresses(bad), None);
        }
    }
}
