//! Packets that wait: bounded, in order.

use super::*;
use crate::device::OutgoingPacket;
use crate::device::ethernet::resolver::{Output, Resolver, Route};
use crate::device::ethernet::waiting::HoldQueues;
use proptest::prelude::*;

/// An IPv4 header to `to` and a payload of `len` octets that begins with `mark`.
fn packet(to: IpAddr, mark: u8, len: usize) -> (Vec<u8>, Vec<u8>) {
    let (IpAddr::V4(ours), IpAddr::V4(to)) = (OURS, to) else { panic!("IPv4") };
    let mut header = vec![0; 20];
    header[0] = 0x45;
    header[12..16].copy_from_slice(&ours.octets());
    header[16..20].copy_from_slice(&to.octets());
    (header, vec![mark; len])
}

fn outbound<'a>((header, payload): &'a (Vec<u8>, Vec<u8>)) -> OutgoingPacket<'a> {
    OutgoingPacket::new(header, [payload, &[]])
}

fn claimed(config: NeighbourConfig) -> Resolver {
    let mut config = config;
    (config.claim.probes, config.claim.announcements) = (0, 0);
    let mut resolver = Resolver::new(attachment(), config, [0; 32]).expect("good");
    resolver.claim(ms(0));
    resolver
}

/// The marks of the packets that can go, and to whom.
fn drain(resolver: &mut Resolver) -> Vec<(MacAddress, u8)> {
    let mut out = Vec::new();
    while let Some(output) = resolver.next_output() {
        if let Output::Packet(mac, packet) = output {
            out.push((mac, packet.payload[0][0]));
        }
        resolver.sent();
    }
    out
}

#[test]
fn packets_wait_in_order_per_next_hop() {
    let mut resolver = claimed(NeighbourConfig::default());
    for (to, mark) in [(PEER, 1), (FAR, 2), (PEER, 3), (v4(77), 4)] {
        assert_eq!(resolver.route(ms(0), &outbound(&packet(to, mark, 10))), Route::Kept);
    }
    assert_eq!(drain(&mut resolver), []);
    resolver.ingest(ms(1), &Outgoing::Reply { own: PEER, to: OURS, mac: OUR_MAC }.frame(PEER_MAC));
    assert_eq!(drain(&mut resolver), [(PEER_MAC, 1), (PEER_MAC, 3)]);
    assert_eq!(resolver.route(ms(1), &outbound(&packet(PEER, 5, 10))), Route::Send(PEER_MAC));
    // Through the gateway.
    resolver.ingest(ms(2), &Outgoing::Reply { own: GATEWAY, to: OURS, mac: OUR_MAC }.frame(OTHER_MAC));
    assert_eq!(drain(&mut resolver), [(OTHER_MAC, 2)]);
    assert!(!resolver.has_output() && !resolver.has_error());
}

#[test]
fn an_output_stays_until_it_is_sent() {
    let mut resolver = claimed(NeighbourConfig::default());
    resolver.route(ms(0), &outbound(&packet(PEER, 1, 10)));
    assert!(matches!(resolver.next_output(), Some(Output::Frame(_))));
    assert!(matches!(resolver.next_output(), Some(Output::Frame(_))), "the device was full");
    resolver.sent();
    resolver.ingest(ms(1), &Outgoing::Reply { own: PEER, to: OURS, mac: OUR_MAC }.frame(PEER_MAC));
    for _ in 0..2 {
        assert!(matches!(resolver.next_output(), Some(Output::Packet(PEER_MAC, _))));
    }
    resolver.sent();
    assert!(resolver.next_output().is_none());
}

#[test]
fn the_oldest_make_room() {
    let each = 3 * (20 + 100 + 64);
    let mut resolver = claimed(NeighbourConfig { max_waiting: each, ..NeighbourConfig::default() });
    for mark in 1..=5 {
        assert_eq!(resolver.route(ms(0), &outbound(&packet(PEER, mark, 100))), Route::Kept);
    }
    assert_eq!((resolver.stats().waited, resolver.stats().waiting_dropped), (5, 2));
    resolver.ingest(ms(1), &Outgoing::Reply { own: PEER, to: OURS, mac: OUR_MAC }.frame(PEER_MAC));
    assert_eq!(drain(&mut resolver), [(PEER_MAC, 3), (PEER_MAC, 4), (PEER_MAC, 5)]);
}

#[test]
fn a_neighbour_whose_address_is_given_is_never_asked_for() {
    let attachment = attachment().neighbour(PEER, PEER_MAC);
    let mut machine = Neighbours::new(attachment, NeighbourConfig::default(), [0; 32]).expect("good");
    assert_eq!(machine.resolve(ms(0), PEER), NextHop::Mac(PEER_MAC));
    machine.ingest(ms(1), &Outgoing::Announce { own: PEER }.frame(OTHER_MAC));
    assert_eq!(machine.resolve(ms(1_000_000), PEER), NextHop::Mac(PEER_MAC));
    assert_eq!((machine.poll_timeout(), machine.poll_transmit()), (None, None));
}

proptest! {
    #[test]
    fn memory_is_bounded(
        each in 0_usize..4_000,
        total in 0_usize..6_000,
        steps in prop::collection::vec((0_u8..6, 0_usize..3_000, any::<bool>()), 0..200),
    ) {
        let mut waiting = HoldQueues::new(each, total);
        let mut kept = [0_u64; 6];
        for (host, len, take) in steps {
            if take {
                prop_assert_eq!(waiting.take(v4(host)).len() as u64, kept[usize::from(host)]);
                kept[usize::from(host)] = 0;
            } else {
                let dropped = waiting.push(v4(host), &outbound(&packet(v4(host), host, len)));
                kept[usize::from(host)] = kept[usize::from(host)] + 1 - dropped;
            }
            prop_assert!(waiting.bytes() <= total);
        }
        for host in 0..6 {
            waiting.take(v4(host));
        }
        prop_assert_eq!(waiting.bytes(), 0);
    }
}
