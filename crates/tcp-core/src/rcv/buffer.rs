//! The receive buffer: what arrived in order and was not read, and what was written ahead of it.
//!
//! Little data is copied into a ring, which grows to what is needed; an empty one starts anew at
//! its first byte. Bulk data in order is received into [`Blocks`]: copied, or left in the memory
//! that the device lends with a packet of which it is most. A reader that copies gives blocks back
//! for others to use; chunks take their memory away:
//!
//! ```text
//!             blocks                       ring
//!   ┌──────┬──────┬──────┬───────┐  ┌──────────┬ ─ ─ ┬───────┐
//!   │      │      │      │   free│  │ readable │ hole│ ahead │
//!   └──────┴──────┴──────┴───────┘  └──────────┴ ─ ─ ┴───────┘
//! ```
//!
//! Data past a hole is written to the ring, and so is what fills the hole and follows, until the
//! ring has been read.
//!
//! Only the ring of a buffer without blocks may be [drawn](ByteRing::draw) from a pattern. Blocks
//! keep their bytes, and so does the ring that follows them.

use crate::memory::blocks::{BLOCK, SpareBlocks};
use crate::memory::ring::{ByteRing, MAX_CAPACITY};
use crate::pattern::Pattern;
use crate::wire::Payload;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use bytes::{Buf, Bytes, BytesMut};
use core::ops::Deref;

/// Payload that is received into blocks from then on, if nothing waits in the ring, in bytes. And
/// so much in the ring becomes a chunk without a copy.
const BULK: usize = 16 << 10;

/// The smallest payload for which an empty buffer takes a block, in bytes: a block may be held by
/// little of it.
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

/// The buffer of bulk data.
#[derive(Debug, Default)]
struct Blocks {
    /// None is empty. The last one is being filled.
    blocks: VecDeque<Block>,
    /// Bytes in them.
    len: usize,
    /// Bytes of memory that they hold.
    held: usize,
    /// What follows them.
    ring: ByteRing,
    /// Its reader takes chunks.
    chunks: bool,
}

/// Memory with data.
#[derive(Debug)]
struct Block {
    data: Data,
    /// Bytes that it keeps from being freed.
    held: usize,
}

/// The data of a block.
#[derive(Debug)]
enum Data {
    /// In memory of the buffer's own, to which more may be appended.
    Own(BytesMut),
    /// In the device's.
    Lent(Bytes),
}

impl Data {
    /// Free bytes behind it.
    fn room(&self) -> usize {
        match self {
            Self::Own(data) => data.capacity() - data.len(),
            Self::Lent(_) => 0,
        }
    }

    fn advance(&mut self, n: usize) {
        match self {
            Self::Own(data) => data.advance(n),
            Self::Lent(data) => data.advance(n),
        }
    }

    fn split_to(&mut self, n: usize) -> Bytes {
        match self {
            Self::Own(data) => data.split_to(n).freeze(),
            Self::Lent(data) => data.split_to(n),
        }
    }

    fn into_chunk(self) -> Bytes {
        match self {
            Self::Own(data) => data.freeze(),
            Self::Lent(data) => data,
        }
    }
}

impl Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Own(data) => data,
            Self::Lent(data) => data,
        }
    }
}

impl RecvBuffer {
    /// An empty buffer, without memory.
    pub(super) fn new() -> Self {
        Self { store: Store::Ring(ByteRing::new()) }
    }

    /// What arrives in the new buffer follows a pattern, as long as it is not found to differ, and
    /// there are no blocks.
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

    /// Stores data in order, and makes it readable. There is none ahead. `memory`: bytes that the
    /// buffer may hold.
    #[inline]
    pub(super) fn append(&mut self, payload: &Payload<'_>, memory: u32, spare: &mut SpareBlocks) {
        if let Store::Ring(ring) = &self.store
            && payload.len() >= BULK
            && ring.len() == 0
            && memory >= ENOUGH_FOR_BLOCKS
        {
            self.store = Store::Blocks(Box::default());
        }
        if let Store::Blocks(blocks) = &mut self.store
            && memory >= ENOUGH_FOR_BLOCKS
            && blocks.take(payload, spare)
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

    /// Free memory into which data in order may be written in place, in packets of up to `len`
    /// bytes, before it is [committed](Self::commit); none if it does not belong into a ring.
    pub(super) fn free_slices(&mut self, len: usize) -> [&mut [u8]; 2] {
        match &mut self.store {
            Store::Ring(ring) if len < BULK => ring.free_slices(),
            _ => [&mut [], &mut []],
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

    /// The bytes that were written ahead from `offset` bytes past the readable ones on, up to `len`
    /// of them.
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
    pub(super) fn consume(&mut self, n: usize, spare: &mut SpareBlocks) {
        match &mut self.store {
            Store::Ring(ring) => ring.consume(n),
            Store::Blocks(blocks) => blocks.consume(n, spare),
        }
    }

    /// Moves readable bytes into `out` and returns how many: the shorter of the two.
    pub(super) fn pop_slice(&mut self, out: &mut [u8], spare: &mut SpareBlocks) -> usize {
        match &mut self.store {
            Store::Ring(ring) => ring.pop_slice(out),
            Store::Blocks(blocks) => blocks.pop_slice(out, spare),
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
            let mut ring = core::mem::take(ring);
            ring.own();
            self.store = Store::Blocks(Box::new(Blocks { ring, ..Blocks::default() }));
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
            Store::Blocks(blocks) => blocks.is_sparse() || blocks.ring.has_spare(),
        }
    }

    /// Gives back memory that what is held does not need.
    pub(super) fn shrink(&mut self) {
        if let Store::Blocks(blocks) = &mut self.store
            && blocks.is_sparse()
        {
            self.store = Store::Ring(blocks.take_all());
        }
        self.ring_mut().shrink();
    }

    /// Drops every byte, including those written ahead, and frees the memory.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }
}

/// Copies the first readable bytes out of a ring.
fn copy_out(ring: &mut ByteRing, max: usize) -> Option<Bytes> {
    let [first, second] = ring.slices(0, max.min(BLOCK));
    let n = first.len() + second.len();
    if n == 0 {
        return None;
    }
    let mut chunk = BytesMut::with_capacity(n);
    chunk.extend_from_slice(first);
    chunk.extend_from_slice(second);
    ring.consume(n);
    Some(chunk.freeze())
}

impl Blocks {
    /// Memory for bytes.
    fn capacity(&self) -> usize {
        self.held + self.ring.capacity()
    }

    /// Memory for anything else.
    fn overhead(&self) -> usize {
        size_of::<Self>() + self.blocks.capacity() * size_of::<Block>()
    }

    /// Free bytes of the last block.
    fn room(&self) -> usize {
        self.blocks.back().map_or(0, |block| block.data.room())
    }

    fn usage(&self) -> (usize, usize) {
        let of_ring = self.ring.capacity() - self.ring.len();
        let free = if self.ring_is_empty() { of_ring.max(self.room()) } else { of_ring };
        (self.capacity() - free, self.capacity())
    }

    fn ring_is_empty(&self) -> bool {
        self.ring.len() == 0 && self.ring.ahead() == 0
    }

    /// Appends data in order to the blocks; false if it belongs into the ring.
    fn take(&mut self, payload: &Payload<'_>, spare: &mut SpareBlocks) -> bool {
        self.gather(payload.len(), spare);
        let (len, room) = (payload.len(), self.room());
        if !self.ring_is_empty() || (self.len == 0 && len < WORTH_A_BLOCK) {
            return false;
        }
        if let Some(memory) = payload.memory()
            && len >= memory.len() / 2
            && let Some(data) = payload.lent()
        {
            self.push(Data::Lent(data), memory.len());
            self.len += len;
            return true;
        }
        // A chunk of what little is left would not be worth it.
        if room < len && room < BLOCK / 4 {
            self.begin(len, spare);
        }
        for mut slice in payload.slices() {
            while !slice.is_empty() {
                match self.blocks.back_mut() {
                    Some(Block { data: Data::Own(data), .. }) if data.len() < data.capacity() => {
                        let (now, rest) = slice.split_at(slice.len().min(data.capacity() - data.len()));
                        data.extend_from_slice(now);
                        slice = rest;
                    }
                    _ => self.begin(slice.len(), spare),
                }
            }
        }
        self.len += len;
        true
    }

    /// Before `len` bytes are appended: if there is enough for a chunk with them, begins a block
    /// with what waits in the ring. The ring stays as it is, and small, so that a stream of single
    /// packets neither grows nor gives away one for each chunk.
    fn gather(&mut self, len: usize, spare: &mut SpareBlocks) {
        let waits = self.ring.len();
        if self.chunks
            && waits > 0
            && waits + len >= BULK
            && waits <= BLOCK
            && self.blocks.is_empty()
            && self.ring.ahead() == 0
        {
            let mut data = spare.take();
            self.ring.slices(0, waits).iter().for_each(|piece| data.extend_from_slice(piece));
            self.ring.consume(waits);
            self.len = waits;
            self.push(Data::Own(data), BLOCK);
        }
    }

    /// Begins a block, for `len` bytes and perhaps more. A chunk that is taken at once holds no
    /// more than it has.
    fn begin(&mut self, len: usize, spare: &mut SpareBlocks) {
        let data = match self.chunks && self.len == 0 {
            true => BytesMut::with_capacity(len),
            false => spare.take(),
        };
        let held = data.capacity();
        self.push(Data::Own(data), held);
    }

    /// Appends a block that keeps `held` bytes from being freed.
    fn push(&mut self, data: Data, held: usize) {
        self.held += held;
        self.blocks.push_back(Block { data, held });
    }

    fn peek(&self) -> [&[u8]; 2] {
        let mut blocks = self.blocks.iter().map(|block| &block.data[..]);
        match (blocks.next(), blocks.next()) {
            (None, _) => self.ring.slices(0, usize::MAX),
            (Some(first), None) => [first, self.ring.slices(0, usize::MAX)[0]],
            (Some(first), Some(second)) => [first, second],
        }
    }

    /// Their bytes take a quarter of the memory that they hold or less.
    const fn is_sparse(&self) -> bool {
        self.len <= self.held / 4
    }

    /// Takes everything, in one ring.
    fn take_all(&mut self) -> ByteRing {
        let Self { blocks, ring, .. } = core::mem::take(self);
        if blocks.is_empty() {
            return ring;
        }
        let mut all = ByteRing::new();
        for piece in blocks.iter().map(|block| &block.data[..]).chain(ring.slices(0, usize::MAX)) {
            let stored = all.push_slice(piece, MAX_CAPACITY);
            debug_assert_eq!(stored, piece.len(), "the window promised room");
        }
        // With what is in the holes.
        let mut at = 0;
        for piece in ring.slices_ahead(0, usize::MAX) {
            all.write_at(at, piece, MAX_CAPACITY);
            at += piece.len();
        }
        all
    }

    /// Takes the first block out.
    fn pop(&mut self) -> Option<Data> {
        let Block { data, held } = self.blocks.pop_front()?;
        self.held -= held;
        Some(data)
    }

    /// Drops the first `n` bytes of the blocks, no more than `len`.
    fn consume_blocks(&mut self, n: usize, spare: &mut SpareBlocks) {
        self.chunks = false;
        self.len -= n;
        let mut left = n;
        while let Some(Block { data, .. }) = self.blocks.front_mut() {
            if left < data.len() {
                data.advance(left);
                return;
            }
            left -= data.len();
            if let Some(Data::Own(block)) = self.pop() {
                spare.give(block);
            }
        }
    }

    fn consume(&mut self, n: usize, spare: &mut SpareBlocks) {
        let of_blocks = n.min(self.len);
        self.consume_blocks(of_blocks, spare);
        self.ring.consume(n - of_blocks);
    }

    fn pop_slice(&mut self, out: &mut [u8], spare: &mut SpareBlocks) -> usize {
        let mut at = 0;
        for Block { data, .. } in &self.blocks {
            let n = data.len().min(out.len() - at);
            out[at..at + n].copy_from_slice(&data[..n]);
            at += n;
        }
        self.consume_blocks(at, spare);
        at + self.ring.pop_slice(&mut out[at..])
    }

    fn pop_chunk(&mut self, max: usize) -> Option<Bytes> {
        self.chunks = true;
        if self.blocks.is_empty() && self.ring.len() >= BULK && self.ring.ahead() == 0 && !self.ring.wraps() {
            self.detach_ring();
        }
        let chunk = match self.blocks.front_mut() {
            None => return copy_out(&mut self.ring, max),
            Some(Block { data, .. }) if data.len() > max => data.split_to(max),
            Some(_) => self.pop()?.into_chunk(),
        };
        self.len -= chunk.len();
        Some(chunk)
    }

    /// Makes the ring's memory a block. It does not wrap, and nothing is written ahead.
    fn detach_ring(&mut self) {
        let ring = core::mem::take(&mut self.ring);
        let held = ring.capacity();
        let [data, _] = ring.into_chunks();
        self.len += data.len();
        // Nobody else has it, so it is not copied.
        self.push(Data::Own(data.into()), held);
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, BULK, RecvBuffer, SpareBlocks, Store, WORTH_A_BLOCK};
    use crate::memory::ring::ByteRing;
    use crate::pattern::Pattern;
    use crate::wire::Payload;
    use bytes::Bytes;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    const PLENTY: u32 = 1 << 30;

    fn pattern(start: usize, len: usize) -> Vec<u8> {
        (start..start + len).map(|i| ((i as u32).wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    /// Of a pattern.
    static TABLE: [u8; 2 * 20_011] = {
        let mut table = [0; 2 * 20_011];
        let mut at = 0;
        while at < table.len() {
            table[at] = ((at % 20_011) % 251) as u8;
            at += 1;
        }
        table
    };

    /// A buffer with blocks to take.
    #[derive(Default)]
    struct Bench {
        spare: SpareBlocks,
    }

    impl Bench {
        fn append(&mut self, buffer: &mut RecvBuffer, data: &[u8]) {
            buffer.append(&Payload::from(data), PLENTY, &mut self.spare);
        }
    }

    /// A buffer whose reader has read much in chunks.
    fn read_in_chunks(bench: &mut Bench) -> RecvBuffer {
        let mut buffer = RecvBuffer::new();
        bench.append(&mut buffer, &pattern(0, BULK));
        assert!(matches!(buffer.store, Store::Blocks(_)));
        let chunk = buffer.pop_chunk(usize::MAX);
        assert!(chunk.is_some_and(|chunk| chunk == pattern(0, BULK)));
        buffer
    }

    #[test]
    fn blocks_take_no_place_in_a_buffer_without_any() {
        assert_eq!(size_of::<RecvBuffer>(), size_of::<ByteRing>());
    }

    #[test]
    fn what_is_read_in_small_chunks_stays_in_a_ring() {
        let (mut bench, mut buffer) = (Bench::default(), RecvBuffer::new());
        assert_eq!(buffer.pop_chunk(100), None);
        for round in 0..100 {
            bench.append(&mut buffer, &pattern(round, 1_000));
            assert_eq!(buffer.pop_chunk(0), None);
            assert_eq!(buffer.pop_chunk(600).expect("600 bytes"), pattern(round, 600));
            assert_eq!(buffer.pop_chunk(600).expect("400 bytes"), pattern(round + 600, 400));
            assert!(buffer.memory() <= 1_024);
        }
        assert!(matches!(buffer.store, Store::Ring(_)));
    }

    #[test]
    fn what_waited_in_the_ring_is_not_copied() {
        let (mut bench, mut buffer) = (Bench::default(), RecvBuffer::new());
        for segment in 0..100 {
            bench.append(&mut buffer, &pattern(segment * 1_000, 1_000));
        }
        let there = buffer.peek()[0].as_ptr();
        let chunk = buffer.pop_chunk(40_000).expect("100,000 bytes");
        assert_eq!((chunk.as_ptr(), chunk.len(), buffer.len()), (there, 40_000, 60_000));
        assert_eq!(chunk, pattern(0, 40_000));
        assert!(buffer.pop_chunk(usize::MAX).expect("60,000 bytes") == pattern(40_000, 60_000));
        assert_eq!(buffer.usage(), (0, 0));
    }

    #[test]
    fn bulk_data_is_received_into_memory_that_chunks_share() {
        let mut bench = Bench::default();
        let mut buffer = read_in_chunks(&mut bench);
        for at in (0..200_000).step_by(40_000) {
            bench.append(&mut buffer, &pattern(at, 40_000));
        }
        let (used, capacity) = buffer.usage();
        assert!(buffer.len() == 200_000 && used >= 200_000 && capacity <= 40_000 + 3 * BLOCK, "{capacity}");
        let (mut read, mut pieces) = (0, vec![]);
        while let Some(there) = Some(buffer.peek()[0].as_ptr()).filter(|_| buffer.len() > 0) {
            let chunk = buffer.pop_chunk(50_000).expect("data");
            assert_eq!(chunk.as_ptr(), there);
            assert_eq!(chunk, pattern(read, chunk.len()));
            read += chunk.len();
            pieces.push(chunk.len());
        }
        assert_eq!((read, &pieces[..3]), (200_000, &[40_000, 50_000, BLOCK - 50_000][..]));
        assert_eq!(buffer.usage(), (0, 0));
        buffer.shrink();
        assert_eq!((buffer.memory(), buffer.has_spare(), bench.spare.memory()), (0, false, 0));
    }

    #[test]
    fn connections_that_are_read_by_copy_use_the_same_block_by_turns() {
        let mut bench = Bench::default();
        let mut buffers = [(); 10].map(|()| RecvBuffer::new());
        let mut out = vec![0; BLOCK];
        let mut places = vec![];
        for round in 0..50 {
            let buffer = &mut buffers[round % 10];
            bench.append(buffer, &pattern(round, 60_000));
            places.push(buffer.peek()[0].as_ptr());
            if round % 2 == 0 {
                assert_eq!(buffer.pop_slice(&mut out, &mut bench.spare), 60_000);
                assert_eq!(out[..60_000], pattern(round, 60_000));
            } else {
                buffer.consume(59_999, &mut bench.spare);
                assert_eq!(buffer.peek().concat(), pattern(round + 59_999, 1));
                buffer.consume(1, &mut bench.spare);
            }
            assert_eq!(buffer.usage(), (0, 0));
        }
        assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
        assert!(bench.spare.memory() < 2 * BLOCK);
    }

    #[test]
    fn a_block_is_not_held_for_little_of_it() {
        for read in [48_999, 49_000, 59_999] {
            let (mut bench, mut buffer) = (Bench::default(), RecvBuffer::new());
            bench.append(&mut buffer, &pattern(0, 60_000));
            buffer.write_at(10, &pattern(60_010, 5));
            buffer.consume(read, &mut bench.spare);
            let is_little = 60_000 - read <= BLOCK / 4;
            assert_eq!(buffer.has_spare(), is_little);
            buffer.shrink();
            assert_eq!((matches!(buffer.store, Store::Ring(_)), buffer.has_spare()), (is_little, false));
            assert_eq!((buffer.len(), buffer.ahead()), (60_000 - read, 15));
            buffer.write_at(0, &pattern(60_000, 10));
            buffer.commit(15);
            let mut out = vec![0; BLOCK];
            let n = buffer.pop_slice(&mut out, &mut bench.spare);
            assert!(out[..n] == pattern(read, 60_015 - read));
        }
    }

    #[test]
    fn little_data_and_little_memory_stay_in_the_ring() {
        let mut bench = Bench::default();
        let mut buffer = read_in_chunks(&mut bench);
        bench.append(&mut buffer, &pattern(0, WORTH_A_BLOCK - 1));
        assert!(buffer.memory() < 2 * WORTH_A_BLOCK, "{}", buffer.memory());
        let mut buffer = RecvBuffer::new();
        bench.append(&mut buffer, &pattern(0, BULK - 1));
        assert!(matches!(buffer.store, Store::Ring(_)));
        let mut buffer = RecvBuffer::new();
        buffer.append(&Payload::from(&pattern(0, 20_000)[..]), 100_000, &mut bench.spare);
        assert_eq!(buffer.usage(), (20_000, 32_768));
    }

    /// Headers, `data`, and room for `more`.
    fn memory(data: &[u8], more: usize) -> Bytes {
        let mut memory = vec![0xff; HEADERS];
        memory.extend_from_slice(data);
        memory.resize(HEADERS + data.len() + more, 0);
        memory.into()
    }

    const HEADERS: usize = 52;

    /// The `len` octets of data in such memory, which is lent.
    fn lent(memory: &Bytes, len: usize) -> Payload<'_> {
        Payload::from(&memory[HEADERS..HEADERS + len]).in_memory(Some(memory))
    }

    #[test]
    fn what_a_device_lends_stays_where_it_is() {
        let mut bench = Bench::default();
        let mut buffer = RecvBuffer::new();
        let first = memory(&pattern(0, 40_000), 25_000);
        let second = memory(&pattern(40_000, 60_000), 0);
        for (memory, len) in [(&first, 40_000), (&second, 60_000)] {
            buffer.append(&lent(memory, len), PLENTY, &mut bench.spare);
        }
        let held = first.len() + second.len();
        assert_eq!((buffer.len(), buffer.usage()), (100_000, (held, held)));
        assert_eq!(
            buffer.peek().map(<[u8]>::as_ptr),
            [&first, &second].map(|memory| memory[HEADERS..].as_ptr())
        );
        assert_eq!(buffer.pop_chunk(1_000).expect("data"), pattern(0, 1_000));
        let mut out = vec![0; 38_000];
        assert_eq!(buffer.pop_slice(&mut out, &mut bench.spare), 38_000);
        assert!(out == pattern(1_000, 38_000) && !first.is_unique());
        buffer.consume(1_000, &mut bench.spare);
        assert!(first.is_unique() && !second.is_unique(), "what has been read is given back");
        let chunk = buffer.pop_chunk(usize::MAX).expect("data");
        assert_eq!((chunk.as_ptr(), chunk.len()), (second[HEADERS..].as_ptr(), 60_000));
        assert_eq!((buffer.usage(), bench.spare.memory()), ((0, 0), 0));
    }

    #[test]
    fn memory_is_not_kept_for_less_than_half_of_it() {
        let mut bench = Bench::default();
        let mut buffer = RecvBuffer::new();
        let memory = memory(&pattern(0, 40_000), 40_000);
        buffer.append(&lent(&memory, 40_000), PLENTY, &mut bench.spare);
        assert!(memory.is_unique() && buffer.peek().concat() == pattern(0, 40_000));
    }

    #[test]
    fn memory_that_has_not_got_the_data_is_not_kept() {
        let mut bench = Bench::default();
        let mut buffer = RecvBuffer::new();
        let (data, other) = (pattern(0, 40_000), memory(&pattern(7, 40_000), 0));
        buffer.append(&Payload::from(&data[..]).in_memory(Some(&other)), PLENTY, &mut bench.spare);
        buffer.append(&lent(&other, 40_000), 100_000, &mut bench.spare);
        assert!(other.is_unique(), "and neither what there is no memory for");
        assert!(buffer.len() == 80_000 && buffer.pop_chunk(40_000).expect("data") == data);
    }

    #[derive(Clone, Debug)]
    enum Op {
        Append(usize, bool),
        AppendLent(usize, usize),
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
            3 => (1usize..66_000, 0usize..40_000).prop_map(|(n, more)| Op::AppendLent(n, more)),
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
            let (mut buffer, mut spare) = (RecvBuffer::new(), SpareBlocks::default());
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
                        buffer.append(&payload, if plenty { PLENTY } else { 4_096 }, &mut spare);
                        model.extend_from_slice(&data);
                    }
                    Op::AppendLent(n, more) if ahead.is_empty() => {
                        let data = pattern(made, n);
                        made += n;
                        buffer.append(&lent(&memory(&data, more), n), PLENTY, &mut spare);
                        model.extend_from_slice(&data);
                    }
                    Op::Append(..) | Op::AppendLent(..) => {}
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
                        let copied = buffer.pop_slice(&mut out, &mut spare);
                        prop_assert_eq!(copied, n.min(model.len()));
                        prop_assert!(model.drain(..copied).eq(out[..copied].iter().copied()));
                    }
                    Op::Consume(n) => {
                        buffer.consume(n, &mut spare);
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

        #[test]
        fn a_pattern_makes_no_difference(ops in prop::collection::vec((op(), 0..20u8), 1..80)) {
            let expected = Pattern::new(&TABLE).expect("a table");
            let mut buffers = [(); 2].map(|()| (RecvBuffer::new(), SpareBlocks::default()));
            buffers[1].0.expect(expected);
            let (mut end, mut ahead): (usize, Vec<bool>) = (0, vec![]);
            for (op, luck) in ops {
                // What is in the stream from there on, but seldom one octet is another.
                let stream = |from: usize, len: usize| {
                    let mut data = vec![0; len];
                    expected.fill(from % expected.period(), &mut data);
                    if let (Some(octet), 0) = (data.last_mut(), luck) {
                        *octet ^= 1;
                    }
                    data
                };
                let mut seen = buffers.each_mut().map(|(buffer, spare)| match op {
                    Op::Append(n, plenty) if ahead.is_empty() => {
                        let data = stream(end, n);
                        buffer.append(&Payload::from(&data[..]), if plenty { PLENTY } else { 4_096 }, spare);
                        vec![]
                    }
                    Op::AppendLent(n, more) if ahead.is_empty() => {
                        buffer.append(&lent(&memory(&stream(end, n), more), n), PLENTY, spare);
                        vec![]
                    }
                    Op::Append(..) | Op::AppendLent(..) => vec![],
                    Op::WriteAhead(at, n) => {
                        buffer.write_at(at, &stream(end + at, n));
                        vec![]
                    }
                    Op::FillHole => {
                        let hole = ahead.iter().take_while(|is_there| !**is_there).count();
                        let full = ahead[hole..].iter().take_while(|is_there| **is_there).count();
                        buffer.write_at(0, &stream(end, hole));
                        buffer.commit(hole + full);
                        vec![]
                    }
                    Op::ForgetAhead => {
                        buffer.hold();
                        let there = buffer.slices_ahead(0, usize::MAX).concat();
                        buffer.forget_ahead();
                        // What is in holes is not specified.
                        ahead.iter().zip(there).filter(|(is_there, _)| **is_there).map(|(_, octet)| octet).collect()
                    }
                    Op::Chunk(max) => buffer.pop_chunk(max).unwrap_or_default().to_vec(),
                    Op::Copy(n) => {
                        let mut out = vec![0; n];
                        let copied = buffer.pop_slice(&mut out, spare);
                        out.truncate(copied);
                        out
                    }
                    Op::Consume(n) => {
                        buffer.consume(n, spare);
                        vec![]
                    }
                    Op::Shrink => {
                        buffer.shrink();
                        vec![]
                    }
                });
                match op {
                    Op::Append(n, _) | Op::AppendLent(n, _) if ahead.is_empty() => end += n,
                    Op::WriteAhead(at, n) => {
                        ahead.resize(ahead.len().max(at + n), false);
                        ahead[at..at + n].fill(true);
                    }
                    Op::FillHole => {
                        let hole = ahead.iter().take_while(|is_there| !**is_there).count();
                        ahead.drain(..hole);
                        let full = ahead.iter().take_while(|is_there| **is_there).count();
                        ahead.drain(..full);
                        end += hole + full;
                    }
                    Op::ForgetAhead => ahead.clear(),
                    _ => {}
                }
                for (seen, (buffer, _)) in seen.iter_mut().zip(&buffers) {
                    seen.extend_from_slice(&buffer.peek().concat());
                }
                prop_assert!(seen[0] == seen[1]);
                let [plain, drawn] = buffers.each_ref().map(|(buffer, spare)| {
                    let sizes = (buffer.len(), buffer.ahead(), buffer.usage());
                    (sizes, buffer.memory(), buffer.has_spare(), spare.memory())
                });
                prop_assert_eq!(plain, drawn);
            }
        }
    }
}
