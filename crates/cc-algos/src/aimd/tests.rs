//! The window that all growth shares; and the flow on which its users are tested.

use super::*;
use ackline_tcp_core::policy::CongestionControl;
use ackline_tcp_core::policy::cc::{AckSample, CongestionEvent, DecreaseFrom, SsthreshRule, Undo};
use ackline_tcp_core::policy::window::WindowControl;

pub(crate) const SMSS: u32 = 1000;

/// A sender whose window always limits it.
pub(crate) struct Flow<G> {
    pub(crate) cc: WindowControl<Aimd<G>>,
    pub(crate) view: FlowView,
}

pub(crate) fn window_of(segments: f64) -> Window {
    Window::from_f64(segments * f64::from(SMSS))
}

impl<G: Control<Params: AsMut<AimdParams>>> Flow<G> {
    /// In the first slow start with a window of `segments`.
    pub(crate) fn new(segments: f64, params: AimdParams, growth: G) -> Self {
        Self::decreasing(DecreaseFrom::Window, segments, params, growth)
    }

    pub(crate) fn decreasing(from: DecreaseFrom, segments: f64, window: AimdParams, mut growth: G) -> Self {
        let mut params = growth.params().clone();
        *params.as_mut() = window;
        growth.adopt(params).unwrap();
        let now = Instant::from_secs(100);
        let mut init = CcInit::new(now, SMSS, window_of(1.0));
        init.decrease_from = from;
        let mut cc = WindowControl::new(&init, Aimd::new(growth.clone()));
        // Also what the start of a connection would forget.
        cc.growth_mut().growth = growth;
        cc.windows_mut().set_bytes(segments * f64::from(SMSS));
        let mut flow = Self { cc, view: FlowView::new(now, SMSS) };
        flow.fill();
        flow
    }

    /// In congestion avoidance with a window of `segments`.
    pub(crate) fn avoiding(segments: f64, growth: G) -> Self {
        let window = *growth.params().as_ref();
        let mut flow = Self::new(segments, window, growth);
        flow.cc.windows_mut().set_ssthresh(window_of(2.0));
        flow
    }

    fn fill(&mut self) {
        let cwnd = u32::try_from(self.cc.windows().cwnd().bytes()).unwrap();
        (self.view.flight_size, self.view.pipe) = (cwnd, cwnd);
        self.view.snd_nxt = self.view.snd_una + cwnd;
    }

    /// The window in segments.
    pub(crate) fn w(&self) -> f64 {
        self.cc.windows().segments()
    }

    pub(crate) fn ssthresh(&self) -> f64 {
        self.cc.windows().ssthresh().bytes() as f64 / f64::from(SMSS)
    }

    pub(crate) const fn growth(&self) -> &G {
        &self.cc.growth().growth
    }

    /// An ACK of so many segments, with an RTT sample if one is given.
    pub(crate) fn ack(&mut self, segments: u32, rtt: Option<Duration>) {
        let mut ack = AckSample::new(segments * SMSS, segments);
        ack.rtt = rtt;
        self.view.snd_una += ack.acked;
        self.fill();
        self.cc.on_ack(&self.view, &ack);
    }

    /// A loss, repaired at once.
    pub(crate) fn lose(&mut self) {
        self.cc.checkpoint(&self.view);
        self.cc.on_congestion(&self.view, &CongestionEvent::Loss { prior_pipe: self.view.pipe });
        self.fill();
    }

    pub(crate) fn time_out(&mut self, first: bool) {
        let event = CongestionEvent::Timeout {
            flight_size: self.view.flight_size,
            first,
            window: window_of(1.0),
            ssthresh: SsthreshRule::ByCc,
        };
        self.cc.checkpoint(&self.view);
        self.cc.on_congestion(&self.view, &event);
        self.fill();
    }
}

/// a(w) = 2, b(w) = 1/4.
#[derive(Clone, Debug, Default)]
struct Fixed(AimdParams);

impl AsRef<AimdParams> for AimdParams {
    fn as_ref(&self) -> &AimdParams {
        self
    }
}

impl AsMut<AimdParams> for AimdParams {
    fn as_mut(&mut self) -> &mut AimdParams {
        self
    }
}

impl Keyed for AimdParams {
    const KEYS: &'static [Key<Self>] = &[max_ssthresh(), hystart(), rto()];
}

impl Growth for Fixed {
    fn increase(&mut self, _at: &Avoidance) -> f64 {
        2.0
    }
    fn decrease(&self, _segments: f64) -> f64 {
        0.25
    }
    fn undo(&mut self, _before: &Self) {}
}

impl Control for Fixed {
    const NAME: &'static str = "fixed";
    type Params = AimdParams;
    fn params(&self) -> &AimdParams {
        &self.0
    }
    fn adopt(&mut self, params: AimdParams) -> Result<(), SpecError> {
        self.0 = params;
        Ok(())
    }
}

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-5, "{value}, expected {expected}");
}

#[test]
fn a_window_of_acks_adds_a_however_many_segments_each_covers() {
    for per_ack in [1, 2, 20] {
        let mut flow = Flow::avoiding(10_000.0, Fixed::default());
        for _ in 0..10_000 / per_ack {
            flow.ack(per_ack, None);
        }
        // A little less than a: the window grows on the way.
        assert!((10_001.99..10_002.0).contains(&flow.w()), "{per_ack}: {}", flow.w());
    }
}

#[test]
fn slow_start_ends_at_ssthresh_and_the_rest_of_the_ack_counts_beyond_it() {
    let mut flow = Flow::new(10.0, AimdParams::default(), Fixed::default());
    flow.cc.windows_mut().set_ssthresh(window_of(11.5));
    flow.ack(2, None);
    near(flow.w(), 11.5 + 2.0 * 0.5 / 11.5);
}

#[test]
fn one_ack_opens_slow_start_by_two_segments_or_by_one_after_a_timeout() {
    for (phase, expected) in [(Phase::Open, 12.0), (Phase::Loss, 11.0)] {
        let mut flow = Flow::new(10.0, AimdParams::default(), Fixed::default());
        flow.view.phase = phase;
        let jump = AckSample::new(30 * SMSS, 2);
        flow.cc.on_ack(&flow.view, &jump);
        near(flow.w(), expected);
    }
}

#[test]
fn nothing_grows_in_recovery_on_a_mark_or_below_the_window() {
    let cases: [fn(&mut Flow<Fixed>, &mut AckSample); 3] = [
        |flow, _| flow.view.phase = Phase::Recovery,
        |_, ack| ack.ece = true,
        |flow, _| flow.view.cwnd_limited = false,
    ];
    for spoil in cases {
        for mut flow in
            [Flow::avoiding(50.0, Fixed::default()), Flow::new(50.0, AimdParams::default(), Fixed::default())]
        {
            let mut ack = AckSample::new(SMSS, 1);
            spoil(&mut flow, &mut ack);
            flow.cc.on_ack(&flow.view, &ack);
            near(flow.w(), 50.0);
        }
    }
}

#[test]
fn a_loss_costs_b_of_what_it_starts_from_and_a_mark_the_same() {
    let cases = [
        (DecreaseFrom::Window, false, 75.75, 75.0),
        (DecreaseFrom::Flight, true, 75.75, 75.0),
        (DecreaseFrom::Flight, false, 30.0, 30.0),
    ];
    for event in [CongestionEvent::Loss { prior_pipe: 0 }, CongestionEvent::Ecn] {
        for (from, limited, w, ssthresh) in cases {
            let mut flow = Flow::decreasing(from, 101.0, AimdParams::default(), Fixed::default());
            flow.cc.windows_mut().set_ssthresh(window_of(2.0));
            flow.view.cwnd_limited = limited;
            flow.view.flight_size = 40 * SMSS;
            flow.cc.on_congestion(&flow.view, &event);
            near(flow.w(), w);
            near(flow.ssthresh(), ssthresh);
        }
    }
}

#[test]
fn no_loss_leaves_less_than_two_segments_or_raises_a_smaller_window() {
    let mut flow = Flow::avoiding(2.1, Fixed::default());
    flow.lose();
    near(flow.w(), 2.0);
    near(flow.ssthresh(), 2.0);
    flow.time_out(true);
    flow.lose();
    near(flow.w(), 1.0);
}

#[test]
fn a_timeout_halves_the_flight_once_or_takes_b_where_that_is_chosen() {
    for (rto_by_b, ssthresh) in [(false, 50.0), (true, 75.0)] {
        let mut flow = Flow::avoiding(100.0, Fixed::default());
        flow.cc.growth_mut().growth.0.rto_by_b = rto_by_b;
        flow.time_out(true);
        near(flow.w(), 1.0);
        near(flow.ssthresh(), ssthresh);
        flow.time_out(false);
        near(flow.ssthresh(), ssthresh);
    }
}

#[test]
fn undo_restores_what_the_episode_took() {
    let mut flow = Flow::avoiding(100.0, Fixed::default());
    let (w, ssthresh) = (flow.w(), flow.ssthresh());
    flow.lose();
    flow.cc.undo(&flow.view, &Undo::All);
    near(flow.w(), w);
    near(flow.ssthresh(), ssthresh.max(75.0));
    flow.lose();
    flow.cc.undo(&flow.view, &Undo::To { window: window_of(80.0), ssthresh: window_of(90.0) });
    near(flow.w(), 80.0);
    near(flow.ssthresh(), 90.0);
}

#[test]
fn an_unknown_parameter_leaves_the_others_as_they_were() {
    let mut cc = Flow::avoiding(100.0, Fixed::default()).cc;
    let error = cc.configure(&"max_ssthresh=off,speed=3".parse().unwrap()).unwrap_err();
    assert!(std::format!("{error}").contains("speed"), "{error}");
    assert_eq!(*cc.growth().params(), AimdParams::default());
    cc.configure(&"max_ssthresh=off,rto=b".parse().unwrap()).unwrap();
    assert_eq!(*cc.growth().params(), AimdParams { max_ssthresh: None, rto_by_b: true, hystart: false });
}

/// A window of ACKs, each of one segment and with the same RTT.
fn round(flow: &mut Flow<Fixed>, rtt_ms: u64) {
    for _ in 0..flow.w() as u32 {
        flow.ack(1, Some(Duration::from_millis(rtt_ms)));
    }
}

/// The rounds until slow start ends, if the RTT stays at 57 ms after a round of 50; checks that
/// each grows by at most `most` of the window, or `by` segments.
fn rounds_to_the_exit(flow: &mut Flow<Fixed>, most: f64, by: f64) -> u32 {
    round(flow, 50);
    round(flow, 50);
    let mut rounds = 0;
    // Five rounds, which begin with the second ACK of these.
    while flow.cc.windows().in_slow_start() {
        let before = flow.w();
        round(flow, 57);
        rounds += 1;
        assert!(flow.w() < before + (before * most).min(by) + 8.0, "{before} became {}", flow.w());
        assert!(rounds <= 6);
    }
    assert_eq!(flow.cc.growth().reductions, 0, "nothing was lost");
    rounds
}

#[test]
fn hystart_ends_slow_start_when_the_rtt_rises() {
    let params = AimdParams { hystart: true, max_ssthresh: None, ..AimdParams::default() };
    let mut flow = Flow::new(200.0, params, Fixed::default());
    // A quarter of the growth, from the eighth sample on.
    assert!(rounds_to_the_exit(&mut flow, 0.26, f64::INFINITY) >= 5);
    assert!(flow.ssthresh() > 1000.0, "doubled twice before: {}", flow.ssthresh());
}

#[test]
fn hystart_ends_a_limited_slow_start() {
    let mut flow = Flow::new(200.0, AimdParams { hystart: true, ..AimdParams::default() }, Fixed::default());
    // A quarter of 50 segments per round.
    assert!(rounds_to_the_exit(&mut flow, 1.0, 13.0) >= 5);
    assert!((300.0..400.0).contains(&flow.ssthresh()), "50 twice, then 13 five times: {}", flow.ssthresh());
}

#[test]
fn later_slow_starts_are_not_hystarts() {
    let mut flow = Flow::new(400.0, AimdParams { hystart: true, ..AimdParams::default() }, Fixed::default());
    flow.time_out(true);
    flow.cc.windows_mut().set_bytes(50.0 * f64::from(SMSS));
    for rtt in [50, 60, 70] {
        assert!(flow.cc.windows().in_slow_start());
        round(&mut flow, rtt);
    }
    assert!(flow.w() > 190.0, "until ssthresh, half of 400: {}", flow.w());
}

#[test]
fn without_hystart_the_first_slow_start_is_limited_whatever_the_rtt() {
    let mut flow = Flow::new(200.0, AimdParams::default(), Fixed::default());
    for rtt in [50, 60, 70, 80, 90, 100, 110, 120] {
        let before = flow.w();
        round(&mut flow, rtt);
        assert!((45.0..=51.0).contains(&(flow.w() - before)), "{before} became {}", flow.w());
    }
    assert!(flow.cc.windows().in_slow_start());
}

/// RFC 9406, section 4.3: without pacing an ACK opens the window by at most L = 8 segments.
#[test]
fn an_ack_of_many_segments_opens_the_window_by_eight_of_them() {
    let mut flow = Flow::new(50.0, AimdParams { hystart: true, ..AimdParams::default() }, Fixed::default());
    let mut ack = AckSample::new(10 * SMSS, 2);
    ack.rtt = None;
    flow.view.snd_una += ack.acked;
    flow.cc.on_ack(&flow.view, &ack);
    near(flow.w(), 58.0);
}
