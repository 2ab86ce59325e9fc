//! The smallest round-trip time of the last five minutes (RFC 8985, section 6.2, step 1:
//! RACK.min_RTT is a windowed minimum, so that it follows a path that becomes longer).
//!
//! This is Kathleen Nichols's filter, as in Linux (`lib/minmax.c`): it keeps the smallest sample,
//! the smallest one after that, and the smallest one after that, so that a successor is ready when
//! a sample expires. A sample costs a few comparisons. After each sample the value is never older
//! than the window, and at worst not quite the smallest.
//!
//! Without samples the value stays: an idle connection has nothing better. It only keeps the
//! smallest sample; the successors are part of the flight's memory.

use crate::time::{Duration, Instant};

/// How long a sample counts (Linux: `tcp_min_rtt_wlen`, 300 s).
const WINDOW: Duration = Duration::from_secs(300);

/// Bits of a [`Sample`] that hold the round-trip time in ns. The others hold its time in units of
/// 2^30 ns, about a second; they wrap after 104 days.
const RTT_BITS: u32 = 41;
/// The longest round-trip time that is kept: 18 minutes.
pub(in crate::snd) const LONGEST: u64 = 1 << (RTT_BITS - 1);

/// A sample and its time; 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample(u64);

impl Sample {
    const fn new(now: Instant, rtt: Duration) -> Self {
        let rtt = rtt.as_nanos();
        let rtt = if rtt > LONGEST { LONGEST } else { rtt };
        Self(now.as_nanos() >> 30 << RTT_BITS | rtt)
    }

    const fn rtt(self) -> u64 {
        self.0 & ((1 << RTT_BITS) - 1)
    }

    /// Units between `self` and the newer `other`.
    const fn age(self, other: Self) -> u64 {
        (other.0 >> RTT_BITS).wrapping_sub(self.0 >> RTT_BITS) & (u64::MAX >> RTT_BITS)
    }
}

/// The smallest sample within the window.
#[derive(Debug, Default)]
pub(in crate::snd) struct MinRtt(Sample);

/// The next smallest samples; each is at least as new as the one before it. `None` at the start.
#[derive(Debug, Default)]
pub(crate) struct Successors([Sample; 2]);

impl MinRtt {
    /// `None` before a sample.
    pub(in crate::snd) fn get(&self) -> Option<Duration> {
        (self.0 != Sample::default()).then(|| Duration::from_nanos(self.0.rtt()))
    }

    /// Adds a sample.
    pub(in crate::snd) fn on_sample(&mut self, successors: &mut Successors, now: Instant, rtt: Duration) {
        const WINDOW_UNITS: u64 = WINDOW.as_nanos() >> 30;
        let sample = Sample::new(now, rtt);
        let (first, [second, third]) = (&mut self.0, &mut successors.0);
        for successor in [&mut *second, &mut *third] {
            if *successor == Sample::default() {
                *successor = *first;
            }
        }
        let none = *first == Sample::default();
        if none || sample.rtt() <= first.rtt() || third.age(sample) > WINDOW_UNITS {
            (*first, *second, *third) = (sample, sample, sample);
            return;
        }
        if sample.rtt() <= second.rtt() {
            (*second, *third) = (sample, sample);
        } else if sample.rtt() <= third.rtt() {
            *third = sample;
        }
        let age = first.age(sample);
        if age > WINDOW_UNITS {
            // The first has expired: the others move up. The second may have expired as well.
            (*first, *second, *third) = (*second, *third, sample);
            if first.age(sample) > WINDOW_UNITS {
                (*first, *second, *third) = (*second, *third, sample);
            }
        } else if second == first && age > WINDOW_UNITS / 4 {
            // A quarter of the window has passed without a successor: use this one.
            (*second, *third) = (sample, sample);
        } else if third == second && age > WINDOW_UNITS / 2 {
            *third = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MinRtt, Successors};
    use crate::time::{Duration, Instant};
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_minimum_expires() {
        let (mut min, mut next) = (MinRtt::default(), Successors::default());
        assert_eq!(min.get(), None);
        min.on_sample(&mut next, Instant::ZERO, ms(10));
        for s in 1..=299 {
            min.on_sample(&mut next, Instant::from_secs(s), ms(50));
            assert_eq!(min.get(), Some(ms(10)), "{s} s");
        }
        min.on_sample(&mut next, Instant::from_secs(302), ms(50));
        assert_eq!(min.get(), Some(ms(50)));
    }

    /// An idle connection keeps the smallest sample, without its successors.
    #[test]
    fn idle_time_does_not_expire_it_but_the_next_sample_does() {
        let mut min = MinRtt::default();
        min.on_sample(&mut Successors::default(), Instant::from_secs(1), ms(10));
        let mut next = Successors::default();
        min.on_sample(&mut next, Instant::from_secs(100), ms(20));
        assert_eq!(min.get(), Some(ms(10)));
        min.on_sample(&mut next, Instant::from_secs(400), ms(90));
        assert_eq!(min.get(), Some(ms(20)), "the successor");
        min.on_sample(&mut Successors::default(), Instant::from_secs(1_000), ms(90));
        assert_eq!(min.get(), Some(ms(90)));
    }

    proptest! {
        /// Against a list of all samples: never below the true minimum of the window, never a
        /// sample from outside it, and at most the newest sample. The filter's clock ticks about
        /// once a second.
        #[test]
        fn within_the_window(samples in prop::collection::vec((1u64..40_000, 1u64..500), 1..400)) {
            let (mut min, mut next) = (MinRtt::default(), Successors::default());
            let mut all: VecDeque<(Instant, Duration)> = VecDeque::new();
            let mut now = Instant::from_secs(5);
            for (wait, rtt) in samples {
                now += ms(wait);
                min.on_sample(&mut next, now, ms(rtt));
                all.push_back((now, ms(rtt)));
                while now.since(all[0].0) > Duration::from_secs(302) {
                    all.pop_front();
                }
                let got = min.get().unwrap();
                prop_assert!(got >= all.iter().map(|(_, rtt)| *rtt).min().unwrap());
                prop_assert!(got <= ms(rtt));
                prop_assert!(all.iter().any(|(_, rtt)| *rtt == got));
            }
        }
    }
}
