//! The memory budget of an endpoint: how much its connections and tables hold, and what they may still take.
//!
//! ```text
//!   0            low          pressure           high = max_memory
//!   ├─────────────┼──────────────┼──────────────────┤
//!                 │              └► under pressure, above it
//!                 └► at ease again, at or below it
//! ```
//!
//! The levels, and the hysteresis between them, are those of Linux's `tcp_mem`; so are the proportions of the defaults.
//!
//! **The account is exact after each event.** A connection is asked for its [memory] whenever it is settled, and the
//! difference from what it was charged last goes onto the account. So nobody can forget to charge: what a connection
//! holds counts, however it came by it. Between two settlements, what buffers and new connections take is added as they
//! [ask](Budget::request) for it.
//!
//! **Who gets what.** At ease, a buffer may grow until pressure begins. Under pressure it may grow up to half of an equal
//! share of the budget per connection, as long as the budget has it (Linux, `__sk_mem_raise_allocated`, has the same
//! rule); what it holds beyond that it keeps until its bytes are delivered. However little there is, each buffer may have
//! a packet's worth, because a connection would stand still without. So the budget is exceeded by no more than that per
//! connection, and only until [somebody goes](Budget::shortage).
//!
//! [memory]: crate::conn::Connection::memory

use crate::blocks::SpareBlocks;
use crate::counters::Counters;
use crate::time::Instant;

/// What each buffer may take however little memory there is, in bytes: a packet's worth.
pub(crate) const PACKET: usize = 2_048;

/// The largest buffer that a window can be promised for (RFC 7323, section 2.3), as a power of two.
const LARGEST: u8 = 30;

/// The account, and the levels that it is measured by. All operations are O(1).
#[derive(Debug)]
pub(crate) struct Budget {
    /// Bytes at or below which pressure ends.
    low: u64,
    /// Bytes above which pressure begins.
    pressure: u64,
    /// The budget in bytes.
    high: u64,
    /// Bytes charged to connections when they were last settled.
    connections: u64,
    /// Bytes charged to what belongs to no connection, at the last settlement.
    tables: u64,
    /// Bytes taken since.
    taken: u64,
    /// The largest number of bytes that were refused since, although nobody would have had more than its share.
    refused: u64,
    /// Number of connections at the last settlement.
    sharers: usize,
    /// An equal share of the budget for each of them, in bytes.
    share: u64,
    /// Since when memory has been under pressure.
    since: Option<Instant>,
    /// Memory that receive buffers have given back.
    pub(crate) spare: SpareBlocks,
}

/// A limit of a buffer that memory allows: a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grant(u8);

impl Grant {
    /// As large as the connection's settings allow.
    pub(crate) const UNLIMITED: Self = Self(LARGEST);

    /// The largest one of at most `bytes`.
    const fn up_to(bytes: usize) -> Self {
        match bytes.checked_ilog2() {
            Some(log) if log < LARGEST as u32 => Self(log as u8),
            Some(_) => Self::UNLIMITED,
            None => Self(0),
        }
    }

    /// In bytes.
    pub(crate) const fn bytes(self) -> u32 {
        1 << self.0
    }
}

impl Budget {
    /// A budget of `max` bytes, `None` for no limit; `low` and `pressure` are percentages of it.
    pub(crate) fn new(max: Option<u64>, low: u8, pressure: u8) -> Self {
        let high = max.unwrap_or(u64::MAX);
        let share = |percent: u8| high / 100 * u64::from(percent.min(100));
        let pressure = share(pressure);
        Self {
            low: share(low).min(pressure),
            pressure,
            high,
            connections: 0,
            tables: 0,
            taken: 0,
            refused: 0,
            sharers: 0,
            share: high,
            since: None,
            spare: SpareBlocks::default(),
        }
    }

    /// Bytes held.
    pub(crate) const fn used(&self) -> u64 {
        self.connections + self.tables + self.taken
    }

    /// True from when more than `pressure` was held until no more than `low` is.
    pub(crate) const fn is_under_pressure(&self) -> bool {
        self.since.is_some()
    }

    /// True if there is so much memory that every buffer may be as large as it wants to, whatever is not settled yet.
    pub(crate) const fn is_plentiful(&self) -> bool {
        const PLENTY: u64 = 1 << 29;
        self.spares(PLENTY) && self.refused == 0
    }

    /// True if so many bytes more would cause no pressure.
    const fn spares(&self, bytes: u64) -> bool {
        !self.is_under_pressure() && self.used() + bytes <= self.pressure
    }

    /// What a connection holds with its buffers if all hold the same, in bytes.
    pub(crate) const fn share(&self) -> u64 {
        self.share
    }

    /// What one of its two buffers may hold then.
    fn fair(&self) -> usize {
        usize::try_from(self.share / 2).unwrap_or(usize::MAX)
    }

    /// The largest size that a buffer of `capacity` bytes may have at present: its own, or a power of two.
    pub(crate) fn allowance(&self, capacity: usize) -> usize {
        let up_to = |mark: u64| {
            let free = usize::try_from(mark.saturating_sub(self.used())).unwrap_or(usize::MAX);
            floor_to_power_of_two(capacity.saturating_add(free))
        };
        let at_ease = if self.is_under_pressure() { 0 } else { up_to(self.pressure) };
        let fair = floor_to_power_of_two(self.fair()).min(up_to(self.high));
        capacity.max(PACKET).max(at_ease).max(fair)
    }

    /// A buffer of `capacity` bytes needs `total`. Returns the size that it may have at present, which it has taken then.
    #[cold]
    pub(crate) fn request(&mut self, capacity: usize, total: usize) -> usize {
        let wanted = total.checked_next_power_of_two().unwrap_or(total).max(capacity);
        let granted = wanted.min(self.allowance(capacity));
        let fair = wanted.min(floor_to_power_of_two(self.fair()));
        if granted < fair {
            self.refused = self.refused.max((fair - granted) as u64);
        }
        self.taken += (granted - capacity) as u64;
        granted
    }

    /// Takes `bytes`; false if the budget does not have them.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = self.used() + bytes as u64 <= self.high;
        if fits {
            self.taken += bytes as u64;
        }
        fits
    }

    /// Takes `bytes` for a new connection; if the budget does not have them, [somebody](Self::shortage) has to make room.
    pub(crate) fn admit(&mut self, bytes: usize) -> bool {
        let fits = self.take(bytes);
        if !fits {
            self.refused = self.refused.max(bytes as u64);
        }
        fits
    }

    /// The same as [`allowance`](Self::allowance), for settings that bound buffers.
    pub(crate) fn grant_to(&self, capacity: usize) -> Grant {
        if self.spares(1 << LARGEST) {
            return Grant::UNLIMITED;
        }
        Grant::up_to(self.allowance(capacity))
    }

    /// The largest buffer that a receive window may count on.
    pub(crate) fn grant(&self) -> Grant {
        if !self.is_under_pressure() {
            return Grant::UNLIMITED;
        }
        let bytes = if self.used() >= self.high { PACKET } else { self.fair().max(PACKET) };
        Grant::up_to(bytes)
    }

    /// Bytes by which the budget is exceeded.
    pub(crate) const fn excess(&self) -> u64 {
        self.used().saturating_sub(self.high)
    }

    /// Bytes that must be given back for the budget to be kept, and for what was refused to be granted.
    pub(crate) const fn shortage(&self) -> u64 {
        self.used().saturating_add(self.refused).saturating_sub(self.high)
    }

    /// What belongs to no connection, in bytes.
    pub(crate) const fn tables(&self) -> u64 {
        self.tables
    }

    /// Whoever was refused asks again if it still needs to.
    pub(crate) const fn forget_refusals(&mut self) {
        self.refused = 0;
    }

    /// A connection that was charged `before` bytes holds `after`.
    #[inline]
    pub(crate) const fn charge(&mut self, before: u32, after: u32) {
        self.connections = self.connections + after as u64 - before as u64;
    }

    /// What belongs to none of the `connections` is `bytes`. Every connection has been charged.
    #[inline]
    pub(crate) fn settle(&mut self, now: Instant, connections: usize, bytes: usize, counters: &mut Counters) {
        self.tables = bytes as u64;
        if connections != self.sharers {
            self.sharers = connections;
            self.share = self.high / (connections as u64).max(1);
        }
        self.taken = 0;
        counters.curr_memory = self.used();
        match self.since {
            None if self.used() > self.pressure => {
                self.since = Some(now);
                counters.tcp_memory_pressures += 1;
            }
            Some(since) if self.used() <= self.low => {
                self.since = None;
                counters.tcp_memory_pressures_chrono += now.since(since).as_millis();
            }
            _ => {}
        }
    }
}

/// The largest power of two that is at most `bytes`; 0 for 0.
const fn floor_to_power_of_two(bytes: usize) -> usize {
    match bytes.checked_ilog2() {
        Some(log) => 1 << log,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_ends_below_where_it_began() {
        let mut counters = Counters::default();
        let mut budget = Budget::new(Some(1_000), 50, 66);
        let mut charged = 0;
        let mut at = |second, bytes| {
            budget.charge(core::mem::replace(&mut charged, bytes), bytes);
            budget.settle(Instant::from_secs(second), 1, 100, &mut counters);
            assert_eq!(budget.used(), u64::from(bytes) + 100);
            budget.is_under_pressure()
        };
        assert!(!at(1, 560), "660 is the mark");
        assert!(at(2, 561));
        assert!(at(3, 401), "but 500 is the other");
        assert!(!at(5, 400));
        assert!(!at(6, 560));
        assert!(at(7, 900));
        assert_eq!((counters.tcp_memory_pressures, counters.tcp_memory_pressures_chrono), (2, 3_000));
        assert_eq!(counters.curr_memory, 1_000);
    }

    #[test]
    fn without_a_limit_nothing_is_pressed() {
        let mut budget = Budget::new(None, 50, 66);
        budget.charge(0, u32::MAX);
        budget.settle(Instant::ZERO, 1, usize::MAX >> 1, &mut Counters::default());
        assert!(!budget.is_under_pressure());
    }

    /// With `used` of 1,000 kB in use by ten connections.
    fn in_use(used: u32) -> Budget {
        let mut budget = Budget::new(Some(1_000_000), 50, 66);
        budget.charge(0, used);
        budget.settle(Instant::ZERO, 10, 0, &mut Counters::default());
        budget
    }

    #[test]
    fn at_ease_a_buffer_may_grow_until_pressure_begins() {
        let budget = in_use(100_000);
        assert_eq!(budget.allowance(0), 524_288, "560,000 are left");
        assert_eq!(budget.allowance(131_072), 524_288);
        assert_eq!(budget.allowance(524_288), 1 << 20);
        assert_eq!(budget.grant(), Grant::UNLIMITED);
        assert_eq!(in_use(659_000).allowance(0), 32_768, "its share, beyond the mark");
    }

    #[test]
    fn under_pressure_a_buffer_has_half_of_its_share() {
        let budget = in_use(700_000);
        assert_eq!((budget.share(), budget.allowance(0), budget.grant().bytes()), (100_000, 32_768, 32_768));
        assert_eq!(budget.allowance(65_536), 65_536, "it keeps what it has");
        assert_eq!(in_use(990_000).allowance(4_096), 8_192, "14,096 are left");
        let full = in_use(1_000_000);
        assert_eq!((full.allowance(0), full.allowance(4_096), full.grant().bytes()), (PACKET, 4_096, 2_048));
    }

    #[test]
    fn what_is_taken_counts_at_once() {
        let mut budget = in_use(990_000);
        assert_eq!(budget.request(0, 5_000), 8_192);
        assert_eq!((budget.used(), budget.shortage()), (998_192, 0));
        assert_eq!(budget.request(0, 5_000), PACKET);
        assert_eq!(budget.shortage(), 1_000_240 + 8_192 - PACKET as u64 - 1_000_000, "its share is more");
        budget.forget_refusals();
        assert_eq!(budget.shortage(), 240);
        assert!(!budget.admit(1_000));
        assert_eq!(budget.request(32_768, 40_000), 32_768);
        assert_eq!(budget.shortage(), 1_240, "only for those with less than their share");
        budget.settle(Instant::ZERO, 10, 0, &mut Counters::default());
        assert_eq!(budget.used(), 990_000, "they have been charged");
        assert!(budget.admit(10_000) && !budget.take(1));
    }
}
