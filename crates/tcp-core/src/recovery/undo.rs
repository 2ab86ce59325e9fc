//! Taking back a reduction that proves needless.
//!
//! Two kinds of evidence. The Eifel test (RFC 3522, section 3.2): an ACK that advances SND.UNA echoes a timestamp
//! older than the first retransmission of the episode, so that the original was only late. And DSACK (RFC 2883,
//! RFC 3708): every retransmission of the episode is reported as a duplicate, be it after the episode's end.
//!
//! Then the congestion control returns to its checkpoint, what was marked lost counts as being in the network
//! again, and RACK knows that the path reorders. In an episode that a timeout began the decision is the RTO
//! response's, which hears of the same evidence in [`AckCx::facts`].

use super::LossRecovery;
use crate::policy::cc::Phase;
use crate::scoreboard::{AckCx, Scoreboard};
use crate::seq::SeqNum;

/// The retransmissions of an episode that a DSACK may still report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UndoMark {
    /// SND.UNA when the episode began: what DSACK reports below it belongs to an earlier one.
    from: SeqNum,
    /// Bytes retransmitted and not reported as duplicates.
    unreported: u32,
    /// Something was retransmitted.
    any: bool,
    /// A timeout began the episode: its undoing is the RTO response's.
    timeout: bool,
}

impl UndoMark {
    /// `bytes` left again.
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

    /// Every retransmission was needless.
    pub(crate) const fn all_reported(&self) -> bool {
        self.any && self.unreported == 0
    }
}

/// What shows that fast recovery was needless.
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
    /// An episode begins at `una`, with `again` bytes of earlier retransmissions in the network; a timeout in the
    /// middle of one takes it over. Called before [`begin`](Self::begin).
    pub(crate) fn arm_undo(&mut self, una: SeqNum, again: u32, timeout: bool) {
        let inherits = timeout && self.in_episode();
        match &mut self.undo {
            Some(mark) if inherits => mark.timeout = true,
            undo => *undo = Some(UndoMark { from: una, unreported: again, any: again > 0, timeout }),
        }
    }

    /// The peer received `[start, end)` more than once. True if every retransmission of the episode has been
    /// reported now.
    pub(crate) fn on_dsack(&mut self, start: SeqNum, end: SeqNum) -> bool {
        let Some(mark) = &mut self.undo else { return false };
        mark.on_dsack(start, end);
        mark.all_reported()
    }

    /// What of the ACK, which has left SND.UNA at `una`, proves that fast recovery was needless. Asked before loss
    /// detection.
    pub(crate) fn undo_evidence(&self, ack: &AckCx, una: SeqNum) -> Option<UndoEvidence> {
        let mark = self.undo.as_ref().filter(|mark| !mark.timeout && self.phase != Phase::Loss)?;
        // Only where SND.UNA advances, TSecr is that of the segment that let it (RFC 7323, section 4.3). An ACK that
        // reports a duplicate may be that of the second copy (RFC 3522, section 3.2, step 6).
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

    /// The original was overtaken: this path reorders. True if it was not known to.
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

    /// The episode at hand (or the last one) was needless: nothing is held to be lost. The phase that it ends, and the
    /// one that follows.
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
