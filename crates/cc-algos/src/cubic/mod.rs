//! CUBIC (RFC 9438): the window is a cubic function of the time since the last reduction, flat
//! around the window at which the loss came, so that growth depends little on the RTT.
//!
//! ```text
//!   cwnd < ssthresh:   slow start, in the first one with HyStart++, or with Linux's HyStart
//!   otherwise:         the larger of W_cubic (curve over time) and W_est (what Reno would have)
//!   loss or ECN:       W_max = cwnd, ssthresh = beta * flight, cwnd = ssthresh
//!   timeout:           the same ssthresh, cwnd as the RTO response proposes, W_max void
//! ```
//!
//! Where it fails: it needs a loss (or CE) per epoch, so deep buffers are filled; with very short
//! RTTs it is Reno ([section 4.3](https://www.rfc-editor.org/rfc/rfc9438#section-4.3)).
//!
//! Deviations from the RFC: a reduction starts from the window if the window limits the flow,
//! otherwise from the flight size. (An ACK that covers many segments leaves a small flight until
//! the window is filled again, and what limited transmit adds does not count: RFC 5681, section
//! 3.2.) A reduction never raises a window that a restart cut. Growth per ACK is scaled by the
//! bytes that it acknowledges.

mod curve;
mod params;
#[cfg(test)]
mod tests;

pub use params::{BETA_ECN, CubicParams, SlowStartExit};

use crate::hystart::linux::LinuxHyStart;
use crate::hystart::{self, Growth, HyStart};
use ackline_tcp_core::policy::cc::{CcInit, Pacing, Phase, Revise, Undo};
use ackline_tcp_core::policy::spec::{Entry, Keyed as _, ParamRow};
use ackline_tcp_core::policy::window::{
    self, DecreaseCx, GrowthCx, MovedBy, Signal, WindowControl, WindowGrowth, Windows,
};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, Params, SpecError, Unit};
use ackline_tcp_core::{Duration, Instant, Window};
use alloc::sync::Arc;
pub(crate) use curve::{Epoch, Step};

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    summary: "the window follows a cubic curve of time around the last loss",
    source: "RFC 9438, RFC 9406, RFC 8511",
    keys: ParamRow::of::<CubicParams>,
    ..Entry::new("cubic", |params| window::make(Cubic::with(CubicParams::default()), params))
};

/// The growth of CUBIC's window.
#[derive(Clone, Debug, PartialEq)]
pub struct Cubic {
    /// Shared by all connections until they differ.
    params: Arc<CubicParams>,
    /// Window in bytes at which `ssthresh` was last set: `cwnd_prior` of the RFC.
    cwnd_prior: f64,
    /// Window in bytes before the last reduction, less the share released by fast convergence. 0
    /// before one, and after a timeout.
    w_max: f64,
    memory: Memory,
}

/// What growth remembers: HyStart++ is only for the first slow start, and the curve for what
/// follows it.
#[derive(Clone, Debug, PartialEq)]
enum Memory {
    /// Before a stage of congestion avoidance.
    Start(HyStart),
    /// The same, with Linux's HyStart.
    LinuxStart(LinuxHyStart),
    /// The current stage of congestion avoidance.
    Stage(Epoch),
}

impl Memory {
    /// The stage of congestion avoidance is over.
    fn end_stage(&mut self) {
        if let Self::Stage(_) = self {
            *self = Self::default();
        }
    }

    /// True in conservative slow start.
    const fn is_conservative(&self) -> bool {
        matches!(self, Self::Start(hystart) if hystart.is_conservative())
    }

    const fn epoch(&self) -> Option<&Epoch> {
        match self {
            Self::Start(_) | Self::LinuxStart(_) => None,
            Self::Stage(epoch) => Some(epoch),
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::Start(HyStart::default())
    }
}

impl Cubic {
    /// A flow that starts from `init`.
    #[must_use]
    pub fn new(init: &CcInit, params: CubicParams) -> WindowControl<Self> {
        WindowControl::new(init, Self::with(params))
    }

    fn with(params: CubicParams) -> Self {
        Self { params: Arc::new(params), cwnd_prior: 0.0, w_max: 0.0, memory: Memory::default() }
    }

    /// The current parameters.
    #[must_use]
    pub fn params(&self) -> &CubicParams {
        &self.params
    }

    /// The stage of congestion avoidance, which starts on the first ACK in it, and its parameters.
    fn epoch(&mut self, now: Instant, w: &Windows) -> (&mut Epoch, &CubicParams) {
        let Self { params, w_max, memory, .. } = self;
        // Twice on that first ACK.
        loop {
            match memory {
                Memory::Stage(epoch) => {
                    *w_max = epoch.w_max();
                    return (epoch, params);
                }
                Memory::Start(_) | Memory::LinuxStart(_) => {
                    let epoch = Epoch::new(now, w.bytes(), Some(*w_max), f64::from(w.smss()), params);
                    *memory = Memory::Stage(epoch);
                }
            }
        }
    }
}

impl WindowGrowth for Cubic {
    const NAME: &'static str = "cubic";

    fn start(&mut self, init: &CcInit) {
        self.cwnd_prior = init.initial_window.as_f64();
    }

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        let step = Step {
            now: cx.view.now,
            cwnd: w.bytes(),
            acked: f64::from(cx.acked),
            smss: f64::from(w.smss()),
            rtt: cx.view.srtt.unwrap_or(Duration::ZERO),
            cwnd_prior: self.cwnd_prior,
        };
        let (epoch, params) = self.epoch(cx.view.now, w);
        w.raise(Window::from_f64(epoch.grow(&step, params)));
    }

    /// RFC 9438, sections 4.6 and 4.7.
    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        // RFC 8511, section 3.1: the smaller reduction is for marks in congestion avoidance.
        let abe = cx.signal == Signal::Ecn && self.params.abe && !w.in_slow_start();
        let beta = if abe { self.params.beta.max(BETA_ECN) } else { self.params.beta };
        let cwnd = w.bytes();
        let gives_up = self.params.fast_convergence && cwnd < self.w_max;
        self.w_max = if gives_up { cwnd * (1.0 + beta) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.memory.end_stage();
        let reduced = cx.base(w) * beta;
        w.reduce_to(reduced);
        if cx.signal == Signal::Ecn {
            // RFC 9438, section 4.6: after ECE the window may fall to one segment, ssthresh to two.
            w.limit(Window::from_f64(reduced.max(self.params.ecn_floor * f64::from(w.smss()))));
        }
    }

    fn slow_start(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) -> u32 {
        let rest = match (self.params.hystart, &mut self.memory) {
            (SlowStartExit::HyStartPlusPlus, Memory::Start(hystart)) if hystart::is_first(w) => {
                Some(hystart.slow_start(cx, w, 1.0, self.params.pacing))
            }
            (SlowStartExit::Linux, memory @ Memory::Start(_)) => {
                *memory = Memory::LinuxStart(LinuxHyStart::default());
                return self.slow_start(cx, w);
            }
            (SlowStartExit::Linux, Memory::LinuxStart(hystart)) => {
                let over = hystart.is_over(cx.view, cx.ack.rtt, w, self.params.pacing);
                let growth = if over { Growth::Exit } else { Growth::Full };
                // Linux counts what this ACK delivers (`tcp_cong_avoid`): not what SACK has
                // reported before.
                let mut delivered = *cx;
                delivered.acked = cx.acked.min(cx.ack.newly_delivered);
                Some(growth.apply(&delivered, w, 1.0, self.params.pacing))
            }
            _ => None,
        };
        if let Some(rest) = rest {
            if !w.in_slow_start() {
                self.cwnd_prior = w.bytes();
            }
            return rest;
        }
        // RFC 3465, section 2.3.
        let used = f64::from(cx.at_most(if cx.view.phase == Phase::Loss { 1 } else { 2 }));
        w.open(used) as u32
    }

    /// RFC 9438, section 5.8: time in which the application limited the flow does not count for the
    /// curve.
    fn unused(&mut self, cx: &GrowthCx<'_>, w: &Windows) {
        self.epoch(cx.view.now, w).0.skip_to(cx.view.now);
    }

    /// RFC 9438, section 5.8: nor does idle time.
    fn idle(&mut self, now: Instant) {
        if let Memory::Stage(epoch) = &mut self.memory {
            epoch.skip_to(now);
        }
    }

    fn moved(&mut self, by: MovedBy, _before: &Windows, _w: &Windows) {
        match by {
            // RFC 9438, section 4.8: the next stage starts at its own plateau.
            MovedBy::Timeout { .. } => {
                self.w_max = 0.0;
                self.memory.end_stage();
            }
            MovedBy::Restart => self.memory = Memory::default(),
            // RFC 9438, section 4.9: everything is restored.
            MovedBy::Undo(Undo::All) => {}
            // The restored curve passes through another window, and the curve is one of segments
            // over time.
            MovedBy::Undo(Undo::To { .. }) | MovedBy::SegmentSize => self.memory.end_stage(),
        }
    }

    fn pacing(&self, w: &Windows) -> (Pacing, Revise) {
        if !self.params.pacing {
            return (Pacing::Unpaced, Revise::NextDeparture);
        }
        let gain = if w.cwnd() < w.ssthresh().mul_ratio(1, 2) { 512 } else { 307 };
        // Make up for late timers: with short gaps they would otherwise determine the rate.
        (Pacing::WindowOverRtt { gain }, Revise::Banked)
    }

    fn metrics(&self, w: &Windows, report: &mut Metrics<'_>) {
        let epoch = self.memory.epoch();
        report.bytes("w_max", self.w_max);
        report.bytes("w_est", epoch.map_or(0.0, Epoch::w_est));
        report.report("k_ms", epoch.map_or(0.0, |epoch| epoch.k() * 1e3), Unit::Millis);
        report.flag("css", w.in_slow_start() && self.memory.is_conservative());
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let changes = params;
        let mut params = *self.params;
        params.set(Self::NAME, changes)?;
        if params.c != self.params.c {
            self.memory.end_stage();
        }
        if params != *self.params {
            self.params = Arc::new(params);
        }
        Ok(())
    }
}
