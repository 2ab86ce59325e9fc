//! A byte ring that grows on demand: the storage of a connection's send and receive buffers.
//!
//! ```text
//!        head            head + len                    ahead_end
//!         ▼                  ▼                             ▼
//!   ──────┬──────────────────┬─────────┬─────────┬─────────┬──────────
//!    free │     readable     │  hole   │ written │  ...    │   free        (modulo the capacity)
//!   ──────┴──────────────────┴─────────┴─────────┴─────────┴──────────
//! ```
//!
//! A sender only uses the readable part: the application appends ([`ByteRing::push_slice`]),
//! segments borrow any range of it ([`ByteRing::slices`]) and acknowledged bytes are dropped at the
//! front ([`ByteRing::consume`]). A receiver also writes past the readable part
//! ([`ByteRing::write_at`]) and makes those bytes readable once the hole before them is filled
//! ([`ByteRing::commit`]); the assembler keeps track of which are present.
//!
//! The capacity is zero or a power of two and at least doubles whenever it grows, so each byte is
//! copied a constant number of times. An empty ring restarts at its first byte, so that a reader
//! that keeps up only touches a small, cached part of a large buffer.
//!
//! A ring may be [drawn](ByteRing::draw) from a [`Pattern`]: it counts its bytes instead of keeping
//! them, and has the same lengths, limits and capacities as one with memory.

use crate::pattern::Pattern;
use alloc::boxed::Box;
use alloc::vec;
use bytes::Bytes;

/// The largest capacity in bytes: the largest window that TCP can offer (RFC 7323, section 2.3).
pub(crate) const MAX_CAPACITY: usize = 1 << 30;

/// The smallest capacity of an allocated ring, in bytes.
const MIN_CAPACITY: usize = 256;

/// A growable byte ring of at most [`MAX_CAPACITY`] bytes. See the [module documentation](self).
///
/// Each operation that stores bytes takes a `limit`: the maximum span of the ring in bytes, from
/// the first readable one. It is an argument because buffer tuning moves it; a limit below what is
/// already stored rejects new bytes and drops none.
#[derive(Default)]
pub(crate) struct ByteRing {
    store: Store,
    /// Index in the buffer of the first readable byte; below the capacity, or zero without a
    /// buffer.
    head: u32,
    /// Readable bytes.
    len: u32,
    /// Extent of the bytes written past the readable part, including holes; `len + ahead` fits the
    /// capacity.
    ahead: u32,
    /// All readable bytes are asked for at once.
    read_whole: bool,
}

/// Where the bytes are.
enum Store {
    /// In this memory, whose length is zero or a power of two.
    Memory(Box<[u8]>),
    /// In the table of a pattern.
    Drawn(Box<Drawn>),
}

impl Default for Store {
    fn default() -> Self {
        Self::Memory(Box::default())
    }
}

/// A ring that is drawn from a pattern.
struct Drawn {
    pattern: Pattern,
    /// The position in the stream of the first readable byte, modulo the pattern's period.
    phase: usize,
    /// Zero or a power of two.
    capacity: usize,
    /// The bytes in memory, all the same, of the ring's capacity; usually empty.
    held: Box<[u8]>,
}

/// Periods that a drawn ring can show in two slices, wherever they begin.
const SHOWN_PERIODS: usize = 3;

impl ByteRing {
    /// An empty ring, without memory.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Readable bytes.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Size of the current buffer: zero or a power of two.
    #[must_use]
    pub(crate) fn capacity(&self) -> usize {
        match &self.store {
            Store::Memory(memory) => memory.len(),
            Store::Drawn(drawn) => drawn.capacity,
        }
    }

    /// Draws the bytes of a new ring from `pattern`, from its first position on, until it is given
    /// others. `read_whole`: all readable bytes are asked for at once, instead of one packet's.
    pub(crate) fn draw(&mut self, pattern: Pattern, read_whole: bool) {
        debug_assert!(self.capacity() == 0, "the ring is new");
        self.read_whole = read_whole;
        let drawn = Drawn { pattern, phase: 0, capacity: 0, held: Box::default() };
        self.store = Store::Drawn(Box::new(drawn));
    }

    /// The memory; empty if the ring is drawn from a pattern.
    fn memory(&self) -> &[u8] {
        match &self.store {
            Store::Memory(memory) => memory,
            Store::Drawn(drawn) => &drawn.held,
        }
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        match &mut self.store {
            Store::Memory(memory) => memory,
            Store::Drawn(drawn) => &mut drawn.held,
        }
    }

    /// Puts the bytes into memory until the ring is empty, if they are drawn.
    pub(crate) fn hold(&mut self) {
        let (head, used) = (self.head as usize, self.len() + self.ahead());
        if let Store::Drawn(drawn) = &mut self.store
            && drawn.held.is_empty()
        {
            let mut held = vec![0; drawn.capacity].into_boxed_slice();
            let first = used.min(held.len() - head);
            let (front, back) = held.split_at_mut(head);
            drawn.pattern.fill(drawn.phase, &mut back[..first]);
            drawn.pattern.fill(drawn.pattern.advanced(drawn.phase, first), &mut front[..used - first]);
            drawn.held = held;
        }
    }

    /// Puts the bytes into memory for good.
    pub(crate) fn own(&mut self) {
        self.hold();
        if let Store::Drawn(drawn) = &mut self.store {
            self.store = Store::Memory(core::mem::take(&mut drawn.held));
        }
    }

    /// True if the ring draws its bytes, and `data` is what it draws at `start` bytes from the
    /// first readable one.
    #[inline]
    fn draws(&self, start: usize, data: &[u8]) -> bool {
        match &self.store {
            Store::Memory(_) => false,
            Store::Drawn(drawn) => drawn.draws(start, data),
        }
    }

    /// Extent of the bytes written past the readable part, including holes.
    #[must_use]
    pub(crate) fn ahead(&self) -> usize {
        self.ahead as usize
    }

    /// Grows so that `total` bytes fit, counted from the first readable one, but no more than
    /// `limit`. Returns how many fit afterwards: at most `limit`, and less than `total` only
    /// because of `limit` or [`MAX_CAPACITY`]. Never shrinks.
    pub(crate) fn reserve_total(&mut self, total: usize, limit: usize) -> usize {
        let wanted = total.min(limit).min(MAX_CAPACITY);
        if wanted > self.capacity() {
            self.reallocate(wanted);
        }
        self.capacity().min(limit)
    }

    /// Appends as much of `data` as fits to the readable part, and returns the number of bytes. The
    /// readable part does not grow past `limit`. Overwrites bytes written ahead; a receiver uses it
    /// for in-order data.
    #[inline]
    pub(crate) fn push_slice(&mut self, data: &[u8], limit: usize) -> usize {
        // Usually it fits behind what is there, in one piece.
        if let Store::Memory(memory) = &mut self.store
            && self.ahead == 0
        {
            let (end, capacity) = (self.len as usize + data.len(), memory.len());
            let at = (self.head as usize + self.len as usize) & capacity.wrapping_sub(1);
            if end <= capacity.min(limit)
                && let Some(place) = memory.get_mut(at..at + data.len())
            {
                place.copy_from_slice(data);
                self.len = end as u32;
                return data.len();
            }
        }
        self.push_elsewhere(data, limit)
    }

    /// [`push_slice`](Self::push_slice) into a ring that has to grow, wraps, or has or draws other
    /// bytes there.
    #[inline(never)]
    fn push_elsewhere(&mut self, data: &[u8], limit: usize) -> usize {
        let stored = self.write_at(0, data, limit);
        self.commit(stored);
        stored
    }

    /// Writes as much of `data` as fits at `offset` bytes past the end of the readable part,
    /// without making it readable, and returns the number of bytes. The ring, including holes,
    /// never spans more than `limit` bytes. The bytes of a hole are unspecified (but never another
    /// connection's data).
    pub(crate) fn write_at(&mut self, offset: usize, data: &[u8], limit: usize) -> usize {
        let start = self.len().saturating_add(offset);
        if start >= limit.min(MAX_CAPACITY) {
            return 0;
        }
        let room = self.reserve_total(start.saturating_add(data.len()), limit).saturating_sub(start);
        let stored = data.len().min(room);
        if stored == 0 {
            return 0;
        }
        if !self.draws(start, &data[..stored]) {
            self.store(start, &data[..stored]);
        }
        self.ahead = self.ahead.max((offset + stored) as u32);
        stored
    }

    /// Copies `data` to its place, `start` bytes from the first readable one; it fits.
    #[inline]
    fn store(&mut self, start: usize, data: &[u8]) {
        if let Store::Drawn(drawn) = &self.store
            && drawn.held.is_empty()
        {
            self.own();
        }
        let (first, second) = data.split_at(data.len().min(self.until_wrap(start)));
        let at = self.index(start);
        let memory = self.memory_mut();
        memory[at..at + first.len()].copy_from_slice(first);
        if !second.is_empty() {
            memory[..second.len()].copy_from_slice(second);
        }
    }

    /// The free memory after the readable part, in order, limited by the capacity and `limit`: for
    /// a writer that fills it in place and then calls [`ByteRing::commit`]. Call
    /// [`ByteRing::reserve_total`] first to have enough. It includes bytes written ahead.
    #[must_use]
    pub(crate) fn writable_slices(&mut self, limit: usize) -> [&mut [u8]; 2] {
        self.own();
        let start = self.len();
        let room = self.capacity().min(limit).saturating_sub(start);
        if room == 0 {
            return [&mut [], &mut []];
        }
        let (at, first) = (self.index(start), room.min(self.until_wrap(start)));
        let (front, back) = self.memory_mut().split_at_mut(at);
        [&mut back[..first], &mut front[..room - first]]
    }

    /// The free memory after the readable part, in order, for a writer that may
    /// [commit](ByteRing::commit) what it has written there; none if bytes were written ahead, or
    /// the ring is drawn.
    #[must_use]
    pub(crate) fn free_slices(&mut self) -> [&mut [u8]; 2] {
        if self.ahead > 0 || matches!(self.store, Store::Drawn(_)) {
            return [&mut [], &mut []];
        }
        self.writable_slices(MAX_CAPACITY)
    }

    /// Makes the next `n` bytes past the readable part readable: bytes written in place, or written
    /// ahead and no longer behind a hole. Stops at the capacity.
    pub(crate) fn commit(&mut self, n: usize) {
        let n = n.min(self.capacity() - self.len()) as u32;
        self.len += n;
        self.ahead = self.ahead.saturating_sub(n);
        if let Store::Drawn(drawn) = &self.store
            && self.read_whole
            && self.len() > SHOWN_PERIODS * drawn.pattern.period()
        {
            self.hold();
        }
    }

    /// Borrows up to `len` readable bytes from `offset` on, in order; the second slice is empty
    /// unless the range wraps. Clipped to the readable part.
    #[must_use]
    pub(crate) fn slices(&self, offset: usize, len: usize) -> [&[u8]; 2] {
        let len = len.min(self.len().saturating_sub(offset));
        if len == 0 {
            return [&[], &[]];
        }
        if let Store::Drawn(drawn) = &self.store
            && drawn.held.is_empty()
        {
            return drawn.slices(offset, len);
        }
        let (at, first) = (self.index(offset), len.min(self.until_wrap(offset)));
        let memory = self.memory();
        [&memory[at..at + first], &memory[..len - first]]
    }

    /// The bytes that were written ahead from `offset` bytes past the readable part on, up to `len`
    /// of them; of a drawn ring only while it [holds](Self::hold) them.
    #[must_use]
    pub(crate) fn slices_ahead(&self, offset: usize, len: usize) -> [&[u8]; 2] {
        let len = len.min(self.ahead().saturating_sub(offset));
        if len == 0 {
            return [&[], &[]];
        }
        let start = self.len() + offset;
        let (at, first) = (self.index(start), len.min(self.until_wrap(start)));
        let memory = self.memory();
        [memory.get(at..at + first).unwrap_or_default(), memory.get(..len - first).unwrap_or_default()]
    }

    /// Drops what was written ahead.
    pub(crate) fn forget_ahead(&mut self) {
        self.ahead = 0;
    }

    /// Drops up to `n` readable bytes at the front.
    pub(crate) fn consume(&mut self, n: usize) {
        let n = n.min(self.len());
        if n == 0 {
            return;
        }
        self.head = self.index(n) as u32;
        self.len -= n as u32;
        let is_empty = self.len == 0 && self.ahead == 0;
        if is_empty {
            self.head = 0;
        }
        if let Store::Drawn(drawn) = &mut self.store {
            drawn.phase = drawn.pattern.advanced(drawn.phase, n);
            if is_empty && !drawn.held.is_empty() {
                drawn.held = Box::default();
            }
        }
    }

    /// Moves readable bytes into `out` and returns how many: the shorter of the two.
    pub(crate) fn pop_slice(&mut self, out: &mut [u8]) -> usize {
        let [first, second] = self.slices(0, out.len());
        let (one, two) = (first.len(), second.len());
        out[..one].copy_from_slice(first);
        out[one..one + two].copy_from_slice(second);
        self.consume(one + two);
        one + two
    }

    /// Frees the memory if nothing is readable and nothing was written ahead; returns whether the
    /// ring has no memory afterwards.
    pub(crate) fn release(&mut self) -> bool {
        if self.len == 0 && self.ahead == 0 {
            self.clear();
        }
        self.capacity() == 0
    }

    /// Drops every byte, including those written ahead, and frees the memory.
    pub(crate) fn clear(&mut self) {
        let dropped = self.len();
        (self.head, self.len, self.ahead) = (0, 0, 0);
        match &mut self.store {
            Store::Memory(memory) => *memory = Box::default(),
            Store::Drawn(drawn) => {
                drawn.phase = drawn.pattern.advanced(drawn.phase, dropped);
                (drawn.capacity, drawn.held) = (0, Box::default());
            }
        }
    }

    /// True if the content goes on at the first byte of the memory.
    pub(crate) fn wraps(&self) -> bool {
        let used = self.len() + self.ahead();
        used > 0 && self.until_wrap(0) < used
    }

    /// Moves the content if it [wraps](Self::wraps), so that it does not.
    pub(crate) fn straighten(&mut self) {
        self.own();
        if self.wraps() {
            self.reallocate(self.len() + self.ahead());
        }
    }

    /// The readable bytes in order, as chunks of the ring's memory, which is not copied. The second
    /// is empty unless they [wrap](Self::wraps). What was written ahead is lost.
    pub(crate) fn into_chunks(mut self) -> [Bytes; 2] {
        self.own();
        let [first, second] = self.slices(0, self.len()).map(<[u8]>::len);
        let head = self.head as usize;
        let all = match self.store {
            Store::Memory(memory) => Bytes::from(memory),
            Store::Drawn(drawn) => Bytes::from(drawn.held),
        };
        [all.slice(head..head + first), all.slice(..second)]
    }

    /// Index in `buf` of the byte at `offset` from the first readable one. The capacity must not be
    /// zero.
    fn index(&self, offset: usize) -> usize {
        (self.head as usize + offset) & (self.capacity() - 1)
    }

    /// Bytes from `offset` to the end of the buffer. The capacity must not be zero.
    fn until_wrap(&self, offset: usize) -> usize {
        self.capacity() - self.index(offset)
    }

    /// True if [`shrink`](Self::shrink) would give back memory.
    #[must_use]
    pub(crate) fn has_spare(&self) -> bool {
        match self.len() + self.ahead() {
            0 => self.capacity() > 0,
            used => self.capacity() > MIN_CAPACITY && used <= self.capacity() / 4,
        }
    }

    /// Gives back memory if the content takes a quarter of it or less; all of it if there is no
    /// content. A ring that is shrunk whenever bytes have been consumed copies each byte a constant
    /// number of times.
    pub(crate) fn shrink(&mut self) {
        match self.len() + self.ahead() {
            0 => self.clear(),
            used if self.has_spare() => self.reallocate(used),
            _ => {}
        }
    }

    /// Moves the content to a buffer of at least `wanted` bytes, no less than the content and at
    /// most [`MAX_CAPACITY`]. One that grows at least doubles.
    #[cold]
    fn reallocate(&mut self, wanted: usize) {
        let used = self.len() + self.ahead();
        let capacity = wanted.next_power_of_two().max(MIN_CAPACITY);
        if let Store::Drawn(drawn) = &mut self.store {
            drawn.capacity = capacity;
            if drawn.held.is_empty() {
                self.head = 0;
                return;
            }
        }
        // The allocator returns large blocks zeroed, without touching their pages.
        let mut buf = vec![0; capacity].into_boxed_slice();
        if used > 0 {
            let memory = self.memory();
            let (at, first) = (self.head as usize, used.min(memory.len() - self.head as usize));
            buf[..first].copy_from_slice(&memory[at..at + first]);
            buf[first..used].copy_from_slice(&memory[..used - first]);
        }
        match &mut self.store {
            Store::Memory(memory) => *memory = buf,
            Store::Drawn(drawn) => drawn.held = buf,
        }
        self.head = 0;
    }
}

impl Drawn {
    /// True if it does not hold bytes, and `data` is what it draws at `start` bytes from the first
    /// readable one.
    fn draws(&self, start: usize, data: &[u8]) -> bool {
        self.held.is_empty() && self.pattern.matches(self.pattern.advanced(self.phase, start), data)
    }

    /// `len` bytes from `offset` on, as many as two slices can show.
    fn slices(&self, offset: usize, len: usize) -> [&[u8]; 2] {
        let phase = self.pattern.advanced(self.phase, offset);
        let first = self.pattern.at_phase(phase, len);
        let second = self.pattern.at_phase(self.pattern.advanced(phase, first.len()), len - first.len());
        [first, second]
    }
}

impl core::fmt::Debug for ByteRing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ByteRing")
            .field("len", &self.len)
            .field("ahead", &self.ahead)
            .field("capacity", &self.capacity())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{ByteRing, MAX_CAPACITY, MIN_CAPACITY};
    use crate::pattern::Pattern;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn read(ring: &ByteRing, offset: usize, len: usize) -> Vec<u8> {
        ring.slices(offset, len).concat()
    }

    /// Distinct bytes, so that a byte in the wrong place shows.
    fn pattern(start: usize, len: usize) -> Vec<u8> {
        (start..start + len).map(|i| (i % 251) as u8).collect()
    }

    #[test]
    fn idle_ring_is_small_and_has_no_memory() {
        assert!(size_of::<ByteRing>() <= 32);
        let mut ring = ByteRing::new();
        assert_eq!((ring.capacity(), ring.len()), (0, 0));
        assert_eq!(ring.slices(3, 5), [&[] as &[u8], &[]]);
        assert_eq!(ring.writable_slices(100).map(|s| s.len()), [0, 0]);
        ring.commit(10);
        ring.consume(10);
        assert_eq!(ring.len(), 0);
    }

    #[test]
    fn limit_is_exact_though_the_capacity_is_a_power_of_two() {
        let mut ring = ByteRing::new();
        assert_eq!(ring.push_slice(&pattern(0, 6000), 5001), 5001);
        assert_eq!(ring.capacity(), 8192);
        assert_eq!(ring.push_slice(&[1], 5001), 0);
        assert_eq!(ring.writable_slices(5001).map(|s| s.len()), [0, 0]);
        assert_eq!(read(&ring, 0, 9999), pattern(0, 5001));
        assert_eq!(ring.push_slice(&[1], 100), 0, "a limit below the content refuses and drops nothing");
        assert_eq!(ring.len(), 5001);
    }

    #[test]
    fn data_written_ahead_survives_growth_and_reading() {
        let mut ring = ByteRing::new();
        ring.push_slice(&pattern(0, 100), 1 << 20);
        assert_eq!(ring.write_at(50, &pattern(150, 500), 1 << 20), 500);
        ring.consume(100);
        assert!(ring.len() == 0 && ring.capacity() == 1024);
        assert!(!ring.release(), "bytes wait past the hole");
        assert_eq!(ring.write_at(5000, &pattern(5100, 10), 1 << 20), 10);
        assert_eq!(ring.capacity(), 8192);
        assert_eq!(ring.write_at(0, &pattern(100, 50), 1 << 20), 50);
        ring.commit(550);
        assert_eq!(read(&ring, 0, 550), pattern(100, 550));
        assert_eq!(ring.ahead(), 5010 - 550);
    }

    #[test]
    fn empty_ring_restarts_at_its_first_byte() {
        let mut ring = ByteRing::new();
        ring.reserve_total(65536, 65536);
        for round in 0..1000 {
            ring.push_slice(&pattern(round, 1448), 65536);
            assert_eq!(ring.slices(0, 1448)[1].len(), 0, "never wraps when the reader keeps up");
            ring.consume(1448);
        }
        assert!(ring.release());
        assert_eq!(ring.capacity(), 0);
    }

    #[test]
    fn a_shrunk_ring_keeps_its_content_and_less_than_four_times_its_memory() {
        let mut ring = ByteRing::new();
        ring.push_slice(&pattern(0, 60_000), 1 << 20);
        ring.consume(40_000);
        // It wraps, and has bytes ahead.
        ring.push_slice(&pattern(60_000, 20_000), 1 << 20);
        ring.write_at(10, &pattern(80_010, 90), 1 << 20);
        let (mut position, mut moves) = (40_000, 0);
        while ring.len() > 0 {
            let before = ring.capacity();
            ring.shrink();
            moves += usize::from(ring.capacity() != before);
            let used = ring.len() + ring.ahead();
            assert!(ring.capacity() == MIN_CAPACITY || ring.capacity() < 4 * used, "{ring:?}");
            assert_eq!(read(&ring, 0, 100), pattern(position, 100.min(ring.len())));
            let step = 100.min(ring.len());
            ring.consume(step);
            position += step;
        }
        assert_eq!((moves, ring.ahead()), (4, 100), "65,536 to 16,384, 4,096, 1,024 and 256");
        ring.commit(100);
        assert_eq!(read(&ring, 10, 90), pattern(80_010, 90));
        ring.consume(100);
        ring.shrink();
        assert_eq!(ring.capacity(), 0);
    }

    #[test]
    fn the_content_becomes_chunks_without_a_copy() {
        let mut ring = ByteRing::new();
        ring.push_slice(&pattern(0, 1_000), 1 << 20);
        ring.consume(600);
        ring.push_slice(&pattern(1_000, 500), 1 << 20);
        let places = ring.slices(0, 900).map(|slice| (slice.as_ptr(), slice.len()));
        let chunks = ring.into_chunks();
        assert_eq!(chunks.each_ref().map(|chunk| (chunk.as_ptr(), chunk.len())), places);
        assert_eq!(chunks.concat(), pattern(600, 900));

        let mut ring = ByteRing::new();
        ring.push_slice(&pattern(0, 1_000), 1 << 20);
        ring.consume(600);
        ring.push_slice(&pattern(1_000, 500), 1 << 20);
        ring.straighten();
        let [whole, rest] = ring.into_chunks();
        assert_eq!((&whole[..], rest.len()), (&pattern(600, 900)[..], 0));
        assert_eq!(ByteRing::new().into_chunks().concat(), []);
    }

    #[test]
    fn growth_is_amortised() {
        let mut ring = ByteRing::new();
        let mut capacities = std::vec![];
        for i in 0..4096 {
            ring.push_slice(&pattern(i * 1448, 1448), 16 << 20);
            if capacities.last() != Some(&ring.capacity()) {
                capacities.push(ring.capacity());
            }
        }
        assert!(capacities.windows(2).all(|pair| pair[1] >= 2 * pair[0]), "{capacities:?}");
        assert_eq!(read(&ring, 0, usize::MAX), pattern(0, 4096 * 1448));
    }

    #[test]
    fn hostile_offsets_are_refused() {
        let mut ring = ByteRing::new();
        assert_eq!(ring.write_at(usize::MAX, &[1, 2], usize::MAX), 0);
        assert_eq!(ring.write_at(MAX_CAPACITY, &[1, 2], usize::MAX), 0);
        assert_eq!(ring.write_at(4096, &[1, 2], 4097), 1, "cut at the limit");
        assert_eq!(ring.capacity(), 8192);
    }

    /// Two rings with the same calls, of which one is drawn from the pattern of the test's bytes.
    struct Pair {
        ring: ByteRing,
        drawn: ByteRing,
        /// The position of the first readable byte in the stream.
        position: usize,
    }

    const PERIOD: usize = 251;

    impl Pair {
        fn new(read_whole: bool) -> Self {
            let table: &'static [u8] = Vec::leak(pattern(0, 2 * PERIOD));
            let mut drawn = ByteRing::new();
            drawn.draw(Pattern::new(table).unwrap(), read_whole);
            Self { ring: ByteRing::new(), drawn, position: 0 }
        }

        fn both<T: PartialEq + core::fmt::Debug>(&mut self, call: impl Fn(&mut ByteRing) -> T) -> T {
            let result = call(&mut self.ring);
            assert_eq!(result, call(&mut self.drawn));
            result
        }

        /// Writes the stream's own bytes, or others.
        fn write_at(&mut self, offset: usize, n: usize, limit: usize, foreign: bool) -> usize {
            let mut data = pattern(self.position + self.ring.len() + offset, n);
            if let Some(last) = data.last_mut().filter(|_| foreign) {
                *last ^= 1;
            }
            self.both(|ring| ring.write_at(offset, &data, limit))
        }

        fn check(&mut self, read_whole: bool) {
            self.both(|ring| (ring.len(), ring.ahead(), ring.capacity(), ring.head, ring.has_spare()));
            let packet = if read_whole { usize::MAX } else { 2 * PERIOD };
            for offset in [0, 100, self.ring.len() / 2] {
                self.both(|ring| read(ring, offset, packet));
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Push(usize, usize),
        WriteInPlace(usize, usize),
        WriteAt(usize, usize, usize),
        FillHole,
        Consume(usize),
        Pop(usize),
        Read(usize, usize),
        Reserve(usize, usize),
        Release,
    }

    fn op() -> impl Strategy<Value = Op> {
        let (size, limit) = (0usize..3000, 0usize..20_000);
        prop_oneof![
            (size.clone(), limit.clone()).prop_map(|(n, l)| Op::Push(n, l)),
            (size.clone(), limit.clone()).prop_map(|(n, l)| Op::WriteInPlace(n, l)),
            (0usize..6000, size.clone(), limit.clone()).prop_map(|(o, n, l)| Op::WriteAt(o, n, l)),
            Just(Op::FillHole),
            (0usize..5000).prop_map(Op::Consume),
            size.clone().prop_map(Op::Pop),
            (size.clone(), size).prop_map(|(o, n)| Op::Read(o, n)),
            (limit.clone(), limit).prop_map(|(n, l)| Op::Reserve(n, l)),
            Just(Op::Release),
        ]
    }

    /// The model: readable bytes, and what was written past them (`None`: a hole).
    #[derive(Default)]
    struct Model {
        readable: Vec<u8>,
        ahead: Vec<Option<u8>>,
    }

    impl Model {
        fn write_at(&mut self, offset: usize, data: &[u8]) {
            if data.is_empty() {
                return;
            }
            let end = offset + data.len();
            if self.ahead.len() < end {
                self.ahead.resize(end, None);
            }
            for (slot, byte) in self.ahead[offset..].iter_mut().zip(data) {
                *slot = Some(*byte);
            }
        }

        fn commit(&mut self, n: usize) {
            self.readable.extend(self.ahead.drain(..n).map(|byte| byte.expect("the test commits no holes")));
        }

        fn room(&self, offset: usize, limit: usize) -> usize {
            limit.saturating_sub(self.readable.len() + offset)
        }
    }

    proptest! {
        /// A drawn ring is like any other, until it is given foreign bytes and after.
        #[test]
        fn a_drawn_ring_shows_what_it_was_given(
            ops in prop::collection::vec((op(), 0u8..40), 1..80),
            read_whole: bool,
        ) {
            let mut pair = Pair::new(read_whole);
            for (op, chance) in ops {
                let foreign = chance == 0;
                match op {
                    Op::Push(n, limit) => {
                        let n = pair.write_at(0, n, limit, foreign);
                        // A hole has unspecified bytes, so what is ahead has none here.
                        pair.both(|ring| ring.commit(n));
                    }
                    Op::WriteAt(offset, n, limit) => {
                        let offset = offset.min(pair.ring.ahead());
                        pair.write_at(offset, n, limit, foreign);
                    }
                    Op::FillHole => {
                        let n = pair.ring.ahead();
                        pair.both(|ring| ring.commit(n));
                    }
                    Op::WriteInPlace(n, limit) if foreign => {
                        let stored = pair.both(|ring| {
                            ring.reserve_total(ring.len() + n, limit);
                            ring.writable_slices(limit).map(|slice| { slice.fill(7); slice.len() })
                        }).iter().sum::<usize>().min(n);
                        pair.both(|ring| ring.commit(stored));
                    }
                    Op::WriteInPlace(..) => {
                        pair.drawn.hold();
                        pair.both(|ring| ring.slices_ahead(0, usize::MAX).concat());
                        pair.both(ByteRing::shrink);
                    }
                    Op::Consume(n) => {
                        pair.position += n.min(pair.ring.len());
                        pair.both(|ring| ring.consume(n));
                    }
                    Op::Pop(n) | Op::Read(_, n) => {
                        let n = if read_whole { n } else { n.min(2 * PERIOD) };
                        let popped = pair.both(|ring| {
                            let mut out = std::vec![0; n];
                            let n = ring.pop_slice(&mut out);
                            out.truncate(n);
                            out
                        });
                        pair.position += popped.len();
                    }
                    Op::Reserve(total, limit) => {
                        pair.both(|ring| ring.reserve_total(total, limit));
                    }
                    Op::Release => {
                        pair.both(ByteRing::release);
                    }
                }
                pair.check(read_whole);
            }
        }

        #[test]
        fn behaves_like_a_queue_with_holes(ops in prop::collection::vec(op(), 1..80)) {
            let (mut ring, mut model, mut made) = (ByteRing::new(), Model::default(), 0);
            for op in ops {
                match op {
                    Op::Push(n, limit) => {
                        let data = pattern(made, n);
                        let stored = ring.push_slice(&data, limit);
                        prop_assert_eq!(stored, n.min(model.room(0, limit)));
                        model.write_at(0, &data[..stored]);
                        model.commit(stored);
                        made += n;
                    }
                    Op::WriteInPlace(n, limit) => {
                        let fits = ring.reserve_total(ring.len() + n, limit);
                        prop_assert!(fits <= limit && fits >= limit.min(ring.len() + n));
                        let data = pattern(made, n);
                        let mut stored = 0;
                        for slice in ring.writable_slices(limit) {
                            let count = slice.len().min(n - stored);
                            slice[..count].copy_from_slice(&data[stored..stored + count]);
                            stored += count;
                        }
                        prop_assert_eq!(stored, n.min(model.room(0, limit)));
                        ring.commit(stored);
                        model.write_at(0, &data[..stored]);
                        model.commit(stored);
                        made += n;
                    }
                    Op::WriteAt(offset, n, limit) => {
                        let data = pattern(made, n);
                        let stored = ring.write_at(offset, &data, limit);
                        prop_assert_eq!(stored, n.min(model.room(offset, limit)));
                        model.write_at(offset, &data[..stored]);
                        made += n;
                    }
                    Op::FillHole => {
                        let n = model.ahead.iter().take_while(|byte| byte.is_some()).count();
                        ring.commit(n);
                        model.commit(n);
                    }
                    Op::Consume(n) => {
                        ring.consume(n);
                        model.readable.drain(..n.min(model.readable.len()));
                    }
                    Op::Pop(n) => {
                        let mut out = std::vec![0; n];
                        let popped = ring.pop_slice(&mut out);
                        let expected: Vec<u8> = model.readable.drain(..n.min(model.readable.len())).collect();
                        prop_assert_eq!(&out[..popped], &expected[..]);
                    }
                    Op::Read(offset, n) => {
                        let expected: Vec<u8> = model.readable.iter().copied().skip(offset).take(n).collect();
                        prop_assert_eq!(read(&ring, offset, n), expected);
                    }
                    Op::Reserve(total, limit) => {
                        let before = ring.capacity();
                        ring.reserve_total(total, limit);
                        prop_assert!(ring.capacity() == before || ring.capacity() >= 2 * before);
                    }
                    Op::Release => {
                        let idle = model.readable.is_empty() && model.ahead.is_empty();
                        let without = idle || ring.capacity() == 0;
                        prop_assert_eq!(ring.release(), without);
                    }
                }
                prop_assert_eq!(ring.len(), model.readable.len());
                prop_assert_eq!(ring.ahead(), model.ahead.len());
                prop_assert!(ring.capacity() == 0 || ring.capacity().is_power_of_two());
                prop_assert!(ring.capacity() < 65536);
            }
            prop_assert_eq!(read(&ring, 0, usize::MAX), model.readable);
        }
    }
}
