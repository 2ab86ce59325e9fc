//! The receive buffer: what arrived in order and was not read, and what was written ahead of it.
//!
//! Data is copied into a ring, which suits a reader that copies it out: the ring is small, and an empty one starts anew at its
//! first byte. A reader of chunks takes memory away with them. For one that reads much, data in order is received into
//! [`Blocks`], which chunks share:
//!
//! ```text
//!      full blocks                 tail            ring
//!   ┌──────┬──────┬──────┐  ┌────────────┬────┐  ┌──────────┬ ─ ─ ┬───────┐
//!   │      │      │      │  │            free│  │ readable │ hole│ ahead │
//!   └──────┴──────┴──────┘  └────────────┴────┘  └──────────┴ ─ ─ ┴───────┘
//! ```
//!
//! Data past a hole is written to the ring, and so is what fills the hole and follows, until the ring has been read.

use crate::pattern::Pattern;
use crate::ring::{ByteRing, MAX_CAPACITY};
use crate::wire::Payload;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use bytes::{Buf, Bytes, BytesMut};

/// The size of a block in bytes: a super-packet fits.
const BLOCK: usize = 1 << 16;

/// Data that is read in chunks is received into blocks once this many bytes of it wait; and the ring's own memory becomes a
/// chunk then.
const BULK: usize = 16 << 10;

/// The smallest payload for which an empty buffer takes a block, in bytes: a block may be held by little of it.
const WORTH_A_BLOCK: usize = 4 << 10;

/// A buffer that may hold less has no blocks: they would be too large a part of it.
const ENOUGH_FOR_BLOCKS: u32 = 256 << 10;

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct RecvBuffer {
    store: Store,
}

#[derive(Debug)]
enum Store {
    Ring(ByteRing),
    Blocks(Box<Blocks>),
}

/// The buffer of a reader of chunks.
#[derive(Debug)]
struct Blocks {
    /// What is to be read first, with the memory that it holds in bytes.
    full: VecDeque<(Bytes, usize)>,
    /// The block that is being filled.
    tail: BytesMut,
    /// Bytes in both.
    len: usize,
    /// Bytes of memory that the full blocks hold.
    held: usize,
    /// What follows them.
    ring: ByteRing,
}

impl RecvBuffer {
    /// An empty buffer, without memory.
    pub(super) fn new() -> Self {
        Self { store: Store::Ring(ByteRing::new()) }
    }

    /// What arrives follows a pattern, as long as it is not found to differ.
    pub(super) fn expect(&mut self, pattern: Pattern) {
        self.ring_mut().draw(pattern, true);
    }

    /// Sees to it that [`slices_ahead`](Self::slices_ahead) contain all of it.
    pub(super) fn hold(&mut self) {
        self.ring_mut().hold();
    }

    const fn ring(&self) -> &ByteRing {
        match &self.store {
            Store::Ring(ring) => ring,
            Store::Blocks(blocks) => &blocks.ring,
        }
    }

    const fn ring_mut(&mut self) -> &mut ByteRing {
        match &mut self.store {
            Store::Ring(ring) => ring,
            Store::Blocks(blocks) => &mut blocks.ring,
        }
    }

    /// Readable bytes.
    pub(super) fn len(&self) -> usize {
        match &self.store {
            Store::Ring(ring) => ring.len(),
            Store::Blocks(blocks) => blocks.len + blocks.ring.len(),
        }
    }

    /// Extent of the bytes written past the readable ones, including holes.
    pub(super) fn ahead(&self) -> usize {
        self.ring().ahead()
    }

    /// Bytes allocated.
    pub(super) fn memory(&self) -> usize {
        match &self.store {
            Store::Ring(ring) => ring.capacity(),
            Store::Blocks(blocks) => blocks.capacity() + blocks.overhead(),
        }
    }

    /// Bytes of memory that further data in order, or ahead of it, cannot use, and all of them.
    #[inline]
    pub(super) fn usage(&self) -> (usize, usize) {
        match &self.store {
            Store::Ring(ring) => (ring.len(), ring.capacity()),
            Store::Blocks(blocks) => blocks.usage(),
        }
    }

    /// Stores data in order, and makes it readable. There is none ahead. `memory`: bytes that the buffer may hold.
    #[inline]
    pub(super) fn append(&mut self, payload: &Payload<'_>, memory: u32) {
        if let Store::Blocks(blocks) = &mut self.store
            && memory >= ENOUGH_FOR_BLOCKS
            && blocks.take(payload)
        {
            return;
        }
        let ring = self.ring_mut();
        for slice in payload.slices() {
            if !slice.is_empty() {
                let stored = ring.push_slice(slice, MAX_CAPACITY);
                debug_assert_eq!(stored, slice.len(), "the window promised room");
            }
        }
    }

    /// Writes `data` at `offset` bytes past the readable ones, without making it readable.
    pub(super) fn write_at(&mut self, offset: usize, data: &[u8]) {
        let stored = self.ring_mut().write_at(offset, data, MAX_CAPACITY);
        debug_assert_eq!(stored, data.len(), "the window promised room");
    }

    /// Makes the next `n` bytes readable, which were written ahead.
    pub(super) fn commit(&mut self, n: usize) {
        self.ring_mut().commit(n);
    }

    /// The bytes that were written ahead from `offset` bytes past the readable ones on, up to `len` of them.
    pub(super) fn slices_ahead(&self, offset: usize, len: usize) -> [&[u8]; 2] {
        self.ring().slices_ahead(offset, len)
    }

    /// Drops what was written ahead.
    pub(super) fn forget_ahead(&mut self) {
        self.ring_mut().forget_ahead();
    }

    /// The first readable bytes, in place: all of them in a ring.
    pub(super) fn peek(&self) -> [&[u8]; 2] {
        match &self.store {
            Store::Ring(ring) => ring.slices(0, usize::MAX),
            Store::Blocks(blocks) => blocks.peek(),
        }
    }

    /// Drops up to `n` readable bytes at the front.
    pub(super) fn consume(&mut self, n: usize) {
        match &mut self.store {
            Store::Ring(ring) => ring.consume(n),
            Store::Blocks(blocks) => blocks.consume(n),
        }
    }

    /// Moves readable bytes into `out` and returns how many: the shorter of the two.
    pub(super) fn pop_slice(&mut self, out: &mut [u8]) -> usize {
        match &mut self.store {
            Store::Ring(ring) => ring.pop_slice(out),
            Store::Blocks(blocks) => blocks.pop_slice(out),
        }
    }

    /// Takes out the first readable bytes, up to `max` of them, as far as they lie together.
    pub(super) fn pop_chunk(&mut self, max: usize) -> Option<Bytes> {
        if max == 0 {
            return None;
        }
        if let Store::Ring(ring) = &mut self.store
            && ring.len() >= BULK
        {
            let ring = core::mem::take(ring);
            let (full, tail) = (VecDeque::new(), BytesMut::new());
            self.store = Store::Blocks(Box::new(Blocks { full, tail, len: 0, held: 0, ring }));
        }
        match &mut self.store {
            Store::Ring(ring) => copy_out(ring, max),
            Store::Blocks(blocks) => blocks.pop_chunk(max),
        }
    }

    /// True if [`shrink`](Self::shrink) would give back memory.
    pub(super) fn has_spare(&self) -> bool {
        match &self.store {
            Store::Ring(ring) => ring.has_spare(),
            Store::Blocks(blocks) => blocks.has_spare(),
        }
    }

    /// Gives back memory that what is held does not need.
    pub(super) fn shrink(&mut self) {
        match &mut self.store {
            Store::Ring(ring) => ring.shrink(),
            Store::Blocks(blocks) => {
                blocks.shrink();
                if blocks.len == 0 {
                    self.store = Store::Ring(core::mem::take(&mut blocks.ring));
                }
            }
        }
    }

    /// Drops every byte, including those written ahead, and frees the memory.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }
}

/// Copies the first readable bytes out of a ring.
fn copy_out(ring: &mut ByteRing, max: usize) -> Option<Bytes> {
    let max = max.min(BLOCK);
    let [first, second] = ring.slices(0, max);
    let (n, mut chunk) = (first.len() + second.len(), BytesMut::with_capacity(first.len() + second.len()));
    chunk.extend_from_slice(first);
    chunk.extend_from_slice(second);
    ring.consume(n);
    (n > 0).then(|| chunk.freeze())
}

impl Blocks {
    /// Memory for bytes.
    fn capacity(&self) -> usize {
        self.held + self.of_tail() + self.ring.capacity()
    }

    /// Memory that the tail holds: a block, whatever of it chunks have taken.
    fn of_tail(&self) -> usize {
        if self.has_tail() { BLOCK } else { 0 }
    }

    fn has_tail(&self) -> bool {
        self.tail.capacity() > 0
    }

    /// Memory for anything else.
    fn overhead(&self) -> usize {
        size_of::<Self>() + self.full.capacity() * size_of::<(Bytes, usize)>()
    }

    fn usage(&self) -> (usize, usize) {
        let capacity = self.capacity();
        let of_ring = self.ring.capacity() - self.ring.len();
        let free =
            if self.ring_is_empty() { of_ring.max(self.tail.capacity() - self.tail.len()) } else { of_ring };
        (capacity - free, capacity)
    }

    fn ring_is_empty(&self) -> bool {
        self.ring.len() == 0 && self.ring.ahead() == 0
    }

    /// Appends data in order to the blocks; false if it belongs into the ring.
    fn take(&mut self, payload: &Payload<'_>) -> bool {
        let (len, spare) = (payload.len(), self.tail.capacity() - self.tail.len());
        if !self.ring_is_empty() || (spare < len && self.len == 0 && len < WORTH_A_BLOCK) {
            return false;
        }
        // A chunk of what little is left would not be worth it.
        if spare < len && spare < BLOCK / 4 {
            self.next_block();
        }
        for mut slice in payload.slices() {
            while !slice.is_empty() {
                if self.tail.capacity() == self.tail.len() {
                    self.next_block();
                }
                let (now, rest) = slice.split_at(slice.len().min(self.tail.capacity() - self.tail.len()));
                self.tail.extend_from_slice(now);
                slice = rest;
            }
        }
        self.len += len;
        true
    }

    /// Begins a block.
    fn next_block(&mut self) {
        if self.tail.is_empty() {
            // The readers of the present one may be done with it.
            if !self.has_tail() || !self.tail.try_reclaim(BLOCK) {
                self.tail = BytesMut::with_capacity(BLOCK);
            }
        } else {
            let full = core::mem::replace(&mut self.tail, BytesMut::with_capacity(BLOCK));
            self.full.push_back((full.freeze(), BLOCK));
            self.held += BLOCK;
        }
    }

    fn peek(&self) -> [&[u8]; 2] {
        let [first, second] = self.ring.slices(0, usize::MAX);
        let mut pieces = self.full.iter().map(|(bytes, _)| &bytes[..]).chain([&self.tail[..], first, second]);
        let mut next = || pieces.find(|piece| !piece.is_empty()).unwrap_or_default();
        [next(), next()]
    }

    /// Drops the first `n` bytes of the blocks, no more than `len`.
    fn consume_blocks(&mut self, n: usize) {
        self.len -= n;
        let mut left = n;
        while left > 0
            && let Some((front, held)) = self.full.front_mut()
        {
            if left < front.len() {
                front.advance(left);
                return;
            }
            left -= front.len();
            self.held -= *held;
            self.full.pop_front();
        }
        self.tail.advance(left);
        self.tidy_tail();
    }

    /// An empty tail begins anew at its first byte, unless chunks share it. Without that, nothing is left of one that was used up.
    fn tidy_tail(&mut self) {
        if self.tail.is_empty() && !self.tail.try_reclaim(BLOCK) && self.tail.capacity() == 0 {
            self.tail = BytesMut::new();
        }
    }

    fn consume(&mut self, n: usize) {
        let of_blocks = n.min(self.len);
        self.consume_blocks(of_blocks);
        self.ring.consume(n - of_blocks);
    }

    fn pop_slice(&mut self, out: &mut [u8]) -> usize {
        let mut at = 0;
        for piece in self.full.iter().map(|(bytes, _)| &bytes[..]).chain([&self.tail[..]]) {
            let n = piece.len().min(out.len() - at);
            out[at..at + n].copy_from_slice(&piece[..n]);
            at += n;
        }
        self.consume_blocks(at);
        at + self.ring.pop_slice(&mut out[at..])
    }

    fn pop_chunk(&mut self, max: usize) -> Option<Bytes> {
        if self.len == 0 {
            if self.ring.len() < BULK || self.ring.ahead() > 0 {
                return copy_out(&mut self.ring, max);
            }
            self.detach_ring();
        }
        let chunk = match self.full.front_mut() {
            Some((front, _)) if front.len() > max => front.split_to(max),
            Some(_) => {
                let (front, held) = self.full.pop_front()?;
                self.held -= held;
                front
            }
            None => {
                let chunk = self.tail.split_to(self.tail.len().min(max)).freeze();
                if self.tail.capacity() == 0 {
                    self.tail = BytesMut::new();
                }
                chunk
            }
        };
        self.len -= chunk.len();
        Some(chunk)
    }

    /// Makes the ring's memory blocks. Nothing is written ahead.
    fn detach_ring(&mut self) {
        let ring = core::mem::take(&mut self.ring);
        let held = ring.capacity();
        let [first, second] = ring.into_chunks();
        self.len += first.len() + second.len();
        self.held += held;
        // The memory is free when the last of them is.
        if second.is_empty() {
            self.full.push_back((first, held));
        } else {
            self.full.push_back((first, 0));
            self.full.push_back((second, held));
        }
    }

    /// An empty tail can go, and so can a ring that is nearly empty.
    fn has_spare(&self) -> bool {
        self.ring.has_spare() || (self.tail.is_empty() && self.has_tail()) || self.len == 0
    }

    fn shrink(&mut self) {
        self.ring.shrink();
        if self.tail.is_empty() {
            self.tail = BytesMut::new();
        }
        if self.full.is_empty() {
            self.full = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, BULK, RecvBuffer, Store, WORTH_A_BLOCK};
    use crate::ring::ByteRing;
    use crate::wire::Payload;
    use bytes::Bytes;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    const PLENTY: u32 = 1 << 30;

    fn pattern(start: usize, len: usize) -> Vec<u8> {
        (start..start + len).map(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    /// A buffer whose reader has read much in chunks.
    fn bulk() -> RecvBuffer {
        let mut buffer = RecvBuffer::new();
        buffer.append(&Payload::from(&pattern(0, BULK)[..]), PLENTY);
        let chunk = buffer.pop_chunk(usize::MAX);
        assert!(chunk.is_some_and(|chunk| chunk == pattern(0, BULK)));
        assert!(matches!(buffer.store, Store::Blocks(_)));
        buffer
    }

    #[test]
    fn blocks_take_no_place_in_a_buffer_without_any() {
        assert_eq!(size_of::<RecvBuffer>(), size_of::<ByteRing>());
    }

    #[test]
    fn what_is_read_in_small_chunks_stays_in_a_ring() {
        let mut buffer = RecvBuffer::new();
        assert_eq!(buffer.pop_chunk(100), None);
        for round in 0..100 {
            buffer.append(&Payload::from(&pattern(round, 1_000)[..]), PLENTY);
            assert_eq!(buffer.pop_chunk(0), None);
            assert_eq!(buffer.pop_chunk(600).expect("600 bytes"), pattern(round, 600));
            assert_eq!(buffer.pop_chunk(600).expect("400 bytes"), pattern(round + 600, 400));
            assert!(buffer.memory() <= 1_024);
        }
        assert!(matches!(buffer.store, Store::Ring(_)));
    }

    #[test]
    fn what_waited_in_the_ring_is_not_copied() {
        let mut buffer = RecvBuffer::new();
        buffer.append(&Payload::from(&pattern(0, 100_000)[..]), PLENTY);
        let there = buffer.peek()[0].as_ptr();
        let chunk = buffer.pop_chunk(usize::MAX).expect("100,000 bytes");
        assert_eq!((chunk.as_ptr(), chunk.len(), buffer.len()), (there, 100_000, 0));
    }

    #[test]
    fn bulk_data_is_received_into_memory_that_chunks_share() {
        let mut buffer = bulk();
        let mut at = 0;
        for _ in 0..5 {
            buffer.append(&Payload::from(&pattern(at, 40_000)[..]), PLENTY);
            at += 40_000;
        }
        // Of the second block, 11,072 bytes were too little for what came.
        assert_eq!((buffer.len(), buffer.usage()), (200_000, (211_072, 4 * BLOCK)));
        let (mut read, mut pieces) = (0, vec![]);
        while let Some(there) = Some(buffer.peek()[0].as_ptr()).filter(|_| buffer.len() > 0) {
            let chunk = buffer.pop_chunk(50_000).expect("data");
            assert_eq!(chunk.as_ptr(), there);
            assert_eq!(chunk, pattern(read, chunk.len()));
            read += chunk.len();
            pieces.push(chunk.len());
        }
        assert_eq!((read, &pieces[..2]), (200_000, &[50_000, BLOCK - 50_000][..]));
        assert!(buffer.has_spare());
        buffer.shrink();
        assert_eq!((buffer.memory(), buffer.has_spare()), (0, false));
    }

    #[test]
    fn a_block_is_used_again_once_its_chunks_are_gone() {
        let mut buffer = bulk();
        let mut places: Vec<*const u8> = vec![];
        for round in 0..10 {
            buffer.append(&Payload::from(&pattern(round, 60_000)[..]), PLENTY);
            let chunk = buffer.pop_chunk(usize::MAX).expect("60,000 bytes");
            assert_eq!(chunk, pattern(round, 60_000));
            places.push(chunk.as_ptr());
        }
        assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
    }

    #[test]
    fn little_data_and_little_memory_stay_in_the_ring() {
        let mut buffer = bulk();
        buffer.append(&Payload::from(&pattern(0, WORTH_A_BLOCK - 1)[..]), PLENTY);
        assert!(buffer.memory() < 2 * WORTH_A_BLOCK, "{}", buffer.memory());
        let mut buffer = bulk();
        buffer.append(&Payload::from(&pattern(0, 20_000)[..]), 100_000);
        assert_eq!(buffer.usage(), (20_000, 32_768));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Append(usize, bool),
        WriteAhead(usize, usize),
        FillHole,
        ForgetAhead,
        Chunk(usize),
        Copy(usize),
        Consume(usize),
        Shrink,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (1usize..66_000, any::<bool>()).prop_map(|(n, plenty)| Op::Append(n, plenty)),
            2 => (1usize..1_500, any::<bool>()).prop_map(|(n, plenty)| Op::Append(n, plenty)),
            1 => (0usize..9_000, 1usize..3_000).prop_map(|(at, n)| Op::WriteAhead(at, n)),
            2 => Just(Op::FillHole),
            1 => Just(Op::ForgetAhead),
            4 => (0usize..100_000).prop_map(Op::Chunk),
            2 => (0usize..100_000).prop_map(Op::Copy),
            1 => (0usize..100_000).prop_map(Op::Consume),
            1 => Just(Op::Shrink),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_queue_with_holes(ops in prop::collection::vec(op(), 1..80)) {
            let mut buffer = RecvBuffer::new();
            let (mut model, mut ahead): (Vec<u8>, Vec<Option<u8>>) = (vec![], vec![]);
            let mut made = 0;
            let mut kept: Vec<(Bytes, Vec<u8>)> = vec![];
            for op in ops {
                match op {
                    Op::Append(n, plenty) if ahead.is_empty() => {
                        let data = pattern(made, n);
                        made += n;
                        let (first, second) = data.split_at(n / 3);
                        let payload = Payload::from([first, second]);
                        buffer.append(&payload, if plenty { PLENTY } else { 4_096 });
                        model.extend_from_slice(&data);
                    }
                    Op::Append(..) => {}
                    Op::WriteAhead(at, n) => {
                        let data = pattern(made, n);
                        made += n;
                        buffer.write_at(at, &data);
                        ahead.resize(ahead.len().max(at + n), None);
                        for (slot, byte) in ahead[at..].iter_mut().zip(data) {
                            *slot = Some(byte);
                        }
                    }
                    Op::FillHole => {
                        let hole = ahead.iter().take_while(|byte| byte.is_none()).count();
                        let data = pattern(made, hole);
                        made += hole;
                        buffer.write_at(0, &data);
                        ahead.drain(..hole);
                        let full = ahead.iter().take_while(|byte| byte.is_some()).count();
                        buffer.commit(hole + full);
                        model.extend(data.into_iter().chain(ahead.drain(..full).flatten()));
                    }
                    Op::ForgetAhead => {
                        buffer.forget_ahead();
                        ahead.clear();
                    }
                    Op::Chunk(max) => {
                        let chunk = buffer.pop_chunk(max).unwrap_or_default();
                        prop_assert!(chunk.len() <= max && chunk.is_empty() == (max == 0 || model.is_empty()));
                        let expected: Vec<u8> = model.drain(..chunk.len()).collect();
                        prop_assert!(chunk == expected);
                        kept.push((chunk, expected));
                    }
                    Op::Copy(n) => {
                        let mut out = vec![0; n];
                        let copied = buffer.pop_slice(&mut out);
                        prop_assert_eq!(copied, n.min(model.len()));
                        prop_assert!(model.drain(..copied).eq(out[..copied].iter().copied()));
                    }
                    Op::Consume(n) => {
                        buffer.consume(n);
                        model.drain(..n.min(model.len()));
                    }
                    Op::Shrink => {
                        buffer.shrink();
                        prop_assert!(!buffer.has_spare(), "or its timer would never rest");
                    }
                }
                if kept.len() > 5 {
                    kept.remove(0);
                }
                prop_assert_eq!((buffer.len(), buffer.ahead()), (model.len(), ahead.len()));
                let pieces = buffer.peek().concat();
                prop_assert!(model.starts_with(&pieces) && pieces.is_empty() == model.is_empty());
                let (used, capacity) = buffer.usage();
                prop_assert!(used >= model.len() && used <= capacity && capacity <= buffer.memory());
                prop_assert!(kept.iter().all(|(chunk, expected)| chunk == expected), "chunks stay as they are");
            }
            let mut rest = vec![];
            while let Some(chunk) = buffer.pop_chunk(usize::MAX) {
                rest.extend_from_slice(&chunk);
            }
            prop_assert!(rest == model);
            buffer.clear();
            prop_assert_eq!(buffer.memory(), 0);
        }
    }
}
