//! Fragments: packets come whole, or not at all, and what waits for the rest is bounded. Fragments
//! are cut here by hand.

use crate::ip::stray::ping;
use crate::net::{A, host_config, socket};
use crate::opens::half_open::{ACK, Bench, bytes, peer, reply};
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::{
    AcceptConfig, DropReason, Duration, Endpoint, EndpointConfig, Ingested, Instant, RxPacket, TxBudget,
    UdpId, WakeReason,
};
use etherparse::PacketBuilder;
use proptest::prelude::*;
use std::net::{IpAddr, SocketAddr};

const SECOND: Duration = Duration::from_secs(1);
/// What the store may hold beyond its limit: spare capacity of its tables.
const SLACK: u64 = 16_384;

/// An endpoint with a UDP socket for each family, and its clock.
struct Host {
    endpoint: Endpoint,
    now: Instant,
    sockets: [UdpId; 2],
}

fn host(change: impl FnOnce(&mut EndpointConfig)) -> Host {
    let mut config = host_config(A);
    change(&mut config);
    let mut endpoint = Endpoint::new(config, Box::new(Fifo::default()), [7; 32]);
    let now = Instant::from_secs(1);
    let sockets = ["10.0.0.1:53", "[fd00::1]:53"]
        .map(|local| endpoint.udp().bind(now, local.parse().unwrap()).unwrap());
    Host { endpoint, now, sockets }
}

impl Host {
    fn inject(&mut self, packet: &[u8]) -> Ingested {
        self.endpoint.ingest(self.now, RxPacket::new(packet))
    }

    fn received(&mut self) -> Vec<Vec<u8>> {
        let mut all = vec![];
        for id in self.sockets {
            while let Some(datagram) = self.endpoint.udp().recv(id).unwrap() {
                all.push(datagram.data.into());
            }
        }
        all
    }

    fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut packets = vec![];
        let sent = self.endpoint.transmit(self.now, TxBudget::UNLIMITED, |packet| {
            packets.push([packet.header, packet.payload[0], packet.payload[1]].concat());
            Ok::<_, std::convert::Infallible>(())
        });
        sent.unwrap();
        while self.endpoint.poll_event().is_some() {}
        packets
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.endpoint.handle_timeout(self.now);
    }
}

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

fn v6_of(text: &str) -> [u8; 16] {
    text.parse::<std::net::Ipv6Addr>().unwrap().octets()
}

/// A datagram to the host's socket, in one packet.
fn udp(from: &str, data: &[u8]) -> Vec<u8> {
    let mut packet = vec![];
    let from: SocketAddr = from.parse().unwrap();
    let step = match from.ip() {
        IpAddr::V4(src) => PacketBuilder::ipv4(src.octets(), [10, 0, 0, 1], 64),
        IpAddr::V6(src) => PacketBuilder::ipv6(src.octets(), v6_of("fd00::1"), 64),
    };
    step.udp(from.port(), 53).write(&mut packet, data).unwrap();
    packet
}

/// Both families.
const FROM: [&str; 2] = ["10.0.0.9:5000", "[fd00::9]:5000"];

fn fix_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let mut sum: u32 =
        header[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// The octets `start..end` of what follows the header of `whole`, as a fragment.
fn cut(whole: &[u8], id: u16, start: usize, end: usize, more: bool) -> Vec<u8> {
    let v4 = whole[0] >> 4 == 4;
    let header = if v4 { 20 } else { 40 };
    let piece = &whole[header + start..header + end];
    let mut packet = whole[..header].to_vec();
    let offset = start as u16;
    if v4 {
        packet[2..4].copy_from_slice(&((20 + piece.len()) as u16).to_be_bytes());
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        packet[6..8].copy_from_slice(&((offset / 8) | if more { 0x2000 } else { 0 }).to_be_bytes());
        fix_checksum(&mut packet);
    } else {
        packet[4..6].copy_from_slice(&((8 + piece.len()) as u16).to_be_bytes());
        let next = std::mem::replace(&mut packet[6], 44);
        packet.extend([next, 0]);
        packet.extend((offset | u16::from(more)).to_be_bytes());
        packet.extend(u32::from(id).to_be_bytes());
    }
    packet.extend_from_slice(piece);
    packet
}

/// All of `whole` in fragments of `size` octets.
fn split(whole: &[u8], id: u16, size: usize) -> Vec<Vec<u8>> {
    let len = whole.len() - if whole[0] >> 4 == 4 { 20 } else { 40 };
    let cut = |start| cut(whole, id, start, (start + size).min(len), start + size < len);
    (0..len).step_by(size).map(cut).collect()
}

/// Type, code, the rest of the header, and what is quoted of an ICMP message. The stack's own
/// parser takes no quoted fragment.
fn icmp(packet: &[u8]) -> (u8, u8, u32, &[u8]) {
    let message = &packet[if packet[0] >> 4 == 4 { 20 } else { 40 }..];
    (message[0], message[1], u32::from_be_bytes(message[4..8].try_into().unwrap()), &message[8..])
}

#[test]
fn a_datagram_arrives_whatever_the_order_of_its_fragments() {
    for from in FROM {
        let sent = data(5_000);
        let fragments = split(&udp(from, &sent), 77, 1_232);
        assert_eq!(fragments.len(), 5);
        for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
            let mut host = host(|_| {});
            for (count, at) in order.into_iter().enumerate() {
                let ingested = host.inject(&fragments[at]);
                if count < 4 {
                    assert_eq!((ingested, host.received().len()), (Ingested::Fragment, 0));
                    assert_eq!(host.inject(&fragments[at]), Ingested::Fragment, "repeated");
                } else {
                    assert!(matches!(ingested, Ingested::Datagram(_)), "{ingested:?}");
                }
            }
            assert_eq!(host.received(), std::slice::from_ref(&sent));
            let counters = host.endpoint.counters();
            assert_eq!((counters.ip_reasm_reqds, counters.ip_reasm_oks, counters.ip_reasm_fails), (9, 1, 0));
            assert_eq!(counters.ip_in_receives, 9, "as they came");
            assert_eq!((host.endpoint.incomplete_packets(), host.endpoint.poll_timeout()), (0, None));
        }
    }
}

#[test]
fn the_longest_datagram_arrives() {
    for (from, most) in FROM.into_iter().zip([65_507, 65_527]) {
        let mut host = host(|_| {});
        let sent = data(most);
        for fragment in split(&udp(from, &sent), 1, 1_232) {
            host.inject(&fragment);
        }
        assert!(host.received() == [sent]);
    }
}

#[test]
fn tcp_and_pings_arrive_in_fragments_too() {
    let mut bench = Bench::with(host_config(A), AcceptConfig::default());
    let syn_ack = bench.open(peer(1));
    let Ingested::Accepted(conn) = bench.ingest(&reply(&syn_ack, ACK, &[])) else { panic!("not accepted") };
    let sent = data(1_200);
    let now = bench.now;
    for fragment in split(&bytes(socket(A, 80), &reply(&syn_ack, ACK, &sent)), 5, 400) {
        bench.endpoint.ingest(now, RxPacket::new(&fragment));
    }
    let mut got = vec![0; 2_000];
    assert_eq!(bench.endpoint.conn(conn).unwrap().read(now, &mut got), Ok(1_200));
    assert_eq!(got[..1_200], sent);

    for (src, dst) in [("10.0.0.9", "10.0.0.1"), ("fd00::9", "fd00::1")] {
        let mut host = host(|_| {});
        let request = ping(src.parse().unwrap(), dst.parse().unwrap(), 1_000);
        for fragment in split(&request, 9, 512) {
            host.inject(&fragment);
        }
        assert_eq!(host.sent()[0].len(), request.len(), "the reply");
    }
}

/// RFC 5722; RFC 8200, section 4.5.
#[test]
fn an_overlap_refuses_the_packet_and_the_rest_of_it() {
    for from in FROM {
        let whole = udp(from, &data(3_000));
        let fragments = split(&whole, 3, 1_000);
        let overlaps = [
            cut(&whole, 3, 992, 1_992, true),
            cut(&whole, 3, 0, 1_008, true),
            cut(&whole, 3, 8, 16, true),
            // The end is another one.
            cut(&whole, 3, 2_000, 2_500, false),
        ];
        for (number, overlap) in overlaps.into_iter().enumerate() {
            let mut host = host(|_| {});
            host.inject(&fragments[0]);
            host.inject(&fragments[3]);
            assert_eq!(host.inject(&overlap), Ingested::Dropped(DropReason::Fragment));
            assert_eq!(host.endpoint.counters().ip_reasm_overlaps, u64::from(number < 3));
            for fragment in &fragments {
                assert_eq!(host.inject(fragment), Ingested::Dropped(DropReason::Fragment));
            }
            assert_eq!((host.received().len(), host.sent().len()), (0, 0));
            // Nobody is told, and afterwards the identification is as good as any.
            host.pass(Duration::from_secs(30));
            assert_eq!((host.sent().len(), host.endpoint.incomplete_packets()), (0, 0));
            for fragment in &fragments {
                host.inject(fragment);
            }
            assert_eq!(host.received().len(), 1);
        }
    }
}

/// The same octets again with other contents.
#[test]
fn a_fragment_that_is_forged_onto_another_refuses_the_packet() {
    let mut host = host(|_| {});
    let fragments = split(&udp(FROM[0], &data(3_000)), 3, 1_000);
    host.inject(&fragments[0]);
    let mut forged = fragments[0].clone();
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(host.inject(&forged), Ingested::Dropped(DropReason::Fragment));
}

#[test]
fn a_first_fragment_has_the_transport_header() {
    for from in FROM {
        let mut bench = Bench::with(host_config(A), AcceptConfig::default());
        let (from, to) = match from.starts_with('[') {
            true => ("[fd00::9]:1".parse().unwrap(), "[fd00::1]:80".parse().unwrap()),
            false => (peer(1), socket(A, 80)),
        };
        let whole = bytes(to, &crate::opens::half_open::syn(from));
        let ingested = bench.endpoint.ingest(bench.now, RxPacket::new(&cut(&whole, 1, 0, 16, true)));
        assert_eq!(ingested, Ingested::Dropped(DropReason::Fragment));
        assert_eq!(bench.endpoint.incomplete_packets(), 0);
    }
}

#[test]
fn what_cannot_be_a_fragment_is_dropped_and_told_as_rfc_8200_says() {
    for from in FROM {
        let v6 = from.starts_with('[');
        let whole = udp(from, &data(3_000));
        let mut far = cut(&whole, 1, 0, 1_000, false);
        let at = if v6 { 42 } else { 6 };
        let offset: u16 = if v6 { 65_000 & !7 } else { 65_000 / 8 };
        far[at..at + 2].copy_from_slice(&offset.to_be_bytes());
        if !v6 {
            fix_checksum(&mut far);
        }
        for (fragment, pointer) in [(cut(&whole, 1, 0, 1_001, true), 4), (far, 42)] {
            let mut host = host(|_| {});
            let ingested = host.inject(&fragment);
            let sent = host.sent();
            if v6 {
                assert_eq!((ingested, sent.len()), (Ingested::Handled, 1));
                let (kind, code, rest, quoted) = icmp(&sent[0]);
                assert_eq!((kind, code, rest), (4, 0, pointer));
                assert_eq!(quoted, &fragment[..quoted.len()]);
            } else {
                assert_eq!((ingested, sent.len()), (Ingested::Dropped(DropReason::Fragment), 0));
            }
            assert_eq!(host.endpoint.counters().ip_fragments_dropped, 1);
        }
        // Without data, and for somebody else.
        let mut host = host(|_| {});
        assert_eq!(host.inject(&cut(&whole, 1, 8, 8, true)), Ingested::Dropped(DropReason::Fragment));
        let mut foreign = cut(&whole, 1, 0, 1_000, true);
        let last = if v6 { 39 } else { 19 };
        foreign[last] = 77;
        if !v6 {
            fix_checksum(&mut foreign);
        }
        assert_eq!(host.inject(&foreign), Ingested::Dropped(DropReason::NotLocal));
        assert_eq!(host.endpoint.incomplete_packets(), 0);
    }
}

#[test]
fn a_packet_that_stays_incomplete_is_given_up_and_its_sender_told() {
    for from in FROM {
        let mut host = host(|_| {});
        let fragments = split(&udp(from, &data(3_000)), 3, 1_000);
        host.inject(&fragments[0]);
        host.pass(SECOND);
        // Another packet, whose first fragment is missing; and one more of the first, which does
        // not prolong it.
        host.inject(&split(&udp(from, &data(3_000)), 4, 1_000)[1]);
        host.inject(&fragments[1]);
        let wakeup = host.endpoint.poll_timeout().expect("an end");
        assert_eq!((wakeup.reason, wakeup.at), (WakeReason::Reassembly, Instant::from_secs(31)));
        host.pass(Duration::from_secs(29));
        let sent = host.sent();
        assert_eq!(sent.len(), 1);
        let (kind, code, _, quoted) = icmp(&sent[0]);
        assert_eq!((kind, code), (if from.starts_with('[') { 3 } else { 11 }, 1));
        assert_eq!(quoted, &fragments[0][..quoted.len()]);
        host.pass(SECOND);
        assert_eq!((host.sent().len(), host.endpoint.incomplete_packets()), (0, 0), "no first, no error");
        let counters = host.endpoint.counters();
        assert_eq!((counters.ip_reasm_timeout, counters.ip_reasm_fails), (2, 2));
        assert_eq!(counters.icmp_out_time_excds, 1);
        // What comes late begins another packet.
        assert_eq!(host.inject(&fragments[2]), Ingested::Fragment);
    }
}

/// RFC 1122, section 3.2.2; RFC 4443, section 2.4.
#[test]
fn nobody_is_told_of_a_part_of_an_icmp_error() {
    let message = |kind: [u8; 2], v6: bool| {
        let mut packet = vec![];
        let rest = [0; 4];
        match v6 {
            false => PacketBuilder::ipv4([10, 0, 0, 9], [10, 0, 0, 1], 64)
                .icmpv4_raw(kind[0], 0, rest)
                .write(&mut packet, &data(3_000)),
            true => PacketBuilder::ipv6(v6_of("fd00::9"), v6_of("fd00::1"), 64)
                .icmpv6_raw(kind[1], 0, rest)
                .write(&mut packet, &data(3_000)),
        }
        .unwrap();
        packet
    };
    for v6 in [false, true] {
        // An echo reply, and destination unreachable, time exceeded and parameter problem.
        for (kind, told) in [([0, 129], 1), ([3, 1], 0), ([11, 3], 0), ([12, 4], 0)] {
            let mut host = host(|_| {});
            let whole = message(kind, v6);
            assert_eq!(host.inject(&cut(&whole, 3, 0, 1_000, true)), Ingested::Fragment);
            host.pass(Duration::from_secs(30));
            assert_eq!(host.sent().len(), told, "{kind:?}");
            // Only IPv6 tells of lengths.
            host.inject(&cut(&whole, 4, 0, 1_001, true));
            assert_eq!(host.sent().len(), if v6 { told } else { 0 }, "{kind:?}");
            // Behind the first fragment nobody can see what it is.
            host.inject(&cut(&whole, 5, 1_000, 2_001, true));
            assert_eq!(host.sent().len(), 0);
        }
    }
}

/// 100,000 first fragments a second from as many hosts; an honest host's datagram comes in pieces,
/// 5 ms apart.
#[test]
fn a_flood_is_bounded_and_an_honest_host_gets_through() {
    const MOST: u32 = 4 << 20;
    let mut host = host(|config| config.max_fragment_memory = MOST);
    host.endpoint.poll_event();
    let empty = host.endpoint.memory();
    let (mut number, mut honest) = (0u32, 0);
    for round in 0..50 {
        let fragments = split(&udp(FROM[0], &data(3_000)), round, 1_000);
        for fragment in fragments {
            host.inject(&fragment);
            for _ in 0..500 {
                number += 1;
                let [_, a, b, c] = number.to_be_bytes();
                let from = format!("11.{a}.{b}.{c}:9");
                host.inject(&cut(&udp(&from, &data(100)), 1, 0, 96, true));
            }
            host.pass(Duration::from_millis(5));
            host.sent();
            let held = host.endpoint.memory() - empty;
            assert!(held <= u64::from(MOST) * 3 / 2 + SLACK, "{held}");
        }
        honest += host.received().len();
    }
    assert_eq!(honest, 50);
    assert!(host.endpoint.counters().ip_reasm_fails > 80_000);
    host.pass(Duration::from_secs(31));
    host.sent();
    assert_eq!(host.endpoint.incomplete_packets(), 0);
    assert!(host.endpoint.memory() <= empty + SLACK, "{}", host.endpoint.memory());
    assert!(host.endpoint.counters().icmp_out_time_excds <= 1_000, "within the limit of errors");
}

#[test]
fn fragments_are_few_and_cost_what_they_hold() {
    let mut host = host(|_| {});
    host.endpoint.poll_event();
    let empty = host.endpoint.memory();
    // An octet or eight at the end of the longest packet.
    let whole = udp(FROM[0], &data(65_000));
    host.inject(&cut(&whole, 1, 64_000, 64_008, true));
    host.sent();
    assert!(host.endpoint.memory() - empty < 4_096, "{}", host.endpoint.memory() - empty);
    for at in 0..128 {
        let ingested = host.inject(&cut(&whole, 2, at * 16, at * 16 + 8, true));
        assert_eq!(ingested, Ingested::Fragment);
    }
    let one_more = cut(&whole, 2, 4_000, 4_008, true);
    assert_eq!(host.inject(&one_more), Ingested::Dropped(DropReason::Fragment));
    // With no room at all none is kept.
    let mut none = self::host(|config| config.max_fragment_memory = 0);
    assert_eq!(none.inject(&one_more), Ingested::Dropped(DropReason::Fragment));
}

#[test]
fn the_budget_of_memory_covers_fragments() {
    let mut host = host(|config| config.max_memory = Some(1 << 17));
    for number in 0..1_000 {
        host.inject(&split(&udp(FROM[0], &data(3_000)), number, 1_000)[0]);
        host.sent();
        assert!(host.endpoint.memory() <= 1 << 17, "{}", host.endpoint.memory());
    }
    assert!(host.endpoint.counters().ip_fragments_dropped > 800);
}

/// RFC 6946.
#[test]
fn an_atomic_fragment_is_a_packet_of_its_own() {
    let mut host = host(|_| {});
    let waiting = split(&udp(FROM[1], &data(3_000)), 8, 1_000);
    host.inject(&waiting[0]);
    let whole = udp(FROM[1], b"atomic");
    let ingested = host.inject(&cut(&whole, 8, 0, whole.len() - 40, false));
    assert!(matches!(ingested, Ingested::Datagram(_)));
    for fragment in &waiting[1..] {
        host.inject(fragment);
    }
    assert_eq!(host.received(), [b"atomic".to_vec(), data(3_000)]);
}

#[test]
fn fragments_of_fragments_are_refused() {
    let mut host = host(|_| {});
    let inner = cut(&udp(FROM[1], &data(3_000)), 8, 0, 1_000, true);
    let fragments = split(&inner, 9, 504);
    assert_eq!(host.inject(&fragments[0]), Ingested::Dropped(DropReason::Fragment));
    assert_eq!(host.endpoint.incomplete_packets(), 0);
}

/// RFC 3168, section 5.3.
#[test]
fn a_mark_on_one_fragment_marks_the_packet() {
    let mark = |fragment: &mut Vec<u8>, codepoint: u8| {
        if fragment[0] >> 4 == 4 {
            fragment[1] = fragment[1] & !3 | codepoint;
            fix_checksum(fragment);
        } else {
            fragment[1] = fragment[1] & !0x30 | codepoint << 4;
        }
    };
    for from in FROM {
        for (codepoints, ce, received) in
            [([2, 3, 2], 1, 1), ([2, 2, 2], 0, 1), ([3, 0, 0], 0, 0), ([0, 0, 3], 0, 0)]
        {
            let mut host = host(|_| {});
            let mut fragments = split(&udp(from, &data(2_900)), 8, 1_000);
            for (fragment, codepoint) in fragments.iter_mut().zip(codepoints) {
                mark(fragment, codepoint);
                host.inject(fragment);
            }
            let marked = host.endpoint.counters().ip_in_ce_pkts;
            assert_eq!((marked, host.received().len()), (ce, received), "{codepoints:?}");
        }
    }
}

proptest! {
    /// Any cut at multiples of eight octets, in any order, with repetitions.
    #[test]
    fn any_fragments_make_the_packet(
        v6: bool,
        len in 100usize..6_000,
        cuts in prop::collection::btree_set(1usize..700, 0..20),
        seed in prop::collection::vec(any::<u32>(), 40),
    ) {
        let sent = data(len);
        let whole = udp(FROM[usize::from(v6)], &sent);
        let total = len + 8;
        let mut edges = vec![0];
        edges.extend(cuts.iter().map(|cut| cut * 8).filter(|cut| *cut < total));
        edges.push(total);
        let mut fragments: Vec<_> =
            edges.windows(2).map(|edge| cut(&whole, 6, edge[0], edge[1], edge[1] < total)).collect();
        let again = fragments[seed[0] as usize % fragments.len()].clone();
        if fragments.len() > 1 {
            fragments.push(again);
        }
        let mut keyed: Vec<_> = fragments.into_iter().zip(&seed).collect();
        keyed.sort_by_key(|(_, key)| **key);
        let mut host = host(|_| {});
        for (fragment, _) in &keyed {
            host.inject(fragment);
        }
        prop_assert_eq!(host.received(), [sent]);
    }
}
