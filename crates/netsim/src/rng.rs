//! Random numbers of a simulation: one seed, and a separate stream for each part, so that a part
//! that draws more does not affect the others.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct SimRng(ChaCha8Rng);

impl SimRng {
    /// The stream number `stream` of `seed`.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in 0..`below`; 0 if `below` is 0. The bias is below 2^-64 * `below`.
    pub fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(below)) >> 64) as u64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.unit()) * mean
    }

    /// 32 random octets, as a seed of something else.
    pub fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.0.fill_bytes(&mut seed);
        seed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let draw = |seed, stream| SimRng::new(seed, stream).bits();
        assert_eq!(draw(1, 1), draw(1, 1));
        assert_ne!(draw(1, 1), draw(1, 2));
        assert_ne!(draw(1, 1), draw(2, 1));
    }

    #[test]
    fn draws_have_their_means() {
        let mut rng = SimRng::new(5, 0);
        let n = 100_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        // Standard errors are 0.0009 and 0.016; five of them are allowed.
        assert!((mean(&mut || rng.unit()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || rng.exponential(5.0)) - 5.0).abs() < 0.08);
    }
}
