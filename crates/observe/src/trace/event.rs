//! The events of a trace.
//!
//! Names that begin with `recovery:` and their fields are qlog's (draft-ietf-quic-qlog-quic-events;
//! before revision 12 they had a category of their own), where those fit TCP. docs/traces.md lists
//! all.

use super::metrics::Metrics;
use super::time::millis;
use crate::labels;
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::wire::TcpFlags;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::SocketAddr;

/// A word of a fixed set.
pub type Word = Cow<'static, str>;

/// What happened. Sequence numbers are those of the wire, times are in milliseconds, lengths in
/// bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", content = "data")]
#[non_exhaustive]
pub enum Event {
    /// A connection exists from here on.
    #[serde(rename = "ackline:connection_opened")]
    ConnectionOpened {
        /// This side.
        local: SocketAddr,
        /// The peer.
        remote: SocketAddr,
        /// `active` or `passive`.
        role: Word,
    },
    /// It has ended. Segments can still follow in TIME-WAIT.
    #[serde(rename = "ackline:connection_closed")]
    ConnectionClosed {
        /// Why, unless in order: a word of [`labels::conn_error`].
        error: Option<Word>,
    },
    /// Its state changed, named as in RFC 9293.
    #[serde(rename = "ackline:state_updated")]
    StateUpdated {
        /// From.
        old: Word,
        /// To.
        new: Word,
    },
    /// A segment was sent, or several with consecutive data.
    #[serde(rename = "ackline:segment_sent")]
    SegmentSent {
        /// First sequence number.
        seq: u32,
        /// Payload.
        length: u32,
        /// Acknowledgment number.
        ack: u32,
        /// Flags.
        #[serde(with = "flags")]
        flags: TcpFlags,
        /// Why: a word of [`labels::send_reason`].
        trigger: Word,
    },
    /// A segment arrived.
    #[serde(rename = "ackline:segment_received")]
    SegmentReceived {
        /// First sequence number.
        seq: u32,
        /// Payload.
        length: u32,
        /// Acknowledgment number.
        ack: u32,
        /// Flags.
        #[serde(with = "flags")]
        flags: TcpFlags,
    },
    /// It will be sent next, and waited in the egress scheduler or for the device.
    #[serde(rename = "ackline:segment_queued")]
    SegmentQueued {
        /// For so many milliseconds.
        delay: f64,
    },
    /// A pure ACK that the receiver owes will be sent next.
    #[serde(rename = "ackline:ack_requested")]
    AckRequested {
        /// The ACK policy.
        policy: Word,
        /// The rule that asked for it, of the policy or of the core; empty if it has no name.
        rule: Word,
    },
    /// No more is sent for now, for another reason than the last time.
    #[serde(rename = "ackline:sending_blocked")]
    SendingBlocked {
        /// Why: a word of [`labels::blocked`].
        trigger: Word,
    },
    /// The policies in use from here on.
    #[serde(rename = "ackline:policies_updated")]
    PoliciesUpdated {
        /// Congestion control.
        cc: Word,
        /// ACK policy.
        ack: Word,
        /// Response to timeouts.
        rto: Word,
    },
    /// The segment that arrived, or its payload, was dropped.
    #[serde(rename = "ackline:segment_dropped")]
    SegmentDropped {
        /// Why.
        trigger: Word,
    },
    /// Congestion state after an ACK: what has changed.
    #[serde(rename = "recovery:metrics_updated")]
    MetricsUpdated(Metrics),
    /// The phase of loss handling changed: a word of [`labels::phase`].
    #[serde(rename = "recovery:congestion_state_updated")]
    CongestionStateUpdated {
        /// From.
        old: Word,
        /// To.
        new: Word,
    },
    /// Data was declared lost.
    #[serde(rename = "recovery:packet_lost")]
    PacketLost {
        /// Bytes newly marked.
        length: u32,
        /// Segments among them that were retransmissions.
        retransmissions: u32,
        /// What found it: `ack` or `reordering_timer`.
        trigger: Word,
    },
    /// The retransmission timer fired.
    #[serde(rename = "recovery:loss_timer_updated")]
    LossTimerUpdated {
        /// `rto`.
        timer_type: Word,
        /// `expired`.
        event_type: Word,
        /// Consecutive expiries.
        expiries: u32,
        /// The timeout now in force.
        rto: f64,
    },
    /// A tail loss probe was sent (RFC 8985, section 7).
    #[serde(rename = "ackline:tail_loss_probe_sent")]
    TailLossProbeSent {
        /// First sequence number.
        seq: u32,
        /// It sent new data; otherwise it repeated the highest outstanding segment.
        new_data: bool,
    },
    /// The response to a timeout changed its phase: a word of [`labels::rto_phase`].
    #[serde(rename = "ackline:rto_phase_updated")]
    RtoPhaseUpdated {
        /// From.
        old: Word,
        /// To.
        new: Word,
    },
    /// The response classified the timeout.
    #[serde(rename = "ackline:rto_classified")]
    RtoClassified {
        /// `lossy` or `spurious`.
        verdict: Word,
    },
    /// An ACK that is no evidence while the response waits for some.
    #[serde(rename = "ackline:stale_ack_received")]
    StaleAckReceived {
        /// Acknowledgment number.
        ack: u32,
    },
    /// A congestion episode was undone.
    #[serde(rename = "ackline:congestion_undone")]
    CongestionUndone {},
    /// The handshake agreed on ECN.
    #[serde(rename = "ackline:ecn_agreed")]
    EcnAgreed {
        /// A word of [`labels::ecn`].
        mode: Word,
        /// This side's data is ECN-capable.
        capable: bool,
    },
    /// The window was reduced because of ECE.
    #[serde(rename = "ackline:ecn_reduced")]
    EcnReduced {
        /// No other reduction for data before this sequence number.
        until: u32,
    },
    /// Events are missing here, of any connection: the queue of the trace was full.
    #[serde(rename = "ackline:events_dropped")]
    EventsDropped {
        /// How many.
        count: u64,
    },
    /// The last record.
    #[serde(rename = "ackline:trace_ended")]
    TraceEnded {
        /// Records before this one.
        records: u64,
        /// Events that found the queue full.
        dropped: u64,
        /// Records that could not be written so far.
        unwritten: u64,
        /// Why the trace ends before its stack, if it does.
        cut_short: Option<String>,
    },
}

impl Event {
    /// The record of a core's event. Those of congestion state have all of it.
    #[must_use]
    pub fn of(event: &TraceEvent) -> Option<Self> {
        let word = Word::Borrowed;
        Some(match *event {
            TraceEvent::Opened { tuple, passive } => Self::ConnectionOpened {
                local: tuple.local(),
                remote: tuple.remote(),
                role: word(if passive { "passive" } else { "active" }),
            },
            TraceEvent::Closed { error } => {
                Self::ConnectionClosed { error: error.map(|error| word(labels::conn_error(error))) }
            }
            TraceEvent::State { from, to } => {
                Self::StateUpdated { old: word(from.name()), new: word(to.name()) }
            }
            TraceEvent::Sent { seq, len, ack, flags, reason } => Self::SegmentSent {
                seq: seq.0,
                length: len,
                ack: ack.0,
                flags,
                trigger: word(labels::send_reason(reason)),
            },
            TraceEvent::Received { seq, len, ack, flags } => {
                Self::SegmentReceived { seq: seq.0, length: len, ack: ack.0, flags }
            }
            TraceEvent::Queued { delay } => Self::SegmentQueued { delay: millis(delay) },
            TraceEvent::Ack { policy, rule } => Self::AckRequested { policy: word(policy), rule: word(rule) },
            TraceEvent::Blocked { cause } => Self::SendingBlocked { trigger: word(labels::blocked(cause)) },
            TraceEvent::Policies { cc, ack, rto } => {
                Self::PoliciesUpdated { cc: word(cc), ack: word(ack), rto: word(rto) }
            }
            TraceEvent::Dropped { reason } => Self::SegmentDropped { trigger: word(reason.as_str()) },
            TraceEvent::Congestion { .. } => Self::MetricsUpdated(Metrics::of(event)?),
            TraceEvent::Phase { from, to } => {
                Self::CongestionStateUpdated { old: word(labels::phase(from)), new: word(labels::phase(to)) }
            }
            TraceEvent::Lost { bytes, again, by_timer } => Self::PacketLost {
                length: bytes,
                retransmissions: again,
                trigger: word(if by_timer { "reordering_timer" } else { "ack" }),
            },
            TraceEvent::Rto { expiries, rto } => Self::LossTimerUpdated {
                timer_type: word("rto"),
                event_type: word("expired"),
                expiries,
                rto: millis(rto),
            },
            TraceEvent::TailLossProbe { start, new } => {
                Self::TailLossProbeSent { seq: start.0, new_data: new }
            }
            TraceEvent::RtoPhase { from, to } => {
                Self::RtoPhaseUpdated { old: word(labels::rto_phase(from)), new: word(labels::rto_phase(to)) }
            }
            TraceEvent::RtoVerdict { verdict } => {
                Self::RtoClassified { verdict: word(labels::rto_verdict(verdict)) }
            }
            TraceEvent::StaleAck { ack } => Self::StaleAckReceived { ack: ack.0 },
            TraceEvent::Undo => Self::CongestionUndone {},
            TraceEvent::EcnAgreed { mode, capable } => {
                Self::EcnAgreed { mode: word(labels::ecn(mode)), capable }
            }
            TraceEvent::EcnReduced { until } => Self::EcnReduced { until: until.0 },
            _ => return None,
        })
    }
}

/// Flags as the core prints them: `SA` for SYN and ACK.
mod flags {
    use ackline_tcp_core::wire::TcpFlags;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::borrow::Cow;

    /// One per bit, from the lowest.
    const LETTERS: &str = "FSRPAUEWe";

    pub(super) fn serialize<S: Serializer>(flags: &TcpFlags, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(flags)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TcpFlags, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        text.chars().filter(|letter| *letter != '-').try_fold(TcpFlags::from_bits(0), |flags, letter| {
            let bit = LETTERS.find(letter).ok_or_else(|| D::Error::custom("not flags of TCP"))?;
            Ok(flags | TcpFlags::from_bits(1 << bit))
        })
    }
}
