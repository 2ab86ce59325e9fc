//! Delays that follow the clock: packets that are released together, and paths whose length changes.

use super::{Fate, ImpairCx, Impairment};
use crate::packet::Packet;
use ackline_tcp_core::{Duration, Instant};

/// Holds packets until the next multiple of a time, as links do that send in aggregates. Keeps the
/// order.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    every: Duration,
}

impl Batch {
    /// Releases what has come once in `every`.
    #[must_use]
    pub const fn new(every: Duration) -> Self {
        Self { every }
    }
}

impl Impairment for Batch {
    fn apply(&mut self, cx: &mut ImpairCx<'_>, _: &mut Packet, fate: &mut Fate) {
        let every = self.every.as_nanos().max(1);
        let over = cx.now.as_nanos() % every;
        let wait = if over == 0 { 0 } else { every - over };
        fate.delay = fate.delay.saturating_add(Duration::from_nanos(wait));
    }
}

/// Adds a delay that changes in steps, again and again with a period: a path over satellites that
/// move. Keeps the order.
#[derive(Clone, Debug)]
pub struct Steps {
    /// How long each one lasts.
    every: Duration,
    added: Vec<Duration>,
}

impl Steps {
    /// Adds each of `added` for `every`, and begins again after the last one.
    #[must_use]
    pub const fn new(every: Duration, added: Vec<Duration>) -> Self {
        Self { every, added }
    }

    fn at(&self, now: Instant) -> Duration {
        let step = now.as_nanos() / self.every.as_nanos().max(1);
        let place = step.checked_rem(self.added.len() as u64).unwrap_or(0);
        self.added.get(place as usize).copied().unwrap_or(Duration::ZERO)
    }
}

impl Impairment for Steps {
    fn apply(&mut self, cx: &mut ImpairCx<'_>, _: &mut Packet, fate: &mut Fate) {
        fate.delay = fate.delay.saturating_add(self.at(cx.now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::test_packets::ipv4;
    use crate::rng::SimRng;

    fn delay(impairment: &mut dyn Impairment, micros: u64) -> u64 {
        let (mut fate, mut rng) = (Fate::default(), SimRng::new(1, 0));
        let now = Instant::from_nanos(micros * 1_000);
        impairment.apply(&mut ImpairCx { now, rng: &mut rng }, &mut ipv4(0, 100, false), &mut fate);
        assert!(!fate.lost && !fate.reorders);
        fate.delay.as_nanos() / 1_000
    }

    #[test]
    fn a_batch_is_released_at_once() {
        let mut batch = Batch::new(Duration::from_millis(5));
        let all = [0, 1, 4_999, 5_000, 5_001].map(|micros| micros + delay(&mut batch, micros));
        assert_eq!(all, [0, 5_000, 5_000, 5_000, 10_000]);
    }

    #[test]
    fn steps_follow_each_other_and_begin_again() {
        let added = [0, 20, 7].map(Duration::from_millis).to_vec();
        let mut steps = Steps::new(Duration::from_secs(15), added);
        let all = [0, 14_999_999, 15_000_000, 30_000_000, 45_000_000].map(|micros| delay(&mut steps, micros));
        assert_eq!(all, [0, 0, 20_000, 7_000, 0]);
    }
}
