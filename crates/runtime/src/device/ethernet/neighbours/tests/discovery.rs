//! IPv6 neighbour discovery: RFC 4861.

use super::*;

fn solicitation(target: IpAddr) -> Incoming {
    let (IpAddr::V6(source), IpAddr::V6(target)) = (OURS_V6, target) else { panic!("IPv6") };
    let mac = Some(OUR_MAC);
    Incoming::Solicitation(Solicitation { frame_source: OUR_MAC, source: Some(source), target, mac })
}

/// An advertisement for the peer from the station `from`, as a test wants it.
fn advertise(from: MacAddress, mac: Option<MacAddress>, solicited: bool, overrides: bool) -> Vec<u8> {
    let frame = Outgoing::Reply { own: PEER_V6, to: OURS_V6, mac: OUR_MAC }.frame(from);
    let mut frame = frame.to_vec();
    frame[58] = u8::from(solicited) << 6 | u8::from(overrides) << 5;
    match mac {
        Some(mac) => frame[80..86].copy_from_slice(&mac.0),
        None => {
            frame.truncate(78);
            frame[19] = 24;
        }
    }
    checksummed(frame)
}

#[test]
fn a_neighbour_is_asked_for_by_its_solicited_node_group() {
    let mut bench = Bench::new();
    assert_eq!(bench.machine.resolve(ms(0), PEER_V6), NextHop::Pending(PEER_V6));
    let group = MacAddress([0x33, 0x33, 0xff, 0, 0, 2]);
    assert_eq!(bench.sent(), [(group, solicitation(PEER_V6))]);
    assert_eq!(bench.run_until(ms(1_500)), [(1_000, group, solicitation(PEER_V6))]);
    bench.hear(ms(1_500), PEER_MAC, Outgoing::Reply { own: PEER_V6, to: OURS_V6, mac: OUR_MAC });
    assert_eq!(bench.events(), [Event::Resolved { ip: PEER_V6, mac: PEER_MAC }]);
    assert!(matches!(bench.state(PEER_V6), Some(NeighbourState::Reachable { mac: PEER_MAC, .. })));
}

#[test]
fn frames_have_the_checksum_of_rfc_4443() {
    let messages = [
        Outgoing::Request { from: OURS_V6, target: PEER_V6, to: None },
        Outgoing::Probe { target: OURS_V6 },
        Outgoing::Reply { own: OURS_V6, to: PEER_V6, mac: PEER_MAC },
        Outgoing::Announce { own: OURS_V6 },
    ];
    for message in messages {
        let frame = message.frame(OUR_MAC);
        assert_eq!(frame[21], 255, "hop limit");
        assert_eq!(frame.to_vec(), checksummed(frame.to_vec()), "{message:?}");
    }
}

#[test]
fn our_address_is_answered_for_and_the_asker_remembered() {
    let mut bench = Bench::new();
    bench.hear(ms(0), PEER_MAC, Outgoing::Request { from: PEER_V6, target: OURS_V6, to: None });
    let (IpAddr::V6(target), frame_source) = (OURS_V6, OUR_MAC) else { panic!("IPv6") };
    let mac = Some(OUR_MAC);
    let reply = Advertisement { frame_source, target, mac, solicited: true, overrides: true };
    assert_eq!(bench.sent(), [(PEER_MAC, Incoming::Advertisement(reply))]);
    assert_eq!(bench.state(PEER_V6), Some(NeighbourState::Stale { mac: PEER_MAC }));
    // Another host would like to have the address: all nodes hear that it is taken (RFC 4861,
    // section 7.2.4).
    bench.hear(ms(1), OTHER_MAC, Outgoing::Probe { target: OURS_V6 });
    let all_nodes = MacAddress([0x33, 0x33, 0, 0, 0, 1]);
    assert_eq!(
        bench.sent(),
        [(all_nodes, Incoming::Advertisement(Advertisement { solicited: false, ..reply }))]
    );
}

/// RFC 4861, section 7.2.5, case by case: flags and address of an advertisement, what the neighbour
/// is afterwards.
#[test]
fn overriding_follows_the_rules() {
    let reachable =
        |mac| move |state| matches!(state, NeighbourState::Reachable { mac: at, .. } if at == mac);
    let stale = |mac| move |state| state == NeighbourState::Stale { mac };
    type Check = Box<dyn Fn(NeighbourState) -> bool>;
    type Case = (bool, bool, bool, Option<MacAddress>, Check, &'static str);
    let (same, other, none) = (Some(PEER_MAC), Some(OTHER_MAC), None);
    // What the neighbour is at first; solicited, override, address; what it is then.
    let cases: [Case; 10] = [
        (true, false, false, other, Box::new(stale(PEER_MAC)), "rule I a"),
        (true, true, false, other, Box::new(stale(PEER_MAC)), "rule I a, solicited"),
        (false, false, false, other, Box::new(stale(PEER_MAC)), "rule I b"),
        (false, true, false, other, Box::new(stale(PEER_MAC)), "rule I b, solicited"),
        (false, true, false, same, Box::new(reachable(PEER_MAC)), "II: the same, solicited"),
        (false, true, false, none, Box::new(reachable(PEER_MAC)), "II: no address, solicited"),
        (true, true, true, other, Box::new(reachable(OTHER_MAC)), "II: override, solicited"),
        (true, false, true, other, Box::new(stale(OTHER_MAC)), "II: override, unsolicited"),
        (true, false, true, same, Box::new(reachable(PEER_MAC)), "II: the same, unsolicited"),
        (false, false, true, same, Box::new(stale(PEER_MAC)), "II: the same, unsolicited, stays stale"),
    ];
    for (is_reachable, solicited, overrides, mac, check, rule) in cases {
        let mut bench = Bench::new();
        if is_reachable {
            bench.resolved(ms(0), PEER_V6, OURS_V6, PEER_MAC);
        } else {
            bench.hear(ms(0), PEER_MAC, Outgoing::Request { from: PEER_V6, target: OURS_V6, to: None });
        }
        assert!(bench.machine.ingest(ms(1), &advertise(PEER_MAC, mac, solicited, overrides)));
        let state = bench.state(PEER_V6).expect("it is remembered");
        assert!(check(state), "{rule}: {state:?}");
    }
}

#[test]
fn an_advertisement_without_the_address_does_not_resolve() {
    let mut bench = Bench::new();
    bench.machine.resolve(ms(0), PEER_V6);
    bench.machine.ingest(ms(1), &advertise(PEER_MAC, None, true, true));
    assert_eq!(bench.events(), []);
    // One that does not override does: there is nothing to override.
    bench.machine.ingest(ms(2), &advertise(PEER_MAC, Some(PEER_MAC), true, false));
    assert_eq!(bench.events(), [Event::Resolved { ip: PEER_V6, mac: PEER_MAC }]);
}

/// RFC 4861, sections 7.1.1 and 7.1.2.
#[test]
fn messages_that_break_a_rule_are_dropped() {
    let request = Outgoing::Request { from: PEER_V6, target: OURS_V6, to: None }.frame(PEER_MAC).to_vec();
    let probe = Outgoing::Probe { target: OURS_V6 }.frame(PEER_MAC).to_vec();
    let announcement = Outgoing::Announce { own: PEER_V6 }.frame(PEER_MAC).to_vec();
    let changed = |frame: &[u8], at: usize, value: u8| {
        let mut frame = frame.to_vec();
        frame[at] = value;
        checksummed(frame)
    };
    let mut short = request.clone();
    short.truncate(77);
    short[19] = 23;
    let mut bad_checksum = request.clone();
    bad_checksum[56] ^= 1;
    let mut probe_with_address = request.clone();
    probe_with_address[22..38].fill(0);
    let bad = [
        ("hop limit", changed(&request, 21, 254)),
        ("code", changed(&request, 55, 1)),
        ("too short", checksummed(short)),
        ("checksum", bad_checksum),
        ("multicast target", changed(&request, 62, 0xff)),
        ("an option of no length", changed(&request, 79, 0)),
        ("an option longer than the message", changed(&request, 79, 2)),
        ("a group's address", changed(&request, 80, 1)),
        ("a probe with an address", checksummed(probe_with_address)),
        ("a probe to another group", changed(&probe, 53, 9)),
        ("a multicast advertisement that is solicited", changed(&announcement, 58, 0x60)),
    ];
    for (index, (what, frame)) in bad.iter().enumerate() {
        let mut bench = Bench::new();
        assert!(bench.machine.ingest(ms(0), frame), "{what}");
        assert_eq!(bench.machine.stats().invalid, 1, "{index}: {what}");
        assert_eq!((bench.sent(), bench.machine.len()), (vec![], 0), "{what}");
    }
}

#[test]
fn what_is_not_neighbour_discovery_is_left_alone() {
    let mut bench = Bench::new();
    let mut echo = Outgoing::Request { from: PEER_V6, target: OURS_V6, to: None }.frame(PEER_MAC).to_vec();
    echo[54] = 128;
    assert!(!bench.machine.ingest(ms(0), &checksummed(echo)));
    let mut tcp = Outgoing::Request { from: PEER_V6, target: OURS_V6, to: None }.frame(PEER_MAC).to_vec();
    tcp[20] = 6;
    assert!(!bench.machine.ingest(ms(0), &tcp));
    assert!(!bench.machine.ingest(ms(0), &[0; 13]));
}
