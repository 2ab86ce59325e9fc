//! The average share of marked bytes (draft, section 2.3.2), as DCTCP's, in integers.
//!
//! Stored divided by the gain, so that no remainder is lost: A = alpha / g with g = 1/16.

/// Fraction bits of alpha.
const BITS: u32 = 24;
/// Alpha if everything is marked.
pub(super) const ONE: u64 = 1 << BITS;
/// The gain g is 2 to the power of minus this.
const GAIN: u32 = 4;

/// The average, and the round that goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alpha {
    /// A in 2^-24, at most 2^28.
    upscaled: u64,
    delivered: u64,
    marked: u64,
}

impl Alpha {
    /// Alpha in 2^-24.
    pub(super) const fn get(&self) -> u64 {
        self.upscaled >> GAIN
    }

    /// The first mark of a connection has arrived: alpha starts at `alpha`.
    pub(super) const fn start(&mut self, alpha: u64) {
        self.upscaled = alpha << GAIN;
    }

    /// So many bytes were delivered, `marked` of them marked.
    pub(super) fn add(&mut self, delivered: u32, marked: u32) {
        self.delivered += u64::from(delivered);
        self.marked += u64::from(marked);
    }

    /// A := A - A/16 + marked / delivered.
    pub(super) fn end_round(&mut self) {
        let share = ((self.marked << BITS) / self.delivered.max(1)).min(ONE);
        self.upscaled = (self.upscaled - (self.upscaled >> GAIN) + share).min(ONE << GAIN);
        self.forget_round();
    }

    /// A round ends that does not count.
    pub(super) const fn forget_round(&mut self) {
        (self.delivered, self.marked) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_by_a_sixteenth_and_loses_no_remainder() {
        for (start, rounds, expected) in [
            (
                268_435_456,
                &[(0, 20_000), (5_000, 20_000), (20_000, 20_000), (0, 20_000)][..],
                &[251_658_240, 240_123_904, 241_893_376, 226_775_040][..],
            ),
            (
                0,
                &[(1_448, 144_800), (0, 144_800), (0, 144_800), (144_800, 144_800)],
                &[167_772, 157_287, 147_457, 16_915_457],
            ),
            (15, &[(0, 1_000), (0, 1_000), (1, 100_000_000)], &[15, 15, 15]),
            (268_435_456, &[(3_000, 2_000), (0, 0)], &[268_435_456, 251_658_240]),
        ] {
            let mut alpha = Alpha { upscaled: start, ..Alpha::default() };
            for ((marked, delivered), expected) in rounds.iter().zip(expected) {
                alpha.add(*delivered, *marked);
                alpha.end_round();
                assert_eq!(alpha.upscaled, *expected);
            }
        }
    }
}
