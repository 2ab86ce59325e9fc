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
//! holds counts, however it came by it. Between two settlements an event may only take more through the budget,
//! which adds it to [`Budget::used`] at once.
//!
//! [memory]: crate::conn::Connection::memory

use crate::counters::Counters;
use crate::time::Instant;

/// The account, and the levels that it is measured by. All operations are O(1).
#[derive(Debug)]
pub(crate) struct Budget {
    /// Bytes at or below which pressure ends.
    low: u64,
    /// Bytes above which pressure begins.
    pressure: u64,
    /// Bytes charged to connections when they were last settled.
    connections: u64,
    /// Bytes charged to what belongs to no connection, at the last settlement.
    tables: u64,
    /// Since when memory has been under pressure.
    since: Option<Instant>,
}

impl Budget {
    /// A budget of `max` bytes, `None` for no limit; `low` and `pressure` are percentages of it.
    pub(crate) fn new(max: Option<u64>, low: u8, pressure: u8) -> Self {
        let high = max.unwrap_or(u64::MAX);
        let share = |percent: u8| high / 100 * u64::from(percent.min(100));
        let pressure = share(pressure);
        Self { low: share(low).min(pressure), pressure, connections: 0, tables: 0, since: None }
    }

    /// Bytes held.
    pub(crate) const fn used(&self) -> u64 {
        self.connections + self.tables
    }

    /// True from when more than `pressure` was held until no more than `low` is.
    pub(crate) const fn is_under_pressure(&self) -> bool {
        self.since.is_some()
    }

    /// A connection that was charged `before` bytes holds `after`.
    #[inline]
    pub(crate) const fn charge(&mut self, before: u32, after: u32) {
        self.connections = self.connections + after as u64 - before as u64;
    }

    /// What belongs to no connection is `bytes`. Every connection has been charged.
    pub(crate) fn settle(&mut self, now: Instant, bytes: usize, counters: &mut Counters) {
        self.tables = bytes as u64;
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
            budget.settle(Instant::from_secs(second), 100, &mut counters);
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
        budget.settle(Instant::ZERO, 1 << 40, &mut Counters::default());
        assert!(!budget.is_under_pressure());
    }
}
