//! Random loss: independent, and in bursts.

use super::{Fate, ImpairCx, Impairment};
use crate::packet::Packet;

/// Each packet is lost with the same probability, independently.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    probability: f64,
}

impl Loss {
    /// A loss of `probability`, 0 to 1.
    #[must_use]
    pub const fn new(probability: f64) -> Self {
        Self { probability }
    }
}

impl Impairment for Loss {
    fn apply(&mut self, cx: &mut ImpairCx<'_>, _: &mut Packet, fate: &mut Fate) {
        fate.lost |= cx.rng.chance(self.probability);
    }
}

/// Gilbert and Elliott's model: a good and a bad state, each with its own loss, and a possible
/// change of state before each packet.
#[derive(Clone, Copy, Debug)]
pub struct GilbertElliott {
    /// Chance to go from good to bad.
    to_bad: f64,
    /// Chance to go from bad to good.
    to_good: f64,
    /// Loss in the good state.
    good: f64,
    /// Loss in the bad state.
    bad: f64,
    is_bad: bool,
}

impl GilbertElliott {
    /// A path in the good state. All arguments are probabilities.
    #[must_use]
    pub const fn new(to_bad: f64, to_good: f64, good: f64, bad: f64) -> Self {
        Self { to_bad, to_good, good, bad, is_bad: false }
    }

    /// The long-term loss rate.
    #[must_use]
    pub fn mean_loss(&self) -> f64 {
        let share_bad = self.to_bad / (self.to_bad + self.to_good);
        share_bad * self.bad + (1.0 - share_bad) * self.good
    }
}

impl Impairment for GilbertElliott {
    fn apply(&mut self, cx: &mut ImpairCx<'_>, _: &mut Packet, fate: &mut Fate) {
        let change = if self.is_bad { self.to_good } else { self.to_bad };
        self.is_bad ^= cx.rng.chance(change);
        fate.lost |= cx.rng.chance(if self.is_bad { self.bad } else { self.good });
    }
}
