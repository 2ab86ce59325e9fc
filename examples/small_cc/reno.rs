//! Reno (RFC 5681): a segment more per round trip, half after a loss.

use ackline::core::policy::NewCongestionControl;
use ackline::core::policy::spec::Entry;
use ackline::core::policy::window::{DecreaseCx, GrowthCx, WindowGrowth, Windows};

#[derive(Clone, Debug, Default)]
struct Reno;

impl WindowGrowth for Reno {
    const NAME: &'static str = "small-reno";

    /// Equation 3.
    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        w.grow(f64::from(w.smss()) * f64::from(cx.acked) / w.bytes());
    }

    /// Equation 4.
    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        w.reduce_to(cx.base(w) / 2.0);
    }
}

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    source: "RFC 5681",
    ..Entry::growth::<Reno>("adds a segment per round trip, halves after a loss")
};
