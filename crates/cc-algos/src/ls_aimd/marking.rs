//! The estimate of the fraction of marked data, as in DCTCP (thesis, section 6.5.2; RFC 8257,
//! section 3.3).
//!
//! Stored divided by the gain g, a power of two, so that no remainder is lost however small the
//! fraction.

use ackline_tcp_core::SeqNum;

/// Fraction bits of alpha.
pub const ALPHA_BITS: u32 = 20;
/// Alpha if all data is marked.
pub const ONE: u64 = 1 << ALPHA_BITS;

/// The fraction of marked data, smoothed over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marking {
    /// alpha / g in 2^-20, at most `ONE / g`.
    upscaled: u64,
    /// g = 2^-gain.
    gain: u32,
    /// A round ends when this is acknowledged; `None` before the first ACK, which ends one.
    round_end: Option<SeqNum>,
    acked: u64,
    marked: u64,
}

impl Marking {
    /// Starts at `alpha` (0 to 1, in 2^-20) with g = 2^-`gain`.
    #[must_use]
    pub const fn new(alpha: u64, gain: u32) -> Self {
        Self::with_upscaled(alpha << gain, gain)
    }

    /// As [`Self::new`], from alpha / g in 2^-20.
    #[must_use]
    pub const fn with_upscaled(upscaled: u64, gain: u32) -> Self {
        Self { upscaled, gain, round_end: None, acked: 0, marked: 0 }
    }

    /// alpha in 2^-20.
    #[must_use]
    pub const fn alpha(&self) -> u64 {
        self.upscaled >> self.gain
    }

    /// alpha / g in 2^-20.
    #[must_use]
    pub const fn upscaled(&self) -> u64 {
        self.upscaled
    }

    /// `acked` bytes were acknowledged, `marked` of them marked, up to `snd_una`; if this round has
    /// ended, the next one ends at `snd_nxt`. True if it has.
    pub fn on_ack(&mut self, snd_una: SeqNum, snd_nxt: SeqNum, acked: u32, marked: u32) -> bool {
        self.acked += u64::from(acked);
        self.marked += u64::from(marked.min(acked));
        if self.acked == 0 || self.round_end.is_some_and(|end| snd_una.lt(end)) {
            return false;
        }
        self.end_round(self.marked, self.acked);
        self.round_end = Some(snd_nxt);
        (self.acked, self.marked) = (0, 0);
        true
    }

    /// alpha = (1 - g) alpha + g F, F = `marked` / `acked` of a round.
    pub fn end_round(&mut self, marked: u64, acked: u64) {
        let share = (marked << ALPHA_BITS) / acked.max(1);
        self.upscaled = (self.upscaled + share - (self.upscaled >> self.gain)).min(ONE << self.gain);
    }
}
