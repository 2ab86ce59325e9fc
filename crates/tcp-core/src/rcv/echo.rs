//! ECN at the receiver: which ACKs carry ECE, and up to where they acknowledge.
//!
//! RFC 3168, section 6.1.3: after a marked segment every ACK carries ECE, until a segment with CWR
//! arrives.
//!
//! RFC 8257, section 3.2: ECE gives the mark of the data that an ACK covers. An ACK for several
//! segments can only report one mark, so none may span a change:
//!
//! ```text
//!   data    1   2   3ᶜ  4ᶜ  5               (ᶜ: marked)
//!   turns         ▲       ▲
//!   ACKs          2       4ᴱ  5             (ᴱ: with ECE)
//! ```
//!
//! The section makes the first of the two ACKs at a change optional; but without it the sender
//! would attribute held-back data to the kind that came after it.

use crate::config::Ecn;
use crate::counters::Counters;
use crate::seq::SeqNum;

/// Maximum changes waiting for their ACK. Beyond that two runs are reported as one.
const MAX_TURNS: usize = 8;

/// ECN state of a receiver.
#[derive(Debug)]
pub(super) struct Echo {
    /// Wire segments with data that were marked.
    pub(super) marked: u64,
    /// RCV.NXT at each change that no ACK has reported yet, oldest first; the first `waiting` are
    /// in use.
    turns: [SeqNum; MAX_TURNS],
    waiting: u8,
    /// RFC 8257; otherwise RFC 3168.
    accurate: bool,
    /// DCTCP.CE of RFC 8257; or a mark is waiting for CWR.
    ce: bool,
}

/// The marks of an arriving data segment, and the receiver's state.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkedArrival {
    /// The IP header carried CE.
    pub(super) ce: bool,
    /// CWR was set.
    pub(super) cwr: bool,
    /// Number of wire segments.
    pub(super) segments: u32,
    /// RCV.NXT before the segment.
    pub(super) rcv_nxt: SeqNum,
    /// Highest acknowledgment number sent.
    pub(super) highest_ack: SeqNum,
}

impl Echo {
    pub(super) fn new(mode: Ecn) -> Self {
        Self { marked: 0, turns: [SeqNum(0); MAX_TURNS], waiting: 0, accurate: mode == Ecn::Dctcp, ce: false }
    }

    pub(super) const fn mode(&self) -> Ecn {
        if self.accurate { Ecn::Dctcp } else { Ecn::Classic }
    }

    /// Acceptable data arrived; RCV.NXT has not moved yet. (RFC 3168, section 6.1.5: marks of
    /// segments outside the window are ignored.)
    pub(super) fn on_data(&mut self, counters: &mut Counters, arrival: &MarkedArrival) {
        self.marked += if arrival.ce { u64::from(arrival.segments) } else { 0 };
        if !self.accurate {
            // RFC 3168, section 6.1.3: CWR ends the echo of older marks; a mark on the same segment
            // starts a new one.
            self.ce = arrival.ce || (self.ce && !arrival.cwr);
        } else if arrival.ce != self.ce {
            self.ce = arrival.ce;
            self.turn(counters, arrival);
        }
    }

    fn turn(&mut self, counters: &mut Counters, arrival: &MarkedArrival) {
        // If nothing waits for an ACK, there is nothing to separate.
        if self.waiting == 0 && arrival.rcv_nxt == arrival.highest_ack {
            return;
        }
        let waiting = usize::from(self.waiting);
        if waiting > 0 && self.turns.get(waiting - 1) == Some(&arrival.rcv_nxt) {
            // Changed and changed back with no in-order data in between.
            self.waiting -= 1;
            return;
        }
        if waiting == MAX_TURNS {
            self.turns.copy_within(2.., 0);
            self.waiting -= 2;
            counters.tcp_ce_turns_merged += 1;
        }
        if let Some(slot) = self.turns.get_mut(usize::from(self.waiting)) {
            *slot = arrival.rcv_nxt;
            self.waiting += 1;
        }
    }

    /// The acknowledgment number of the next ACK, and whether it carries ECE.
    pub(super) fn next(&self, rcv_nxt: SeqNum) -> (SeqNum, bool) {
        match self.turns.first() {
            Some(&turn) if self.waiting > 0 => (turn, self.ce ^ (self.waiting % 2 == 1)),
            _ => (rcv_nxt, self.ce),
        }
    }

    /// An ACK up to `ack` was sent. True if another one must follow.
    pub(super) fn on_ack_sent(&mut self, ack: SeqNum) -> bool {
        let told = self.waiting > 0 && self.turns.first() == Some(&ack);
        if told {
            self.turns.copy_within(1.., 0);
            self.waiting -= 1;
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The ACKs for segments of one byte each: after the segments in a group,
    /// `(acknowledgment number, ECE)` of all that are then sent.
    fn acks(mode: Ecn, groups: &[&str]) -> Vec<Vec<(u32, bool)>> {
        let mut echo = Echo::new(mode);
        let mut counters = Counters::default();
        let (mut rcv_nxt, mut highest_ack) = (SeqNum(0), SeqNum(0));
        groups
            .iter()
            .map(|group| {
                for letter in group.chars() {
                    let (ce, cwr) = (matches!(letter, 'c' | 'b'), matches!(letter, 'w' | 'b'));
                    echo.on_data(
                        &mut counters,
                        &MarkedArrival { ce, cwr, segments: 1, rcv_nxt, highest_ack },
                    );
                    rcv_nxt += u32::from(letter != 'o');
                }
                let mut sent = Vec::new();
                loop {
                    let (ack, ece) = echo.next(rcv_nxt);
                    sent.push((ack.0, ece));
                    highest_ack = ack;
                    if !echo.on_ack_sent(ack) {
                        return sent;
                    }
                }
            })
            .collect()
    }

    #[test]
    fn a_classic_receiver_echoes_until_cwr() {
        // c: marked, w: CWR, b: both, -: neither.
        let got = acks(Ecn::Classic, &["-", "c", "-", "w", "-", "b", "-", "cw", "wc"]);
        let ece: Vec<bool> = got.iter().map(|acks| acks[0].1).collect();
        assert_eq!(ece, [false, true, true, false, false, true, true, false, true]);
        assert!(got.iter().all(|acks| acks.len() == 1));
    }

    #[test]
    fn a_dctcp_receiver_never_acknowledges_across_a_change() {
        /// Groups of arrivals, and the ACKs after each.
        type Case = (&'static [&'static str], &'static [&'static [(u32, bool)]]);
        let table: &[Case] = &[
            (&["--"], &[&[(2, false)]]),
            (&["cc"], &[&[(2, true)]]),
            // What was held back is told apart from what follows.
            (&["--ccc-"], &[&[(2, false), (5, true), (6, false)]]),
            // Nothing was held back when the mark came.
            (&["--", "c", "c", "-"], &[&[(2, false)], &[(3, true)], &[(4, true)], &[(5, false)]]),
            // CWR has no say.
            (&["c", "w"], &[&[(1, true)], &[(2, false)]]),
            (&["c", "b"], &[&[(1, true)], &[(2, true)]]),
        ];
        for (groups, expected) in table {
            assert_eq!(acks(Ecn::Dctcp, groups), *expected, "{groups:?}");
        }
    }

    #[test]
    fn too_many_changes_keep_the_last_state() {
        let mut counters = Counters::default();
        let mut echo = Echo::new(Ecn::Dctcp);
        for i in 0..101_u32 {
            let arrival = MarkedArrival {
                ce: i % 2 == 0,
                cwr: false,
                segments: 1,
                rcv_nxt: SeqNum(i),
                highest_ack: SeqNum(0),
            };
            echo.on_data(&mut counters, &arrival);
        }
        assert!(counters.tcp_ce_turns_merged > 0);
        let mut sent = Vec::new();
        loop {
            let (ack, ece) = echo.next(SeqNum(101));
            sent.push((ack.0, ece));
            if !echo.on_ack_sent(ack) {
                break;
            }
        }
        assert_eq!(sent.last(), Some(&(101, true)));
        assert!(sent.len() <= MAX_TURNS + 1, "{sent:?}");
        assert!(sent.is_sorted(), "{sent:?}");
        assert_eq!(echo.marked, 51);
    }
}
