//! ECN end to end, in virtual time: whole connections through queues that mark.

use ackline::Registry;
use ackline::core::config::Ecn;
use ackline::core::{AcceptConfig, ConnConfig, Duration, Instant, ListenOn, Target};
use ackline_netsim::app::{Amount, Bulk, Reading, Sink};
use ackline_netsim::queue::{Action, Limit, Queue, Red, RedParams, Step};
use ackline_netsim::record::{ConnRecord, Record, RecordOptions, Recorder};
use ackline_netsim::topologies::{self, Duplex, Edge, HostAt, HostSpec};
use ackline_netsim::{LinkSpec, Sim};
use std::net::SocketAddr;
use std::sync::Arc;

const MBIT: u64 = 1_000_000;
const RATE: u64 = 100 * MBIT;
/// A packet with 1,448 bytes of data.
const PACKET: u64 = 1_500;
/// Marking threshold: above C RTT / 7 for the 4 ms of [`bottleneck`] (RFC 8257, section 3.1).
const K: u64 = 20 * PACKET;

fn config(cc: &str, ecn: Ecn) -> Arc<ConnConfig> {
    let mut config = Registry::default().conn_config();
    config.policies.cc = Registry::default().cc(cc).unwrap();
    config.ecn = ecn;
    Arc::new(config)
}

fn step() -> Box<dyn Queue> {
    Box::new(Step::new(Limit::Bytes(400 * PACKET), K, Action::Mark))
}

/// 4 ms there and back, `queue` there.
fn bottleneck(queue: Box<dyn Queue>) -> Duplex {
    let link = || LinkSpec::new(RATE, Duration::from_millis(2));
    Duplex { there: link().with_queue(queue), back: link() }
}

fn flow(sim: &mut Sim, from: &HostAt, to: &HostAt, config: &Arc<ConnConfig>, start: Instant) {
    let sink = Sink::new(ListenOn::Port(80), AcceptConfig::new(config.clone()), Reading::Instant);
    sim.add_app(to.node, Instant::ZERO, sink);
    let target = Target::new(SocketAddr::new(to.address, 80));
    sim.add_app(from.node, start, Bulk::new(target, config.clone(), Amount::Endless));
}

/// Runs flows over one bottleneck, the n-th from second 2 n on, and records them from `from`
/// seconds to `until`, every millisecond.
fn run(configs: &[Arc<ConnConfig>], queue: Box<dyn Queue>, from: u64, until: u64) -> Record {
    let mut sim = Sim::new(1);
    let mut edge = Edge {
        host: &mut |_| HostSpec::default(),
        access: &mut |_| Duplex::symmetric(|| LinkSpec::new(10 * RATE, Duration::from_micros(1))),
    };
    let net = topologies::dumbbell(&mut sim, configs.len(), bottleneck(queue), &mut edge);
    for (i, config) in configs.iter().enumerate() {
        let start = Instant::from_secs(2 * i as u64) + Duration::from_millis(1);
        flow(&mut sim, &net.senders[i], &net.receivers[i], config, start);
    }
    let options = RecordOptions {
        from: Instant::from_secs(from),
        until: Instant::from_secs(until),
        links: ackline_netsim::record::Select::Only(vec![net.bottleneck().there]),
        max_points: 1_000_000,
        ..RecordOptions::default()
    };
    let recorder = sim.add_observer(Recorder::new(options));
    sim.sample_every(Instant::ZERO, Duration::from_millis(1));
    sim.run_until(Instant::from_secs(until));
    sim.take_observer::<Recorder>(recorder).unwrap().record()
}

fn senders(record: &Record) -> Vec<&ConnRecord> {
    record.connections.iter().filter(|conn| conn.remote.ends_with(":80")).collect()
}

#[test]
fn dctcp_holds_the_queue_at_the_threshold() {
    let record = run(&[config("dctcp", Ecn::Dctcp)], step(), 2, 8);
    let queue = &record.queues[0];
    let window = queue.window.unwrap();
    let counters = window.counters();
    assert_eq!((counters.aqm_drops, counters.overflows), (0, 0));
    assert!(window.utilisation() > 0.999, "{}", window.utilisation());

    // Alizadeh, Javanmard and Prabhakar (2011), section 3: with W = C RTT + K packets, alpha is
    // about sqrt(2 / W), and the queue swings below the threshold by about W alpha / 2 = sqrt(W /
    // 2).
    let packets = 100e6 * 4e-3 / 8.0 / PACKET as f64 + 20.0;
    let alpha = (2.0 / packets).sqrt();
    let metric = record.connections[0].metrics.iter().find(|metric| metric.name == "alpha").unwrap();
    let values: Vec<f64> = metric.values[2_000..].iter().flatten().copied().collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    // The analysis has every packet of a round trip marked; segments that arrive in pairs find the
    // queue one packet lower every other time.
    assert!((0.5..1.2).contains(&(mean / alpha)), "alpha {mean}, not {alpha}");

    let steady: Vec<u64> =
        queue.samples.iter().filter(|sample| sample.at_ns >= 2_000_000_000).map(|s| s.bytes).collect();
    let (low, high) = (steady.iter().min().unwrap(), steady.iter().max().unwrap());
    let swing = ((packets / 2.0).sqrt() * PACKET as f64) as u64;
    assert!(*high <= K + 6 * PACKET, "{high}");
    assert!(*low + 2 * swing >= K, "{low}");
}

/// Windows before and after each fall of more than a tenth, with the time.
fn falls(sender: &ConnRecord, from_ns: u64) -> Vec<(u64, f64)> {
    let steady = sender.samples.iter().filter(|sample| sample.at_ns >= from_ns);
    let (times, windows): (Vec<_>, Vec<_>) = steady.map(|sample| (sample.at_ns, sample.cwnd as f64)).unzip();
    (1..windows.len())
        .map(|i| (times[i], windows[i] / windows[i - 1]))
        .filter(|(_, ratio)| *ratio < 0.9)
        .collect()
}

#[test]
fn classic_ecn_reduces_once_per_round_trip_and_loses_nothing() {
    for (cc, factor) in [("reno", 0.5), ("cubic", 0.7), ("cubic:abe=on", 0.85)] {
        let record = run(&[config(cc, Ecn::Classic)], step(), 2, 8);
        let sender = senders(&record)[0];
        let last = sender.samples.last().unwrap();
        assert_eq!((last.bytes_retrans, last.retransmits), (0, 0), "{cc}");
        let counters = record.queues[0].window.unwrap().counters();
        assert_eq!((counters.aqm_drops, counters.overflows), (0, 0), "{cc}");
        assert!(counters.marked > 0, "{cc}");

        let falls = falls(sender, 2_000_000_000);
        assert!(falls.len() > 3, "{cc}: {falls:?}");
        for (at, ratio) in &falls {
            // The window may have grown by a segment or two between the samples.
            assert!((ratio - factor).abs() < 0.04, "{cc}: to {ratio} at {at}");
        }
        for pair in falls.windows(2) {
            assert!(pair[1].0 - pair[0].0 >= 4_000_000, "{cc}: {pair:?}");
        }
    }
}

#[test]
fn classic_ecn_through_red_loses_nothing() {
    let params = RedParams {
        limit: Limit::Bytes(600 * PACKET),
        min: 20 * PACKET,
        // The average lags behind slow start.
        max: 400 * PACKET,
        max_p: 0.1,
        wlog: 6,
        avpkt: 1_500,
        adaptive: None,
        action: Action::Mark,
    };
    let record = run(&[config("cubic", Ecn::Classic)], Box::new(Red::new(params)), 0, 8);
    let counters = record.queues[0].window.unwrap().counters();
    assert_eq!((counters.aqm_drops, counters.overflows), (0, 0));
    assert!(counters.marked > 0);
    assert_eq!(senders(&record)[0].samples.last().unwrap().bytes_retrans, 0);
}

#[test]
fn without_ecn_the_same_queue_drops() {
    let record = run(&[config("cubic", Ecn::Off)], step(), 0, 3);
    let counters = record.queues[0].window.unwrap().counters();
    assert_eq!(counters.marked, 0);
    assert!(counters.aqm_drops > 0);
}

#[test]
fn two_dctcp_flows_share_the_path_evenly() {
    let config = config("dctcp", Ecn::Dctcp);
    let record = run(&[config.clone(), config], step(), 6, 14);
    let shares: Vec<f64> = senders(&record)
        .iter()
        .map(|sender| {
            let at = |ns| sender.samples.iter().find(|sample| sample.at_ns >= ns).unwrap().bytes_acked;
            (sender.samples.last().unwrap().bytes_acked - at(6_000_000_000)) as f64
        })
        .collect();
    assert_eq!(shares.len(), 2);
    let ratio = shares[0].min(shares[1]) / shares[0].max(shares[1]);
    assert!(ratio > 0.8, "{shares:?}");
    assert!(record.queues[0].window.unwrap().utilisation() > 0.999);
}
