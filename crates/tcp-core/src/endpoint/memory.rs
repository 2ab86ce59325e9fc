//! The endpoint's side of its [memory budget](crate::memory::budget): what is charged, and who goes
//! if the budget is used up.
//!
//! A connection is charged with what it holds and with its entries in the endpoint's arrays, at
//! each [settlement](super::settle). The rest (half-open connections, held SYNs, records in
//! TIME-WAIT, what is known by destination, UDP sockets and what waits in them, packets without a
//! connection, descriptors, spare blocks) is charged as a whole. Arrays do not shrink when
//! connections end, so their spare entries are not charged: after a peak they may hold a few
//! percent of it.
//!
//! **Memory is short** if the budget is exceeded, or if it had nothing for somebody who holds less
//! than its share. Then the least valuable goes first:
//!
//! 1. orphans, the one without progress for longest first;
//! 2. half-open connections, fragments and held SYNs if the budget is exceeded, and records in
//!    TIME-WAIT, the oldest first;
//! 3. out-of-order data, which its senders still have;
//! 4. connections that hold more than an equal share and have not moved for a second, the one that
//!    has stood still longest first. One that holds less never has to go: then somebody else holds
//!    more.
//!
//! Of several endpoints of one host, one that holds less than its [part](crate::reserve) frees
//! nothing. It asks the others, and those that hold more than theirs do the same for it. The
//! [driver](Endpoint::calls_others) has to wake them: connections that stand still have nothing to
//! do.
//!
//! For the last two, a hand goes round the connections and looks at a few per settlement. It rests
//! if it has gone all the way round for nothing.

use super::Owners;
use crate::error::ConnError;
use crate::opens::{HALF_OPEN, HELD_SYN};
use crate::share::Cx;
use crate::state::State;
use crate::table::{ENTRIES, TIME_WAIT};
use crate::time::{Duration, Instant};

/// Orphans, entries, records and connections that are looked at per settlement if memory is short.
const LOOKS: usize = 32;

/// A connection that has moved within this time is in use.
const IN_USE: Duration = Duration::from_secs(1);

/// Time between two calls for others to make room: each wakes them.
const CALL_GAP: Duration = Duration::from_millis(10);

/// The hand that goes round the connections.
#[derive(Debug, Default)]
pub(super) struct Hand {
    /// The index that it looks at next.
    at: u32,
    /// Connections looked at since it found something.
    fruitless: u32,
    /// It rests until then.
    rests_until: Instant,
}

impl Owners {
    /// Charges the connection at `index`, unless it is gone, with what it holds.
    pub(super) fn charge(&mut self, cx: &mut Cx<'_>, index: u32) {
        if let Some(conn) = self.table.slots.conn_mut(index) {
            conn.charge(&mut cx.observe.budget, ENTRIES);
        }
    }

    /// Every connection has been charged.
    pub(super) fn settle_memory(&mut self, cx: &mut Cx<'_>) {
        self.charge_tables(cx);
        if cx.observe.budget.is_short() {
            self.free_memory(cx);
            self.charge_tables(cx);
            cx.observe.budget.forget_refusals();
        }
        if cx.now >= self.next_call && cx.observe.budget.ask_others() {
            self.calls_others = true;
            self.next_call = cx.now + CALL_GAP;
        }
    }

    /// Charges what belongs to no connection. What has ended makes room for others, of other
    /// endpoints as well.
    fn charge_tables(&mut self, cx: &mut Cx<'_>) {
        if cx.observe.budget.is_under_pressure() {
            cx.observe.budget.spare.clear();
        }
        if cx.limits.are_shared() {
            cx.limits.settle(&self.numbers());
        }
        let memory = self.memory(cx);
        let observe = &mut *cx.observe;
        observe.budget.settle(cx.now, self.table.slots.len(), memory, &mut observe.counters);
    }

    /// Memory is short: the least valuable goes.
    #[cold]
    fn free_memory(&mut self, cx: &mut Cx<'_>) {
        cx.observe.counters.prune_called += 1;
        for _ in 0..LOOKS {
            let Some(index) = self.table.orphans.stalest().filter(|_| cx.observe.budget.is_short()) else {
                break;
            };
            self.reset_orphan(cx, index);
            self.settle_one(cx, index);
        }
        // What their tables give back later counts at once.
        let (mut excess, mut needed) = (cx.observe.budget.excess(), cx.observe.budget.shortage());
        for _ in 0..LOOKS {
            let Some(oldest) = self.opens.syn_cache.oldest().filter(|_| excess > 0) else { break };
            self.opens.end_half_open(oldest, ConnError::OutOfMemory);
            cx.observe.counters.half_open_evicted += 1;
            (excess, needed) =
                (excess.saturating_sub(HALF_OPEN as u64), needed.saturating_sub(HALF_OPEN as u64));
        }
        for _ in 0..LOOKS {
            if excess == 0 {
                break;
            }
            let Some(freed) = self.ip.evict_fragments(cx) else { break };
            let freed = freed as u64;
            (excess, needed) = (excess.saturating_sub(freed), needed.saturating_sub(freed));
        }
        for _ in 0..LOOKS {
            let Some(oldest) = self.opens.held_syns.oldest().filter(|_| excess > 0) else { break };
            self.opens.end_held_syn(cx, oldest, ConnError::OutOfMemory);
            cx.observe.counters.held_syns_evicted += 1;
            (excess, needed) =
                (excess.saturating_sub(HELD_SYN as u64), needed.saturating_sub(HELD_SYN as u64));
        }
        for _ in 0..LOOKS {
            if needed == 0 || !self.table.time_wait.remove_first() {
                break;
            }
            cx.observe.counters.tcp_time_wait_overflow += 1;
            needed = needed.saturating_sub(TIME_WAIT as u64);
        }
        if needed > 0 && cx.now >= self.hand.rests_until {
            self.look_round(cx);
        }
        self.table.count_orphans(cx);
    }

    /// Lets the hand look at the next connections.
    fn look_round(&mut self, cx: &mut Cx<'_>) {
        let share = cx.observe.budget.share();
        let mut longest: Option<(Instant, u32)> = None;
        for _ in 0..LOOKS.min(self.table.slots.len()) {
            if !cx.observe.budget.is_short() {
                return;
            }
            let index = self.hand.at;
            self.hand.at = if index + 1 < self.table.slots.places() { index + 1 } else { 0 };
            self.hand.fruitless += 1;
            let Some(conn) = self.table.slots.conn_mut(index) else { continue };
            let before = conn.charged();
            conn.prune(&mut cx.observe.counters);
            conn.charge(&mut cx.observe.budget, ENTRIES);
            if conn.charged() < before {
                self.hand.fruitless = 0;
            }
            let since = conn.idle_since();
            let stands_still = since + IN_USE <= cx.now && conn.state() != State::Closed;
            if stands_still && u64::from(conn.charged()) > share && longest.is_none_or(|(at, _)| since < at) {
                longest = Some((since, index));
            }
        }
        if cx.observe.budget.is_short()
            && let Some((_, index)) = longest
        {
            self.hand.fruitless = 0;
            let id = self.table.slots.id(index);
            if let Some(conn) = self.table.slots.conn_mut(index) {
                conn.evict(&mut cx.conn(id));
            }
            self.touch(cx, index);
            self.settle_one(cx, index);
        }
        if self.hand.fruitless > self.table.slots.places() {
            self.hand.fruitless = 0;
            self.hand.rests_until = cx.now + IN_USE;
        }
    }
}
