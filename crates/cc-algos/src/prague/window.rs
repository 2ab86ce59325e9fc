//! Growth and decrease of a window in 2^-16 bytes, in integers.

use super::alpha::ONE;
use ackline_tcp_core::{Duration, Window};

/// Bytes per second below which a window does not fall (Linux: 100 kbit/s), and bytes.
const LEAST_RATE: u64 = 12_500;
const LEAST_BYTES: u64 = 150;

/// `a / b`, rounded.
fn rounded(a: u128, b: u128) -> u64 {
    let b = b.max(1);
    u64::try_from((a + b / 2) / b).unwrap_or(u64::MAX)
}

/// What a mark takes of `w` if the share of marked bytes is `alpha`, in 2^-24: half of it.
pub(super) fn cut(w: u64, alpha: u64) -> u64 {
    ((u128::from(alpha) * u128::from(w) + u128::from(ONE)) / (2 * u128::from(ONE))) as u64
}

/// Section 2.4.4: the growth per round trip of `rtt`, in 2^-16 bytes, of a flow that grows by
/// `bytes` in each `rtt_virt` with the share that its shorter round trip leaves it.
pub(super) fn step(bytes: u32, rtt: Duration, rtt_virt: Duration) -> u64 {
    let step = u64::from(bytes) << Window::FRACTION_BITS;
    let (rtt, rtt_virt) = (u128::from(rtt.as_micros()), u128::from(rtt_virt.as_micros()));
    if rtt < rtt_virt { rounded(u128::from(step) * rtt * rtt, rtt_virt * rtt_virt) } else { step }
}

/// `w` after `unmarked` bytes, with a growth of `step` per window.
pub(super) fn increase(w: u64, unmarked: u32, step: u64) -> u64 {
    let bytes = u128::from(unmarked) << Window::FRACTION_BITS;
    w.saturating_add(rounded(bytes * u128::from(step), u128::from(w)))
}

/// The smallest window for this round trip.
pub(super) fn floor(rtt: Option<Duration>) -> u64 {
    let rate = rtt.map_or(0, |rtt| LEAST_RATE * rtt.as_micros().min(60_000_000) / 1_000_000);
    rate.max(LEAST_BYTES) << Window::FRACTION_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_takes_half_of_alpha() {
        for (alpha, w, expected) in [
            (16_777_216, 1_897_922_560, 948_961_280),
            (1_048_576, 1_897_922_560, 1_838_612_480),
            (1, 4_294_967_296, 4_294_967_168),
            (8_388_607, 94_896_129, 71_172_100),
        ] {
            assert_eq!(w - cut(w, alpha), expected, "{alpha}");
        }
    }

    #[test]
    fn grows_by_a_segment_per_virtual_round_trip() {
        let micros = Duration::from_micros;
        for (w, unmarked, srtt, virt, expected) in [
            (1_897_922_560, 1_448, 25_000, 25_000, 1_902_667_366),
            (1_897_922_560, 2_896, 5_000, 25_000, 1_898_302_145),
            (94_896_128, 1_448, 100_000, 100_000, 189_792_256),
            (1_897_922_560, 1_448, 100, 25_000, 1_897_922_636),
        ] {
            let step = step(1_448, micros(srtt), micros(virt));
            assert_eq!(increase(w, unmarked, step), expected);
        }
    }

    #[test]
    fn keeps_a_hundred_kilobits_per_second() {
        assert_eq!(floor(None), 150 << 16);
        assert_eq!(floor(Some(Duration::from_millis(1))), 150 << 16);
        assert_eq!(floor(Some(Duration::from_millis(100))), 1_250 << 16);
    }
}
