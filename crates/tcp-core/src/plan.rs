//! A packet that a connection wants to send: chosen by its halves, queued by the endpoint, built
//! only when it is sent.

use crate::id::ConnId;
use crate::packet::SendReason;
use crate::policy::sched::{Descriptor, DescriptorId, SegmentClass};
use crate::seq::SeqNum;
use crate::wire::Ecn;
use core::num::NonZeroU16;

/// A packet that a connection wants to send. Built only when it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Its kind, for the scheduler.
    pub(crate) class: SegmentClass,
    /// Why.
    pub(crate) reason: SendReason,
    /// First sequence number.
    pub(crate) seq: SeqNum,
    /// Payload bytes.
    pub(crate) len: u32,
    /// Payload bytes per wire segment, if it is a super-packet.
    pub(crate) segment_size: Option<NonZeroU16>,
    /// Carries our FIN.
    pub(crate) fin: bool,
    /// Ends a write that empties the send buffer.
    pub(crate) psh: bool,
    /// The scheduler marks it: it leaves with CE if it is ECN-capable.
    pub(crate) marked: bool,
}

impl Plan {
    /// A segment without data.
    pub(crate) const fn control(class: SegmentClass, reason: SendReason, seq: SeqNum) -> Self {
        Self { class, reason, seq, len: 0, segment_size: None, fin: false, psh: false, marked: false }
    }

    /// Sequence numbers that it occupies.
    pub(crate) fn seq_len(&self) -> u32 {
        self.len + u32::from(self.fin)
    }

    /// One past its last sequence number.
    pub(crate) fn end(&self) -> SeqNum {
        self.seq + self.seq_len()
    }

    /// Number of wire segments.
    pub(crate) fn segments(&self) -> u32 {
        self.segment_size.map_or(1, |size| self.len.div_ceil(u32::from(size.get())).max(1))
    }

    /// The first packet of a run: its first `len` payload bytes.
    pub(crate) fn first(&self, len: u32) -> Self {
        if len >= self.len {
            return *self;
        }
        let segment_size = self.segment_size.filter(|size| u32::from(size.get()) < len);
        Self { len, segment_size, fin: false, psh: false, ..*self }
    }

    /// One packet of a run: up to `len` payload bytes after the first `skip`.
    pub(crate) fn packet_at(&self, skip: u32, len: u32) -> Self {
        let rest = self.len.saturating_sub(skip);
        let rest = Self { seq: self.seq + skip, len: rest, ..*self };
        Self { segment_size: None, ..rest.first(len) }
    }

    /// True if the sender half made it: it carries stream bytes or a FIN, or probes the peer's
    /// window.
    pub(crate) const fn is_stream(&self) -> bool {
        matches!(self.class, SegmentClass::Data | SegmentClass::Retransmit)
            || matches!(self.reason, SendReason::Fin | SendReason::WindowProbe)
    }

    /// True if it has neither data nor FIN nor SYN: it only acknowledges, or probes.
    pub(crate) fn is_bare(&self) -> bool {
        !self.is_stream() && self.reason != SendReason::SynAck
    }

    /// Only data waits for the scheduler's permission, except the segment sent by an expired
    /// retransmission timer.
    pub(crate) fn may_be_deferred(&self) -> bool {
        self.class.is_data() && !self.reason.is_rto()
    }

    /// The codepoint that it leaves with, which is `codepoint` unless it is marked.
    pub(crate) fn mark(&self, codepoint: Ecn) -> Ecn {
        if self.marked && codepoint != Ecn::NotEct { Ecn::Ce } else { codepoint }
    }

    /// The scheduler's view of it, if it leaves with `codepoint`.
    pub(crate) fn descriptor(&self, conn: ConnId, serial: u64, price: u32, codepoint: Ecn) -> Descriptor {
        let mut id = DescriptorId::new(serial, self.seq, self.len);
        id.segment_size = self.segment_size;
        id.reason = self.reason;
        let mut descriptor = Descriptor::new(id, Some(conn), self.class, price);
        descriptor.segments = self.segments();
        descriptor.ecn = self.mark(codepoint);
        descriptor
    }
}
