//! Random or fixed times and sizes.

use crate::rng::SimRng;
use ackline_tcp_core::Duration;

/// The distribution of a non-negative number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Always this number.
    Fixed(f64),
    /// Uniform between the two.
    Uniform(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Pareto with this minimum and shape; the mean is infinite for shapes up to 1.
    Pareto {
        /// The minimum.
        scale: f64,
        /// The shape: the smaller, the heavier the tail.
        shape: f64,
    },
}

impl Draw {
    /// Always zero.
    pub const ZERO: Self = Self::Fixed(0.0);

    /// Draws a number.
    pub fn number(&self, rng: &mut SimRng) -> f64 {
        let number = match *self {
            Self::Fixed(value) => value,
            Self::Uniform(low, high) => low + (high - low) * rng.unit(),
            Self::Exponential(mean) => rng.exponential(mean),
            Self::Pareto { scale, shape } => scale / libm::pow(1.0 - rng.unit(), 1.0 / shape),
        };
        number.max(0.0)
    }

    /// Draws a time in seconds.
    pub fn time(&self, rng: &mut SimRng) -> Duration {
        // `as` saturates.
        Duration::from_nanos(libm::round(self.number(rng) * 1e9) as u64)
    }

    /// Draws a size in bytes, at least one.
    pub fn bytes(&self, rng: &mut SimRng) -> u64 {
        (libm::round(self.number(rng)) as u64).max(1)
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Fixed(value) => value,
            Self::Uniform(low, high) => f64::midpoint(low, high),
            Self::Exponential(mean) => mean,
            Self::Pareto { scale, shape } if shape > 1.0 => scale * shape / (shape - 1.0),
            Self::Pareto { .. } => f64::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_means() {
        let mut rng = SimRng::new(9, 0);
        for draw in [
            Draw::Fixed(3.0),
            Draw::Uniform(1.0, 5.0),
            Draw::Exponential(3.0),
            Draw::Pareto { scale: 2.0, shape: 3.0 },
        ] {
            let n = 200_000;
            let mean = (0..n).map(|_| draw.number(&mut rng)).sum::<f64>() / f64::from(n);
            // Five standard errors: the largest standard deviation is 3.
            assert!((mean - draw.mean()).abs() < 5.0 * 3.0 / libm::sqrt(f64::from(n)), "{draw:?}: {mean}");
        }
        assert_eq!(Draw::Fixed(0.25).time(&mut rng), Duration::from_millis(250));
        assert_eq!(Draw::ZERO.bytes(&mut rng), 1);
    }
}
