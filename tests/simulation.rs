//! Policies in simulated networks, against what their RFCs say.

use ackline::Registry;
use ackline::core::config::{AcceptConfig, ConnConfig, ListenOn, Target};
use ackline::core::policy::spec::PolicyKind;
use ackline::core::{Duration, Instant};
use ackline_netsim::app::{Amount, Bulk, Reading, Sink};
use ackline_netsim::impair::{DropList, Which};
use ackline_netsim::pcapng::{Capture, CapturePoint, Point};
use ackline_netsim::record::{ConnSample, RecordOptions, Recorder};
use ackline_netsim::topologies::{self, Duplex, HostSpec};
use ackline_netsim::{Change, LinkSpec, Sim};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// One flow over a path of 1 Gbit/s and this round-trip time, which loses one packet after `loss`:
/// its samples, every 10 ms.
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
        let mut config: ConnConfig = Registry::default().conn_config();
        config.policies.cc = Registry::default().cc(cc).unwrap();
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

/// RFC 9438, section 4.2: W(t) = C (t - K)^3 + W_max, with K = cbrt((W_max - cwnd_epoch) / C), C =
/// 0.4 and cwnd_epoch = 0.7 W_max; in segments and seconds, t from the begin of congestion
/// avoidance.
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
        // The window follows the law of a round trip ahead within one round trip (section 4.2), and
        // comes in steps of ACKs.
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

/// A flow of 40,000 bytes of window over 2 Mbit/s and 100 ms, whose way there stands still for 1.5
/// s and loses nothing: retransmissions and timeouts, and the comments of a capture at both ends of
/// that way and of the way back.
fn stalled(rto: &str) -> (u64, u64, Vec<String>) {
    let mut sim = Sim::new(1);
    let duplex = Duplex::symmetric(|| LinkSpec::new(2_000_000, Duration::from_millis(50)));
    let pair = topologies::pair(&mut sim, HostSpec::default(), HostSpec::default(), duplex);
    let config = Arc::new({
        let mut config: ConnConfig = Registry::default().conn_config();
        config.policies.rto = Registry::default().rto(rto).unwrap();
        config.cwnd_cap = Some(40_000);
        config
    });
    let sink = Sink::new(ListenOn::Port(80), AcceptConfig::new(config.clone()), Reading::Instant);
    sim.add_app(pair.receiver.node, Instant::ZERO, sink);
    let to = Target::new(SocketAddr::new(pair.receiver.address, 80));
    sim.add_app(pair.sender.node, Instant::ZERO, Bulk::new(to, config, Amount::Endless));
    let point = |link, point| CapturePoint { link, point, name: "sender".to_owned() };
    let (there, back) = (pair.sender.access.there, pair.sender.access.back);
    let points = vec![point(there, Point::Offered), point(back, Point::Delivered)];
    let capture = sim.add_observer(Capture::new(Vec::new(), points, None).unwrap());
    let recorder = sim.add_observer(Recorder::new(RecordOptions::default()));
    sim.sample_every(Instant::ZERO, Duration::from_millis(10));
    sim.add_change(Instant::from_secs(2), Change::Stall(there));
    sim.add_change(Instant::from_millis(3_500), Change::Resume(there));
    sim.run_until(Instant::from_secs(6));
    let record = sim.take_observer::<Recorder>(recorder).unwrap().record();
    let last = record.connections[0].samples.last().unwrap();
    let file = sim.take_observer::<Capture<Vec<u8>>>(capture).unwrap().finish().unwrap();
    // A comment is the only text in the packets' blocks; the data is zero.
    let text = String::from_utf8_lossy(&file);
    let comments = text.split('\0').filter(|part| part.contains("sent: ")).map(str::to_owned).collect();
    (last.retransmits, last.timeouts, comments)
}

/// What responses make of a timeout that was only a delay, and how a capture tells.
#[test]
fn a_stall_costs_dclor_no_retransmissions_and_go_back_n_a_window() {
    let (retransmits, timeouts, comments) = stalled("dclor");
    assert!(timeouts > 0);
    // The probe may be repeated; a tail loss probe may have come before it.
    assert!(retransmits <= timeouts, "{retransmits} retransmissions, {timeouts} timeouts");
    let with = |what: &str| comments.iter().filter(|comment| comment.contains(what)).count();
    assert_eq!(with("sent: rto-probe"), timeouts as usize);
    let first = comments.iter().find(|comment| comment.contains("sent: rto-probe")).unwrap();
    assert!(
        first.contains("rto phase: open to probe") && first.contains("timeout 1, the next after"),
        "{first}"
    );
    assert!(with("stale ack") >= 10, "{}", with("stale ack"));
    assert_eq!((with("verdict: spurious"), with("rto phase: probe to open")), (1, 1));

    let (retransmits, timeouts, comments) = stalled("go-back-n");
    assert!(retransmits >= timeouts + 10, "{retransmits} retransmissions, {timeouts} timeouts");
    let to_repair = |comment: &&String| comment.contains("rto phase: open to repair");
    assert_eq!(comments.iter().filter(to_repair).count(), 1);
}

/// Bytes that arrive of a transfer over IPv6 and 40 ms, while packets of more than `most` octets
/// vanish without a word.
fn through_a_narrow_path(rto: &str, most: usize, bytes: u64, end: Instant) -> u64 {
    let mut sim = Sim::new(1);
    let (local, remote) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
    let [from, to] = [local, remote].map(|address: IpAddr| {
        let HostSpec { mut config, scheduler, egress } = HostSpec::default();
        config.addresses = vec![address];
        sim.add_host(config, scheduler, egress)
    });
    let link = || LinkSpec::new(10_000_000, Duration::from_millis(20));
    let long = Which::Predicate(Box::new(move |_, packet| packet.len() > most));
    sim.add_link(from, to, link().with_impairment(DropList::new(long)));
    sim.add_link(to, from, link());
    let config = Arc::new({
        let mut config: ConnConfig = Registry::default().conn_config();
        config.policies.rto = Registry::default().rto(rto).unwrap();
        config
    });
    let sink = Sink::new(ListenOn::Port(80), AcceptConfig::new(config.clone()), Reading::Instant);
    let sink = sim.add_app(to, Instant::ZERO, sink);
    let target = Target::new(SocketAddr::new(remote, 80));
    sim.add_app(from, Instant::ZERO, Bulk::new(target, config, Amount::Bytes(bytes)));
    sim.run_until(end);
    sim.app::<Sink>(sink).unwrap().received()
}

/// RFC 4821, section 7.7: a path that carries small packets alone is noticed, whatever the response
/// to a timeout sends. DCLOR's timer sends the end of the data, which may be a segment that
/// arrives.
#[test]
fn each_response_finds_a_black_hole() {
    for rto in Registry::default().list(PolicyKind::Rto).into_iter().map(|info| info.name) {
        for most in [1_300, 1_400] {
            for bytes in [1_000_000, 9_000, 1_440, 3_000] {
                let received = through_a_narrow_path(rto, most, bytes, Instant::from_secs(60));
                assert!(received == bytes, "{rto}: {received} of {bytes} bytes through {most}");
            }
        }
    }
}
