//! The send buffer: the stream's bytes from SND.UNA on, and the FIN behind them.
//!
//! ```text
//!          SND.UNA               SND.NXT             end
//!   ──────────┬─────────────────────┬─────────────────┬─────┬──────
//!    released │ sent, outstanding   │ never sent      │ FIN │
//!   ──────────┴─────────────────────┴─────────────────┴─────┴──────
//! ```
//!
//! The bytes are in a ring, into which they are copied, until the application hands over a chunk
//! that is large enough to be shared instead. From then on they are in [`Chunks`], until everything
//! is acknowledged.

use crate::memory::ring::ByteRing;
use crate::pattern::Pattern;
use crate::seq::SeqNum;
use crate::snd::data::chunks::{Chunks, MIN_CHUNK};
use alloc::boxed::Box;
use bytes::{Buf, Bytes};

/// Bytes that may still have to be sent.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    store: Store,
    /// Sequence number of the first byte held.
    start: SeqNum,
    /// A FIN follows the last byte.
    fin: bool,
}

/// Where the bytes are.
#[derive(Debug)]
enum Store {
    Ring(ByteRing),
    Chunks(Box<Chunks>),
}

/// Memory that a buffer uses, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// What cannot take other bytes at present; at least the bytes held.
    pub(crate) used: usize,
    /// All of it.
    pub(crate) capacity: usize,
}

impl SendBuffer {
    /// An empty buffer whose first byte will be `start`.
    pub(crate) fn new(start: SeqNum) -> Self {
        Self { store: Store::Ring(ByteRing::new()), start, fin: false }
    }

    /// The stream follows a pattern, until something else is written.
    pub(crate) fn expect(&mut self, pattern: Pattern) {
        if let Store::Ring(ring) = &mut self.store {
            ring.draw(pattern, false);
        }
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        match &self.store {
            Store::Ring(ring) => ring.len(),
            Store::Chunks(chunks) => chunks.end().distance_from(self.start) as usize,
        }
    }

    /// One past the last byte written; the FIN's own number.
    pub(crate) fn end(&self) -> SeqNum {
        match &self.store {
            Store::Ring(ring) => self.start + ring.len() as u32,
            Store::Chunks(chunks) => chunks.end(),
        }
    }

    /// One past everything to be sent, including the FIN.
    pub(crate) fn limit(&self) -> SeqNum {
        self.end() + u32::from(self.fin)
    }

    /// A FIN follows the last byte.
    pub(crate) const fn has_fin(&self) -> bool {
        self.fin
    }

    pub(crate) const fn queue_fin(&mut self) {
        self.fin = true;
    }

    /// Copies as much of `data` as fits, if the buffer holds no more than `limit` bytes.
    pub(crate) fn write(&mut self, data: &[u8], limit: usize) -> usize {
        let room = self.space(limit);
        match &mut self.store {
            _ if room == 0 => 0,
            Store::Ring(ring) => ring.push_slice(data, limit),
            Store::Chunks(chunks) => {
                let n = data.len().min(room);
                chunks.write(&data[..n]);
                n
            }
        }
    }

    /// Takes as much of `chunk` as fits off its front, if the buffer holds no more than `limit`
    /// bytes; without a copy if the chunk is large. Returns the number of bytes.
    pub(crate) fn write_chunk(&mut self, chunk: &mut Bytes, limit: usize) -> usize {
        let n = chunk.len().min(self.space(limit));
        if n == 0 {
            return 0;
        }
        if let Store::Ring(ring) = &mut self.store {
            if !is_shared(chunk) {
                let n = ring.push_slice(&chunk[..n], limit);
                chunk.advance(n);
                return n;
            }
            self.share();
        }
        if let Store::Chunks(chunks) = &mut self.store {
            chunks.push_chunk(chunk, n);
        }
        n
    }

    /// The bytes are in chunks from now on.
    fn share(&mut self) {
        if let Store::Ring(ring) = &mut self.store {
            self.store = Store::Chunks(Box::new(chunks_of(core::mem::take(ring), self.start)));
        }
    }

    /// A record ends with the last byte written (`MSG_EOR`): no segment has bytes on both sides of
    /// it.
    pub(crate) fn end_record(&mut self) {
        if self.len() == 0 || self.fin {
            return;
        }
        self.share();
        if let Store::Chunks(chunks) = &mut self.store {
            chunks.end_record();
        }
    }

    /// The end of the record that `from` is in, if more bytes follow it.
    pub(crate) fn record_end(&self, from: SeqNum) -> Option<SeqNum> {
        match &self.store {
            Store::Ring(_) => None,
            Store::Chunks(chunks) => chunks.record_end(from),
        }
    }

    /// Free memory for at most `max` bytes, in place; grown as far as `limit` allows.
    pub(crate) fn writable_slices(&mut self, max: usize, limit: usize) -> [&mut [u8]; 2] {
        let room = max.min(self.space(limit));
        match &mut self.store {
            _ if room == 0 => [&mut [], &mut []],
            Store::Ring(ring) => {
                let total = ring.len().saturating_add(max);
                ring.reserve_total(total, limit);
                ring.writable_slices(limit.min(total))
            }
            Store::Chunks(chunks) => [chunks.writable(room), &mut []],
        }
    }

    pub(crate) fn commit(&mut self, n: usize) {
        match &mut self.store {
            Store::Ring(ring) => ring.commit(n),
            Store::Chunks(chunks) => chunks.commit(n),
        }
    }

    pub(crate) fn space(&self, limit: usize) -> usize {
        if self.fin { 0 } else { limit.saturating_sub(self.len()) }
    }

    /// Stream bytes `seq .. seq + len`, as far as they are in the buffer and, if it holds chunks,
    /// [gathered](Self::gather).
    pub(crate) fn payload(&self, seq: SeqNum, len: u32) -> [&[u8]; 2] {
        match &self.store {
            Store::Ring(ring) => ring.slices(seq.distance_from(self.start) as usize, len as usize),
            Store::Chunks(chunks) => chunks.slices(seq, len),
        }
    }

    /// Sees to it that two slices contain stream bytes `seq .. seq + len`.
    #[inline]
    pub(crate) fn gather(&mut self, seq: SeqNum, len: u32) {
        if let Store::Chunks(chunks) = &mut self.store {
            chunks.gather(seq, len);
        }
    }

    /// Everything before `una` is acknowledged. Returns the bytes freed.
    pub(crate) fn release(&mut self, una: SeqNum) -> u32 {
        let bytes = una.saturating_distance_from(self.start).min(self.len() as u32);
        self.start += bytes;
        match &mut self.store {
            Store::Ring(ring) => ring.consume(bytes as usize),
            Store::Chunks(chunks) => {
                chunks.release(self.start);
                if chunks.is_empty() {
                    self.store = Store::Ring(ByteRing::new());
                }
            }
        }
        bytes
    }

    /// Bytes allocated, with those of shared chunks.
    pub(crate) fn memory(&self) -> usize {
        match &self.store {
            Store::Ring(ring) => ring.capacity(),
            Store::Chunks(chunks) => chunks.held() + chunks.overhead(),
        }
    }

    /// What is used of the memory.
    pub(crate) fn usage(&self) -> Usage {
        match &self.store {
            Store::Ring(ring) => Usage { used: ring.len(), capacity: ring.capacity() },
            Store::Chunks(chunks) => Usage { used: chunks.held(), capacity: chunks.held() },
        }
    }

    /// True if memory is allocated.
    pub(crate) fn has_memory(&self) -> bool {
        self.memory() > 0
    }

    /// True if [`shrink`](Self::shrink) would free memory.
    pub(crate) fn has_spare(&self) -> bool {
        match &self.store {
            Store::Ring(ring) => ring.has_spare(),
            Store::Chunks(chunks) => chunks.has_spare(self.start),
        }
    }

    /// Frees memory that the bytes held do not need.
    pub(crate) fn shrink(&mut self) {
        match &mut self.store {
            Store::Ring(ring) => ring.shrink(),
            Store::Chunks(chunks) => chunks.shrink(self.start),
        }
    }

    /// Frees the memory if it is empty.
    pub(crate) fn trim(&mut self) {
        if let Store::Ring(ring) = &mut self.store {
            ring.release();
        }
    }

    /// Drops every byte.
    pub(crate) fn discard(&mut self) {
        self.store = Store::Ring(ByteRing::new());
    }
}

/// True if a buffer shares the memory of `chunk` instead of copying it.
pub(crate) fn is_shared(chunk: &Bytes) -> bool {
    chunk.len() >= MIN_CHUNK
}

/// The content of `ring`, whose first byte is `start`. Not copied, unless it wraps.
fn chunks_of(mut ring: ByteRing, start: SeqNum) -> Chunks {
    ring.straighten();
    let (mut chunks, held) = (Chunks::new(start), ring.capacity());
    let [bytes, _] = ring.into_chunks();
    if !bytes.is_empty() {
        chunks.push_own(bytes, held);
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::{MIN_CHUNK, SendBuffer, Store};
    use crate::memory::ring::ByteRing;
    use crate::seq::SeqNum;
    use bytes::Bytes;
    use proptest::prelude::*;
    use std::sync::{Arc, OnceLock};
    use std::vec;
    use std::vec::Vec;

    /// Just before the numbers wrap.
    const BASE: SeqNum = SeqNum(u32::MAX - 100_000);
    const ALL: usize = 1 << 30;

    /// Bytes that differ from one place to another.
    fn pattern() -> Bytes {
        static PATTERN: OnceLock<Bytes> = OnceLock::new();
        let make = || (0..1_u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        PATTERN.get_or_init(make).clone()
    }

    /// A chunk that tells whether somebody holds it.
    fn chunk(len: usize) -> (Bytes, Arc<()>) {
        struct Owner(Bytes, #[expect(dead_code, reason = "it is counted")] Arc<()>);
        impl AsRef<[u8]> for Owner {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        let held = Arc::new(());
        (Bytes::from_owner(Owner(pattern().slice(..len), held.clone())), held)
    }

    fn content(buffer: &mut SendBuffer, offset: usize, len: usize) -> Vec<u8> {
        let seq = buffer.start + offset as u32;
        buffer.gather(seq, len as u32);
        buffer.payload(seq, len as u32).concat()
    }

    #[test]
    fn chunks_take_no_place_in_a_buffer_without_any() {
        assert_eq!(size_of::<Store>(), size_of::<ByteRing>());
    }

    #[test]
    fn a_large_chunk_is_shared_and_a_small_one_copied() {
        let mut buffer = SendBuffer::new(BASE);
        let (mut small, _) = chunk(MIN_CHUNK - 1);
        assert_eq!(buffer.write_chunk(&mut small, ALL), MIN_CHUNK - 1);
        assert!(small.is_empty() && matches!(buffer.store, Store::Ring(_)));
        let (mut large, held) = chunk(MIN_CHUNK);
        let there = large.as_ptr();
        assert_eq!(buffer.write_chunk(&mut large, ALL), MIN_CHUNK);
        assert!(large.is_empty());
        assert_eq!(Arc::strong_count(&held), 2);
        let at = BASE + (MIN_CHUNK - 1) as u32;
        let [whole, rest] = buffer.payload(at, MIN_CHUNK as u32);
        assert_eq!((whole.as_ptr(), whole.len(), rest.len()), (there, MIN_CHUNK, 0));
        // A packet across the border borrows from both.
        buffer.gather(BASE + 60_000, 65_000);
        let slices = buffer.payload(BASE + 60_000, 65_000);
        assert_eq!(slices.map(<[u8]>::len), [5_535, 59_465]);
        assert_eq!(slices[1].as_ptr(), there);
        buffer.release(at + MIN_CHUNK as u32);
        assert_eq!((Arc::strong_count(&held), buffer.len(), buffer.memory()), (1, 0, 0));
    }

    #[test]
    fn a_chunk_counts_whole_until_its_last_byte_is_acknowledged() {
        let mut buffer = SendBuffer::new(BASE);
        let (mut large, held) = chunk(500_000);
        assert_eq!(buffer.write_chunk(&mut large, ALL), 500_000);
        drop(large);
        for acknowledged in [1, 300_000, 499_999] {
            buffer.release(BASE + acknowledged);
            assert!((500_000..501_000).contains(&buffer.memory()), "{}", buffer.memory());
            assert_eq!(buffer.usage().used, 500_000);
            assert_eq!(Arc::strong_count(&held), 2);
        }
        assert!(buffer.has_spare());
        buffer.shrink();
        assert_eq!(Arc::strong_count(&held), 1, "what is left was copied");
        assert!(buffer.memory() < 1_000 && !buffer.has_spare(), "{}", buffer.memory());
        assert_eq!(content(&mut buffer, 0, 10), pattern()[499_999..500_000]);
        assert_eq!(buffer.release(BASE + 500_000), 1);
        assert_eq!(buffer.memory(), 0);
    }

    #[test]
    fn a_chunk_that_is_taken_in_steps_is_one_part() {
        let mut buffer = SendBuffer::new(BASE);
        let (mut large, _held) = chunk(300_000);
        let mut limit = 0;
        while !large.is_empty() {
            limit += 7_000;
            assert_eq!(buffer.write_chunk(&mut large, limit), limit.min(300_000) - (limit - 7_000));
            assert_eq!(buffer.write_chunk(&mut large, limit), 0, "it is full");
        }
        let [whole, rest] = buffer.payload(BASE, 300_000);
        assert_eq!((whole.len(), rest.len()), (300_000, 0));
        assert_eq!(buffer.usage().used, 300_000);
    }

    #[test]
    fn headers_between_chunks_cost_little() {
        let mut buffer = SendBuffer::new(BASE);
        let mut expected = vec![];
        for _ in 0..4 {
            buffer.write(b"header", ALL);
            let (mut large, _) = chunk(MIN_CHUNK);
            expected.extend_from_slice(b"header");
            expected.extend_from_slice(&large);
            buffer.write_chunk(&mut large, ALL);
        }
        let (shared, mut copied) = (pattern(), 0);
        for at in (0..expected.len()).step_by(65_160) {
            let end = expected.len().min(at + 65_160);
            assert!(content(&mut buffer, at, end - at) == expected[at..end], "at {at}");
            let slices = buffer.payload(BASE + at as u32, (end - at) as u32);
            let own = slices.iter().filter(|slice| !shared.as_ptr_range().contains(&slice.as_ptr()));
            copied += own.map(|slice| slice.len()).sum::<usize>();
        }
        assert!(copied < 10_000, "{copied} bytes of {} were copied", expected.len());
        buffer.release(BASE + expected.len() as u32);
        assert_eq!(buffer.memory(), 0);
    }

    #[test]
    fn nothing_is_taken_after_the_fin_or_beyond_the_limit() {
        let mut buffer = SendBuffer::new(BASE);
        let (mut large, held) = chunk(100_000);
        assert_eq!(buffer.write_chunk(&mut large, 0), 0);
        assert_eq!(buffer.write_chunk(&mut Bytes::new(), ALL), 0);
        assert_eq!((buffer.memory(), large.len()), (0, 100_000));
        assert_eq!(buffer.write_chunk(&mut large, 10), 10);
        buffer.queue_fin();
        assert_eq!((buffer.write_chunk(&mut large, ALL), buffer.write(b"x", ALL)), (0, 0));
        assert_eq!(buffer.writable_slices(9, ALL).map(|slice| slice.len()), [0, 0]);
        assert_eq!((buffer.end(), buffer.limit()), (BASE + 10, BASE + 11));
        drop(large);
        assert_eq!(Arc::strong_count(&held), 2);
        buffer.discard();
        assert_eq!((Arc::strong_count(&held), buffer.memory()), (1, 0));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Write(usize),
        InPlace(usize, usize),
        Chunk { from: usize, len: usize },
        GoOn,
        Release(usize),
        Read(usize, usize),
        Limit(usize),
        Shrink,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            2 => (0usize..9_000).prop_map(Op::Write),
            1 => (0usize..9_000, 0usize..9_000).prop_map(|(n, of)| Op::InPlace(n, of)),
            3 => (0usize..1 << 19, 0usize..1 << 18).prop_map(|(from, len)| Op::Chunk { from, len }),
            2 => Just(Op::GoOn),
            3 => (0usize..200_000).prop_map(Op::Release),
            4 => (0usize..300_000, 0usize..66_000).prop_map(|(at, len)| Op::Read(at, len)),
            2 => (0usize..500_000).prop_map(Op::Limit),
            1 => Just(Op::Shrink),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_queue(ops in prop::collection::vec(op(), 1..60)) {
            let (mut buffer, mut limit) = (SendBuffer::new(BASE), 400_000_usize);
            let mut model: Vec<u8> = vec![];
            let mut una = BASE;
            // The rest of the chunk that was written last.
            let mut rest = Bytes::new();
            for op in ops {
                let room = limit.saturating_sub(model.len());
                match op {
                    Op::Write(n) => {
                        let data = pattern().slice(n..2 * n);
                        let taken = buffer.write(&data, limit);
                        prop_assert_eq!(taken, n.min(room));
                        model.extend_from_slice(&data[..taken]);
                    }
                    Op::InPlace(n, max) => {
                        let data = pattern().slice(n..2 * n);
                        let slices = buffer.writable_slices(max, limit);
                        let there = slices[0].len() + slices[1].len();
                        prop_assert!(there <= max.min(room) && (there > 0 || max.min(room) == 0));
                        let mut filled = 0;
                        for slice in slices {
                            let count = slice.len().min(n - filled);
                            slice[..count].copy_from_slice(&data[filled..filled + count]);
                            filled += count;
                        }
                        buffer.commit(filled);
                        model.extend_from_slice(&data[..filled]);
                    }
                    Op::Chunk { from, len } => {
                        rest = pattern().slice(from..from + len);
                        let before = rest.clone();
                        let taken = buffer.write_chunk(&mut rest, limit);
                        prop_assert_eq!((taken, rest.len()), (len.min(room), len - taken));
                        model.extend_from_slice(&before[..taken]);
                    }
                    Op::GoOn => {
                        let before = rest.clone();
                        let taken = buffer.write_chunk(&mut rest, limit);
                        prop_assert_eq!(taken, before.len().min(room));
                        model.extend_from_slice(&before[..taken]);
                    }
                    Op::Release(n) => {
                        let n = n.min(model.len());
                        una += n as u32;
                        prop_assert_eq!(buffer.release(una), n as u32);
                        model.drain(..n);
                    }
                    Op::Read(at, len) => {
                        let expected: Vec<u8> = model.iter().copied().skip(at).take(len).collect();
                        let at = at.min(model.len());
                        prop_assert!(content(&mut buffer, at, expected.len()) == expected);
                    }
                    Op::Limit(n) => limit = n,
                    Op::Shrink => {
                        buffer.shrink();
                        prop_assert!(!buffer.has_spare());
                    }
                }
                prop_assert_eq!((buffer.len(), buffer.end()), (model.len(), una + model.len() as u32));
                prop_assert!(buffer.usage().used >= model.len());
                prop_assert!(buffer.memory() >= buffer.usage().capacity);
                if let Store::Chunks(chunks) = &buffer.store {
                    chunks.check(una);
                }
            }
            let mut at = 0;
            while at < model.len() {
                let len = 65_535.min(model.len() - at);
                prop_assert!(content(&mut buffer, at, len) == model[at..at + len]);
                at += len;
            }
            buffer.release(una + model.len() as u32);
            buffer.trim();
            prop_assert_eq!(buffer.memory(), 0);
        }
    }
}
