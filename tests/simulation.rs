//! Policies in simulated networks, against what their RFCs say.

use ackline::core::config::{AcceptConfig, ConnConfig, ListenOn, Target};
use ackline::core::{Duration, Instant};
use ackline::policies;
use ackline_netsim::app::{Amount, Bulk, Reading, Sink};
use ackline_netsim::impair::{DropList, Which};
use ackline_netsim::record::{ConnSample, RecordOptions, Recorder};
use ackline_netsim::topologies::{self, Duplex, HostSpec};
use ackline_netsim::{LinkSpec, Sim};
use std::net::SocketAddr;
use std::sync::Arc;

/// One flow over a path of 1 Gbit/s and this round-trip time, which loses one packet after `loss`: its samples, every
/// 10 ms.
fn one_loss(cc: &str, rtt: Duration, loss: Instant, end: Instant) -> Vec<ConnSample> {
    let mut sim = Sim::new(1);
    let half = Duration::from_nanos(rtt.as_nanos() / 2);
    let mut lost = false;
    let once = Which::Predicate(Box::new(move |_, packet| {
        let now = packet.sent_at >= loss && !lost && packet.origin.class.is_data();
        lost |= now;
        now
    }));
    let link = || LinkSpec::new(1_000_000_000, half);
    let duplex = Duplex { there: link().with_impairment(DropList::new(once)), back: link() };
    let pair = topologies::pair(&mut sim, HostSpec::default(), HostSpec::default(), duplex);
    let config = Arc::new({
        let mut config: ConnConfig = policies::conn_config();
        config.policies.cc = policies::congestion_control(cc).unwrap();
        (config.send_buffer, config.recv_buffer) = (16 << 20, 16 << 20);
        config
    });
    let sink = Sink::new(ListenOn::Port(80), AcceptConfig::new(config.clone()), Reading::Instant);
    sim.add_app(pair.receiver.node, Instant::ZERO, sink);
    let to = Target::new(SocketAddr::new(pair.receiver.address, 80));
    sim.add_app(pair.sender.node, Instant::ZERO, Bulk::new(to, config, Amount::Endless));
    let recorder = sim.add_observer(Recorder::new(RecordOptions::default()));
    sim.sample_every(Instant::ZERO, Duration::from_millis(10));
    sim.run_until(end);
    let record = sim.take_observer::<Recorder>(recorder).unwrap().record();
    record.connections.into_iter().next().unwrap().samples
}

/// RFC 9438, section 4.2: W(t) = C (t - K)^3 + W_max, with K = cbrt((W_max - cwnd_epoch) / C), C = 0.4 and
/// cwnd_epoch = 0.7 W_max; in segments and seconds, t from the begin of congestion avoidance.
#[test]
fn cubic_grows_as_rfc_9438_says() {
    let rtt = Duration::from_millis(100);
    let samples = one_loss("cubic", rtt, Instant::from_millis(620), Instant::from_secs(14));
    let segment = 1_448.0;
    let reduced = samples.iter().position(|sample| sample.ca_state == "recovery").expect("a loss");
    let w_max = samples[reduced - 1].cwnd as f64 / segment;
    let begun = reduced + samples[reduced..].iter().position(|sample| sample.ca_state == "open").unwrap();
    let epoch = samples[begun].at_ns as f64 / 1e9;
    let w_epoch = samples[begun].cwnd as f64 / segment;
    assert!(w_max > 200.0, "the window is in CUBIC's own region: {w_max}");
    assert!((w_epoch / w_max - 0.7).abs() < 0.02, "beta is 0.7: from {w_max} to {w_epoch}");
    let k = ((w_max - w_epoch) / 0.4).cbrt();
    let law = |t: f64| 0.4 * (t - k).powi(3) + w_max;
    assert!(k > 3.0 && epoch + 1.5 * k < 14.0, "K = {k}");
    for sample in &samples[begun..] {
        let t = sample.at_ns as f64 / 1e9 - epoch;
        if t > 1.5 * k {
            break;
        }
        let window = sample.cwnd as f64 / segment;
        // The window follows the law of a round trip ahead within one round trip (section 4.2), and comes in steps of ACKs.
        let (low, high) = (law(t - 0.1) - 2.0, law(t + 0.1) + 2.0);
        assert!((low..=high).contains(&window), "t = {t}, K = {k}: {window} is not in {low}..{high}");
    }
}

/// RFC 5681: half the flight after a loss, then a segment more each round trip.
#[test]
fn reno_grows_by_a_segment_in_each_round_trip() {
    let rtt = Duration::from_millis(100);
    let samples = one_loss("reno", rtt, Instant::from_millis(620), Instant::from_secs(14));
    let segment = 1_448.0;
    let reduced = samples.iter().position(|sample| sample.ca_state == "recovery").expect("a loss");
    let begun = reduced + samples[reduced..].iter().position(|sample| sample.ca_state == "open").unwrap();
    let before = samples[reduced - 1].cwnd as f64;
    assert!((samples[begun].cwnd as f64 / before - 0.5).abs() < 0.02);
    let (first, last) = (&samples[begun], &samples[samples.len() - 1]);
    let growth = (last.cwnd - first.cwnd) as f64 / segment;
    let trips = (last.at_ns - first.at_ns) as f64 / rtt.as_nanos() as f64;
    assert!((growth - trips).abs() <= 0.03 * trips, "{growth} segments in {trips} round trips");
}
