//! NewReno's window (RFC 5681 section 3.1, RFC 6582 section 3.2, appropriate byte counting of RFC
//! 3465).
//!
//! ```text
//!   cwnd < ssthresh:  cwnd += min(acked, 2 SMSS)          slow start
//!   otherwise:        cwnd += SMSS per cwnd bytes acked   congestion avoidance
//!   loss:             ssthresh = max(cwnd / 2, 2 SMSS), cwnd = ssthresh
//! ```

use crate::policy::cc::CcInit;
use crate::policy::window::{DecreaseCx, GrowthCx, MovedBy, WindowControl, WindowGrowth, Windows};
use crate::units::Window;

/// NewReno's growth of the window.
#[derive(Clone, Debug, Default)]
pub struct NewReno {
    /// Bytes acknowledged towards the next segment of growth in congestion avoidance.
    acked: u64,
}

impl NewReno {
    /// A new flow with the given initial state.
    #[must_use]
    pub fn new(init: &CcInit) -> WindowControl<Self> {
        WindowControl::new(init, Self::default())
    }

    /// Lowers `w` to `window`, but not below two segments: for algorithms that only differ from
    /// NewReno in how far they reduce.
    pub fn reduce_to(&mut self, window: Window, w: &mut Windows) {
        w.reduce_to(window.as_f64());
        self.acked = 0;
    }
}

impl WindowGrowth for NewReno {
    const NAME: &'static str = "reno";

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        self.acked += u64::from(cx.acked);
        let window = w.cwnd().bytes().max(1);
        if self.acked >= window {
            self.acked -= window;
            w.grow(f64::from(w.smss()));
        }
    }

    /// RFC 5681, equation 4, with the window or the flight.
    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        let base = if cx.is_from_window() { w.cwnd().bytes() } else { u64::from(cx.pipe) };
        self.reduce_to(Window::from_bytes(base / 2), w);
    }

    fn moved(&mut self, by: MovedBy, _before: &Windows, _w: &Windows) {
        if matches!(by, MovedBy::Timeout { .. }) {
            self.acked = 0;
        }
    }

    /// What was acknowledged in the meantime still counts.
    fn undo(&mut self, _before: &Self) {}

    /// RFC 5681, section 4.1: a restart only changes the window.
    fn ssthresh_after_idle(&self, w: &Windows) -> Window {
        w.ssthresh()
    }
}
