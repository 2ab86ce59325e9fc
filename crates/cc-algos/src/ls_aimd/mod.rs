//! LS-AIMD: windows below one segment on a departure clock, with logarithmic growth (A. S. Ahmed,
//! "Extending TCP for Low Round Trip Delay", master's thesis, University of Oslo, 2019).
//!
//! If the base RTT is tiny, a sender that keeps two segments in flight builds a queue that no AQM
//! can remove. Here the window W is fractional with a floor of two bytes; below `delta` segments a
//! full segment is sent every `segment * RTT / W`, counted from the last departure, whether or not
//! an ACK arrived.
//!
//! ```text
//!   W >= delta segments      the window releases data, on the ACK clock                              (section 7.6)
//!   W <  delta segments      a departure clock does: I = len * srtt / W, at most delta segments out  (sections 6.2, 7.3)
//!
//!   mark, once per round     S = W / 2  (reno)   or   W (1 - alpha / 2)  (dctcp);  W = S             (section 6.5.2)
//!   every ACK                W += C add(S) n / W  for n bytes acknowledged                           (Eq. 6.3 and 6.4)
//!   slow start               W += min(n, segment, W)
//!   loss                     S = W / 2, W = S      time-out: W = min(segment, S)
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `growth.rs` | add(S): the logarithm in fixed point |
//! | `marking.rs` | alpha |
//! | `params.rs` | the parameters |
//! | `lag.rs` | when an ACK is overdue |
//! | `prototype.rs` | other readings of the thesis, for comparison |
//!
//! One window in Q9 bytes serves both modes, so that a change of mode converts nothing. On each
//! ACK: alpha, then the reduction, then growth (also on a marked ACK), then the mode. The clock
//! itself is in the core: the decision gives the gap, and [`Revise::Retroactive`] moves a pending
//! departure with every ACK, earlier or later.
//!
//! At most `delta` segments are in flight on that clock. If one of them is lost, no ACK may tell:
//! while data is reported out of order, or the oldest is older than SRTT + 4 RTTVAR, three more may
//! leave, one per gap.
//!
//! Where it fails: with C = 1, a path whose windows are below about 0.9 segments (0.5 to 0.8 with
//! jumbo frames) is marked permanently, since one ACK brings the increase of several round trips
//! and one decrease; C = 2^-7 avoids that but wastes capacity. `c=auto` scales the increase by the
//! fraction of unmarked data. With a classic ECN receiver (RFC 3168), which echoes a mark until it
//! receives CWR, alpha of the dctcp variant is too high and it halves.
//!
//! [`Revise::Retroactive`]: ackline_tcp_core::policy::cc::Revise::Retroactive

pub mod growth;
mod lag;
pub mod marking;
mod params;
pub mod prototype;
#[cfg(test)]
mod tests;

pub use params::{LsAimdParams, Scale};

use ackline_tcp_core::config::Ecn;
use ackline_tcp_core::policy::cc::{
    AckSample, CcInit, Clock, CongestionControl, CongestionEvent, DecreaseFrom, EcnUse, FlowView, Pacing,
    Phase, Reaction, Recovery, Restart, Revise, SendDecision, SentSegment, SsthreshRule, Undo,
};
use ackline_tcp_core::policy::spec::{Deployment, Entry, Keyed as _, ParamRow};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, Params, SpecError};
use ackline_tcp_core::{Duration, Instant, SeqNum, Window};
use alloc::boxed::Box;
use alloc::sync::Arc;
use growth::{C_ONE, Growth, Q9};
use lag::Lag;
use marking::{ALPHA_BITS, Marking, ONE};
use prototype::{ClockRtt, Clocked, Divisor, Reclock, ThesisRtt};

/// LS-AIMD with Reno's decrease.
pub(crate) const RENO: Entry<NewCongestionControl> = Entry {
    summary: "windows below one segment on a departure clock; a mark or a loss halves (with ECN)",
    source: "Ahmed 2019, chapters 6 and 7",
    keys: ParamRow::of::<LsAimdParams>,
    ecn: Ecn::Classic,
    ..Entry::new("ls-aimd-reno", |params| {
        let params = LsAimdParams::from_params(Variant::Reno.name(), params)?;
        Ok(Arc::new(move |init: &CcInit| Box::new(LsAimd::new(init, Variant::Reno, params))))
    })
};

/// LS-AIMD with DCTCP's decrease.
pub(crate) const DCTCP: Entry<NewCongestionControl> = Entry {
    summary: "windows below one segment on a departure clock; reduces by the share of marked data (ECN of kind dctcp)",
    source: "Ahmed 2019, chapters 6 and 7",
    keys: ParamRow::of::<LsAimdParams>,
    ecn: Ecn::Dctcp,
    deployment: Deployment::Controlled,
    ..Entry::new("ls-aimd-dctcp", |params| {
        let params = LsAimdParams::from_params(Variant::Dctcp.name(), params)?;
        Ok(Arc::new(move |init: &CcInit| Box::new(LsAimd::new(init, Variant::Dctcp, params))))
    })
};

/// No threshold yet.
const UNLIMITED: u64 = u64::MAX;
/// Segments beyond `delta` that may be in flight while an ACK is overdue, so that enough duplicates
/// come back to find a loss (section 6.5.1).
const MORE_OUTSTANDING: u16 = 3;
/// Largest window in Q9: 2^46 bytes, far above any usable window, so that products fit 128 bits.
const LARGEST: u64 = 1 << (46 + Q9);

/// How far a mark reduces the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// By half.
    Reno,
    /// By half of alpha.
    Dctcp,
}

impl Variant {
    const fn name(self) -> &'static str {
        match self {
            Self::Reno => "ls-aimd-reno",
            Self::Dctcp => "ls-aimd-dctcp",
        }
    }
}

/// State to restore if a congestion episode is undone.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    w: u64,
    ssthresh: u64,
    reduced_until: Option<SeqNum>,
}

/// The window of LS-AIMD.
#[derive(Clone, Debug)]
pub struct LsAimd {
    variant: Variant,
    params: LsAimdParams,
    decrease_from: DecreaseFrom,
    smss: u32,
    /// W in Q9 bytes, at least the floor.
    w: u64,
    /// S in Q9 bytes, at least the floor; [`UNLIMITED`] before the first reduction.
    ssthresh: u64,
    growth: Growth,
    /// C add(S) in Q9 bytes per round trip; computed when S or C changes.
    add: u64,
    /// Remainder of the last division by W: less than W was then.
    carry: u64,
    marking: Marking,
    /// SND.NXT at the last reduction: the next one must wait until more than this is acknowledged.
    reduced_until: Option<SeqNum>,
    /// W is below `delta` segments.
    submss: bool,
    /// Smoothed RTT without the receiver's delay, for the departure clock.
    srtt_pace: Option<Duration>,
    /// The same as the thesis approximates it; only with [`ClockRtt::Thesis`].
    thesis_rtt: Option<ThesisRtt>,
    /// W at the last departure, if the departure clock released it.
    w_departed: Option<u64>,
    lag: Lag,
    before: Checkpoint,
}

impl LsAimd {
    /// A flow that starts from `init`, on the ACK clock.
    #[must_use]
    pub fn new(init: &CcInit, variant: Variant, params: LsAimdParams) -> Self {
        let w = from_window(init.initial_window).max(floor(params));
        let ssthresh = if init.ssthresh == Window::MAX { UNLIMITED } else { from_window(init.ssthresh) };
        let mut flow = Self {
            variant,
            params,
            decrease_from: init.decrease_from,
            smss: init.smss.max(1),
            w,
            ssthresh,
            growth: curve(init.smss, params),
            add: 0,
            carry: 0,
            marking: Marking::new(ONE, params.gain),
            reduced_until: None,
            submss: false,
            srtt_pace: None,
            thesis_rtt: None,
            w_departed: None,
            lag: Lag::default(),
            before: Checkpoint { w, ssthresh, reduced_until: None },
        };
        flow.update_add();
        flow.update_mode();
        flow
    }

    /// W in Q9 bytes.
    #[must_use]
    pub const fn window_q9(&self) -> u64 {
        self.w
    }

    /// S in Q9 bytes; `u64::MAX` before the first reduction.
    #[must_use]
    pub const fn ssthresh_q9(&self) -> u64 {
        self.ssthresh
    }

    /// C add(S), in Q9 bytes per round trip.
    #[must_use]
    pub const fn add_q9(&self) -> u64 {
        self.add
    }

    /// True if the departure clock is in use: W is below `delta` segments.
    #[must_use]
    pub const fn is_submss(&self) -> bool {
        self.submss
    }

    /// The estimate of marked data.
    #[must_use]
    pub const fn marking(&self) -> &Marking {
        &self.marking
    }

    const fn segment(&self) -> u64 {
        (self.smss as u64) << Q9
    }

    /// Until the first reduction a round trip adds one segment.
    fn update_add(&mut self) {
        self.add = if self.ssthresh == UNLIMITED {
            self.segment()
        } else {
            self.growth.add(self.ssthresh, self.scale())
        };
    }

    fn scale(&self) -> u32 {
        self.params.c.at(self.marking.alpha())
    }

    /// Eq. 6.3 and 6.4 switch at `delta` segments: exactly that many are on the ACK clock.
    fn update_mode(&mut self) {
        let border = u64::from(self.params.delta) * self.segment();
        let hysteresis = if self.submss { 0 } else { u64::from(self.params.mode_hyst) << Q9 };
        self.submss = self.w < border.saturating_sub(hysteresis);
    }

    fn set_window(&mut self, w: u64) {
        self.w = w.clamp(floor(self.params), LARGEST);
        self.carry = 0;
    }

    /// Limits the window to `w`, which comes from outside and may be below the floor.
    fn limit_window(&mut self, w: u64) {
        (self.w, self.carry) = (self.w.min(w).max(1), 0);
    }

    fn set_ssthresh(&mut self, ssthresh: u64) {
        self.ssthresh = if ssthresh == UNLIMITED { UNLIMITED } else { ssthresh.max(floor(self.params)) };
        self.update_add();
    }

    /// S = `ssthresh`, W = S, and outstanding data causes no further reduction.
    fn reduce_to(&mut self, view: &FlowView, ssthresh: u64) {
        self.set_ssthresh(ssthresh);
        self.limit_window(self.ssthresh);
        self.reduced_until = Some(view.snd_nxt);
        self.update_mode();
    }

    /// The start of a reduction: W, or with [`DecreaseFrom::Flight`] what is in flight if the flow
    /// is ACK-clocked and application-limited.
    fn base(&self, view: &FlowView, flight: u32) -> u64 {
        let of_window = self.submss || view.cwnd_limited || self.decrease_from == DecreaseFrom::Window;
        if of_window { self.w } else { self.w.min(u64::from(flight) << Q9) }
    }

    /// The multiplicative decrease of a mark, from the window `base`.
    fn decreased(&self, base: u64) -> u64 {
        match self.variant {
            Variant::Reno => base / 2,
            Variant::Dctcp => {
                // Rounded half up, so that the reduction is unbiased.
                let cut = u128::from(base) * u128::from(self.marking.alpha()) + (1 << ALPHA_BITS);
                base - (cut >> (ALPHA_BITS + 1)) as u64
            }
        }
    }

    /// Reacts to the first mark of a round.
    fn on_mark(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        self.reduced_until.take_if(|until| view.snd_una.gt(*until));
        let marked = ack.ece || ack.ce > 0;
        if !marked || self.reduced_until.is_some() {
            return Reaction::None;
        }
        let base = self.base(view, view.flight_size.saturating_add(ack.acked));
        self.reduce_to(view, self.decreased(base));
        Reaction::Reduced
    }

    /// The RTT of the departure clock.
    fn take_rtt(&mut self, view: &FlowView, ack: &AckSample) {
        self.srtt_pace = match self.params.prototype.clock_rtt {
            ClockRtt::Newest => view.srtt_pace.or(self.srtt_pace),
            ClockRtt::Thesis => {
                if let Some(rtt) = ack.rtt_oldest {
                    let clocked = self.submss.then(|| Clocked {
                        w: self.w,
                        segment: self.segment(),
                        delta: self.params.delta as u16,
                    });
                    self.thesis_rtt = Some(ThesisRtt::on_ack(self.thesis_rtt, rtt, clocked));
                }
                self.thesis_rtt.map(ThesisRtt::get).or(self.srtt_pace)
            }
        };
    }

    /// Growth by `n` newly acknowledged bytes: `add` for each `by` of them, which is W in Q9.
    fn grow(&mut self, n: u32, by: u64) {
        let n = u64::from(n) << Q9;
        if self.w < self.ssthresh {
            // Below one segment at most a doubling per feedback round, and never a whole segment on
            // top of a fraction of one.
            let most = if self.submss {
                self.segment().min(self.w)
            } else {
                self.segment() * u64::from(self.params.abc)
            };
            self.set_window((self.w + n.min(most)).min(self.ssthresh));
            return;
        }
        let amount = u128::from(self.add) * u128::from(n) + u128::from(self.carry);
        let w = u128::from(by);
        // At most one segment for each acknowledged one.
        let growth = u64::try_from(amount / w).unwrap_or(u64::MAX).min(n);
        self.w = self.w.saturating_add(growth).min(LARGEST);
        self.carry = (amount % w) as u64;
    }
}

impl CongestionControl for LsAimd {
    fn name(&self) -> &'static str {
        self.variant.name()
    }

    fn decision(&self) -> SendDecision {
        let window = to_window(self.w);
        let mut decision = SendDecision::window(window, to_window(self.ssthresh));
        decision.ecn = EcnUse::PerAck;
        if self.submss
            && let Some(time) = self.srtt_pace
        {
            let extra = if self.lag.is_overdue() { MORE_OUTSTANDING } else { 0 };
            decision.clock = Clock::Departure { max_outstanding: self.params.delta as u16 + extra };
            let over = match self.params.prototype.reclock {
                Reclock::Rtt => self.w_departed.map_or(window, to_window),
                Reclock::Both | Reclock::Off => window,
            };
            decision.pacing = Pacing::Gap { time, over };
            decision.revise = match self.params.prototype.reclock {
                Reclock::Both | Reclock::Rtt => Revise::Retroactive,
                Reclock::Off => Revise::NextDeparture,
            };
            // The clock releases one segment per gap: recovery needs no other limit.
            decision.recovery = Recovery::Own;
        }
        decision
    }

    fn on_sent(&mut self, view: &FlowView, _sent: &SentSegment) {
        self.w_departed = self.submss.then_some(self.w);
        self.lag.on_event(view);
    }

    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        self.lag.on_event(view);
        self.take_rtt(view, ack);
        if self.marking.on_ack(view.snd_una, view.snd_nxt, ack.newly_delivered, ack.ce)
            && self.params.c == Scale::Auto
        {
            self.update_add();
        }
        let prior = self.w;
        let reaction = self.on_mark(view, ack);
        let may_raise = view.may_raise(to_window(self.w), to_window(self.ssthresh));
        if view.phase != Phase::Recovery && may_raise && ack.newly_delivered > 0 {
            let by = match self.params.prototype.divisor {
                Divisor::Reduced => self.w,
                Divisor::Prior => prior,
            };
            self.grow(ack.newly_delivered, by);
            self.update_mode();
        }
        reaction
    }

    fn on_congestion(&mut self, view: &FlowView, event: &CongestionEvent) {
        match *event {
            // One reduction per window of data, whatever the signals: lost data was sent after the
            // last one if everything before it is acknowledged.
            CongestionEvent::Loss { .. }
                if self.reduced_until.is_some_and(|until| view.snd_una.lt(until)) => {}
            CongestionEvent::Loss { prior_pipe } => {
                // Loss is a classic signal: both variants halve.
                self.reduce_to(view, self.base(view, prior_pipe) / 2);
            }
            CongestionEvent::Timeout { flight_size, first, window, ssthresh } => {
                match ssthresh {
                    SsthreshRule::Keep => {}
                    SsthreshRule::To(value) => self.set_ssthresh(from_window(value)),
                    SsthreshRule::ByCc if first => {
                        self.set_ssthresh(self.base(view, flight_size) / 2);
                    }
                    SsthreshRule::ByCc => {}
                }
                // The usual loss window of one segment must not raise a smaller window.
                let own = self.segment().min(self.ssthresh).min(self.w);
                self.limit_window(own.min(from_window(window)));
                self.reduced_until = Some(view.snd_nxt);
                self.update_mode();
            }
            CongestionEvent::Ecn => {}
            _ => {}
        }
    }

    fn on_restart(&mut self, _view: &FlowView, restart: &Restart) {
        self.limit_window(from_window(restart.window));
        self.update_mode();
    }

    fn on_smss_change(&mut self, view: &FlowView, _old: u32) {
        self.smss = view.smss.max(1);
        self.growth = curve(self.smss, self.params);
        self.update_add();
        self.update_mode();
    }

    fn checkpoint(&mut self, _view: &FlowView) {
        self.before = Checkpoint { w: self.w, ssthresh: self.ssthresh, reduced_until: self.reduced_until };
    }

    fn undo(&mut self, _view: &FlowView, undo: &Undo) {
        let (w, ssthresh) = match *undo {
            Undo::All => (self.before.w, self.before.ssthresh),
            Undo::To { window, ssthresh } => (from_window(window), from_ssthresh(ssthresh)),
        };
        self.set_window(self.w.max(w));
        self.set_ssthresh(self.ssthresh.max(ssthresh));
        self.reduced_until = self.before.reduced_until;
        self.update_mode();
    }

    fn next_timeout(&self) -> Option<Instant> {
        if self.submss { self.lag.next_timeout() } else { None }
    }

    fn on_timeout(&mut self, view: &FlowView) {
        self.lag.on_event(view);
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        let bytes = |q9: u64| q9 as f64 / f64::from(1_u32 << Q9);
        report.bytes("cwnd", bytes(self.w));
        report.bytes("ssthresh", bytes(self.ssthresh));
        report.bytes("add", bytes(self.add));
        report.number("alpha", self.marking.alpha() as f64 / ONE as f64);
        report.number("c", f64::from(self.scale()) / f64::from(C_ONE));
        if let Some(srtt) = self.srtt_pace {
            report.micros("srtt_pace_us", srtt);
        }
        report.flag("submss", self.submss);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let mut changed = self.params;
        changed.set(self.name(), params)?;
        if changed.gain != self.params.gain {
            return Err(SpecError::new("g is fixed for the life of a connection"));
        }
        self.params = changed;
        self.growth = curve(self.smss, changed);
        self.set_ssthresh(self.ssthresh);
        self.update_mode();
        Ok(())
    }
}

fn curve(smss: u32, params: LsAimdParams) -> Growth {
    if params.scale_free {
        Growth::scale_free(smss, params.precision)
    } else {
        Growth::powers_of_two(smss, params.precision)
    }
}

/// The smallest window in Q9.
const fn floor(params: LsAimdParams) -> u64 {
    (params.floor as u64) << Q9
}

fn from_window(window: Window) -> u64 {
    (window.raw() >> (Window::FRACTION_BITS - Q9)).min(LARGEST)
}

fn from_ssthresh(ssthresh: Window) -> u64 {
    if ssthresh == Window::MAX { UNLIMITED } else { from_window(ssthresh) }
}

fn to_window(q9: u64) -> Window {
    if q9 == UNLIMITED { Window::MAX } else { Window::from_raw(q9 << (Window::FRACTION_BITS - Q9)) }
}
