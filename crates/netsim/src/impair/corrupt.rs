//! Corruption: flips bits of the real packet, to be detected by checksums.

use super::{Fate, ImpairCx, Impairment};
use crate::packet::Packet;

/// With a given probability per packet, flips 1 to `bits` random bits.
#[derive(Clone, Copy, Debug)]
pub struct Corrupt {
    probability: f64,
    bits: u32,
}

impl Corrupt {
    /// Corrupts packets with `probability`, at most `bits` bits each.
    #[must_use]
    pub const fn new(probability: f64, bits: u32) -> Self {
        Self { probability, bits }
    }
}

impl Impairment for Corrupt {
    fn apply(&mut self, cx: &mut ImpairCx<'_>, packet: &mut Packet, _: &mut Fate) {
        if !cx.rng.chance(self.probability) {
            return;
        }
        let flips = 1 + cx.rng.below(u64::from(self.bits.max(1)));
        for _ in 0..flips {
            let bit = cx.rng.below(packet.len() as u64 * 8);
            if let Some(octet) = packet.octets_mut().get_mut((bit / 8) as usize) {
                *octet ^= 1 << (bit % 8);
            }
        }
        packet.to = None;
    }

    fn corrupts(&self) -> bool {
        true
    }
}
