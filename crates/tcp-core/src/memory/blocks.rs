//! Blocks of memory that the receive buffers of an endpoint take and give back.
//!
//! The block that was given back last is taken first: it is still in the processor's caches. With a
//! thousand connections that receive in turn, a buffer of each connection's own would be in none.

use alloc::vec::Vec;
use bytes::BytesMut;

/// The size of a block in bytes: a super-packet fits.
pub(crate) const BLOCK: usize = 1 << 16;

/// Blocks that are kept.
const MOST: usize = 128;

/// Blocks that nobody uses.
#[derive(Debug, Default)]
pub(crate) struct SpareBlocks(Vec<BytesMut>);

impl SpareBlocks {
    /// An empty block.
    pub(crate) fn take(&mut self) -> BytesMut {
        self.0.pop().unwrap_or_else(|| BytesMut::with_capacity(BLOCK))
    }

    /// Keeps a block for others, if it is one, and there are not too many.
    pub(crate) fn give(&mut self, mut block: BytesMut) {
        block.clear();
        // What was read off its front is a part of it again.
        if self.0.len() < MOST && block.try_reclaim(BLOCK) && block.capacity() == BLOCK {
            self.0.push(block);
        }
    }

    /// Frees all of them.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes allocated.
    pub(crate) const fn memory(&self) -> usize {
        self.0.len() * BLOCK + self.0.capacity() * size_of::<BytesMut>()
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, MOST, SpareBlocks};
    use bytes::{Buf as _, BytesMut};

    #[test]
    fn the_latest_block_is_used_again_whole() {
        let mut spare = SpareBlocks::default();
        let (mut first, mut second) = (spare.take(), spare.take());
        first.extend_from_slice(&[1; 100]);
        second.extend_from_slice(&[2; BLOCK]);
        second.advance(70);
        let places = [first.as_ptr(), second.as_ptr().wrapping_sub(70)];
        spare.give(first);
        spare.give(second);
        let again = [spare.take(), spare.take()];
        assert_eq!(again.each_ref().map(|block| block.as_ptr()), [places[1], places[0]]);
        assert!(again.iter().all(|block| block.is_empty() && block.capacity() == BLOCK));
    }

    #[test]
    fn what_is_shared_or_of_another_size_or_too_much_is_not_kept() {
        let mut spare = SpareBlocks::default();
        let mut shared = spare.take();
        shared.extend_from_slice(&[1; 100]);
        let chunk = shared.split_to(50).freeze();
        spare.give(shared);
        spare.give(BytesMut::with_capacity(100));
        spare.give(BytesMut::new());
        assert_eq!((spare.memory(), chunk.len()), (0, 50));
        for _ in 0..MOST + 10 {
            spare.give(BytesMut::with_capacity(BLOCK));
        }
        assert!(spare.memory() < MOST * BLOCK + 10_000, "{}", spare.memory());
        spare.clear();
        assert_eq!(spare.memory(), 0);
    }
}
