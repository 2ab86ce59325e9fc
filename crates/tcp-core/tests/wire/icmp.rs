//! ICMP and ICMPv6: echo, and errors about our own segments.

use crate::strategies::{Segment, addresses, payload, segment};
use ackline_tcp_core::wire::{
    HeaderBuf, IcmpEmit, IcmpErrorKind, IcmpHeader, IcmpMessage, PROTOCOL_TCP, RxPacket, TcpHeader,
    Transport, Unreachable, WireError, emit_icmp, parse,
};
use core::net::{IpAddr, SocketAddr};
use etherparse::{Icmpv4Type, Icmpv6Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use smoltcp::wire::{Icmpv4Packet, Icmpv6Packet, Ipv4Packet, Ipv6Packet};

/// A message by etherparse, checksum included.
fn message(src: IpAddr, dst: IpAddr, kind: u8, code: u8, rest: [u8; 4], body: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => PacketBuilder::ipv4(src.octets(), dst.octets(), 64)
            .icmpv4_raw(kind, code, rest)
            .write(&mut packet, body),
        (IpAddr::V6(src), IpAddr::V6(dst)) => PacketBuilder::ipv6(src.octets(), dst.octets(), 64)
            .icmpv6_raw(kind, code, rest)
            .write(&mut packet, body),
        _ => unreachable!("one version"),
    }
    .expect("a packet");
    packet
}

fn received(packet: &[u8]) -> Result<IcmpMessage<'_>, WireError> {
    match parse(&RxPacket::new(packet))?.transport {
        Transport::Icmp(message) => Ok(message),
        other => panic!("not ICMP: {other:?}"),
    }
}

/// What each type and code of an error means: RFC 792, RFC 1122 section 3.2.2.1, RFC 1812 section
/// 5.2.7.1, RFC 1191; RFC 4443.
fn meaning(v4: bool, kind: u8, code: u8, rest: u32) -> Option<IcmpErrorKind> {
    use Unreachable::{Host, Network, Other, Port, Prohibited, Protocol};
    let unreachable = |reason| Some(IcmpErrorKind::DestinationUnreachable { reason, code });
    match (v4, kind, code) {
        (true, 3, 4) => Some(IcmpErrorKind::PacketTooBig { mtu: rest & 0xffff }),
        (true, 3, _) => {
            let reasons = [
                Network, Host, Protocol, Port, Other, Network, Network, Host, Host, Prohibited, Prohibited,
                Network, Host, Prohibited, Prohibited, Prohibited,
            ];
            unreachable(reasons.get(usize::from(code)).copied().unwrap_or(Other))
        }
        (true, 11, _) | (false, 3, _) => Some(IcmpErrorKind::TimeExceeded { code }),
        (true, 12, _) => Some(IcmpErrorKind::ParameterProblem { code, pointer: rest >> 24 }),
        (false, 1, _) => {
            let reasons = [Network, Prohibited, Network, Host, Port, Network, Network, Network];
            unreachable(reasons.get(usize::from(code)).copied().unwrap_or(Other))
        }
        (false, 2, _) => Some(IcmpErrorKind::PacketTooBig { mtu: rest }),
        (false, 4, _) => Some(IcmpErrorKind::ParameterProblem { code, pointer: rest }),
        _ => None,
    }
}

proptest! {
    #[test]
    fn errors_name_the_connection_that_they_are_about(
        segment in segment(300),
        router: [u8; 16],
        quoted: prop::sample::Index,
        kind in prop_oneof![Just(1u8), Just(2), Just(3), Just(4), Just(11), Just(12)],
        code in 0u8..18,
        rest: u32,
    ) {
        let (src, dst) = (segment.header.src, segment.header.dst);
        let router: IpAddr = match src {
            SocketAddr::V4(_) => [router[0], router[1], router[2], router[3]].into(),
            SocketAddr::V6(_) => router.into(),
        };
        let sent = segment.packet();
        // At least eight octets of the transport header are quoted (RFC 792).
        let least = segment.ip_header_len() + 8;
        let quoted = least + quoted.index(sent.len() - least + 1);
        let packet = message(router, src.ip(), kind, code, rest.to_be_bytes(), &sent[..quoted]);
        let Some(expected) = meaning(src.is_ipv4(), kind, code, rest) else { return Ok(()) };
        let IcmpMessage::Error(error) = received(&packet).expect("valid") else { panic!() };
        prop_assert_eq!(error.kind, expected);
        prop_assert_eq!(SocketAddr::new(error.quoted.src, error.quoted.src_port), src);
        prop_assert_eq!(SocketAddr::new(error.quoted.dst, error.quoted.dst_port), dst);
        prop_assert_eq!((error.quoted.protocol, error.quoted.seq), (PROTOCOL_TCP, segment.header.seq));

        let short = message(router, src.ip(), kind, code, rest.to_be_bytes(), &sent[..least - 1]);
        prop_assert_eq!(received(&short).unwrap_err(), WireError::Quotation);
    }

    #[test]
    fn no_quotation_does_harm(ends in addresses(), kind: u8, code: u8, rest: [u8; 4], quote in payload(200)) {
        let packet = message(ends.0.ip(), ends.1.ip(), kind, code, rest, &quote);
        match received(&packet) {
            Ok(_) => {}
            Err(error) => prop_assert_eq!(error, WireError::Quotation),
        }
        for len in 0..packet.len() {
            prop_assert!(parse(&RxPacket::new(&packet[..len])).is_err());
        }
    }

    #[test]
    fn others_read_our_echoes(ends in addresses(), ids: (u16, u16), data in payload(1_000), reply: bool, ttl: u8, cut: prop::sample::Index) {
        let (ident, seq) = ids;
        let message = if reply { IcmpEmit::EchoReply { ident, seq } } else { IcmpEmit::EchoRequest { ident, seq } };
        let header = IcmpHeader { src: ends.0.ip(), dst: ends.1.ip(), ttl, message };
        let (mut buf, cut) = (HeaderBuf::new(), cut.index(data.len() + 1));
        let header_len = emit_icmp(&header, [&data[..cut], &data[cut..]], &mut buf).expect("a packet");
        prop_assert_eq!(header_len, buf.len());
        let packet = [buf.as_slice(), &data].concat();

        let sliced = SlicedPacket::from_ip(&packet).expect("an IP packet");
        let theirs = match (sliced.net, sliced.transport) {
            (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Icmpv4(icmp))) => {
                prop_assert_eq!(ip.header().ttl(), ttl);
                let ip = Ipv4Packet::new_checked(&packet[..]).expect("IPv4");
                prop_assert!(ip.verify_checksum());
                prop_assert!(Icmpv4Packet::new_checked(ip.payload()).expect("ICMP").verify_checksum());
                let (echo, is_reply) = match icmp.icmp_type() {
                    Icmpv4Type::EchoReply(echo) => (echo, true),
                    Icmpv4Type::EchoRequest(echo) => (echo, false),
                    other => panic!("{other:?}"),
                };
                (echo, is_reply, icmp.payload().to_vec())
            }
            (Some(NetSlice::Ipv6(ip)), Some(TransportSlice::Icmpv6(icmp))) => {
                prop_assert_eq!(ip.header().hop_limit(), ttl);
                let ip = Ipv6Packet::new_checked(&packet[..]).expect("IPv6");
                let icmpv6 = Icmpv6Packet::new_checked(ip.payload()).expect("ICMPv6");
                prop_assert!(icmpv6.verify_checksum(&ip.src_addr(), &ip.dst_addr()));
                let (echo, is_reply) = match icmp.icmp_type() {
                    Icmpv6Type::EchoReply(echo) => (echo, true),
                    Icmpv6Type::EchoRequest(echo) => (echo, false),
                    other => panic!("{other:?}"),
                };
                (echo, is_reply, icmp.payload().to_vec())
            }
            other => panic!("{other:?}"),
        };
        prop_assert_eq!((theirs.0.id, theirs.0.seq, theirs.1, &theirs.2), (ident, seq, reply, &data));

        let (echo, is_reply) = match received(&packet).expect("valid") {
            IcmpMessage::EchoReply(echo) => (echo, true),
            IcmpMessage::EchoRequest(echo) => (echo, false),
            other => panic!("{other:?}"),
        };
        prop_assert_eq!((echo.ident, echo.seq, is_reply), (ident, seq, reply));
        prop_assert!(echo.data.iter().eq(data));
    }

    #[test]
    fn our_errors_parse_back(segment in segment(100), kind in prop_oneof![
        any::<(u8, u32)>().prop_map(|(code, pointer)| IcmpErrorKind::ParameterProblem { code, pointer }),
        any::<u8>().prop_map(|code| IcmpErrorKind::TimeExceeded { code }),
        any::<u32>().prop_map(|mtu| IcmpErrorKind::PacketTooBig { mtu }),
        (0u8..4).prop_map(|code| IcmpErrorKind::DestinationUnreachable { reason: Unreachable::Other, code }),
    ]) {
        let sent = segment.packet();
        let (src, dst) = (segment.header.dst.ip(), segment.header.src.ip());
        let header = IcmpHeader { src, dst, ttl: 64, message: IcmpEmit::Error(kind) };
        let mut buf = HeaderBuf::new();
        emit_icmp(&header, [&sent, &[]], &mut buf).expect("a packet");
        let packet = [buf.as_slice(), &sent].concat();
        let IcmpMessage::Error(error) = received(&packet).expect("valid") else { panic!() };
        let v4 = src.is_ipv4();
        let expected = match kind {
            // Fields of IPv4 are shorter.
            IcmpErrorKind::PacketTooBig { mtu } if v4 => IcmpErrorKind::PacketTooBig { mtu: mtu.min(0xffff) },
            IcmpErrorKind::ParameterProblem { code, pointer } if v4 => {
                IcmpErrorKind::ParameterProblem { code, pointer: pointer.min(0xff) }
            }
            IcmpErrorKind::DestinationUnreachable { code, .. } => {
                meaning(v4, if v4 { 3 } else { 1 }, code, 0).expect("an error")
            }
            other => other,
        };
        prop_assert_eq!(error.kind, expected);
        prop_assert_eq!(error.quoted.seq, segment.header.seq);
    }

    #[test]
    fn damaged_messages_are_refused(ends in addresses(), ids: (u16, u16), data in payload(100), bit: prop::sample::Index) {
        let rest = [ids.0.to_be_bytes(), ids.1.to_be_bytes()].concat();
        let (src, dst) = (ends.0.ip(), ends.1.ip());
        let kind = if src.is_ipv4() { 8 } else { 128 };
        let mut packet = message(src, dst, kind, 0, rest.try_into().unwrap(), &data);
        let at = if src.is_ipv4() { 20 } else { 40 };
        let bit = bit.index((packet.len() - at) * 8);
        packet[at + bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(received(&packet).unwrap_err(), WireError::IcmpChecksum);
    }
}

#[test]
fn packet_too_big_tells_the_mtu() {
    let segment = |src: &str, dst: &str| {
        let header = TcpHeader::new(src.parse().unwrap(), dst.parse().unwrap());
        (header.src.ip(), Segment { header, payload: vec![], cut: 0 }.packet())
    };
    let (v4, quote_v4) = segment("192.0.2.1:1", "192.0.2.2:2");
    let (v6, quote_v6) = segment("[2001:db8::1]:1", "[2001:db8::2]:2");
    // RFC 1191, section 4: the upper half of the field is unused. RFC 4443, section 3.2: all of it
    // is the MTU.
    let v4 = message(v4, v4, 3, 4, [0xab, 0xcd, 0x05, 0xa0], &quote_v4);
    let v6 = message(v6, v6, 2, 0, [0x00, 0x01, 0x05, 0xa0], &quote_v6);
    for (packet, expected) in [(v4, 1_440), (v6, 66_976)] {
        let IcmpMessage::Error(error) = received(&packet).unwrap() else { panic!() };
        assert_eq!(error.kind, IcmpErrorKind::PacketTooBig { mtu: expected });
    }
}

#[test]
fn quotations_of_something_else_are_refused() {
    let (v4, v6): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
    let mut fragment = vec![0x45, 0, 0, 40, 0, 0, 0, 1, 64, 6, 0, 0];
    fragment.extend([0; 28]);
    let mut whole = fragment.clone();
    whole[7] = 0;
    let error = |ip, kind, quote: &[u8]| {
        let packet = message(ip, ip, kind, 0, [0; 4], quote);
        received(&packet).map(|_| ())
    };
    assert_eq!(error(v4, 3, &fragment), Err(WireError::Quotation), "no ports in a later fragment");
    assert_eq!(error(v4, 3, &whole), Ok(()));
    assert_eq!(error(v6, 1, &whole), Err(WireError::Quotation), "IPv4 in ICMPv6");
    let mut short_ihl = whole.clone();
    short_ihl[0] = 0x44;
    assert_eq!(error(v4, 3, &short_ihl), Err(WireError::Quotation));
    let mut long_ihl = whole;
    long_ihl[0] = 0x4f;
    assert_eq!(error(v4, 3, &long_ihl), Err(WireError::Quotation));
}

#[test]
fn other_messages_are_not_looked_into() {
    let (v4, v6): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap());
    // Source quench (RFC 6633: ignored), redirect, timestamp; neighbour solicitation, and echo with
    // a code.
    for (ip, kind, code) in [(v4, 4, 0), (v4, 5, 1), (v4, 13, 0), (v6, 135, 0), (v4, 8, 1), (v6, 128, 1)] {
        let packet = message(ip, ip, kind, code, [0; 4], &[]);
        let result = received(&packet);
        assert!(
            matches!(result, Ok(IcmpMessage::Other { kind: k, code: c }) if (k, c) == (kind, code)),
            "{kind} {code}: {result:?}"
        );
    }
}
