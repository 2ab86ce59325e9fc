//! The data that applications send: each octet is a function of its position in the stream, so that
//! a reader detects any that is wrong, missing or misplaced, without keeping a copy.

use ackline_tcp_core::pattern::Pattern;
use std::sync::LazyLock;

/// Length of the pattern: a prime, so that any shift by a buffer, a window or a segment is
/// detected.
const PERIOD: usize = 65_521;

static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    // xorshift64 (Marsaglia, 2003), from a fixed start.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut octets: Vec<u8> = (0..PERIOD)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        })
        .collect();
    octets.extend_from_within(..);
    octets
});

static PATTERN: LazyLock<Pattern> =
    LazyLock::new(|| Pattern::new(&TABLE).expect("the table is its period twice"));

/// The pattern, for endpoints that need not keep it.
#[must_use]
pub fn pattern() -> Pattern {
    *PATTERN
}

/// `octets` without a limit on their life, if they are memory of this module.
pub(crate) fn own(octets: &[u8]) -> Option<&'static [u8]> {
    if octets.is_empty() {
        return Some(&[]);
    }
    let start = octets.as_ptr().addr().wrapping_sub(TABLE.as_ptr().addr());
    TABLE.get(start..start.checked_add(octets.len())?)
}

/// At least one and at most `max` octets of the stream from `offset` on, in one slice.
#[must_use]
pub fn piece(offset: u64, max: usize) -> &'static [u8] {
    let start = (offset % PERIOD as u64) as usize;
    &TABLE[start..start + max.min(PERIOD)]
}

/// Writes the octets of the stream from `offset` on into `buf`.
pub fn fill(offset: u64, buf: &mut [u8]) {
    let mut done = 0;
    while done < buf.len() {
        let piece = piece(offset + done as u64, buf.len() - done);
        buf[done..done + piece.len()].copy_from_slice(piece);
        done += piece.len();
    }
}

/// True if `octets` match the stream from `offset` on. Those that [`piece`] has returned are known
/// by their address.
#[must_use]
pub fn check(offset: u64, octets: &[u8]) -> bool {
    let mut done = 0;
    while done < octets.len() {
        let piece = piece(offset + done as u64, octets.len() - done);
        let part = &octets[done..done + piece.len()];
        if !std::ptr::eq(part.as_ptr(), piece.as_ptr()) && part != piece {
            return false;
        }
        done += piece.len();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_what_is_out_of_place() {
        let mut octets = vec![0; 200_000];
        fill(123, &mut octets);
        assert!(check(123, &octets));
        assert!(!check(124, &octets));
        assert!(check(123 + 1_460, &octets[1_460..]));
        octets[199_999] ^= 1;
        assert!(!check(123, &octets));
    }
}
