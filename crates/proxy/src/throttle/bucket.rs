//! A token bucket that hands out turns.
//!
//! Whoever has bytes to pass reserves some, and is told when they may pass. Turns follow each other
//! at the rate, so those that ask one after the other wait one after the other, and each that asks
//! again for a [quantum](TokenBucket::quantum) waits behind all others: a round robin, without a
//! list of who waits. What a turn has not used is given back.
//!
//! ```text
//!          idle for longer than the depth
//!   ──┬──────────┬──┬────────┬────────┬────────┬──► time
//!     │  depth   │  │ a      │ b      │ a again│
//!     └──────────┘  └ now    └ free_at, moves on with each turn
//! ```

use ackline_tcp_core::{Duration, Instant, Rate};

/// What passes in one turn: the bytes of this time.
const TURN: Duration = Duration::from_millis(1);
/// But at least a segment, and at most what one call copies.
const LEAST: u64 = 1_460;
const MOST: u64 = 128 << 10;

/// Time at the rate that may be caught up with after idleness, or by a task that woke late.
const DEPTH: Duration = Duration::from_millis(20);

/// The bucket of one rate.
#[derive(Debug)]
pub(super) struct TokenBucket {
    rate: Rate,
    /// When the next turn begins, if one asks for it by then.
    free_at: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub(super) const fn new(rate: Rate) -> Self {
        Self { rate, free_at: Instant::ZERO }
    }

    /// Bytes of a turn if there are more: few enough that others do not wait long.
    pub(super) fn quantum(&self) -> u64 {
        let bytes = u128::from(self.rate.bytes_per_second()) * u128::from(TURN.as_nanos()) / 1_000_000_000;
        u64::try_from(bytes).unwrap_or(MOST).clamp(LEAST, MOST)
    }

    /// Reserves a turn for so many bytes. Returns when they may pass: the past means at once.
    pub(super) fn reserve(&mut self, now: Instant, bytes: u64) -> Instant {
        let depth = DEPTH.max(self.rate.time_for(self.quantum()));
        let turn = self.free_at.max(now - depth);
        self.free_at = turn + self.rate.time_for(bytes);
        turn
    }

    /// Takes back what a turn has not used.
    pub(super) fn give_back(&mut self, bytes: u64) {
        self.free_at = self.free_at - self.rate.time_for(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(1_000_000 + millis)
    }

    fn mbit(rate: u64) -> Rate {
        Rate::from_bits_per_second(rate * 1_000_000)
    }

    #[test]
    fn one_that_always_has_more_passes_at_the_rate() {
        for rate in [Rate::from_bits_per_second(8_000), mbit(1), mbit(10), mbit(1_000), mbit(40_000)] {
            let mut bucket = TokenBucket::new(rate);
            let (mut now, mut passed) = (at(0), 0);
            while now < at(0) + SECOND.saturating_mul(20) {
                let turn = bucket.reserve(now, bucket.quantum());
                // A task wakes late.
                now = now.max(turn + Duration::from_micros(1_500));
                passed += bucket.quantum();
            }
            let expected = rate.bytes_per_second() * 20;
            let slack = rate.bytes_per_second() / 40 + 3 * bucket.quantum();
            assert!(passed.abs_diff(expected) <= slack, "{rate:?}: {passed} of {expected} bytes");
        }
    }

    #[test]
    fn idleness_is_caught_up_with_for_twenty_milliseconds_and_no_more() {
        let mut bucket = TokenBucket::new(mbit(8));
        // An hour of idleness, and 1,000 bytes a millisecond.
        let passes = |bucket: &mut TokenBucket, now| bucket.reserve(now, 1_000) <= now;
        let burst = (0..100).filter(|_| passes(&mut bucket, at(3_600_000))).count();
        assert_eq!(burst, 21);
    }

    #[test]
    fn turns_come_one_after_the_other_whoever_asks() {
        let mut bucket = TokenBucket::new(mbit(8));
        let mut passed = [0_u64; 3];
        // The second has little at a time, and the third comes later.
        let mut turns = vec![(at(0), 0_usize), (at(0), 1)];
        let mut late = Some((at(5_000), 2));
        while let Some((now, who)) = {
            turns.sort_by_key(|turn| std::cmp::Reverse(turn.0));
            turns.pop().filter(|turn| turn.0 < at(10_000))
        } {
            if late.is_some_and(|late| late.0 <= now) {
                turns.extend(late.take());
            }
            let wanted = if who == 1 { 100 } else { bucket.quantum() };
            passed[who] += wanted;
            let turn = bucket.reserve(now, wanted);
            turns.push((now.max(turn), who));
        }
        let [all, little, half] = passed;
        // 1,000,000 bytes a second, for ten seconds.
        assert!((all + little + half).abs_diff(10_000_000) < 50_000, "{passed:?}");
        // The same number of turns: what one leaves the others have.
        let per_turn = |bytes: u64, wanted: u64| bytes / wanted;
        let (all, little, half) = (per_turn(all, 1_460), per_turn(little, 100), per_turn(half, 1_460));
        // One of them had the 20 ms that the full bucket let pass at once.
        assert!(all.abs_diff(little) < 250, "{all} and {little} turns");
        assert!(half > all / 3 && half < all / 2, "{all} and {half} turns");
    }

    #[test]
    fn what_is_given_back_costs_nothing_and_never_more_than_the_rate_passes() {
        let rate = mbit(8);
        let mut bucket = TokenBucket::new(rate);
        let (mut passed, mut open) = (0_u64, Vec::new());
        for step in 0..20_000_u64 {
            let now = at(0) + Duration::from_micros(500 * step);
            open.push((bucket.reserve(now, 1_460), 1_460));
            // Whose turn has come uses a third of it, or none.
            open.retain(|&(turn, bytes)| {
                let has_come = turn <= now;
                if has_come {
                    let used = if step % 3 == 0 { 0 } else { bytes / 3 };
                    bucket.give_back(bytes - used);
                    passed += used;
                }
                !has_come
            });
            let most = rate.bytes_per_second() * step / 2_000 + 21_000 + 1_460;
            assert!(passed <= most, "{passed} of {most} bytes at step {step}");
        }
        assert!(passed > 20_000 / 3 * 2 * 486 * 9 / 10, "{passed} bytes");
    }
}
