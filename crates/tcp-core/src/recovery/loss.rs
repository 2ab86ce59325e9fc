//! Losses detected from an ACK.
//!
//! With SACK by time, see [`rack`](super::rack). With SACK by count (RFC 6675): data is lost if
//! three ranges, or more than two segments' bytes, are SACKed above it, or after three duplicate
//! ACKs. Without SACK (RFC 5681, RFC 6582): three duplicate ACKs mean that the head is lost, and in
//! recovery every partial ACK means that the next head is lost. On a path known to reorder by more,
//! the threshold is as high as the reordering it has shown ([`LossRecovery::on_overtaken`]). A
//! duplicate ACK without SACK takes a segment off pipe, which is equivalent to inflating the window
//! by it.

use super::rack::Clocks;
use super::{DUP_THRESH, LossRecovery};
use crate::policy::cc::Phase;
use crate::scoreboard::{AckCx, OnLost, Scoreboard};
use crate::seq::SeqNum;

/// How losses are detected on this connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossRules {
    /// SACK is in use.
    pub(crate) sack: bool,
    pub(crate) smss: u32,
    /// The clocks for detection by time; `None`: detection by count.
    pub(crate) clocks: Option<Clocks>,
}

/// The result of loss detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Bytes newly marked lost.
    pub(crate) newly_lost: u32,
    /// Segments among them that had been retransmitted.
    pub(crate) lost_again: u32,
    /// Fast recovery must begin.
    pub(crate) begin: bool,
}

impl LossRecovery {
    /// Marks as lost what the ACK proves lost, with SND.UNA now at `una`, and updates the phases
    /// below recovery.
    pub(crate) fn detect(
        &mut self,
        board: &mut Scoreboard,
        rules: &LossRules,
        una: SeqNum,
        ack: &AckCx,
        on_lost: OnLost<'_>,
    ) -> Finding {
        let mut finding = Finding::default();
        match &rules.clocks {
            Some(clocks) if rules.sack => {
                let overdue = self.rack.detect(board, self.in_episode(), clocks, on_lost);
                (finding.newly_lost, finding.lost_again) = (overdue.bytes, overdue.lost_again);
            }
            None if rules.sack => {
                finding.newly_lost = board.mark_lost_by_sack(DUP_THRESH, rules.smss, on_lost);
            }
            _ => {}
        }
        if ack.acked() > 0 {
            self.dup_acks = 0;
        } else if if rules.sack { ack.facts.newly_sacked > 0 } else { ack.facts.duplicate } {
            self.dup_acks += 1;
        }
        match self.phase {
            Phase::Open | Phase::Disorder => {
                if !rules.sack {
                    if ack.acked() > 0 {
                        board.clear_unnamed();
                    } else if ack.facts.duplicate {
                        board.add_unnamed(rules.smss);
                    }
                }
                let fresh = rules.sack || self.counts_duplicates(una);
                let thresh = if rules.sack { DUP_THRESH } else { self.rack.path.dup_thresh() };
                let counted = self.dup_acks >= thresh && fresh && rules.clocks.is_none();
                if counted {
                    // RFC 6675, section 5, step 4.3: the first segment is retransmitted whatever
                    // IsLost says.
                    finding.newly_lost += board.mark_head_lost(rules.smss, on_lost);
                }
                finding.begin = finding.newly_lost > 0 || counted;
                if !finding.begin {
                    let disorder = self.dup_acks > 0 || board.tally().sacked > 0;
                    self.phase = if disorder { Phase::Disorder } else { Phase::Open };
                }
            }
            Phase::Recovery if !rules.sack && una.lt(self.recovery_point) => {
                if ack.acked() > 0 {
                    // RFC 6582, section 3.2, step 3, partial acknowledgments.
                    board.resolve_unnamed(ack.acked(), rules.smss);
                    finding.newly_lost += board.mark_head_lost(rules.smss, on_lost);
                    self.forced = true;
                } else if ack.facts.duplicate {
                    board.add_unnamed(rules.smss);
                }
            }
            Phase::Recovery | Phase::Loss => {}
        }
        finding
    }

    /// Without SACK: the original of a fast retransmission has arrived, after the duplicate ACKs
    /// that started the episode and those since. To avoid treating the next segment that is equally
    /// late as lost, the threshold follows the path, as in RFC 4653 and Linux
    /// (`tcp_check_reno_reordering`).
    pub(crate) fn on_overtaken(&mut self) {
        let path = &mut self.rack.path;
        path.set_dup_thresh(path.dup_thresh().saturating_add(self.dup_acks).saturating_add(1));
    }

    /// Without SACK: a timeout had to repair a loss that duplicate ACKs beyond the usual threshold
    /// did not reveal. The threshold was too high, unless only [the end of the last
    /// episode](Self::counts_duplicates) kept them from counting (Linux, `tcp_enter_loss`, which is
    /// in Recovery then).
    pub(crate) fn on_timeout_for(&mut self, una: SeqNum, sack: bool) {
        let raised = !sack && self.rack.path.dup_thresh() > DUP_THRESH;
        if raised && !self.in_episode() && self.dup_acks >= DUP_THRESH && self.counts_duplicates(una) {
            self.rack.path.set_dup_thresh(DUP_THRESH);
        }
    }

    /// RFC 6582, section 3.2, step 2: duplicate ACKs caused by the retransmissions of the last
    /// episode prove nothing; the ACK must cover more than `recover`.
    fn counts_duplicates(&self, una: SeqNum) -> bool {
        una.gt(self.recovery_point)
    }

    /// Ends the episode if its recovery point is acknowledged. True if the phase changed.
    pub(crate) fn end_if_acknowledged(&mut self, una: SeqNum, board: &mut Scoreboard) -> bool {
        if !self.in_episode() || una.lt(self.recovery_point) {
            return false;
        }
        board.clear_unnamed();
        self.close(if board.tally().sacked > 0 { Phase::Disorder } else { Phase::Open });
        self.rack.on_recovery_exit();
        true
    }
}
