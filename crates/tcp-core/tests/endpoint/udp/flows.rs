//! Flows: any destination, idle time, and bounds.

use super::*;
use ackline_tcp_core::events::WakeReason;

#[test]
fn a_flow_is_a_four_tuple_and_answers_from_its_address() {
    for version in [0, 1] {
        let mut host = Host::tunnel(|_| {});
        let elsewhere = ["203.0.113.5:443", "[2001:db8::5]:443"][version];
        let (one, two) = (of(PEER[version], 1_000), of(PEER[version], 1_001));
        for (from, data) in [(&one, b"a"), (&two, b"b"), (&one, b"c")] {
            assert!(matches!(host.arrives(from, elsewhere, data), Ingested::Datagram(_)));
        }
        assert_eq!(host.events()[0], UdpEvent::Flow);
        let flows: Vec<UdpId> = std::iter::from_fn(|| host.endpoint.udp().next_flow()).collect();
        assert_eq!(flows.len(), 2);
        assert_eq!(host.endpoint.udp().addresses(flows[0]), Some((at(elsewhere), Some(at(&one)))));
        assert_eq!(host.received(flows[0]), [(at(&one), b"a".to_vec()), (at(&one), b"c".to_vec())]);
        assert_eq!(host.received(flows[1]), [(at(&two), b"b".to_vec())]);
        host.send(flows[1], None, b"answer").unwrap();
        let left = host.leaves();
        assert_eq!(read(&left[0]), (at(elsewhere), at(&two), b"answer".to_vec()));
        // It is told what ICMP reports.
        host.inject(&unreachable(&left[0], PORT));
        assert_eq!(host.endpoint.udp().recv(flows[1]), Err(UdpError::Refused));
        // Closed, it begins anew.
        host.endpoint.udp().close(host.now, flows[0]);
        assert_eq!(host.endpoint.udp_flows(), 1);
        host.arrives(&one, elsewhere, b"d");
        let again = host.endpoint.udp().next_flow().unwrap();
        assert_ne!(again, flows[0]);
        assert_eq!(host.received(again), [(at(&one), b"d".to_vec())]);
    }
}

#[test]
fn a_socket_goes_before_flows_and_one_takes_them() {
    let mut host = Host::tunnel(|_| {});
    let id = host.bind("10.0.0.1:7");
    assert_eq!(host.arrives("10.0.0.2:1", "10.0.0.1:7", b"x"), Ingested::Datagram(id));
    assert_eq!(host.endpoint.udp().take_flows(host.now, true), Err(UdpError::InUse));
    host.arrives("10.0.0.2:1", "10.0.0.1:8", b"x");
    assert_eq!(host.endpoint.udp_flows(), 1);
    host.endpoint.udp().take_flows(host.now, false).unwrap();
    assert_eq!(host.endpoint.udp_flows(), 0, "nobody has accepted it");
    assert_eq!(host.arrives("10.0.0.2:1", "10.0.0.1:8", b"x"), Ingested::Handled, "refused");
    assert_eq!(host.endpoint.udp().take_flows(host.now, true), Ok(()));
}

#[test]
fn an_idle_flow_ends_and_one_to_dns_sooner() {
    let mut host = Host::tunnel(|config| {
        config.udp_flow_timeout = Duration::from_secs(60);
        config.udp_dns_timeout = Duration::from_secs(10);
    });
    assert_eq!(host.endpoint.poll_timeout(), None);
    let begin = host.now;
    host.arrives("10.0.0.2:1", "203.0.113.5:443", b"x");
    host.arrives("10.0.0.2:1", "203.0.113.5:53", b"x");
    let [flow, dns] = [(); 2].map(|()| host.endpoint.udp().next_flow().unwrap());
    let wakeup = host.endpoint.poll_timeout().unwrap();
    assert_eq!((wakeup.at, wakeup.reason), (begin + Duration::from_secs(10), WakeReason::UdpFlow));
    // Either direction keeps it.
    host.after(Duration::from_secs(9));
    host.send(dns, None, b"answer").unwrap();
    host.after(Duration::from_secs(9));
    host.arrives("10.0.0.2:1", "203.0.113.5:53", b"again");
    host.after(Duration::from_millis(9_999));
    assert_eq!(host.endpoint.udp_flows(), 2);
    host.received(dns);
    host.events();
    host.after(Duration::from_millis(1));
    assert_eq!(host.events(), [UdpEvent::Socket(dns)]);
    assert_eq!(host.endpoint.udp().recv(dns), Err(UdpError::Ended));
    assert_eq!(host.send(dns, None, b"x"), Err(UdpError::Ended));
    // What came before can be received.
    host.after(Duration::from_secs(60));
    assert_eq!(host.endpoint.udp().recv(flow).unwrap().unwrap().data[..], *b"x");
    assert_eq!(host.endpoint.udp().recv(flow), Err(UdpError::Ended));
    assert_eq!(host.endpoint.counters().udp_flows_idle, 2);
    assert_eq!(host.endpoint.poll_timeout(), None);
    for id in [flow, dns] {
        host.endpoint.udp().close(host.now, id);
    }
    assert_eq!(host.endpoint.udp_flows(), 0);
}

/// Whoever forges addresses gets no answers. So it displaces its own flows, not those of others.
#[test]
fn a_flood_of_flows_is_bounded_and_displaces_none_that_was_answered() {
    let mut host = Host::tunnel(|config| config.max_udp_flows = 100);
    host.arrives("10.0.0.2:1", "203.0.113.5:443", b"x");
    let honest = host.endpoint.udp().next_flow().unwrap();
    host.received(honest);
    host.send(honest, None, b"answer").unwrap();
    host.leaves();
    let (before, mut most) = (host.endpoint.memory(), 0);
    for number in 0..20_000_u32 {
        let [_, _, c, d] = number.to_be_bytes();
        host.arrives(&format!("10.1.{c}.{d}:9"), "203.0.113.7:9", &[0; 1_000]);
        host.leaves();
        most = most.max(host.endpoint.memory());
        assert!(host.endpoint.udp_flows() <= 100);
    }
    assert!(most - before < 100 * (1_000 + 800), "{before} {most}");
    host.arrives("10.0.0.2:1", "203.0.113.5:443", b"still there");
    assert_eq!(host.received(honest).len(), 1);
    let counters = host.endpoint.counters();
    assert_eq!((counters.udp_curr_flows, counters.udp_flows_begun), (100, 20_001));
    assert_eq!((counters.udp_flows_evicted, counters.udp_flows_refused), (19_901, 0));
    // The newest are there.
    let accepted = std::iter::from_fn(|| host.endpoint.udp().next_flow()).count();
    assert_eq!(accepted, 99);
}

#[test]
fn flows_that_the_application_has_keep_their_place_until_it_lets_go() {
    let mut host = Host::tunnel(|config| config.max_udp_flows = 3);
    let mut flows = vec![];
    for port in 1..=3 {
        host.arrives(&of(PEER[0], port), "203.0.113.5:443", b"x");
        flows.push(host.endpoint.udp().next_flow().unwrap());
        host.received(flows[flows.len() - 1]);
    }
    host.send(flows[0], None, b"answer").unwrap();
    host.events();
    // The oldest without an answer ends, but its application has it.
    assert_eq!(host.arrives(&of(PEER[0], 4), "203.0.113.5:443", b"x"), dropped(DropReason::UdpFlowsFull));
    assert_eq!(host.events(), [UdpEvent::Socket(flows[1])]);
    assert_eq!(host.endpoint.udp().recv(flows[1]), Err(UdpError::Ended));
    host.endpoint.udp().close(host.now, flows[1]);
    assert!(matches!(host.arrives(&of(PEER[0], 4), "203.0.113.5:443", b"x"), Ingested::Datagram(_)));
    assert_eq!(host.endpoint.udp_flows(), 3);
    let counters = host.endpoint.counters();
    assert_eq!((counters.udp_flows_evicted, counters.udp_flows_refused), (1, 1));
}

/// The peer's kernel finds its socket by what the error quotes.
#[test]
fn a_refused_flow_is_told_to_the_peer() {
    for version in [0, 1] {
        let mut host = Host::tunnel(|_| {});
        let (peer, elsewhere) = (of(PEER[version], 1_000), ["203.0.113.5:53", "[2001:db8::5]:53"][version]);
        host.arrives(&peer, elsewhere, b"question");
        let flow = host.endpoint.udp().next_flow().unwrap();
        host.endpoint.udp().refuse(host.now, flow);
        let left = host.leaves();
        assert_eq!((left.len(), host.endpoint.udp_flows()), (1, 0));
        let header = [28, 48][version];
        assert_eq!(left[0][header - 8..header - 6], [[3, 3], [1, 4]][version]);
        assert_eq!(read(&left[0][header..]), (at(&peer), at(elsewhere), vec![]));
        // Another host that is connected like that believes it.
        let mut connected = Host::new(|config| config.addresses = vec![PEER[version].parse().unwrap()]);
        let id = connected.bind(&peer);
        connected.endpoint.udp().connect(connected.now, id, at(elsewhere)).unwrap();
        assert_eq!(connected.inject(&left[0]), Ingested::Handled);
        assert_eq!(connected.endpoint.udp().recv(id), Err(UdpError::Refused));
    }
}

/// RFC 768: port 0 wants no answer.
#[test]
fn a_peer_without_a_port_is_not_answered() {
    let mut host = Host::tunnel(|_| {});
    host.arrives("10.0.0.2:0", "203.0.113.5:9", b"x");
    let flow = host.endpoint.udp().next_flow().unwrap();
    assert_eq!(host.received(flow).len(), 1);
    assert_eq!(host.send(flow, None, b"x"), Err(UdpError::BadRemote));
}

/// RFC 4787, section 5: an address translation may let through what another port or host sends. It
/// is shown as its sender's.
#[test]
fn a_flows_peer_can_be_sent_to_from_any_address_of_the_endpoint() {
    for version in [0, 1] {
        let mut host = Host::tunnel(|_| {});
        let (elsewhere, peer) = (["203.0.113.5:443", "[2001:db8::5]:443"][version], of(PEER[version], 1_000));
        let other = ["203.0.113.6:9", "[2001:db8::6]:9"][version];
        host.arrives(&peer, elsewhere, b"x");
        let flow = host.endpoint.udp().next_flow().unwrap();
        host.endpoint.udp().send_from(host.now, flow, at(other), b"from another").unwrap();
        assert_eq!(read(&host.leaves()[0]), (at(other), at(&peer), b"from another".to_vec()));
        for (from, error) in [
            (["[2001:db8::6]:9", "203.0.113.6:9"][version], UdpError::NotLocal),
            (["224.0.0.1:9", "[ff02::1]:9"][version], UdpError::NotLocal),
        ] {
            assert_eq!(host.endpoint.udp().send_from(host.now, flow, at(from), b"x"), Err(error), "{from}");
        }
        // What the peer answers is a flow of its own.
        host.arrives(&peer, other, b"y");
        assert_ne!(host.endpoint.udp().next_flow(), None);
    }
    // A host with addresses of its own forges none, and a socket is no flow.
    let mut host = Host::new(|_| {});
    host.endpoint.udp().take_flows(host.now, true).unwrap();
    host.arrives("10.0.0.2:1", "10.0.0.1:8", b"x");
    let flow = host.endpoint.udp().next_flow().unwrap();
    let send = |host: &mut Host, id| host.endpoint.udp().send_from(host.now, id, at("203.0.113.6:9"), b"x");
    assert_eq!(send(&mut host, flow), Err(UdpError::NotLocal));
    let socket = host.bind("10.0.0.1:7");
    assert_eq!(send(&mut host, socket), Err(UdpError::NotConnected));
}

/// RFC 4787, REQ-12: an ICMP error does not end a mapping.
#[test]
fn a_flow_goes_on_after_its_peer_was_told_that_nobody_listens() {
    for version in [0, 1] {
        let mut host = Host::tunnel(|_| {});
        let (elsewhere, peer) = (["203.0.113.5:443", "[2001:db8::5]:443"][version], of(PEER[version], 1_000));
        host.arrives(&peer, elsewhere, b"x");
        let flow = host.endpoint.udp().next_flow().unwrap();
        host.endpoint.udp().tell_refused(host.now, flow);
        let left = host.leaves();
        assert_eq!(left.len(), 1);
        let header = [20, 40][version];
        assert_eq!(left[0][header..header + 2], [[3, 3], [1, 4]][version], "port unreachable");
        assert_eq!(host.endpoint.udp_flows(), 1);
        host.endpoint.udp().send(host.now, flow, None, b"answer").unwrap();
        assert_eq!(read(&host.leaves()[0]), (at(elsewhere), at(&peer), b"answer".to_vec()));
    }
}
