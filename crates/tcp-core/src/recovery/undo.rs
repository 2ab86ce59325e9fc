//! Taking back a reduction that proves needless.
//!
//! Two kinds of evidence. The Eifel test (RFC 3522, section 3.2): an ACK that advances SND.UNA echoes a timestamp
//! older than the first retransmission of the episode, so that the original was only late. And DSACK (RFC 2883,
//! RFC 3708): every retransmission of the episode is reported as a duplicate, be it after the episode's end.
//!
//! Then the congestion control returns to its checkpoint, what was marked lost counts as being in the network
//! again, and RACK knows that the path reorders. In an episode that a timeout began the decision is the RTO
//! response's, which hears of the same evidence in [`AckFacts`].

use super::Recovery;
use crate::ctx::Ctx;
use crate::events::TraceEvent;
use crate::policy::cc::{Phase, Undo};
use crate::policy::rto::AckFacts;
use crate::seq::SeqNum;
use crate::snd::Sender;

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

impl Recovery {
    /// An episode begins at `una`, with `again` bytes of earlier retransmissions in the network; a timeout in the
    /// middle of one takes it over. Called before [`begin`](Self::begin).
    pub(crate) fn arm_undo(&mut self, una: SeqNum, again: u32, timeout: bool) {
        let inherits = timeout && self.in_episode();
        match &mut self.undo {
            Some(mark) if inherits => mark.timeout = true,
            undo => *undo = Some(UndoMark { from: una, unreported: again, any: again > 0, timeout }),
        }
    }

    /// The peer received `[start, end)` more than once.
    pub(crate) fn note_dsack(&mut self, start: SeqNum, end: SeqNum, facts: &mut AckFacts) {
        facts.dsack = Some((start, end));
        if let Some(mark) = &mut self.undo {
            mark.on_dsack(start, end);
            facts.all_dsacked = mark.all_reported();
        }
    }
}

impl Sender {
    /// Takes fast recovery back where the ACK proves that it was needless. Called before loss detection.
    pub(crate) fn undo_if_needless(&mut self, ctx: &mut Ctx<'_>, facts: &AckFacts) {
        let (una, sack) = (self.snd_una, self.has_sack());
        let Some(flight) = self.flight.as_deref_mut() else { return };
        let recovery = &flight.recovery;
        let Some(mark) = recovery.undo.filter(|mark| !mark.timeout && recovery.phase != Phase::Loss) else {
            return;
        };
        // Only where SND.UNA advances, TSecr is that of the segment that let it (RFC 7323, section 4.3). An ACK that
        // reports a duplicate may be that of the second copy (RFC 3522, section 3.2, step 6).
        let echoes = facts.acked > 0
            && facts.dsack.is_none()
            && recovery.phase == Phase::Recovery
            && facts.echoes_original == Some(true);
        let counter = if mark.all_reported() {
            &mut ctx.counters.tcp_dsack_undo
        } else if echoes && una.lt(recovery.recovery_point) {
            &mut ctx.counters.tcp_partial_undo
        } else if echoes {
            &mut ctx.counters.tcp_full_undo
        } else {
            return;
        };
        *counter += 1;
        // The original was overtaken: this path reorders.
        let seen = recovery.rack.path.reordering_seen();
        if echoes && !sack {
            flight.recovery.on_overtaken();
        }
        if echoes && !seen {
            flight.recovery.rack.path.see_reordering();
            ctx.counters.tcp_ts_reorder += 1;
        }
        self.take_back(ctx, &Undo::All);
    }

    /// The episode at hand (or the last one) was needless: congestion control undoes it by `undo`, and nothing is
    /// held to be lost.
    pub(crate) fn take_back(&mut self, ctx: &mut Ctx<'_>, undo: &Undo) {
        let una = self.snd_una;
        if let Some(flight) = self.flight.as_deref_mut() {
            let from = flight.recovery.phase;
            if flight.recovery.in_episode() {
                flight.board.unmark_lost();
                let to = if flight.board.tally().sacked > 0 { Phase::Disorder } else { Phase::Open };
                flight.recovery.close(to);
                flight.recovery.recovery_point = una - 1;
                ctx.trace(|| TraceEvent::Phase { from, to });
            }
            flight.recovery.undo = None;
        }
        ctx.trace(|| TraceEvent::Undo);
        let view = self.flow_view(ctx.now);
        if let Some(cc) = self.cc.as_deref_mut() {
            cc.undo(&view, undo);
        }
    }
}
