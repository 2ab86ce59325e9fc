//! Paths that carry less than their ends: what the applications get, and how soon.

use crate::net::{A, B, Link, Net, Plan, host_config, socket};
use ackline_tcp_core::config::PathMtuProbing;
use ackline_tcp_core::info::Info;
use ackline_tcp_core::{ConnConfig, ConnId, Duration};
use std::net::SocketAddr;

const MINUTE: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(3_600);

/// A network whose link carries packets of `mtu` bytes, and says nothing of longer ones.
fn narrow(offloaded: bool, mtu: usize) -> Net {
    let link = Link { mtu, ..Link::default() };
    if offloaded { Net::offloaded(1, link) } else { Net::new(1, link) }
}

/// A connects to `to`, and has `bytes` to send.
fn sender(net: &mut Net, to: SocketAddr, config: &ConnConfig, bytes: u64) -> ConnId {
    net.listen(B, 80, config.clone());
    net.connect(A, to, config.clone(), Plan::send(bytes))
}

fn info(net: &mut Net, id: ConnId) -> Info {
    net.endpoint(A).conn(id).unwrap().info()
}

fn received(net: &Net) -> u64 {
    net.hosts[B].streams.values().map(|stream| stream.read).sum()
}

/// B has `bytes` within `limit`.
fn arrives(net: &mut Net, bytes: u64, limit: Duration) -> bool {
    net.run_until(limit, |net| received(net) >= bytes)
}

/// What the search settles for on a path that carries `payload` bytes of a segment.
fn found(payload: u32) -> std::ops::RangeInclusive<u32> {
    payload - 8..=payload
}

#[test]
fn what_a_black_hole_swallows_arrives_in_smaller_segments() {
    for (offloaded, mtu) in [(false, 1_200), (true, 1_200), (false, 1_450), (true, 600)] {
        let mut net = narrow(offloaded, mtu);
        let id = sender(&mut net, socket(B, 80), &ConnConfig::default(), 5_000_000);
        assert!(arrives(&mut net, 200_000, Duration::from_secs(8)), "MTU {mtu}: {}", received(&net));
        assert!(arrives(&mut net, 5_000_000, MINUTE), "MTU {mtu}: {}", received(&net));
        let smss = info(&mut net, id).snd_mss;
        assert!(found(mtu as u32 - 52).contains(&smss), "{smss} bytes at an MTU of {mtu}");
        let counters = net.hosts[A].endpoint.counters();
        assert!(counters.tcp_mtu_black_holes >= 1);
        assert_eq!(counters.tcp_mtu_black_holes, counters.tcp_mtu_reduced);
        assert!(counters.tcp_mtup_success >= 1 && counters.tcp_mtup_fail >= 1);
    }
}

#[test]
fn over_ipv6_segments_fill_1280_bytes() {
    let mut net = narrow(false, 1_280);
    let to = SocketAddr::new(host_config(B).addresses[1], 80);
    let id = sender(&mut net, to, &ConnConfig::default(), 1_000_000);
    assert!(arrives(&mut net, 100_000, Duration::from_secs(8)));
    assert!(arrives(&mut net, 1_000_000, MINUTE));
    assert_eq!(info(&mut net, id).snd_mss, 1_280 - 60 - 12);
}

#[test]
fn without_detection_nothing_arrives() {
    let mut net = narrow(false, 1_200);
    let mut config = ConnConfig::default();
    config.path_mtu_probing = PathMtuProbing::Off;
    sender(&mut net, socket(B, 80), &config, 300_000);
    assert!(!arrives(&mut net, 1_448, MINUTE.saturating_mul(10)));
}

#[test]
fn a_route_that_becomes_narrower_is_noticed() {
    let mut net = narrow(true, 1_500);
    let id = sender(&mut net, socket(B, 80), &ConnConfig::default(), 50_000_000);
    assert!(arrives(&mut net, 5_000_000, MINUTE));
    net.link.mtu = 1_400;
    assert!(arrives(&mut net, 50_000_000, MINUTE), "{}", received(&net));
    let smss = info(&mut net, id).snd_mss;
    assert!(found(1_400 - 52).contains(&smss), "{smss}");
}

fn always() -> ConnConfig {
    let mut config = ConnConfig::default();
    config.path_mtu_probing = PathMtuProbing::Always;
    config
}

#[test]
fn a_search_from_the_base_finds_what_the_path_carries() {
    for offloaded in [false, true] {
        for mtu in [1_100, 1_280, 1_300, 1_400, 1_499, 1_500] {
            let mut net = narrow(offloaded, mtu);
            let id = sender(&mut net, socket(B, 80), &always(), 5_000_000);
            assert!(arrives(&mut net, 5_000_000, MINUTE));
            let smss = info(&mut net, id).snd_mss;
            let expected = if mtu == 1_500 { 1_448..=1_448 } else { found(mtu as u32 - 52) };
            assert!(expected.contains(&smss), "{smss} bytes at an MTU of {mtu}");

            let counters = net.hosts[A].endpoint.counters();
            let probes = counters.tcp_mtup_success + counters.tcp_mtup_fail;
            assert!(probes <= 8, "{probes} probes");
            assert_eq!(counters.tcp_mtup_fail == 0, mtu == 1_500, "the full size is tried first");
            let reductions = (counters.tcp_sack_recovery, counters.tcp_timeouts);
            assert_eq!(reductions, (0, 0), "the loss of a probe is no congestion");
        }
    }
}

#[test]
fn a_search_survives_losses() {
    for seed in 0..8 {
        let link = Link { mtu: 1_350, loss: 20, late: 20, duplicates: 10, ..Link::default() };
        let mut net = if seed % 2 == 0 { Net::new(seed, link) } else { Net::offloaded(seed, link) };
        let id = sender(&mut net, socket(B, 80), &always(), 3_000_000);
        assert!(arrives(&mut net, 3_000_000, LONG));
        let smss = info(&mut net, id).snd_mss;
        assert!((1_024..=1_350 - 52).contains(&smss), "{smss}");
    }
}

#[test]
fn ten_minutes_later_a_wider_path_is_used() {
    let mut net = narrow(true, 1_300);
    net.link.delay = Duration::from_millis(200);
    let mut config = ConnConfig::default();
    config.send_buffer = 20_000;
    let id = sender(&mut net, socket(B, 80), &config, u64::MAX);
    net.run(MINUTE);
    net.link.mtu = 1_500;
    net.run(MINUTE.saturating_mul(8));
    let smss = info(&mut net, id).snd_mss;
    assert!(found(1_300 - 52).contains(&smss), "{smss}");
    net.run(MINUTE.saturating_mul(3));
    assert_eq!(info(&mut net, id).snd_mss, 1_448);
}

#[test]
fn an_outage_is_no_black_hole() {
    for seconds in [1, 3, 10, 30, 100, 300] {
        let mut net = narrow(true, 1_500);
        let id = sender(&mut net, socket(B, 80), &ConnConfig::default(), 20_000_000);
        assert!(arrives(&mut net, 5_000_000, MINUTE));
        net.link.mtu = 0;
        net.run(Duration::from_secs(seconds));
        net.link.mtu = 1_500;
        assert!(arrives(&mut net, 20_000_000, LONG));
        let reduced = net.hosts[A].endpoint.counters().tcp_mtu_reduced;
        assert_eq!((info(&mut net, id).snd_mss, reduced), (1_448, 0), "{seconds} s");
    }
}

/// The segment sizes with which three connections begin: to the same host, to it a while later, and
/// to it on IPv6.
fn later_sizes(net: &mut Net, later: Duration) -> [u32; 3] {
    let v6 = SocketAddr::new(host_config(B).addresses[1], 80);
    [(Duration::ZERO, socket(B, 80)), (later, socket(B, 80)), (Duration::ZERO, v6)].map(|(pause, to)| {
        net.run(pause);
        // Nothing may have happened.
        net.now += pause;
        let id = net.connect(A, to, ConnConfig::default(), Plan::send(u64::MAX));
        net.run(Duration::from_millis(15));
        let smss = info(net, id).snd_mss;
        let now = net.now;
        net.endpoint(A).abort(now, id);
        smss
    })
}

#[test]
fn what_one_connection_finds_the_next_ones_begin_with() {
    let mut net = narrow(true, 1_300);
    sender(&mut net, socket(B, 80), &ConnConfig::default(), 3_000_000);
    assert!(arrives(&mut net, 3_000_000, MINUTE));
    assert_eq!(net.hosts[A].endpoint.path_entries(), 1);
    let sizes = later_sizes(&mut net, MINUTE.saturating_mul(11));
    assert!(found(1_300 - 52).contains(&sizes[0]), "{sizes:?}");
    assert_eq!(sizes[1..], [1_448, 1_428], "after ten minutes nothing is known, and of others nothing");
    assert_eq!(net.hosts[A].endpoint.counters().tcp_path_mtu_reused, 1);
}

#[test]
fn a_path_that_has_become_wider_is_forgotten() {
    let mut net = narrow(true, 1_300);
    net.link.delay = Duration::from_millis(200);
    let mut config = ConnConfig::default();
    config.send_buffer = 20_000;
    sender(&mut net, socket(B, 80), &config, u64::MAX);
    net.run(MINUTE);
    assert_eq!(net.hosts[A].endpoint.path_entries(), 1);
    net.link.mtu = 1_500;
    net.run(MINUTE.saturating_mul(11));
    assert_eq!(net.hosts[A].endpoint.path_entries(), 0);
}

#[test]
fn whoever_accepts_remembers_too() {
    let mut net = narrow(true, 1_300);
    net.hosts[B].serve = Plan::send(1_000_000);
    net.listen(B, 80, ConnConfig::default());
    for _ in 0..2 {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(0));
        assert!(net.run_until(MINUTE, |net| {
            let done = |stream: &crate::net::Stream| stream.read == 1_000_000;
            net.hosts[A].streams.values().all(done)
        }));
    }
    let counters = net.hosts[B].endpoint.counters();
    assert_eq!((counters.tcp_path_mtu_reused, counters.tcp_mtu_black_holes), (1, 1), "found once");
}

#[test]
fn nothing_is_remembered_without_room() {
    let configs = [A, B].map(|host| {
        let mut config = host_config(host);
        config.max_path_entries = 0;
        config
    });
    let mut net = Net::with(1, Link { mtu: 1_300, ..Link::default() }, configs, || {
        Box::new(ackline_tcp_core::policy::builtin::Fifo::default())
    });
    sender(&mut net, socket(B, 80), &ConnConfig::default(), 1_000_000);
    assert!(arrives(&mut net, 1_000_000, MINUTE));
    assert_eq!(net.hosts[A].endpoint.path_entries(), 0);
    assert_eq!(later_sizes(&mut net, Duration::ZERO), [1_448, 1_448, 1_428]);
}
