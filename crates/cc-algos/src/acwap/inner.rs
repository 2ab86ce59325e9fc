//! Controls that ACWAP can wrap besides HSTCP and Scalable TCP: Reno and CUBIC as a(w) and b(w).

use crate::CubicParams;
use crate::aimd::{Avoidance, Growth, Reduction};
use crate::cubic::{Epoch, Step};
use ackline_tcp_core::Instant;
use ackline_tcp_core::policy::spec::{Param, ParamInfo};
use ackline_tcp_core::policy::window::Windows;
use ackline_tcp_core::policy::{Metrics, SpecError, Unit};

/// Reno: a(w) = 1, b(w) = 1/2 (RFC 5681).
#[derive(Clone, Debug)]
pub(super) struct Reno;

impl Growth for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn increase(&mut self, _at: &Avoidance) -> f64 {
        1.0
    }

    fn decrease(&self, _segments: f64) -> f64 {
        0.5
    }

    fn undo(&mut self, _before: &Self) {}

    fn set(&mut self, _param: &Param<'_>) -> Result<Option<()>, SpecError> {
        Ok(None)
    }

    fn table(&self) -> &'static [ParamInfo] {
        &[]
    }
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
    fn name(&self) -> &'static str {
        "cubic"
    }

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

    fn set(&mut self, _param: &Param<'_>) -> Result<Option<()>, SpecError> {
        Ok(None)
    }

    fn table(&self) -> &'static [ParamInfo] {
        &[]
    }
}
