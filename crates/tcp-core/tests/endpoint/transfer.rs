//! Streams between two endpoints: every byte is compared.

use crate::net::{A, B, Link, Net, Plan, Polls, Stream, host_config, socket};
use ackline_tcp_core::error::{ConnectError, ListenError};
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::{
    AcceptConfig, ConnConfig, Duration, EndpointConfig, Event, Instant, ListenOn, State, Target,
};
use std::net::SocketAddr;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
const LONG: Duration = Duration::from_secs(3_600);

fn both_ended(net: &Net, connections: usize) -> bool {
    net.hosts.iter().all(|host| {
        host.streams.len() == connections
            && host.streams.values().all(|stream| stream.ended && stream.written == stream.plan.send)
    })
}

/// Sends `up` bytes from A to B and `down` bytes back; returns the net for a look at it.
fn transfer(mut net: Net, config: &ConnConfig, up: u64, down: u64) -> Net {
    net.hosts[B].serve = Plan::send(down);
    net.listen(B, 80, config.clone());
    net.connect(A, socket(B, 80), config.clone(), Plan::send(up));
    let done = net.run_until(LONG, |net| both_ended(net, 1));
    assert!(
        done,
        "stuck at {:?}: {:#?}",
        net.now,
        net.hosts.each_ref().map(|host| (&host.streams, &host.events))
    );
    assert_eq!((net.stream(B).read, net.stream(A).read), (up, down));
    net
}

#[test]
fn a_byte_reaches_the_other_side() {
    transfer(Net::new(1, Link::default()), &ConnConfig::default(), 1, 0);
}

#[test]
fn megabytes_go_both_ways() {
    let net = transfer(Net::new(2, Link::default()), &ConnConfig::default(), 8 * MIB, 3 * MIB);
    let counters = net.hosts[A].endpoint.counters();
    assert_eq!(counters.tcp_retrans_segs, 0, "nothing is lost, nothing is sent twice");
}

#[test]
fn megabytes_go_both_ways_in_super_packets() {
    let net = transfer(Net::offloaded(3, Link::default()), &ConnConfig::default(), 32 * MIB, 8 * MIB);
    let segments = net.hosts[A].endpoint.counters().tcp_out_segs;
    assert!(net.left[A] * 4 < segments, "{} packets for {segments} segments", net.left[A]);
    assert_eq!(net.hosts[A].endpoint.counters().tcp_retrans_segs, 0);
}

#[test]
fn events_in_two_steps_change_nothing() {
    let harms = Link { loss: 10, duplicates: 10, late: 20, ..Link::default() };
    for (seed, link) in [(5, Link::default()), (6, harms), (7, harms)] {
        let of = |polls| {
            let mut net = Net::new(seed, link);
            net.hosts.iter_mut().for_each(|host| host.polls = polls);
            net.hosts[B].serve = Plan::send(MIB);
            net.listen(B, 80, ConnConfig::default());
            for up in [4 * MIB, MIB, 1] {
                net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(up));
            }
            let mut deadlines = vec![];
            while !net.run_until(Duration::from_millis(1), |net| both_ended(net, 3)) {
                let states = net.hosts.each_ref().map(|host| {
                    let endpoint = &host.endpoint;
                    (endpoint.timeout_at(), endpoint.memory(), endpoint.counters().clone())
                });
                deadlines.push((states, net.digest));
            }
            assert!(deadlines.len() > 10, "seed {seed}");
            (deadlines, net.hosts.map(|host| host.events))
        };
        let (one, other) = (of(Polls::Before), of(Polls::InTwoSteps));
        assert_eq!(one.1, other.1, "seed {seed}");
        for (one, other) in one.0.iter().zip(&other.0) {
            assert_eq!(one, other, "seed {seed}");
        }
    }
}

#[test]
fn a_host_that_does_not_keep_up_opens_no_window_further() {
    let largest = |backlogged| {
        let mut net = Net::new(4, Link::default());
        net.listen(B, 80, ConnConfig::default());
        net.endpoint(B).set_backlogged(backlogged);
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(8 * MIB));
        let mut largest = 0;
        while !net.run_until(Duration::from_millis(10), |net| both_ended(net, 1)) {
            let id = net.hosts[B].streams.keys().next().copied();
            largest = id
                .map_or(0, |id| net.endpoint(B).conn(id).map_or(0, |conn| conn.info().rcv_wnd))
                .max(largest);
        }
        assert_eq!(net.stream(B).read, 8 * MIB);
        largest
    };
    let (busy, idle) = (largest(true), largest(false));
    assert!(busy < 66_000 && idle > 200_000, "{busy} and {idle}");
}

fn hosts(mtu: u32) -> [EndpointConfig; 2] {
    [A, B].map(|host| {
        let mut config = host_config(host);
        config.mtu = mtu;
        config
    })
}

#[test]
fn no_packet_is_longer_than_the_mtu() {
    let lossy = Link { loss: 50, duplicates: 20, late: 50, ..Link::default() };
    for mtu in (68..=110).chain([552, 576]) {
        for (timestamps, sack) in [(true, true), (true, false), (false, true), (false, false)] {
            let net = Net::with(u64::from(mtu), lossy, hosts(mtu), || Box::new(Fifo::default()));
            let mut config = ConnConfig::default();
            (config.timestamps, config.sack) = (timestamps, sack);
            let net = transfer(net, &config, 4_000, 4_000);
            let longest = net.longest.into_iter().max().unwrap();
            assert!(longest <= mtu as usize, "{longest} bytes at an MTU of {mtu}");
        }
    }
}

#[test]
fn there_is_no_ipv6_below_its_smallest_mtu() {
    let to = |host| SocketAddr::new(host_config(host).addresses[1], 80);
    for (mtu, carried) in [(68, false), (1_279, false), (1_280, true)] {
        let mut net =
            Net::with(1, Link { loss: 50, ..Link::default() }, hosts(mtu), || Box::new(Fifo::default()));
        let config = Arc::new(ConnConfig::default());
        let listening =
            net.endpoint(B).listen(Instant::ZERO, ListenOn::Address(to(B)), AcceptConfig::default());
        let connected = net.endpoint(A).connect(Instant::ZERO, Target::from(to(B)), config);
        if carried {
            let (_, id) = (listening.unwrap(), connected.unwrap());
            net.hosts[A].streams.insert(id, Stream { plan: Plan::send(100_000), ..Stream::default() });
            assert!(net.run_until(LONG, |net| net.hosts[B].streams.values().any(|stream| stream.ended)));
            assert_eq!((net.stream(B).read, net.longest[A]), (100_000, 1_280));
        } else {
            assert_eq!(listening.unwrap_err(), ListenError::NotLocal);
            assert_eq!(connected.unwrap_err(), ConnectError::NoLocalAddress);
        }
    }
}

#[test]
fn nothing_is_lost_on_a_bad_link() {
    for seed in 0..6 {
        let link = Link { loss: 30, duplicates: 20, late: 30, ..Link::default() };
        let net = transfer(Net::new(seed, link), &ConnConfig::default(), MIB, MIB / 2);
        assert!(net.hosts[A].endpoint.counters().tcp_retrans_segs > 0);
        let link = Link { loss: 100, ..link };
        transfer(Net::new(seed, link), &ConnConfig::default(), MIB / 8, MIB / 8);
    }
}

#[test]
fn nothing_is_lost_on_a_bad_link_in_super_packets() {
    for seed in 0..4 {
        let link = Link { loss: 20, duplicates: 10, late: 10, ..Link::default() };
        transfer(Net::offloaded(seed, link), &ConnConfig::default(), 2 * MIB, MIB);
    }
}

#[test]
fn options_can_be_switched_off() {
    for bits in 0..8 {
        let mut config = ConnConfig::default();
        (config.sack, config.timestamps, config.window_scale) = (bits & 1 > 0, bits & 2 > 0, bits & 4 > 0);
        let link = Link { loss: 20, ..Link::default() };
        transfer(Net::new(bits, link), &config, MIB / 2, 100);
    }
}

#[test]
fn small_buffers_and_segments_are_enough() {
    let mut config = ConnConfig::default();
    (config.send_buffer, config.recv_buffer, config.initial_recv_window) = (3_000, 2_000, None);
    transfer(Net::new(1, Link::default()), &config, 100_000, 50_000);
    config.mss = Some(100);
    transfer(Net::new(2, Link { loss: 20, ..Link::default() }), &config, 50_000, 10);
}

#[test]
fn a_slow_reader_closes_the_window_and_opens_it_again() {
    let mut config = ConnConfig::default();
    (config.recv_buffer, config.initial_recv_window) = (20_000, None);
    let mut net = Net::new(4, Link::default());
    net.hosts[B].serve = Plan { send: 0, read_size: 0 };
    net.listen(B, 80, config.clone());
    net.connect(A, socket(B, 80), config, Plan::send(100_000));
    net.run_until(Duration::from_secs(30), |_| false);
    let sender = *net.hosts[A].streams.keys().next().unwrap();
    let info = net.endpoint(A).conn(sender).unwrap().info();
    assert!(info.snd_wnd < 1_460 && info.notsent_bytes > 60_000, "{info:?}");
    assert!(net.endpoint(A).counters().tcp_win_probe > 0, "a closed window is probed");

    let reader = *net.hosts[B].streams.keys().next().unwrap();
    let mut total = 0;
    let now = net.now;
    let mut buffer = vec![0; 1 << 20];
    let done = {
        total += net.endpoint(B).conn(reader).unwrap().read(now, &mut buffer).unwrap() as u64;
        net.hosts[B].streams.get_mut(&reader).unwrap().plan.read_size = 4_096;
        net.hosts[B].streams.get_mut(&reader).unwrap().read = total;
        net.run_until(LONG, |net| net.stream(B).ended)
    };
    assert!(done && net.stream(B).read == 100_000);
}

#[test]
fn each_policy_of_a_connection_shows_its_variables_in_a_fixed_order() {
    let mut net = Net::new(6, Link::default());
    net.listen(B, 80, ConnConfig::default());
    let id = net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(100_000));
    let shown = |net: &mut Net| {
        let mut shown = vec![];
        net.endpoint(A).conn(id).unwrap().metrics(&mut |kind, metric| {
            shown.push((kind.keyword(), metric.to_string()));
        });
        shown
    };
    assert_eq!(shown(&mut net), [], "no policy is there before the handshake is complete");
    net.run_until(LONG, |net| net.hosts[B].streams.values().any(|stream| stream.read == 100_000));
    let window = net.endpoint(A).conn(id).unwrap().info().snd_cwnd;
    let expected = [
        ("cc", format!("cwnd {window} B")),
        ("ack", "delay 40 ms".to_owned()),
        ("ack", "segments 2".to_owned()),
        ("rto", "repairing no".to_owned()),
    ];
    assert_eq!(shown(&mut net), expected);
}

#[test]
fn both_sides_are_told_of_an_orderly_close_and_forget_the_connection() {
    let mut net = Net::new(5, Link::default());
    net.listen(B, 80, ConnConfig::default());
    let id = net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(10));
    net.run(Duration::from_secs(300));
    assert_eq!(net.hosts[A].events[0], Event::Connected(id));
    for host in &net.hosts {
        assert!(matches!(host.events.last(), Some(Event::Closed { error: None, .. })), "{:?}", host.events);
        assert!(host.events.iter().any(|event| matches!(event, Event::Flushed(_))));
        assert_eq!(host.endpoint.connections(), 0, "TIME-WAIT is over");
        assert_eq!(host.endpoint.poll_timeout(), None);
        assert_eq!(host.endpoint.counters().tcp_curr_estab, 0);
    }
    assert!(net.endpoint(A).conn(id).is_none());
    assert_eq!(net.endpoint(A).counters().tcp_tw + net.endpoint(B).counters().tcp_tw, 1);
}

#[test]
fn many_connections_share_the_host() {
    let mut net = Net::new(6, Link { loss: 5, ..Link::default() });
    net.hosts[B].serve = Plan::send(20_000);
    net.listen(B, 80, ConnConfig::default());
    for _ in 0..200 {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(30_000));
    }
    assert!(net.run_until(LONG, |net| both_ended(net, 200)));
    for (host, bytes) in [(A, 20_000), (B, 30_000)] {
        assert!(net.hosts[host].streams.values().all(|stream| stream.read == bytes));
    }
}

#[test]
fn connections_with_the_same_need_get_the_same_share() {
    // The device takes a packet at a time: who is served is the endpoint's choice.
    let link = Link { serialise: Some(Duration::from_micros(100)), ..Link::default() };
    let mut net = Net::new(7, link);
    net.listen(B, 80, ConnConfig::default());
    for _ in 0..10 {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(100 * MIB));
    }
    net.run(Duration::from_secs(4));
    let shares: Vec<u64> = net.hosts[B].streams.values().map(|stream| stream.read).collect();
    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
    assert!(*least > 0 && *most < 2 * *least, "{shares:?}");
}

#[test]
fn ipv6_works_alike() {
    let mut net = Net::new(8, Link { loss: 10, ..Link::default() });
    net.hosts[B].serve = Plan::send(MIB);
    net.listen(B, 80, ConnConfig::default());
    net.connect(A, "[fd00::2]:80".parse().unwrap(), ConnConfig::default(), Plan::send(MIB));
    assert!(net.run_until(LONG, |net| both_ended(net, 1)));
    assert_eq!((net.stream(A).read, net.stream(B).read), (MIB, MIB));
}

#[test]
fn same_seed_same_bytes() {
    let run = |seed| {
        let link = Link { loss: 20, duplicates: 10, late: 20, refused: 30, ..Link::default() };
        let mut net = Net::new(seed, link);
        net.hosts[B].serve = Plan::send(100_000);
        net.listen(B, 80, ConnConfig::default());
        for _ in 0..10 {
            net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(100_000));
        }
        assert!(net.run_until(LONG, |net| both_ended(net, 10)));
        (net.digest, net.now, net.left)
    };
    assert_eq!(run(9), run(9));
    assert_ne!(run(9), run(10));
}

#[test]
fn two_active_opens_meet() {
    let mut net =
        Net::with(11, Link::default(), [A, B].map(crate::net::host_config), || Box::new(Fifo::default()));
    let now = net.now;
    for (from, to) in [(A, B), (B, A)] {
        let mut target = ackline_tcp_core::Target::from(socket(to, 500));
        target.local_port = Some(500);
        let id = net.endpoint(from).connect(now, target, Default::default()).unwrap();
        let stream = crate::net::Stream { plan: Plan::send(5_000), ..Default::default() };
        net.hosts[from].streams.insert(id, stream);
    }
    assert!(net.run_until(LONG, |net| both_ended(net, 1)));
    assert_eq!((net.stream(A).read, net.stream(B).read), (5_000, 5_000));
    for host in &net.hosts {
        assert!(matches!(host.events[0], Event::Connected(_)), "{:?}", host.events);
    }
}

#[test]
#[ignore = "slow"]
fn an_abort_reaches_the_peer() {
    let mut net = Net::new(12, Link::default());
    net.hosts[B].serve = Plan { send: u64::MAX, read_size: 100 };
    net.listen(B, 80, ConnConfig::default());
    let id = net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: u64::MAX, read_size: 100 });
    net.run(Duration::from_secs(1));
    let now = net.now;
    assert_eq!(net.endpoint(A).conn(id).unwrap().state(), State::Established);
    net.endpoint(A).conn(id).unwrap().abort(now);
    net.run(Duration::from_secs(1));
    use ackline_tcp_core::error::ConnError;
    assert_eq!(net.stream(A).closed, Some(Some(ConnError::Aborted)));
    assert_eq!(net.stream(B).closed, Some(Some(ConnError::Reset)));
    assert_eq!(net.endpoint(B).counters().tcp_estab_resets, 1);
    assert_eq!((net.endpoint(A).connections(), net.endpoint(B).connections()), (0, 0));
}
