//! One description of a packet, filled in by each of the four decoders.

use ackline_tcp_core::wire::{IpVersion, RxPacket, Transport, parse};
use core::net::{IpAddr, SocketAddr};
use etherparse::checksum::Sum16BitWords;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pnet_packet::Packet;
use smoltcp::wire::{IpAddress, Ipv4Packet, Ipv6Packet, TcpPacket};

/// Every field of an IP packet with TCP that all decoders know. Checksums are verified on the way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Decoded {
    pub(crate) src: SocketAddr,
    pub(crate) dst: SocketAddr,
    pub(crate) ttl: u8,
    pub(crate) tos: u8,
    pub(crate) total_len: usize,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u16,
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    pub(crate) options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// As this crate reads it.
pub(crate) fn ours(packet: &[u8]) -> Decoded {
    let datagram = parse(&RxPacket::new(packet)).expect("a valid packet");
    let Transport::Tcp(segment) = datagram.transport else { panic!("not TCP") };
    let ip = datagram.ip;
    assert_eq!((ip.version == IpVersion::V4, ip.src.is_ipv4()), (ip.src.is_ipv4(), ip.dst.is_ipv4()));
    Decoded {
        src: SocketAddr::new(ip.src, segment.src_port),
        dst: SocketAddr::new(ip.dst, segment.dst_port),
        ttl: ip.ttl,
        tos: ip.dscp << 2 | ip.ecn.bits(),
        total_len: ip.total_len as usize,
        seq: segment.seq.0,
        ack: segment.ack.0,
        flags: segment.flags.bits(),
        window: segment.window,
        urgent: segment.urgent,
        options: segment.raw_options.to_vec(),
        payload: segment.payload.iter().collect(),
    }
}

/// As smoltcp reads it; IPv6 without extension headers only.
pub(crate) fn smoltcp(packet: &[u8]) -> Decoded {
    if packet[0] >> 4 == 4 {
        let ip = Ipv4Packet::new_checked(packet).expect("IPv4");
        assert!(ip.verify_checksum(), "smoltcp: IPv4 header checksum");
        let ends = (IpAddress::Ipv4(ip.src_addr()), IpAddress::Ipv4(ip.dst_addr()));
        let tos = ip.dscp() << 2 | ip.ecn();
        smoltcp_tcp(ip.payload(), ends, ip.hop_limit(), tos, ip.total_len().into())
    } else {
        let ip = Ipv6Packet::new_checked(packet).expect("IPv6");
        let ends = (IpAddress::Ipv6(ip.src_addr()), IpAddress::Ipv6(ip.dst_addr()));
        smoltcp_tcp(ip.payload(), ends, ip.hop_limit(), ip.traffic_class(), ip.total_len())
    }
}

fn smoltcp_tcp(
    segment: &[u8],
    (src, dst): (IpAddress, IpAddress),
    ttl: u8,
    tos: u8,
    total_len: usize,
) -> Decoded {
    let tcp = TcpPacket::new_checked(segment).expect("TCP");
    assert!(tcp.verify_checksum(&src, &dst), "smoltcp: TCP checksum");
    let bits =
        [tcp.fin(), tcp.syn(), tcp.rst(), tcp.psh(), tcp.ack(), tcp.urg(), tcp.ece(), tcp.cwr(), tcp.ns()];
    Decoded {
        src: SocketAddr::new(src.into(), tcp.src_port()),
        dst: SocketAddr::new(dst.into(), tcp.dst_port()),
        ttl,
        tos,
        total_len,
        seq: tcp.seq_number().0 as u32,
        ack: tcp.ack_number().0 as u32,
        flags: from_bits(bits),
        window: tcp.window_len(),
        urgent: tcp.urgent_at(),
        options: tcp.options().to_vec(),
        payload: tcp.payload().to_vec(),
    }
}

/// As etherparse reads it.
pub(crate) fn etherparse(packet: &[u8]) -> Decoded {
    let (decoded, intact) = etherparse_unverified(packet).expect("TCP");
    assert!(intact, "etherparse: checksum");
    decoded
}

/// As etherparse reads it, and whether both checksums are right; `None` if it finds no TCP.
pub(crate) fn etherparse_unverified(packet: &[u8]) -> Option<(Decoded, bool)> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return None };
    let mut intact = true;
    let (src, dst, ttl, tos, total_len, checksum): (IpAddr, IpAddr, _, _, _, _) = match sliced.net {
        Some(NetSlice::Ipv4(ip)) => {
            let ip = ip.header();
            // Not by its `to_header`, which forgets the reserved flag.
            intact = Sum16BitWords::new().add_slice(ip.slice()).ones_complement() == 0;
            let tos = ip.dcp().value() << 2 | ip.ecn().value();
            let checksum = tcp.calc_checksum_ipv4(ip.source(), ip.destination());
            let (src, dst) = (ip.source_addr().into(), ip.destination_addr().into());
            (src, dst, ip.ttl(), tos, usize::from(ip.total_len()), checksum)
        }
        Some(NetSlice::Ipv6(ip)) => {
            let ip = ip.header();
            let checksum = tcp.calc_checksum_ipv6(ip.source(), ip.destination());
            let total_len = 40 + usize::from(ip.payload_length());
            let (src, dst) = (ip.source_addr().into(), ip.destination_addr().into());
            (src, dst, ip.hop_limit(), ip.traffic_class(), total_len, checksum)
        }
        other => panic!("etherparse: {other:?}"),
    };
    intact &= checksum == Ok(tcp.checksum());
    let bits =
        [tcp.fin(), tcp.syn(), tcp.rst(), tcp.psh(), tcp.ack(), tcp.urg(), tcp.ece(), tcp.cwr(), tcp.ns()];
    let decoded = Decoded {
        src: SocketAddr::new(src, tcp.source_port()),
        dst: SocketAddr::new(dst, tcp.destination_port()),
        ttl,
        tos,
        total_len,
        seq: tcp.sequence_number(),
        ack: tcp.acknowledgment_number(),
        flags: from_bits(bits),
        window: tcp.window_size(),
        urgent: tcp.urgent_pointer(),
        options: tcp.options().to_vec(),
        payload: tcp.payload().to_vec(),
    };
    Some((decoded, intact))
}

/// As pnet_packet reads it; IPv6 without extension headers only.
pub(crate) fn pnet(packet: &[u8]) -> Decoded {
    use pnet_packet::ipv4::{self, Ipv4Packet};
    use pnet_packet::ipv6::Ipv6Packet;
    use pnet_packet::tcp::{self, TcpPacket};
    let (src, dst, ttl, tos, total_len, tcp, checksum): (IpAddr, IpAddr, _, _, _, _, _);
    let (v4, v6);
    if packet[0] >> 4 == 4 {
        v4 = Ipv4Packet::new(packet).expect("IPv4");
        assert_eq!(v4.get_checksum(), ipv4::checksum(&v4), "pnet: IPv4 header checksum");
        (src, dst) = (v4.get_source().into(), v4.get_destination().into());
        (ttl, tos) = (v4.get_ttl(), v4.get_dscp() << 2 | v4.get_ecn());
        total_len = usize::from(v4.get_total_length());
        tcp = TcpPacket::new(v4.payload()).expect("TCP");
        checksum = tcp::ipv4_checksum(&tcp, &v4.get_source(), &v4.get_destination());
    } else {
        v6 = Ipv6Packet::new(packet).expect("IPv6");
        (src, dst) = (v6.get_source().into(), v6.get_destination().into());
        (ttl, tos) = (v6.get_hop_limit(), v6.get_traffic_class());
        total_len = 40 + usize::from(v6.get_payload_length());
        tcp = TcpPacket::new(v6.payload()).expect("TCP");
        checksum = tcp::ipv6_checksum(&tcp, &v6.get_source(), &v6.get_destination());
    }
    assert_eq!(tcp.get_checksum(), checksum, "pnet: TCP checksum");
    Decoded {
        src: SocketAddr::new(src, tcp.get_source()),
        dst: SocketAddr::new(dst, tcp.get_destination()),
        ttl,
        tos,
        total_len,
        seq: tcp.get_sequence(),
        ack: tcp.get_acknowledgement(),
        flags: u16::from(tcp.get_reserved() & 1) << 8 | u16::from(tcp.get_flags()),
        window: tcp.get_window(),
        urgent: tcp.get_urgent_ptr(),
        options: tcp.get_options_raw().to_vec(),
        payload: tcp.payload().to_vec(),
    }
}

/// FIN first.
fn from_bits(bits: [bool; 9]) -> u16 {
    bits.iter().rev().fold(0, |all, bit| all << 1 | u16::from(*bit))
}
