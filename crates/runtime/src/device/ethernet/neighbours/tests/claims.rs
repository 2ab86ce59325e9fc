//! Own addresses: RFC 5227, and RFC 4862, section 5.4.

use super::*;

fn times(sent: &[(u64, MacAddress, Incoming)], v4: bool) -> Vec<u64> {
    let is_v4 = |message: &Incoming| matches!(message, Incoming::Arp(_));
    sent.iter().filter(|(.., message)| is_v4(message) == v4).map(|&(at, ..)| at).collect()
}

#[test]
fn addresses_are_probed_then_announced() {
    let mut bench = Bench::unclaimed(NeighbourConfig::default());
    bench.machine.claim(ms(0));
    let sent = bench.sent();
    let (IpAddr::V4(ours), IpAddr::V6(ours_v6)) = (OURS, OURS_V6) else { panic!("one of each") };
    let probe = Arp {
        is_reply: false,
        sender_mac: OUR_MAC,
        sender: Ipv4Addr::UNSPECIFIED,
        target_mac: MacAddress::default(),
        target: ours,
    };
    let dad = Solicitation { frame_source: OUR_MAC, source: None, target: ours_v6, mac: None };
    let group = MacAddress([0x33, 0x33, 0xff, 0, 0, 1]);
    let expected = [(MacAddress::BROADCAST, Incoming::Arp(probe)), (group, Incoming::Solicitation(dad))];
    assert_eq!(sent, expected);
    let groups: Vec<String> = bench.machine.groups().iter().map(Ipv6Addr::to_string).collect();
    assert_eq!(groups, ["ff02::1", "ff02::1:ff00:1"]);

    let more = bench.run_until(ms(299));
    assert_eq!((times(&more, true), times(&more, false)), (vec![100, 200], vec![100, 200]));
    assert!(!bench.machine.is_settled());
    let announced = bench.run_until(ms(60_000));
    assert_eq!((times(&announced, true), times(&announced, false)), (vec![300, 2_300], vec![300, 2_300]));
    assert!(bench.machine.is_settled());
    assert_eq!(bench.events(), [Event::Claimed { ip: OURS }, Event::Claimed { ip: OURS_V6 }]);
    let announcement = Arp { sender: ours, ..probe };
    assert_eq!(announced[0].2, Incoming::Arp(announcement), "RFC 5227, section 2.3");
}

#[test]
fn an_address_that_another_host_has_is_not_used() {
    let answers = [
        (OURS, Outgoing::Reply { own: OURS, to: v4(0), mac: OUR_MAC }),
        (OURS, Outgoing::Announce { own: OURS }),
        (OURS, Outgoing::Request { from: OURS, target: PEER, to: None }),
        // Another host is about to take it at the same time.
        (OURS, Outgoing::Probe { target: OURS }),
        (OURS_V6, Outgoing::Announce { own: OURS_V6 }),
        (OURS_V6, Outgoing::Probe { target: OURS_V6 }),
    ];
    for (ip, answer) in answers {
        let mut bench = Bench::unclaimed(NeighbourConfig::default());
        bench.machine.claim(ms(0));
        bench.sent();
        bench.hear(ms(50), OTHER_MAC, answer);
        assert_eq!(bench.events(), [Event::InUse { ip, mac: OTHER_MAC }], "{answer:?}");
        let other = if ip == OURS { OURS_V6 } else { OURS };
        let sent = bench.run_until(ms(60_000));
        assert_eq!(times(&sent, ip == OURS), [], "{answer:?}");
        assert_eq!(bench.events(), [Event::Claimed { ip: other }]);
        bench.hear(ms(60_000), PEER_MAC, Outgoing::Request { from: PEER, target: OURS, to: None });
        assert_eq!(
            bench.sent().len(),
            usize::from(ip != OURS),
            "an address that is not ours is not answered for"
        );
    }
}

#[test]
fn a_tentative_address_is_not_answered_for() {
    let mut bench = Bench::unclaimed(NeighbourConfig::default());
    bench.machine.claim(ms(0));
    bench.sent();
    bench.hear(ms(50), PEER_MAC, Outgoing::Request { from: PEER, target: OURS, to: None });
    bench.hear(ms(50), PEER_MAC, Outgoing::Request { from: PEER_V6, target: OURS_V6, to: None });
    assert_eq!((bench.sent(), bench.events()), (vec![], vec![]));
    // Our own probe, sent back by the network, is nobody's.
    bench.hear(ms(60), OUR_MAC, Outgoing::Probe { target: OURS });
    bench.hear(ms(60), OUR_MAC, Outgoing::Probe { target: OURS_V6 });
    assert_eq!(bench.events(), []);
}

#[test]
fn an_address_in_use_is_defended_once_per_interval() {
    for ip in [OURS, OURS_V6] {
        let mut bench = Bench::new();
        let rival = Outgoing::Announce { own: ip };
        for at in [0, 1, 9_999] {
            bench.hear(ms(at), OTHER_MAC, rival);
        }
        assert_eq!(bench.events(), [Event::Conflict { ip, mac: OTHER_MAC }]);
        assert_eq!(bench.sent().len(), 1, "RFC 5227, section 2.4: it must not storm");
        bench.hear(ms(10_000), OTHER_MAC, rival);
        assert_eq!(bench.sent().len(), 1);
        let stats = bench.machine.stats();
        assert_eq!((stats.conflicts, stats.defences), (4, 2));
        assert!(bench.machine.is_empty(), "the rival is no neighbour");
    }
}
