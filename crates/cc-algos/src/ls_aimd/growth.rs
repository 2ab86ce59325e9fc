//! The logarithmic additive increase (thesis, section 6.4 and 7.4.1).
//!
//! ```text
//!   add(S) = k0 lg(S / k1 + 1)  bytes per round trip,   k1 = 2 k0          (Eq. 6.1)
//!
//!   add                                  about S / 1.39 near zero: never more than a halving takes away
//!    │                     _.--'''       about one segment at ordinary windows (17.5 segments of 1,448 bytes)
//!    │            _.-''''
//!    │      _.-''
//!    │  _.-'
//!    └──────────────────────────── S
//! ```
//!
//! Windows and results are Q9: unsigned counts of 1/512 byte. `lg` is C. S. Turner's bit-by-bit
//! logarithm, too low by less than 3.89 units of its last place, so every platform gives the same
//! bits.

/// Fraction bits of windows here.
pub const Q9: u32 = 9;
/// Fraction bits of the scale factor C.
pub const C_BITS: u32 = 16;
/// C = 1.
pub const C_ONE: u32 = 1 << C_BITS;
/// Largest threshold for the logarithm, in Q9: 2^38 bytes.
const LARGEST: u64 = 1 << (38 + Q9);

/// log2 of `x`. Both `x` and the result have `precision` fraction bits; `x` must be at least 1.
///
/// Each squaring of the normalised number shifts the next bit of its logarithm into the integer
/// part.
#[must_use]
pub fn log2_fixed(x: u64, precision: u32) -> u64 {
    let one = 1_u64 << precision;
    let integer = x.max(one).ilog2() - precision;
    let mut z = x.max(one) >> integer;
    let mut log = u64::from(integer) << precision;
    for bit in (0..precision).rev() {
        z = (z * z) >> precision;
        if z >= 2 * one {
            z >>= 1;
            log += 1 << bit;
        }
    }
    log
}

/// The constants of the curve for one segment size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// k0 in Q9 bytes.
    k0: u64,
    /// k1 in Q9 bytes.
    k1: u64,
    /// lg(k1) with `precision` fraction bits.
    log_k1: u64,
    precision: u32,
}

impl Growth {
    /// Powers of two for segments of `smss` bytes: k0 = 2^floor(lg(smss) - 2.25), which is 256 for
    /// 1,448 and 1,024 for 8,948 (Table 6.1). `precision` (9 to 24) is the number of fraction bits
    /// of the logarithm.
    #[must_use]
    pub fn powers_of_two(smss: u32, precision: u32) -> Self {
        // lg(smss) - 2.25 >= n  <=>  smss^4 >= 2^(4 n + 9)
        let fourth = u128::from(smss.max(8)).pow(4);
        let shift = ((fourth.ilog2() - 9) / 4).clamp(0, 13);
        Self::from_k0(1 << (shift + Q9), precision)
    }

    /// The curve of 1,448-byte segments, stretched: the increase in segments only depends on the
    /// threshold in segments.
    #[must_use]
    pub fn scale_free(smss: u32, precision: u32) -> Self {
        Self::from_k0((u64::from(smss) << (8 + Q9)) / 1448, precision)
    }

    fn from_k0(k0: u64, precision: u32) -> Self {
        let precision = precision.clamp(Q9, 24);
        let k0 = k0.max(1 << Q9);
        let k1 = 2 * k0;
        Self { k0, k1, log_k1: log2_fixed(k1 << (precision - Q9), precision), precision }
    }

    /// k0 and k1 in whole bytes.
    #[must_use]
    pub const fn constants(&self) -> (u64, u64) {
        (self.k0 >> Q9, self.k1 >> Q9)
    }

    /// Eq. 6.1 for the threshold `ssthresh` in Q9, without scale factor and floor, in Q9 bytes per
    /// round trip.
    #[must_use]
    pub fn unscaled(&self, ssthresh: u64) -> u64 {
        let x = (ssthresh.min(LARGEST) + self.k1) << (self.precision - Q9);
        let log = log2_fixed(x, self.precision).saturating_sub(self.log_k1);
        (log * self.k0) >> self.precision
    }

    /// The increase per round trip at the threshold `ssthresh` (Q9) with the scale factor `c` (in
    /// 2^-16): at least 1/512 byte, so that a flow can leave the floor.
    #[must_use]
    pub fn add(&self, ssthresh: u64, c: u32) -> u64 {
        (((u128::from(self.unscaled(ssthresh)) * u128::from(c)) >> C_BITS) as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_of_table_6_1_and_their_steps() {
        let k0 = |smss| Growth::powers_of_two(smss, 24).constants().0;
        for (smss, shift) in [
            (536, 6),
            (608, 6),
            (609, 7),
            (1217, 7),
            (1218, 8),
            (1220, 8),
            (1448, 8),
            (2435, 8),
            (2436, 9),
            (4048, 9),
            (4870, 9),
            (4871, 10),
            (8948, 10),
            (9148, 10),
            (9741, 10),
            (9742, 11),
            (65_483, 13),
        ] {
            assert_eq!(k0(smss), 1 << shift, "{smss}");
        }
        assert_eq!(Growth::powers_of_two(1448, 24).constants(), (256, 512));
        assert_eq!(Growth::powers_of_two(8948, 24).constants(), (1024, 2048));
    }

    #[test]
    fn the_logarithm_is_low_by_less_than_its_bound() {
        let precision = 24;
        let unit = f64::from(1 << precision);
        for i in 0..200_000_u64 {
            let x = (1 << precision) + i * 7919 * (1 + i % 977);
            let error = log2_fixed(x, precision) as f64 - libm::log2(x as f64 / unit) * unit;
            assert!(error <= 1e-3 && error > -3.89, "{x}: {error}");
        }
    }

    #[test]
    fn one_round_never_adds_more_than_a_halving_takes() {
        for smss in [536, 1448, 4048, 8948, 65_483] {
            for growth in [Growth::powers_of_two(smss, 24), Growth::scale_free(smss, 24)] {
                let mut last = 0;
                for bytes in (1..2000).chain((2000..10_000_000).step_by(9973)) {
                    let add = growth.unscaled(bytes << Q9);
                    assert!(add <= bytes << Q9, "{smss}: {bytes}");
                    assert!(add >= last, "{smss}: {bytes}");
                    last = add;
                }
            }
        }
    }

    #[test]
    fn a_scale_free_curve_adds_the_same_share_of_a_segment_for_all_sizes() {
        for segments in [1, 10, 100, 1000] {
            let share = |smss: u32| {
                let add = Growth::scale_free(smss, 24).unscaled(u64::from(segments * smss) << Q9);
                add as f64 / f64::from(smss) / 512.0
            };
            assert!((share(1448) - share(8948)).abs() < 1e-5, "{segments}");
        }
        assert_eq!(Growth::scale_free(1448, 24), Growth::powers_of_two(1448, 24));
    }
}
