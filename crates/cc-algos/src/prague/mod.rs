//! TCP Prague (draft-briscoe-iccrg-prague-congestion-control): the congestion control of L4S (RFC
//! 9330), for queues that mark early and often, and so hardly delay anybody.
//!
//! ```text
//!   end of a round           alpha = 15/16 alpha + 1/16 marked / delivered bytes             (section 2.3.2)
//!   first mark of a window   W = W (1 - alpha / 2); further ones wait a round trip           (section 2.4.2)
//!   bytes without a mark     slow start: W += u;   else W += u SMSS / W (rtt / V)²   (sections 2.4.3, 2.4.4)
//!   loss                     W = W / 2, less what a mark in the same window has taken        (section 2.4.1)
//!   pacing                   W / rtt, twice that in slow start, bursts of 250 µs             (section 2.5)
//! ```
//!
//! V, the virtual round trip, is at least 25 ms: flows with shorter ones grow and respond as if
//! they had that, so they do not push aside flows with longer ones. That begins some rounds after
//! slow start, because it also makes convergence slower.
//!
//! It needs accurate ECN and sets ECT(1). Without it, it is NewReno. Windows may be far below two
//! segments: then the pacer alone limits, and the ACK clock keeps two segments in flight.
//!
//! Where it fails: a queue that marks ECT(1) as RFC 3168 has it, and late, takes it for a flow that
//! halves. [`classic`] detects such a queue by the round trip's growth and variation.
//!
//! | file | holds |
//! |---|---|
//! | `alpha.rs` | the average share of marked bytes |
//! | `window.rs` | growth and decrease in integers |
//! | `classic.rs` | detection of a classic queue |
//! | `fallback.rs` | NewReno under this name |
//! | `params.rs` | the parameters |

mod alpha;
pub mod classic;
mod fallback;
mod params;
#[cfg(test)]
mod tests;
mod window;

pub use params::{ClassicQueue, PragueParams};

use ackline_tcp_core::config::Ecn;
use ackline_tcp_core::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, EcnUse, FlowView, Pacing, Phase, Reaction,
    Restart, RestartCause, Revise, SendDecision, SsthreshRule, Undo,
};
use ackline_tcp_core::policy::spec::{Entry, Keyed as _, ParamRow};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, Params, SpecError};
use ackline_tcp_core::{Duration, Instant, SeqNum, Window};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alpha::{Alpha, ONE};
use classic::Detector;
use fallback::Fallback;

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    summary: "L4S: reduces by the share of marked data, and sets ECT(1) (needs accurate ECN)",
    source: "draft-briscoe-iccrg-prague-congestion-control",
    keys: ParamRow::of::<PragueParams>,
    ecn: Ecn::Accurate,
    ..Entry::new("prague", |params| {
        let params = PragueParams::from_params("prague", params)?;
        Ok(Arc::new(move |init: &CcInit| -> Box<dyn CongestionControl> {
            match init.ecn {
                Ecn::Accurate => Box::new(Prague::new(init, params)),
                _ => Box::new(Fallback::new(init)),
            }
        }))
    })
};

/// Most that may leave at once, as time at the pace (section 2.5.2).
const BURST: Duration = Duration::from_micros(250);

/// State to restore if a congestion episode is undone.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    w: u64,
    /// That of the ACK clock, which may have been more.
    window: u64,
    ssthresh: u64,
}

/// The response to marks, until a window of data and V have passed.
#[derive(Clone, Copy, Debug)]
struct Reduced {
    /// SND.NXT at the decrease.
    until: SeqNum,
    at: Instant,
    /// What it took of W.
    cut: u64,
}

/// A connection's Prague.
#[derive(Clone, Debug)]
pub struct Prague {
    params: PragueParams,
    smss: u32,
    /// W in 2^-16 bytes.
    w: u64,
    /// In 2^-16 bytes; `u64::MAX` before the first reduction.
    ssthresh: u64,
    alpha: Alpha,
    reduced: Option<Reduced>,
    /// A round ends when more than this is acknowledged; `None` before the first ACK, which ends
    /// one.
    round_end: Option<SeqNum>,
    /// When alpha last changed, or the first mark came.
    updated_at: Instant,
    /// Rounds since slow start.
    rounds: u32,
    /// A mark has arrived.
    marked: bool,
    marks: u64,
    /// The last decrease, for reports.
    cut: u64,
    /// The smoothed round trip of the last event.
    srtt: Option<Duration>,
    detector: Detector,
    /// What a timeout or a restart has left, until ACKs have raised it to two segments.
    most: Option<u64>,
    saved: Option<Checkpoint>,
}

impl Prague {
    /// A flow that starts from `init`, with accurate ECN.
    #[must_use]
    pub fn new(init: &CcInit, params: PragueParams) -> Self {
        Self {
            params,
            smss: init.smss,
            w: init.initial_window.raw(),
            ssthresh: init.ssthresh.raw(),
            alpha: Alpha::default(),
            reduced: None,
            round_end: None,
            updated_at: init.now,
            rounds: 0,
            marked: false,
            marks: 0,
            cut: 0,
            srtt: None,
            detector: Detector::default(),
            most: None,
            saved: None,
        }
    }

    const fn two_segments(&self) -> u64 {
        (2 * self.smss as u64) << Window::FRACTION_BITS
    }

    /// The window of the ACK clock, which keeps two segments in flight, whatever W is; the pacer
    /// follows W.
    fn ack_window(&self) -> u64 {
        let two = self.two_segments();
        self.w.max(self.most.map_or(two, |most| most.min(two)))
    }

    /// Sending resumes with at most `window`.
    fn restart(&mut self, window: Window) {
        self.w = self.w.min(window.raw());
        self.most = Some(self.most.map_or(window.raw(), |most| most.min(window.raw())));
    }

    const fn in_slow_start(&self) -> bool {
        self.w < self.ssthresh
    }

    /// Growth and responses follow V.
    const fn is_independent(&self) -> bool {
        !self.in_slow_start() && self.rounds >= self.params.transition
    }

    /// The virtual round trip for a round trip of `rtt`.
    fn virtual_rtt(&self, rtt: Duration) -> Duration {
        if self.is_independent() { rtt.max(self.params.virtual_rtt) } else { rtt }
    }

    /// True if V has passed since `at`, or need not.
    fn v_has_passed(&self, view: &FlowView, at: Instant) -> bool {
        match view.srtt {
            Some(rtt) if self.is_independent() => view.now.since(at) >= self.virtual_rtt(rtt),
            _ => true,
        }
    }

    /// The step of a round trip without marks, in 2^-16 bytes.
    fn step(&self, rtt: Option<Duration>) -> u64 {
        let bytes = self.params.ai_bytes.unwrap_or(self.smss);
        rtt.map_or(u64::from(bytes) << Window::FRACTION_BITS, |rtt| {
            window::step(bytes, rtt, self.virtual_rtt(rtt))
        })
    }

    /// The share by which marks reduce, in 2^-24.
    fn response(&self) -> u64 {
        let floor = match self.params.classic {
            ClassicQueue::Fallback => self.detector.floor(),
            ClassicQueue::Off | ClassicQueue::Detect => 0,
        };
        self.alpha.get().max(floor)
    }

    /// Lowers W to `w`, but no further than to its floor.
    fn lower(&mut self, w: u64) {
        self.w = w.max(window::floor(self.srtt).min(self.w));
    }

    /// Section 2.3.2, before the first mark of the connection: alpha starts, and slow start ends.
    fn on_first_mark(&mut self, view: &FlowView) {
        self.marked = true;
        self.alpha.forget_round();
        self.alpha.start(if self.params.alpha0 { ONE } else { 0 });
        self.round_end = Some(view.snd_nxt);
        self.updated_at = view.now;
    }

    /// Section 2.4.2.
    fn reduce(&mut self, view: &FlowView) {
        // Linux halves at the first mark even if alpha starts at zero.
        let share = if self.in_slow_start() { self.response().max(ONE) } else { self.response() };
        let cut = window::cut(self.w, share);
        self.lower(self.w.saturating_sub(cut));
        self.ssthresh = self.w;
        self.cut = cut;
        self.reduced = Some(Reduced { until: view.snd_nxt, at: view.now, cut });
    }

    /// Section 2.3.2: a round ends.
    fn end_round(&mut self, view: &FlowView) {
        if self.round_end.is_some_and(|end| view.snd_una.le(end)) || !self.v_has_passed(view, self.updated_at)
        {
            return;
        }
        if self.marked {
            self.alpha.end_round();
            self.updated_at = view.now;
            if self.params.classic != ClassicQueue::Off {
                self.detector.end_round();
            }
        } else {
            self.alpha.forget_round();
        }
        self.round_end = Some(view.snd_nxt);
        self.rounds = if self.in_slow_start() { 0 } else { self.rounds.saturating_add(1) };
    }

    fn on_loss(&mut self) {
        // A mark's cut in the same window and this together are one halving.
        let before = self.w.saturating_add(self.reduced.map_or(0, |reduced| reduced.cut));
        self.lower((before - (before >> 1)).min(self.w));
        self.ssthresh = self.w;
    }
}

impl CongestionControl for Prague {
    fn name(&self) -> &'static str {
        "prague"
    }

    fn decision(&self) -> SendDecision {
        let (two, window) = (self.two_segments(), self.ack_window());
        let mut decision = SendDecision::window(Window::from_raw(window), Window::from_raw(self.ssthresh));
        if let Some(time) = self.srtt {
            let over = Window::from_raw(if self.in_slow_start() { self.w.saturating_mul(2) } else { self.w });
            decision.pacing = Pacing::Gap { time, over };
            // Below two segments a change of the window is a change of the pending gap.
            decision.revise = if self.w < two { Revise::Retroactive } else { Revise::Banked };
            let burst = over.mul_ratio(BURST.as_nanos(), time.as_nanos().max(1)).bytes();
            decision.quantum = u32::try_from(burst).unwrap_or(u32::MAX);
        }
        decision.ecn = EcnUse::PerAck;
        decision.l4s = self.params.ect1;
        decision
    }

    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        self.srtt = view.srtt;
        let (delivered, marked) = (ack.newly_delivered, ack.ce.min(ack.newly_delivered));
        if marked > 0 && !self.marked {
            self.on_first_mark(view);
        }
        self.alpha.add(delivered, marked);
        if let Some(rtt) = ack.rtt
            && self.marked
            && self.params.classic != ClassicQueue::Off
        {
            self.detector.sample(rtt, view.min_rtt, self.ssthresh, self.smss);
        }
        if let Some(reduced) = self.reduced
            && view.snd_una.gt(reduced.until)
            && self.v_has_passed(view, reduced.at)
        {
            self.reduced = None;
        }
        let repairs = matches!(view.phase, Phase::Recovery | Phase::Loss);
        let mut reaction = Reaction::None;
        if marked > 0 {
            self.marks += 1;
            if self.reduced.is_none() && !repairs {
                self.reduce(view);
                reaction = Reaction::Reduced;
            }
        }
        let window = Window::from_raw(self.ack_window());
        if view.phase != Phase::Recovery && view.may_raise(window, Window::from_raw(self.ssthresh)) {
            let more = u64::from(delivered) << Window::FRACTION_BITS;
            self.most = self.most.map(|most| most + more).filter(|most| *most < self.two_segments());
            let unmarked = delivered - marked;
            let grown = if self.in_slow_start() {
                self.w.saturating_add(u64::from(unmarked) << Window::FRACTION_BITS)
            } else {
                window::increase(self.w, unmarked, self.step(view.srtt))
            };
            self.w = grown;
        }
        self.end_round(view);
        reaction
    }

    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent) {
        match *event {
            CongestionEvent::Loss { .. } => self.on_loss(),
            CongestionEvent::Timeout { first, window, ssthresh, .. } => {
                match ssthresh {
                    SsthreshRule::Keep => {}
                    SsthreshRule::To(value) => self.ssthresh = value.raw(),
                    SsthreshRule::ByCc if first => self.ssthresh = self.w - (self.w >> 1),
                    SsthreshRule::ByCc => {}
                }
                self.restart(window);
                self.reduced = Some(Reduced { until: view.snd_nxt, at: view.now, cut: 0 });
            }
            // Marks come with each ACK.
            _ => {}
        }
    }

    fn on_restart(&mut self, _view: &FlowView, restart: &Restart) {
        if restart.cause == RestartCause::Idle && restart.window.raw() < self.w && self.ssthresh != u64::MAX {
            // RFC 2861, section 3: what the path has carried is not forgotten.
            self.ssthresh = self.ssthresh.max(self.w / 4 * 3);
        }
        self.restart(restart.window);
        self.rounds = 0;
    }

    fn on_smss_change(&mut self, view: &FlowView, _old: u32) {
        self.smss = view.smss;
    }

    fn checkpoint(&mut self, _view: &FlowView) {
        self.saved = Some(Checkpoint { w: self.w, window: self.ack_window(), ssthresh: self.ssthresh });
    }

    fn undo(&mut self, _view: &FlowView, undo: &Undo) {
        let (w, window, ssthresh) = match (*undo, self.saved) {
            (Undo::To { window, ssthresh }, _) => (window.raw(), window.raw(), ssthresh.raw()),
            (Undo::All, Some(saved)) => (saved.w, saved.window, saved.ssthresh),
            (Undo::All, None) => return,
        };
        (self.w, self.most) = (self.w.max(w), None);
        if self.ack_window() < window {
            // Segments have become smaller.
            self.w = window;
        }
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        report.number("alpha", self.alpha.get() as f64 / ONE as f64);
        report.window("cwnd", Window::from_raw(self.ack_window()));
        report.window("w", Window::from_raw(self.w));
        report.window("ssthresh", Window::from_raw(self.ssthresh));
        report.millis("rtt_virt_ms", self.srtt.map_or(Duration::ZERO, |rtt| self.virtual_rtt(rtt)));
        report.count("rounds", u64::from(self.rounds));
        report.count("marks", self.marks);
        report.window("cut", Window::from_raw(self.cut));
        report.flag("in_cwr", self.reduced.is_some());
        report.flag("independent", self.is_independent());
        report.flag("fallback", false);
        report.number("classic", self.detector.score());
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let mut changed = self.params;
        changed.set("prague", params)?;
        if changed.alpha0 != self.params.alpha0 {
            return Err(SpecError::new(
                "alpha0 of prague is where a connection begins, and cannot be set later",
            ));
        }
        self.params = changed;
        Ok(())
    }
}
