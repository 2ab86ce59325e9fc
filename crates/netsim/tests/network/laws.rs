//! Whole networks against closed forms.

use crate::common::{link, pair, sink, target, transfer};
use ackline_netsim::app::{Amount, Bulk, Datagrams, Draw, Sink};
use ackline_netsim::impair::Loss;
use ackline_netsim::queue::{DropTail, Limit};
use ackline_netsim::record::{RecordOptions, Recorder, Select};
use ackline_netsim::topologies::Duplex;
use ackline_netsim::{LinkSpec, Service, Sim, Trace};
use ackline_tcp_core::config::ConnConfig;
use ackline_tcp_core::{Duration, Instant};
use std::sync::Arc;

/// Mean wait in a queue with random arrivals and equal packets (M/D/1; Pollaczek, 1930; Khinchine,
/// 1932), in units of the service time: rho / (2 (1 - rho)).
#[test]
fn random_arrivals_wait_as_pollaczek_and_khinchine_say() {
    // 1,000 bytes at 8 Mbit/s take a millisecond.
    for (load, tolerance) in [(0.3, 0.03), (0.6, 0.03), (0.8, 0.06)] {
        let seed = 7;
        let mut sim = Sim::new(seed);
        let pair = pair(&mut sim, Duplex::symmetric(|| link(8_000_000, 3)));
        let (from, to) = (&pair.sender, &pair.receiver);
        let interval = Draw::Exponential(0.001 / load);
        let end = Instant::from_secs(120);
        let source = Datagrams::new(from.address, to.address, Draw::Fixed(1_000.0), interval, end);
        let source = sim.add_app(from.node, Instant::ZERO, source);
        let there = from.access.there;
        let recorder = sim.add_observer(Recorder::new(RecordOptions {
            links: Select::Only(vec![there]),
            from: Instant::from_secs(1),
            ..RecordOptions::default()
        }));
        sim.run_until(end + Duration::from_secs(1));
        let sent = sim.app::<Datagrams>(source).unwrap().sent();
        let record = sim.take_observer::<Recorder>(recorder).unwrap().record();
        let stats = sim.view().stats(there);
        assert_eq!((stats.offered, stats.delivered), (sent, sent));
        assert_eq!(stats.busy, Duration::from_millis(sent));
        let wait = record.queues[0].delay.mean_ns / 1e6;
        let expected = load / (2.0 * (1.0 - load));
        assert!(
            (wait / expected - 1.0).abs() < tolerance,
            "seed {seed}, load {load}: {wait} instead of {expected} ms"
        );
    }
}

/// Mathis, Semke, Mahdavi and Ott (1997): window = C / sqrt(p) segments. C is sqrt(3/2) = 1.22 if
/// losses come at equal distances, and 1.31 if they come at random (Ott, Kemperman, Mathis, 1996),
/// as they do here; recoveries, in which the window does not grow, take a little of it.
#[test]
fn reno_follows_the_square_root_law() {
    for p in [0.001, 0.004] {
        let seed = 3;
        let mut sim = Sim::new(seed);
        let lossy = link(1_000_000_000, 50).with_impairment(Loss::new(p));
        let pair = pair(&mut sim, Duplex { there: lossy, back: link(1_000_000_000, 50) });
        let to = sink(&mut sim, &pair.receiver);
        transfer(&mut sim, &pair.sender, &pair.receiver, Amount::Endless);
        let warm_up = Instant::from_secs(20);
        sim.run_until(warm_up);
        let before = sim.app::<Sink>(to).unwrap().received();
        sim.run_until(warm_up + Duration::from_secs(200));
        let bytes = sim.app::<Sink>(to).unwrap().received() - before;
        // 1,448 bytes of payload, and a round trip of 100 ms.
        let window = bytes as f64 / 1_448.0 * 0.1 / 200.0;
        let constant = window * libm::sqrt(p);
        assert!((1.1..1.45).contains(&constant), "seed {seed}, p {p}: C = {constant}");
    }
}

/// A bulk transfer over a trace of one line a millisecond is 1,500 bytes a millisecond on the wire,
/// in segments of any size: 12 Mbit/s.
#[test]
fn a_trace_carries_1500_bytes_per_line() {
    for mss in [100, 536, 700, 1_000, 1_448, 1_460] {
        let trace = Service::Trace(Trace::parse("1\n").unwrap());
        let there = LinkSpec { service: trace, ..link(1, 10) }
            .with_queue(Box::new(DropTail::new(Limit::Bytes(150_000))));
        let mut sim = Sim::new(1);
        let pair = pair(&mut sim, Duplex { there, back: link(1_000_000_000, 10) });
        let (from, to) = (&pair.sender, &pair.receiver);
        sink(&mut sim, to);
        let mut config = ConnConfig::default();
        config.mss = Some(mss);
        let bulk = Bulk::new(target(to), Arc::new(config), Amount::Endless);
        sim.add_app(from.node, Instant::from_millis(1), bulk);
        let there = from.access.there;
        let mut delivered = |until| {
            sim.run_until(Instant::from_secs(until));
            sim.view().stats(there).delivered_bytes
        };
        let before = delivered(2);
        // Bytes of 8 s are bits of 1 s.
        let rate = (delivered(10) - before) as f64;
        assert!((rate / 12e6 - 1.0).abs() < 1e-4, "MSS {mss}: {rate} bit/s");
    }
}
