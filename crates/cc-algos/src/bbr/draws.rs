//! The two random choices of a cycle (section 5.3.3.8), which keep flows from probing together.

use ackline_tcp_core::Duration;

/// A generator of them (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Draws {
    state: u64,
    /// What tests draw.
    #[cfg(test)]
    pub(super) fixed: Option<(u64, Duration)>,
}

impl Draws {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            state: seed,
            #[cfg(test)]
            fixed: None,
        }
    }

    /// Rounds by which a probe comes early: 0 or 1.
    pub(super) fn rounds(&mut self) -> u64 {
        #[cfg(test)]
        if let Some((rounds, _)) = self.fixed {
            return rounds;
        }
        self.next() >> 63
    }

    /// A duration below `most`.
    pub(super) fn below(&mut self, most: Duration) -> Duration {
        #[cfg(test)]
        if let Some((_, wait)) = self.fixed {
            return wait;
        }
        let nanos = u128::from(self.next()) * u128::from(most.as_nanos());
        // A product of 64 bits and 64 bits: the upper half is below `most`.
        Duration::from_nanos((nanos >> 64) as u64)
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
