//! Next hops, and who is remembered.

use super::*;

#[test]
fn the_next_hop_is_the_longest_match() {
    let mut bench = Bench::new();
    let machine = &mut bench.machine;
    assert_eq!(machine.hop(PEER), Ok(Hop::Neighbour(PEER)));
    assert_eq!(machine.hop(FAR), Ok(Hop::Neighbour(GATEWAY)));
    assert_eq!(machine.hop(GATEWAY), Ok(Hop::Neighbour(GATEWAY)));
    assert_eq!(machine.hop(PEER_V6), Ok(Hop::Neighbour(PEER_V6)));
    let link_local = "fe80::7".parse().expect("an address");
    assert_eq!(machine.hop(link_local), Ok(Hop::Neighbour(link_local)), "RFC 4861, section 5.1");
    let far_v6: IpAddr = "2001:db8:1::1".parse().expect("an address");
    assert_eq!(machine.resolve(ms(0), far_v6), NextHop::Unreachable(Unreachable::NoRoute(far_v6)));
    assert_eq!(machine.resolve(ms(0), OURS), NextHop::Unreachable(Unreachable::Own(OURS)));
    for nowhere in ["0.0.0.0", "127.0.0.1", "::", "::1"] {
        let nowhere = nowhere.parse().expect("an address");
        assert_eq!(machine.hop(nowhere), Err(Unreachable::NotOnNetworks(nowhere)));
    }
    for all in ["255.255.255.255", "192.0.2.255"] {
        assert_eq!(machine.hop(all.parse().expect("an address")), Ok(Hop::Group(MacAddress::BROADCAST)));
    }
    let group = machine.resolve(ms(0), "ff02::fb".parse().expect("an address"));
    assert_eq!(group, NextHop::Mac(MacAddress([0x33, 0x33, 0, 0, 0, 0xfb])));
    assert!(machine.is_empty(), "no group, no broadcast is asked for");
}

#[test]
fn a_network_of_two_has_no_broadcast() {
    let attachment = Attachment::new(OUR_MAC).address("192.0.2.0/31".parse().expect("a network"));
    let machine = Neighbours::new(attachment, NeighbourConfig::default(), [0; 32]).expect("good");
    assert_eq!(machine.hop(v4(1)), Ok(Hop::Neighbour(v4(1))), "RFC 3021");
}

#[test]
fn bad_addresses_are_named() {
    let net = |text: &str| text.parse::<IpNet>().expect("a network");
    let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
    let error = |attachment: Attachment| {
        let machine = Neighbours::new(attachment, NeighbourConfig::default(), [0; 32]);
        machine.expect_err("it cannot be")
    };
    let base = Attachment::new(OUR_MAC);
    assert_eq!(error(base.clone()), AttachmentError::NoAddress);
    let group = net("224.0.0.1/4");
    assert_eq!(error(base.clone().address(group)), AttachmentError::NotAHost(group.addr()));
    let base = base.address(net("192.0.2.1/24"));
    let gateway = |text: &str| error(base.clone().gateway(ip(text)));
    assert_eq!(gateway("192.0.2.1"), AttachmentError::OwnGateway(OURS));
    assert_eq!(gateway("192.0.3.1"), AttachmentError::GatewayOffLink(ip("192.0.3.1")));
    assert_eq!(gateway("fe80::1"), AttachmentError::GatewayOffLink(ip("fe80::1")));
    let two = base.clone().gateway(v4(2)).gateway(v4(3));
    assert_eq!(error(two), AttachmentError::TwoGateways(v4(2), v4(3)));
    let multicast = Attachment { mac: MacAddress::BROADCAST, ..base.clone() };
    assert_eq!(error(multicast), AttachmentError::NotAStation(MacAddress::BROADCAST));
    let alone = Attachment::new(OUR_MAC).address(net("192.0.2.1/32")).gateway(ip("10.0.0.1"));
    assert_eq!(alone.check(), Ok(()), "a host of its own network has its gateway outside");
    assert_eq!(base.address(net("2001:db8::1/64")).gateway(ip("fe80::1")).check(), Ok(()));
}

#[test]
fn one_asks_from_the_address_in_the_neighbours_network() {
    let attachment = attachment()
        .address("10.0.0.1/8".parse().expect("a network"))
        .address("10.1.0.1/16".parse().expect("a network"));
    let machine = Neighbours::new(attachment, NeighbourConfig::default(), [0; 32]).expect("good");
    let from = |to: &str| machine.source_for(to.parse().expect("an address")).map(|ip| ip.to_string());
    assert_eq!(from("192.0.2.9").as_deref(), Some("192.0.2.1"));
    assert_eq!(from("10.2.0.9").as_deref(), Some("10.0.0.1"));
    assert_eq!(from("10.1.0.9").as_deref(), Some("10.1.0.1"));
    assert_eq!(from("fe80::9").as_deref(), Some("2001:db8::1"));
}

/// A bench that remembers few, with a gateway and a peer in use.
fn small(max_entries: usize) -> Bench {
    let mut bench = Bench::with(NeighbourConfig { max_entries, ..NeighbourConfig::default() });
    bench.resolved(ms(0), GATEWAY, OURS, OTHER_MAC);
    bench.resolved(ms(0), PEER, OURS, PEER_MAC);
    bench
}

#[test]
fn a_flood_of_askers_forgets_only_askers() {
    let mut bench = small(8);
    for host in 3..250 {
        let asker = MacAddress([2, 1, 0, 0, 0, host]);
        bench.hear(ms(u64::from(host)), asker, Outgoing::Request { from: v4(host), target: OURS, to: None });
        assert!(bench.sent().len() == 1 && bench.machine.len() <= 9);
    }
    assert_eq!(bench.machine.resolve(ms(300), PEER), NextHop::Mac(PEER_MAC));
    assert_eq!(bench.machine.resolve(ms(300), FAR), NextHop::Mac(OTHER_MAC));
    assert!(bench.state(v4(249)).is_some() && bench.state(v4(3)).is_none(), "the longest unheard goes first");
    assert_eq!((bench.machine.stats().evictions, bench.machine.stats().not_learned), (247 - 7, 0));
}

#[test]
fn a_flood_of_silent_destinations_forgets_only_those() {
    let mut bench = small(8);
    for host in 3..250 {
        bench.machine.resolve(ms(u64::from(host)), v4(host));
        assert!(bench.machine.len() <= 9);
    }
    assert_eq!(bench.machine.resolve(ms(300), PEER), NextHop::Mac(PEER_MAC));
    assert_eq!(bench.machine.resolve(ms(300), FAR), NextHop::Mac(OTHER_MAC));
    let failed = bench.events();
    assert_eq!(failed.len(), 247 - 7, "who waits for a forgotten one is told");
    assert_eq!(failed.first(), Some(&Event::Failed { ip: v4(3) }));
}

#[test]
fn the_longest_unused_goes_and_an_asker_takes_nobodys_place() {
    let mut bench = small(2);
    bench.resolved(ms(2_000), v4(3), OURS, PEER_MAC);
    bench.machine.resolve(ms(4_000), PEER);
    bench.hear(ms(5_000), OTHER_MAC, Outgoing::Request { from: v4(9), target: OURS, to: None });
    assert_eq!((bench.state(v4(9)), bench.machine.stats().not_learned), (None, 1));
    assert_eq!(bench.sent().len(), 1, "it is answered all the same");
    bench.resolved(ms(6_000), v4(4), OURS, PEER_MAC);
    assert!(bench.state(v4(3)).is_none() && bench.state(PEER).is_some());
    assert!(bench.state(GATEWAY).is_some(), "the gateway was unused for longest");
}
