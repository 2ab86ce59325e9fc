//! The paper's equations, in numbers.

use super::*;
use ackline_tcp_core::policy::conformance;
use ackline_tcp_core::{Duration, Instant};
use alloc::vec::Vec;

const SMSS: u32 = 1_000;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn it_keeps_the_rules_of_its_seam() {
    for spec in ["", "delta=0.01", "delta=2,nearly_empty=0.5", "competitive=off,min_rtt_window=1s"] {
        let make = (ENTRY.make)(&spec.parse().unwrap()).unwrap();
        for seed in 0..100 {
            conformance::congestion_control(&*make, seed);
        }
    }
}

#[test]
fn wrong_parameters_are_refused() {
    for wrong in ["delta=0", "delta=3", "nearly_empty=1", "min_rtt_window=1ms", "gain=2"] {
        assert!((ENTRY.make)(&wrong.parse().unwrap()).is_err(), "{wrong}");
    }
}

/// A flow of so many segments, and what it sees.
struct Bench {
    cc: Copa,
    view: FlowView,
}

impl Bench {
    /// Past slow start.
    fn new(segments: f64) -> Self {
        let start = Instant::from_secs(100);
        let mut view = FlowView::new(start, SMSS);
        view.srtt = Some(ms(60));
        let init = CcInit::new(start, SMSS, Window::from_f64(segments * f64::from(SMSS)));
        let mut cc = Copa::new(&init, CopaParams::default());
        cc.flow.ssthresh = Window::ZERO;
        Self { cc, view }
    }

    fn segments(&self) -> f64 {
        self.cc.flow.cwnd / f64::from(SMSS)
    }

    /// One segment is acknowledged, `wait` after the last one, with a round trip of `rtt`. Round
    /// trips do not end.
    fn ack(&mut self, wait: Duration, rtt: Duration) {
        self.view.now += wait;
        self.view.snd_nxt = self.view.snd_una + 1_000 * SMSS;
        let mut ack = AckSample::new(SMSS, 1);
        ack.rtt = Some(rtt);
        self.cc.on_ack(&self.view, &ack);
    }

    /// As [`ack`](Self::ack), of the last segment of a window of data.
    fn end_window(&mut self, wait: Duration, rtt: Duration) {
        self.view.snd_una = self.view.snd_nxt + 1;
        self.ack(wait, rtt);
    }

    fn lose(&mut self) {
        self.cc.checkpoint(&self.view);
        self.cc.on_congestion(&self.view, &CongestionEvent::Loss { prior_pipe: 0 });
    }
}

/// Section 2.1: with d_q = 10 ms and delta = 0.5 the target is 200 segments per second, which are
/// 12 segments in an RTTstanding of 60 ms. One segment acknowledged moves the window by
/// v / (delta cwnd) segments.
#[test]
fn the_window_moves_towards_the_target_rate() {
    for (segments, moves) in [(8.0, 0.25), (11.9, 2.0 / 11.9), (12.1, -2.0 / 12.1), (20.0, -0.1)] {
        let mut bench = Bench::new(segments);
        bench.cc.delays.take(bench.view.now, ms(50), ms(60), Duration::from_secs(10));
        bench.ack(ms(31), ms(60));
        assert_eq!(bench.cc.delays.rtts.unwrap().queueing(), ms(10));
        assert!((bench.segments() - segments - moves).abs() < 1e-4, "{segments}: {}", bench.segments());
    }
}

/// Section 2.1: over a round trip the window changes by v / delta segments.
#[test]
fn a_round_trip_without_a_queue_adds_one_over_delta() {
    let mut bench = Bench::new(50.0);
    for _ in 0..50 {
        bench.ack(ms(1), ms(50));
    }
    assert!((51.9..52.0).contains(&bench.segments()), "{}", bench.segments());
}

/// Section 2.1, step 4: v is 1 until the direction has been the same for three windows, and doubles
/// with each one after that.
#[test]
fn the_velocity_doubles_once_the_direction_has_stayed_for_three_windows() {
    let mut velocity = Velocity::new(10.0);
    let mut told = Vec::new();
    for cwnd in [12.0, 14.0, 16.0, 18.0, 22.0, 30.0, 29.0, 28.0, 27.0, 26.0, 26.0, 25.0] {
        velocity.on_window(cwnd);
        told.push(velocity.get());
    }
    assert_eq!(told, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0]);
}

#[test]
fn no_velocity_makes_a_step_of_more_than_what_was_acknowledged() {
    let mut bench = Bench::new(10.0);
    for cwnd in 0..80 {
        bench.cc.flow.velocity.on_window(1e5 + f64::from(cwnd));
    }
    bench.ack(ms(1), ms(50));
    assert_eq!(bench.segments(), 11.0);
    // A queue of 500 ms: the target is 4 segments per second.
    bench.ack(ms(600), ms(550));
    bench.ack(ms(600), ms(550));
    assert_eq!(bench.segments(), 10.0);
}

/// Section 2.1: slow start doubles until lambda exceeds lambda_t.
#[test]
fn slow_start_ends_when_the_target_is_below_the_rate() {
    let mut bench = Bench::new(10.0);
    bench.cc.flow.ssthresh = Window::MAX;
    for _ in 0..10 {
        bench.ack(ms(1), ms(50));
    }
    assert_eq!(bench.segments(), 20.0);
    // d_q = 5 ms: the target is 400 segments per second, 22 in 55 ms.
    bench.ack(ms(35), ms(55));
    bench.ack(ms(1), ms(55));
    assert_eq!((bench.segments(), bench.cc.in_slow_start()), (22.0, true));
    bench.ack(ms(1), ms(55));
    bench.ack(ms(1), ms(55));
    assert!(!bench.cc.in_slow_start());
    assert!((22.9..23.0).contains(&bench.segments()), "{}", bench.segments());
}

/// Section 2.1: two windows per RTTstanding.
#[test]
fn it_paces_at_twice_the_window() {
    let mut bench = Bench::new(20.0);
    bench.ack(ms(1), ms(50));
    let Pacing::AtRate(rate) = bench.cc.decision().pacing else { panic!("not paced at a rate") };
    let rate = rate.bytes_per_second() as f64;
    assert!((rate - 2.0 * bench.cc.flow.cwnd / 0.05).abs() < 1.0, "{rate}");
}

/// Section 2: RTTstanding is the smallest of srtt / 2, so a late ACK is no queue.
#[test]
fn jitter_for_less_than_half_a_round_trip_is_no_queue() {
    let mut bench = Bench::new(20.0);
    for rtt in [50, 90, 70, 120, 50, 80] {
        bench.ack(ms(5), ms(rtt));
        assert_eq!(bench.cc.delays.rtts.unwrap().queueing(), ms(0));
    }
}

/// Section 2.2: competitive if d_q was not below a tenth of RTTmax - RTTmin for five round trips.
#[test]
fn a_queue_that_does_not_empty_in_five_round_trips_is_filled_by_somebody_else() {
    let mut bench = Bench::new(20.0);
    bench.ack(ms(1), ms(50));
    let mut switched = None;
    for i in 0..12 {
        bench.end_window(ms(60), ms(if i % 2 == 0 { 90 } else { 70 }));
        if bench.cc.flow.mode.is_competitive() {
            switched.get_or_insert(i + 1);
        }
    }
    // 300 ms since the first sample are over with the sixth of 60 ms.
    assert_eq!(switched, Some(6));
    // RTTmax is 90 ms: a queue of 4 ms is nearly empty, one of 5 ms is not.
    bench.ack(ms(60), ms(55));
    assert!(bench.cc.flow.mode.is_competitive());
    bench.ack(ms(60), ms(54));
    assert!(!bench.cc.flow.mode.is_competitive());
    assert_eq!(bench.cc.flow.mode.inverse_delta(&bench.cc.params), 2.0, "reset");
}

/// Section 2.2: 1/delta as NewReno's window, and delta at most 0.5.
#[test]
fn in_competitive_mode_delta_follows_losses() {
    let mut bench = Bench::new(20.0);
    bench.ack(ms(1), ms(50));
    for _ in 0..6 {
        bench.end_window(ms(60), ms(90));
    }
    let inverse = |bench: &Bench| bench.cc.flow.mode.inverse_delta(&bench.cc.params);
    let begins = inverse(&bench);
    bench.end_window(ms(60), ms(90));
    bench.end_window(ms(60), ms(90));
    bench.end_window(ms(60), ms(90));
    assert_eq!(inverse(&bench), begins + 3.0);
    let before = bench.segments();
    bench.lose();
    assert_eq!((inverse(&bench), bench.segments()), ((begins + 3.0) / 2.0, before));
    bench.lose();
    bench.lose();
    assert_eq!(inverse(&bench), 2.0, "delta is at most 0.5");
}

/// Section 5.4: default mode takes no loss for congestion.
#[test]
fn in_default_mode_a_loss_changes_nothing() {
    let mut bench = Bench::new(20.0);
    bench.ack(ms(1), ms(50));
    let before = bench.cc.decision();
    bench.lose();
    assert_eq!(bench.cc.decision(), before);
}

#[test]
fn a_mark_halves_the_window() {
    let mut bench = Bench::new(20.0);
    bench.cc.on_congestion(&bench.view, &CongestionEvent::Ecn);
    assert_eq!(bench.segments(), 10.0);
}

/// A full segment takes 1 ms longer than a SYN over 8 Mbit/s: that is no queue.
#[test]
fn the_handshake_sets_the_first_pace_and_no_minimum() {
    let mut init = CcInit::new(Instant::from_secs(1), SMSS, Window::from_bytes(10_000));
    (init.srtt, init.min_rtt) = (Some(ms(40)), Some(ms(40)));
    let mut cc = Copa::new(&init, CopaParams::default());
    let paced = Pacing::AtRate(Rate::from_bytes_per_second(2 * 10_000 * 25));
    assert_eq!(cc.decision().pacing, paced);
    let mut view = FlowView::new(Instant::from_secs(2), SMSS);
    view.srtt = Some(ms(40));
    let mut ack = AckSample::new(SMSS, 1);
    ack.rtt = Some(ms(41));
    cc.on_ack(&view, &ack);
    assert_eq!(cc.delays.rtts.unwrap().queueing(), ms(0));
}

/// What the flow has not seen for lack of data is no queue.
#[test]
fn after_idle_time_the_mode_is_open_again() {
    let mut bench = Bench::new(20.0);
    bench.ack(ms(1), ms(50));
    bench.ack(ms(1), ms(50));
    bench.view.now += ms(2_000);
    bench.cc.on_sent(&bench.view, &SentSegment::new(bench.view.snd_nxt, SMSS, false));
    bench.ack(ms(70), ms(70));
    assert!(!bench.cc.flow.mode.is_competitive());
}
