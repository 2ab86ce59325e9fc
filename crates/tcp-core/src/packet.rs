//! What goes out: packets as the driver gets them.

use crate::id::{ConnId, TxId};
use core::num::NonZeroU16;

/// A packet to be sent: headers and at most two pieces of payload that borrow from the send buffer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TxPacket<'a> {
    /// To be passed to [`Endpoint::departed`](crate::Endpoint::departed) by drivers that report departures.
    pub id: TxId,
    /// IP and TCP (or ICMP) headers.
    pub header: &'a [u8],
    /// Payload, in order; either piece may be empty.
    pub payload: [&'a [u8]; 2],
    /// Payload bytes per wire packet, where this is a super-packet that the device must segment.
    pub segment_size: Option<NonZeroU16>,
    /// What the device must still do about the TCP checksum.
    pub checksum: crate::wire::TxChecksum,
    /// Whose packet; `None` for packets of no connection.
    pub conn: Option<ConnId>,
    /// What kind.
    pub class: SegmentClass,
    /// Why it is sent.
    pub reason: SendReason,
}

impl TxPacket<'_> {
    /// IP bytes: headers and payload. For a super-packet this counts one header.
    #[must_use]
    pub fn len(&self) -> usize {
        self.header.len() + self.payload[0].len() + self.payload[1].len()
    }

    /// Never: a packet has a header.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// What kind of packet it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentClass {
    /// ACK without payload, SYN, FIN or RST.
    PureAck,
    /// Payload that leaves for the first time.
    Data,
    /// Payload that left before.
    Retransmit,
    /// Everything else.
    Control(ControlKind),
}

impl SegmentClass {
    /// True for segments with payload of the stream, whether new or retransmitted.
    #[must_use]
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::Retransmit)
    }
}

/// Kinds of control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlKind {
    /// SYN or SYN-ACK.
    Syn,
    /// FIN without payload.
    Fin,
    /// RST.
    Rst,
    /// Zero-window or keep-alive probe.
    Probe,
    /// Not TCP.
    Other,
}

/// Why a packet is sent, for traces and captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendReason {
    /// SYN of an active open.
    Syn,
    /// SYN-ACK.
    SynAck,
    /// Data that leaves for the first time.
    NewData,
    /// New data on the first two duplicate ACKs (RFC 3042).
    LimitedTransmit,
    /// Data that loss detection declared lost.
    FastRetransmit,
    /// The segment that an expired retransmission timer sends.
    RtoRetransmit,
    /// Tail loss probe (RFC 8985, section 7): new data, or the highest outstanding segment.
    TailLossProbe,
    /// The probe that an expired retransmission timer sends in place of it: new data, or the highest outstanding
    /// segment.
    RtoProbe,
    /// FIN without data.
    Fin,
    /// Probe of a closed window (RFC 9293, section 3.8.6.1).
    WindowProbe,
    /// Keep-alive probe.
    KeepAlive,
    /// ACK that the policy asked for.
    AckByPolicy,
    /// ACK at the policy's timer.
    AckByTimer,
    /// ACK that the core owes.
    AckByObligation,
    /// ACK that shows a larger window.
    WindowUpdate,
    /// Challenge ACK (RFC 5961).
    ChallengeAck,
    /// RST.
    Rst,
    /// ICMP echo reply.
    EchoReply,
    /// ICMP error about a packet that nobody takes.
    IcmpError,
}

impl SendReason {
    /// An expired retransmission timer sends it, whatever the windows, the pacer and the scheduler say.
    #[must_use]
    pub const fn is_rto(self) -> bool {
        matches!(self, Self::RtoRetransmit | Self::RtoProbe)
    }
}

/// How much a call of [`Endpoint::transmit`](crate::Endpoint::transmit) may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TxBudget {
    /// Packets; super-packets count once.
    pub packets: usize,
    /// A driver that reports departures takes one packet when it is idle; the scheduler is given every
    /// waiting packet before it is asked for one.
    pub reports_departures: bool,
    /// See [`keeping_acks`](Self::keeping_acks).
    pub keeps_acks: bool,
}

impl TxBudget {
    /// As much as there is.
    pub const UNLIMITED: Self = Self { packets: usize::MAX, reports_departures: false, keeps_acks: false };

    /// At most `packets` packets.
    #[must_use]
    pub const fn packets(packets: usize) -> Self {
        Self { packets, reports_departures: false, keeps_acks: false }
    }

    /// At most `packets` packets, and the driver calls [`Endpoint::departed`](crate::Endpoint::departed) for
    /// each when its last bit has left. While its link is busy it calls with 0 packets, so that what arises
    /// meanwhile takes its place in the scheduler.
    #[must_use]
    pub const fn with_departures(packets: usize) -> Self {
        Self { packets, reports_departures: true, keeps_acks: false }
    }

    /// The same, but a pure ACK may stay until the next call without this: for a driver that is about to let
    /// applications answer what came, so that the ACK rides on the answer (RFC 9293, section 3.8.6.3, permits the
    /// delay). ACKs that report data out of order, those of a policy that does not [let them
    /// wait](crate::policy::AckPolicy::lets_acks_wait), and challenge ACKs leave all the same; so does everything where an
    /// egress scheduler has packets queued. [`TxReport::kept_acks`] says whether some stayed: **then another call
    /// must follow soon**, for no timer is set for them.
    #[must_use]
    pub const fn keeping_acks(mut self) -> Self {
        self.keeps_acks = true;
        self
    }
}

/// What a call of [`Endpoint::transmit`](crate::Endpoint::transmit) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TxReport {
    /// Packets emitted.
    pub packets: usize,
    /// IP bytes emitted.
    pub bytes: u64,
    /// More waits and could leave at once: the budget ended the call.
    pub more: bool,
    /// Pure ACKs stayed, as [`TxBudget::keeping_acks`] permits.
    pub kept_acks: bool,
}
