//! Why ackline and the kernel differ, as far as it was found out.

use crate::design::Sender;
use crate::results::Metric;

/// A difference and its cause.
struct Reason {
    cells: &'static [&'static str],
    /// ackline's; any if empty.
    senders: &'static [Sender],
    /// Any if empty.
    metrics: &'static [Metric],
    why: &'static str,
}

const REASONS: &[Reason] = &[
    Reason {
        cells: &["loss/0.5 %", "loss/1 %", "loss/3 %"],
        senders: &[Sender::Cubic],
        metrics: &[Metric::Goodput],
        why: "RFC 9438 (section 4.3) lets the Reno-friendly window grow by a whole segment per round trip once it is back at the window of the last loss; the kernel goes on with 0.53 of one. With 0.53 throughout, the simulation's goodput is less by 11 % at 0.5 % loss, by 10 % at 1 %, by 12 % at 3 %.",
    },
    Reason {
        cells: &["transfer/1 MB", "transfer/10 MB"],
        senders: &[Sender::Cubic],
        metrics: &[Metric::Again],
        why: "HyStart++ (RFC 9406) slows down for five round trips after the delay has risen; the kernel's HyStart ends slow start at once, and also by the spacing of ACKs. Of transfers of 1 MB, simulated, 6.7 % is sent again with HyStart++ and 21 % without it; Reno, which has neither, sends as much again in both stacks.",
    },
];

/// The cause of a difference, if it is known.
pub(crate) fn of(cell: &str, sender: Sender, metric: Metric) -> Option<&'static str> {
    let fits = |reason: &&Reason| {
        reason.cells.contains(&cell)
            && (reason.senders.is_empty() || reason.senders.contains(&sender))
            && (reason.metrics.is_empty() || reason.metrics.contains(&metric))
    };
    REASONS.iter().find(fits).map(|reason| reason.why)
}
