//! RACK: loss detection by time (RFC 8985, section 6).
//!
//! A segment is lost if it was sent before one that has arrived, and is itself unreported although
//! a round trip and a reordering window have passed since it was sent. This also holds for
//! retransmissions, so that a lost one is detected without a timeout.
//!
//! ```text
//!        left                     RACK.xmit_ts                 now
//!   ──────┬────────────────────────────┬────────────────────────┬──► time
//!         │◄──────────── RACK.rtt + reo_wnd ────────────►│
//!         a segment not reported by now is lost ─────────┘
//! ```
//!
//! Steps 1 to 5 are those of section 6.2. One deviation: if several segments wait for their
//! reordering windows, step 5 waits for the last of them; this waits for the first, then for the
//! next. So no segment is retransmitted later, and the scoreboard's time-ordered queue gives the
//! first in O(1).
//!
//! Fails if a path's delay jumps by more than the window: then undo repairs the damage, and DSACK
//! widens the window for the future.

use crate::scoreboard::{AckCx, OnLost, OverdueData, Scoreboard, sent_after};
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use core::num::NonZeroU8;

/// Recoveries without DSACK after which a widened window falls back (RACK.reo_wnd_persist).
const PERSIST: u8 = 16;
/// Number of SACKed segments from which a path that never reordered gets no reordering window.
const DUP_THRESH: u32 = super::DUP_THRESH;

/// Loss detection's knowledge of the path, beyond one flight of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathMemory {
    /// Set if the path was seen to reorder. The value is that of [`dup_thresh`](Self::dup_thresh).
    reordering: Option<NonZeroU8>,
    /// RACK.reo_wnd_mult, at least 1.
    mult: u8,
    /// RACK.reo_wnd_persist.
    persist: u8,
}

impl Default for PathMemory {
    fn default() -> Self {
        Self { reordering: None, mult: 1, persist: PERSIST }
    }
}

impl PathMemory {
    /// RACK.reordering_seen.
    pub(crate) const fn reordering_seen(&self) -> bool {
        self.reordering.is_some()
    }

    /// The path was seen to reorder.
    pub(crate) fn see_reordering(&mut self) {
        self.set_dup_thresh(self.dup_thresh());
    }

    /// Number of duplicate ACKs that prove a loss without SACK: at least [`DUP_THRESH`], and at
    /// most 255 (Linux, `tcp_max_reordering`: 300).
    pub(crate) fn dup_thresh(&self) -> u32 {
        self.reordering.map_or(DUP_THRESH, |thresh| u32::from(thresh.get()))
    }

    /// The path reorders, and `thresh` duplicate ACKs prove a loss.
    pub(crate) fn set_dup_thresh(&mut self, thresh: u32) {
        self.reordering = u8::try_from(thresh).map_or(Some(NonZeroU8::MAX), NonZeroU8::new);
    }
}

/// The variables of section 5.3.
#[derive(Debug)]
pub(crate) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: the newest departure that is known to have arrived.
    latest: Option<(Instant, SeqNum)>,
    /// RACK.rtt.
    rtt: Duration,
    /// RACK.fack: the highest sequence number that is known to have arrived.
    fack: SeqNum,
    /// RACK.dsack_round.
    dsack_round: Option<SeqNum>,
    /// The current ACK has widened the window.
    widened: bool,
    pub(crate) path: PathMemory,
    /// When the next reordering window ends; [`Instant::FAR_FUTURE`] if none is running.
    pub(crate) reorder_at: Instant,
}

/// The inputs of the reordering window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub(crate) now: Instant,
    /// RACK.min_RTT.
    pub(crate) min_rtt: Option<Duration>,
    pub(crate) srtt: Option<Duration>,
}

impl Rack {
    pub(crate) const fn new(una: SeqNum, path: PathMemory) -> Self {
        Self {
            latest: None,
            rtt: Duration::ZERO,
            fack: una,
            dsack_round: None,
            widened: false,
            path,
            reorder_at: Instant::FAR_FUTURE,
        }
    }

    /// Steps 2 and 3: the newest arrival, and whether the path reorders. True if this ACK shows
    /// that it does.
    pub(crate) fn on_arrival(&mut self, ack: &AckCx) -> bool {
        // Step 3 takes the segments of one ACK in ascending order, so that only what lies below the
        // highest of earlier ACKs was reordered.
        let overtaken = ack.rack.lowest.is_some_and(|lowest| lowest.lt(self.fack));
        if overtaken {
            self.path.see_reordering();
        }
        if let Some(highest) = ack.rack.highest {
            self.fack = self.fack.max(highest);
        }
        // Step 2: RACK.rtt is set by each newly acknowledged segment in turn, and the RFC leaves
        // open which one is last. Here it is the one with the longest RTT: segments sent with it or
        // later were not later than it. With the newest departure instead, an ACK of a
        // retransmission and of late originals would mark lost the originals that are about to
        // arrive.
        if let Some(oldest) = ack.rack.oldest {
            self.rtt = ack.now.since(oldest);
        }
        if let Some(newest) = ack.rack.newest
            && self.latest.is_none_or(|latest| sent_after(newest, latest))
        {
            self.latest = Some(newest);
        }
        overtaken
    }

    /// Step 4, DSACK part: once per round trip with a DSACK the window grows by a quarter of the
    /// smallest RTT.
    pub(crate) fn on_ack(&mut self, una: SeqNum, nxt: SeqNum, dsack: bool) {
        self.widened = false;
        if self.dsack_round.is_some_and(|round| una.ge(round)) {
            self.dsack_round = None;
        }
        if dsack && self.dsack_round.is_none() {
            self.dsack_round = Some(nxt);
            self.path.mult = self.path.mult.saturating_add(1);
            self.path.persist = PERSIST;
            self.widened = true;
        }
    }

    /// Step 4: a recovery ended.
    pub(crate) fn on_recovery_exit(&mut self) {
        if self.widened {
            return;
        }
        self.path.persist = self.path.persist.saturating_sub(1);
        if self.path.persist == 0 {
            self.path.mult = 1;
        }
    }

    /// Step 4: RACK.reo_wnd.
    pub(crate) fn reordering_window(
        &self,
        in_recovery: bool,
        sacked_segments: u32,
        clocks: &Clocks,
    ) -> Duration {
        if !self.path.reordering_seen() && (in_recovery || sacked_segments >= DUP_THRESH) {
            return Duration::ZERO;
        }
        let quarter = clocks.min_rtt.unwrap_or(Duration::ZERO).as_nanos() / 4;
        let window = Duration::from_nanos(quarter.saturating_mul(u64::from(self.path.mult)));
        clocks.srtt.map_or(window, |srtt| window.min(srtt))
    }

    /// SND.UNA is about to move from `una`: newly covered data is above it.
    pub(crate) fn on_advance(&mut self, una: SeqNum) {
        self.fack = self.fack.max(una);
    }

    /// Step 5: marks overdue segments lost, and arms the timer for the next.
    pub(crate) fn detect(
        &mut self,
        board: &mut Scoreboard,
        in_episode: bool,
        clocks: &Clocks,
        on_lost: OnLost<'_>,
    ) -> OverdueData {
        self.reorder_at = Instant::FAR_FUTURE;
        let Some(latest) = self.latest else { return OverdueData::default() };
        let window = self.reordering_window(in_episode, board.sacked_segments(), clocks);
        let found = board.mark_overdue(latest, clocks.now, self.rtt.saturating_add(window), on_lost);
        if let Some(next) = found.next {
            self.reorder_at = next;
        }
        found
    }
}
