//! The send buffer: the stream's bytes from SND.UNA on, and the FIN behind them.
//!
//! ```text
//!          SND.UNA               SND.NXT             end
//!   ──────────┬─────────────────────┬─────────────────┬─────┬──────
//!    released │ sent, outstanding   │ never sent      │ FIN │
//!   ──────────┴─────────────────────┴─────────────────┴─────┴──────
//! ```

use crate::ring::ByteRing;
use crate::seq::SeqNum;

/// Bytes that may still have to be sent.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    ring: ByteRing,
    /// Sequence number of the first byte held.
    start: SeqNum,
    /// A FIN follows the last byte.
    fin: bool,
}

impl SendBuffer {
    /// An empty buffer whose first byte will be `start`.
    pub(crate) fn new(start: SeqNum) -> Self {
        Self { ring: ByteRing::new(), start, fin: false }
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// One past the last byte written; the FIN's own number.
    pub(crate) fn end(&self) -> SeqNum {
        self.start + self.ring.len() as u32
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

    pub(crate) fn write(&mut self, data: &[u8], limit: usize) -> usize {
        if self.fin { 0 } else { self.ring.push_slice(data, limit) }
    }

    /// Free memory for at most `max` bytes, in place; grown as far as `limit` allows.
    pub(crate) fn writable_slices(&mut self, max: usize, limit: usize) -> [&mut [u8]; 2] {
        if self.fin {
            return [&mut [], &mut []];
        }
        let total = self.ring.len().saturating_add(max);
        self.ring.reserve_total(total, limit);
        self.ring.writable_slices(limit.min(total))
    }

    pub(crate) fn commit(&mut self, n: usize) {
        self.ring.commit(n);
    }

    pub(crate) fn space(&self, limit: usize) -> usize {
        if self.fin { 0 } else { limit.saturating_sub(self.ring.len()) }
    }

    /// Stream bytes `seq .. seq + len`, as far as they are in the buffer.
    pub(crate) fn payload(&self, seq: SeqNum, len: u32) -> [&[u8]; 2] {
        self.ring.slices(seq.distance_from(self.start) as usize, len as usize)
    }

    /// Everything before `una` is acknowledged. Returns the bytes freed.
    pub(crate) fn release(&mut self, una: SeqNum) -> u32 {
        let bytes = una.saturating_distance_from(self.start).min(self.ring.len() as u32);
        self.ring.consume(bytes as usize);
        self.start += bytes;
        bytes
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        self.ring.capacity()
    }

    /// True if memory is allocated.
    pub(crate) fn has_memory(&self) -> bool {
        self.memory() > 0
    }

    /// True if [`shrink`](Self::shrink) would free memory.
    pub(crate) fn has_spare(&self) -> bool {
        self.ring.has_spare()
    }

    /// Frees memory that the bytes held do not need.
    pub(crate) fn shrink(&mut self) {
        self.ring.shrink();
    }

    /// Frees the memory if it is empty.
    pub(crate) fn trim(&mut self) {
        self.ring.release();
    }

    /// Drops every byte.
    pub(crate) fn discard(&mut self) {
        self.ring.clear();
    }
}
