//! Streams whose octets follow from their positions: a connection that carries one needs no memory
//! for its data.
//!
//! An endpoint may be told of what pattern its streams consist. The rings (`memory/ring.rs`) of its
//! connections then count bytes as long as what they are given is the pattern's, which they see by
//! its address or by comparing, and show slices of the pattern's table. Lengths, limits and
//! capacities are those of a ring with memory, so windows, memory and results cannot depend on it.
//! Only the ring knows of it: the code of sender and receiver is the same.

/// A periodic stream: octet `i` is octet `i % period` of a table.
///
/// What is written is compared with the table, and what is read comes from it. Slices of the table
/// itself are recognised by their address, which costs the same whatever their length; others are
/// compared octet by octet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pattern {
    /// The period, twice in a row.
    table: &'static [u8],
}

impl Pattern {
    /// The pattern with this table: its period, twice in a row. `None` if the halves differ or are
    /// empty, or the table has more than 2³¹ octets.
    #[must_use]
    pub fn new(table: &'static [u8]) -> Option<Self> {
        let (first, second) = table.split_at(table.len() / 2);
        let is_valid = !first.is_empty()
            && first == second
            && u32::try_from(table.len()).is_ok_and(|len| len >> 31 == 0);
        is_valid.then_some(Self { table })
    }

    /// Octets after which the stream repeats itself.
    #[must_use]
    pub const fn period(&self) -> usize {
        self.table.len() / 2
    }

    /// The octets from `position` on, at most `max` and at most a period, in one slice of the
    /// table.
    #[must_use]
    pub fn piece(&self, position: u64, max: usize) -> &'static [u8] {
        self.at_phase((position % self.period() as u64) as usize, max.min(self.period()))
    }

    /// The table's `len` octets from `phase` on, or those up to its end; `phase` is below the
    /// period.
    pub(crate) fn at_phase(&self, phase: usize, len: usize) -> &'static [u8] {
        let end = (phase + len).min(self.table.len());
        self.table.get(phase..end).unwrap_or_default()
    }

    /// True if `octets` are those of the stream from `phase` on.
    pub(crate) fn matches(&self, mut phase: usize, mut octets: &[u8]) -> bool {
        while !octets.is_empty() {
            let piece = self.at_phase(phase, octets.len().min(self.period()));
            let (front, rest) = octets.split_at(piece.len());
            // The same memory has the same content.
            if !core::ptr::eq(front.as_ptr(), piece.as_ptr()) && front != piece {
                return false;
            }
            phase = self.advanced(phase, piece.len());
            octets = rest;
        }
        true
    }

    /// The phase `n` octets after `phase`.
    pub(crate) fn advanced(&self, phase: usize, n: usize) -> usize {
        let next = phase + n;
        if next < self.period() { next } else { next % self.period() }
    }

    /// Writes the octets from `phase` on.
    pub(crate) fn fill(&self, mut phase: usize, mut out: &mut [u8]) {
        while !out.is_empty() {
            let piece = self.at_phase(phase, out.len().min(self.period()));
            let (front, rest) = out.split_at_mut(piece.len());
            front.copy_from_slice(piece);
            phase = self.advanced(phase, piece.len());
            out = rest;
        }
    }
}

impl core::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pattern").field("period", &self.period()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;
    use std::vec;

    const TABLE: &[u8] = b"abcdefgabcdefg";

    #[test]
    fn a_table_is_its_period_twice() {
        for table in [&b"abcabd"[..], b"abcab", b""] {
            assert_eq!(Pattern::new(table), None, "{table:?}");
        }
        let pattern = Pattern::new(TABLE).unwrap();
        assert_eq!(pattern.period(), 7);
        assert_eq!(pattern.piece(12, 4), b"fgab");
        assert_eq!(pattern.piece(u64::MAX, usize::MAX).len(), 7);
    }

    #[test]
    fn compares_what_it_would_write() {
        let pattern = Pattern::new(TABLE).unwrap();
        for phase in 0..7 {
            let mut octets = vec![0; 50];
            pattern.fill(phase, &mut octets);
            assert!(pattern.matches(phase, &octets));
            assert!(!pattern.matches((phase + 1) % 7, &octets));
            octets[49] ^= 1;
            assert!(!pattern.matches(phase, &octets));
        }
        assert!(pattern.matches(3, pattern.piece(3, 7)));
    }
}
