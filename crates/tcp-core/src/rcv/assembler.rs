//! Which bytes past RCV.NXT have arrived: reassembly, SACK (RFC 2018) and DSACK (RFC 2883).
//!
//! ```text
//!            RCV.NXT
//!   ────────────┬───────┬────────────┬─────────┬───────┬─────────────►  sequence space
//!    delivered  │ hole  │  range     │  hole   │ range │
//!   ────────────┴───────┴────────────┴─────────┴───────┴─────────────
//! ```
//!
//! The ranges are disjoint, do not touch each other, and all start past RCV.NXT. Their number is
//! limited, so a peer that sends every second byte costs a fixed amount of memory: a segment that
//! would need another range is refused, and the peer sends it again once the hole before it is
//! closed.
//!
//! The bytes themselves are in the receive buffer (`ByteRing::write_at`), or in [`Pieces`] if they
//! are far from it. For each acceptable segment with data the receiver first calls
//! [`Assembler::insert`], stores the bytes unless they were refused, and makes
//! [`Insertion::advance`] bytes readable. For an ACK it calls [`Assembler::sack_blocks`], and
//! [`Assembler::on_ack_sent`] once that ACK has been sent.

use super::pieces::Pieces;
use crate::seq::SeqNum;
use alloc::vec::Vec;

/// A contiguous block of data past RCV.NXT: `[start, end)`.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: SeqNum,
    end: SeqNum,
    /// Number of the latest segment in the block, counted modulo 2^32.
    stamp: u32,
}

/// The set of out-of-order data. See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Assembler {
    /// In order of sequence.
    ranges: Vec<Range>,
    /// Segments stamped, modulo 2^32.
    stamp: u32,
    /// Bytes in the ranges.
    bytes: u32,
    /// Those bytes that are not in the receive buffer.
    pub(super) far: Pieces,
    /// Duplicate data not reported yet (RFC 2883); empty if the ends are equal.
    duplicate: (SeqNum, SeqNum),
    /// Maximum number of ranges.
    max_ranges: u16,
    /// Report duplicates.
    dsack: bool,
}

/// What happened to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// It starts at or before RCV.NXT and extends past it, and nothing was out of order.
    InOrder,
    /// As [`Placement::InOrder`], and it closes all or part of the first hole (RFC 5681, section
    /// 4.2: acknowledge at once).
    FillsHole,
    /// It is past a hole, and touches no held range.
    NewRange,
    /// It is past a hole, and has new bytes that touch a held range.
    Extended,
    /// It brought nothing new.
    Duplicate,
    /// It would need more ranges than allowed: drop and count it. Nothing changed.
    Refused,
}

/// The result of [`Assembler::insert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Insertion {
    /// What became of the segment.
    pub(crate) placement: Placement,
    /// Bytes by which RCV.NXT advances; only non-zero for [`Placement::InOrder`] and
    /// [`Placement::FillsHole`].
    pub(crate) advance: u32,
    /// Bytes of the segment that had not arrived before.
    pub(crate) new_bytes: u32,
    /// Bytes of the segment that had arrived before, including those already delivered.
    pub(crate) duplicate_bytes: u32,
    /// Held ranges that the segment covers.
    pub(crate) covered: u32,
}

impl Assembler {
    /// An empty set of at most `max_ranges` ranges, without memory yet. `dsack`: report duplicates.
    pub(crate) const fn new(max_ranges: u16, dsack: bool) -> Self {
        Self {
            ranges: Vec::new(),
            stamp: 0,
            bytes: 0,
            far: Pieces::new(),
            duplicate: (SeqNum(0), SeqNum(0)),
            max_ranges,
            dsack,
        }
    }

    /// Bytes allocated, with those of this struct.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.ranges.capacity() * size_of::<Range>() + self.far.allocated()
    }

    /// True if nothing is out of order.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes out of order.
    pub(crate) const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The ranges `[start, end)`, in order of sequence.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SeqNum, SeqNum)> + '_ {
        self.ranges.iter().map(|range| (range.start, range.end))
    }

    /// Adds the data `[start, end)` of a segment. The part past RCV.NXT must be within the receive
    /// window, so that all distances are below 2^31. `rcv_nxt` is RCV.NXT before this segment; the
    /// caller adds [`Insertion::advance`] to it.
    pub(crate) fn insert(&mut self, rcv_nxt: SeqNum, start: SeqNum, end: SeqNum) -> Insertion {
        let mut inserted = Insertion {
            placement: Placement::Duplicate,
            advance: 0,
            new_bytes: 0,
            duplicate_bytes: 0,
            covered: 0,
        };
        let mut duplicate = (start, start.max(end.min(rcv_nxt)));
        inserted.duplicate_bytes = duplicate.1.distance_from(duplicate.0);
        let start = start.max(rcv_nxt);
        if start.ge(end) {
            self.note_duplicate(duplicate);
            return inserted;
        }

        // Ranges that overlap or touch the segment.
        let first = self.ranges.partition_point(|range| range.end.lt(start));
        let touched = self.ranges[first..].partition_point(|range| range.start.le(end));
        let last = first + touched;
        let mut held = 0;
        for range in &self.ranges[first..last] {
            let common = (range.start.max(start), range.end.min(end));
            let bytes = common.1.distance_from(common.0);
            if bytes > 0 && duplicate.0 == duplicate.1 {
                duplicate = common;
            }
            held += bytes;
            inserted.covered += u32::from(range.start.ge(start) && range.end.le(end));
        }
        inserted.new_bytes = end.distance_from(start) - held;
        inserted.duplicate_bytes += held;
        let reach = self.ranges[first..last].last().map_or(end, |range| range.end.max(end));

        if start == rcv_nxt {
            inserted.placement =
                if self.ranges.is_empty() { Placement::InOrder } else { Placement::FillsHole };
            inserted.advance = reach.distance_from(rcv_nxt);
            for range in self.ranges.drain(..last) {
                self.bytes -= range.end.distance_from(range.start);
            }
        } else if touched > 0 {
            if inserted.new_bytes > 0 {
                inserted.placement = Placement::Extended;
            }
            self.bytes += inserted.new_bytes;
            let from = self.ranges[first].start.min(start);
            self.ranges[first] = Range { start: from, end: reach, stamp: self.next_stamp() };
            self.ranges.drain(first + 1..last);
        } else if self.ranges.len() < usize::from(self.max_ranges) {
            inserted.placement = Placement::NewRange;
            self.bytes += inserted.new_bytes;
            let stamp = self.next_stamp();
            self.ranges.insert(first, Range { start, end, stamp });
        } else {
            inserted.placement = Placement::Refused;
            return inserted;
        }
        self.note_duplicate(duplicate);
        inserted
    }

    /// The blocks for a SACK option of up to `max` blocks, best first.
    ///
    /// If duplicate data has to be reported, the first block is its range (RFC 2883, section 4).
    /// The next one contains the latest segment, followed by the most recently reported blocks (RFC
    /// 2018, section 4), which are those with the latest segments.
    pub(crate) fn sack_blocks(&self, max: usize) -> impl Iterator<Item = (SeqNum, SeqNum)> + use<> {
        let mut blocks = [(SeqNum(0), SeqNum(0)); MAX_BLOCKS];
        let max = max.min(MAX_BLOCKS);
        let reported = usize::from(max > 0 && self.duplicate.0 != self.duplicate.1);
        if reported == 1 {
            blocks[0] = self.duplicate;
        }
        // Insertion into the few newest seen so far; `ages` counts segments back from the latest.
        let mut ages = [u32::MAX; MAX_BLOCKS];
        let mut count = reported;
        for range in &self.ranges {
            let age = self.stamp.wrapping_sub(range.stamp);
            if count == max && (count == reported || age >= ages[count - 1]) {
                continue;
            }
            count = max.min(count + 1);
            let mut slot = count - 1;
            while slot > reported && age < ages[slot - 1] {
                (ages[slot], blocks[slot]) = (ages[slot - 1], blocks[slot - 1]);
                slot -= 1;
            }
            (ages[slot], blocks[slot]) = (age, (range.start, range.end));
        }
        blocks.into_iter().take(count)
    }

    /// The duplicate data that the next ACK will report as its first block.
    pub(crate) fn duplicate(&self) -> Option<(SeqNum, SeqNum)> {
        (self.duplicate.0 != self.duplicate.1).then_some(self.duplicate)
    }

    /// An ACK was sent with the blocks of [`Assembler::sack_blocks`], which reported the duplicate;
    /// each is reported once (RFC 2883, section 4, rule 2).
    pub(crate) fn on_ack_sent(&mut self) {
        self.duplicate.0 = self.duplicate.1;
    }

    /// Remembers the first duplicate piece of a segment for the next ACK. RFC 2883, section 4, only
    /// reports the most recent segment. We keep an older duplicate until an ACK has reported it,
    /// because an ACK policy may withhold the ACK for longer than one segment; a newer one replaces
    /// it.
    fn note_duplicate(&mut self, piece: (SeqNum, SeqNum)) {
        if self.dsack && piece.0 != piece.1 {
            self.duplicate = piece;
        }
    }

    fn next_stamp(&mut self) -> u32 {
        self.stamp = self.stamp.wrapping_add(1);
        self.stamp
    }
}

/// Maximum blocks in a SACK option (RFC 2018, section 3).
const MAX_BLOCKS: usize = 4;

#[cfg(test)]
mod tests;
