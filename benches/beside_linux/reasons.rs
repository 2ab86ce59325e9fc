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
        cells: &["loss/0.5 %", "loss/1 %", "loss/3 %", "transfer-loss/10 MB"],
        senders: &[Sender::Cubic],
        metrics: &[Metric::Goodput, Metric::Time],
        why: "RFC 9438 (section 4.3) lets the Reno-friendly window grow by a whole segment per round trip once it is back at the window of the last loss; the kernel goes on with 0.53 of one (tcp_cubic.c: bictcp_update, beta_scale). With 0.53 throughout, the simulation's goodput is less by 11 % at 0.5 % loss, by 10 % at 1 %, by 12 % at 3 %.",
    },
    Reason {
        cells: &["transfer/1 MB", "transfer/10 MB", "transfer-loss/1 MB"],
        senders: &[Sender::Cubic],
        metrics: &[Metric::Again],
        why: "HyStart++ (RFC 9406) slows down for five round trips after the delay has risen; the kernel's HyStart ends slow start at once, and also by the spacing of ACKs. Of transfers of 1 MB, simulated, 6.7 % is sent again with HyStart++ and 21 % without it; the kernel without its own (hystart=0 of tcp_cubic) sends 21 % again, too. With Linux's HyStart (--set conn.cc=cubic:hystart=linux) the simulation sends nothing of 1 MB again, and 0.012 instead of 0.67 % of 10 MB.",
    },
    Reason {
        cells: &[
            "loss/none",
            "reordering/1 % by 10 ms",
            "round-trip/100 ms",
            "round-trip/200 ms",
            "rate/5 Mbit/s",
            "buffer/2",
            "buffer/4",
        ],
        senders: &[Sender::Cubic],
        metrics: &[Metric::Delay, Metric::DelayP95, Metric::Again],
        why: "Where the window is in CUBIC's curve. These runs last one to three of its cycles, and the two HyStarts let the first one begin at different windows. Without its HyStart the kernel's mean delay is 30.9 ms without loss, and its 95 % 135 ms with the largest buffer. In runs of 60 to 80 s (--longer 4, 3 for long round trips) delays of the two are within 5 % of each other, and what they send again within 0.02 % of all packets.",
    },
    Reason {
        cells: &["reordering/1 % by 60 ms"],
        senders: &[],
        metrics: &[],
        why: "RACK waits at most one smoothed round trip for a late packet (RFC 8985, section 6.2), and 60 ms are more than the round trip of the empty path. While the queue is full they are not; once it is empty, each late packet costs a needless reduction, and the queue stays empty. Which of the two a run falls into is chance, and the kernel's CUBIC falls more often. With a buffer of 0.2 there is no such queue: then both lose, CUBIC reaches 11.2 Mbit/s, the kernel's 5.8. With packets late by 30 ms both reach 19.3 Mbit/s, and 17.9 and 16.9 with the small buffer.",
    },
    Reason {
        cells: &["buffer/0.2"],
        senders: &[],
        metrics: &[],
        why: "A buffer of 13 packets shows how evenly a sender sends. The kernel's answers an ACK where it arrives. The stack's driver is a thread that waits for a processor beside other runs, and answers several ACKs at once. With all threads at real-time priority (chrt -f 5) Reno reaches 16.4 Mbit/s in both stacks, as simulated, and sends 0.06 % again.",
    },
    Reason {
        cells: &["round-trip/5 ms", "rate/2 Mbit/s"],
        senders: &[],
        metrics: &[Metric::Again],
        why: "The kernel counts its window in segments, and rounds down after a loss: at some 15 segments the window takes longer to come back. With such rounding the simulation's CUBIC sends 0.90 instead of 1.00 % again at 5 ms, 0.79 instead of 0.87 % at 2 Mbit/s: half of the difference. What makes the other half is not known. Reno's is not all the stack's: simulated for 100 s at 2 Mbit/s it sends 1.02 % again, less than the kernel, and live 1.24 %.",
    },
    Reason {
        cells: &["queue/marks beyond 50 kB, ECN"],
        senders: &[],
        metrics: &[],
        why: "The kernel spreads what a mark costs over a round trip (PRR: tcp_input.c, tcp_enter_cwr, tcp_cwnd_reduction): it goes on sending at 0.7 of the rate. So the segment with CWR, or one right behind it, comes while the queue still is above 50 kB and is marked, and the window is reduced once more. In a run of 60 s the kernel's CUBIC went from 147 to 103 and at once to 71 kB, less than the path holds, in 11 of 13 cycles. ackline sends nothing until what is under way fits the smaller window. Its segment with CWR finds the queue short: simulated, of 10 such segments after slow start none was marked, and each burst of marks costs one reduction, to 104 kB. That PRR is what makes the difference follows from this order of events: the simulation has no PRR after marks to leave out.",
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
