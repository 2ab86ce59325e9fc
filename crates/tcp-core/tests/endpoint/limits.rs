//! Limits: backlog, connections, ports, names; and what becomes of what is refused.

use crate::net::{A, B, Link, Net, Plan, address, host_config, socket};
use ackline_tcp_core::error::{ConnError, ConnectError, ListenError};
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, ConnId, Duration, EndpointConfig, Event, Ingested, Instant, ListenOn,
    ListenerId, State, Target,
};
use std::sync::Arc;

fn net(a: EndpointConfig, b: EndpointConfig) -> Net {
    Net::with(1, Link::default(), [a, b], || Box::new(Fifo::default()))
}

fn accept(backlog: u32) -> AcceptConfig {
    let mut accept = AcceptConfig::default();
    accept.backlog = backlog;
    accept
}

#[test]
fn a_full_backlog_drops_what_would_complete_a_handshake_until_there_is_room() {
    let mut net = net(host_config(A), host_config(B));
    let now = net.now;
    net.endpoint(B).listen(now, ListenOn::Port(80), accept(3)).unwrap();
    for _ in 0..5 {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(10));
    }
    // Nobody takes the events of B.
    exchange(&mut net, A);
    assert_eq!((net.endpoint(B).half_open(), net.endpoint(B).connections()), (5, 0));
    exchange(&mut net, B);
    let acks = net.intercept(A);
    let ingested = acks.iter().map(|ack| net.inject(B, &ack.bytes));
    let accepted = ingested.filter(|it| matches!(it, Ingested::Accepted(_))).count();
    assert_eq!((accepted, acks.len()), (3, 5));
    assert_eq!((net.endpoint(B).half_open(), net.endpoint(B).connections()), (2, 3));
    let counters = net.endpoint(B).counters();
    assert_eq!((counters.listen_overflows, counters.listen_drops), (2, 2));
    // A SYN that comes now could only make the queue longer.
    net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(10));
    exchange(&mut net, A);
    assert_eq!(net.endpoint(B).half_open(), 2);
    // Data or the answers to SYN-ACKs come again, and by then the application has accepted the
    // others.
    assert!(net.run_until(Duration::from_secs(60), |net| {
        net.hosts[B].streams.len() == 6 && net.hosts[B].streams.values().all(|stream| stream.ended)
    }));
    assert_eq!(net.endpoint(B).counters().tcp_out_rsts, 0);
}

/// Gives B a listener with this backlog, and lets A connect `count` times; takes B's `Accepted`
/// events, but accepts nothing.
fn offered(net: &mut Net, backlog: u32, count: usize) -> (ListenerId, Vec<ConnId>) {
    let now = net.now;
    let listener = net.endpoint(B).listen(now, ListenOn::Port(80), accept(backlog)).unwrap();
    for _ in 0..count {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: 0, read_size: 100 });
    }
    for _ in 0..3 {
        exchange(net, A);
        exchange(net, B);
    }
    let mut offered = vec![];
    while let Some(event) = net.endpoint(B).poll_event() {
        match event {
            Event::Accepted { conn, .. } => offered.push(conn),
            other => panic!("{other:?}"),
        }
    }
    (listener, offered)
}

/// What `from` sends arrives at once.
fn exchange(net: &mut Net, from: usize) {
    for wire in net.intercept(from) {
        net.inject(1 - from, &wire.bytes);
    }
}

#[test]
fn a_connection_counts_against_the_backlog_until_the_application_accepts_it() {
    let mut net = net(host_config(A), host_config(B));
    let (_, offered) = offered(&mut net, 2, 3);
    assert_eq!(offered.len(), 2);
    assert_eq!(net.endpoint(B).counters().listen_overflows, 1);
    let refused = |net: &mut Net| {
        let before = net.endpoint(B).counters().listen_overflows;
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: 0, read_size: 100 });
        exchange(net, A);
        exchange(net, B);
        exchange(net, A);
        net.endpoint(B).counters().listen_overflows - before
    };
    assert_eq!(refused(&mut net), 1, "both were offered, and none accepted");
    assert!(net.endpoint(B).conn(offered[0]).is_some());
    assert_eq!(refused(&mut net), 0, "one was accepted");
    assert!(net.endpoint(B).conn(offered[0]).is_some(), "nobody is accepted twice");
    assert_eq!(refused(&mut net), 1);
    let now = net.now;
    net.endpoint(B).release(now, offered[1]);
    assert_eq!(refused(&mut net), 0, "the other was let go of");
    assert_eq!(net.endpoint(B).counters().tcp_out_rsts, 0);
}

#[test]
fn a_connection_that_ends_before_it_is_accepted_keeps_its_place_and_its_data() {
    let mut net = net(host_config(A), host_config(B));
    let (_, offered) = offered(&mut net, 1, 1);
    let client = *net.hosts[A].streams.keys().next().unwrap();
    let now = net.now;
    net.endpoint(A).conn(client).unwrap().write(now, b"last words").unwrap();
    exchange(&mut net, A);
    net.endpoint(A).abort(now, client);
    exchange(&mut net, A);
    net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: 0, read_size: 100 });
    exchange(&mut net, A);
    assert_eq!(net.endpoint(B).counters().listen_overflows, 1);
    let mut data = [0; 20];
    assert_eq!(net.endpoint(B).conn(offered[0]).unwrap().read(now, &mut data), Ok(10));
    net.endpoint(B).release(now, offered[0]);
    assert_eq!(net.endpoint(B).connections(), 0);
}

#[test]
fn unlisten_resets_what_was_offered_and_not_accepted() {
    let mut net = net(host_config(A), host_config(B));
    let (listener, offered) = offered(&mut net, 2, 2);
    let now = net.now;
    assert!(net.endpoint(B).conn(offered[0]).is_some());
    net.endpoint(B).unlisten(now, listener);
    assert!(net.endpoint(B).conn(offered[0]).is_some(), "it was accepted");
    assert!(net.endpoint(B).conn(offered[1]).is_none());
    exchange(&mut net, B);
    assert_eq!((net.endpoint(B).counters().tcp_out_rsts, net.endpoint(B).connections()), (1, 1));
}

#[test]
fn a_full_endpoint_refuses_and_counts() {
    let mut small = host_config(B);
    small.max_connections = 2;
    let mut net = net(host_config(A), small);
    net.listen(B, 80, ConnConfig::default());
    for _ in 0..3 {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: u64::MAX, read_size: 100 });
    }
    net.run(Duration::from_millis(100));
    let endpoint = net.endpoint(B);
    assert_eq!((endpoint.connections(), endpoint.half_open()), (2, 1));
    let refused = endpoint.counters().connections_refused;
    assert!(refused > 0, "the ACK of the third, and its data");
    net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: u64::MAX, read_size: 100 });
    net.run(Duration::from_millis(10));
    let endpoint = net.endpoint(B);
    assert_eq!(endpoint.half_open(), 1, "another SYN is not even answered");
    assert!(endpoint.counters().connections_refused > refused);
    let now = net.now;
    let refused = net.endpoint(B).connect(now, Target::from(socket(A, 80)), Arc::default());
    assert_eq!(refused, Err(ConnectError::TooManyConnections));
}

#[test]
fn connect_says_what_is_wrong() {
    let mut config = host_config(A);
    config.addresses.truncate(1);
    config.ephemeral_ports = 5_000..=5_002;
    let mut net = net(config, host_config(B));
    let now = net.now;
    let mut connect = |target: Target| net.endpoint(A).connect(now, target, Arc::default()).map(|_| ());
    let to = |remote: &str| Target::from(remote.parse::<std::net::SocketAddr>().unwrap());
    for bad in ["10.0.0.2:0", "0.0.0.0:80", "224.0.0.1:80", "255.255.255.255:80"] {
        assert_eq!(connect(to(bad)), Err(ConnectError::BadRemote), "{bad}");
    }
    assert_eq!(connect(to("[fd00::2]:80")), Err(ConnectError::NoLocalAddress));
    let mut foreign = to("10.0.0.2:80");
    foreign.local_address = Some(address(B));
    assert_eq!(connect(foreign), Err(ConnectError::NoLocalAddress));

    let mut named = to("10.0.0.2:80");
    named.local_port = Some(7);
    assert_eq!(connect(named), Ok(()));
    assert_eq!(connect(named), Err(ConnectError::InUse));
    for _ in 0..3 {
        assert_eq!(connect(to("10.0.0.2:80")), Ok(()));
    }
    assert_eq!(connect(to("10.0.0.2:80")), Err(ConnectError::NoFreePort));
    assert_eq!(connect(to("10.0.0.2:81")), Ok(()), "ports are per peer");
}

#[test]
fn listen_says_what_is_wrong() {
    let mut net = net(host_config(A), host_config(B));
    let mut listen = |on| net.endpoint(A).listen(Instant::ZERO, on, AcceptConfig::default()).map(|_| ());
    assert_eq!(listen(ListenOn::Address(socket(B, 80))), Err(ListenError::NotLocal));
    assert_eq!(listen(ListenOn::Address(socket(A, 80))), Ok(()));
    assert_eq!(listen(ListenOn::Address(socket(A, 80))), Err(ListenError::InUse));
}

#[test]
fn port_zero_stands_for_an_ephemeral_one_that_nobody_listens_on() {
    let mut narrow = host_config(A);
    narrow.ephemeral_ports = 5_000..=5_002;
    let mut net = net(narrow, host_config(B));
    let now = net.now;
    let endpoint = net.endpoint(A);
    let mut listen = |on| {
        let id = endpoint.listen(now, on, AcceptConfig::default())?;
        Ok(endpoint.listens_on(id).expect("it listens"))
    };
    assert_eq!(listen(ListenOn::Port(5_001)), Ok(ListenOn::Port(5_001)));
    let ListenOn::Address(first) = listen(ListenOn::Address(socket(A, 0))).unwrap() else {
        panic!("an address")
    };
    assert_eq!(first.ip(), address(A));
    let ListenOn::Port(second) = listen(ListenOn::Port(0)).unwrap() else { panic!("a port") };
    let mut taken = [first.port(), second];
    taken.sort();
    assert_eq!(taken, [5_000, 5_002]);
    assert_eq!(listen(ListenOn::Port(0)), Err(ListenError::NoFreePort));
}

#[test]
fn a_listeners_settings_are_those_of_later_connections() {
    let mut net = net(host_config(A), host_config(B));
    let now = net.now;
    let listener = net.endpoint(B).listen(now, ListenOn::Port(80), accept(3)).unwrap();
    for ttl in [7, 9] {
        let config = net.endpoint(B).accept_config(listener).expect("it listens");
        Arc::make_mut(&mut config.conn).ttl = Some(ttl);
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: 0, read_size: 100 });
        exchange(&mut net, A);
        let answer = net.intercept(B).pop().expect("a SYN-ACK");
        assert_eq!(answer.bytes[8], ttl, "the hop limit of IPv4");
    }
    net.endpoint(B).unlisten(now, listener);
    assert!(net.endpoint(B).accept_config(listener).is_none());
}

#[test]
fn the_listener_of_the_address_goes_before_the_others() {
    let mut net = net(host_config(A), host_config(B));
    let now = net.now;
    let mut listen = |on| net.endpoint(B).listen(now, on, AcceptConfig::default()).unwrap();
    let any = listen(ListenOn::Any);
    let port = listen(ListenOn::Port(80));
    let exact = listen(ListenOn::Address(socket(B, 80)));
    for (to, expected) in [("10.0.0.2:80", exact), ("[fd00::2]:80", port), ("10.0.0.2:81", any)] {
        net.connect(A, to.parse().unwrap(), ConnConfig::default(), Plan::send(1));
        net.run(Duration::from_secs(1));
        let last = net.hosts[B].events.iter().rev().find_map(|event| match event {
            Event::Accepted { listener, .. } => Some(*listener),
            _ => None,
        });
        assert_eq!(last, Some(expected), "{to}");
    }
}

#[test]
fn unlisten_resets_whom_nobody_accepted() {
    let mut net = net(host_config(A), host_config(B));
    let now = net.now;
    let listener = net.endpoint(B).listen(now, ListenOn::Port(80), accept(10)).unwrap();
    net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: 0, read_size: 100 });
    let syn = net.intercept(A).remove(0);
    net.inject(B, &syn.bytes);
    net.endpoint(B).unlisten(now, listener);
    net.run(Duration::from_secs(1));
    assert_eq!(net.stream(A).closed, Some(Some(ConnError::Refused)));
    assert_eq!(net.endpoint(B).connections(), 0);
    assert!(net.hosts[B].events.is_empty());
    net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(0));
    net.run(Duration::from_secs(1));
    assert!(net.hosts[A].streams.values().all(|it| it.closed == Some(Some(ConnError::Refused))));
}

#[test]
fn a_newer_syn_takes_over_from_time_wait() {
    let mut net = net(host_config(A), host_config(B));
    net.hosts[B].serve = Plan::send(0);
    net.listen(B, 80, ConnConfig::default());
    let target = |port| {
        let mut target = Target::from(socket(B, 80));
        target.local_port = Some(port);
        target
    };
    // B closes first, and so waits.
    let now = net.now;
    let first = net.endpoint(A).connect(now, target(5_000), Arc::default()).unwrap();
    net.run(Duration::from_secs(1));
    let now = net.now;
    net.endpoint(A).release(now, first);
    net.run(Duration::from_secs(1));
    assert_eq!((net.endpoint(A).connections(), net.endpoint(B).counters().tcp_tw), (0, 1));

    let now = net.now;
    let second = net.endpoint(A).connect(now, target(5_000), Arc::default()).unwrap();
    net.run(Duration::from_secs(1));
    assert_eq!(net.endpoint(A).conn(second).unwrap().state(), State::CloseWait);
    assert_eq!(net.endpoint(B).counters().tcp_tw_reopened, 1);
    assert_ne!(first, second, "a handle is never given out twice");
    assert!(net.endpoint(A).conn(first).is_none());
}

#[test]
fn nobody_there_times_out() {
    let mut net = net(host_config(A), host_config(B));
    net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(1));
    net.hosts[B].endpoint = ackline_tcp_core::Endpoint::new(
        {
            let mut config = host_config(B);
            config.addresses.clear();
            config
        },
        Box::new(Fifo::default()),
        [0; 32],
    );
    net.run(Duration::from_secs(1_000));
    assert_eq!(net.stream(A).closed, Some(Some(ConnError::TimedOut)));
    assert_eq!(net.left[A], 7, "RFC 9293 leaves it open; Linux sends the SYN seven times");
    assert_eq!(net.endpoint(A).connections(), 0);
}
