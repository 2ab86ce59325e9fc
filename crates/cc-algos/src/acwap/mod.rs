//! ACWAP (F. Su, X. Pan, J. Wang, Z. Wan, "An algorithm for reducing loss rate of high-speed TCP",
//! 2006): wraps a control that fills the queue; holds its growth back when the queue is nearly
//! full, and paces.
//!
//! A window that grows by dozens of segments per round trip loses as many when the queue overflows.
//! While the RTT is in the upper 1 - beta of its known range, the queue is nearly full: there the
//! window grows by one segment per round trip, like Reno's, and a congestion event costs one or two
//! packets. Pacing avoids what bursts would add to the queue.
//!
//! | step | rule | where |
//! |---|---|---|
//! | W1 | r_c, the control's own smoothed RTT, from every sample | `range` |
//! | W2 | on an ACK in congestion avoidance: interval, rtt_min, rtt_max, Eq. (3), growth | `Acwap::on_ack`, `aimd` |
//! | W3 | slow start also lowers rtt_min; rtt_max rises in congestion avoidance only | `range` |
//! | W4 | no conclusion from a range that is noise | `Acwap::least_range` |
//! | W5 | congestion: numofcon, r_c := rtt_min | `range` |
//! | W6 | beta = 1 still holds growth back at the maximum; `clamp=off` does not | [`AcwapParams`] |
//! | W7 | Eq. (3) is evaluated on every ACK: no hysteresis | `Acwap::on_ack` |
//! | W8 | the range is the connection's; `windowed` lets it forget | `windowed` |
//! | P1 to P6 | pacing | `pacing` |
//!
//! The steps W3, W4 and the condition in W5 are not in the paper. Without them a loss in the first
//! slow start copies the initial rtt_min, which is not an RTT, into rtt_max, and Eq. (3) never
//! holds again. `literal=on` does that.
//!
//! Where it fails: one outlier among the RTTs raises rtt_max for good, and growth is held back too
//! late or never; next to flows that fill the queue blindly it gets less than its share.

mod inner;
mod pacing;
mod params;
mod range;
#[cfg(test)]
mod tests;

pub use params::{AcwapParams, Inner, PacingMode};

use crate::aimd::{AckSummary, Aimd, Avoidance, Control, Growth, Reduction, Stage};
use crate::hstcp::Hstcp;
use crate::scalable::Scalable;
use ackline_tcp_core::policy::cc::{CcInit, Pacing, Revise};
use ackline_tcp_core::policy::spec::{Entry, Keyed, ParamRow};
use ackline_tcp_core::policy::window::{self, Windows};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, Params, SpecError};
use ackline_tcp_core::{Duration, Instant};
use alloc::format;
use alloc::sync::Arc;
use inner::Wrapped;
use pacing::Pace;
use range::RttRange;

const NAME: &str = "acwap";

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    summary: "grows slowly while the RTT says that the queue is nearly full, and paces",
    source: "Su, Pan, Wang, Wan 2006",
    keys: ParamRow::of::<AcwapParams>,
    ..Entry::new(NAME, |params| {
        let params = AcwapParams::from_params(NAME, params)?;
        match params.inner {
            Inner::Hstcp => make::<Hstcp>(params),
            Inner::Scalable => make::<Scalable>(params),
            Inner::Reno => make::<inner::Reno>(params),
            Inner::Cubic => make::<inner::Cubic>(params),
        }
    })
};

fn make<C: Wrapped>(params: AcwapParams) -> Result<Arc<NewCongestionControl>, SpecError> {
    let mut inner = C::default();
    inner.adopt(&params);
    window::make(Aimd::new(Acwap::new(params, inner)), &Params::default())
}

/// The growth of `C`, held back near a full queue.
#[derive(Clone, Debug)]
pub(crate) struct Acwap<C> {
    inner: C,
    params: AcwapParams,
    range: RttRange,
    pace: Pace,
    /// Granularity of the driver's clock.
    granularity: Duration,
    /// Position of r_c in the upper part of the range, 0 to 1; `None` below it.
    upper: Option<f64>,
    /// The last a that was used, and the bytes of a segment. For [`Growth::metrics`].
    a: f64,
    smss: u32,
}

impl<C: Wrapped> Acwap<C> {
    fn new(params: AcwapParams, inner: C) -> Self {
        let range = RttRange::new(params.literal, params.windowed);
        let pace = Pace::default();
        Self { inner, params, range, pace, granularity: Duration::ZERO, upper: None, a: 0.0, smss: 0 }
    }

    /// W4: the smallest meaningful width of the range: four ticks of the clock, two packets' times.
    fn least_range(&self, segments: f64) -> Duration {
        let r_c = self.range.smoothed().unwrap_or(Duration::ZERO).as_nanos() as f64;
        let packet = Duration::from_nanos((r_c / segments) as u64);
        self.granularity.saturating_mul(4).max(packet.saturating_mul(2))
    }
}

impl<C: Wrapped> Growth for Acwap<C> {
    fn start(&mut self, init: &CcInit) {
        self.inner.start(init);
        *self = Self::new(self.params, self.inner.clone());
        self.granularity = init.granularity;
        self.smss = init.smss;
    }

    fn increase(&mut self, at: &Avoidance) -> f64 {
        let a = self.inner.increase(at);
        self.a = match self.upper {
            Some(share) if self.params.taper => a.min(1.0 + (a - 1.0) * (1.0 - share)),
            // A control that grows by less on its own (CUBIC on its plateau) is not pushed.
            Some(_) => a.min(1.0),
            None => a,
        };
        self.a
    }

    fn decrease(&self, segments: f64) -> f64 {
        self.inner.decrease(segments)
    }

    /// W1 to W4, W7 and P2.
    fn on_ack(&mut self, seen: &AckSummary) {
        self.inner.on_ack(seen);
        self.smss = seen.windows.smss();
        if let Some(rtt) = seen.rtt {
            self.range.on_sample(rtt, seen.longest_paced_rtt);
        }
        self.pace.set(&self.params, seen.stage, self.range.smoothed(), seen.windows.cwnd());
        match seen.stage {
            Stage::Avoidance => {
                self.range.on_avoidance(seen.now);
                self.upper = if self.params.clamp {
                    let least = self.least_range(seen.windows.segments());
                    self.range.upper_part(self.params.beta, least)
                } else {
                    None
                };
            }
            Stage::FirstSlowStart | Stage::SlowStart => self.range.on_slow_start(seen.now),
            Stage::Other => {}
        }
    }

    /// W5.
    fn on_congestion(&mut self, seen: &Reduction) {
        self.inner.on_congestion(seen);
        self.range.on_congestion();
        self.upper = None;
        let stage = if seen.timeout { Stage::SlowStart } else { Stage::Other };
        self.pace.set(&self.params, stage, self.range.smoothed(), seen.after.cwnd());
    }

    fn on_unused(&mut self, now: Instant) {
        self.inner.on_unused(now);
    }

    fn on_jump(&mut self, w: &Windows) {
        self.inner.on_jump(w);
        self.pace.on_jump(w.cwnd());
    }

    fn undo(&mut self, before: &Self) {
        self.inner.undo(&before.inner);
        self.range.take_back(&before.range);
    }

    fn pacing(&self) -> (Pacing, Revise) {
        self.pace.decision(self.params.pacing)
    }

    fn metrics(&self, _w: &Windows, report: &mut Metrics<'_>) {
        report.number("a", self.a);
        report.flag("clamped", self.upper.is_some());
        report.number("numofcon", self.range.events());
        report.micros("r_c_us", self.range.smoothed().unwrap_or(Duration::ZERO));
        report.micros("rtt_min_us", self.range.min().unwrap_or(Duration::ZERO));
        report.micros("rtt_max_us", self.range.max());
        report.micros("interval_us", self.pace.interval(self.smss).unwrap_or(Duration::ZERO));
    }
}

impl<C: Wrapped> Control for Acwap<C> {
    const NAME: &'static str = NAME;
    type Params = AcwapParams;

    fn params(&self) -> &AcwapParams {
        &self.params
    }

    fn adopt(&mut self, params: AcwapParams) -> Result<(), SpecError> {
        let inner = self.params.inner;
        if params.inner != inner {
            let name = inner.name();
            return Err(SpecError::new(format!(
                "acwap: inner is fixed for the life of a connection ({name})"
            )));
        }
        self.params = params;
        self.range.set_windowed(params.windowed);
        self.inner.adopt(&params);
        Ok(())
    }
}
