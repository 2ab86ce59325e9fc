//! The L4S queue's own marking.

use ackline_tcp_core::Duration;

/// The L4S queue's own marking, by the sojourn time of the packet that leaves (RFC 9332, figure 9):
/// a ramp, or a step if `range` is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ramp {
    /// Up to this time nothing is marked (800 µs).
    pub min: Duration,
    /// From `min` and this on everything is marked (400 µs).
    pub range: Duration,
    /// Nothing is marked if the queue held at most so many packets (1): a slow link serialises one
    /// for longer than `min`.
    pub min_packets: usize,
}

impl Default for Ramp {
    fn default() -> Self {
        Self { min: Duration::from_micros(800), range: Duration::from_micros(400), min_packets: 1 }
    }
}

impl Ramp {
    /// The probability of a mark if a packet leaves after `sojourn`, and the queue held so many
    /// packets with it.
    #[must_use]
    pub fn probability(self, sojourn: Duration, packets: usize) -> f64 {
        if packets <= self.min_packets || sojourn <= self.min {
            0.0
        } else if sojourn >= self.min + self.range {
            1.0
        } else {
            sojourn.saturating_sub(self.min).as_nanos() as f64 / self.range.as_nanos() as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_rises_between_its_two_times() {
        let at = |micros| Ramp::default().probability(Duration::from_micros(micros), 2);
        let found = [0, 800, 801, 900, 1_000, 1_199, 1_200, 5_000].map(at);
        assert_eq!(found, [0.0, 0.0, 0.0025, 0.25, 0.5, 0.9975, 1.0, 1.0]);
        let step = Ramp { min: Duration::from_millis(1), range: Duration::ZERO, min_packets: 0 };
        let at = |micros| step.probability(Duration::from_micros(micros), 1);
        assert_eq!([999, 1_000, 1_001].map(at), [0.0, 0.0, 1.0], "Linux: more than a millisecond");
    }
}
