//! Why ackline and the kernel differ, as far as it was found out.

use crate::design::Sender;
use crate::results::Metric;

/// A difference and its cause.
struct Reason {
    /// Begins the names of the cells.
    cells: &'static str,
    /// ackline's; any if empty.
    senders: &'static [Sender],
    /// Any if empty.
    metrics: &'static [Metric],
    why: &'static str,
}

const REASONS: &[Reason] = &[];

/// The cause of a difference, if it is known.
pub(crate) fn of(cell: &str, sender: Sender, metric: Metric) -> Option<&'static str> {
    let fits = |reason: &&Reason| {
        cell.starts_with(reason.cells)
            && (reason.senders.is_empty() || reason.senders.contains(&sender))
            && (reason.metrics.is_empty() || reason.metrics.contains(&metric))
    };
    REASONS.iter().find(fits).map(|reason| reason.why)
}
