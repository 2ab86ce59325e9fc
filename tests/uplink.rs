//! A slow uplink that uploads and a download's ACKs share: schedulers behind their own shaper,
//! against the closed forms of Kalampoukas, Varma and Ramakrishnan, "Improving TCP Throughput over
//! Two-Way Asymmetric Links: Analysis and Solutions" (UCSC-CRL-97-20, 1997), as far as they hold
//! (windows of 43 packets, 100 kbit/s up, 5 Mbit/s down, no propagation delay).

use ackline::Registry;
use ackline::core::config::{AcceptConfig, ConnConfig, Ecn, ListenOn, Pricing, Target};
use ackline::core::{Duration, EndpointConfig, Instant};
use ackline_netsim::app::{Amount, Bulk, Reading, Sink};
use ackline_netsim::topologies::{self, Duplex, HostSpec};
use ackline_netsim::{LinkSpec, Sim};
use std::net::SocketAddr;
use std::sync::Arc;

const UP: u64 = 100_000;
const DOWN: u64 = 5_000_000;
const DATA: u16 = 1_500;
const ACK: u16 = 28;

/// A greedy sender's and receiver's settings in the paper: a fixed window of 43 packets.
fn conn(ack_policy: &str) -> Arc<ConnConfig> {
    let mut config = ConnConfig::default();
    config.policies = Registry::default().named("reno", ack_policy, "conventional").unwrap();
    config.ack_hold_limit = Duration::from_millis(499);
    config.mss = Some(DATA);
    (config.sack, config.timestamps, config.window_scale) = (false, false, false);
    (config.send_buffer, config.recv_buffer, config.initial_recv_window) = (1 << 20, 65_535, None);
    config.cwnd_cap = Some(43 * u64::from(DATA));
    config.initial_window = 1;
    (config.initial_rto, config.min_rto) = (Duration::from_secs(60), Duration::from_secs(60));
    Arc::new(config)
}

fn host(sched: &str) -> HostSpec {
    let mut config = EndpointConfig::default();
    config.mtu = u32::from(DATA) + 100;
    config.pricing = Pricing::Paper { ack: ACK };
    let scheduler = Registry::default().sched(sched).unwrap()();
    HostSpec { config, scheduler, ..HostSpec::default() }
}

/// The efficiencies of upload and download between 20 s and 80 s, if the uploading host has this
/// scheduler behind its own shaper, and its link is no bottleneck.
fn efficiencies(sched: &str) -> (f64, f64) {
    efficiencies_with(sched, "immediate")
}

/// The same if receivers have this ACK policy.
fn efficiencies_with(sched: &str, ack_policy: &str) -> (f64, f64) {
    let mut sim = Sim::new(1);
    let duplex = Duplex {
        there: LinkSpec::new(1_000_000_000, Duration::ZERO),
        back: LinkSpec::new(DOWN, Duration::ZERO),
    };
    let near = host(&format!("{sched},rate={UP}bit,burst=0"));
    let pair = topologies::pair(&mut sim, near, host("fifo"), duplex);
    let sinks =
        [(pair.sender, pair.receiver, 80), (pair.receiver, pair.sender, 81)].map(|(from, to, port)| {
            let sink = Sink::new(ListenOn::Port(port), AcceptConfig::new(conn(ack_policy)), Reading::Instant);
            let sink = sim.add_app(to.node, Instant::ZERO, sink);
            let target = Target::new(SocketAddr::new(to.address, port));
            sim.add_app(from.node, Instant::ZERO, Bulk::new(target, conn(ack_policy), Amount::Endless));
            sink
        });
    let mut received = |until: u64| {
        sim.run_until(Instant::from_secs(until));
        sinks.map(|sink| sim.app::<Sink>(sink).unwrap().received() as f64)
    };
    let (before, after) = (received(20), received(80));
    let share = |place: usize, rate: u64| (after[place] - before[place]) * 8.0 / (60.0 * rate as f64);
    (share(0, UP), share(1, DOWN))
}

#[test]
fn each_scheduler_divides_the_uplink_as_its_closed_form_says() {
    let (alpha, beta) = (50.0, f64::from(DATA) / f64::from(ACK));
    let window = 43.0;
    // Backpressure: b data packets to each batch of ACKs, which the download's window bounds.
    let backpressure = |b: f64| (b * beta / (window + b * beta), window * beta / alpha / (window + b * beta));
    for (sched, (up, down), tolerance) in [
        // One window of data before each window of ACKs.
        ("fifo:acks=kept", (1.0 - 0.0206 * alpha / beta, 0.0206), (0.01, 0.004)),
        ("backpressure:b=1,acks=kept", backpressure(1.0), (0.01, 0.01)),
        ("backpressure:b=4,acks=kept", backpressure(4.0), (0.01, 0.01)),
        // Data gets f; the ACKs' share bounds the download.
        ("kalampoukas:f=1/2,acks=kept", (0.5, 0.5 * beta / alpha), (0.01, 0.01)),
        ("kalampoukas:f=4/5,acks=kept", (0.8, 0.2 * beta / alpha), (0.01, 0.01)),
        // Nearly all goes to ACKs.
        ("ack-priority:acks=kept", (1.0 - 0.986 * alpha / beta, 0.986), (0.01, 0.015)),
    ] {
        let (f_up, f_down) = efficiencies(sched);
        assert!((f_up - up).abs() <= tolerance.0, "{sched}: the upload gets {f_up}, not {up}");
        assert!((f_down - down).abs() <= tolerance.1, "{sched}: the download gets {f_down}, not {down}");
        // The uplink is never idle.
        let sum = f_up + f_down * alpha / beta;
        assert!((sum - 1.0).abs() <= 0.01, "{sched}: {f_up} and {f_down} make {sum}");
    }
}

/// `f=auto`: both directions get the same part of their links, beta / (alpha + beta), whatever an
/// ACK costs and answers, if the downlink's rate is given and if it is estimated.
#[test]
fn an_adaptive_share_treats_both_directions_alike() {
    for (ack_policy, per_ack) in [("immediate", 1.0), ("delayed:segments=2,delay=400ms", 2.0)] {
        let ratio = 50.0 * f64::from(ACK) / f64::from(DATA) / per_ack;
        let fair = 1.0 / (1.0 + ratio);
        for down in ["5mbit", "auto"] {
            let sched = format!("kalampoukas:f=auto,down={down},acks=kept");
            let (up, down) = efficiencies_with(&sched, ack_policy);
            assert!(
                (up - fair).abs() <= 0.02 && (down - fair).abs() <= 0.02,
                "{sched}, {ack_policy}: {up}, {down}, not {fair}"
            );
        }
    }
}

/// `f=auto,goal=G`: downloads get this part of their link, and uploads what its ACKs leave.
#[test]
fn an_adaptive_share_gives_downloads_the_part_that_is_asked_for() {
    let ratio = 50.0 * f64::from(ACK) / f64::from(DATA);
    for goal in [0.2, 0.7] {
        let (up, down) = efficiencies(&format!("kalampoukas:f=auto,goal={goal},acks=kept"));
        let rest = 1.0 - goal * ratio;
        assert!((up - rest).abs() <= 0.02 && (down - goal).abs() <= 0.02, "{goal}: {up}, {down}, not {rest}");
    }
}

/// If a newer ACK takes the place of one that waits, a window of the download needs one ACK,
/// between two packets of the upload: a cycle is the time of both.
#[test]
fn fewer_acks_leave_the_uplink_to_data_and_hardly_slow_the_download() {
    let (data, ack) = (f64::from(DATA) * 8.0 / UP as f64, f64::from(ACK) * 8.0 / UP as f64);
    let window = 43.0 * f64::from(DATA) * 8.0 / DOWN as f64;
    for spec in ["kalampoukas:f=4/5,thin=on", "kalampoukas:f=4/5", "ack-priority:thin=on"] {
        let (up, down) = efficiencies(spec);
        assert!((up - data / (data + ack)).abs() <= 0.01, "{spec}: the upload gets {up}");
        assert!((down - window / (data + ack)).abs() <= 0.01, "{spec}: the download gets {down}");
    }
}

/// A flow of each of two congestion controls through one uplink of 20 Mbit/s whose shaper is
/// DualPI2: their rates, the mean delays of L4S and classic packets, and what was marked and dropped
/// of both, from 20 s to 60 s.
struct Shared {
    rates: [f64; 2],
    /// Milliseconds.
    delays: [f64; 2],
    marked: [f64; 2],
    dropped: [f64; 2],
}

fn shared(sched: &str, flows: [(&str, Ecn); 2]) -> Shared {
    let mut sim = Sim::new(1);
    let link = || LinkSpec::new(1_000_000_000, Duration::from_millis(5));
    let near = HostSpec {
        config: EndpointConfig::default(),
        scheduler: Registry::default().sched(sched).unwrap()(),
        ..HostSpec::default()
    };
    let pair = topologies::pair(&mut sim, near, HostSpec::default(), Duplex::symmetric(link));
    let sinks = [80, 81].map(|port| {
        let (cc, ecn) = flows[port as usize - 80];
        let mut config = Registry::default().conn_config();
        (config.policies.cc, config.ecn) = (Registry::default().cc(cc).unwrap(), ecn);
        let config = Arc::new(config);
        let accept = AcceptConfig::new(config.clone());
        let sink = Sink::new(ListenOn::Port(port), accept, Reading::Instant);
        let sink = sim.add_app(pair.receiver.node, Instant::ZERO, sink);
        let target = Target::new(SocketAddr::new(pair.receiver.address, port));
        sim.add_app(pair.sender.node, Instant::ZERO, Bulk::new(target, config, Amount::Endless));
        sink
    });
    let mut at = |millis: u64| {
        sim.run_until(Instant::from_millis(millis));
        let mut metrics = std::collections::BTreeMap::new();
        sim.view().endpoint(pair.sender.node).unwrap().scheduler_metrics(&mut |metric| {
            metrics.insert(metric.name, metric.value);
        });
        (sinks.map(|sink| sim.app::<Sink>(sink).unwrap().received() as f64), metrics)
    };
    let (received, before) = at(20_000);
    let mut waiting = [0.0; 2];
    for millis in 20_001..=60_000 {
        let (_, now) = at(millis);
        waiting = [waiting[0] + now["l_bytes"], waiting[1] + now["c_bytes"]];
    }
    let (last, after) = at(60_000);
    let rates = [0, 1].map(|place| (last[place] - received[place]) * 8.0 / 40e6);
    let grown = |name| after[name] - before[name];
    // Little's law, with each queue's own rate.
    let delay = |place: usize| waiting[place] / 40_000.0 * 8e-3 / rates[place].max(1e-3);
    Shared {
        rates,
        delays: [delay(0), delay(1)],
        marked: ["l_marked", "c_marked"].map(grown),
        dropped: ["l_dropped", "c_dropped"].map(grown),
    }
}

#[test]
fn dualpi2_marks_prague_which_hardly_waits_and_drops_cubic() {
    for (ecn, name) in [(Ecn::Off, "drops"), (Ecn::Classic, "marks")] {
        let sched = "dualpi2:rate=20mbit,burst=0";
        let found = shared(sched, [("prague", Ecn::Accurate), ("cubic", ecn)]);
        let Shared { rates: [l4s, classic], delays, marked, dropped } = found;
        assert!(l4s + classic > 18.0, "{name}: {l4s} and {classic} Mbit/s of payload");
        assert!((0.5..2.0).contains(&(l4s / classic)), "{name}: {l4s} and {classic} Mbit/s");
        assert!(delays[0] < 2.0 && (8.0..25.0).contains(&delays[1]), "{name}: {delays:?} ms");
        assert!(marked[0] > 500.0 && dropped[0] == 0.0, "{name}: L {marked:?} {dropped:?}");
        let (all, none) = if ecn == Ecn::Off { (dropped[1], marked[1]) } else { (marked[1], dropped[1]) };
        assert!(all > 20.0 && none == 0.0, "{name}: C {marked:?} {dropped:?}");
    }
}
