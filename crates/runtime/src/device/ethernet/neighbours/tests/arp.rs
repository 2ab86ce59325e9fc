//! ARP: RFC 826, and what RFC 4861's states make of it.

use super::*;

fn request(target: IpAddr) -> Incoming {
    let (IpAddr::V4(sender), IpAddr::V4(target)) = (OURS, target) else { panic!("IPv4") };
    Incoming::Arp(Arp {
        is_reply: false,
        sender_mac: OUR_MAC,
        sender,
        target_mac: MacAddress::default(),
        target,
    })
}

#[test]
fn a_neighbour_is_asked_for_once_a_second_until_it_answers() {
    let mut bench = Bench::new();
    assert_eq!(bench.machine.resolve(ms(1_000), PEER), NextHop::Pending(PEER));
    assert_eq!(bench.machine.resolve(ms(1_001), PEER), NextHop::Pending(PEER), "one request for all");
    assert_eq!(bench.sent(), [(MacAddress::BROADCAST, request(PEER))]);
    assert_eq!(bench.run_until(ms(2_500)), [(2_000, MacAddress::BROADCAST, request(PEER))]);
    bench.hear(ms(2_500), PEER_MAC, Outgoing::Reply { own: PEER, to: OURS, mac: OUR_MAC });
    assert_eq!(bench.events(), [Event::Resolved { ip: PEER, mac: PEER_MAC }]);
    assert_eq!(bench.machine.resolve(ms(2_501), PEER), NextHop::Mac(PEER_MAC));
    assert_eq!(bench.machine.poll_timeout(), None);
    let stats = bench.machine.stats();
    assert_eq!((stats.requests_sent, stats.replies_received, stats.resolved), (2, 1, 1));
}

#[test]
fn one_that_does_not_answer_fails_after_three_requests() {
    let mut bench = Bench::new();
    bench.machine.resolve(ms(0), PEER);
    bench.sent();
    let times: Vec<u64> = bench.run_until(ms(2_999)).into_iter().map(|(at, ..)| at).collect();
    assert_eq!((times, bench.events()), (vec![1_000, 2_000], vec![]));
    assert_eq!(bench.run_until(ms(3_000)), []);
    assert_eq!(bench.events(), [Event::Failed { ip: PEER }]);
    assert!(bench.machine.is_empty());
    assert_eq!(bench.machine.resolve(ms(5_000), PEER), NextHop::Pending(PEER), "a new packet begins anew");
    assert_eq!(bench.sent().len(), 1);
}

#[test]
fn our_address_is_answered_for_and_the_asker_remembered() {
    let mut bench = Bench::new();
    bench.hear(ms(0), PEER_MAC, Outgoing::Request { from: PEER, target: OURS, to: None });
    let (IpAddr::V4(ours), IpAddr::V4(peer)) = (OURS, PEER) else { panic!("IPv4") };
    let reply = Arp { is_reply: true, sender_mac: OUR_MAC, sender: ours, target_mac: PEER_MAC, target: peer };
    assert_eq!(bench.sent(), [(PEER_MAC, Incoming::Arp(reply))]);
    assert_eq!(bench.state(PEER), Some(NeighbourState::Stale { mac: PEER_MAC }));
    bench.hear(ms(0), OTHER_MAC, Outgoing::Request { from: v4(9), target: v4(10), to: None });
    assert_eq!((bench.sent(), bench.state(v4(9))), (vec![], None), "not our business");
}

#[test]
fn news_of_a_neighbour_is_merged_and_doubted() {
    let mut bench = Bench::new();
    bench.resolved(ms(0), PEER, OURS, PEER_MAC);
    let before = bench.state(PEER);
    bench.hear(ms(1), PEER_MAC, Outgoing::Announce { own: PEER });
    assert_eq!(bench.state(PEER), before, "nothing new");
    bench.hear(ms(2), OTHER_MAC, Outgoing::Announce { own: PEER });
    assert_eq!(bench.state(PEER), Some(NeighbourState::Stale { mac: OTHER_MAC }), "gratuitous ARP, RFC 826");
    assert_eq!(bench.machine.resolve(ms(3), PEER), NextHop::Mac(OTHER_MAC));
    assert_eq!(bench.machine.stats().changes, 1);
    // A reply that nobody asked for is news, too, but no proof.
    bench.hear(ms(4), PEER_MAC, Outgoing::Reply { own: PEER, to: OURS, mac: OUR_MAC });
    assert_eq!(bench.state(PEER), Some(NeighbourState::Stale { mac: PEER_MAC }));
}

#[test]
fn what_nobody_asked_for_adds_no_neighbour() {
    let mut bench = Bench::new();
    bench.hear(ms(0), PEER_MAC, Outgoing::Announce { own: PEER });
    bench.hear(ms(0), PEER_MAC, Outgoing::Reply { own: PEER, to: OURS, mac: OUR_MAC });
    bench.hear(ms(0), PEER_MAC, Outgoing::Announce { own: PEER_V6 });
    bench.hear(ms(0), PEER_MAC, Outgoing::Reply { own: PEER_V6, to: OURS_V6, mac: OUR_MAC });
    assert!(bench.machine.is_empty());
    // Nor does a host that is not on this network: packets to it go through the gateway.
    bench.hear(ms(0), PEER_MAC, Outgoing::Request { from: FAR, target: OURS, to: None });
    assert!(bench.machine.is_empty());
    assert_eq!(bench.sent().len(), 1, "it is answered");
}

#[test]
fn an_announcement_ends_the_waiting() {
    let mut bench = Bench::new();
    bench.machine.resolve(ms(0), PEER);
    bench.hear(ms(500), PEER_MAC, Outgoing::Announce { own: PEER });
    assert_eq!(bench.events(), [Event::Resolved { ip: PEER, mac: PEER_MAC }]);
    assert_eq!(bench.state(PEER), Some(NeighbourState::Stale { mac: PEER_MAC }), "it did not answer us");
}

#[test]
fn a_neighbour_in_use_is_asked_by_unicast_and_stays() {
    let mut bench = Bench::new();
    bench.resolved(ms(0), PEER, OURS, PEER_MAC);
    let Some(NeighbourState::Reachable { until, .. }) = bench.state(PEER) else { panic!("reachable") };
    assert!((15_000..=45_000).contains(&until.as_millis()), "RFC 4861, 6.3.2: {until:?}");
    assert_eq!(bench.run_until(ms(100_000)), [], "an unused neighbour costs nothing");

    assert_eq!(bench.machine.resolve(ms(100_000), PEER), NextHop::Mac(PEER_MAC), "stale is good enough");
    assert_eq!(bench.run_until(ms(104_999)), []);
    assert_eq!(bench.run_until(ms(105_000)), [(105_000, PEER_MAC, request(PEER))]);
    assert_eq!(bench.machine.resolve(ms(105_001), PEER), NextHop::Mac(PEER_MAC));
    bench.hear(ms(105_002), PEER_MAC, Outgoing::Reply { own: PEER, to: OURS, mac: OUR_MAC });
    assert!(matches!(bench.state(PEER), Some(NeighbourState::Reachable { mac: PEER_MAC, .. })));
    assert_eq!(bench.events(), [], "nobody waited");
}

#[test]
fn a_neighbour_that_went_away_is_forgotten_and_found_elsewhere() {
    let mut bench = Bench::new();
    bench.resolved(ms(0), PEER, OURS, PEER_MAC);
    bench.machine.resolve(ms(100_000), PEER);
    let probes = bench.run_until(ms(107_999));
    let (times, to): (Vec<u64>, Vec<_>) = probes.into_iter().map(|(at, to, _)| (at, to)).unzip();
    assert_eq!((times, to), (vec![105_000, 106_000, 107_000], vec![PEER_MAC; 3]));
    assert_eq!(bench.run_until(ms(108_000)), []);
    assert_eq!((bench.events(), bench.state(PEER)), (vec![], None));
    assert_eq!(bench.machine.stats().failures, 1);
    assert_eq!(
        bench.machine.resolve(ms(108_001), PEER),
        NextHop::Pending(PEER),
        "the last hop is not remembered"
    );
    assert_eq!(bench.sent(), [(MacAddress::BROADCAST, request(PEER))]);
    bench.hear(ms(108_002), OTHER_MAC, Outgoing::Reply { own: PEER, to: OURS, mac: OUR_MAC });
    assert_eq!(bench.machine.resolve(ms(108_003), PEER), NextHop::Mac(OTHER_MAC));
}

#[test]
fn frames_are_those_of_rfc_826() {
    let frame = Outgoing::Request { from: OURS, target: PEER, to: None }.frame(OUR_MAC);
    #[rustfmt::skip]
    let expected = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x08, 0x06,
        0x00, 0x01, 0x08, 0x00, 6, 4, 0x00, 0x01,
        2, 0, 0, 0, 0, 1, 192, 0, 2, 1,
        0, 0, 0, 0, 0, 0, 192, 0, 2, 2,
    ];
    assert_eq!(&frame[..], &expected[..]);
}

#[test]
fn after_an_interruption_who_is_missing_is_asked_for_anew() {
    let mut bench = Bench::new();
    bench.resolved(ms(0), v4(3), OURS, OTHER_MAC);
    bench.machine.resolve(ms(0), PEER);
    bench.sent();
    let known = bench.state(v4(3));
    assert_eq!(bench.run_until(ms(2_000)).len(), 2, "the last request of three is out");
    bench.machine.restored(ms(2_500));
    assert_eq!(bench.sent(), [(MacAddress::BROADCAST, request(PEER))]);
    assert_eq!(bench.run_until(ms(5_499)).len(), 2);
    assert_eq!(bench.events(), []);
    assert_eq!(bench.run_until(ms(5_500)), []);
    assert_eq!((bench.events(), bench.state(v4(3))), (vec![Event::Failed { ip: PEER }], known));
}
