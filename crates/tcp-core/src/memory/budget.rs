//! The memory budget of an endpoint: how much its connections and tables hold, and what they may
//! still take.
//!
//! ```text
//!   0            low          pressure           high = max_memory
//!   ├─────────────┼──────────────┼──────────────────┤
//!                 │              └► under pressure, above it
//!                 └► at ease again, at or below it
//! ```
//!
//! The levels, and the hysteresis between them, are those of Linux's `tcp_mem`; so are the
//! proportions of the defaults.
//!
//! **The account is exact after each event.** A connection is asked for its [memory] whenever it is
//! settled, and the difference from what it was charged last goes onto the account. So nobody can
//! forget to charge: what a connection holds counts, however it came by it. Between two
//! settlements, what buffers and new connections take is added as they [ask](Budget::request) for
//! it.
//!
//! **Who gets what.** At ease, a buffer may grow until pressure begins. Under pressure it may grow
//! up to half of an equal share of the budget per connection, as long as the budget has it (Linux,
//! `__sk_mem_raise_allocated`, has the same rule); what it holds beyond that it keeps until its
//! bytes are delivered. However little there is, each buffer may have a packet's worth, because a
//! connection would stand still without. So the budget is exceeded by no more than that per
//! connection, and only until [somebody goes](Budget::shortage).
//!
//! **Of several endpoints of one host** the budget is that of all. What the others
//! [hold](crate::reserve), as of the last settlement, counts as held; what is taken is reserved
//! first, so that all together keep to the budget as one endpoint does. An endpoint frees no more
//! than it holds beyond its part: the rest is asked of those who hold more than theirs.
//!
//! A packet's worth is enough for progress: a connection that is refused would wait for an event
//! that nobody sends, and with it each ACK and each read is one. So nobody has to be woken when
//! memory returns.
//!
//! [memory]: crate::conn::Connection::memory

use crate::counters::Counters;
use crate::memory::blocks::SpareBlocks;
use crate::reserve::MemoryPart;
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
    /// The largest number of bytes that were refused since, although nobody would have had more
    /// than its share.
    refused: u64,
    /// Number of connections at the last settlement, of the whole host.
    sharers: usize,
    /// An equal share of the budget for each of them, in bytes.
    share: u64,
    /// Since when memory has been under pressure.
    since: Option<Instant>,
    /// Bytes that the host's other endpoints have reserved; 0 for an endpoint alone.
    others: u64,
    /// Bytes that somebody of the host wants whose own part is not used up.
    wanted: u64,
    /// This endpoint's part of the budget: what it holds beyond that it has to free.
    part: u64,
    /// What it has of the host's memory, unless it is alone.
    host: Option<MemoryPart>,
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
            others: 0,
            wanted: 0,
            part: 0,
            host: None,
            spare: SpareBlocks::default(),
        }
    }

    /// The budget is that of a host with several endpoints. Nothing is held yet.
    pub(crate) fn join(&mut self, host: MemoryPart) {
        self.part = host.fair(0);
        self.host = Some(host);
    }

    /// Bytes held by this endpoint.
    pub(crate) const fn held(&self) -> u64 {
        self.connections + self.tables + self.taken
    }

    /// Bytes held by the host.
    pub(crate) const fn used(&self) -> u64 {
        self.held() + self.others
    }

    /// True from when more than `pressure` was held until no more than `low` is.
    pub(crate) const fn is_under_pressure(&self) -> bool {
        self.since.is_some()
    }

    /// True if there is so much memory that every buffer may be as large as it wants to, whatever
    /// is not settled yet.
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

    /// The largest size that a buffer of `capacity` bytes may have at present: its own, or a power
    /// of two.
    pub(crate) fn allowance(&self, capacity: usize) -> usize {
        let up_to = |mark: u64| {
            let free = usize::try_from(mark.saturating_sub(self.used())).unwrap_or(usize::MAX);
            floor_to_power_of_two(capacity.saturating_add(free))
        };
        let at_ease = if self.is_under_pressure() { 0 } else { up_to(self.pressure) };
        let fair = floor_to_power_of_two(self.fair()).min(up_to(self.high));
        capacity.max(PACKET).max(at_ease).max(fair)
    }

    /// A buffer of `capacity` bytes needs `total`. Returns the size that it may have at present,
    /// which it has taken then.
    #[cold]
    pub(crate) fn request(&mut self, capacity: usize, total: usize) -> usize {
        let wanted = total.checked_next_power_of_two().unwrap_or(total).max(capacity);
        let mut granted = wanted.min(self.allowance(capacity));
        // Others may have taken what was left.
        while !self.reserve((granted - capacity) as u64) && granted > capacity.max(PACKET) {
            granted = wanted.min(self.allowance(capacity));
        }
        let fair = wanted.min(floor_to_power_of_two(self.fair()));
        if granted < fair {
            self.refused = self.refused.max((fair - granted) as u64);
        }
        self.taken += (granted - capacity) as u64;
        granted
    }

    /// Takes `bytes`; false if the budget does not have them.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = self.fits(bytes as u64);
        if fits {
            self.taken += bytes as u64;
        }
        fits
    }

    fn fits(&mut self, bytes: u64) -> bool {
        if self.host.is_none() { self.used() + bytes <= self.high } else { self.reserve(bytes) }
    }

    /// Reserves `bytes`, if this endpoint is not alone; false if the host does not have them.
    #[inline]
    fn reserve(&mut self, bytes: u64) -> bool {
        let needed = self.held() + bytes;
        self.host.as_ref().is_none_or(|host| needed <= host.reserved()) || self.reserve_more(needed)
    }

    #[cold]
    fn reserve_more(&mut self, needed: u64) -> bool {
        let Some(host) = &mut self.host else { return true };
        let reserved = host.reserve(needed);
        self.others = host.of_others();
        reserved
    }

    /// Takes `bytes` for a new connection; if the budget does not have them,
    /// [somebody](Self::shortage) has to make room.
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
    #[inline]
    pub(crate) fn grant(&self) -> Grant {
        if self.is_under_pressure() { self.grant_under_pressure() } else { Grant::UNLIMITED }
    }

    #[cold]
    fn grant_under_pressure(&self) -> Grant {
        let bytes = if self.used() >= self.high { PACKET } else { self.fair().max(PACKET) };
        Grant::up_to(bytes)
    }

    /// Bytes by which the budget is exceeded, as far as it is for this endpoint to free them.
    pub(crate) fn excess(&self) -> u64 {
        self.used().saturating_sub(self.high).min(self.beyond_part(0))
    }

    /// Bytes that must be given back for the budget to be kept, and for what was refused to be
    /// granted, as far as it is for this endpoint.
    pub(crate) fn shortage(&self) -> u64 {
        self.shortage_of_host().min(self.beyond_part(self.refused))
    }

    fn shortage_of_host(&self) -> u64 {
        self.used().saturating_add(self.refused.max(self.wanted)).saturating_sub(self.high)
    }

    /// What this endpoint would hold beyond its part with `more`.
    fn beyond_part(&self, more: u64) -> u64 {
        if self.host.is_none() { u64::MAX } else { (self.held() + more).saturating_sub(self.part) }
    }

    /// True if there is a [shortage](Self::shortage), maybe one that another endpoint has just told
    /// of.
    #[inline]
    pub(crate) fn is_short(&mut self) -> bool {
        if self.host.is_some() {
            return self.is_short_of_host();
        }
        self.held() + self.refused > self.high
    }

    #[inline(never)]
    fn is_short_of_host(&mut self) -> bool {
        let is_asked = self.host.as_ref().is_some_and(|host| host.wanted() > 0);
        (is_asked || self.shortage_of_host() > 0) && self.is_short_after_all()
    }

    #[cold]
    fn is_short_after_all(&mut self) -> bool {
        let held = self.held();
        let Some(host) = &mut self.host else { return false };
        host.settle(held);
        host.end_want_if_left();
        self.look_at_others(false);
        self.shortage() > 0
    }

    /// Takes in what the other endpoints have told. `anew`: this one has told how many connections
    /// it has.
    fn look_at_others(&mut self, anew: bool) {
        let Some(host) = &self.host else { return };
        self.others = host.of_others();
        self.wanted = host.wanted();
        let sharers = host.connections();
        if sharers != self.sharers || anew {
            self.sharers = sharers;
            self.share = self.high / (sharers as u64).max(1);
            self.part = host.fair(sharers);
        }
    }

    /// True if what belongs to no connection is `bytes`, as at the last settlement, and nothing has
    /// been taken or refused since.
    #[inline]
    pub(crate) const fn is_settled(&self, bytes: usize) -> bool {
        self.tables == bytes as u64 && self.taken == 0 && self.refused == 0
    }

    /// What could be freed has been. Whoever was refused asks again if it still needs to.
    pub(crate) fn forget_refusals(&mut self) {
        self.refused = 0;
        self.wanted = 0;
        if let Some(host) = &self.host {
            host.end_want();
        }
    }

    /// Asks the other endpoints to free what is missing, if it is not for this one. True if they do
    /// not know of it yet.
    #[inline]
    pub(crate) fn ask_others(&mut self) -> bool {
        self.host.is_some() && self.shortage_of_host() > self.shortage() && self.want()
    }

    #[cold]
    fn want(&mut self) -> bool {
        let Some(host) = &self.host else { return false };
        let news = host.want(self.refused.max(1));
        self.refused = 0;
        news
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
        self.taken = 0;
        counters.curr_memory = self.held();
        if self.host.is_some() {
            return self.settle_with_host(now, connections, counters);
        }
        if connections != self.sharers {
            self.sharers = connections;
            self.share = self.high / (connections as u64).max(1);
        }
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

    /// The same of several endpoints. If memory of the host is under pressure, or is not any more,
    /// whoever sees it first counts it.
    #[inline(never)]
    fn settle_with_host(&mut self, now: Instant, connections: usize, counters: &mut Counters) {
        let held = self.held();
        let Some(host) = &mut self.host else { return };
        host.settle(held);
        let told = host.tell(connections);
        self.look_at_others(told);
        let used = self.used();
        let Some(host) = &self.host else { return };
        if used > self.pressure {
            counters.tcp_memory_pressures += u64::from(host.press(true));
        } else if used <= self.low && host.press(false) {
            let since = self.since.unwrap_or(now);
            counters.tcp_memory_pressures_chrono += now.since(since).as_millis();
        }
        self.since = host.is_pressed().then(|| self.since.unwrap_or(now));
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
    use crate::reserve::HostMemory;
    use alloc::sync::Arc;
    use proptest::prelude::*;
    use std::vec::Vec;

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

    /// The budgets of a host's endpoints.
    fn host(bytes: u64, endpoints: usize) -> Vec<Budget> {
        let memory = Arc::new(HostMemory::new(bytes, endpoints));
        let budget = |_| {
            let mut budget = Budget::new(Some(bytes), 50, 66);
            budget.join(MemoryPart::new(memory.clone()));
            budget
        };
        (0..endpoints).map(budget).collect()
    }

    fn settle(budget: &mut Budget, second: u64, connections: usize, held: u32) {
        let before = u32::try_from(budget.connections).unwrap();
        budget.charge(before, held);
        budget.settle(Instant::from_secs(second), connections, 0, &mut Counters::default());
    }

    #[test]
    fn levels_and_shares_are_the_hosts() {
        let mut host = host(1_000_000, 2);
        settle(&mut host[0], 1, 8, 600_000);
        settle(&mut host[1], 1, 2, 10_000);
        assert!(!host[1].is_under_pressure());
        assert_eq!((host[1].share(), host[1].allowance(0)), (100_000, 32_768), "pressure would begin");
        settle(&mut host[1], 2, 2, 60_000);
        settle(&mut host[0], 3, 8, 600_000);
        assert!(host.iter().all(Budget::is_under_pressure));
        assert_eq!((host[0].share(), host[0].grant().bytes()), (100_000, 32_768));
        settle(&mut host[0], 4, 8, 400_000);
        settle(&mut host[1], 5, 2, 60_000);
        assert!(!host.iter().any(Budget::is_under_pressure));
        host.remove(0);
        settle(&mut host[0], 6, 2, 60_000);
        assert_eq!((host[0].share(), host[0].used()), (500_000, 60_000));
    }

    #[test]
    fn pressure_of_the_host_is_counted_once() {
        let mut host = host(1_000, 2);
        let mut counters = [Counters::default(), Counters::default()];
        for (second, at, held) in [(1, 0, 900), (2, 1, 10), (3, 0, 300), (4, 1, 10), (5, 1, 10)] {
            let before = u32::try_from(host[at].connections).unwrap();
            host[at].charge(before, held);
            host[at].settle(Instant::from_secs(second), 1, 0, &mut counters[at]);
        }
        let [first, second] = counters;
        assert_eq!((first.tcp_memory_pressures, second.tcp_memory_pressures), (1, 0));
        assert_eq!((first.tcp_memory_pressures_chrono, second.tcp_memory_pressures_chrono), (2_000, 0));
        assert_eq!((first.curr_memory, second.curr_memory), (300, 10));
    }

    #[test]
    fn whoever_holds_more_than_its_part_makes_room() {
        let mut host = host(1_000_000, 2);
        settle(&mut host[0], 1, 2, 700_000);
        settle(&mut host[1], 1, 20, 280_000);
        assert!(!host[1].admit(30_000), "20,000 are left");
        assert_eq!((host[1].shortage(), host[0].shortage()), (0, 0));
        assert!(host[1].ask_others() && !host[1].ask_others());
        assert!(host[0].is_short() && !host[1].is_short());
        // Rounded up to what the other has reserved.
        assert!((10_000..15_000).contains(&host[0].shortage()), "{}", host[0].shortage());
        settle(&mut host[0], 2, 2, 685_000);
        assert!(!host[0].is_short());
        host[0].forget_refusals();
        assert!(host[1].admit(30_000));
        // Whoever has no connection yet has the part of one.
        let mut host = self::host(1_000_000, 2);
        settle(&mut host[0], 1, 20, 1_000_000);
        settle(&mut host[1], 1, 0, 0);
        assert!(!host[1].admit(3_000) && host[1].ask_others());
        assert!(host[0].is_short());
        // What nobody else can free, somebody has to free itself.
        assert!(!host[1].admit(60_000));
        assert!(host[1].shortage() > 10_000);
    }

    proptest! {
        /// No more than what each buffer may have in any case is held beyond the budget, and
        /// buffers that have been given something keep it.
        #[test]
        fn all_together_keep_to_the_budget(
            steps in prop::collection::vec((0usize..3, 0usize..6, 0usize..400_000, any::<bool>()), 0..150),
        ) {
            let mut host = host(1_000_000, 3);
            let mut buffers = [[0; 6]; 3];
            let mut second = 0;
            for (at, buffer, bytes, releases) in steps {
                let held = &mut buffers[at];
                if releases {
                    held[buffer] = 0;
                    second += 1;
                    settle(&mut host[at], second, 6, held.iter().sum::<usize>() as u32);
                } else {
                    held[buffer] = host[at].request(held[buffer], bytes.max(held[buffer]));
                }
                let most = 1_000_000 + 18 * PACKET;
                prop_assert!(buffers.iter().flatten().sum::<usize>() <= most);
                let sum = host.iter().map(Budget::held).sum::<u64>();
                prop_assert!(sum <= most as u64);
            }
        }
    }
}
