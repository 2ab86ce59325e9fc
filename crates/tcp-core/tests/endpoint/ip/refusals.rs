//! Datagrams that nobody takes, and the ICMP errors that say so. Packets are built, and answers
//! read, by etherparse.

use crate::net::{A, B, Link, Net, host_config};
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::{RxChecksum, RxPacket};
use ackline_tcp_core::{DropReason, Duration, EndpointConfig, Ingested};
use etherparse::{
    IpNumber, Ipv4Header, Ipv6Header, NetSlice, PacketBuilder, PacketBuilderStep, SlicedPacket,
    TransportSlice, icmpv4, icmpv6, ip_number,
};
use std::net::IpAddr;

const US: [&str; 2] = ["10.0.0.1", "fd00::1"];
const PEER: [&str; 2] = ["10.0.0.2", "fd00::2"];

fn net(config: EndpointConfig) -> Net {
    Net::with(1, Link::default(), [config, host_config(B)], || Box::new(Fifo::default()))
}

fn ip(src: &str, dst: &str) -> PacketBuilderStep<etherparse::IpHeaders> {
    match (src.parse().unwrap(), dst.parse().unwrap()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => PacketBuilder::ipv4(src.octets(), dst.octets(), 64),
        (IpAddr::V6(src), IpAddr::V6(dst)) => PacketBuilder::ipv6(src.octets(), dst.octets(), 64),
        _ => unreachable!("one version"),
    }
}

fn udp(src: &str, dst: &str, len: usize) -> Vec<u8> {
    let mut packet = vec![];
    ip(src, dst).udp(5_353, 53).write(&mut packet, &vec![0xa5; len]).unwrap();
    packet
}

fn other(protocol: IpNumber, src: &str, dst: &str) -> Vec<u8> {
    let mut packet = vec![];
    match (src.parse().unwrap(), dst.parse().unwrap()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let header = Ipv4Header::new(8, 64, protocol, src.octets(), dst.octets()).unwrap();
            header.write(&mut packet).unwrap();
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let (source, destination) = (src.octets(), dst.octets());
            let header = Ipv6Header {
                payload_length: 8,
                next_header: protocol,
                hop_limit: 64,
                source,
                destination,
                ..Ipv6Header::default()
            };
            header.write(&mut packet).unwrap();
        }
        _ => unreachable!("one version"),
    }
    packet.extend([0xb7; 8]);
    packet
}

/// An answer of A: addresses, type, code, the other four octets of the header, what it quotes, and
/// its length.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    addresses: [String; 2],
    kind: (u8, u8),
    rest: [u8; 4],
    quote: Vec<u8>,
    len: usize,
}

fn answers(net: &mut Net) -> Vec<Answer> {
    net.intercept(A).iter().map(|wire| read(&wire.bytes)).collect()
}

fn read(packet: &[u8]) -> Answer {
    let sliced = SlicedPacket::from_ip(packet).unwrap();
    let (addresses, kind, rest, quote) = match (sliced.net, sliced.transport) {
        (Some(NetSlice::Ipv4(net)), Some(TransportSlice::Icmpv4(icmp))) => {
            assert_eq!(icmp.header().icmp_type.calc_checksum(icmp.payload()), icmp.checksum());
            let header = net.header();
            let addresses = [header.source_addr().to_string(), header.destination_addr().to_string()];
            (addresses, (icmp.type_u8(), icmp.code_u8()), icmp.bytes5to8(), icmp.payload().to_vec())
        }
        (Some(NetSlice::Ipv6(net)), Some(TransportSlice::Icmpv6(icmp))) => {
            let header = net.header();
            assert!(icmp.is_checksum_valid(header.source(), header.destination()));
            let addresses = [header.source_addr().to_string(), header.destination_addr().to_string()];
            (addresses, (icmp.type_u8(), icmp.code_u8()), icmp.bytes5to8(), icmp.payload().to_vec())
        }
        other => panic!("not ICMP: {other:?}"),
    };
    Answer { addresses, kind, rest, quote, len: packet.len() }
}

#[test]
fn a_udp_datagram_is_refused_and_quoted() {
    let mut net = net(host_config(A));
    let kinds = [
        (icmpv4::TYPE_DEST_UNREACH, icmpv4::CODE_DST_UNREACH_PORT),
        (icmpv6::TYPE_DST_UNREACH, icmpv6::CODE_DST_UNREACH_PORT),
    ];
    // RFC 1812, section 4.3.2.3, and RFC 4443, section 3.1: all of it, as long as the error has not
    // more octets than this.
    for (version, longest) in [(0, 576), (1, 1_280)] {
        for len in [0, 1, 100, 1_400] {
            let datagram = udp(PEER[version], US[version], len);
            assert_eq!(net.inject(A, &datagram), Ingested::Handled);
            let got = answers(&mut net);
            let headers = [28, 48][version];
            let quote = datagram[..datagram.len().min(longest - headers)].to_vec();
            let addresses = [US[version].to_owned(), PEER[version].to_owned()];
            let len = headers + quote.len();
            assert_eq!(got, [Answer { addresses, kind: kinds[version], rest: [0; 4], quote, len }]);
        }
    }
    let counters = net.endpoint(A).counters();
    assert_eq!((counters.udp_no_ports, counters.icmp_out_dest_unreachs), (8, 8));
}

#[test]
fn an_error_quotes_a_packet_in_pieces_and_fits_a_small_link() {
    let mut config = host_config(A);
    config.mtu = 100;
    let mut net = net(config);
    let datagram = udp(PEER[0], US[0], 300);
    let packet = RxPacket::new(&datagram[..40]).with_more([&datagram[40..50], &datagram[50..]]);
    let now = net.now;
    assert_eq!(net.endpoint(A).ingest(now, packet), Ingested::Handled);
    let got = answers(&mut net);
    assert_eq!((got[0].len, &got[0].quote[..]), (100, &datagram[..72]));
}

#[test]
fn an_unknown_protocol_is_refused() {
    let mut net = net(host_config(A));
    net.inject(A, &other(ip_number::SCTP, PEER[0], US[0]));
    let got = answers(&mut net);
    assert_eq!(got[0].kind, (icmpv4::TYPE_DEST_UNREACH, icmpv4::CODE_DST_UNREACH_PROTOCOL));

    // RFC 4443, section 3.4: the pointer is that of the field with the unknown number.
    let plain = other(ip_number::SCTP, PEER[1], US[1]);
    let mut extended = plain.clone();
    (extended[5], extended[6]) = (24, 0);
    // Hop-by-hop options and destination options, each with padding.
    extended.splice(40..40, [60, 0, 1, 4, 0, 0, 0, 0, ip_number::SCTP.0, 0, 1, 4, 0, 0, 0, 0]);
    for (packet, pointer) in [(plain, 6), (extended, 48)] {
        assert_eq!(net.inject(A, &packet), Ingested::Handled);
        let got = answers(&mut net);
        assert_eq!(got[0].kind, (icmpv6::TYPE_PARAMETER_PROBLEM, 1));
        assert_eq!((got[0].rest, &got[0].quote[..]), ([0, 0, 0, pointer], &packet[..]));
    }
    assert_eq!(net.inject(A, &other(IpNumber(59), PEER[1], US[1])), dropped(DropReason::UnknownProtocol));
    assert_eq!(answers(&mut net), []);
    let counters = net.endpoint(A).counters();
    assert_eq!((counters.ip_in_unknown_protos, counters.icmp_out_parm_probs), (4, 2));
}

fn dropped(reason: DropReason) -> Ingested {
    Ingested::Dropped(reason)
}

#[test]
fn what_rfc_1122_says_gets_no_error_gets_none() {
    let mut config = host_config(A);
    config.any_address = true;
    let mut net = net(config);
    // To or from an address that is not one host's.
    for (src, dst) in [
        ("10.0.0.2", "255.255.255.255"),
        ("10.0.0.2", "224.0.0.251"),
        ("255.255.255.255", "10.0.0.1"),
        ("224.0.0.1", "10.0.0.1"),
        ("0.0.0.0", "10.0.0.1"),
        ("0.1.2.3", "10.0.0.1"),
        ("127.0.0.1", "10.0.0.1"),
        ("240.0.0.1", "10.0.0.1"),
        ("fd00::2", "ff02::fb"),
        ("ff02::1", "fd00::1"),
        ("::", "fd00::1"),
        ("::1", "fd00::1"),
    ] {
        for packet in [udp(src, dst, 10), other(ip_number::SCTP, src, dst)] {
            assert!(matches!(net.inject(A, &packet), Ingested::Dropped(_)), "{src} to {dst}");
        }
    }
    // Fragments: two whose length cannot be, and one that waits for the others.
    let cannot_be = dropped(DropReason::Fragment);
    for (high, low, ingested) in [(0x20, 0, cannot_be), (0x20, 1, cannot_be), (0, 1, Ingested::Fragment)] {
        let mut fragment = udp(PEER[0], US[0], 100);
        (fragment[6], fragment[7], fragment[10], fragment[11]) = (high, low, 0, 0);
        let sum = Ipv4Header::from_slice(&fragment).unwrap().0.calc_header_checksum();
        fragment[10..12].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(net.inject(A, &fragment), ingested);
    }
    // ICMP errors, here one about a datagram, and ICMP messages that are not known.
    let quote = udp(US[0], PEER[0], 10);
    for kind in [3, 11, 12, 99] {
        let mut packet = vec![];
        ip(PEER[0], US[0]).icmpv4_raw(kind, 3, [0; 4]).write(&mut packet, &quote).unwrap();
        net.inject(A, &packet);
    }
    // Broken ones.
    for version in [0, 1] {
        let mut broken = udp(PEER[version], US[version], 10);
        *broken.last_mut().unwrap() ^= 1;
        assert_eq!(net.inject(A, &broken), dropped(DropReason::UdpChecksum));
        let udp_at = [20, 40][version];
        let mut lying = udp(PEER[version], US[version], 10);
        lying[udp_at + 5] = 7;
        assert_eq!(net.inject(A, &lying), dropped(DropReason::UdpMalformed), "shorter than its header");
        lying[udp_at + 5] = 19;
        assert_eq!(net.inject(A, &lying), dropped(DropReason::UdpMalformed), "longer than the packet");
    }
    assert_eq!(answers(&mut net), []);
    assert_eq!(net.endpoint(A).counters().icmp_out_dest_unreachs, 0);
}

#[test]
fn a_datagram_without_a_checksum_is_intact_over_ipv4_only() {
    let mut net = net(host_config(A));
    for (version, expected) in [(0, Ingested::Handled), (1, dropped(DropReason::UdpChecksum))] {
        let mut datagram = udp(PEER[version], US[version], 10);
        let checksum = [26, 46][version];
        datagram[checksum..checksum + 2].fill(0);
        assert_eq!(net.inject(A, &datagram), expected);
    }
    // What a device has checked is not checked again.
    let mut datagram = udp(PEER[0], US[0], 10);
    datagram[30] ^= 1;
    let now = net.now;
    let trusted = RxPacket::new(&datagram).with_checksum(RxChecksum::Partial);
    assert_eq!(net.endpoint(A).ingest(now, trusted), Ingested::Handled);
}

#[test]
fn every_address_of_a_tunnel_refuses_under_its_own_name() {
    let mut config = host_config(A);
    config.any_address = true;
    let mut tunnel = net(config);
    let mut host = net(host_config(A));
    for (version, elsewhere) in [(0, "203.0.113.5"), (1, "2001:db8::5")] {
        let datagram = udp(PEER[version], elsewhere, 10);
        assert_eq!(host.inject(A, &datagram), dropped(DropReason::NotLocal));
        assert_eq!(tunnel.inject(A, &datagram), Ingested::Handled);
        let got = answers(&mut tunnel);
        assert_eq!(got[0].addresses, [elsewhere, PEER[version]]);
    }
}

#[test]
fn errors_are_rate_limited_and_can_be_switched_off() {
    let mut config = host_config(A);
    config.icmp_errors_per_second = 10;
    let mut limited = net(config);
    let mut counts = vec![];
    for _ in 0..20 {
        for _ in 0..12 {
            limited.inject(A, &udp(PEER[0], US[0], 10));
        }
        counts.push(answers(&mut limited).len());
        limited.now += Duration::from_secs(1);
    }
    assert!(counts.iter().all(|count| (5..=10).contains(count)), "{counts:?}");
    assert!(counts.iter().any(|count| *count != counts[0]), "whoever counts sees the limit: {counts:?}");
    let sent: usize = counts.iter().sum();
    assert_eq!(limited.endpoint(A).counters().icmp_out_rate_limit_global as usize, 240 - sent);

    // A device that takes nothing is no reason to keep them all.
    let mut stuck = net(host_config(A));
    for _ in 0..200 {
        stuck.inject(A, &udp(PEER[0], US[0], 10));
    }
    assert_eq!(answers(&mut stuck).len(), 64);

    let mut config = host_config(A);
    config.refuse_datagrams = false;
    let mut silent = net(config);
    assert_eq!(silent.inject(A, &udp(PEER[0], US[0], 10)), dropped(DropReason::UdpNoPort));
    assert_eq!(
        silent.inject(A, &other(ip_number::SCTP, PEER[0], US[0])),
        dropped(DropReason::UnknownProtocol)
    );
    assert_eq!(answers(&mut silent), []);
    assert_eq!(silent.endpoint(A).counters().icmp_out_rate_limit_global, 0);
}
