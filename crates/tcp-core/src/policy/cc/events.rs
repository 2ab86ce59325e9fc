//! What an algorithm is told: departures, ACKs, losses, restarts, undos.

use crate::seq::SeqNum;
use crate::time::Duration;
use crate::units::{Rate, Window};

/// What an algorithm did on an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing that the peer must know.
    None,
    /// It reduced its window because of ECN feedback: the core sends CWR.
    Reduced,
}

/// A departure, for [`CongestionControl::on_sent`](super::CongestionControl::on_sent).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentSegment {
    /// First sequence number.
    pub seq: SeqNum,
    /// Payload bytes; more than `smss` for a super-packet.
    pub len: u32,
    /// It carries data that had left before.
    pub retransmission: bool,
}

impl SentSegment {
    /// A departure of `len` bytes at `seq`.
    #[must_use]
    pub const fn new(seq: SeqNum, len: u32, retransmission: bool) -> Self {
        Self { seq, len, retransmission }
    }
}

/// What one incoming ACK (or a batch that arrived as one) says.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub struct AckSample {
    /// Bytes by which SND.UNA advanced.
    pub acked: u32,
    /// Bytes newly covered by SACK blocks.
    pub newly_sacked: u32,
    /// Segments newly covered by either.
    pub segments: u32,
    /// Bytes of `acked + newly_sacked` that SACK had not reported before: what was newly delivered.
    pub newly_delivered: u32,
    /// Bytes newly declared lost on this ACK.
    pub newly_lost: u32,
    /// Bytes that the peer reports as CE-marked: with DCTCP's and with classic ECN `newly_delivered` where `ece` is
    /// set.
    pub ce: u32,
    /// ECE was set, where ECN is in use. RFC 3168, section 6.1.2: such an ACK does not raise the window.
    pub ece: bool,
    /// The ACK advanced nothing (a duplicate in the sense of RFC 5681).
    pub duplicate: bool,
    /// RTT of the newest covered segment never retransmitted.
    pub rtt: Option<Duration>,
    /// RTT of the oldest covered segment never retransmitted.
    pub rtt_oldest: Option<Duration>,
    /// `pipe` just before the ACK was processed.
    pub prior_pipe: u32,
    /// Delivery rate over the last flight.
    pub rate: Option<RateSample>,
}

impl AckSample {
    /// An ACK that advanced SND.UNA by `acked` bytes, for tests of algorithms.
    #[must_use]
    pub fn new(acked: u32, segments: u32) -> Self {
        Self { acked, segments, newly_delivered: acked, ..Self::default() }
    }
}

/// A delivery-rate sample (draft-ietf-ccwg-bbr, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the send and the ACK interval.
    pub interval: Duration,
    /// Bytes delivered when the sampled segment left (`rs.prior_delivered`).
    pub prior_delivered: u64,
    /// The sampled segment left while the application limited the flow.
    pub app_limited: bool,
    /// The sampled segment was a retransmission.
    pub retransmission: bool,
}

impl RateSample {
    /// A sample of `delivered` bytes over `interval`.
    #[must_use]
    pub const fn new(delivered: u64, interval: Duration, prior_delivered: u64) -> Self {
        Self { delivered, interval, prior_delivered, app_limited: false, retransmission: false }
    }

    /// The rate that the sample shows.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        Rate::from_bytes_over(self.delivered, self.interval)
    }
}

/// Signals of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CongestionEvent {
    /// Data was found lost and fast recovery begins; once per window.
    Loss {
        /// `pipe` before the loss was marked.
        prior_pipe: u32,
    },
    /// ECE under [`EcnUse::PerWindow`](super::EcnUse::PerWindow); once per window.
    Ecn,
    /// The retransmission timer fired and the RTO response asked for a reduction.
    Timeout {
        /// Flight size at the expiry (RFC 5681, equation 4).
        flight_size: u32,
        /// First expiry for this data; repeated ones must not lower `ssthresh` again.
        first: bool,
        /// The window that the response proposes; the algorithm takes the smaller of this and its own.
        window: Window,
        /// What the response proposes for `ssthresh`.
        ssthresh: SsthreshRule,
    },
}

/// What a response to a timeout proposes for `ssthresh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsthreshRule {
    /// Leave it.
    Keep,
    /// This, which the response took from the flight at the expiry, in place of the algorithm's own rule (which
    /// might give more or less than what it is): the algorithm may take less, not more.
    AtMost(Window),
    /// The algorithm's own rule.
    ByCc,
}

/// Sending resumes, from a window that must not exceed `window`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restart {
    /// Why.
    pub cause: RestartCause,
    /// The largest window that the rule behind `cause` permits.
    pub window: Window,
    /// How long nothing was sent.
    pub idle: Duration,
}

impl Restart {
    /// A restart from at most `window`.
    #[must_use]
    pub const fn new(cause: RestartCause, window: Window, idle: Duration) -> Self {
        Self { cause, window, idle }
    }
}

/// Why sending restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartCause {
    /// Nothing was sent for longer than the RTO (RFC 5681, section 4.1).
    Idle,
    /// A timeout proved to have lost nothing.
    CleanTimeout,
}

/// What to restore when an episode proves spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Everything that the checkpoint holds; the window never falls below what it is.
    All,
    /// The given values.
    To {
        /// New window.
        window: Window,
        /// New `ssthresh`.
        ssthresh: Window,
    },
}
