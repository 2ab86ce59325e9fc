//! A policer: what exceeds a rate, after a burst, is dropped and never waits.

use super::{Fate, ImpairCx, Impairment};
use crate::packet::Packet;
use ackline_tcp_core::Instant;

/// A token bucket without a queue, as operators have it before expensive links. Counts IP bytes.
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    /// Bits per second.
    rate: u64,
    /// Bits of a full bucket.
    bucket: u128,
    /// Bits in it, times a thousand million, so that nothing is rounded.
    tokens: u128,
    filled_at: Instant,
}

/// Parts of a bit: what one nanosecond adds at one bit per second.
const PARTS: u128 = 1_000_000_000;

impl Policer {
    /// A full bucket of `bucket` bytes that fills at `rate` bits per second.
    #[must_use]
    pub const fn new(rate: u64, bucket: u64) -> Self {
        let bits = bucket as u128 * 8;
        Self { rate, bucket: bits, tokens: bits * PARTS, filled_at: Instant::ZERO }
    }
}

impl Impairment for Policer {
    fn apply(&mut self, cx: &mut ImpairCx<'_>, packet: &mut Packet, fate: &mut Fate) {
        let passed = cx.now.since(self.filled_at).as_nanos();
        self.filled_at = cx.now;
        self.tokens = (self.tokens + u128::from(passed) * u128::from(self.rate)).min(self.bucket * PARTS);
        let price = packet.len() as u128 * 8 * PARTS;
        match self.tokens.checked_sub(price) {
            Some(rest) => self.tokens = rest,
            None => fate.lost = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::test_packets::ipv4;
    use crate::rng::SimRng;

    /// 1,000 bytes each millisecond are 8 Mbit/s: of a full bucket of 5,000 bytes at half that
    /// rate, nine pass before every second one is lost.
    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut policer = Policer::new(4_000_000, 5_000);
        let mut rng = SimRng::new(1, 0);
        let mut lost = vec![];
        for ms in 0..1_000 {
            let mut packet = ipv4(ms, 1_000, false);
            let mut fate = Fate::default();
            policer.apply(
                &mut ImpairCx { now: Instant::from_millis(ms), rng: &mut rng },
                &mut packet,
                &mut fate,
            );
            if fate.lost {
                lost.push(ms);
            }
        }
        // Each packet costs 1,000 bytes, and 500 come back before the next: the ninth finds 1,000.
        assert_eq!(lost.first(), Some(&9));
        assert!(lost.windows(2).all(|pair| pair[1] - pair[0] == 2), "{lost:?}");
    }
}
