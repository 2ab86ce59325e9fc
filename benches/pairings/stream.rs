//! The bytes of a stream, and what an end says of those that it has received. Go and C have the
//! same of their own.

/// Bytes that follow from a seed: the upper octets of a linear congruential generator (Knuth's
/// MMIX).
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    state: u64,
    left: u64,
}

impl Bytes {
    pub(crate) const fn new(seed: u64, len: u64) -> Self {
        Self { state: seed, left: len }
    }

    /// How many are left.
    pub(crate) const fn len(&self) -> u64 {
        self.left
    }

    /// The next bytes, at most `most`; empty at the end.
    pub(crate) fn next_chunk(&mut self, most: usize) -> Vec<u8> {
        let take = self.left.min(most as u64);
        self.left -= take;
        (0..take).map(|_| self.next_byte()).collect()
    }

    fn next_byte(&mut self) -> u8 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state.to_be_bytes()[0]
    }
}

/// Length and hash (FNV-1a, 64 bits) of what was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) len: u64,
    pub(crate) hash: u64,
}

impl Received {
    pub(crate) const NOTHING: Self = Self { len: 0, hash: 0xcbf2_9ce4_8422_2325 };

    /// What must be received of a stream.
    pub(crate) fn of(mut bytes: Bytes) -> Self {
        let mut all = Self::NOTHING;
        loop {
            let chunk = bytes.next_chunk(1 << 16);
            if chunk.is_empty() {
                return all;
            }
            all.add(&chunk);
        }
    }

    pub(crate) fn add(&mut self, data: &[u8]) {
        self.len += data.len() as u64;
        for &byte in data {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
