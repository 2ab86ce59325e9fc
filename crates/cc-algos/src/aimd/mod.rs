//! Additive increase by a(w), multiplicative decrease by b(w): the window shared by HSTCP, Scalable
//! TCP and ACWAP.
//!
//! ```text
//!   w < ssthresh:     w += 1 per segment acknowledged, limited above max_ssthresh     slow start (H9)
//!                     the first slow start with hystart=on also ends when the RTT rises (RFC 9406)
//!   otherwise:        w += a(w) / w per segment acknowledged                          congestion avoidance (H6)
//!   loss or ECN:      ssthresh = max(2, floor(w (1 - b(w)))), w = w (1 - b(w))        once per window (H7)
//!   timeout:          ssthresh = flight / 2, w as the RTO response proposes           (H8)
//! ```
//!
//! A control's a(w) and b(w) are its [`Growth`]; with a name and parameters it is a [`Control`].
//! [`Aimd`] turns that into a [`WindowGrowth`], and the core's adapter adds the rest. A control that
//! wraps another one (ACWAP) is a [`Growth`] that contains a [`Growth`].
//!
//! Factors are `f64`; only operations that IEEE 754 rounds exactly are used, and the `libm` crate,
//! so every machine computes the same.

mod slow_start;

pub use slow_start::limited_step;

use crate::hystart::{self, HyStart};
use ackline_tcp_core::policy::cc::{CcInit, FlowView, Pacing, Phase, Revise};
use ackline_tcp_core::policy::spec::{Key, Keyed};
use ackline_tcp_core::policy::window::{DecreaseCx, GrowthCx, MovedBy, Signal, WindowGrowth, Windows};
use ackline_tcp_core::policy::{Metrics, Params, SpecError};
use ackline_tcp_core::{Duration, Instant, Window};
use core::fmt::Debug;

/// How a control grows in congestion avoidance and how much it gives up.
///
/// Called by [`Aimd`]: [`on_ack`](Self::on_ack) for every ACK, then [`increase`](Self::increase) if
/// the flow is in congestion avoidance; at a loss or mark [`decrease`](Self::decrease), then
/// [`on_congestion`](Self::on_congestion); at a timeout only the latter.
pub(crate) trait Growth: Clone + Debug + Send {
    /// The connection begins.
    fn start(&mut self, init: &CcInit) {
        let _ = init;
    }

    /// a(w): segments by which the window grows per acknowledged window of data.
    fn increase(&mut self, at: &Avoidance) -> f64;

    /// b(w): the fraction of a window of `segments` that a loss costs, 0 to 1.
    fn decrease(&self, segments: f64) -> f64;

    /// An ACK arrived; called before congestion avoidance grows.
    fn on_ack(&mut self, seen: &AckSummary) {
        let _ = seen;
    }

    /// Congestion: the window fell from `before` to `after` bytes.
    fn on_congestion(&mut self, seen: &Reduction) {
        let _ = seen;
    }

    /// Until `now` the window did not limit the flow, or the flow was idle.
    fn on_unused(&mut self, now: Instant) {
        let _ = now;
    }

    /// The window became `w` by a restart, an undo, a repeated timeout or a change of segment size.
    fn on_jump(&mut self, w: &Windows) {
        let _ = w;
    }

    /// The last congestion was spurious; `before` is the state before it.
    fn undo(&mut self, before: &Self);

    /// The least distance between departures, and what changing it does to a pending departure.
    fn pacing(&self) -> (Pacing, Revise) {
        (Pacing::Unpaced, Revise::NextDeparture)
    }

    /// Reports its variables.
    fn metrics(&self, w: &Windows, report: &mut Metrics<'_>) {
        let _ = (w, report);
    }
}

/// A [`Growth`] that can be chosen by name.
pub(crate) trait Control: Growth + 'static {
    /// The name under which the control is chosen.
    const NAME: &'static str;

    /// Its parameters, with those of the window.
    type Params: Keyed + AsRef<AimdParams>;

    /// The parameters in force.
    fn params(&self) -> &Self::Params;

    /// Puts `params` in force.
    ///
    /// # Errors
    /// Names the parameter that is fixed for the life of a connection.
    fn adopt(&mut self, params: Self::Params) -> Result<(), SpecError>;
}

/// An ACK of new data in congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avoidance {
    pub(crate) now: Instant,
    /// Bytes.
    pub(crate) cwnd: f64,
    /// Bytes.
    pub(crate) smss: f64,
    /// Bytes.
    pub(crate) acked: f64,
    /// Smoothed round-trip time of RFC 6298; zero before a sample.
    pub(crate) rtt: Duration,
}

impl Avoidance {
    /// The window in segments.
    pub(crate) fn segments(&self) -> f64 {
        self.cwnd / self.smss
    }
}

/// The state of a flow when an ACK arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Before the first congestion.
    FirstSlowStart,
    /// After a timeout or a restart.
    SlowStart,
    /// The ACK acknowledges new data.
    Avoidance,
    /// Lost data is being repaired, or nothing new is acknowledged.
    Other,
}

/// The contents of an ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSummary {
    pub(crate) now: Instant,
    pub(crate) stage: Stage,
    pub(crate) windows: Windows,
    /// Round-trip time of the newest covered segment that was never retransmitted.
    pub(crate) rtt: Option<Duration>,
    /// The longest round trip to pace by.
    pub(crate) longest_paced_rtt: Duration,
}

/// A congestion event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    /// A timeout, as opposed to a loss detected from ACKs or a mark.
    pub(crate) timeout: bool,
    pub(crate) before: Windows,
    pub(crate) after: Windows,
}

/// Parameters of the window itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AimdParams {
    /// Window in segments above which slow start is limited (RFC 3742); `None`: never.
    pub(crate) max_ssthresh: Option<u32>,
    /// At a timeout `ssthresh` is w (1 - b(w)) (Linux), not w / 2 (RFC 5681, equation 4, with the
    /// window or the flight).
    pub(crate) rto_by_b: bool,
    /// The first slow start ends when the RTT rises (RFC 9406). Above `max_ssthresh` it is limited
    /// as well: the window grows on for six round trips after the queue has begun to build, and by
    /// doubling it would overflow.
    pub(crate) hystart: bool,
}

impl Default for AimdParams {
    fn default() -> Self {
        Self { max_ssthresh: Some(100), rto_by_b: false, hystart: false }
    }
}

/// `max_ssthresh`, among the parameters `C`.
pub(crate) const fn max_ssthresh<C: AsMut<AimdParams>>() -> Key<C> {
    Key::integer_or(
        "max_ssthresh",
        2..=1_000_000,
        "off",
        "segments above which slow start is limited to half of it per round trip (RFC 3742)",
        |it| &mut it.as_mut().max_ssthresh,
    )
}

/// `hystart`, among the parameters `C`.
pub(crate) const fn hystart<C: AsMut<AimdParams>>() -> Key<C> {
    Key::switch("hystart", "leave the first slow start when the RTT rises (HyStart++, RFC 9406)", |it| {
        &mut it.as_mut().hystart
    })
}

/// `rto`, among the parameters `C`.
pub(crate) const fn rto<C: AsRef<AimdParams> + AsMut<AimdParams>>() -> Key<C> {
    Key::choice(
        "rto",
        &["half", "b"],
        "ssthresh after a timeout: half, or what b(w) leaves",
        |it| usize::from(it.as_ref().rto_by_b),
        |it, at| it.as_mut().rto_by_b = at == 1,
    )
}

/// A window with a(w) and b(w) of `G`.
#[derive(Clone, Debug)]
pub(crate) struct Aimd<G> {
    growth: G,
    hystart: HyStart,
    /// Losses, marks and first timeouts; and the window in bytes at the last one.
    reductions: u32,
    reduced_from: f64,
}

impl<G: Control + Default> Default for Aimd<G> {
    fn default() -> Self {
        Self::new(G::default())
    }
}

impl<G: Control> Aimd<G> {
    /// A flow before its start.
    pub(crate) fn new(growth: G) -> Self {
        Self { growth, hystart: HyStart::default(), reductions: 0, reduced_from: 0.0 }
    }

    /// The parameters of the window.
    fn params(&self) -> &AimdParams {
        self.growth.params().as_ref()
    }

    fn stage(view: &FlowView, acked: u32, w: &Windows) -> Stage {
        match () {
            () if view.phase == Phase::Recovery => Stage::Other,
            () if !w.in_slow_start() && acked > 0 => Stage::Avoidance,
            () if !w.in_slow_start() => Stage::Other,
            () if w.ssthresh() == Window::MAX => Stage::FirstSlowStart,
            () => Stage::SlowStart,
        }
    }

    fn count_reduction(&mut self, before: &Windows) {
        self.reductions = self.reductions.saturating_add(1);
        self.reduced_from = before.bytes();
    }

    /// H7: sets `ssthresh`, and returns w (1 - b(w)) in bytes.
    fn lower_ssthresh(&self, used: f64, w: &mut Windows) -> f64 {
        let smss = f64::from(w.smss());
        let segments = used / smss;
        let left = segments * (1.0 - self.growth.decrease(segments));
        w.set_ssthresh(Window::from_bytes((left as u64).max(2).saturating_mul(u64::from(w.smss()))));
        left * smss
    }
}

impl<G: Control> WindowGrowth for Aimd<G> {
    const NAME: &'static str = G::NAME;

    fn start(&mut self, init: &CcInit) {
        self.growth.start(init);
    }

    /// H6: w += a(w) / w for each segment.
    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        let cwnd = w.bytes();
        let at = Avoidance {
            now: cx.view.now,
            cwnd,
            smss: f64::from(w.smss()),
            acked: f64::from(cx.acked).min(cwnd),
            rtt: cx.view.srtt.unwrap_or(Duration::ZERO),
        };
        let a = self.growth.increase(&at);
        w.grow(a * at.smss * (at.acked / cwnd));
    }

    /// H7, for a mark as for a loss, and H8.
    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        let base = cx.base(w);
        if cx.signal == Signal::Timeout {
            if self.params().rto_by_b {
                self.lower_ssthresh(base, w);
            } else {
                // RFC 5681, equation 4.
                w.reduce_to(Window::from_f64(base).mul_ratio(1, 2).as_f64());
            }
            return;
        }
        let before = *w;
        self.count_reduction(&before);
        let left = self.lower_ssthresh(base, w);
        w.set_bytes(before.bytes().min(left.max(f64::from(w.smss()) * 2.0)));
        self.growth.on_congestion(&Reduction { timeout: false, before, after: *w });
    }

    /// H9.
    fn slow_start(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) -> u32 {
        let share = self.params().max_ssthresh.map_or(1.0, |max| limited_step(w.segments(), max));
        if self.params().hystart && hystart::is_first(w) {
            let paced = self.growth.pacing().0 != Pacing::Unpaced;
            return self.hystart.slow_start(cx, w, share, paced);
        }
        // RFC 3465, section 2.3: at most 2 SMSS per ACK, 1 SMSS after a timeout.
        let used = cx.at_most(if cx.view.phase == Phase::Loss { 1 } else { 2 });
        (w.open(f64::from(used) * share) / share) as u32
    }

    fn observe(&mut self, cx: &GrowthCx<'_>, w: &Windows) {
        self.growth.on_ack(&AckSummary {
            now: cx.view.now,
            stage: Self::stage(cx.view, cx.acked, w),
            windows: *w,
            rtt: cx.ack.rtt,
            longest_paced_rtt: cx.view.longest_paced_rtt(),
        });
    }

    fn unused(&mut self, cx: &GrowthCx<'_>, _w: &Windows) {
        self.growth.on_unused(cx.view.now);
    }

    fn idle(&mut self, now: Instant) {
        self.growth.on_unused(now);
    }

    fn moved(&mut self, by: MovedBy, before: &Windows, w: &Windows) {
        if by == MovedBy::Restart {
            self.hystart = HyStart::default();
        }
        match by {
            MovedBy::Timeout { first: true } => {
                self.count_reduction(before);
                self.growth.on_congestion(&Reduction { timeout: true, before: *before, after: *w });
            }
            MovedBy::Timeout { first: false }
            | MovedBy::Restart
            | MovedBy::Undo(_)
            | MovedBy::SegmentSize => self.growth.on_jump(w),
        }
    }

    fn undo(&mut self, before: &Self) {
        self.hystart = before.hystart;
        self.growth.undo(&before.growth);
    }

    fn pacing(&self, _w: &Windows) -> (Pacing, Revise) {
        self.growth.pacing()
    }

    fn metrics(&self, w: &Windows, report: &mut Metrics<'_>) {
        report.flag("css", w.in_slow_start() && self.hystart.is_conservative());
        report.number("reductions", self.reductions);
        report.bytes("reduced_from", self.reduced_from);
        self.growth.metrics(w, report);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let mut new = self.growth.params().clone();
        new.set(G::NAME, params)?;
        self.growth.adopt(new)
    }
}

#[cfg(test)]
pub(crate) mod tests;
