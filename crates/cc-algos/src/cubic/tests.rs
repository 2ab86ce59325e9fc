//! Whole flows against the closed forms of RFC 9438.

use super::*;
use crate::CC;
use ackline_tcp_core::policy::CongestionControl;
use ackline_tcp_core::policy::cc::{
    AckSample, CongestionEvent, DecreaseFrom, FlowView, Restart, RestartCause, SentSegment, SsthreshRule,
};
use ackline_tcp_core::policy::conformance;
use ackline_tcp_core::{Instant, SeqNum};

const SMSS: u32 = 1000;

fn segments(window: Window) -> f64 {
    window.as_f64() / f64::from(SMSS)
}

fn window_of(segments: f64) -> Window {
    Window::from_f64(segments * f64::from(SMSS))
}

/// A flow that always has data, over a path without a queue: one ACK per segment, evenly over the
/// RTT.
struct Flow {
    cubic: WindowControl<Cubic>,
    view: FlowView,
    rtt: Duration,
}

impl Flow {
    fn new(initial: f64, rtt_ms: u64, params: CubicParams) -> Self {
        Self::decreasing(DecreaseFrom::Window, initial, rtt_ms, params)
    }

    fn decreasing(from: DecreaseFrom, initial: f64, rtt_ms: u64, params: CubicParams) -> Self {
        let start = Instant::from_secs(100);
        let mut init = CcInit::new(start, SMSS, window_of(initial));
        init.decrease_from = from;
        let cubic = Cubic::new(&init, params);
        let rtt = Duration::from_millis(rtt_ms);
        let mut view = FlowView::new(start, SMSS);
        view.srtt = Some(rtt);
        let mut flow = Self { cubic, view, rtt };
        flow.fill();
        flow
    }

    /// In congestion avoidance at `cwnd` segments, after a loss at `w_max`.
    fn after_loss_at(w_max: f64, rtt_ms: u64) -> Self {
        let mut flow = Self::new(w_max, rtt_ms, CubicParams::default());
        flow.lose();
        flow.view.phase = Phase::Open;
        flow.fill();
        flow
    }

    fn fill(&mut self) {
        let cwnd = u32::try_from(self.cubic.windows().cwnd().bytes()).unwrap();
        self.view.flight_size = cwnd;
        self.view.pipe = cwnd;
        self.view.snd_nxt = self.view.snd_una + cwnd;
    }

    fn cwnd(&self) -> f64 {
        segments(self.cubic.windows().cwnd())
    }

    fn ssthresh(&self) -> f64 {
        segments(self.cubic.windows().ssthresh())
    }

    fn lose(&mut self) {
        self.cubic.checkpoint(&self.view);
        self.view.phase = Phase::Recovery;
        let event = CongestionEvent::Loss { prior_pipe: self.view.pipe };
        self.cubic.on_congestion(&self.view, &event);
    }

    fn time_out(&mut self, first: bool) {
        if first {
            self.cubic.checkpoint(&self.view);
        }
        self.view.phase = Phase::Loss;
        let event = CongestionEvent::Timeout {
            flight_size: self.view.flight_size,
            first,
            window: window_of(1.0),
            ssthresh: SsthreshRule::ByCc,
        };
        self.cubic.on_congestion(&self.view, &event);
    }

    fn ack(&mut self, ack: &AckSample) {
        self.view.snd_una += ack.acked;
        self.fill();
        self.cubic.on_ack(&self.view, ack);
    }

    /// ACKs for `seconds`, one per segment at the rate of a window per RTT.
    fn run(&mut self, seconds: f64) {
        let end = self.view.now + Duration::from_nanos((seconds * 1e9) as u64);
        while self.view.now < end {
            let gap = self.rtt.as_secs_f64() / self.cwnd();
            self.view.now += Duration::from_nanos((gap * 1e9) as u64);
            let mut ack = AckSample::new(SMSS, 1);
            ack.rtt = Some(self.rtt);
            self.ack(&ack);
        }
    }
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value}, expected {expected} +- {tolerance}");
}

#[test]
fn every_entry_keeps_the_rules() {
    let specs =
        ["", "hystart=off", "hystart=linux", "beta=0.95,c=100", "beta=0.1,fast_convergence=off", "pacing=on"];
    for entry in CC {
        for spec in specs.into_iter().filter(|spec| spec.is_empty() || entry.name == "cubic") {
            let make = (entry.make)(&spec.parse().unwrap()).unwrap();
            for seed in 0..30 {
                conformance::congestion_control(&*make, seed);
            }
        }
    }
}

#[test]
fn a_loss_leaves_beta_of_the_window() {
    let mut flow = Flow::new(100.0, 50, CubicParams::default());
    flow.lose();
    assert_near(flow.cwnd(), 70.0, 1e-3);
    assert_near(flow.ssthresh(), 70.0, 1e-3);
    assert_near(flow.cubic.growth().w_max / f64::from(SMSS), 100.0, 1e-3);
}

#[test]
fn a_loss_is_reduced_from_the_window_or_from_the_flight_as_the_connection_says() {
    let cases = [
        // Linux's rule.
        (DecreaseFrom::Window, false, 70.0),
        // RFC 5681, equation 4: an application-limited flow from its flight. A flow that waits for
        // its window, and whose last ACK covered 60 segments at once: from the window.
        (DecreaseFrom::Flight, false, 28.0),
        (DecreaseFrom::Flight, true, 70.0),
    ];
    for (from, cwnd_limited, expected) in cases {
        let mut flow = Flow::decreasing(from, 100.0, 50, CubicParams::default());
        flow.view.cwnd_limited = cwnd_limited;
        flow.view.flight_size = 40 * SMSS;
        flow.lose();
        assert_near(flow.cwnd(), expected, 1e-3);
    }
}

#[test]
fn the_least_window_is_two_segments_after_loss_and_one_after_ece() {
    let mut flow = Flow::new(2.0, 50, CubicParams::default());
    flow.lose();
    assert_near(flow.cwnd(), 2.0, 1e-3);
    assert_near(flow.ssthresh(), 2.0, 1e-3);

    let mut flow = Flow::new(2.0, 50, CubicParams::default());
    flow.cubic.on_congestion(&flow.view, &CongestionEvent::Ecn);
    assert_near(flow.cwnd(), 1.4, 1e-3);
    assert_near(flow.ssthresh(), 2.0, 1e-3);
    flow.fill();
    flow.cubic.on_congestion(&flow.view, &CongestionEvent::Ecn);
    assert_near(flow.cwnd(), 1.0, 1e-3);

    let mut flow = Flow::new(2.0, 50, CubicParams { ecn_floor: 2.0, ..CubicParams::default() });
    flow.cubic.on_congestion(&flow.view, &CongestionEvent::Ecn);
    assert_near(flow.cwnd(), 2.0, 1e-3);
}

#[test]
fn fast_convergence_lowers_the_plateau_of_a_loss_below_it() {
    for (fast_convergence, expected) in [(true, 70.0 * 0.85), (false, 70.0)] {
        let params = CubicParams { fast_convergence, ..CubicParams::default() };
        let mut flow = Flow::new(100.0, 50, params);
        flow.lose();
        flow.view.phase = Phase::Open;
        flow.fill();
        flow.lose();
        assert_near(flow.cubic.growth().w_max / f64::from(SMSS), expected, 1e-2);
    }
}

/// RTT 200 ms, W_max 1000 segments: far outside of the Reno-friendly region. Each window is
/// compared with C (t - K)^3 + W_max, K = cbrt(300 / 0.4) = 9.0856 s; the window lags the target by
/// at most an RTT.
#[test]
fn the_window_follows_the_curve_through_both_regions() {
    let mut flow = Flow::after_loss_at(1000.0, 200);
    assert_near(flow.cwnd(), 700.0, 1e-3);
    for (t, expected) in [(1.0, 788.5), (4.0, 947.4), (9.0856, 1000.0), (14.0, 1047.5), (18.1712, 1300.0)] {
        flow.run(t - flow.view.now.since(Instant::from_secs(100)).as_secs_f64());
        // Slope 3 C (t - K)^2 per second; two RTTs of it, and one segment.
        let slope: f64 = 1.2 * (t - 9.0856) * (t - 9.0856);
        assert_near(flow.cwnd(), expected, 1.0 + 0.4 * slope);
    }
}

#[test]
fn growth_does_not_depend_on_how_many_segments_an_ack_covers() {
    let mut single = Flow::after_loss_at(1000.0, 200);
    let mut merged = Flow::after_loss_at(1000.0, 200);
    single.run(5.0);
    while merged.view.now < single.view.now {
        merged.view.now += Duration::from_nanos((0.2 * 1e9 * 20.0 / merged.cwnd()) as u64);
        merged.ack(&AckSample::new(20 * SMSS, 20));
    }
    assert_near(merged.cwnd(), single.cwnd(), 2.0);
}

/// RTT 10 ms, W_max 20 segments: K = 2.466 s is 246 round trips, in which Reno is faster. W_est
/// grows by alpha = 3 * 0.3 / 1.7 segments per RTT up to the window of the loss, then by one.
#[test]
fn a_short_path_grows_like_reno() {
    let alpha = 3.0 * 0.3 / 1.7;
    let mut flow = Flow::after_loss_at(20.0, 10);
    assert_near(CubicParams::default().alpha(), alpha, 1e-12);
    flow.run(0.05);
    assert_near(flow.cwnd(), 14.0 + 5.0 * alpha, 0.2);
    // 6 / alpha = 11.3 round trips lead back to 20 segments.
    flow.run(0.065);
    assert_near(flow.cwnd(), 20.0, 0.4);
    flow.run(0.1);
    assert_near(flow.cwnd(), 30.0, 0.6);
}

#[test]
fn slow_start_doubles_per_round_trip_up_to_ssthresh() {
    let mut flow =
        Flow::new(10.0, 100, CubicParams { hystart: SlowStartExit::Nothing, ..CubicParams::default() });
    flow.cubic.windows_mut().set_ssthresh(window_of(64.0));
    for expected in [20.0, 40.0, 64.0] {
        let acks = flow.cwnd() as u32;
        for _ in 0..acks {
            flow.view.now += Duration::from_millis(1);
            flow.ack(&AckSample::new(SMSS, 1));
        }
        assert_near(flow.cwnd(), expected, 0.5);
    }
    assert!(flow.cubic.growth().memory.epoch().is_some());
}

#[test]
fn one_ack_opens_slow_start_by_no_more_than_the_limit() {
    // 30 segments acknowledged, of which SACK had reported 28 before.
    let jump = AckSample::new(30 * SMSS, 2);
    let (on, off) = (SlowStartExit::HyStartPlusPlus, SlowStartExit::Nothing);
    let cases = [(on, Phase::Open, 8.0), (off, Phase::Open, 2.0), (on, Phase::Loss, 1.0)];
    for (hystart, phase, limit) in cases {
        let mut flow = Flow::new(10.0, 100, CubicParams { hystart, ..CubicParams::default() });
        flow.view.phase = phase;
        flow.ack(&jump);
        assert_near(flow.cwnd(), 10.0 + limit, 1e-3);
    }
    // One ACK for a super-packet stands for one per two segments.
    let mut flow = Flow::new(100.0, 100, CubicParams::default());
    flow.ack(&AckSample::new(44 * SMSS, 44));
    assert_near(flow.cwnd(), 144.0, 1e-3);
}

#[test]
fn hystart_of_linux_ends_slow_start_at_once_and_also_a_later_one() {
    let mut flow = Flow::new(
        30.0,
        50,
        "hystart=linux".parse().and_then(|params| CubicParams::from_params("cubic", &params)).unwrap(),
    );
    flow.view.min_rtt = Some(Duration::from_millis(50));
    flow.run(0.026);
    assert_eq!(flow.cubic.windows().ssthresh(), Window::MAX);
    // The train of ACKs is half of the round trip long, and its gaps are short enough.
    flow.run(0.006);
    assert_near(flow.ssthresh(), flow.cwnd(), 1.0);
    assert!(flow.cubic.growth().memory.epoch().is_some());

    flow.time_out(true);
    flow.view.phase = Phase::Open;
    flow.cubic.windows_mut().set_ssthresh(window_of(1000.0));
    flow.run(0.6);
    assert!(flow.ssthresh() < 100.0, "{}", flow.ssthresh());
}

#[test]
fn a_rising_rtt_ends_the_first_slow_start_after_five_conservative_rounds() {
    let mut flow = Flow::new(10.0, 50, CubicParams::default());
    flow.run(0.11);
    let before = flow.cwnd();
    assert!(!flow.cubic.growth().memory.is_conservative());
    flow.rtt = Duration::from_millis(60);
    let mut grown = std::vec::Vec::new();
    for _ in 0..40 {
        let last = flow.cwnd();
        flow.run(0.06);
        if flow.cubic.growth().memory.is_conservative() {
            grown.push(flow.cwnd() / last);
        }
        if !flow.cubic.windows().in_slow_start() {
            break;
        }
    }
    assert!(flow.cwnd() > before);
    assert!(!flow.cubic.windows().in_slow_start(), "slow start did not end");
    assert_near(flow.ssthresh(), flow.cwnd(), 0.05 * flow.cwnd());
    // A round of conservative slow start grows by a quarter.
    assert!(grown.len() >= 3, "{grown:?}");
    assert!(grown.iter().skip(1).all(|ratio| (1.2..1.32).contains(ratio)), "{grown:?}");
    // RFC 9438, section 4.10: the curve begins at its plateau.
    assert_eq!(flow.cubic.growth().memory.epoch().unwrap().k(), 0.0);
}

#[test]
fn a_timeout_restarts_from_the_proposed_window_and_a_new_plateau() {
    let mut flow = Flow::new(100.0, 50, CubicParams::default());
    flow.time_out(true);
    assert_near(flow.cwnd(), 1.0, 1e-3);
    assert_near(flow.ssthresh(), 70.0, 1e-3);
    flow.fill();
    flow.time_out(false);
    assert_near(flow.ssthresh(), 70.0, 1e-3);
    // Slow start to 70 segments, where the curve is flat: K = 0, W_max = 70.
    flow.view.phase = Phase::Open;
    while flow.cubic.windows().in_slow_start() {
        flow.view.now += Duration::from_millis(1);
        flow.ack(&AckSample::new(SMSS, 1));
    }
    flow.ack(&AckSample::new(SMSS, 1));
    let epoch = flow.cubic.growth().memory.epoch().unwrap();
    assert_eq!(epoch.k(), 0.0);
    assert_near(epoch.w_max() / f64::from(SMSS), 70.0, 0.1);
}

#[test]
fn undo_restores_window_threshold_and_curve() {
    let mut flow = Flow::after_loss_at(1000.0, 200);
    flow.run(3.0);
    let before = flow.cubic.clone();
    flow.lose();
    assert!(flow.cubic.windows().cwnd() < before.windows().cwnd());
    flow.cubic.undo(&flow.view, &Undo::All);
    assert_eq!((flow.cubic.windows(), flow.cubic.growth()), (before.windows(), before.growth()));
}

#[test]
fn undo_to_a_given_window_never_lowers() {
    let mut flow = Flow::new(100.0, 50, CubicParams::default());
    flow.time_out(true);
    flow.cubic.undo(&flow.view, &Undo::To { window: window_of(30.0), ssthresh: window_of(80.0) });
    assert_near(flow.cwnd(), 30.0, 1e-3);
    assert_near(flow.ssthresh(), 80.0, 1e-3);
    flow.cubic.undo(&flow.view, &Undo::To { window: window_of(5.0), ssthresh: window_of(5.0) });
    assert_near(flow.cwnd(), 30.0, 1e-3);
    assert_near(flow.ssthresh(), 80.0, 1e-3);
}

#[test]
fn time_without_use_of_the_window_does_not_count() {
    let mut used = Flow::after_loss_at(1000.0, 200);
    used.run(4.0);

    // The application limits the flow for a minute of ACKs.
    let mut limited = Flow::after_loss_at(1000.0, 200);
    limited.run(2.0);
    let before = limited.cwnd();
    limited.view.cwnd_limited = false;
    for _ in 0..600 {
        limited.view.now += Duration::from_millis(100);
        limited.cubic.on_ack(&limited.view.clone(), &AckSample::new(SMSS, 1));
    }
    assert_eq!(limited.cwnd(), before);
    limited.view.cwnd_limited = true;
    limited.run(2.0);
    assert_near(limited.cwnd(), used.cwnd(), 3.0);

    // Nothing is outstanding for a minute.
    let mut idle = Flow::after_loss_at(1000.0, 200);
    idle.run(2.0);
    idle.view.now += Duration::from_secs(60);
    idle.view.flight_size = SMSS;
    idle.cubic.on_sent(&idle.view, &SentSegment::new(SeqNum(0), SMSS, false));
    idle.run(2.0);
    assert_near(idle.cwnd(), used.cwnd(), 3.0);
}

#[test]
fn a_restart_keeps_three_quarters_as_the_goal_of_slow_start() {
    let mut flow = Flow::after_loss_at(1000.0, 200);
    flow.run(5.0);
    let before = flow.cwnd();
    let restart = Restart::new(RestartCause::Idle, window_of(10.0), Duration::from_secs(10));
    flow.cubic.on_restart(&flow.view, &restart);
    assert_near(flow.cwnd(), 10.0, 1e-3);
    assert_near(flow.ssthresh(), before * 0.75, 0.1);
}

#[test]
fn parameters_are_checked_and_taken_all_or_none() {
    let mut flow = Flow::new(10.0, 50, CubicParams::default());
    let error = flow.cubic.configure(&"beta=0.5,c=0".parse().unwrap()).unwrap_err();
    assert!(std::format!("{error}").contains("c=0"), "{error}");
    assert_eq!(*flow.cubic.growth().params(), CubicParams::default());
    flow.cubic.configure(&"beta=0.5,hystart=off".parse().unwrap()).unwrap();
    assert_eq!(
        *flow.cubic.growth().params(),
        CubicParams { beta: 0.5, hystart: SlowStartExit::Nothing, ..CubicParams::default() }
    );
}
