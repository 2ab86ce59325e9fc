//! Under pressure, buffers give back what they do not need for what they hold.

use super::{SECOND, check, connect, net, run, zero_windows};
use crate::net::{A, B, Net, Plan, bytes_from};
use ackline_tcp_core::{ConnConfig, ConnId, Duration};

const BUDGET: u64 = 4 << 20;
/// What B's application writes to each client at once.
const ANSWER: usize = 60_000;
const CLIENTS: usize = 8;

/// A's application reads up to `until` of the stream and compares each byte.
fn read(net: &mut Net, id: ConnId, at: &mut usize, until: usize) {
    while *at < until {
        let (now, mut buffer) = (net.now, [0; 4_096]);
        let most = (until - *at).min(buffer.len());
        let count = net.endpoint(A).conn(id).expect("open").read(now, &mut buffer[..most]).unwrap_or(0);
        assert_eq!(buffer[..count], bytes_from(*at as u64)[..count]);
        *at += count;
        run(net, BUDGET, Duration::from_millis(20), |_| false);
    }
}

/// Bytes that B holds for each of these connections.
fn held(net: &mut Net, ids: &[ConnId]) -> Vec<u64> {
    ids.iter().map(|&id| net.endpoint(B).conn(id).expect("open").info().memory).collect()
}

#[test]
fn nearly_empty_send_buffers_shrink_with_the_next_event() {
    let mut net = net(BUDGET, ANSWER as u64);
    let mut config = ConnConfig::default();
    config.recv_buffer = 8_192;
    let clients: Vec<ConnId> = (0..CLIENTS).map(|_| connect(&mut net, config.clone())).collect();
    run(&mut net, BUDGET, SECOND, |_| false);
    let ours: Vec<ConnId> = net.hosts[B].streams.keys().copied().collect();
    let mut at = [0; CLIENTS];
    for (&id, at) in clients.iter().zip(&mut at) {
        read(&mut net, id, at, 40_000);
    }
    assert!(!net.endpoint(B).is_under_memory_pressure());

    // Others make memory scarce.
    net.hosts[B].serve = Plan::send(1 << 20);
    zero_windows(&mut net, CLIENTS);
    run(&mut net, BUDGET, SECOND, |_| false);
    assert!(net.endpoint(B).is_under_memory_pressure());
    for (&id, at) in clients.iter().zip(&mut at) {
        read(&mut net, id, at, 48_000);
    }
    // At most 12,000 bytes of each are left.
    let held = held(&mut net, &ours);
    assert!(held.iter().all(|&bytes| bytes < 20_000), "{held:?}");

    for (&id, at) in clients.iter().zip(&mut at) {
        read(&mut net, id, at, ANSWER);
    }
    check(&net, BUDGET);
}

#[test]
fn receive_buffers_that_were_read_empty_are_freed_with_the_next_event() {
    let mut net = net(BUDGET, 1 << 20);
    zero_windows(&mut net, CLIENTS);
    run(&mut net, BUDGET, SECOND, |_| false);
    assert!(net.endpoint(B).is_under_memory_pressure());
    // B's application reads everything that our clients send.
    net.hosts[B].serve = Plan { send: 1, read_size: 1 << 16 };
    let before: Vec<ConnId> = net.hosts[B].streams.keys().copied().collect();
    let clients: Vec<ConnId> = (0..CLIENTS).map(|_| connect(&mut net, ConnConfig::default())).collect();
    run(&mut net, BUDGET, Duration::from_millis(50), |_| false);
    for &id in &clients {
        net.write(A, id, &bytes_from(0)[..30_000]);
    }
    run(&mut net, BUDGET, Duration::from_millis(100), |_| false);
    let ours: Vec<ConnId> = net.hosts[B].streams.keys().copied().filter(|id| !before.contains(id)).collect();
    assert_eq!(ours.iter().map(|id| net.hosts[B].streams[id].read).sum::<u64>(), 30_000 * CLIENTS as u64);
    let held = held(&mut net, &ours);
    assert!(held.iter().all(|&bytes| bytes < 4_096), "{held:?}");
}
