//! Connections that the application has let go of: how many there may be, for how long, and what
//! their peers are told.

use crate::net::{A, B, Link, Net, Plan, Stream, bytes_from, host_config, socket};
use ackline_tcp_core::error::ConnError;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::{ConnConfig, ConnId, Duration, EndpointConfig, Event, State, Target, WakeReason};
use std::sync::Arc;

/// `orphan_timeout` of a host that does not set it.
const TIMEOUT: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);
const MILLIS: Duration = Duration::from_millis(1);

/// A is the peer, B the host with the orphans, which answers each request with `answer` bytes.
fn net(max_orphans: u32, answer: u64) -> Net {
    let mut config = host_config(B);
    config.max_orphans = max_orphans;
    net_of(config, answer)
}

fn net_of(config: EndpointConfig, answer: u64) -> Net {
    let mut net = Net::with(1, Link::default(), [host_config(A), config], || Box::new(Fifo::default()));
    net.hosts[B].serve = Plan::send(answer);
    // The whole answer is written at once, and its connection dropped.
    let mut accept = ConnConfig::default();
    accept.min_send_buffer = None;
    net.listen(B, 80, accept);
    net
}

/// A opens a connection whose application does nothing by itself, with a receive buffer of `window`
/// bytes.
fn connect(net: &mut Net, window: u32) -> ConnId {
    let mut config = ConnConfig::default();
    config.recv_buffer = window;
    let now = net.now;
    net.endpoint(A).connect(now, Target::from(socket(B, 80)), Arc::new(config)).expect("can connect")
}

/// Connections whose peers have asked for something and read nothing; they are established, and
/// their windows full.
fn hoarders(net: &mut Net, count: usize) -> Vec<ConnId> {
    let ids: Vec<ConnId> = (0..count).map(|_| connect(net, 2_048)).collect();
    net.run(SECOND);
    for &id in &ids {
        net.write(A, id, &bytes_from(0)[..100]);
    }
    net.run(SECOND);
    ids
}

/// B's application drops every connection it has.
fn drop_all(net: &mut Net) -> Vec<ConnId> {
    let ids: Vec<ConnId> = std::mem::take(&mut net.hosts[B].streams).into_keys().collect();
    for &id in &ids {
        drop_one(net, id);
    }
    ids
}

fn drop_one(net: &mut Net, id: ConnId) {
    let now = net.now;
    net.hosts[B].streams.remove(&id);
    net.endpoint(B).release(now, id);
}

/// How A's connections have ended.
fn told(net: &Net) -> Vec<Option<ConnError>> {
    let ends = net.hosts[A].events.iter().filter_map(|event| match event {
        Event::Closed { error, .. } => Some(*error),
        _ => None,
    });
    ends.collect()
}

/// The only connection that B has accepted.
fn accepted(net: &Net) -> ConnId {
    *net.hosts[B].streams.keys().next().expect("B has accepted")
}

/// sockstress, and Netkill before it: many peers ask, close their windows and answer every probe,
/// and the application has long dropped the connections.
#[test]
fn closed_windows_hold_neither_more_orphans_nor_longer_than_allowed() {
    const ATTACKERS: usize = 100;
    const PLACES: usize = 20;
    let mut net = net(PLACES as u32, 1 << 20);
    hoarders(&mut net, ATTACKERS);
    assert_eq!((net.endpoint(B).connections(), net.endpoint(B).orphans()), (ATTACKERS, 0));

    drop_all(&mut net);
    assert_eq!(net.endpoint(B).orphans(), PLACES);
    net.run(SECOND);
    let counters = net.endpoint(B).counters().clone();
    assert_eq!(counters.tcp_abort_on_memory, (ATTACKERS - PLACES) as u64);
    assert_eq!(counters.tcp_curr_orphans, PLACES as u64);
    assert_eq!(net.endpoint(B).connections(), PLACES);
    assert_eq!(told(&net), vec![Some(ConnError::Reset); ATTACKERS - PLACES], "whoever was over the limit");

    // An honest client comes while every place is taken; B drops its connection as soon as the
    // answer is written.
    let client = net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: 0, read_size: 1 << 16 });
    assert!(net.run_until(SECOND, |net| net.hosts[B].streams.len() == 1));
    let served = accepted(&net);
    drop_one(&mut net, served);
    assert_eq!(net.endpoint(B).orphans(), PLACES, "a staler one makes room");
    net.run(SECOND);
    let Stream { read, ended, closed, .. } = net.hosts[A].streams[&client];
    assert_eq!((read, ended, closed), (1 << 20, true, Some(None)));

    net.run(TIMEOUT - Duration::from_secs(4));
    assert_eq!(net.endpoint(B).orphans(), PLACES - 1, "their time is not over");
    assert!(net.endpoint(B).counters().tcp_win_probe > 0);
    net.run(SECOND + SECOND);
    let counters = net.endpoint(B).counters().clone();
    assert_eq!((net.endpoint(B).orphans(), counters.tcp_curr_orphans), (0, 0));
    assert_eq!(counters.tcp_orphan_timeouts, PLACES as u64 - 1);
    assert_eq!(counters.tcp_abort_on_timeout, PLACES as u64 - 1);
    assert_eq!(counters.tcp_abort_on_memory, (ATTACKERS - PLACES) as u64 + 1);
    let resets = told(&net).iter().filter(|error| **error == Some(ConnError::Reset)).count();
    assert_eq!(resets, ATTACKERS, "every one of them is told");
    // The honest client's TIME-WAIT, or nothing, is left.
    assert!(net.endpoint(B).connections() <= 1);
}

/// Acknowledging is progress, however slow the peer reads.
#[test]
fn a_slow_peer_that_moves_gets_everything() {
    const ANSWER: u64 = 40_000;
    let mut net = net(10, ANSWER);
    let client = connect(&mut net, 4_096);
    net.run(SECOND);
    drop_all(&mut net);
    let start = net.now;
    let mut got = 0;
    let mut buf = [0; 4_096];
    while got < ANSWER {
        net.run(TIMEOUT - Duration::from_secs(5));
        let now = net.now;
        let read = net.endpoint(A).conn(client).expect("open").read(now, &mut buf);
        got += read.expect("no error") as u64;
        assert!(now.since(start) < Duration::from_secs(3_600), "{got} bytes");
    }
    assert!(net.now.since(start) > TIMEOUT.saturating_mul(5), "the peer was slow");
    net.run(SECOND);
    let now = net.now;
    assert!(net.endpoint(A).conn(client).expect("open").at_end());
    net.endpoint(A).release(now, client);
    net.run(SECOND);
    let counters = net.endpoint(B).counters();
    assert_eq!((counters.tcp_orphan_timeouts, counters.tcp_out_rsts), (0, 0));
    assert_eq!(net.endpoint(B).orphans(), 0, "TIME-WAIT is none");
}

/// Of several orphans the one goes that has made no progress for longest, not the oldest.
#[test]
fn the_stalest_makes_room() {
    let mut net = net(3, 1 << 20);
    let clients = hoarders(&mut net, 4);
    let served: Vec<ConnId> = net.hosts[B].streams.keys().copied().collect();
    for &id in &served[..3] {
        drop_one(&mut net, id);
        net.run(SECOND);
    }
    // The peer of the first reads, and so its window opens.
    let now = net.now;
    let mut buf = [0; 2_048];
    assert!(net.endpoint(A).conn(clients[0]).expect("open").read(now, &mut buf).expect("open") > 0);
    net.run(SECOND);
    drop_one(&mut net, served[3]);
    net.run(SECOND);
    let left: Vec<bool> = served.iter().map(|&id| net.endpoint(B).state(id).is_some()).collect();
    assert_eq!(left, [true, false, true, true]);
    assert_eq!(net.endpoint(B).counters().tcp_abort_on_memory, 1);
}

/// Peers that acknowledge the FIN and never send their own.
#[test]
fn fin_wait_hoarding_is_bounded() {
    const PEERS: usize = 50;
    let mut net = net(10, 0);
    for _ in 0..PEERS {
        connect(&mut net, 65_535);
    }
    net.run(SECOND);
    let served = drop_all(&mut net);
    net.run(SECOND);
    let in_state = |net: &Net, wanted| {
        let endpoint = &net.hosts[B].endpoint;
        served.iter().filter(|&&id| endpoint.state(id) == Some(wanted)).count()
    };
    assert_eq!((net.endpoint(B).orphans(), in_state(&net, State::FinWait2)), (10, 10));
    assert_eq!(told(&net), vec![Some(ConnError::Reset); PEERS - 10]);
    // FIN-WAIT-2 has a time of its own, after which it is forgotten.
    net.run(TIMEOUT - SECOND - SECOND);
    assert_eq!(net.endpoint(B).orphans(), 10);
    net.run(SECOND + SECOND);
    assert_eq!((net.endpoint(B).orphans(), net.endpoint(B).connections()), (0, 0));
    assert_eq!(net.endpoint(B).counters().tcp_orphan_timeouts, 0);
}

/// The peer falls silent in each state in which an ACK is missing: the orphan ends with an RST.
#[test]
fn a_silent_peer_ends_every_state_in_time() {
    for state in [State::FinWait1, State::Closing, State::LastAck] {
        let mut net = net(10, 0);
        let client = connect(&mut net, 65_535);
        // By hand, so that B's application does not close at once.
        for _ in 0..2 {
            exchange(&mut net, A);
            exchange(&mut net, B);
        }
        let Some(Event::Accepted { conn: served, .. }) = net.endpoint(B).poll_event() else {
            panic!("accepted")
        };
        let now = net.now;
        if state == State::LastAck {
            net.endpoint(A).conn(client).expect("open").shutdown(now);
            exchange(&mut net, A);
            exchange(&mut net, B);
        }
        drop_one(&mut net, served);
        if state == State::Closing {
            assert_eq!(net.intercept(B).len(), 1, "the FIN is lost");
            net.endpoint(A).conn(client).expect("open").shutdown(now);
            exchange(&mut net, A);
        }
        net.link.loss = 1_000;
        net.run(TIMEOUT - MILLIS);
        assert_eq!((net.endpoint(B).state(served), net.endpoint(B).orphans()), (Some(state), 1));
        assert_eq!(net.endpoint(B).counters().tcp_out_rsts, 0);
        net.run(MILLIS);
        let counters = net.endpoint(B).counters();
        assert_eq!((counters.tcp_orphan_timeouts, counters.tcp_out_rsts), (1, 1), "{state}");
        assert_eq!((net.endpoint(B).orphans(), net.endpoint(B).connections()), (0, 0), "{state}");
    }
}

/// What `from` sends arrives at once.
fn exchange(net: &mut Net, from: usize) {
    for wire in net.intercept(from) {
        net.inject(1 - from, &wire.bytes);
    }
}

/// With data written before the handshake, dropping the connection does not end it; an absent peer
/// does.
#[test]
fn an_orphan_may_die_before_it_is_established() {
    let mut net = net(10, 0);
    net.link.loss = 1_000;
    let now = net.now;
    let id = net.endpoint(B).connect(now, Target::from(socket(A, 9)), Arc::default()).expect("can connect");
    net.endpoint(B).conn(id).expect("open").write(now, b"hello").expect("open");
    net.endpoint(B).release(now, id);
    net.run(TIMEOUT - MILLIS);
    assert_eq!((net.endpoint(B).state(id), net.endpoint(B).orphans()), (Some(State::SynSent), 1));
    let wakeup = net.endpoint(B).poll_timeout().expect("a deadline");
    assert_eq!((wakeup.reason, wakeup.at), (WakeReason::Orphan, now + TIMEOUT));
    net.run(MILLIS);
    assert_eq!((net.endpoint(B).connections(), net.endpoint(B).counters().tcp_out_rsts), (0, 0));
}

#[test]
fn no_limit_of_time_is_possible() {
    let mut config = host_config(B);
    config.orphan_timeout = None;
    let mut net = net_of(config, 1 << 20);
    hoarders(&mut net, 1);
    drop_all(&mut net);
    net.run(Duration::from_secs(3_600));
    assert_eq!((net.endpoint(B).orphans(), net.endpoint(B).counters().tcp_out_rsts), (1, 0));
}

#[test]
fn no_orphan_need_be_allowed() {
    let mut net = net(0, 1 << 20);
    hoarders(&mut net, 1);
    drop_all(&mut net);
    net.run(SECOND);
    assert_eq!((net.endpoint(B).connections(), net.endpoint(B).counters().tcp_abort_on_memory), (0, 1));
    assert_eq!(told(&net), [Some(ConnError::Reset)]);
}
