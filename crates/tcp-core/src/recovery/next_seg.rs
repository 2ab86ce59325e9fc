//! What to send in recovery: NextSeg of RFC 6675, section 4. Rule 2, new data, is left to the
//! caller.

use super::LossRecovery;
use crate::policy::cc::Phase;
use crate::scoreboard::Scoreboard;
use crate::seq::SeqNum;

/// A piece of outstanding data to retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retransmission {
    pub(crate) start: SeqNum,
    pub(crate) end: SeqNum,
}

impl LossRecovery {
    /// Rules 3 and 4, if no lost data is left and no new data may be sent: data that may be lost,
    /// and once per episode the end of the outstanding data, whose loss nothing could reveal. At
    /// most `max` bytes.
    pub(crate) fn speculative(&self, board: &Scoreboard, max: u32) -> Option<Retransmission> {
        if self.phase != Phase::Recovery || board.highest_sacked().is_none() {
            return None;
        }
        if let Some((start, end)) = board.next_hole(self.high_rxt, max) {
            return Some(Retransmission { start, end });
        }
        if self.rescued {
            return None;
        }
        let (start, end) = board.rescue(max)?;
        Some(Retransmission { start, end })
    }

    /// `[start, end)` was retransmitted, or is queued in the egress scheduler.
    pub(crate) fn on_retransmission(&mut self, start: SeqNum, end: SeqNum, board: &Scoreboard) {
        self.forced = false;
        if self.phase != Phase::Recovery {
            return;
        }
        // A rescue is above everything reported by SACK, or repeats a retransmission. It does not
        // move HighRxt (rule 4).
        if start.lt(self.high_rxt) || board.highest_sacked().is_some_and(|highest| start.ge(highest)) {
            self.rescued = true;
        } else {
            self.high_rxt = self.high_rxt.max(end);
        }
    }
}
