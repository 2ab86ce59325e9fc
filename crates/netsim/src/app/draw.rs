//! Times and sizes that are drawn at random, or not.

use crate::rng::SimRng;
use ackline_tcp_core::Duration;

/// How to draw a number that is not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Always this one.
    Fixed(f64),
    /// Uniform between two.
    Uniform(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Pareto with this smallest value and this shape; the mean is infinite for shapes up to 1.
    Pareto {
        /// The smallest value.
        scale: f64,
        /// The shape: the smaller, the heavier the tail.
        shape: f64,
    },
}

impl Draw {
    /// Nothing, always.
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

    /// Draws a time, the number being in seconds.
    pub fn time(&self, rng: &mut SimRng) -> Duration {
        // `as` saturates.
        Duration::from_nanos(libm::round(self.number(rng) * 1e9) as u64)
    }

    /// Draws a size in bytes, at least one.
    pub fn bytes(&self, rng: &mut SimRng) -> u64 {
        (libm::round(self.number(rng)) as u64).max(1)
    }

    /// The mean in the long run.
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
