//! Validated and non-validated phases (RFC 7661) of a window that the application does not use.
//!
//! ```text
//!    pipeACK >= cwnd / 2, or undefined       pipeACK < cwnd / 2
//!   ┌─────────────┐                        ┌─────────────────┐ 5 minutes:
//!   │  validated  │ ─────────────────────► │  non-validated  │ ─────────┐ ssthresh >= 3/4 cwnd,
//!   │             │ ◄───────────────────── │  cwnd is kept   │ ◄────────┘ cwnd / 2
//!   └─────────────┘  used, a loss, a mark, └─────────────────┘
//!                    a timeout
//! ```
//!
//! The window is neither lowered while it is not used, as by RFC 5681, section 4.1, nor raised. If
//! its use proves too much, what is left of it follows from what was used, and from what was lost.

use crate::policy::cc::{FlowView, LostRecord};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use crate::units::Window;

/// The non-validated period: the longest that a window is kept (section 4.4: at most five minutes).
const NVP: Duration = Duration::from_secs(300);
/// The least sampling period (section 4.2).
const LEAST_PERIOD: Duration = Duration::from_secs(1);
/// Round trips of the sampling period.
const PERIOD_ROUNDS: u64 = 3;
/// Measurement periods in a sampling period (section 4.5.1).
const BINS: u64 = 4;

/// The phase of a flow, and what it depends on.
#[derive(Clone, Debug)]
pub(super) struct Phases {
    /// IW.
    initial: Window,
    pipe_ack: PipeAck,
    /// When the non-validated phase began; `None`: validated.
    since: Option<Instant>,
    /// In a recovery that began in the non-validated phase: max(pipeACK, LossFlightSize).
    used: Option<u64>,
    repaired: Repaired,
}

impl Phases {
    /// Section 4.1: the validated phase, and no measurement. `initial` is IW.
    pub(super) fn new(initial: Window) -> Self {
        Self { initial, pipe_ack: PipeAck::default(), since: None, used: None, repaired: Repaired::default() }
    }

    pub(super) const fn is_validated(&self) -> bool {
        self.since.is_none()
    }

    /// pipeACK in bytes; `None`: undefined.
    pub(super) fn pipe_ack(&self, view: &FlowView) -> Option<u64> {
        self.pipe_ack.value(view.now, view.srtt?)
    }

    /// The last value of pipeACK, for recorders.
    pub(super) const fn last_pipe_ack(&self) -> Option<u64> {
        self.pipe_ack.last
    }

    /// `bytes` were acknowledged outside of loss recovery (section 4.2).
    pub(super) fn on_ack(&mut self, view: &FlowView, bytes: u32) {
        if let Some(srtt) = view.srtt {
            self.pipe_ack.add(view.now, u64::from(bytes), srtt);
        }
    }

    /// Section 4.3: the phase of a window of `cwnd`.
    pub(super) fn judge(&mut self, view: &FlowView, cwnd: Window) {
        let pipe_ack = self.pipe_ack(view);
        self.pipe_ack.last = pipe_ack;
        match pipe_ack.zip(view.srtt) {
            Some((pipe_ack, srtt)) if pipe_ack.saturating_mul(2) < cwnd.bytes() => {
                let began = self.pipe_ack.silent_from(srtt).map_or(view.now, |at| at.min(view.now));
                self.since.get_or_insert(began);
            }
            _ => self.since = None,
        }
    }

    /// Section 4.4: the period is over, and `ssthresh` and the window become these.
    pub(super) fn expire(
        &mut self,
        now: Instant,
        cwnd: Window,
        ssthresh: Window,
    ) -> Option<(Window, Window)> {
        let mut since = self.since?;
        let (mut after, mut least) = (cwnd, ssthresh);
        while now.since(since) > NVP {
            since += NVP;
            least = least.max(after.mul_ratio(3, 4));
            let half = after.mul_ratio(1, 2).max(self.initial).min(after);
            if half == after {
                since = now;
            }
            after = half;
        }
        let expired = self.since != Some(since);
        self.since = Some(since);
        expired.then_some((after, least))
    }

    /// Section 4.4: data was lost or marked while `flight` bytes were in flight. In the
    /// non-validated phase, what a decrease starts from; `loses`: until recovery ends.
    pub(super) fn on_congestion(&mut self, view: &FlowView, flight: u32, loses: bool) -> Option<u64> {
        self.since?;
        let used = self.pipe_ack(view).unwrap_or(0).max(u64::from(flight)).max(u64::from(view.smss));
        if loses {
            self.used = Some(used);
            self.since = None;
        } else {
            self.forget();
        }
        Some(used)
    }

    pub(super) fn on_lost(&mut self, lost: &LostRecord) {
        self.repaired.add(lost);
    }

    /// Section 4.4: the window at the end of a recovery that began in the non-validated phase. Then
    /// nothing is known of the window's use.
    pub(super) fn on_recovery_exit(&mut self) -> Option<u64> {
        let repaired = self.repaired.bytes;
        let safe = self.used.map(|used| used.saturating_sub(repaired) / 2);
        self.forget();
        safe
    }

    /// Sections 4.2 and 4.4: after recovery and after a timeout pipeACK is undefined, and the phase
    /// validated.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.initial);
    }
}

/// R (section 4.4): the volume that a recovery retransmits; what is lost again counts once.
#[derive(Clone, Copy, Debug, Default)]
struct Repaired {
    /// Beyond the last byte counted.
    end: Option<SeqNum>,
    bytes: u64,
}

impl Repaired {
    /// Originals are given up in the order in which they left, so what lies before the end was
    /// counted.
    fn add(&mut self, lost: &LostRecord) {
        let end = lost.seq + lost.len;
        let from = self.end.map_or(lost.seq, |counted| counted.max(lost.seq));
        self.bytes += u64::from(end.saturating_distance_from(from));
        self.end = Some(self.end.map_or(end, |counted| counted.max(end)));
    }
}

/// pipeACK (section 4.2): the most that was acknowledged in a round trip, of the last
/// max(3 RTT, 1 s).
#[derive(Clone, Copy, Debug, Default)]
struct PipeAck {
    /// When each measurement period began, and its largest sample; the newest first.
    bins: [Option<(Instant, u64)>; BINS as usize],
    /// When the sample under way began, and its bytes.
    sample: Option<(Instant, u64)>,
    /// As of the last ACK.
    last: Option<u64>,
}

impl PipeAck {
    fn period(rtt: Duration) -> Duration {
        rtt.saturating_mul(PERIOD_ROUNDS).max(LEAST_PERIOD)
    }

    fn add(&mut self, now: Instant, bytes: u64, rtt: Duration) {
        match &mut self.sample {
            Some((began, sum)) if now.since(*began) < rtt => *sum += bytes,
            sample => {
                let done = sample.replace((now, bytes));
                if let Some((began, sum)) = done {
                    self.keep(began, sum, rtt);
                }
            }
        }
    }

    fn keep(&mut self, began: Instant, sum: u64, rtt: Duration) {
        let bin = Self::period(rtt).div(BINS);
        match &mut self.bins[0] {
            Some((at, largest)) if began.since(*at) < bin => *largest = sum.max(*largest),
            _ => {
                self.bins.rotate_right(1);
                self.bins[0] = Some((began, sum));
            }
        }
    }

    /// `None` before a sample of a whole round trip.
    fn value(&self, now: Instant, rtt: Duration) -> Option<u64> {
        let sample = self.sample?;
        if self.bins[0].is_none() && now.since(sample.0) < rtt {
            return None;
        }
        let period = Self::period(rtt);
        let all = self.bins.iter().flatten().chain([&sample]);
        Some(all.filter(|(at, _)| now.since(*at) <= period).map(|(_, bytes)| *bytes).max().unwrap_or(0))
    }

    /// When the last sample leaves the period, if no other comes.
    fn silent_from(&self, rtt: Duration) -> Option<Instant> {
        self.sample.map(|(began, _)| began + Self::period(rtt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::builtin::NewReno;
    use crate::policy::cc::{AckSample, CcInit, CongestionControl, CongestionEvent, Restart, RestartCause};
    use crate::policy::cc::{Phase, SsthreshRule, Undo, Validation};
    use crate::policy::window::WindowControl;

    const SMSS: u32 = 1_000;
    const RTT: Duration = Duration::from_millis(100);

    fn segments(n: u64) -> Window {
        Window::from_bytes(n * u64::from(SMSS))
    }

    /// NewReno with phases: a window and `ssthresh` of 100 segments, and an IW of 10.
    struct Flow {
        cc: WindowControl<NewReno>,
        view: FlowView,
    }

    impl Flow {
        fn new() -> Self {
            let now = Instant::from_secs(1_000);
            let mut init = CcInit::new(now, SMSS, segments(100));
            (init.ssthresh, init.phases) = (segments(100), Some(segments(10)));
            let mut view = FlowView::new(now, SMSS);
            (view.srtt, view.cwnd_limited) = (Some(RTT), false);
            Self { cc: WindowControl::new(&init, NewReno::default()), view }
        }

        /// So many segments are acknowledged at once, a round trip after the last ones.
        fn use_of(&mut self, segments: u32) {
            self.view.now += RTT;
            self.view.flight_used = segments * SMSS;
            self.cc.on_ack(&self.view, &AckSample::new(segments * SMSS, segments));
        }

        /// Four such round trips: longer than pipeACK remembers if they begin a second later.
        fn uses(&mut self, segments: u32) {
            self.view.now += Duration::from_secs(2);
            for _ in 0..4 {
                self.use_of(segments);
            }
        }

        fn resume(&mut self, idle: Duration) {
            self.view.now += idle;
            self.cc.on_restart(&self.view, &Restart::new(RestartCause::Idle, segments(10), idle));
        }

        fn lose(&mut self, flight: u32, lost: core::ops::Range<u32>) {
            self.view.flight_size = flight * SMSS;
            for at in lost {
                self.cc.on_lost(&self.view, &LostRecord::new(SeqNum(at * SMSS), SMSS, 0));
            }
            self.cc.checkpoint(&self.view);
            self.cc.on_congestion(&self.view, &CongestionEvent::Loss { prior_pipe: flight * SMSS });
            self.view.phase = Phase::Recovery;
        }

        fn repaired(&mut self) {
            self.view.phase = Phase::Open;
            self.cc.on_recovery_exit(&self.view);
        }

        fn is_validated(&self) -> bool {
            self.cc.phases().unwrap().is_validated()
        }

        /// Window and `ssthresh` in segments.
        fn windows(&self) -> (f64, f64) {
            let decision = self.cc.decision();
            let of = |window: Window| window.as_f64() / f64::from(SMSS);
            (of(decision.window), of(decision.ssthresh))
        }
    }

    /// Section 4.2: the largest sample of max(3 RTT, 1 s); a sample is what a round trip
    /// acknowledges.
    #[test]
    fn pipe_ack_is_the_most_that_a_recent_round_trip_has_acknowledged() {
        let mut pipe_ack = PipeAck::default();
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        assert_eq!(pipe_ack.value(at(0), RTT), None, "undefined");
        for (ms, bytes) in [(0, 10), (50, 20), (90, 5), (100, 7), (150, 1)] {
            pipe_ack.add(at(ms), bytes, RTT);
        }
        assert_eq!(pipe_ack.value(at(150), RTT), Some(35));
        assert_eq!(pipe_ack.value(at(1_000), RTT), Some(35));
        assert_eq!(pipe_ack.value(at(1_001), RTT), Some(8));
        assert_eq!(pipe_ack.value(at(1_101), RTT), Some(0), "silent for the period");
        // Three round trips of 600 ms are longer than a second.
        assert_eq!(pipe_ack.value(at(1_800), RTT.saturating_mul(6)), Some(35));
        assert_eq!(pipe_ack.silent_from(RTT), Some(at(1_100)));
    }

    /// Section 4.2: undefined until a round trip is over, and section 4.3: then validated.
    #[test]
    fn before_a_measurement_the_phase_is_validated() {
        let mut flow = Flow::new();
        assert_eq!(flow.cc.decision().validation, Validation::ByPhase);
        flow.use_of(1);
        assert!(flow.is_validated());
        flow.use_of(1);
        assert!(!flow.is_validated());
    }

    /// Section 4.3: validated if pipeACK >= cwnd / 2.
    #[test]
    fn half_of_the_window_validates_it() {
        for (used, validated) in [(49, false), (50, true), (51, true)] {
            let mut flow = Flow::new();
            flow.uses(used);
            assert_eq!(flow.is_validated(), validated, "{used} of 100 segments");
        }
    }

    /// Section 4.4: the window is kept; it grows only if it is the limit.
    #[test]
    fn in_the_non_validated_phase_only_a_window_that_is_the_limit_grows() {
        let mut flow = Flow::new();
        flow.uses(20);
        assert_eq!(flow.windows(), (100.0, 100.0));
        // In slow start too, although less than twice the flight.
        flow.cc.windows_mut().set_ssthresh(Window::MAX);
        flow.view.flight_used = 90 * SMSS;
        flow.cc.on_ack(&flow.view, &AckSample::new(SMSS, 1));
        assert_eq!(flow.windows().0, 100.0);
        flow.view.cwnd_limited = true;
        flow.cc.on_ack(&flow.view, &AckSample::new(SMSS, 1));
        assert_eq!(flow.windows().0, 101.0);
    }

    /// Section 4.4: max(pipeACK, LossFlightSize) / 2, and at the end of recovery
    /// (max(pipeACK, LossFlightSize) - R) / 2, which `ssthresh` follows.
    #[test]
    fn a_loss_in_the_non_validated_phase_counts_from_what_was_used() {
        for (used, flight, lost, in_recovery, after) in [
            (20, 30, 0..10, 15.0, 10.0),
            (40, 30, 0..10, 20.0, 15.0),
            (20, 90, 0..60, 45.0, 15.0),
            // At least a segment.
            (1, 1, 0..1, 1.0, 1.0),
        ] {
            let mut flow = Flow::new();
            flow.uses(used);
            flow.lose(flight, lost);
            assert_eq!(flow.windows().0, in_recovery, "{used} {flight}");
            flow.repaired();
            assert_eq!(flow.windows(), (after, after), "{used} {flight}");
            assert!(flow.is_validated(), "pipeACK is undefined");
        }
    }

    /// Section 4.4: R does not include what is retransmitted more than once.
    #[test]
    fn what_is_lost_again_counts_once() {
        let mut flow = Flow::new();
        flow.uses(40);
        flow.lose(40, 0..4);
        for at in [0, 1, 4] {
            flow.cc.on_lost(&flow.view, &LostRecord::new(SeqNum(at * SMSS), SMSS, 0));
        }
        flow.repaired();
        assert_eq!(flow.windows().0, 17.5, "(40 - 5) / 2");
    }

    #[test]
    fn a_loss_in_the_validated_phase_is_answered_as_ever() {
        let mut flow = Flow::new();
        flow.uses(60);
        flow.lose(90, 0..10);
        assert_eq!(flow.windows(), (50.0, 50.0));
        flow.repaired();
        assert_eq!(flow.windows(), (50.0, 50.0));
    }

    /// Section 4.2: pipeACK is not updated in recovery.
    #[test]
    fn recovery_measures_nothing() {
        let mut flow = Flow::new();
        flow.uses(40);
        flow.lose(40, 0..1);
        flow.use_of(90);
        flow.use_of(90);
        assert_eq!(flow.cc.phases().unwrap().pipe_ack(&flow.view), Some(40_000));
    }

    /// A mark loses nothing: the control's own decrease, of what was used.
    #[test]
    fn a_mark_in_the_non_validated_phase_halves_what_was_used() {
        let mut flow = Flow::new();
        flow.uses(20);
        flow.view.flight_size = 30 * SMSS;
        flow.cc.on_congestion(&flow.view, &CongestionEvent::Ecn);
        assert_eq!(flow.windows(), (15.0, 15.0));
        assert!(flow.is_validated());
    }

    /// Section 4.4: the phase ends, and the timeout is RFC 5681's.
    #[test]
    fn a_timeout_ends_the_phase() {
        let mut flow = Flow::new();
        flow.uses(20);
        let (window, ssthresh) = (segments(1), SsthreshRule::ByCc);
        let flight_size = 20 * SMSS;
        flow.cc.on_congestion(
            &flow.view,
            &CongestionEvent::Timeout { flight_size, first: true, window, ssthresh },
        );
        assert_eq!(flow.windows(), (1.0, 50.0));
        assert!(flow.is_validated());
    }

    #[test]
    fn a_spurious_loss_gives_the_window_back() {
        let mut flow = Flow::new();
        flow.uses(20);
        flow.lose(30, 0..10);
        flow.cc.undo(&flow.view, &Undo::All);
        flow.repaired();
        assert_eq!(flow.windows(), (100.0, 100.0));
    }

    /// Section 4.4: after five minutes `ssthresh` is at least 3/4 of the window, and the window
    /// half of it, but not below IW.
    #[test]
    fn after_five_minutes_the_window_is_halved() {
        for (minutes, after) in [(4, 100.0), (6, 50.0), (11, 25.0), (16, 12.5), (21, 10.0), (600, 10.0)] {
            let mut flow = Flow::new();
            flow.uses(60);
            flow.resume(Duration::from_secs(60 * minutes));
            assert_eq!(flow.windows(), (after, 100.0), "{minutes} minutes idle");
        }
        let mut flow = Flow::new();
        flow.cc.windows_mut().set_ssthresh(segments(20));
        flow.uses(60);
        flow.resume(Duration::from_secs(360));
        assert_eq!(flow.windows(), (50.0, 75.0));
        // A window below IW stays.
        flow.cc.windows_mut().limit(segments(4));
        flow.resume(Duration::from_secs(3_600));
        assert_eq!(flow.windows().0, 4.0);
    }

    /// A flow that is never idle and never uses half of its window is in the phase as well.
    #[test]
    fn a_flow_that_is_never_idle_expires_too() {
        let mut flow = Flow::new();
        for _ in 0..2_990 {
            flow.use_of(20);
        }
        assert_eq!(flow.windows().0, 100.0);
        for _ in 0..20 {
            flow.use_of(20);
        }
        assert_eq!(flow.windows().0, 50.0);
    }

    #[test]
    fn without_the_option_nothing_is_kept() {
        let init = CcInit::new(Instant::ZERO, SMSS, segments(100));
        let mut cc = WindowControl::new(&init, NewReno::default());
        assert_eq!(cc.decision().validation, Validation::ByUse);
        let idle = Duration::from_secs(1);
        cc.on_restart(
            &FlowView::new(Instant::ZERO, SMSS),
            &Restart::new(RestartCause::Idle, segments(10), idle),
        );
        assert_eq!(cc.decision().window, segments(10));
    }
}
