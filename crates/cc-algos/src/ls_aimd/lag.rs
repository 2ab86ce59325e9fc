//! Whether an ACK is overdue: data has been reported out of order, or the oldest segment is older
//! than a round trip and its usual variation.

use ackline_tcp_core::Instant;
use ackline_tcp_core::policy::cc::{FlowView, Phase};

/// What the last event showed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lag {
    overdue: bool,
    /// When the ACK of the oldest outstanding segment is overdue.
    due: Option<Instant>,
}

impl Lag {
    /// A departure, an ACK, or [`next_timeout`](Self::next_timeout).
    pub(super) fn on_event(&mut self, view: &FlowView) {
        self.due = match (view.oldest_departure, view.srtt, view.rttvar) {
            (Some(left), Some(srtt), Some(rttvar)) => Some(left + srtt + rttvar.saturating_mul(4)),
            _ => None,
        };
        let late = self.due.is_some_and(|due| view.now >= due);
        self.overdue = late || matches!(view.phase, Phase::Disorder | Phase::Recovery);
    }

    /// An ACK is overdue.
    pub(super) const fn is_overdue(&self) -> bool {
        self.overdue
    }

    /// When to look again.
    pub(super) const fn next_timeout(&self) -> Option<Instant> {
        if self.overdue { None } else { self.due }
    }
}
