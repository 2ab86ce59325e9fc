//! Devices whose MTU changes under their connections. The network checks that no packet is larger
//! than its device.

use crate::net::{A, B, Link, Net, Plan, bytes_from, host_config, socket};
use ackline_tcp_core::config::{Ecn, PathMtuProbing};
use ackline_tcp_core::error::ConnectError;
use ackline_tcp_core::info::Info;
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::wire::TxChecksumMode;
use ackline_tcp_core::{ConnConfig, ConnId, Duration, Target};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::net::SocketAddr;
use std::sync::Arc;

const MINUTE: Duration = Duration::from_secs(60);
const BYTES: u64 = 5_000_000;

fn v6(host: usize) -> SocketAddr {
    SocketAddr::new(host_config(host).addresses[1], 80)
}

/// Both devices carry packets of `mtu` bytes, and super-packets if `offloaded`.
fn net(seed: u64, link: Link, offloaded: bool, mtu: u32) -> Net {
    let configs = [A, B].map(|host| {
        let mut config = host_config(host);
        config.mtu = mtu;
        if offloaded {
            config.max_super_packet = 65_535;
            config.tx_checksum = TxChecksumMode::Partial;
        }
        config
    });
    Net::with(seed, link, configs, || Box::new(Fifo::default()))
}

fn conn_config(sack: bool) -> ConnConfig {
    let mut config = ConnConfig::default();
    config.sack = sack;
    config
}

/// A connects to B, and has `bytes` to send.
fn sender(net: &mut Net, to: SocketAddr, config: &ConnConfig, bytes: u64) -> ConnId {
    net.listen(B, 80, config.clone());
    net.connect(A, to, config.clone(), Plan::send(bytes))
}

fn info(net: &mut Net, id: ConnId) -> Info {
    net.endpoint(A).conn(id).unwrap().info()
}

fn set_mtu(net: &mut Net, host: usize, mtu: u32) {
    let now = net.now;
    net.endpoint(host).set_mtu(now, mtu).unwrap();
}

/// B has `bytes` within `limit`.
fn arrives(net: &mut Net, bytes: u64, limit: Duration) -> bool {
    net.run_until(limit, |net| net.hosts[B].streams.values().map(|stream| stream.read).sum::<u64>() >= bytes)
}

/// Every combination of super-packets, SACK and family.
fn cases() -> impl Iterator<Item = (bool, bool, SocketAddr)> {
    let switch = [false, true];
    let families = [socket(B, 80), v6(B)];
    switch.into_iter().flat_map(move |offloaded| {
        switch.into_iter().flat_map(move |sack| families.map(|to| (offloaded, sack, to)))
    })
}

/// Payload bytes of a full segment to `to` over a device of `mtu` bytes.
fn payload(mtu: u32, to: SocketAddr) -> u32 {
    mtu - if to.is_ipv4() { 52 } else { 72 }
}

#[test]
fn segments_are_smaller_from_the_next_packet_on_and_nothing_is_sent_again() {
    for (offloaded, sack, to) in cases() {
        let mut net = net(1, Link::default(), offloaded, 1_500);
        let id = sender(&mut net, to, &conn_config(sack), BYTES);
        assert!(arrives(&mut net, 1_000_000, MINUTE));
        let before = info(&mut net, id);
        assert!(before.unacked > 50_000, "in the middle of a flight: {}", before.unacked);
        set_mtu(&mut net, A, 1_280);
        let after = info(&mut net, id);
        assert_eq!(after.snd_mss, payload(1_280, to));
        assert_eq!(after.snd_cwnd, before.snd_cwnd, "RFC 1191, section 5: the window stays, in bytes");
        assert!(arrives(&mut net, BYTES, MINUTE));
        let retransmitted = info(&mut net, id).bytes_retrans;
        let counters = net.hosts[A].endpoint.counters();
        assert_eq!((retransmitted, counters.tcp_timeouts), (0, 0), "what was in flight arrived");
        assert_eq!((counters.mtu_changes, counters.tcp_mtu_followed, counters.tcp_mtu_reduced), (1, 1, 0));
    }
}

#[test]
fn what_is_lost_at_the_change_is_repaired_once_in_smaller_segments() {
    for (offloaded, sack, to) in cases() {
        let mut net = net(1, Link::default(), offloaded, 1_500);
        let id = sender(&mut net, to, &conn_config(sack), BYTES);
        assert!(arrives(&mut net, 300_000, MINUTE));
        // The network behind the device has changed a little earlier.
        net.link.mtu = 1_280;
        net.run(Duration::from_millis(2));
        set_mtu(&mut net, A, 1_280);
        let flight = u64::from(info(&mut net, id).unacked);
        assert!(arrives(&mut net, BYTES, MINUTE));
        let after = info(&mut net, id);
        assert_eq!(after.snd_mss, payload(1_280, to));
        assert!(after.bytes_retrans <= flight + 20_000, "{} bytes again of {flight}", after.bytes_retrans);
    }
}

#[test]
fn segments_grow_with_the_mtu_up_to_the_mss_of_the_peer() {
    for (offloaded, sack, to) in cases() {
        for peer in [1_500, 9_000] {
            let mut net = net(1, Link::default(), offloaded, peer);
            set_mtu(&mut net, A, 1_280);
            let id = sender(&mut net, to, &conn_config(sack), BYTES);
            assert!(arrives(&mut net, 1_000_000, MINUTE));
            set_mtu(&mut net, A, 9_000);
            assert!(arrives(&mut net, BYTES, MINUTE));
            let after = info(&mut net, id);
            assert_eq!((after.snd_mss, after.bytes_retrans), (payload(peer, to), 0));
            let counters = net.hosts[A].endpoint.counters();
            let raised = (counters.tcp_mtup_success, counters.tcp_mtup_fail, counters.tcp_mtu_raised);
            assert_eq!(raised, if sack { (1, 0, 0) } else { (0, 0, 1) });
        }
    }
}

#[test]
fn a_path_that_stays_narrow_costs_no_window_with_sack_and_one_timeout_without() {
    for (offloaded, sack, to) in cases() {
        let link = Link { mtu: 1_500, ..Link::default() };
        let mut net = net(1, link, offloaded, 9_000);
        for host in [A, B] {
            set_mtu(&mut net, host, 1_500);
        }
        // The peer takes more than the path.
        set_mtu(&mut net, B, 9_000);
        let id = sender(&mut net, to, &conn_config(sack), BYTES);
        assert!(arrives(&mut net, 1_000_000, MINUTE));
        set_mtu(&mut net, A, 9_000);
        assert!(arrives(&mut net, BYTES, MINUTE));
        let smss = info(&mut net, id).snd_mss;
        let most = payload(1_500, to);
        assert!((most - 8..=most).contains(&smss), "{smss}");
        let counters = net.hosts[A].endpoint.counters();
        if sack {
            assert!(counters.tcp_mtup_fail >= 1);
            assert_eq!((counters.tcp_sack_recovery, counters.tcp_timeouts), (0, 0));
        } else {
            assert_eq!((counters.tcp_mtu_reduced, counters.tcp_mtup_fail), (1, 0));
        }
    }
}

#[test]
fn an_idle_connection_follows_at_once() {
    let mut net = net(1, Link::default(), false, 9_000);
    set_mtu(&mut net, A, 1_500);
    net.listen(B, 80, ConnConfig::default());
    let id = net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: u64::MAX, read_size: 0 });
    net.hosts[A].streams.clear();
    net.run(MINUTE.saturating_mul(10));
    for mtu in [1_280, 9_000, 576, 65_535] {
        set_mtu(&mut net, A, mtu);
        assert_eq!(info(&mut net, id).snd_mss, mtu.min(9_000) - 52);
    }
    net.write(A, id, &bytes_from(0)[..50_000]);
    net.run(MINUTE);
    assert_eq!(net.hosts[A].endpoint.counters().tcp_timeouts, 0);
    assert_eq!(info(&mut net, id).bytes_acked, 50_000);
}

#[test]
fn new_connections_announce_what_fits() {
    for mtu in [1_280, 576, 9_000] {
        let mut net = net(1, Link::default(), false, 1_500);
        set_mtu(&mut net, B, 9_000);
        set_mtu(&mut net, A, mtu);
        let id = sender(&mut net, socket(B, 80), &ConnConfig::default(), BYTES);
        // And in the other direction, where A accepts.
        net.listen(A, 80, ConnConfig::default());
        let other = net.connect(B, socket(A, 80), ConnConfig::default(), Plan::send(BYTES));
        net.run(Duration::from_millis(30));
        assert_eq!(info(&mut net, id).snd_mss, mtu - 52);
        assert_eq!(net.endpoint(B).conn(other).unwrap().info().snd_mss, mtu - 52);
    }
}

#[test]
fn a_change_in_the_middle_of_a_handshake_counts() {
    for mtu in [1_280, 9_000] {
        for after in [0, 6, 11] {
            let mut net = net(1, Link::default(), false, 1_500);
            set_mtu(&mut net, B, 9_000);
            let id = sender(&mut net, socket(B, 80), &ConnConfig::default(), BYTES);
            net.run(Duration::from_millis(after));
            set_mtu(&mut net, A, mtu);
            assert!(arrives(&mut net, BYTES, MINUTE));
            assert_eq!(info(&mut net, id).snd_mss, mtu - 52, "{after} ms");
        }
    }
}

#[test]
fn below_1280_bytes_no_ipv6_connection_begins_and_the_others_go_on() {
    let mut net = net(1, Link::default(), false, 1_500);
    let to = v6(B);
    let id = sender(&mut net, to, &ConnConfig::default(), 10 * BYTES);
    assert!(arrives(&mut net, 1_000_000, MINUTE));
    set_mtu(&mut net, A, 1_279);
    let now = net.now;
    let refused = net.endpoint(A).connect(now, Target::from(to), Arc::new(ConnConfig::default()));
    assert_eq!(refused.unwrap_err(), ConnectError::NoLocalAddress);
    assert!(arrives(&mut net, 2_000_000, MINUTE));
    assert_eq!(info(&mut net, id).snd_mss, 1_207);
    set_mtu(&mut net, A, 1_280);
    assert!(arrives(&mut net, 10 * BYTES, MINUTE));
    assert_eq!(info(&mut net, id).snd_mss, 1_208);
}

#[test]
fn an_mtu_out_of_range_changes_nothing() {
    let mut net = net(1, Link::default(), false, 1_500);
    let id = sender(&mut net, socket(B, 80), &ConnConfig::default(), BYTES);
    assert!(arrives(&mut net, 1_000_000, MINUTE));
    let now = net.now;
    for mtu in [0, 67, 65_536, u32::MAX] {
        let error = net.endpoint(A).set_mtu(now, mtu).unwrap_err();
        let text = format!("mtu={mtu} is not possible: mtu must be a whole number from 68 to 65535");
        assert_eq!(error.to_string(), text);
    }
    set_mtu(&mut net, A, 1_500);
    let endpoint = net.endpoint(A);
    assert_eq!((endpoint.config().mtu, endpoint.counters().mtu_changes), (1_500, 0));
    assert_eq!(info(&mut net, id).snd_mss, 1_448);
    for mtu in [68, 65_535] {
        set_mtu(&mut net, A, mtu);
    }
    assert!(arrives(&mut net, BYTES, MINUTE));
}

#[test]
fn what_is_known_of_paths_counts_below_the_mtu() {
    let mut net = net(1, Link { mtu: 1_300, ..Link::default() }, true, 1_500);
    sender(&mut net, socket(B, 80), &ConnConfig::default(), BYTES);
    assert!(arrives(&mut net, BYTES, MINUTE));
    assert_eq!(net.hosts[A].endpoint.path_entries(), 1);
    let mut begins = |mtu| {
        set_mtu(&mut net, A, mtu);
        let id = net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(u64::MAX));
        net.run(Duration::from_millis(500));
        let (smss, now) = (info(&mut net, id).snd_mss, net.now);
        net.endpoint(A).abort(now, id);
        smss
    };
    assert_eq!(begins(1_280), 1_228);
    assert!((1_240..=1_248).contains(&begins(1_500)), "it is still known");
}

#[test]
fn a_search_ends_where_the_device_does() {
    let mut config = ConnConfig::default();
    config.path_mtu_probing = PathMtuProbing::Always;
    for mtu in [1_100, 1_280, 1_400] {
        for after in [12, 16, 22, 40, 80] {
            let mut net = net(1, Link { mtu: 1_390, ..Link::default() }, true, 1_500);
            let id = sender(&mut net, socket(B, 80), &config, BYTES);
            net.run(Duration::from_millis(after));
            set_mtu(&mut net, A, mtu);
            assert!(arrives(&mut net, BYTES, MINUTE));
            let (smss, most) = (info(&mut net, id).snd_mss, mtu.min(1_390) - 52);
            assert!((most - 8..=most).contains(&smss), "{smss} of {most}, {after} ms");
        }
    }
}

#[test]
fn whatever_changes_and_is_lost_all_bytes_arrive() {
    for seed in 0..24 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut up_to = |most: u32| rng.next_u32() % most;
        let link = Link {
            loss: up_to(3) * 10,
            late: up_to(3) * 10,
            duplicates: up_to(2) * 10,
            refused: up_to(2) * 300,
            serialise: (up_to(3) == 0).then_some(Duration::from_micros(100)),
            ..Link::default()
        };
        let offloaded = up_to(2) == 0;
        let mut net = net(seed, link, offloaded, 9_000);
        let mut config = conn_config(up_to(3) > 0);
        config.timestamps = up_to(2) == 0;
        if up_to(3) == 0 {
            config.path_mtu_probing = PathMtuProbing::Always;
        }
        let to = if up_to(2) == 0 { socket(B, 80) } else { v6(B) };
        let id = sender(&mut net, to, &config, BYTES);
        let (mut changes, mut arrived) = (0, 0);
        while !arrives(&mut net, BYTES, Duration::from_millis(u64::from(1 + up_to(60)))) {
            let least = if to.is_ipv4() { 300 } else { 1_280 };
            let mtu = least + up_to(9_001 - least);
            let host = if up_to(4) == 0 { B } else { A };
            set_mtu(&mut net, host, mtu);
            changes += 1;
            if changes % 2_000 == 0 {
                let read = net.hosts[B].streams.values().map(|stream| stream.read).sum();
                assert!(read > arrived, "nothing arrives: {:?}", info(&mut net, id));
                arrived = read;
            }
        }
        println!("{changes} changes");
        assert_eq!(net.hosts[A].streams[&id].closed, None);
    }
}

/// RFC 791 allows 68 bytes: all options of a SYN-ACK would not fit.
#[test]
fn a_syn_ack_of_accurate_ecn_fits_the_smallest_mtu() {
    let mut config = conn_config(true);
    config.ecn = Ecn::Accurate;
    for mtu in 68..=90 {
        let mut net = net(7, Link::default(), false, mtu);
        let id = sender(&mut net, socket(B, 80), &config, 2_000);
        assert!(arrives(&mut net, 2_000, MINUTE), "MTU {mtu}");
        assert_eq!(info(&mut net, id).ecn, Ecn::Accurate, "MTU {mtu}");
    }
}
