//! The endpoint's side of its [memory budget](crate::budget): what is charged, and who goes if the
//! budget is used up.
//!
//! A connection is charged with what it holds and with its entries in the endpoint's arrays, at
//! each [settlement](super::service). The rest (half-open connections, held SYNs, records in
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
//! Of several endpoints of one host, one that holds less than its [part](crate::host_memory) frees
//! nothing. It asks the others, and those that hold more than theirs do the same for it. The
//! [driver](Endpoint::calls_others) has to wake them: connections that stand still have nothing to
//! do.
//!
//! For the last two, a hand goes round the connections and looks at a few per settlement. It rests
//! if it has gone all the way round for nothing.

use super::Endpoint;
use super::held_syns::RECORD as HELD_SYN;
use super::slots::Slot;
use crate::State;
use crate::budget::Budget;
use crate::conn::Connection;
use crate::error::ConnError;
use crate::policy::sched::Descriptor;
use crate::time::{Duration, Instant};

/// What the endpoint's arrays hold for a connection: its slot, its place in the timing wheel, and
/// its bucket in the hash table.
const ENTRIES: usize = size_of::<Slot>() + 4 + 16;

/// What a half-open connection takes, with its share of the tables.
const HALF_OPEN: usize = 128;

/// What a record in TIME-WAIT takes, with its share of the table.
const TIME_WAIT: usize = 76;

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

/// True if the budget has room for another connection, which it has taken then.
pub(super) fn takes_connection(budget: &mut Budget) -> bool {
    budget.admit(ENTRIES + size_of::<Connection>())
}

/// True if the budget has room for another half-open connection, which it has taken then. For a
/// SYN, which anybody can forge, nobody has to go.
pub(super) fn takes_half_open(budget: &mut Budget) -> bool {
    budget.take(HALF_OPEN)
}

/// The same for a held SYN.
pub(super) fn takes_held_syn(budget: &mut Budget) -> bool {
    budget.take(HELD_SYN)
}

impl Endpoint {
    /// Charges the connection at `index`, unless it is gone, with what it holds.
    pub(super) fn charge(&mut self, index: u32) {
        if let Some(conn) = self.slots.conn_mut(index) {
            conn.charge(&mut self.observe.budget, ENTRIES);
        }
    }

    /// Every connection has been charged.
    pub(super) fn settle_memory(&mut self, now: Instant) {
        self.charge_tables(now);
        if self.is_short() {
            self.free_memory(now);
            self.charge_tables(now);
            self.observe.budget.forget_refusals();
        }
        if now >= self.next_call && self.observe.budget.ask_others() {
            self.calls_others = true;
            self.next_call = now + CALL_GAP;
        }
    }

    /// Bytes that belong to no connection.
    pub(super) fn tables(&self) -> usize {
        self.tables_of_strangers() + self.tables_of_connections()
    }

    /// Those of tables that only change with what concerns no connection, or ends one:
    /// [`unsettled`](Endpoint::unsettled) tells.
    fn tables_of_strangers(&self) -> usize {
        self.syn_cache.memory()
            + self.held_syns.memory()
            + self.time_wait.memory()
            + self.paths.memory()
            + self.fast_opens.memory()
            + self.udp.memory()
            + self.packets.memory()
            + self.reassembly.memory()
            + self.egress.strays.memory()
    }

    /// Those that any event of a connection may change.
    fn tables_of_connections(&self) -> usize {
        let descriptors = self.egress.queued * size_of::<Descriptor>();
        self.wheel.memory() + self.observe.budget.spare.memory() + descriptors
    }

    /// Charges what belongs to no connection.
    fn charge_tables(&mut self, now: Instant) {
        if self.observe.budget.is_under_pressure() {
            self.observe.budget.spare.clear();
        }
        if core::mem::take(&mut self.unsettled) {
            self.strangers = self.tables_of_strangers();
            self.settle_limits();
        }
        let tables = self.strangers + self.tables_of_connections();
        let observe = &mut self.observe;
        observe.budget.settle(now, self.slots.len(), tables, &mut observe.counters);
    }

    /// What has ended makes room for others, of other endpoints as well.
    fn settle_limits(&mut self) {
        let limits = &mut self.limits;
        limits.connections.settle(self.slots.len());
        limits.half_open.settle(self.syn_cache.len());
        limits.held_syns.settle(self.held_syns.len());
        limits.orphans.settle(self.orphans.len());
        limits.time_wait.settle(self.time_wait.len());
        limits.fast_open.settle(self.fast_opens.pending() as usize);
    }

    #[inline]
    pub(super) fn is_short(&mut self) -> bool {
        self.observe.budget.is_short()
    }

    /// Memory is short: the least valuable goes.
    #[cold]
    fn free_memory(&mut self, now: Instant) {
        self.observe.counters.prune_called += 1;
        self.unsettled = true;
        for _ in 0..LOOKS {
            let Some(index) = self.orphans.stalest().filter(|_| self.is_short()) else { break };
            self.reset_orphan(now, index);
            self.settle_one(now, index);
        }
        // What their tables give back later counts at once.
        let (mut excess, mut needed) = (self.observe.budget.excess(), self.observe.budget.shortage());
        for _ in 0..LOOKS {
            let Some(oldest) = self.syn_cache.oldest().filter(|_| excess > 0) else { break };
            self.end_half_open(oldest, ConnError::OutOfMemory);
            self.observe.counters.half_open_evicted += 1;
            (excess, needed) =
                (excess.saturating_sub(HALF_OPEN as u64), needed.saturating_sub(HALF_OPEN as u64));
        }
        for _ in 0..LOOKS {
            let before = self.reassembly.used();
            if excess == 0 || !self.reassembly.evict() {
                break;
            }
            self.observe.counters.ip_reasm_fails += 1;
            let freed = (before - self.reassembly.used()) as u64;
            (excess, needed) = (excess.saturating_sub(freed), needed.saturating_sub(freed));
        }
        for _ in 0..LOOKS {
            let Some(oldest) = self.held_syns.oldest().filter(|_| excess > 0) else { break };
            self.end_held_syn(oldest, ConnError::OutOfMemory);
            self.observe.counters.held_syns_evicted += 1;
            (excess, needed) =
                (excess.saturating_sub(HELD_SYN as u64), needed.saturating_sub(HELD_SYN as u64));
        }
        for _ in 0..LOOKS {
            if needed == 0 || !self.time_wait.remove_first() {
                break;
            }
            self.observe.counters.tcp_time_wait_overflow += 1;
            needed = needed.saturating_sub(TIME_WAIT as u64);
        }
        if needed > 0 && now >= self.hand.rests_until {
            self.look_round(now);
        }
        self.count_orphans();
    }

    /// Lets the hand look at the next connections.
    fn look_round(&mut self, now: Instant) {
        let share = self.observe.budget.share();
        let mut longest: Option<(Instant, u32)> = None;
        for _ in 0..LOOKS.min(self.slots.len()) {
            if !self.is_short() {
                return;
            }
            let index = self.hand.at;
            self.hand.at = if index + 1 < self.slots.places() { index + 1 } else { 0 };
            self.hand.fruitless += 1;
            let Some(conn) = self.slots.conn_mut(index) else { continue };
            let before = conn.charged();
            conn.prune(&mut self.observe.counters);
            conn.charge(&mut self.observe.budget, ENTRIES);
            if conn.charged() < before {
                self.hand.fruitless = 0;
            }
            let since = conn.idle_since();
            let stands_still = since + IN_USE <= now && conn.state() != State::Closed;
            if stands_still && u64::from(conn.charged()) > share && longest.is_none_or(|(at, _)| since < at) {
                longest = Some((since, index));
            }
        }
        if self.is_short()
            && let Some((_, index)) = longest
        {
            self.hand.fruitless = 0;
            let id = self.slots.id(index);
            if let Some(conn) = self.slots.conn_mut(index) {
                conn.evict(&mut self.observe.ctx(now, id, &self.config));
            }
            self.touch(now, index);
            self.settle_one(now, index);
        }
        if self.hand.fruitless > self.slots.places() {
            self.hand.fruitless = 0;
            self.hand.rests_until = now + IN_USE;
        }
    }
}
