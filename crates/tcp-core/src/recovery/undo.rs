//! Undoing an unnecessary reduction.
//!
//! Two kinds of evidence. The Eifel test (RFC 3522, section 3.2): an ACK that advances SND.UNA
//! echoes a timestamp older than the first retransmission of the episode, so the original was only
//! late. And DSACK (RFC 2883, RFC 3708): every retransmission of the episode is reported as a
//! duplicate, even after the episode's end.
//!
//! Then the congestion control returns to its checkpoint, what was marked lost counts as in the
//! network again, and RACK is told that the path reorders. In an episode started by a timeout the
//! RTO response decides; it gets the same evidence in [`AckCx::facts`].

use super::LossRecovery;
use crate::policy::cc::Phase;
use crate::scoreboard::{AckCx, Scoreboard};
use crate::seq::SeqNum;

/// The retransmissions of an episode that DSACK may still report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UndoMark {
    /// SND.UNA at the start of the episode: DSACKs below it belong to an earlier one.
    from: SeqNum,
    /// Bytes retransmitted and not reported as duplicates.
    unreported: u32,
    /// Something was retransmitted.
    any: bool,
    /// A timeout started the episode: the RTO response decides on an undo.
    timeout: bool,
}

impl UndoMark {
    /// `bytes` were retransmitted.
    pub(crate) fn on_retransmitted(&mut self, bytes: u32) {
        self.any = true;
        self.unreported = self.unreported.saturating_add(bytes);
    }

    /// `[start, end)` arrived more than once.
    pub(crate) fn on_dsack(&mut self, start: SeqNum, end: SeqNum) {
        if end.gt(self.from) {
            self.unreported = self.unreported.saturating_sub(end.distance_from(start));
        }
    }

    /// Every retransmission was unnecessary.
    pub(crate) const fn all_reported(&self) -> bool {
        self.any && self.unreported == 0
    }
}

/// Evidence that fast recovery was unnecessary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UndoEvidence {
    pub(crate) test: UndoTest,
    /// The ACK echoes an original that its retransmission has overtaken: the path reorders.
    pub(crate) overtaken: bool,
}

/// The test that found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UndoTest {
    /// Every retransmission was reported as a duplicate.
    Dsack,
    /// The Eifel test, by an ACK of part of the episode.
    PartialEifel,
    /// The Eifel test, by an ACK of all of it.
    Eifel,
}

impl LossRecovery {
    /// An episode starts at `una`, with `again` bytes of earlier retransmissions in the network; a
    /// timeout in the middle of one takes it over. Called before [`begin`](Self::begin).
    pub(crate) fn arm_undo(&mut self, una: SeqNum, again: u32, timeout: bool) {
        let inherits = timeout && self.in_episode();
        match &mut self.undo {
            Some(mark) if inherits => mark.timeout = true,
            undo => *undo = Some(UndoMark { from: una, unreported: again, any: again > 0, timeout }),
        }
    }

    /// The peer received `[start, end)` more than once. True if all retransmissions of the episode
    /// have now been reported.
    pub(crate) fn on_dsack(&mut self, start: SeqNum, end: SeqNum) -> bool {
        let Some(mark) = &mut self.undo else { return false };
        mark.on_dsack(start, end);
        mark.all_reported()
    }

    /// The ACK's evidence, with SND.UNA now at `una`, that fast recovery was unnecessary. Called
    /// before loss detection.
    pub(crate) fn undo_evidence(&self, ack: &AckCx, una: SeqNum) -> Option<UndoEvidence> {
        let mark = self.undo.as_ref().filter(|mark| !mark.timeout && self.phase != Phase::Loss)?;
        // Only if SND.UNA advances is TSecr that of the segment that caused it (RFC 7323, section
        // 4.3). An ACK that reports a duplicate may be for the second copy (RFC 3522, section 3.2,
        // step 6).
        let overtaken = ack.acked() > 0
            && ack.facts.dsack.is_none()
            && self.phase == Phase::Recovery
            && ack.facts.echoes_original == Some(true);
        let test = if mark.all_reported() {
            UndoTest::Dsack
        } else if overtaken && una.lt(self.recovery_point) {
            UndoTest::PartialEifel
        } else if overtaken {
            UndoTest::Eifel
        } else {
            return None;
        };
        Some(UndoEvidence { test, overtaken })
    }

    /// The original was overtaken: this path reorders. True if that is news.
    pub(crate) fn on_reordering(&mut self, sack: bool) -> bool {
        let known = self.rack.path.reordering_seen();
        if !sack {
            self.on_overtaken();
        }
        if !known {
            self.rack.path.see_reordering();
        }
        !known
    }

    /// The current episode (or the last one) was unnecessary: nothing counts as lost. Returns the
    /// phase that ends, and the one that follows.
    pub(crate) fn take_back(&mut self, board: &mut Scoreboard, una: SeqNum) -> Option<(Phase, Phase)> {
        self.undo = None;
        if !self.in_episode() {
            return None;
        }
        let from = self.phase;
        board.unmark_lost();
        self.close(if board.tally().sacked > 0 { Phase::Disorder } else { Phase::Open });
        self.recovery_point = una - 1;
        Some((from, self.phase))
    }
}
