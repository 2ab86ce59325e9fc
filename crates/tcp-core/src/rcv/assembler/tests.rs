use super::{Assembler, Insertion, MAX_BLOCKS, Placement};
use crate::seq::SeqNum;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

/// A receiver that acknowledges every segment.
struct Receiver {
    assembler: Assembler,
    rcv_nxt: SeqNum,
}

impl Receiver {
    fn new(rcv_nxt: u32) -> Self {
        Self { assembler: Assembler::new(64, true), rcv_nxt: SeqNum(rcv_nxt) }
    }

    fn segment(&mut self, start: u32, end: u32) -> Insertion {
        let inserted = self.assembler.insert(self.rcv_nxt, SeqNum(start), SeqNum(end));
        self.rcv_nxt += inserted.advance;
        inserted
    }

    /// The ACK number and the blocks of the ACK for a segment; the ACK is sent.
    fn ack_for(&mut self, start: u32, end: u32) -> (u32, Vec<(u32, u32)>) {
        self.segment(start, end);
        let blocks = self.assembler.sack_blocks(MAX_BLOCKS).map(|(start, end)| (start.0, end.0)).collect();
        self.assembler.on_ack_sent();
        (self.rcv_nxt.0, blocks)
    }
}

#[test]
fn rfc_2018_first_segment_lost() {
    let mut receiver = Receiver::new(5000);
    for end in [6000, 6500, 7000, 7500, 8000, 8500, 9000] {
        assert_eq!(receiver.ack_for(end - 500, end), (5000, vec![(5500, end)]));
    }
}

#[test]
fn rfc_2018_every_second_segment_lost() {
    let mut receiver = Receiver::new(5000);
    assert_eq!(receiver.ack_for(5000, 5500), (5500, vec![]));
    assert_eq!(receiver.ack_for(6000, 6500), (5500, vec![(6000, 6500)]));
    assert_eq!(receiver.ack_for(7000, 7500), (5500, vec![(7000, 7500), (6000, 6500)]));
    assert_eq!(receiver.ack_for(8000, 8500), (5500, vec![(8000, 8500), (7000, 7500), (6000, 6500)]));
    assert_eq!(receiver.ack_for(6500, 7000), (5500, vec![(6000, 7500), (8000, 8500)]));
    assert_eq!(receiver.ack_for(5500, 6000), (7500, vec![(8000, 8500)]));
}

#[test]
fn rfc_2883_duplicate_below_the_ack() {
    let mut receiver = Receiver::new(3000);
    receiver.ack_for(3000, 3500);
    receiver.ack_for(3500, 4000);
    assert_eq!(receiver.ack_for(3000, 3500), (4000, vec![(3000, 3500)]));
    assert_eq!(receiver.ack_for(4500, 5000), (4000, vec![(4500, 5000)]), "reported once");
    assert_eq!(receiver.ack_for(3000, 3500), (4000, vec![(3000, 3500), (4500, 5000)]));
}

#[test]
fn rfc_2883_duplicate_of_an_out_of_order_segment() {
    let mut receiver = Receiver::new(4000);
    assert_eq!(receiver.ack_for(4500, 5000), (4000, vec![(4500, 5000)]));
    assert_eq!(receiver.ack_for(5000, 5500), (4000, vec![(4500, 5500)]));
    assert_eq!(receiver.ack_for(5000, 5500), (4000, vec![(5000, 5500), (4500, 5500)]));
}

#[test]
fn rfc_2883_partial_duplicates() {
    let mut receiver = Receiver::new(500);
    assert_eq!(receiver.ack_for(500, 1000), (1000, vec![]));
    assert_eq!(receiver.ack_for(2000, 2500), (1000, vec![(2000, 2500)]));
    assert_eq!(receiver.ack_for(1000, 1500), (1500, vec![(2000, 2500)]));
    assert_eq!(receiver.ack_for(1000, 2000), (2500, vec![(1000, 1500)]));
    // Two duplicate pieces in one segment: the first is reported.
    receiver.ack_for(3000, 3500);
    receiver.ack_for(4000, 4500);
    assert_eq!(receiver.ack_for(3000, 5000), (2500, vec![(3000, 3500), (3000, 5000)]));
}

#[test]
fn duplicate_is_reported_also_after_later_segments_of_the_same_ack() {
    let mut receiver = Receiver::new(1000);
    receiver.segment(500, 1000);
    assert_eq!(receiver.ack_for(1000, 2000), (2000, vec![(500, 1000)]));
    assert_eq!(receiver.ack_for(2000, 3000), (3000, vec![]));
}

#[test]
fn dsack_can_be_off() {
    let mut assembler = Assembler::new(64, false);
    assembler.insert(SeqNum(1000), SeqNum(500), SeqNum(600));
    assert_eq!(assembler.sack_blocks(4).count(), 0);
}

#[test]
fn one_range_more_than_allowed_is_refused_but_holes_still_close() {
    let mut assembler = Assembler::new(2, true);
    let at = SeqNum(0);
    assert_eq!(assembler.insert(at, SeqNum(10), SeqNum(20)).placement, Placement::NewRange);
    assert_eq!(assembler.insert(at, SeqNum(30), SeqNum(40)).placement, Placement::NewRange);
    let refused = assembler.insert(at, SeqNum(50), SeqNum(60));
    assert_eq!((refused.placement, refused.advance), (Placement::Refused, 0));
    assert_eq!(assembler.iter().collect::<Vec<_>>(), [(SeqNum(10), SeqNum(20)), (SeqNum(30), SeqNum(40))]);
    assert_eq!(assembler.insert(at, SeqNum(20), SeqNum(25)).placement, Placement::Extended);
    let fills = assembler.insert(at, SeqNum(0), SeqNum(5));
    assert_eq!((fills.placement, fills.advance), (Placement::FillsHole, 5));
    let fills = assembler.insert(SeqNum(5), SeqNum(5), SeqNum(30));
    assert_eq!((fills.advance, fills.new_bytes, fills.duplicate_bytes), (35, 10, 15));
    assert!(assembler.is_empty());
}

#[test]
fn idle_assembler_has_no_memory() {
    let mut receiver = Receiver::new(0);
    for start in (0..10_000).step_by(1000) {
        assert_eq!(receiver.segment(start, start + 1000).placement, Placement::InOrder);
    }
    assert_eq!(receiver.assembler.ranges.capacity(), 0);
    assert!(size_of::<Assembler>() <= 88);
}

/// The model: for every byte past RCV.NXT that has arrived, the number of the latest segment that
/// held it.
#[derive(Default)]
struct Model {
    bytes: BTreeMap<u32, usize>,
    rcv_nxt: u32,
}

impl Model {
    /// Runs `(start, end, latest segment)`, in order.
    fn ranges(&self) -> Vec<(u32, u32, usize)> {
        let mut ranges: Vec<(u32, u32, usize)> = vec![];
        for (&byte, &segment) in &self.bytes {
            match ranges.last_mut() {
                Some(range) if range.1 == byte => *range = (range.0, byte + 1, range.2.max(segment)),
                _ => ranges.push((byte, byte + 1, segment)),
            }
        }
        ranges
    }

    fn arrived(&self, byte: u32) -> bool {
        byte < self.rcv_nxt || self.bytes.contains_key(&byte)
    }
}

proptest! {
    #[test]
    fn agrees_with_a_set_of_bytes(
        origin: u32,
        max_ranges in 1u16..8,
        segments in prop::collection::vec((-20i64..120, 1u32..25, 0usize..6, any::<bool>()), 1..120),
    ) {
        // The model counts from 100, so that segments may lie before RCV.NXT.
        let mut model = Model { rcv_nxt: 100, ..Model::default() };
        let mut assembler = Assembler::new(max_ranges, true);
        let seq = |byte: u32| SeqNum(origin) + byte;
        let mut pending = None;
        for (number, (offset, len, max_blocks, send_ack)) in segments.into_iter().enumerate() {
            let start = (i64::from(model.rcv_nxt) + offset) as u32;
            let end = start + len;
            let inserted = assembler.insert(seq(model.rcv_nxt), seq(start), seq(end));

            let old: Vec<u32> = (start..end).filter(|byte| model.arrived(*byte)).collect();
            let before = model.ranges();
            let saved = model.bytes.clone();
            for byte in start.max(model.rcv_nxt)..end {
                model.bytes.insert(byte, number);
            }
            let refused = model.ranges().len() > usize::from(max_ranges)
                && !model.bytes.contains_key(&model.rcv_nxt);
            if refused {
                model.bytes = saved;
                prop_assert_eq!(inserted.placement, Placement::Refused);
                prop_assert_eq!(inserted.advance, 0);
            } else {
                if let Some(&first) = old.first() {
                    let run = old.iter().zip(first..).take_while(|(byte, expected)| **byte == *expected);
                    pending = Some((first, first + run.count() as u32));
                }
                let mut advance = 0;
                while model.bytes.remove(&(model.rcv_nxt + advance)).is_some() {
                    advance += 1;
                }
                let expected = if advance > 0 {
                    if before.is_empty() { Placement::InOrder } else { Placement::FillsHole }
                } else if old.len() as u32 == len {
                    Placement::Duplicate
                } else if model.ranges().len() > before.len() {
                    Placement::NewRange
                } else {
                    Placement::Extended
                };
                prop_assert_eq!(inserted, Insertion {
                    placement: expected,
                    advance,
                    new_bytes: len - old.len() as u32,
                    duplicate_bytes: old.len() as u32,
                    covered: before.iter().filter(|range| range.0 >= start && range.1 <= end).count() as u32,
                });
                model.rcv_nxt += advance;
            }

            let mut ranges = model.ranges();
            let held: Vec<_> = ranges.iter().map(|range| (seq(range.0), seq(range.1))).collect();
            prop_assert_eq!(assembler.iter().collect::<Vec<_>>(), held);
            prop_assert_eq!(assembler.iter().count(), ranges.len());
            ranges.sort_by_key(|range| core::cmp::Reverse(range.2));
            let blocks: Vec<_> = pending
                .into_iter()
                .chain(ranges.into_iter().map(|range| (range.0, range.1)))
                .take(max_blocks.min(MAX_BLOCKS))
                .map(|(start, end)| (seq(start), seq(end)))
                .collect();
            prop_assert_eq!(assembler.sack_blocks(max_blocks).collect::<Vec<_>>(), blocks);
            if send_ack {
                assembler.on_ack_sent();
                pending = None;
            }
        }
    }
}
