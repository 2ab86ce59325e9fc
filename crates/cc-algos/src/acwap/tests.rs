//! ACWAP's decisions against an independent model's, and what they do to the window.

use super::range::fixed;
use super::*;
use crate::aimd::AimdParams;
use crate::aimd::tests::{Flow, SMSS};
use ackline_tcp_core::Window;
use ackline_tcp_core::policy::conformance;
use ackline_tcp_core::policy::{CongestionControl, Params};
use proptest::prelude::*;

const NOW: Instant = Instant::from_secs(100);

/// Seconds, to the nanosecond.
fn secs(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}

fn known(min: f64, max: f64, r_c: f64, events: u32) -> RttRange {
    RttRange {
        smoothed: Some(fixed(secs(r_c))),
        min: Some(fixed(secs(min))),
        max: fixed(secs(max)),
        events,
        ..RttRange::new(false, false)
    }
}

fn acwap(spec: &str) -> Acwap<Hstcp> {
    let params: Params = spec.parse().unwrap();
    let params = AcwapParams::from_params("acwap", &params).unwrap();
    let mut acwap = Acwap::new(params, Hstcp::new(params.hstcp));
    acwap.start(&CcInit::new(NOW, SMSS, Window::from_bytes(2000)));
    acwap
}

/// rtt_min, rtt_max, beta, r_c in seconds, numofcon: whether growth is held back.
#[test]
fn decisions_of_the_model() {
    let vectors = [
        ("V1", 0.120, 0.140, 800_000, 0.1359, 2, false),
        ("V2", 0.120, 0.140, 800_000, 0.1360, 2, true),
        ("V3", 0.120, 0.140, 800_000, 0.1399, 1, false),
        ("V4", 0.120, 0.140, 200_000, 0.1241, 2, true),
        ("V5", 0.120, 0.140, 1_000_000, 0.1399, 5, false),
        ("V6", 0.120, 0.140, 1_000_000, 0.1400, 5, true),
        ("V7", 0.120, 0.120, 800_000, 0.120, 4, false),
        ("V8", 0.060, 0.0684, 800_000, 0.0668, 3, true),
        ("V9", 0.120, 0.140, 900_000, 0.1379, 2, false),
    ];
    // Two packets of a window of 8400 segments, as W4 asks for.
    let least = secs(0.120 / 8400.0 * 2.0);
    for (name, min, max, beta, r_c, events, expected) in vectors {
        let held = known(min, max, r_c, events).upper_part(beta, least).is_some();
        assert_eq!(held, expected, "{name}");
    }
    let mut literal = known(0.120, 0.120, 0.120, 4);
    literal.literal = true;
    assert!(literal.upper_part(800_000, least).is_some(), "V7 as published: 0 >= 0");
}

#[test]
fn the_trace_of_the_model() {
    let least = Duration::from_micros(30);
    let mut range = RttRange::new(false, false);
    for _ in 0..2 {
        range.on_sample(secs(0.120), Duration::MAX);
        range.on_slow_start(NOW);
    }
    range.on_congestion();
    assert_eq!((range.events(), range.smoothed()), (1, Some(secs(0.120))));

    let avoid = |range: &mut RttRange, rtt: f64| {
        range.on_sample(secs(rtt), Duration::MAX);
        range.on_avoidance(NOW);
        (range.smoothed().unwrap(), range.max(), range.upper_part(800_000, least).is_some())
    };
    assert_eq!(avoid(&mut range, 0.130), (secs(0.121_25), secs(0.121_25), false));
    assert_eq!(avoid(&mut range, 0.140), (secs(0.123_593_75), secs(0.123_593_75), false));
    range.on_congestion();
    assert_eq!((range.events(), range.smoothed()), (2, Some(secs(0.120))));
    assert_eq!(avoid(&mut range, 0.120), (secs(0.120), secs(0.123_593_75), false));
    // The threshold is 0.122875.
    assert_eq!(avoid(&mut range, 0.1392), (secs(0.1224), secs(0.123_593_75), false));
    assert_eq!(avoid(&mut range, 0.1392), (secs(0.1245), secs(0.1245), true));
    let mut last = secs(0.1245);
    for _ in 0..20 {
        let (r_c, max, held) = avoid(&mut range, 0.1392);
        assert!(r_c > last && r_c == max && held, "every sample sets a new maximum: {r_c:?} {max:?}");
        last = r_c;
    }
}

#[test]
fn congestion_before_any_sample_counts_and_leaves_the_rtt_unset() {
    let mut range = RttRange::new(false, false);
    range.on_congestion();
    assert_eq!((range.events(), range.smoothed(), range.min()), (1, None, None));
}

/// The published initial rtt_min reaches rtt_max by way of the first loss in slow start, and Eq.
/// (3) never holds again.
#[test]
fn as_published_a_loss_in_slow_start_spoils_the_range() {
    for (literal, held_back) in [(false, true), (true, false)] {
        let mut range = RttRange::new(literal, false);
        range.on_sample(secs(0.120), Duration::MAX);
        range.on_slow_start(NOW);
        range.on_congestion();
        for rtt in [0.120, 0.130, 0.140] {
            range.on_sample(secs(rtt), Duration::MAX);
            range.on_avoidance(NOW);
        }
        range.on_congestion();
        for _ in 0..200 {
            range.on_sample(secs(0.140), Duration::MAX);
            range.on_avoidance(NOW);
        }
        assert_eq!(range.upper_part(800_000, Duration::ZERO).is_some(), held_back, "literal {literal}");
    }
}

#[test]
fn rtt_max_does_not_rise_outside_of_congestion_avoidance() {
    let mut flow = Flow::new(50.0, AimdParams::default(), acwap(""));
    flow.ack(1, Some(secs(0.2)));
    assert_eq!(flow.growth().range.min(), Some(secs(0.2)));
    assert_eq!(flow.growth().range.max(), Duration::ZERO);
    flow.lose();
    flow.view.phase = ackline_tcp_core::policy::cc::Phase::Recovery;
    flow.ack(1, Some(secs(0.9)));
    assert_eq!(flow.growth().range.max(), Duration::ZERO);
    flow.view.phase = ackline_tcp_core::policy::cc::Phase::Open;
    flow.ack(1, Some(secs(0.2)));
    assert!(flow.growth().range.max() > secs(0.2));
}

/// A flow of 8400 segments in congestion avoidance that knows its range, 120 to 140 ms.
fn knowing(spec: &str, events: u32) -> Flow<Acwap<Hstcp>> {
    let mut growth = acwap(spec);
    growth.range = known(0.120, 0.140, 0.120, events);
    Flow::avoiding(8400.0, growth)
}

fn step(flow: &mut Flow<Acwap<Hstcp>>) -> f64 {
    let before = flow.w();
    flow.ack(1, None);
    (flow.w() - before) * before
}

#[test]
fn the_window_grows_by_a_below_the_threshold_and_by_one_above_it() {
    let mut flow = knowing("", 2);
    assert!((step(&mut flow) - 26.0).abs() < 1e-3);
    for _ in 0..100 {
        flow.ack(1, Some(secs(0.139)));
    }
    assert!((step(&mut flow) - 1.0).abs() < 1e-3);
    // W7: no hysteresis.
    for _ in 0..100 {
        flow.ack(1, Some(secs(0.121)));
    }
    assert!((step(&mut flow) - 26.0).abs() < 1e-3);
}

#[test]
fn one_congestion_event_is_not_enough() {
    let mut flow = knowing("", 1);
    for _ in 0..100 {
        flow.ack(1, Some(secs(0.139)));
    }
    assert!((step(&mut flow) - 26.0).abs() < 1e-3);
    flow.lose();
    assert_eq!(flow.growth().range.smoothed(), Some(secs(0.120)), "W5");
    let w = flow.w();
    for _ in 0..100 {
        flow.ack(1, Some(secs(0.139)));
    }
    assert!(flow.w() - w > 0.0);
    assert!((step(&mut flow) - 1.0).abs() < 1e-3);
}

#[test]
fn clamp_off_is_the_inner_control() {
    let mut flow = knowing("clamp=off", 5);
    for _ in 0..100 {
        flow.ack(1, Some(secs(0.140)));
    }
    assert!((step(&mut flow) - 26.0).abs() < 1e-3);
    // W6: beta = 1 is not, if the RTT is at its maximum.
    let mut flow = knowing("beta=1", 5);
    for _ in 0..400 {
        flow.ack(1, Some(secs(0.141)));
    }
    assert!((step(&mut flow) - 1.0).abs() < 1e-3);
}

/// The part from 136 to 140 ms: a falls from 26 to 1 along a line.
#[test]
fn taper_holds_growth_back_gradually() {
    for (r_c, a) in [(0.1359, 26.0), (0.136, 26.0), (0.137, 19.75), (0.138, 13.5), (0.140, 1.0)] {
        let mut growth = acwap("taper=on");
        growth.range = known(0.120, 0.140, r_c, 2);
        let mut flow = Flow::avoiding(8400.0, growth);
        let got = step(&mut flow);
        assert!((got - a).abs() < 1e-2, "at {r_c}: {got}, expected {a}");
    }
}

#[test]
fn windowed_forgets_the_minimum_after_ten_seconds_and_the_maximum_at_the_eighth_event() {
    let mut range = RttRange::new(false, true);
    for second in 0..30 {
        range.on_sample(secs(if second < 5 { 0.1 } else { 0.2 }), Duration::MAX);
        range.on_avoidance(Instant::from_secs(second));
    }
    assert!(range.min().unwrap() > secs(0.15), "{:?}", range.min());
    for event in 1..=8 {
        assert!(range.max() > Duration::ZERO, "event {event}");
        range.on_congestion();
    }
    assert_eq!(range.max(), Duration::ZERO);
}

/// r_c in ns, w: the interval in ns, rounded down.
#[test]
fn pacing_intervals_of_the_model() {
    let vectors = [
        (0.1359, 8400.0, 16_178),
        (0.12, 6558.0, 18_298),
        (0.06, 2.0, 30_000_000),
        (0.2, 1.0, 200_000_000),
        (0.1398, 83_000.0, 1_684),
    ];
    let paper = AcwapParams { pacing: PacingMode::Paper, ..AcwapParams::default() };
    for (r_c, w, nanos) in vectors {
        let mut pace = Pace::default();
        let cwnd = Window::from_f64(w * f64::from(SMSS));
        pace.set(&paper, Stage::Avoidance, Some(secs(r_c)), cwnd);
        assert_eq!(pace.interval(SMSS), Some(Duration::from_nanos(nanos)), "{r_c} s, {w} segments");
    }
}

/// Windows per r_c at which a flow leaves, in each stage; none if it is not paced.
#[test]
fn when_departures_are_paced() {
    let rtt = secs(0.1);
    let rate = |flow: &Flow<Acwap<Hstcp>>| match flow.cc.decision().pacing {
        Pacing::Gap { time, over } => {
            Some(over.bytes() as f64 / 1000.0 / flow.w() / (time.as_secs_f64() / 0.1))
        }
        _ => None,
    };
    let near = |got: Option<f64>, expected: Option<f64>, what: &str| match (got, expected) {
        (Some(got), Some(expected)) => assert!((got - expected).abs() < 0.02, "{what}: {got}"),
        _ => assert_eq!(got, expected, "{what}"),
    };
    let cases = [
        ("pacing=paper", None, Some(1.0), Some(1.0)),
        ("pacing=stack", Some(2.0), Some(1.0), Some(2.0)),
        ("pacing=stack,gain=1.2", Some(2.0), Some(1.2), Some(2.0)),
        ("pacing=off", None, None, None),
    ];
    for (spec, first, avoidance, later) in cases {
        let mut flow = Flow::new(50.0, AimdParams::default(), acwap(spec));
        flow.ack(1, Some(rtt));
        near(rate(&flow), first, spec);
        flow.lose();
        near(rate(&flow), avoidance, spec);
        flow.ack(1, Some(rtt));
        near(rate(&flow), avoidance, spec);
        flow.time_out(true);
        flow.ack(1, Some(rtt));
        near(rate(&flow), later, spec);
    }
}

#[test]
fn as_published_the_interval_changes_in_congestion_avoidance_only() {
    let mut flow = Flow::new(50.0, AimdParams::default(), acwap("pacing=paper,literal=on"));
    flow.ack(1, Some(secs(0.1)));
    flow.lose();
    assert_eq!(flow.cc.decision().pacing, Pacing::Unpaced);
    for _ in 0..300 {
        flow.ack(1, Some(secs(0.1)));
    }
    let paced = flow.cc.decision().pacing;
    assert!(matches!(paced, Pacing::Gap { .. }), "{paced:?}");
    flow.time_out(true);
    flow.view.phase = ackline_tcp_core::policy::cc::Phase::Loss;
    assert!(matches!(flow.cc.decision().pacing, Pacing::Gap { .. }));
}

fn after_loss<C: Wrapped>(w: f64, inner: C) -> f64 {
    let mut flow = Flow::avoiding(w, Acwap::new(AcwapParams::default(), inner));
    flow.lose();
    flow.w()
}

#[test]
fn a_loss_costs_what_the_inner_control_gives_up() {
    let near = |w: f64, expected: f64| assert!((w - expected).abs() < 1e-6, "{w}, expected {expected}");
    near(after_loss(8400.0, Hstcp::default()), 6_559.032_882_4);
    near(after_loss(800.0, Scalable::default()), 700.0);
    near(after_loss(100.0, inner::Reno), 50.0);
    near(after_loss(1000.0, inner::Cubic::default()), 700.0);
}

/// RTT 200 ms, W_max 1000 segments: the curve is at 947.4 four seconds after the loss, and passes
/// 1000 at 9.09 s.
#[test]
fn around_cubic_the_window_follows_the_curve() {
    let mut flow = Flow::avoiding(1000.0, Acwap::new(AcwapParams::default(), inner::Cubic::default()));
    flow.view.srtt = Some(secs(0.2));
    flow.lose();
    let start = flow.view.now;
    for (t, expected) in [(4.0, 947.4), (9.0856, 1000.0), (14.0, 1047.5)] {
        while flow.view.now < start + secs(t) {
            flow.view.now += secs(0.2 / flow.w());
            flow.ack(1, None);
        }
        let slope: f64 = 1.2 * (t - 9.0856) * (t - 9.0856);
        assert!((flow.w() - expected).abs() < 1.5 + 0.4 * slope, "at {t}: {}", flow.w());
    }
}

proptest! {
    /// Whatever the path shows, growth lies between Reno's and the inner control's.
    #[test]
    fn growth_is_between_one_and_a(
        samples in prop::collection::vec(1_000_u64..400_000_000, 1..60),
        losses in prop::collection::vec(0_usize..60, 0..12),
        beta in 0_u32..=1_000_000,
        taper: bool,
        windowed: bool,
    ) {
        let mut growth = acwap("");
        growth.params = AcwapParams { beta, taper, windowed, ..growth.params };
        growth.range.set_windowed(windowed);
        let mut flow = Flow::avoiding(8400.0, growth);
        for (i, nanos) in samples.iter().enumerate() {
            if losses.contains(&i) {
                flow.lose();
            }
            flow.view.now += Duration::from_millis(500);
            let w = flow.w();
            flow.ack(1, Some(Duration::from_nanos(*nanos)));
            let a = (flow.w() - w) * w;
            let most = crate::hstcp::increase(crate::hstcp::AwMode::TableFloor, 1e-3, w);
            prop_assert!((0.999..=most + 1e-3).contains(&a), "a {a} at w {w}");
            let range = &flow.growth().range;
            prop_assert!(range.min().is_none_or(|min| min <= range.smoothed().unwrap()));
        }
    }
}

#[test]
fn keeps_the_rules() {
    let specs = [
        "",
        "inner=scalable",
        "inner=reno,beta=0",
        "inner=cubic,pacing=paper",
        "literal=on,pacing=paper",
        "windowed=on,taper=on,gain=1.2",
        "aw=loglog,clamp=off,pacing=off,max_ssthresh=off,rto=b",
    ];
    for spec in specs {
        let make = (ENTRY.make)(&spec.parse().unwrap()).unwrap();
        for seed in 0..30 {
            conformance::congestion_control(&*make, seed);
        }
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let fault = |spec: &str| match (ENTRY.make)(&spec.parse().unwrap()) {
        Ok(_) => panic!("{spec} was taken"),
        Err(error) => std::format!("{error}"),
    };
    assert!(fault("inner=bbr").contains("hstcp, scalable, reno, cubic"));
    assert!(fault("inner=reno,aw=rfc").contains("aw is for inner=hstcp"));
    assert!(fault("beta=1.5").contains("beta=1.5"));
    let mut cc =
        (ENTRY.make)(&"".parse().unwrap()).unwrap()(&CcInit::new(NOW, SMSS, Window::from_bytes(2000)));
    let error = cc.configure(&"inner=reno".parse().unwrap()).unwrap_err();
    assert!(std::format!("{error}").contains("fixed for the life"), "{error}");
    cc.configure(&"beta=0.5,aw=rfc,max_ssthresh=off".parse().unwrap()).unwrap();
}

/// A path of 100 ms that stood still for ten minutes gives a sample of ten minutes. One good sample
/// later r_c is within what a pace should follow.
#[test]
fn a_stall_of_minutes_is_forgotten_with_the_next_round_trip() {
    let mut range = RttRange::new(false, false);
    let longest = secs(1.0);
    for first in [false, true] {
        if !first {
            range.on_sample(secs(0.1), longest);
        }
        // If it is the smallest recent sample, it is not known to be a stall.
        range.on_sample(secs(600.0), if first { Duration::MAX } else { longest });
        range.on_avoidance(NOW);
        range.on_sample(secs(0.1), longest);
        assert!(range.smoothed().unwrap() <= longest, "{:?}", range.smoothed());
        assert!(range.max() <= longest, "{:?}", range.max());
        range = RttRange::new(false, false);
    }
}
