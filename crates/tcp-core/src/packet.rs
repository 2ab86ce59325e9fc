//! Outgoing packets, as the driver gets them.

use crate::id::{ConnId, TxId};
use crate::wire::TcpHeader;
use core::num::NonZeroU16;

/// A packet to be sent: headers and at most two slices of payload that borrow from the send buffer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TxPacket<'a> {
    /// For [`Endpoint::departed`](crate::Endpoint::departed), if the driver reports departures.
    pub id: TxId,
    /// IP and TCP (or UDP, or ICMP) headers; empty if there are `fields`.
    pub header: &'a [u8],
    /// The headers as fields, in the standard layout, if the driver
    /// [takes](TxBudget::taking_fields) them so.
    pub fields: Option<&'a TcpHeader<'static>>,
    /// Payload, in order; either slice may be empty.
    pub payload: [&'a [u8]; 2],
    /// Payload bytes per wire packet, if this is a super-packet that the device must segment.
    pub segment_size: Option<NonZeroU16>,
    /// What the device must still do for the transport checksum.
    pub checksum: crate::wire::TxChecksum,
    /// The connection; `None` for packets without one.
    pub conn: Option<ConnId>,
    /// Its kind.
    pub class: SegmentClass,
    /// Why it is sent.
    pub reason: SendReason,
}

impl TxPacket<'_> {
    /// The same packet, as one of another handle's connection.
    #[must_use]
    pub const fn of_conn(&self, conn: Option<ConnId>) -> Self {
        Self { conn, ..*self }
    }

    /// IP bytes: headers and payload. For a super-packet this counts one header.
    #[must_use]
    pub fn len(&self) -> usize {
        let header_len = match self.fields {
            Some(fields) => fields.standard_len(),
            None => self.header.len(),
        };
        header_len + self.payload[0].len() + self.payload[1].len()
    }

    /// Always false: a packet has a header.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentClass {
    /// ACK without payload, SYN, FIN or RST.
    PureAck,
    /// Payload sent for the first time.
    Data,
    /// Payload sent before.
    Retransmit,
    /// Everything else.
    Control(ControlKind),
}

impl SegmentClass {
    /// True for segments with stream payload, new or retransmitted.
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
    /// Data sent for the first time.
    NewData,
    /// New data on the first two duplicate ACKs (RFC 3042).
    LimitedTransmit,
    /// Data that loss detection declared lost.
    FastRetransmit,
    /// The segment that the expired retransmission timer sends.
    RtoRetransmit,
    /// Tail loss probe (RFC 8985, section 7): new data, or the highest outstanding segment.
    TailLossProbe,
    /// A probe that the expired retransmission timer sends instead: new data, or the highest
    /// outstanding segment.
    RtoProbe,
    /// New data in a segment larger than the others, to see whether the path carries it (RFC 4821).
    PathMtuProbe,
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
    /// ACK that the core must send.
    AckByObligation,
    /// ACK that shows a larger window.
    WindowUpdate,
    /// Challenge ACK (RFC 5961).
    ChallengeAck,
    /// RST.
    Rst,
    /// ICMP echo reply.
    EchoReply,
    /// ICMP error about a packet that nobody accepts.
    IcmpError,
    /// UDP datagram.
    Datagram,
    /// A packet that the program has made itself
    /// ([`RawPackets::send`](crate::endpoint::RawPackets::send)).
    Packet,
}

impl SendReason {
    /// True if an expired retransmission timer sends it, regardless of windows, pacer and
    /// scheduler.
    #[must_use]
    pub const fn is_rto(self) -> bool {
        matches!(self, Self::RtoRetransmit | Self::RtoProbe)
    }
}

/// How much one call of [`Endpoint::transmit`](crate::Endpoint::transmit) may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TxBudget {
    /// Packets; super-packets count once.
    pub packets: usize,
    /// The driver reports departures and takes one packet when idle; every waiting packet is pushed
    /// to the scheduler before it is asked for one.
    pub reports_departures: bool,
    /// See [`keeping_acks`](Self::keeping_acks).
    pub keeps_acks: bool,
    /// See [`corking`](Self::corking).
    pub corks: bool,
    /// See [`taking_fields`](Self::taking_fields).
    pub takes_fields: bool,
}

impl TxBudget {
    /// No limit.
    pub const UNLIMITED: Self = Self::packets(usize::MAX);

    /// At most `packets` packets.
    #[must_use]
    pub const fn packets(packets: usize) -> Self {
        Self { packets, reports_departures: false, keeps_acks: false, corks: false, takes_fields: false }
    }

    /// At most `packets` packets; the driver calls
    /// [`Endpoint::departed`](crate::Endpoint::departed) for each when its last bit has left. While
    /// its link is busy it calls with 0 packets, so that new packets take their place in the
    /// scheduler.
    #[must_use]
    pub const fn with_departures(packets: usize) -> Self {
        Self { reports_departures: true, ..Self::packets(packets) }
    }

    /// The same, but pure ACKs may be held until the next call without this: for a driver that is
    /// about to let applications answer, so that ACKs piggyback on the answers (RFC 9293, section
    /// 3.8.6.3, permits the delay). Some ACKs are sent all the same: those that report out-of-order
    /// data, those of a policy that does not [let them
    /// wait](crate::policy::AckPolicy::lets_acks_wait), and challenge ACKs. So is everything if an
    /// egress scheduler has packets queued. [`TxReport::kept_acks`] tells whether some were held:
    /// **then another call must follow soon**, for no timer is set for them.
    #[must_use]
    pub const fn keeping_acks(mut self) -> Self {
        self.keeps_acks = true;
        self
    }

    /// The same, but new data of a connection that sent some with or after the last call without
    /// this waits until it fills a super-packet (or a segment, if the device takes no more), or the
    /// next call without this: for a driver that sends what an application has just written, and
    /// that runs again when the applications of this turn have. What is written while nothing is
    /// outstanding leaves at once, a FIN too; nothing waits if
    /// [`EndpointConfig::autocorking`](crate::EndpointConfig::autocorking) is off, or an egress
    /// scheduler has packets queued. [`TxReport::corked`] tells whether something waits: **then
    /// another call must follow soon**, for no timer is set for it.
    #[must_use]
    pub const fn corking(mut self) -> Self {
        self.corks = true;
        self
    }

    /// The same, but headers of connections' segments are handed out as [`TxPacket::fields`], if
    /// their options are in the standard layout and they are no SYNs: for a driver that gives them
    /// to [`Endpoint::ingest_segment`](crate::Endpoint::ingest_segment) as they are, or makes
    /// octets of them itself ([`emit_tcp`](crate::wire::emit_tcp)). Such a packet has no checksum.
    #[must_use]
    pub const fn taking_fields(mut self) -> Self {
        self.takes_fields = true;
        self
    }
}

/// What one call of [`Endpoint::transmit`](crate::Endpoint::transmit) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TxReport {
    /// Packets emitted.
    pub packets: usize,
    /// IP bytes emitted.
    pub bytes: u64,
    /// More could be sent at once: the budget ended the call.
    pub more: bool,
    /// Pure ACKs were held, as [`TxBudget::keeping_acks`] permits.
    pub kept_acks: bool,
    /// New data was held, as [`TxBudget::corking`] permits, in this call or since the last one
    /// without it.
    pub corked: bool,
}
