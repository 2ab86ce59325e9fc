//! The events of a congestion control: departures, ACKs, losses, restarts, undos.

use crate::seq::SeqNum;
use crate::time::Duration;
use crate::units::{Rate, Window};

/// What an algorithm did on an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing that the peer must be told.
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
    /// It carries data that was sent before.
    pub retransmission: bool,
    /// `pipe` before it left; 0: the flow restarts from idle.
    pub prior_pipe: u32,
}

impl SentSegment {
    /// A departure of `len` bytes at `seq`, while nothing else is in the network.
    #[must_use]
    pub const fn new(seq: SeqNum, len: u32, retransmission: bool) -> Self {
        Self { seq, len, retransmission, prior_pipe: 0 }
    }
}

/// A transmission that was declared lost, for
/// [`CongestionControl::on_lost`](super::CongestionControl::on_lost).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostRecord {
    /// First sequence number.
    pub seq: SeqNum,
    /// Bytes; more than `smss` for a super-packet.
    pub len: u32,
    /// `pipe` just after this transmission, itself included.
    pub tx_in_flight: u32,
    /// Bytes declared lost since this transmission, itself included.
    pub lost_since_sent: u32,
    /// It was sent while the application limited the flow.
    pub app_limited: bool,
}

impl LostRecord {
    /// `[seq, seq + len)`, which left when `tx_in_flight` bytes were in the network, as the first
    /// loss since.
    #[must_use]
    pub const fn new(seq: SeqNum, len: u32, tx_in_flight: u32) -> Self {
        Self { seq, len, tx_in_flight, lost_since_sent: len, app_limited: false }
    }
}

/// The contents of one incoming ACK (or a batch processed as one).
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
    /// Bytes of `newly_delivered` that the peer reports as CE-marked. DCTCP's feedback and classic
    /// ECN know only all or nothing.
    pub ce: u32,
    /// The ACK tells of marks: ECE was set, or the peer's count has grown (accurate ECN). RFC 3168,
    /// section 6.1.2: such an ACK does not raise the window.
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
    /// Bytes delivered when the sampled segment was sent (`rs.prior_delivered`).
    pub prior_delivered: u64,
    /// `pipe` just after the sampled segment left, itself included.
    pub tx_in_flight: u32,
    /// Bytes declared lost since the sampled segment left.
    pub lost: u32,
    /// The sampled segment was sent while the application limited the flow.
    pub app_limited: bool,
    /// The sampled segment was a retransmission.
    pub retransmission: bool,
}

impl RateSample {
    /// A sample of `delivered` bytes over `interval`.
    #[must_use]
    pub const fn new(delivered: u64, interval: Duration, prior_delivered: u64) -> Self {
        Self {
            delivered,
            interval,
            prior_delivered,
            tx_in_flight: 0,
            lost: 0,
            app_limited: false,
            retransmission: false,
        }
    }

    /// The sampled rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        Rate::from_bytes_over(self.delivered, self.interval)
    }
}

/// Signals of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CongestionEvent {
    /// Data was declared lost and fast recovery begins; once per window.
    Loss {
        /// `pipe` before the loss was marked.
        prior_pipe: u32,
    },
    /// ECE under [`EcnUse::PerWindow`](super::EcnUse::PerWindow); once per window.
    Ecn,
    /// The retransmission timer fired and the RTO response requested a reduction.
    Timeout {
        /// Flight size at the expiry (RFC 5681, equation 4).
        flight_size: u32,
        /// First timeout for this data; repeated ones must not lower `ssthresh` again.
        first: bool,
        /// The window proposed by the response: the most that the flow restarts from. An algorithm
        /// keeps a smaller window of its own, but may raise one below two segments to two if that
        /// much is proposed.
        window: Window,
        /// The proposal for `ssthresh`.
        ssthresh: SsthreshRule,
    },
}

/// A timeout response's proposal for `ssthresh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsthreshRule {
    /// Leave it alone.
    Keep,
    /// This value, whether it is more or less than before (RFC 5681, equation 4, sets `ssthresh`
    /// from the flight and does not compare it with the old one). It replaces the algorithm's own
    /// rule; an algorithm only keeps it above the smallest window that it allows.
    To(Window),
    /// The algorithm's own rule.
    ByCc,
}

/// Sending resumes with a window of at most `window`. After [`RestartCause::CleanTimeout`] an
/// algorithm may raise a smaller window to two segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restart {
    /// The reason.
    pub cause: RestartCause,
    /// The largest window permitted by the rule behind `cause`.
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

/// The reason for a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartCause {
    /// Nothing was sent for longer than the RTO (RFC 5681, section 4.1).
    Idle,
    /// A timeout turned out to have lost nothing.
    CleanTimeout,
}

/// What to restore when an episode proves spurious.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Everything in the checkpoint; the window is never lowered.
    All,
    /// The given values.
    To {
        /// New window.
        window: Window,
        /// New `ssthresh`.
        ssthresh: Window,
    },
}
