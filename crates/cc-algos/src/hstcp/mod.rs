//! HSTCP (RFC 3649): Reno up to 38 segments; beyond that, the larger the window, the more it grows
//! per round trip and the less of it a loss costs, so that a window of 83,000 segments needs a loss
//! rate of 10^-7 instead of 2 * 10^-10.
//!
//! In addition to the table and the formulas of the RFC: slow start and recovery as for Reno. The
//! steps are numbered:
//!
//! | step | rule | where |
//! |---|---|---|
//! | H1 | b(w) | [`decrease`] |
//! | H2 | p(w) | [`AwMode`] |
//! | H3 | a(w) | [`increase`] |
//! | H4 | response function | [`response`] |
//! | H5 | which a(w) | [`AwMode`] |
//! | H6 | w += a(w) / w per segment acknowledged | `aimd` |
//! | H7 | loss or mark: w (1 - b(w)) | `aimd` |
//! | H8 | timeout | `aimd` |
//! | H9 | slow start, limited (RFC 3742); with HyStart++ if asked for (RFC 9406) | `aimd`, [`limited_step`] |
//!
//! Where it fails: an overflow of a drop-tail queue costs about a(w) packets at once, spread over
//! the round trip, which also hits other flows: they lose together, and those with long round trips
//! starve.

mod params;
mod response;
mod table;
#[cfg(test)]
mod tests;

pub use crate::aimd::limited_step;
pub use params::{AwMode, HstcpParams};
pub(crate) use params::{aw, low_p};
pub use response::{HIGH_P, HIGH_WINDOW, LOW_WINDOW, decrease, increase, response};

use crate::aimd::{Aimd, Avoidance, Control, Growth};
use ackline_tcp_core::policy::spec::{Entry, ParamRow};
use ackline_tcp_core::policy::window::Windows;
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, SpecError};

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    aliases: &["highspeed"],
    source: "RFC 3649, RFC 3742",
    keys: ParamRow::of::<HstcpParams>,
    ..Entry::growth::<Aimd<Hstcp>>("grows faster and gives up less the larger the window is")
};

/// a(w) and b(w) of HSTCP. a(w) is computed for the whole segments of w, when their number changes.
#[derive(Clone, Debug)]
pub(crate) struct Hstcp {
    params: HstcpParams,
    /// Whole segments, and their a(w).
    known: (u64, f64),
}

impl Hstcp {
    pub(crate) const fn new(params: HstcpParams) -> Self {
        Self { params, known: (0, 1.0) }
    }
}

impl Default for Hstcp {
    fn default() -> Self {
        Self::new(HstcpParams::default())
    }
}

impl Growth for Hstcp {
    fn increase(&mut self, at: &Avoidance) -> f64 {
        let whole = at.segments() as u64;
        if whole != self.known.0 {
            self.known = (whole, increase(self.params.aw, self.params.low_p, whole as f64));
        }
        self.known.1
    }

    fn decrease(&self, segments: f64) -> f64 {
        decrease(segments)
    }

    fn undo(&mut self, _before: &Self) {}

    fn metrics(&self, _w: &Windows, report: &mut Metrics<'_>) {
        report.number("a", self.known.1);
        report.number("b", decrease(self.known.0 as f64));
    }
}

impl Control for Hstcp {
    const NAME: &'static str = "hstcp";
    type Params = HstcpParams;

    fn params(&self) -> &HstcpParams {
        &self.params
    }

    fn adopt(&mut self, params: HstcpParams) -> Result<(), SpecError> {
        *self = Self::new(params);
        Ok(())
    }
}
