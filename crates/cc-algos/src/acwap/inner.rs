//! Controls that ACWAP can wrap: HSTCP and Scalable TCP, and Reno and CUBIC as a(w) and b(w).

use super::AcwapParams;
use crate::CubicParams;
use crate::aimd::{Avoidance, Growth, Reduction};
use crate::cubic::{Epoch, Step};
use crate::hstcp::Hstcp;
use crate::scalable::Scalable;
use ackline_tcp_core::Instant;
use ackline_tcp_core::policy::window::Windows;
use ackline_tcp_core::policy::{Metrics, Unit};

/// A control that can be wrapped.
pub(crate) trait Wrapped: Growth + Default + Sync + 'static {
    /// The parameters of ACWAP are `params`.
    fn adopt(&mut self, params: &AcwapParams) {
        let _ = params;
    }
}

impl Wrapped for Hstcp {
    fn adopt(&mut self, params: &AcwapParams) {
        *self = Self::new(params.hstcp);
    }
}

impl Wrapped for Scalable {}

impl Wrapped for Reno {}

impl Wrapped for Cubic {}

/// Reno: a(w) = 1, b(w) = 1/2 (RFC 5681).
#[derive(Clone, Debug, Default)]
pub(super) struct Reno;

impl Growth for Reno {
    fn increase(&mut self, _at: &Avoidance) -> f64 {
        1.0
    }

    fn decrease(&self, _segments: f64) -> f64 {
        0.5
    }

    fn undo(&mut self, _before: &Self) {}
}

/// CUBIC (RFC 9438) with its usual parameters: a(w) is what the curve, or the parallel Reno window,
/// adds in a round trip. Time continues while growth is held back, so the curve resumes where it
/// would have been.
#[derive(Clone, Debug, Default)]
pub(super) struct Cubic {
    params: CubicParams,
    epoch: Option<Epoch>,
    /// Bytes before the last reduction, less the share released by fast convergence.
    w_max: Option<f64>,
    /// Bytes when `ssthresh` was last set.
    cwnd_prior: f64,
}

impl Growth for Cubic {
    fn increase(&mut self, at: &Avoidance) -> f64 {
        let params = self.params;
        let w_max = self.w_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(at.now, at.cwnd, w_max, at.smss, &params));
        self.w_max = Some(epoch.w_max());
        let step = Step {
            now: at.now,
            cwnd: at.cwnd,
            acked: at.acked,
            smss: at.smss,
            rtt: at.rtt,
            cwnd_prior: self.cwnd_prior,
        };
        let grown = epoch.grow(&step, &params) - at.cwnd;
        grown.max(0.0) / at.smss * (at.cwnd / at.acked)
    }

    fn decrease(&self, _segments: f64) -> f64 {
        1.0 - self.params.beta
    }

    fn on_congestion(&mut self, seen: &Reduction) {
        let before = seen.before.bytes();
        self.cwnd_prior = before;
        self.epoch = None;
        // RFC 9438, sections 4.7 and 4.8.
        self.w_max = match self.w_max {
            _ if seen.timeout => None,
            Some(w_max) if before < w_max => Some(before * (1.0 + self.params.beta) / 2.0),
            _ => Some(before),
        };
    }

    fn on_unused(&mut self, now: Instant) {
        if let Some(epoch) = &mut self.epoch {
            epoch.skip_to(now);
        }
    }

    fn on_jump(&mut self, _w: &Windows) {
        self.epoch = None;
    }

    fn undo(&mut self, before: &Self) {
        self.clone_from(before);
    }

    fn metrics(&self, _w: &Windows, report: &mut Metrics<'_>) {
        report.bytes("w_max", self.w_max.unwrap_or(0.0));
        report.report("k_ms", self.epoch.map_or(0.0, |epoch| epoch.k() * 1e3), Unit::Millis);
    }
}
