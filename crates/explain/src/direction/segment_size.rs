//! The size of segments, where packets join several of them.

/// A full segment, if nothing else is known: 1,500 octets less headers and timestamps.
const USUAL: u64 = 1_448;
/// RFC 9293, section 3.7.1: what every host takes. A shorter packet is the end of what was written.
const SMALLEST: u32 = 536;

/// The segment size as packets show it: the smallest of which the others are multiples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SegmentSize(u32);

impl SegmentSize {
    /// A packet had so many octets of data.
    pub(super) const fn learn(&mut self, length: u32) {
        let divides = length >= SMALLEST && self.0.is_multiple_of(length);
        if divides || length > self.0 && (self.0 < SMALLEST || !length.is_multiple_of(self.0)) {
            self.0 = length;
        }
    }

    /// Octets; zero if no packet was seen.
    pub(super) const fn seen(self) -> u32 {
        self.0
    }

    /// Octets of a full segment.
    pub(super) fn octets(self) -> u64 {
        // Larger than any ordinary segment: only joined ones were seen.
        if (SMALLEST..=super::JUMBO).contains(&self.0) { self.0.into() } else { USUAL }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_segments_and_the_end_of_writes_do_not_hide_the_size() {
        for lengths in [&[14_480, 2_896, 1_448, 43_440, 700][..], &[700, 1_448, 2_896, 11], &[100, 1_448]] {
            let mut size = SegmentSize::default();
            lengths.iter().for_each(|length| size.learn(*length));
            assert_eq!(size.octets(), 1_448, "{lengths:?}");
        }
        let mut joined = SegmentSize::default();
        joined.learn(14_480);
        assert_eq!((joined.seen(), joined.octets()), (14_480, 1_448));
    }
}
