//! Packets that arrive late, twice, or out of order.

use super::{Fate, ImpairCx, Impairment};
use crate::packet::Packet;
use ackline_tcp_core::Duration;

/// Adds a random delay, uniform up to a limit, to each packet. Keeps the order unless told
/// otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Jitter {
    limit: Duration,
    reorders: bool,
}

impl Jitter {
    /// Adds up to `limit`; packets only overtake each other if `reorders` is set.
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

/// Delays some packets, so that later ones overtake them.
#[derive(Clone, Copy, Debug)]
pub struct Reorder {
    probability: f64,
    by: Duration,
}

impl Reorder {
    /// Delays a packet by `by` with `probability`.
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
    /// Duplicates packets with `probability`.
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
