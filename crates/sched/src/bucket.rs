//! A token bucket in whole numbers, which does not drift.
//!
//! Tokens are counted in units of 10^-9 bytes, so a nanosecond at a rate of r bytes per second adds
//! exactly r of them. A packet may leave while the bucket is not in debt, and takes its whole
//! length, going into debt if necessary: the debt is the time that the packet takes at the rate.
//! With a burst of 0 that is a link of exactly this rate. An idle period saves up at most the
//! burst, but never less than one unit below a nanosecond's worth, which is what a wake-up in whole
//! nanoseconds is late. A driver that comes later than requested, with packets waiting, loses
//! nothing either: [`TokenBucket::late`] returns what the lateness would have cost, beyond the
//! burst.
//!
//! ```text
//!  burst ┼──╮         ╱────
//!        │  │╲       ╱
//!      0 ┼──┼─╲─────╱──────► t      sent in any interval T:  at most  rate * T + burst + one packet
//!        │  │  ╲___╱ debt: nothing leaves
//! ```

use ackline_tcp_core::{Duration, Instant, Rate};

/// Units per byte.
const UNIT: i128 = 1_000_000_000;

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    rate: Rate,
    /// Bytes that an idle period can save up.
    burst: u64,
    /// Tokens at `at`, in [`UNIT`]s per byte; negative: debt.
    level: i128,
    at: Instant,
}

impl TokenBucket {
    /// A full bucket. A rate of zero is treated as one byte per second.
    #[must_use]
    pub const fn new(rate: Rate, burst: u64) -> Self {
        let rate = if rate.bytes_per_second() == 0 { Rate::from_bytes_per_second(1) } else { rate };
        Self { rate, burst, level: burst as i128 * UNIT, at: Instant::ZERO }
    }

    /// The rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The maximum that an idle period saves up, in bytes.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// Tokens in [`UNIT`]s at `now`.
    fn level_at(&self, now: Instant) -> i128 {
        let rate = i128::from(self.rate.bytes_per_second());
        // Less than one nanosecond's tokens is what `earliest` rounds up: they are kept beyond any
        // burst, or each departure would lose them.
        let full = (i128::from(self.burst) * UNIT).max(rate - 1);
        let earned = i128::from(now.since(self.at).as_nanos()).saturating_mul(rate);
        match self.level {
            // Tokens given for lateness are for the packets that waited. They do not last.
            level if level > full => level.saturating_sub(earned).max(full),
            level => level.saturating_add(earned).min(full),
        }
    }

    /// Packets waited until `now`, and the first could have left `by` earlier: adds what the bucket
    /// had no room for in that time, and returns it in bytes.
    pub fn late(&mut self, now: Instant, by: Duration) -> u64 {
        let level = self.level_at(now);
        let rate = i128::from(self.rate.bytes_per_second());
        let earned = |time: Duration| i128::from(time.as_nanos()).saturating_mul(rate);
        let with_room = self.level.saturating_add(earned(now.since(self.at)));
        let given = (with_room - level).clamp(0, earned(by));
        self.level = level.saturating_add(given);
        self.at = self.at.max(now);
        u64::try_from(given / UNIT).unwrap_or(u64::MAX)
    }

    /// When the next packet may leave; `now` or earlier if it may leave at once. Rounded up to the
    /// nanosecond; the bucket keeps what the rounding gives away.
    #[must_use]
    pub fn earliest(&self, now: Instant) -> Instant {
        let level = self.level_at(now);
        if level >= 0 {
            return now;
        }
        let rate = i128::from(self.rate.bytes_per_second());
        let wait = (rate - 1 - level) / rate;
        now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// A packet of `bytes` leaves at `now`.
    pub fn take(&mut self, now: Instant, bytes: u64) {
        self.level = self.level_at(now).saturating_sub(i128::from(bytes) * UNIT);
        self.at = self.at.max(now);
    }

    /// The last packet had `right` bytes instead of `taken`.
    pub fn correct(&mut self, taken: u64, right: u64) {
        let back = i128::from(taken) - i128::from(right);
        self.level = self.level.saturating_add(back * UNIT);
    }

    /// Changes rate and burst from `now` on. A debt stays, so that what has left is paid for.
    pub fn set(&mut self, now: Instant, rate: Rate, burst: u64) {
        let level = self.level_at(now);
        let new = Self::new(rate, burst);
        *self = Self { level: level.min(new.level), at: self.at.max(now), ..new };
    }

    /// Tokens in bytes at the last departure, for display; negative: debt.
    #[must_use]
    pub fn tokens(&self) -> f64 {
        self.level as f64 / UNIT as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Departures of `len`-byte packets that are always waiting, for `seconds`.
    fn departures(bucket: &mut TokenBucket, len: u64, seconds: u64) -> (u64, Instant) {
        let end = Instant::from_secs(seconds);
        let (mut now, mut count) = (Instant::ZERO, 0);
        loop {
            let next = bucket.earliest(now);
            assert!(next >= now);
            if next >= end {
                return (count, next);
            }
            now = next;
            bucket.take(now, len);
            count += 1;
        }
    }

    #[test]
    fn without_a_burst_it_is_a_link_of_the_rate() {
        // 1500 bytes at 12 Mbit/s take 1 ms.
        let mut bucket = TokenBucket::new(Rate::from_bits_per_second(12_000_000), 0);
        for ms in 0..10 {
            assert_eq!(bucket.earliest(Instant::from_millis(ms)), Instant::from_millis(ms));
            bucket.take(Instant::from_millis(ms), 1500);
            assert_eq!(bucket.earliest(Instant::from_millis(ms)), Instant::from_millis(ms + 1));
        }
    }

    #[test]
    fn hours_at_a_rate_that_no_nanosecond_divides_do_not_drift() {
        // 7 bytes at 3 bytes per second take 2 1/3 s: in 10 hours, 15,428 gaps, and one departure
        // at 0.
        let mut bucket = TokenBucket::new(Rate::from_bytes_per_second(3), 0);
        let (count, next) = departures(&mut bucket, 7, 36_000);
        assert_eq!(count, 36_000 * 3 / 7 + 1);
        // The 15,429th gap ends at 15,429 * 7 / 3 = 36,001 s.
        assert_eq!(next, Instant::from_nanos((15_429 * 7_000_000_000_u64).div_ceil(3)));
    }

    #[test]
    fn a_million_packets_take_as_long_as_their_bytes() {
        // 999,999,937 bytes per second (a prime), 1448 bytes each.
        let rate = 999_999_937;
        let mut bucket = TokenBucket::new(Rate::from_bytes_per_second(rate), 0);
        let mut now = Instant::ZERO;
        for _ in 0..1_000_000 {
            now = bucket.earliest(now);
            bucket.take(now, 1448);
        }
        let total = u128::from(1448_u64) * 999_999 * 1_000_000_000;
        let exact = u64::try_from(total.div_ceil(u128::from(rate))).unwrap();
        assert_eq!(now, Instant::from_nanos(exact));
    }

    #[test]
    fn a_late_driver_loses_nothing_within_the_burst() {
        // Woken 60 us late each time, 1500 bytes at 100 Mbit/s every 120 us on average.
        let mut bucket = TokenBucket::new(Rate::from_bits_per_second(100_000_000), 3_000);
        let (mut now, mut sent) = (Instant::ZERO, 0_u64);
        while now < Instant::from_secs(10) {
            while bucket.earliest(now) <= now {
                bucket.take(now, 1500);
                sent += 1500;
            }
            now = bucket.earliest(now) + Duration::from_micros(60);
        }
        let exact = 10 * 100_000_000 / 8;
        assert!(sent.abs_diff(exact) <= 6_000, "{sent} of {exact}");
    }

    /// What leaves in 10 s at 100 kbyte/s by packets of 1000 bytes that are always waiting, for a
    /// driver that is late by `late` each time, of which `given` is made up for.
    fn sent_by_a_late_driver(late: Duration, given: Duration) -> u64 {
        let mut bucket = TokenBucket::new(Rate::from_bytes_per_second(100_000), 100);
        let (mut now, mut sent) = (Instant::ZERO, 0_u64);
        while now < Instant::from_secs(10) {
            while bucket.earliest(now) <= now {
                bucket.take(now, 1_000);
                sent += 1_000;
            }
            let due = bucket.earliest(now);
            now = due + late;
            bucket.late(now, late.min(given));
        }
        sent
    }

    #[test]
    fn lateness_that_is_made_up_for_costs_no_rate() {
        for late in [0, 1, 7, 25, 90].map(Duration::from_millis) {
            let sent = sent_by_a_late_driver(late, Duration::from_millis(100));
            assert!(sent.abs_diff(1_000_000) <= 10_000, "{late:?}: {sent}");
        }
        let sent = sent_by_a_late_driver(Duration::from_millis(90), Duration::ZERO);
        assert!(sent < 200_000, "the test shows nothing: {sent} without it");
        // Half of the lateness: 45 ms and what a packet takes, in 90 ms and as much.
        let half = sent_by_a_late_driver(Duration::from_millis(90), Duration::from_millis(45));
        assert!((500_000..600_000).contains(&half), "{half}");
    }

    #[test]
    fn what_lateness_gave_does_not_outlive_the_packets_that_waited() {
        let mut bucket = TokenBucket::new(Rate::from_bytes_per_second(1_000_000), 1_000);
        let at = Instant::from_millis;
        bucket.take(at(0), 11_000);
        assert_eq!(bucket.earliest(at(0)), at(10));
        // Ten milliseconds late: a burst of 1000 has room for one of them.
        assert_eq!(bucket.late(at(20), Duration::from_millis(10)), 9_000);
        assert_eq!(bucket.late(at(20), Duration::from_millis(10)), 0, "once");
        bucket.take(at(20), 2_000);
        let mut idle = bucket;
        bucket.take(at(20), 8_000);
        assert_eq!(bucket.earliest(at(20)), at(20), "ten were earned");
        bucket.take(at(20), 1_000);
        assert_eq!(bucket.earliest(at(20)), at(21));
        // Unused, it is gone after as long a time.
        idle.take(at(27), 1_000);
        assert_eq!((idle.earliest(at(27)), idle.tokens()), (at(27), 0.0));
    }

    #[test]
    fn idle_time_saves_up_no_more_than_the_burst() {
        let mut bucket = TokenBucket::new(Rate::from_bytes_per_second(1_000_000), 10_000);
        let now = Instant::from_secs(3_600);
        let mut sent = 0;
        while bucket.earliest(now) <= now {
            bucket.take(now, 1_000);
            sent += 1_000;
        }
        // The burst, and the packet that goes into debt.
        assert_eq!(sent, 11_000);
        assert_eq!(bucket.earliest(now), now + Duration::from_millis(1));
    }

    #[test]
    fn a_packet_larger_than_the_burst_passes_and_is_paid_for() {
        let mut bucket = TokenBucket::new(Rate::from_bytes_per_second(1_000_000), 1_000);
        bucket.take(Instant::ZERO, 65_000);
        assert_eq!(bucket.earliest(Instant::ZERO), Instant::from_millis(64));
    }

    #[test]
    fn what_left_is_what_is_paid_for() {
        let mut bucket = TokenBucket::new(Rate::from_bytes_per_second(1_000), 0);
        bucket.take(Instant::ZERO, 100);
        bucket.correct(100, 150);
        assert_eq!(bucket.earliest(Instant::ZERO), Instant::from_millis(150));
        bucket.correct(150, 20);
        assert_eq!(bucket.earliest(Instant::ZERO), Instant::from_millis(20));
    }

    #[test]
    fn a_new_rate_keeps_the_debt_in_bytes() {
        let mut bucket = TokenBucket::new(Rate::from_bytes_per_second(1_000), 0);
        bucket.take(Instant::ZERO, 1_000);
        bucket.set(Instant::from_millis(500), Rate::from_bytes_per_second(2_000), 0);
        assert_eq!(bucket.earliest(Instant::from_millis(500)), Instant::from_millis(750));
    }

    #[test]
    fn the_extremes_do_not_overflow() {
        let mut bucket = TokenBucket::new(Rate::MAX, u64::MAX);
        bucket.take(Instant::FAR_FUTURE, u64::MAX);
        assert_eq!(bucket.earliest(Instant::FAR_FUTURE), Instant::FAR_FUTURE);
        let mut bucket = TokenBucket::new(Rate::ZERO, 0);
        bucket.take(Instant::ZERO, u64::MAX);
        bucket.take(Instant::ZERO, u64::MAX);
        assert_eq!(bucket.earliest(Instant::ZERO), Instant::FAR_FUTURE);
    }
}
