//! The data of one end.

use super::{Episode, Interval, Losses, Share};
use crate::picture::Picture;
use serde::Serialize;
use std::net::SocketAddr;

/// The data that one end sent.
#[derive(Clone, Debug, Serialize)]
pub struct Direction {
    /// The sender.
    pub from: SocketAddr,
    /// Octets of the stream that passed, or were acknowledged, each counted once.
    pub bytes: u64,
    /// Packets with data; what offload has joined counts once.
    pub packets: u64,
    /// Largest packet's data.
    pub largest: u32,
    /// The segment size: what the data's packets are multiples of.
    pub mss: u32,
    /// When the first data passed.
    pub first_at_ns: u64,
    /// When the last data passed or was acknowledged.
    pub last_at_ns: u64,
    /// Octets in flight at most.
    pub max_flight: u64,
    /// How slow start went.
    pub slow_start: Option<SlowStart>,
    /// What the time went for, by cause, the largest first.
    pub time: Vec<Share>,
    /// The same along time. Short intervals are part of their neighbours if there are too many.
    pub intervals: Vec<Interval>,
    /// No interval is shorter, because there were too many.
    pub interval_grain_ns: u64,
    /// The longest waits, in the order of time.
    pub stalls: Vec<Interval>,
    /// What was sent again.
    pub losses: Losses,
    /// The episodes, in the order of time.
    pub episodes: Vec<Episode>,
    /// Episodes beyond those listed, which cost less.
    pub episodes_left_out: u64,
    /// Round trips from the capture to the receiver and back.
    pub rtt: Option<Rtt>,
    /// Round trips from the capture to the sender and back, queues of the sender and of the path
    /// before the capture included; `None` if the capture is at the sender, or timestamps are
    /// missing.
    pub rtt_before: Option<Rtt>,
    /// Changes of the path, in the order of time: round trips behind the capture that moved, and
    /// stayed there.
    pub path_changes: Vec<PathChange>,
    /// Changes beyond those listed.
    pub path_changes_left_out: u64,
    /// What the other end acknowledged.
    pub acks: Acks,
    /// The window of the other end; `None` for a peer's data in a trace.
    pub window: Option<Window>,
    /// What the sender's stack states, in a trace.
    pub congestion: Option<Congestion>,
    /// What became of a peer's data, in a trace.
    pub received: Option<ArrivalCounts>,
    /// Congestion marks.
    pub marks: Marks,
    /// Octets that were acknowledged, but did not pass the capture.
    pub uncaptured: u64,
    /// Octets that passed and were never acknowledged.
    pub unacknowledged: u64,
    /// More packets were in flight than are kept apart: some are merged.
    pub merged: bool,
    /// What can be drawn of it, if [`Limits::drawn`](crate::Limits::drawn) asks for it.
    #[serde(skip)]
    pub picture: Option<Picture>,
}

impl Direction {
    /// Data of which nothing is told but when it was sent: between `first_ns`, if any was, and
    /// `last_ns`. The connection began at `start_ns`.
    pub(crate) fn between(from: SocketAddr, start_ns: u64, first_ns: Option<u64>, last_ns: u64) -> Self {
        let first_ns = first_ns.unwrap_or(start_ns);
        Self {
            from,
            bytes: 0,
            packets: 0,
            largest: 0,
            mss: 0,
            first_at_ns: first_ns.saturating_sub(start_ns),
            last_at_ns: last_ns.max(first_ns).saturating_sub(start_ns),
            max_flight: 0,
            slow_start: None,
            time: vec![],
            intervals: vec![],
            interval_grain_ns: 0,
            stalls: vec![],
            losses: Losses::default(),
            episodes: vec![],
            episodes_left_out: 0,
            rtt: None,
            rtt_before: None,
            path_changes: vec![],
            path_changes_left_out: 0,
            acks: Acks::default(),
            window: None,
            congestion: None,
            received: None,
            marks: Marks::default(),
            uncaptured: 0,
            unacknowledged: 0,
            merged: false,
            picture: None,
        }
    }
}

/// How slow start went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SlowStart {
    /// When it ended; if it did not, when the last data was acknowledged.
    pub end_at_ns: u64,
    /// Octets in flight at most until then.
    pub flight: u64,
    /// Round trips until then.
    pub rounds: u32,
    /// Why.
    pub end: SlowStartEnd,
}

/// Why slow start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStartEnd {
    /// A loss.
    Loss,
    /// An ECN echo.
    Mark,
    /// The receiver's window was full.
    ReceiverWindow,
    /// Growth became slow without a loss: the sender's own decision, such as HyStart's.
    Plateau,
    /// It did not: the data ended before.
    Data,
    /// It did not: the application never filled the window.
    Application,
}

/// Round trips, from the capture to the receiver and back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rtt {
    /// How many were measured.
    pub samples: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The median, to 2 %.
    pub median_ns: u64,
    /// 95 of 100 are shorter, to 2 %.
    pub p95_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Correlation with the octets in flight, from -1 to 1.
    pub with_flight: f64,
    /// What the flight's own queue adds at its largest, ns, if they grow together.
    pub own_queue_ns: Option<u64>,
}

/// A change of the path: round trips moved by more than the sender's own queue can explain, and
/// stayed there. The path became longer or shorter, or slower or faster; or the queue of others
/// did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PathChange {
    /// When the first packet was sent that tells.
    pub at_ns: u64,
    /// The shortest round trip before.
    pub before_ns: u64,
    /// The shortest since then, until it was sure that they stay.
    pub after_ns: u64,
    /// Packets that were sent again in that time.
    pub retransmissions: u64,
    /// Packets that arrived out of order in that time.
    pub reordered: u64,
}

/// ACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Acks {
    /// Those without data that acknowledged something new.
    pub advancing: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Segments per ACK that acknowledged something new.
    pub segments_per_ack: f64,
    /// ACKs that came in clumps: in less than a tenth of the time in which what they acknowledge
    /// was sent.
    pub compressed: u64,
}

impl Acks {
    /// The same with the mean of segments per ACK: `bytes` were acknowledged, in segments of so
    /// many octets.
    pub(crate) fn over(self, bytes: u64, segment: u64) -> Self {
        let segments = bytes as f64 / segment as f64;
        let segments_per_ack = if self.advancing > 0 { segments / self.advancing as f64 } else { 0.0 };
        Self { segments_per_ack, ..self }
    }
}

/// A receiver's window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Window {
    /// The smallest after the handshake.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// Times that it became zero.
    pub zero: u64,
    /// Window probes of the sender.
    pub probes: u64,
    /// The scale is unknown, because the handshake was not captured; windows are as in the headers.
    pub unscaled: bool,
}

/// What a stack states of the data that it sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Congestion {
    /// The congestion window, octets: the smallest, the largest, the last. Zero: none was stated.
    pub cwnd_min: u64,
    /// The largest.
    pub cwnd_max: u64,
    /// The last.
    pub cwnd_last: u64,
    /// The last slow-start threshold.
    pub ssthresh: Option<u64>,
    /// The last pacing rate, bit/s.
    pub pacing_rate: Option<u64>,
    /// Octets that were declared lost, each time anew.
    pub lost_bytes: u64,
    /// Retransmissions that were declared lost.
    pub lost_again: u64,
    /// Losses found by ACKs, and by RACK's reordering timer.
    pub losses_by_ack: u64,
    /// Those of the timer.
    pub losses_by_timer: u64,
    /// Timeouts that the response to timeouts has classified: something was lost.
    pub timeouts_lossy: u64,
    /// Nothing was.
    pub timeouts_spurious: u64,
    /// Reductions that were undone.
    pub undone: u64,
    /// Reductions because of congestion marks.
    pub reduced_by_ecn: u64,
    /// Time in the phases of loss handling.
    pub disorder_ns: u64,
    /// Fast recovery.
    pub recovery_ns: u64,
    /// After a timeout.
    pub loss_ns: u64,
}

/// What became of a peer's data, as the receiving stack states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArrivalCounts {
    /// Packets whose data had all been acknowledged.
    pub again: u64,
    /// Packets that came behind a gap.
    pub behind_gap: u64,
    /// Packets of which something was not accepted.
    pub dropped: u64,
}

/// Congestion marks (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Marks {
    /// Packets that can be marked: ECT(0) or ECT(1).
    pub capable: u64,
    /// Packets that passed with a mark.
    pub marked: u64,
    /// ACKs with an echo.
    pub echoes: u64,
    /// Packets that say that the window was reduced.
    pub reductions: u64,
    /// What the receiver tells by accurate ECN, which has no echoes and no such packets.
    pub accurate: Option<AccurateMarks>,
}

/// What a receiver tells by accurate ECN (RFC 9768).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AccurateMarks {
    /// Marked packets by ACE, three bits of their count; at least, because it wraps around.
    pub told: u64,
    /// Segments with the option.
    pub options: u64,
    /// Bytes that arrived with ECT(0), by the option.
    pub ect0_bytes: u64,
    /// With CE.
    pub ce_bytes: u64,
    /// With ECT(1).
    pub ect1_bytes: u64,
}
