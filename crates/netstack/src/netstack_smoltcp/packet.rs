//! What a packet is, as far as it decides where the packet goes.

use super::udp::UdpMsg;
use ackline_runtime::device::{RxChecksum, RxPacket};
use ackline_tcp_core::wire::{self, IcmpMessage, Transport, WireError};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(super) enum Kind {
    Tcp,
    /// An ICMP error, which may be about a connection.
    IcmpError,
    /// Another ICMP message.
    Icmp,
    Udp(UdpMsg),
    /// The stack decides: a fragment, or a header that it does not accept, and counts.
    Unclear,
    /// Neither of these protocols, or a datagram whose checksum is wrong.
    Ignored,
}

/// What `packet` is, with its source and destination.
pub(super) fn classify(packet: &[u8]) -> io::Result<(IpAddr, IpAddr, Kind)> {
    let (src, dst) = addresses(packet).ok_or_else(|| invalid(WireError::Truncated))?;
    // The stack verifies what it gets.
    let unverified = RxPacket::new(packet).with_checksum(RxChecksum::Trusted);
    let kind = match wire::parse(&unverified) {
        Ok(datagram) => match datagram.transport {
            Transport::Tcp(_) => Kind::Tcp,
            Transport::Icmp(IcmpMessage::Error(_)) => Kind::IcmpError,
            Transport::Icmp(_) => Kind::Icmp,
            Transport::Udp(_) => datagram_of(packet).map_or(Kind::Ignored, Kind::Udp),
            Transport::Other { .. } => Kind::Ignored,
        },
        Err(error @ (WireError::Truncated | WireError::BadVersion | WireError::BadHeaderLength)) => {
            return Err(invalid(error));
        }
        Err(_) => Kind::Unclear,
    };
    Ok((src, dst, kind))
}

/// The datagram in a packet whose checksum is right.
fn datagram_of(packet: &[u8]) -> Option<UdpMsg> {
    let datagram = wire::parse(&RxPacket::new(packet)).ok()?;
    let Transport::Udp(udp) = datagram.transport else { return None };
    let mut data = vec![0; udp.payload.len()];
    udp.payload.copy_to(&mut data);
    let (src, dst) = (datagram.ip.src, datagram.ip.dst);
    Some((data, SocketAddr::new(src, udp.src_port), SocketAddr::new(dst, udp.dst_port)))
}

/// Source and destination, where every IP header of the version has them.
fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    fn at<const N: usize>(packet: &[u8], offset: usize) -> Option<[u8; N]> {
        packet.get(offset..)?.first_chunk::<N>().copied()
    }
    match packet.first()? >> 4 {
        4 => {
            let of = |offset| at::<4>(packet, offset).map(|octets| Ipv4Addr::from(octets).into());
            Some((of(12)?, of(16)?))
        }
        6 => {
            let of = |offset| at::<16>(packet, offset).map(|octets| Ipv6Addr::from(octets).into());
            Some((of(8)?, of(24)?))
        }
        _ => None,
    }
}

fn invalid(error: WireError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("invalid IP packet: {error}"))
}
