//! Data that tells where it belongs, fast to make and hashed on its way.
//!
//! A stream is made of pieces of 64 KiB, each cut out of one block of pseudo-random bytes at a
//! place that depends on the piece's number. Nothing is computed per byte, and the block stays in
//! the cache; yet pieces that are lost, doubled, swapped or damaged change the hash.

use super::Amount;
use ackline::core::Instant;
use twox_hash::XxHash3_128;

const PIECE: usize = 64 << 10;
const BLOCK: usize = 128 << 10;
/// Bytes that are copied and hashed in turns: they stay in the first-level cache in between.
const BITE: usize = 16 << 10;

/// The 128-bit xxh3 hash of everything that went through one end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digest(pub(super) u128);

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Hashes what is received.
pub(super) struct Checker {
    hash: Box<XxHash3_128>,
    bytes: u64,
}

impl Checker {
    pub(super) fn new() -> Self {
        Self { hash: Box::new(XxHash3_128::new()), bytes: 0 }
    }

    pub(super) fn update(&mut self, data: &[u8]) {
        self.hash.write(data);
        self.bytes += data.len() as u64;
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn digest(&self) -> Digest {
        Digest(self.hash.finish_128())
    }
}

/// A stream to be sent, up to a number of bytes or for a time.
pub(super) struct Payload {
    block: Box<[u8]>,
    seed: u64,
    left: u64,
    until: Option<Instant>,
    sent: Checker,
}

impl Payload {
    /// Begins at `now`. Equal seeds give equal streams.
    pub(super) fn new(seed: u64, amount: Amount, now: Instant) -> Self {
        let mut state = seed;
        let words = std::iter::repeat_with(|| next(&mut state).to_le_bytes());
        Self {
            block: words.take(BLOCK / 8).flatten().collect(),
            seed,
            left: amount.bytes.unwrap_or(u64::MAX),
            until: amount.time.map(|time| now + time.into()),
            sent: Checker::new(),
        }
    }

    /// True when there is nothing left to be sent at `now`.
    pub(super) fn is_finished(&self, now: Instant) -> bool {
        self.left == 0 || self.until.is_some_and(|until| now >= until)
    }

    /// The bytes to be sent next: some of them, none at the end.
    pub(super) fn upcoming(&self) -> &[u8] {
        &self.block[self.range()]
    }

    /// `count` of the upcoming bytes were sent.
    pub(super) fn advance(&mut self, count: usize) {
        let range = self.range();
        let end = range.end.min(range.start + count);
        self.sent.update(&self.block[range.start..end]);
        self.left -= (end - range.start) as u64;
    }

    /// Fills `pieces` as far as the stream goes, and counts this as sent; returns how many bytes
    /// that was.
    pub(super) fn fill(&mut self, pieces: [&mut [u8]; 2]) -> usize {
        let before = self.sent.bytes;
        for mut piece in pieces {
            while !piece.is_empty() && self.left > 0 {
                let upcoming = self.upcoming();
                let count = upcoming.len().min(piece.len()).min(BITE);
                let (head, rest) = piece.split_at_mut(count);
                head.copy_from_slice(&upcoming[..count]);
                piece = rest;
                self.advance(count);
            }
        }
        (self.sent.bytes - before) as usize
    }

    /// What was sent.
    pub(super) fn sent(&self) -> &Checker {
        &self.sent
    }

    /// Where the upcoming bytes stand in the block.
    fn range(&self) -> std::ops::Range<usize> {
        let position = self.sent.bytes;
        let mut place = self.seed ^ (position / PIECE as u64);
        let cut = (next(&mut place) % (BLOCK - PIECE) as u64) as usize;
        let within = (position % PIECE as u64) as usize;
        let length = usize::try_from(self.left).unwrap_or(usize::MAX).min(PIECE - within);
        cut + within..cut + within + length
    }
}

/// SplitMix64: a pseudo-random word, and the state moves on.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn bytes(count: u64) -> Amount {
        Amount { bytes: Some(count), time: None }
    }

    fn whole(mut payload: Payload) -> (Vec<u8>, Digest) {
        let mut data = Vec::new();
        while !payload.is_finished(Instant::ZERO) {
            let upcoming = payload.upcoming();
            // Odd lengths, as sockets take them.
            let count = upcoming.len().min(12_345);
            data.extend_from_slice(&upcoming[..count]);
            payload.advance(count);
        }
        (data, payload.sent().digest())
    }

    #[test]
    fn both_ways_of_taking_give_the_same_stream() {
        const SIZE: usize = 5 * PIECE + 333;
        let (data, digest) = whole(Payload::new(7, bytes(SIZE as u64), Instant::ZERO));
        assert_eq!(data.len(), SIZE);
        let mut payload = Payload::new(7, bytes(SIZE as u64), Instant::ZERO);
        let mut filled = vec![0; SIZE + 10];
        let (first, second) = filled.split_at_mut(PIECE + 1);
        assert_eq!(payload.fill([first, second]), SIZE);
        assert!(payload.is_finished(Instant::ZERO));
        assert!(filled[..SIZE] == data);
        assert_eq!(payload.sent().digest(), digest);
    }

    #[test]
    fn the_receivers_hash_is_the_senders_unless_something_changed() {
        let (mut data, sent) = whole(Payload::new(1, bytes(4 * PIECE as u64), Instant::ZERO));
        let digest = |data: &[u8]| {
            let mut checker = Checker::new();
            data.chunks(1000).for_each(|part| checker.update(part));
            checker.digest()
        };
        assert_eq!(digest(&data), sent);
        let swapped = [&data[PIECE..2 * PIECE], &data[..PIECE], &data[2 * PIECE..]].concat();
        assert_ne!(digest(&swapped), sent);
        let repeated = [&data[..PIECE], &data[..PIECE], &data[2 * PIECE..]].concat();
        assert_ne!(digest(&repeated), sent);
        data[100_000] ^= 1;
        assert_ne!(digest(&data), sent);
    }

    #[test]
    fn the_hash_is_xxh3() {
        // The reference implementation's hash of nothing.
        assert_eq!(Checker::new().digest().to_string(), "99aa06d3014798d86001c324468d497f");
    }

    #[test]
    fn time_ends_a_stream() {
        let amount = Amount { bytes: None, time: Some(Duration::from_secs(2)) };
        let payload = Payload::new(1, amount, Instant::from_secs(10));
        assert!(!payload.is_finished(Instant::from_millis(11_999)));
        assert!(payload.is_finished(Instant::from_secs(12)));
    }
}
