//! Where out-of-order data is kept, and giving memory back.

use super::pieces::Pieces;
use super::{Assembler, Receiver};
use crate::config::ConnConfig;
use crate::ctx::Ctx;
use crate::seq::SeqNum;
use crate::wire::Payload;

/// The buffer takes data past a hole if it reaches at most so many times as far as there is data
/// past the hole.
const SPARSE: u32 = 4;

impl Receiver {
    /// True if `[start, end)`, which has not arrived yet, is too far from RCV.NXT to be written
    /// ahead.
    pub(super) fn is_far(&self, start: SeqNum, end: SeqNum) -> bool {
        let waits = self.out_of_order_bytes() + end.distance_from(start);
        start.gt(self.rcv_nxt) && end.distance_from(self.rcv_nxt) > waits.saturating_mul(SPARSE)
    }

    /// True if there may not be more pieces. Each range has at least one, and more if it grew
    /// towards the hole before it.
    pub(super) fn far_is_full(&self, config: &ConnConfig) -> bool {
        let most = 2 * usize::from(config.max_out_of_order_ranges);
        self.waiting.as_ref().is_some_and(|waiting| waiting.far.len() >= most)
    }

    /// Before data at RCV.NXT is stored: the buffer may have to take what is kept apart. If there
    /// is no memory for that, it is dropped, and the peer sends it again (RFC 2018, section 8).
    pub(super) fn make_room_for_far(&mut self, ctx: &mut Ctx<'_>) {
        let Some(end) = self.waiting.as_ref().and_then(|waiting| waiting.far.end()) else { return };
        let reach = end.distance_from(self.rcv_nxt);
        if self.take_memory(ctx, reach) < reach {
            ctx.counters.ofo_pruned += u64::from(self.prune());
        }
    }

    /// Keeps data that is [far](Self::is_far), and in a range.
    pub(super) fn store_far(&mut self, start: SeqNum, payload: &Payload<'_>) {
        if let Some(waiting) = &mut self.waiting {
            waiting.far.insert(start, payload);
        }
    }

    /// The next `n` bytes are complete: those that are kept apart come into the buffer.
    pub(super) fn fetch_far(&mut self, n: u32) {
        let Some(waiting) = &mut self.waiting else { return };
        // Pieces are parts of ranges, and ranges become complete as a whole.
        while let Some((start, data)) = waiting.far.take_before(self.rcv_nxt + n) {
            let at = start.distance_from(self.rcv_nxt) as usize;
            self.buf.write_at(at, &data);
        }
    }

    /// The buffer reaches far ahead for little: what there was in between has been delivered.
    fn is_sparse(&self) -> bool {
        self.buf.ahead() > (SPARSE as usize).saturating_mul(self.out_of_order_bytes() as usize)
    }

    /// True if [`trim`](Self::trim) would free memory.
    pub(crate) fn has_spare_memory(&self) -> bool {
        self.buf.has_spare()
            || self.is_sparse()
            || self.waiting.as_ref().is_some_and(|waiting| is_idle(waiting))
    }

    /// Frees memory that what is held does not need.
    pub(crate) fn trim(&mut self) {
        if self.is_sparse() {
            self.move_apart();
        }
        self.buf.shrink();
        self.waiting.take_if(|waiting| is_idle(waiting));
    }

    /// Moves out-of-order data out of the buffer.
    fn move_apart(&mut self) {
        self.buf.hold();
        if let Some(waiting) = &mut self.waiting {
            let mut far = core::mem::replace(&mut waiting.far, Pieces::new());
            for (start, end) in waiting.iter() {
                let offset = start.distance_from(self.rcv_nxt) as usize;
                let written = self.buf.slices_ahead(offset, end.distance_from(start) as usize);
                far.insert(start, &Payload::from(written));
            }
            waiting.far = far;
        }
        self.buf.forget_ahead();
    }

    /// The connection is over, and what was received will not be read: not as if the stream were
    /// complete.
    pub(crate) fn forfeit(&mut self) {
        self.discard();
        self.fin_known = false;
    }

    /// Nobody reads any more: frees what was received, in order or not.
    pub(crate) fn discard(&mut self) {
        self.buf.clear();
        self.waiting = None;
    }
}

/// Nothing is waiting past a hole, and there is nothing to report.
fn is_idle(waiting: &Assembler) -> bool {
    waiting.is_empty() && waiting.duplicate().is_none()
}
