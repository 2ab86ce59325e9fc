//! Sockets: who receives what, errors, bounds.

use super::*;

#[test]
fn datagrams_pass_both_ways_whatever_their_length() {
    for version in [0, 1] {
        let mut host = Host::new(|_| {});
        let (us, peer) = (of(US[version], 7), of(PEER[version], 4_000));
        let id = host.bind(&us);
        for len in [0, 1, 2, 77, 1_452] {
            let data: Vec<u8> = (0..len).map(|at: u32| at as u8).collect();
            assert_eq!(host.arrives(&peer, &us, &data), Ingested::Datagram(id));
            assert_eq!(host.received(id), [(at(&peer), data.clone())]);
            host.send(id, Some(&peer), &data).unwrap();
            let left = host.leaves();
            assert_eq!(
                left.iter().map(|packet| read(packet)).collect::<Vec<_>>(),
                [(at(&us), at(&peer), data)]
            );
        }
        let stats = host.endpoint.udp().stats(id).unwrap();
        assert_eq!(
            (stats.in_datagrams, stats.in_bytes, stats.out_datagrams, stats.out_bytes),
            (5, 1_532, 5, 1_532)
        );
        let counters = host.endpoint.counters();
        assert_eq!((counters.udp_in_datagrams, counters.udp_out_datagrams), (5, 5));
    }
}

/// RFC 768: a checksum of zero is written as all ones.
#[test]
fn a_checksum_is_never_zero() {
    let mut host = Host::new(|_| {});
    let id = host.bind("10.0.0.1:7");
    for data in 0..=u16::MAX {
        host.send(id, Some("10.0.0.2:9"), &data.to_be_bytes()).unwrap();
        for packet in host.leaves() {
            assert_ne!(packet[26..28], [0, 0], "{data}");
        }
    }
}

/// RFC 768 permits a datagram without a checksum; RFC 8200, section 8.1, does not.
#[test]
fn a_missing_checksum_is_ipv4s_alone_and_a_wrong_one_nobodys() {
    for version in [0, 1] {
        let mut host = Host::new(|_| {});
        let (us, peer) = (of(US[version], 7), of(PEER[version], 4_000));
        let id = host.bind(&us);
        let at = [26, 46][version];
        let mut bare = packet(&peer, &us, b"data");
        bare[at..at + 2].fill(0);
        let taken = [Ingested::Datagram(id), dropped(DropReason::UdpChecksum)][version];
        assert_eq!(host.inject(&bare), taken);
        let mut wrong = packet(&peer, &us, b"data");
        wrong[at] ^= 0x40;
        assert_eq!(host.inject(&wrong), dropped(DropReason::UdpChecksum));
    }
}

#[test]
fn the_more_specific_socket_receives() {
    let mut host = Host::new(|config| config.addresses.push("10.0.0.9".parse().unwrap()));
    let one = host.bind("10.0.0.1:7");
    assert_eq!(host.endpoint.udp().bind(host.now, at("10.0.0.1:7")), Err(UdpError::InUse));
    assert_eq!(host.endpoint.udp().bind(host.now, at("0.0.0.0:7")), Err(UdpError::InUse));
    assert_eq!(host.endpoint.udp().bind(host.now, at("10.0.0.77:8")), Err(UdpError::NotLocal));
    let any = host.bind("0.0.0.0:8");
    assert_eq!(host.endpoint.udp().bind(host.now, at("10.0.0.1:8")), Err(UdpError::InUse));
    let other = host.bind("[::]:8");
    for (from, to, id) in [
        ("10.0.0.2:1", "10.0.0.1:7", one),
        ("10.0.0.2:1", "10.0.0.9:8", any),
        ("[fd00::2]:1", "[fd00::1]:8", other),
    ] {
        assert_eq!(host.arrives(from, to, b"x"), Ingested::Datagram(id), "{to}");
    }
    assert_eq!(host.arrives("10.0.0.2:1", "10.0.0.9:7", b"x"), Ingested::Handled, "refused");
    // Port 0 picks one, and a closed socket gives its port back.
    let picked = host.bind("0.0.0.0:0");
    let (local, _) = host.endpoint.udp().addresses(picked).unwrap();
    assert!((32_768..=60_999).contains(&local.port()), "{local}");
    host.endpoint.udp().close(host.now, one);
    assert_eq!(host.endpoint.udp().recv(one), Err(UdpError::Closed));
    host.bind("10.0.0.1:7");
}

#[test]
fn a_connected_socket_hears_its_peer_alone() {
    for version in [0, 1] {
        let mut host = Host::new(|_| {});
        let id = host.bind(["0.0.0.0:7", "[::]:7"][version]);
        let peer = of(PEER[version], 53);
        assert_eq!(host.send(id, None, b"x"), Err(UdpError::NotConnected));
        host.endpoint.udp().connect(host.now, id, at(&peer)).unwrap();
        let us = of(US[version], 7);
        assert_eq!(host.endpoint.udp().addresses(id), Some((at(&us), Some(at(&peer)))));
        assert_eq!(host.arrives(&peer, &us, b"x"), Ingested::Datagram(id));
        assert_eq!(host.arrives(&of(PEER[version], 54), &us, b"x"), Ingested::Handled, "refused");
        assert_eq!(host.arrives(&of(STRANGER[version], 53), &us, b"x"), Ingested::Handled, "refused");
        assert_eq!(host.endpoint.counters().udp_no_ports, 2);
        host.send(id, None, b"x").unwrap();
    }
}

#[test]
fn a_closed_port_is_told_to_the_connected_socket_once() {
    for version in [0, 1] {
        let mut host = Host::new(|_| {});
        let id = host.bind(&of(US[version], 7));
        let peer = of(PEER[version], 53);
        host.send(id, Some(&peer), b"x").unwrap();
        let sent = host.leaves();
        let error = unreachable(&sent[0], PORT);
        assert_eq!(host.inject(&error), dropped(DropReason::IcmpUnrelated), "it is not connected");
        host.endpoint.udp().connect(host.now, id, at(&peer)).unwrap();
        // A stranger's guess about another peer.
        let other = packet(&of(US[version], 7), &of(PEER[version], 54), b"x");
        assert_eq!(host.inject(&unreachable(&other, PORT)), dropped(DropReason::IcmpUnrelated));
        assert_eq!(host.endpoint.udp().recv(id), Ok(None));
        // Routes come back: RFC 1122, section 4.1.3.3.
        assert_eq!(host.inject(&unreachable(&sent[0], [1, 3])), Ingested::Handled);
        assert_eq!(host.endpoint.udp().recv(id), Ok(None));
        assert_eq!(host.inject(&error), Ingested::Handled);
        assert_eq!(host.events(), [UdpEvent::Socket(id)]);
        assert_eq!(host.endpoint.udp().recv(id), Err(UdpError::Refused));
        assert_eq!(host.endpoint.udp().recv(id), Ok(None));
        host.inject(&error);
        assert_eq!(host.send(id, None, b"x"), Err(UdpError::Refused));
        host.send(id, None, b"x").unwrap();
    }
}

#[test]
fn a_datagram_is_not_longer_than_the_path() {
    let mut host = Host::new(|config| config.mtu = 1_300);
    let (four, six) = (host.bind("0.0.0.0:7"), host.bind("[::]:7"));
    for (id, to, longest) in [(four, "10.0.0.2:9", 1_272), (six, "[fd00::2]:9", 1_252)] {
        assert_eq!(host.send(id, Some(to), &vec![0; longest + 1]), Err(UdpError::TooLong));
        host.send(id, Some(to), &vec![0; longest]).unwrap();
        assert_eq!(host.leaves()[0].len(), 1_300);
    }
    host.endpoint.udp().connect(host.now, four, at("10.0.0.2:9")).unwrap();
    host.send(four, None, &[0; 1_000]).unwrap();
    let sent = host.leaves().remove(0);
    let too_big = |mtu: u16| {
        let mut packet = vec![];
        let [high, low] = mtu.to_be_bytes();
        let builder = ip("10.0.0.250".parse().unwrap(), "10.0.0.1".parse().unwrap());
        builder.icmpv4_raw(3, 4, [0, 0, high, low]).write(&mut packet, &sent[..28]).unwrap();
        packet
    };
    // It quotes nothing larger than what it says that the path carries.
    host.inject(&too_big(1_100));
    assert_eq!(host.endpoint.udp().recv(four), Ok(None));
    host.inject(&too_big(600));
    assert_eq!(host.endpoint.udp().recv(four), Err(UdpError::TooLong));
    assert_eq!(host.send(four, None, &[0; 573]), Err(UdpError::TooLong));
    host.send(four, None, &[0; 572]).unwrap();
}

#[test]
fn a_flood_fills_one_queue_and_no_more() {
    let mut host = Host::new(|config| config.udp_recv_buffer = 20_000);
    let (flooded, other) = (host.bind("10.0.0.1:7"), host.bind("10.0.0.1:8"));
    let before = host.endpoint.memory();
    for _ in 0..10_000 {
        host.arrives("10.0.0.2:1", "10.0.0.1:7", &[1; 1_000]);
    }
    host.leaves();
    assert!(host.endpoint.memory() - before <= 20_000 + 2_000, "{}", host.endpoint.memory());
    assert_eq!(host.arrives("10.0.0.2:1", "10.0.0.1:7", &[1; 1_000]), dropped(DropReason::UdpQueueFull));
    assert_eq!(host.arrives("10.0.0.3:1", "10.0.0.1:8", b"honest"), Ingested::Datagram(other));
    assert_eq!(host.received(other).len(), 1);
    let taken = host.received(flooded).len() as u64;
    assert!((20_000 / (1_000 + OVERHEAD as u64)..=20).contains(&taken), "{taken}");
    let counters = host.endpoint.counters();
    assert_eq!((counters.udp_rcvbuf_errors, counters.udp_in_errors), (10_001 - taken, 10_001 - taken));
    assert_eq!(host.endpoint.udp().stats(flooded).unwrap().dropped, 10_001 - taken);
    host.leaves();
    // What one table has grown to.
    assert!(host.endpoint.memory() <= before + 1_000, "{} {before}", host.endpoint.memory());
    // Any datagram fits an empty queue.
    let mut small = Host::new(|config| config.udp_recv_buffer = 10);
    let id = small.bind("10.0.0.1:7");
    assert_eq!(small.arrives("10.0.0.2:1", "10.0.0.1:7", &[1; 1_000]), Ingested::Datagram(id));
}

#[test]
fn the_budget_covers_what_waits() {
    let mut host = Host::new(|config| config.max_memory = Some(1 << 16));
    let ids: Vec<UdpId> = (1..=8).map(|port| host.bind(&of(US[0], port))).collect();
    let mut no_memory = 0;
    for round in 0..800 {
        let to = of(US[0], 1 + round % 8);
        no_memory +=
            u64::from(host.arrives("10.0.0.2:1", &to, &[1; 1_000]) == dropped(DropReason::UdpNoMemory));
        host.leaves();
        assert!(host.endpoint.memory() <= 1 << 16, "{}", host.endpoint.memory());
    }
    assert!(no_memory > 700, "{no_memory}");
    assert_eq!(host.endpoint.counters().udp_mem_errors, no_memory);
    assert_eq!(host.send(ids[0], Some("10.0.0.2:1"), &[1; 1_400]), Err(UdpError::OutOfMemory));
    for id in ids {
        assert!(!host.received(id).is_empty());
    }
    host.leaves();
    assert!(matches!(host.arrives("10.0.0.2:1", &of(US[0], 1), &[1; 1_000]), Ingested::Datagram(_)));
}

#[test]
fn what_a_full_device_leaves_behind_is_bounded_and_room_is_told() {
    let mut host = Host::new(|config| config.udp_send_buffer = 10_000);
    let id = host.bind("10.0.0.1:7");
    let mut queued = 0;
    while host.send(id, Some("10.0.0.2:9"), &[1; 1_000]).is_ok() {
        queued += 1;
        let full = host.endpoint.transmit(host.now, TxBudget::UNLIMITED, |_| Err(()));
        assert_eq!(full, Err(()));
        assert!(queued <= 10);
    }
    assert!(queued >= 10_000 / (1_000 + OVERHEAD), "{queued}");
    assert_eq!(host.send(id, Some("10.0.0.2:9"), &[1; 1_000]), Err(UdpError::NoRoom));
    assert!(!host.endpoint.udp().is_writable(id, 1_000));
    assert_eq!(host.events(), []);
    assert_eq!(host.leaves().len(), queued, "none is lost");
    assert_eq!(host.events(), [UdpEvent::Socket(id)]);
    assert!(host.endpoint.udp().is_writable(id, 1_000));
    assert_eq!(host.endpoint.counters().udp_sndbuf_errors, 2);
}

#[test]
fn addresses_that_are_no_hosts_are_not_sent_to() {
    let mut host = Host::new(|_| {});
    let id = host.bind("0.0.0.0:7");
    for to in ["10.0.0.2:0", "0.0.0.0:9", "224.0.0.1:9", "255.255.255.255:9", "[fd00::2]:9"] {
        assert_eq!(host.send(id, Some(to), b"x"), Err(UdpError::BadRemote), "{to}");
    }
    let mut bare = Host::new(|config| config.addresses.clear());
    let id = bare.bind("0.0.0.0:7");
    assert_eq!(bare.send(id, Some("10.0.0.2:9"), b"x"), Err(UdpError::NotLocal));
}

/// RFC 8085, section 5.1: a stranger whom a socket has sent to knows nothing of the port of the
/// next one, which asks a resolver.
#[test]
fn the_port_of_one_socket_says_nothing_about_the_next() {
    for version in [0, 1] {
        let mut host = Host::new(|_| {});
        let any = ["0.0.0.0:0", "[::]:0"][version];
        let mut ports = vec![];
        for peer in [STRANGER, PEER].into_iter().cycle().take(200) {
            let id = host.bind(any);
            host.endpoint.udp().connect(host.now, id, at(&of(peer[version], 53))).unwrap();
            ports.push(host.endpoint.udp().addresses(id).unwrap().0.port());
            host.endpoint.udp().close(host.now, id);
        }
        // Who guesses one of the 16 ports around the last is right once in some 850 times.
        let near = ports.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) <= 16).count();
        assert!(near <= 3, "{near} of 199: {ports:?}");
    }
}

#[test]
fn a_socket_without_a_peer_is_told_of_errors_if_it_wants_and_of_few_at_a_time() {
    for version in [0, 1] {
        let mut host = Host::new(|_| {});
        let id = host.bind(&of(US[version], 7));
        host.endpoint.udp().report_errors(id, true).unwrap();
        let (peer, other) = (of(PEER[version], 53), of(STRANGER[version], 53));
        for to in [&peer, &other] {
            host.send(id, Some(to), b"x").unwrap();
            for packet in host.leaves() {
                assert_eq!(host.inject(&unreachable(&packet, PORT)), Ingested::Handled);
            }
        }
        assert_eq!(host.events(), [UdpEvent::Socket(id)]);
        assert!(host.endpoint.udp().is_readable(id));
        // Neither an operation nor another peer is disturbed.
        host.send(id, Some(&peer), b"x").unwrap();
        let sent = host.leaves();
        let told: Vec<_> = std::iter::from_fn(|| host.endpoint.udp().next_report(id)).collect();
        assert_eq!(told, [(at(&peer), UdpError::Refused), (at(&other), UdpError::Refused)]);
        for _ in 0..1_000 {
            host.inject(&unreachable(&sent[0], PORT));
        }
        let told = std::iter::from_fn(|| host.endpoint.udp().next_report(id)).count();
        assert!((1..100).contains(&told), "{told}");
        host.endpoint.udp().report_errors(id, false).unwrap();
        assert_eq!(host.inject(&unreachable(&sent[0], PORT)), dropped(DropReason::IcmpUnrelated));
    }
}
