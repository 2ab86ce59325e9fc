//! Default and competitive mode (section 2.2): a queue that never empties is one that somebody else
//! fills.
//!
//! Flows that all run Copa empty their queue once in five round trips (section 3). If it was not
//! nearly empty for so long, somebody fills it, and delta follows the window of such a flow: 1/delta
//! grows by one per round trip and is halved by a loss, as NewReno's window.

use super::CopaParams;
use super::delays::Rtts;
use ackline_tcp_core::{Duration, Instant};

/// Round trips within which a queue empties that only Copa uses.
const ROUNDS: u64 = 5;

/// Which mode, and since when the queue has not been empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mode {
    /// When the queue was last nearly empty, or unknown.
    empty: Instant,
    /// 1/delta in competitive mode; `None` in default mode.
    competes: Option<f64>,
    /// The present window of data has lost something.
    lost: bool,
}

impl Mode {
    pub(super) const fn new(now: Instant) -> Self {
        Self { empty: now, competes: None, lost: false }
    }

    pub(super) const fn is_competitive(&self) -> bool {
        self.competes.is_some()
    }

    /// 1/delta. Delta is never more than that of default mode.
    pub(super) fn inverse_delta(&self, params: &CopaParams) -> f64 {
        let least = 1.0 / params.delta;
        self.competes.map_or(least, |inverse| inverse.max(least))
    }

    /// Nothing is known of the queue: the flow was idle, or looks for its rate.
    pub(super) const fn forget(&mut self, now: Instant) {
        self.empty = now;
    }

    pub(super) fn on_ack(&mut self, now: Instant, rtts: &Rtts, srtt: Duration, params: &CopaParams) {
        if rtts.is_nearly_empty(params.nearly_empty) {
            self.empty = now;
        }
        let filled = now.since(self.empty) > srtt.saturating_mul(ROUNDS);
        if !filled || !params.competitive {
            self.competes = None;
        } else if self.competes.is_none() {
            self.competes = Some(1.0 / params.delta);
        }
    }

    /// A window of data has ended.
    pub(super) fn on_window(&mut self) {
        let lost = core::mem::take(&mut self.lost);
        if let Some(inverse) = &mut self.competes
            && !lost
        {
            *inverse += 1.0;
        }
    }

    /// Data was lost or marked.
    pub(super) fn on_loss(&mut self, params: &CopaParams) {
        self.lost = true;
        if let Some(inverse) = &mut self.competes {
            *inverse = (*inverse / 2.0).max(1.0 / params.delta);
        }
    }
}
