//! The memory budget: nobody can make a host hold more, those who take part go on, and afterwards
//! everything is as before.

mod crowd;
mod shrinking;

use crate::net::{A, B, Link, Net, Plan, bytes_from, host_config, socket};
use ackline_tcp_core::error::{ConnError, ConnectError};
use ackline_tcp_core::policy::builtin::Fifo;
use ackline_tcp_core::{ConnConfig, ConnId, DropReason, Duration, EndpointConfig, Event, Ingested, Target};
use std::sync::Arc;

const SECOND: Duration = Duration::from_secs(1);
const BUDGET: u64 = 1 << 20;
/// What each connection may hold above the budget: a packet in each direction, in buffers that are
/// powers of two.
const PACKETS: u64 = 2 * 2_048;

/// B's host.
fn host(budget: u64) -> EndpointConfig {
    let mut config = host_config(B);
    config.max_memory = Some(budget);
    config
}

/// A is the crowd, B the host with a budget. B's application sends `answer` bytes to each client
/// and reads everything.
fn net(budget: u64, answer: u64) -> Net {
    let mut net = Net::with(1, Link::default(), [host_config(A), host(budget)], || Box::new(Fifo::default()));
    net.hosts[B].serve = Plan::send(answer);
    // The application may fill its buffers at once, so that only the budget bounds them.
    let mut accept = ConnConfig::default();
    accept.min_send_buffer = None;
    net.listen(B, 80, accept);
    net
}

/// A opens a connection whose application does nothing by itself.
fn connect(net: &mut Net, config: ConnConfig) -> ConnId {
    let now = net.now;
    net.endpoint(A).connect(now, Target::from(socket(B, 80)), Arc::new(config)).expect("can connect")
}

/// Clients that read nothing, with windows of 2 KiB.
fn zero_windows(net: &mut Net, count: usize) -> Vec<ConnId> {
    let mut config = ConnConfig::default();
    config.recv_buffer = 2_048;
    (0..count).map(|_| connect(net, config.clone())).collect()
}

/// B holds no more than its budget and a packet per connection.
fn check(net: &Net, budget: u64) {
    let endpoint = &net.hosts[B].endpoint;
    let most = budget + endpoint.connections() as u64 * PACKETS;
    assert!(endpoint.memory() <= most, "{} bytes, at most {most}", endpoint.memory());
}

/// How B's connections have ended.
fn told(net: &Net, host: usize) -> Vec<Option<ConnError>> {
    let ends = net.hosts[host].events.iter().filter_map(|event| match event {
        Event::Closed { error, .. } => Some(*error),
        _ => None,
    });
    ends.collect()
}

/// Runs for `limit`, and checks the budget at each instant; true if `done` came true.
fn run(net: &mut Net, budget: u64, limit: Duration, mut done: impl FnMut(&Net) -> bool) -> bool {
    net.run_until(limit, |net| {
        check(net, budget);
        done(net)
    })
}

/// Clients ask for much and close their windows, and the application writes as much as it may to
/// each.
#[test]
fn closed_windows_hold_no_more_than_the_budget_and_honest_clients_are_served() {
    const ANSWER: u64 = 400_000;
    let mut net = net(BUDGET, ANSWER);
    zero_windows(&mut net, 60);
    run(&mut net, BUDGET, SECOND, |_| false);
    let counters = net.endpoint(B).counters().clone();
    assert!(net.endpoint(B).is_under_memory_pressure() && counters.tcp_memory_pressures == 1);
    assert!(net.endpoint(B).memory() > BUDGET * 66 / 100);
    assert_eq!(net.endpoint(B).memory(), counters.curr_memory);
    run(&mut net, BUDGET, SECOND, |_| false);

    let client = net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: 0, read_size: 1 << 16 });
    let start = net.now;
    let served = run(&mut net, BUDGET, SECOND.saturating_mul(60), |net| net.hosts[A].streams[&client].ended);
    let counters = net.endpoint(B).counters().clone();
    println!("{:?} for an honest client, {} evictions", net.now.since(start), counters.tcp_memory_evictions);
    assert!(served && net.hosts[A].streams[&client].read == ANSWER);
    let evicted = told(&net, B).iter().filter(|end| **end == Some(ConnError::OutOfMemory)).count();
    assert_eq!(evicted as u64, counters.tcp_memory_evictions, "the application is told");
    assert!(told(&net, A).iter().filter(|end| **end == Some(ConnError::Reset)).count() >= evicted);
    assert!(evicted < 60, "some hold no more than their share");
}

/// Everything but the first segment arrives, from each of many.
#[test]
fn data_out_of_order_is_pruned_when_memory_is_short() {
    let mut net = net(BUDGET, 0);
    let hoarders: Vec<ConnId> = (0..60).map(|_| connect(&mut net, ConnConfig::default())).collect();
    run(&mut net, BUDGET, SECOND, |_| false);
    let mut written = vec![0; hoarders.len()];
    for round in 0..20 {
        for (&id, written) in hoarders.iter().zip(&mut written) {
            let now = net.now;
            let Some(mut conn) = net.endpoint(A).conn(id) else { continue };
            *written += conn.write(now, &bytes_from(*written)[..60_000]).unwrap_or(0) as u64;
            for (number, wire) in net.intercept(A).into_iter().enumerate() {
                if round > 0 || number > 0 {
                    net.inject(B, &wire.bytes);
                }
                check(&net, BUDGET);
            }
            // ACKs come back, so that the windows of the senders open; RTOs are lost.
            for wire in net.intercept(B) {
                net.inject(A, &wire.bytes);
            }
            check(&net, BUDGET);
        }
        net.now += Duration::from_millis(10);
    }
    let counters = net.endpoint(B).counters().clone();
    assert!(
        counters.ofo_pruned > 0 && counters.tcp_ofo_drop > 0 && counters.prune_called > 0,
        "{counters:?}"
    );
    assert_eq!(counters.tcp_memory_evictions, 0, "there was no need");

    // From now on everything arrives, and every byte at its place: nothing that was acknowledged is
    // missing.
    let client = net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(300_000));
    assert!(run(&mut net, BUDGET, SECOND.saturating_mul(30), |net| net.hosts[A].streams[&client].ended));
}

/// The application reads nothing for a while: windows close, what was promised is kept, and
/// everything arrives in the end.
#[test]
fn slow_readers_lose_nothing() {
    const SENT: u64 = 200_000;
    let mut net = net(BUDGET, 0);
    net.hosts[B].serve = Plan { send: 1, read_size: 0 };
    for _ in 0..40 {
        net.connect(A, socket(B, 80), ConnConfig::default(), Plan::send(SENT));
    }
    run(&mut net, BUDGET, SECOND.saturating_mul(20), |_| false);
    assert!(net.endpoint(B).is_under_memory_pressure());
    assert!(net.endpoint(B).counters().tcp_rcv_q_drop > 0, "more was promised than there is");
    let waiting: Vec<ConnId> = net.hosts[B].streams.keys().copied().collect();
    // They are read one after another, so that memory stays short for the others meanwhile.
    for id in waiting {
        let now = net.now;
        net.hosts[B].streams.get_mut(&id).expect("a stream").plan.read_size = 1 << 16;
        net.hosts[B].attend(now, id);
        run(&mut net, BUDGET, SECOND, |_| false);
    }
    let done = |net: &Net| net.hosts[B].streams.values().all(|stream| stream.read == SENT);
    assert!(run(&mut net, BUDGET, SECOND.saturating_mul(300), done));
    let counters = net.endpoint(B).counters();
    assert_eq!(counters.tcp_memory_evictions, 0, "nobody held more than its share");
    assert!(!net.hosts[B].endpoint.is_under_memory_pressure());
}

#[test]
fn a_full_budget_refuses_connections_and_counts_them() {
    const SMALL: u64 = 1 << 16;
    const CLIENTS: u64 = 600;
    let mut net = net(SMALL, 0);
    net.hosts[B].serve = Plan { send: 1, read_size: 1 };
    let mut ids: Vec<ConnId> = (0..CLIENTS).map(|_| connect(&mut net, ConnConfig::default())).collect();
    run(&mut net, SMALL, Duration::from_millis(500), |_| false);
    let held = net.endpoint(B).connections() as u64;
    let counters = net.endpoint(B).counters().clone();
    assert!((40..100).contains(&held), "{held} connections");
    let begun = held + net.endpoint(B).half_open() as u64 + counters.half_open_evicted;
    println!("{held} held, {begun} begun, {} refusals", counters.memory_refusals);
    assert!(counters.memory_refusals > 0 && counters.memory_refusals >= CLIENTS - begun, "{counters:?}");
    assert_eq!(counters.listen_drops, counters.memory_refusals);
    assert!(begun < CLIENTS, "SYNs are refused");
    assert_eq!(counters.tcp_abort_on_memory, 0, "those that are there stay");
    let (now, target) = (net.now, Target::from(socket(A, 80)));
    let refused = net.endpoint(B).connect(now, target, Arc::default());
    assert_eq!(refused, Err(ConnectError::OutOfMemory));

    // The others go on trying. As soon as some go, there is room.
    let dropped = net.inject(B, &syn(&net));
    assert_eq!(dropped, Ingested::Dropped(DropReason::ConnectionMemory));
    for id in ids.drain(..100) {
        net.endpoint(A).abort(now, id);
        net.endpoint(A).release(now, id);
    }
    run(&mut net, SMALL, SECOND.saturating_mul(10), |_| false);
    assert!(net.endpoint(B).counters().tcp_passive_opens > held);
}

/// What other shards' drivers have handed over takes memory of the host.
#[test]
fn packets_that_wait_outside_count() {
    let mut net = net(BUDGET, 0);
    let (now, budget) = (net.now, BUDGET as usize);
    let endpoint = net.endpoint(B);
    let before = endpoint.memory();
    endpoint.set_waiting_memory(budget / 2);
    endpoint.handle_timeout(now);
    assert_eq!(endpoint.memory() - before, BUDGET / 2);
    endpoint.set_waiting_memory(budget);
    endpoint.handle_timeout(now);
    assert!(endpoint.is_under_memory_pressure());
    endpoint.set_waiting_memory(0);
    endpoint.handle_timeout(now);
    assert!(endpoint.memory() == before && !endpoint.is_under_memory_pressure());
}

/// A SYN of another client.
fn syn(net: &Net) -> Vec<u8> {
    let mut other = Net::new(9, Link::default());
    other.now = net.now;
    let now = other.now;
    let mut target = Target::from(socket(B, 80));
    target.local_port = Some(9);
    other.endpoint(A).connect(now, target, Arc::default()).expect("can connect");
    other.intercept(A).remove(0).bytes
}

/// Orphans go first, then those that hold much and stand still; those that hold little stay.
#[test]
fn the_least_valuable_goes_first() {
    let mut net = net(BUDGET, 1 << 20);
    // Half of them hold much, and the application drops some of those.
    let clients = zero_windows(&mut net, 8);
    run(&mut net, BUDGET, SECOND, |_| false);
    net.hosts[B].serve = Plan { send: 100, read_size: 1 };
    let small = zero_windows(&mut net, 8);
    run(&mut net, BUDGET, SECOND, |_| false);
    assert_eq!(net.endpoint(B).connections(), 16);
    let orphan = *net.hosts[B].streams.keys().next().expect("accepted");
    net.hosts[B].streams.remove(&orphan);
    let now = net.now;
    net.endpoint(B).release(now, orphan);
    net.hosts[B].serve = Plan::send(1 << 20);
    let client = net.connect(A, socket(B, 80), ConnConfig::default(), Plan { send: 0, read_size: 1 << 16 });
    assert!(run(&mut net, BUDGET, SECOND.saturating_mul(60), |net| net.hosts[A].streams[&client].ended));
    let counters = net.endpoint(B).counters().clone();
    assert!(counters.tcp_abort_on_memory >= 1);
    assert!(net.endpoint(B).state(orphan).is_none(), "the orphan is the first");
    for id in small {
        assert!(net.endpoint(A).state(id).is_some(), "{id:?} holds little");
    }
    assert_eq!(clients.len(), 8);
}
