//! Packets that come late, twice, or out of order.

use super::{Fate, ImpairCx, Impairment};
use crate::packet::Packet;
use ackline_tcp_core::Duration;

/// Adds a random delay, uniform up to a limit, to each packet. Order is kept unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Jitter {
    limit: Duration,
    reorders: bool,
}

impl Jitter {
    /// Up to `limit` more delay; packets overtake each other only if `reorders` is set.
    #[must_use]
    pub const fn new(limit: Duration, reorders: bool) -> Self {
        Self { limit, reorders }
    }
}

impl Impairment for Jitter {
    fn apply(&mut self, cx: &mut ImpairCx<'_>, _: &mut Packet, fate: &mut Fate) {
        let limit = self.limit.as_nanos().saturating_add(1);
        fate.delay = fate.delay.saturating_add(Duration::from_nanos(cx.rng.below(limit)));
        fate.reorders |= self.reorders;
    }
}

/// Holds back some packets, so that those behind overtake them.
#[derive(Clone, Copy, Debug)]
pub struct Reorder {
    probability: f64,
    by: Duration,
}

impl Reorder {
    /// With `probability`, a packet comes `by` later.
    #[must_use]
    pub const fn new(probability: f64, by: Duration) -> Self {
        Self { probability, by }
    }
}

impl Impairment for Reorder {
    fn apply(&mut self, cx: &mut ImpairCx<'_>, _: &mut Packet, fate: &mut Fate) {
        if cx.rng.chance(self.probability) {
            fate.delay = fate.delay.saturating_add(self.by);
            fate.reorders = true;
        }
    }
}

/// With a probability, a packet arrives twice.
#[derive(Clone, Copy, Debug)]
pub struct Duplicate {
    probability: f64,
}

impl Duplicate {
    /// Doubles packets with `probability`.
    #[must_use]
    pub const fn new(probability: f64) -> Self {
        Self { probability }
    }
}

impl Impairment for Duplicate {
    fn apply(&mut self, cx: &mut ImpairCx<'_>, _: &mut Packet, fate: &mut Fate) {
        fate.copies += u32::from(cx.rng.chance(self.probability));
    }
}
