//! One record of the scoreboard, its tags, and the sums over all of them.

use crate::seq::SeqNum;
use crate::time::Instant;

/// Tags of a record.
pub(super) mod tag {
    /// A SACK block covers it.
    pub(crate) const SACKED: u8 = 1;
    /// It is held to be lost.
    pub(crate) const LOST: u8 = 1 << 1;
    /// It left again, and that copy is held to be in the network.
    pub(crate) const AGAIN: u8 = 1 << 2;
    /// It left more than once: no RTT sample (Karn).
    pub(crate) const EVER_AGAIN: u8 = 1 << 3;
    /// Its retransmission waits in the egress scheduler.
    pub(crate) const RESERVED: u8 = 1 << 4;
    /// It left while the application limited the flow.
    pub(crate) const APP_LIMITED: u8 = 1 << 5;
    /// A SACK block has covered it, even if the tag was cleared since: it counts as delivered.
    pub(crate) const EVER_SACKED: u8 = 1 << 6;
}

/// One departure, or what is left of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// First sequence number.
    pub(crate) start: SeqNum,
    /// One past the last; a FIN counts.
    pub(crate) end: SeqNum,
    /// The last departure.
    pub(crate) stamp: Stamp,
    /// Payload bytes per wire segment; at least 1.
    pub(super) mss: u16,
    pub(super) tags: u8,
}

impl Record {
    /// Sequence numbers.
    pub(crate) const fn len(&self) -> u32 {
        self.end.distance_from(self.start)
    }

    /// Wire segments.
    pub(crate) fn segments(&self) -> u32 {
        let (len, mss) = (self.len(), u32::from(self.mss));
        if len <= mss { 1 } else { len.div_ceil(mss) }
    }

    /// Payload bytes of its largest packet.
    pub(crate) fn packet_len(&self) -> u16 {
        u16::try_from(self.len()).map_or(self.mss, |len| len.min(self.mss))
    }

    pub(super) const fn is(&self, tag: u8) -> bool {
        self.tags & tag != 0
    }

    pub(super) const fn set(&mut self, tag: u8, on: bool) {
        if on {
            self.tags |= tag;
        } else {
            self.tags &= !tag;
        }
    }

    /// It left more than once.
    pub(crate) const fn ever_retransmitted(&self) -> bool {
        self.is(tag::EVER_AGAIN)
    }

    /// A SACK block has covered it before: when it arrived, nobody knows any more.
    pub(crate) const fn ever_sacked(&self) -> bool {
        self.is(tag::EVER_SACKED)
    }

    /// A copy of it is held to be in the network; of what was SACKed before, one that left since.
    pub(crate) const fn left_again(&self) -> bool {
        self.is(tag::AGAIN)
    }

    /// It left while the application limited the flow.
    pub(crate) const fn app_limited(&self) -> bool {
        self.is(tag::APP_LIMITED)
    }

    /// Believed to be in the network, as its last departure.
    pub(super) const fn in_network(&self) -> bool {
        !self.is(tag::SACKED) && (!self.is(tag::LOST) || self.is(tag::AGAIN))
    }

    /// Lost, and not sent again since.
    pub(super) const fn wants_retransmission(&self) -> bool {
        self.is(tag::LOST) && self.tags & (tag::AGAIN | tag::RESERVED | tag::SACKED) == 0
    }
}

/// Bytes by tag, of all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// All.
    pub(crate) outstanding: u32,
    /// SACKed.
    pub(crate) sacked: u32,
    /// Wire segments SACKed.
    pub(super) sacked_segments: u32,
    /// Lost and not SACKed.
    pub(crate) lost: u32,
    /// Sent again and not SACKed, lost or not.
    pub(crate) again: u32,
    /// Lost, and neither sent again nor reserved.
    pub(crate) pending: u32,
    /// Retransmissions that wait in the egress scheduler.
    pub(crate) reserved: u32,
}

impl Tally {
    fn apply(&mut self, record: &Record, sign: impl Fn(&mut u32, u32)) {
        let len = record.len();
        sign(&mut self.outstanding, len);
        if record.is(tag::RESERVED) {
            sign(&mut self.reserved, len);
        }
        if record.is(tag::SACKED) {
            sign(&mut self.sacked, len);
            sign(&mut self.sacked_segments, record.segments());
            return;
        }
        if record.is(tag::LOST) {
            sign(&mut self.lost, len);
        }
        if record.is(tag::AGAIN) {
            sign(&mut self.again, len);
        }
        if record.wants_retransmission() {
            sign(&mut self.pending, len);
        }
    }

    pub(super) fn add(&mut self, record: &Record) {
        self.apply(record, |sum, len| *sum += len);
    }

    pub(super) fn remove(&mut self, record: &Record) {
        self.apply(record, |sum, len| *sum -= len);
    }
}

/// What a transmission remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp {
    /// When it left.
    pub(crate) sent_at: Instant,
    /// `delivered` then.
    pub(crate) delivered: u64,
    /// `delivered_at` then.
    pub(crate) delivered_at: Instant,
    /// `first_sent_at` then.
    pub(crate) first_sent_at: Instant,
    /// Bytes in the network just after it.
    pub(crate) in_flight: u32,
    /// The low bits of `lost` then.
    pub(crate) lost: u32,
}

/// RACK_sent_after: `a` left after `b`, or with it and behind it in the stream.
pub(crate) fn sent_after(a: (Instant, SeqNum), b: (Instant, SeqNum)) -> bool {
    a.0 > b.0 || (a.0 == b.0 && a.1.gt(b.1))
}
