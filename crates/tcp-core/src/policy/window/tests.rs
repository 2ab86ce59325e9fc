//! What the adapter does for a control, whatever the control does.

use super::*;
use crate::policy::cc::{
    CongestionControl, CongestionEvent, Reaction, Restart, RestartCause, SentSegment, SsthreshRule,
};
use crate::policy::conformance;
use crate::policy::spec::Key;
use crate::time::Duration;
use std::vec::Vec;

const SMSS: u32 = 1000;

/// Grows by a segment per ACK, gives up a quarter, and notes what it is asked.
#[derive(Clone, Debug, Default, PartialEq)]
struct Probe {
    calls: Vec<&'static str>,
    /// Bytes that `increase` was given last.
    acked: u32,
    per_ack: bool,
    step: f64,
}

impl WindowGrowth for Probe {
    const NAME: &'static str = "probe";
    const KEYS: &'static [Key<Self>] =
        &[Key::number("step", 0.0..=10.0, "segments per ACK", |it| &mut it.step)];

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        self.calls.push("increase");
        self.acked = cx.acked;
        w.grow(f64::from(SMSS) * self.step);
    }

    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        self.calls.push(match cx.signal {
            Signal::Loss => "loss",
            Signal::Ecn => "ecn",
            Signal::Timeout => "timeout",
        });
        w.reduce_to(0.75 * cx.base(w));
    }

    fn unused(&mut self, _cx: &GrowthCx<'_>, _w: &Windows) {
        self.calls.push("unused");
    }

    fn idle(&mut self, _now: Instant) {
        self.calls.push("idle");
    }

    fn moved(&mut self, by: MovedBy, _before: &Windows, _w: &Windows) {
        self.calls.push(match by {
            MovedBy::Timeout { first: true } => "first expiry",
            MovedBy::Timeout { first: false } => "expiry",
            MovedBy::Restart => "restart",
            MovedBy::Undo(_) => "undo",
            MovedBy::SegmentSize => "segment size",
        });
    }

    fn ecn(&self) -> EcnUse {
        if self.per_ack { EcnUse::PerAck } else { EcnUse::PerWindow }
    }
}

fn segments(n: f64) -> Window {
    Window::from_f64(n * f64::from(SMSS))
}

struct Flow {
    cc: WindowControl<Probe>,
    view: FlowView,
}

impl Flow {
    /// With a window of `cwnd` segments, and `ssthresh` if it is given.
    fn new(cwnd: f64, ssthresh: Option<f64>) -> Self {
        Self::decreasing(DecreaseFrom::Window, cwnd, ssthresh)
    }

    fn decreasing(from: DecreaseFrom, cwnd: f64, ssthresh: Option<f64>) -> Self {
        let now = Instant::from_secs(1);
        let mut init = CcInit::new(now, SMSS, segments(cwnd));
        init.decrease_from = from;
        init.ssthresh = ssthresh.map_or(Window::MAX, segments);
        let probe = Probe { step: 1.0, ..Probe::default() };
        let mut view = FlowView::new(now, SMSS);
        view.flight_size = (cwnd * f64::from(SMSS)) as u32;
        view.snd_nxt = view.snd_una + view.flight_size;
        Self { cc: WindowControl::new(&init, probe), view }
    }

    fn ack(&mut self, ack: &AckSample) -> Reaction {
        self.view.snd_una += ack.acked;
        self.cc.on_ack(&self.view, ack)
    }

    fn time_out(&mut self, first: bool, window: f64, ssthresh: SsthreshRule) {
        let (flight_size, window) = (self.view.flight_size, segments(window));
        let event = CongestionEvent::Timeout { flight_size, first, window, ssthresh };
        self.cc.on_congestion(&self.view, &event);
    }

    /// Window and `ssthresh` in segments.
    fn windows(&self) -> (f64, f64) {
        let decision = self.cc.decision();
        (decision.window.as_f64() / f64::from(SMSS), decision.ssthresh.as_f64() / f64::from(SMSS))
    }

    /// What the control was asked since the last time.
    fn calls(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.cc.growth_mut().calls)
    }
}

const LOSS: CongestionEvent = CongestionEvent::Loss { prior_pipe: 0 };

#[test]
fn slow_start_ends_at_ssthresh_and_the_rest_of_the_ack_is_the_controls() {
    let mut flow = Flow::new(10.0, Some(11.5));
    flow.ack(&AckSample::new(2 * SMSS, 2));
    assert_eq!(flow.windows().0, 12.5);
    assert_eq!((flow.calls(), flow.cc.growth().acked), (std::vec!["increase"], 500));
    // RFC 3465: two segments per ACK, one after a timeout.
    for (phase, grown) in [(Phase::Open, 2.0), (Phase::Loss, 1.0)] {
        let mut flow = Flow::new(10.0, None);
        flow.view.phase = phase;
        flow.ack(&AckSample::new(30 * SMSS, 2));
        assert_eq!(flow.windows().0, 10.0 + grown);
        assert!(flow.calls().is_empty());
    }
}

#[test]
fn nothing_grows_in_recovery_on_a_mark_or_below_the_window() {
    for ssthresh in [None, Some(2.0)] {
        let mut flow = Flow::new(50.0, ssthresh);
        let mut ack = AckSample::new(SMSS, 1);
        flow.view.phase = Phase::Recovery;
        flow.ack(&ack);
        flow.view.phase = Phase::Open;
        ack.ece = true;
        flow.ack(&ack);
        assert!(flow.calls().is_empty());
        ack.ece = false;
        flow.view.cwnd_limited = false;
        flow.ack(&ack);
        assert_eq!(flow.windows().0, 50.0);
        assert_eq!(flow.calls(), if ssthresh.is_some() { std::vec!["unused"] } else { std::vec![] });
    }
}

#[test]
fn idleness_is_told_when_new_data_leaves_alone() {
    let mut flow = Flow::new(10.0, None);
    flow.view.flight_size = SMSS;
    flow.cc.on_sent(&flow.view, &SentSegment::new(flow.view.snd_una, SMSS, true));
    assert!(flow.calls().is_empty());
    flow.cc.on_sent(&flow.view, &SentSegment::new(flow.view.snd_una, SMSS, false));
    assert_eq!(flow.calls(), ["idle"]);
}

#[test]
fn a_decrease_begins_from_the_window_or_from_the_flight_as_the_connection_says() {
    let cases = [
        (DecreaseFrom::Window, true, 75.0),
        (DecreaseFrom::Window, false, 75.0),
        (DecreaseFrom::Flight, true, 75.0),
        (DecreaseFrom::Flight, false, 30.0),
    ];
    for (from, cwnd_limited, expected) in cases {
        let mut flow = Flow::decreasing(from, 100.0, Some(2.0));
        flow.view.cwnd_limited = cwnd_limited;
        flow.view.flight_size = 40 * SMSS;
        flow.cc.on_congestion(&flow.view, &LOSS);
        assert_eq!(flow.windows(), (expected, expected));
    }
}

#[test]
fn a_timeout_lowers_ssthresh_once_and_takes_the_window_of_the_response() {
    let mut flow = Flow::new(100.0, None);
    flow.time_out(true, 80.0, SsthreshRule::ByCc);
    // The response may know that more is still in the network than the control would leave.
    assert_eq!(flow.windows(), (80.0, 75.0));
    assert_eq!(flow.calls(), ["timeout", "first expiry"]);
    flow.time_out(false, 1.0, SsthreshRule::ByCc);
    assert_eq!(flow.windows(), (1.0, 75.0));
    assert_eq!(flow.calls(), ["expiry"]);
    flow.time_out(true, 1.0, SsthreshRule::To(segments(20.0)));
    assert_eq!(flow.windows(), (1.0, 20.0));
    flow.time_out(true, 0.5, SsthreshRule::Keep);
    assert_eq!(flow.windows(), (0.5, 20.0));
    assert_eq!(flow.calls(), ["first expiry"; 2]);
    flow.time_out(true, 1.0, SsthreshRule::To(segments(30.0)));
    assert_eq!(flow.windows(), (0.5, 30.0), "RFC 5681, equation 4, does not compare");
}

#[test]
fn a_restart_window_of_two_segments_raises_a_smaller_one_after_a_timeout_only() {
    let mut flow = Flow::new(1.0, Some(20.0));
    flow.time_out(true, 2.0, SsthreshRule::Keep);
    assert_eq!(flow.windows().0, 2.0);
    for (cause, expected) in [(RestartCause::Idle, 1.0), (RestartCause::CleanTimeout, 2.0)] {
        let mut flow = Flow::new(1.0, Some(20.0));
        flow.cc.on_restart(&flow.view, &Restart::new(cause, segments(10.0), Duration::ZERO));
        assert_eq!(flow.windows().0, expected, "{cause:?}");
    }
}

#[test]
fn marks_per_ack_lead_to_one_decrease_per_window_of_data_whatever_is_lost_of_it() {
    let mut flow = Flow::new(10.0, Some(2.0));
    flow.cc.growth_mut().per_ack = true;
    let end = flow.view.snd_nxt;
    let mut ack = AckSample::new(SMSS, 1);
    ack.ece = true;
    assert_eq!(flow.ack(&ack), Reaction::Reduced);
    assert_eq!(flow.ack(&ack), Reaction::None);
    flow.cc.on_congestion(&flow.view, &LOSS);
    assert_eq!((flow.calls(), flow.windows().0), (std::vec!["ecn"], 7.5));
    // The end is acknowledged, but nothing beyond it.
    flow.view.snd_una = end - SMSS;
    assert_eq!(flow.ack(&ack), Reaction::None);
    flow.view.snd_nxt += 10 * SMSS;
    assert_eq!(flow.ack(&ack), Reaction::Reduced);
}

#[test]
fn an_idle_restart_keeps_three_quarters_of_the_window_in_ssthresh() {
    let restart = |cause| Restart::new(cause, segments(10.0), Duration::from_secs(9));
    for (cause, ssthresh) in [(RestartCause::Idle, 75.0), (RestartCause::CleanTimeout, 50.0)] {
        let mut flow = Flow::new(100.0, Some(50.0));
        flow.cc.on_restart(&flow.view, &restart(cause));
        assert_eq!(flow.windows(), (10.0, ssthresh));
        assert_eq!(flow.calls(), ["restart"]);
    }
    // Before the first congestion there is no threshold; and a smaller window stays.
    let mut flow = Flow::new(8.0, None);
    flow.cc.on_restart(&flow.view, &restart(RestartCause::Idle));
    assert_eq!((flow.windows().0, flow.cc.decision().ssthresh), (8.0, Window::MAX));
    assert!(flow.calls().is_empty());
}

#[test]
fn undo_takes_back_the_windows_and_the_controls_own_state() {
    let mut flow = Flow::new(100.0, Some(50.0));
    flow.cc.growth_mut().acked = 7;
    flow.cc.checkpoint(&flow.view);
    flow.cc.on_congestion(&flow.view, &LOSS);
    flow.ack(&AckSample::new(SMSS, 1));
    assert_eq!(flow.windows().0, 76.0);
    flow.cc.undo(&flow.view, &Undo::To { window: segments(90.0), ssthresh: segments(60.0) });
    assert_eq!(flow.windows(), (90.0, 75.0));
    flow.cc.undo(&flow.view, &Undo::All);
    assert_eq!(flow.windows(), (100.0, 75.0));
    assert_eq!((flow.calls(), flow.cc.growth().acked), (std::vec!["undo"], 7));
}

#[test]
fn parameters_change_all_or_nothing_and_an_undo_does_not_bring_old_ones_back() {
    let mut flow = Flow::new(100.0, Some(50.0));
    flow.cc.checkpoint(&flow.view);
    let error = flow.cc.configure(&"step=3,speed=2".parse().unwrap()).unwrap_err();
    assert!(std::format!("{error}").contains("speed"), "{error}");
    assert_eq!(flow.cc.growth().step, 1.0);
    flow.cc.configure(&"step=3".parse().unwrap()).unwrap();
    flow.cc.undo(&flow.view, &Undo::All);
    assert_eq!(flow.cc.growth().step, 3.0);
}

#[test]
fn a_segment_size_is_told_to_the_saved_state_too() {
    let mut flow = Flow::new(100.0, Some(50.0));
    flow.cc.checkpoint(&flow.view);
    flow.view.smss = 500;
    flow.cc.on_smss_change(&flow.view, SMSS);
    assert_eq!((flow.cc.windows().segments(), flow.cc.windows().smss()), (200.0, 500));
    assert_eq!(flow.calls(), ["segment size"]);
    flow.cc.undo(&flow.view, &Undo::All);
    assert_eq!(flow.calls(), ["segment size", "undo"]);
}

/// Raises at a loss, takes everything at a mark, and lowers the window when it should grow.
#[derive(Clone, Debug)]
struct Wild;

impl WindowGrowth for Wild {
    const NAME: &'static str = "wild";

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        match cx.acked % 3 {
            0 => w.grow(f64::NAN),
            1 => w.set_bytes(-1.0),
            _ => w.grow(f64::INFINITY),
        }
    }

    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        w.reduce_to(0.0);
        match cx.signal {
            Signal::Loss => w.grow(1e9),
            Signal::Ecn => w.limit(Window::ZERO),
            Signal::Timeout => w.set_bytes(1e12),
        }
    }
}

#[test]
fn a_control_that_goes_wild_keeps_the_rules_all_the_same() {
    let make = make(Wild, &Params::default()).unwrap();
    for seed in 0..40 {
        conformance::congestion_control(&*make, seed);
    }
}
