//! A send buffer of chunks: the application's memory, shared instead of copied, and blocks of the
//! buffer's own between them.
//!
//! ```text
//!            SND.UNA
//!   ┌──────────┼───────────┬──────┬─────────────────────┬───────────┐
//!   │ shared   │           │ own  │ shared              │ own  spare│
//!   └──────────┼───────────┴──────┴─────────────────────┴───────────┘
//! ```
//!
//! A part stays whole until its last byte is acknowledged, because nobody can give back a part of
//! its memory; so it is counted whole until then. A part that was shared grows if the application
//! goes on with the same chunk, so that a chunk that is taken in several steps is one part.
//!
//! A packet has two slices of payload at most. Of a range that lies in more parts,
//! [`gather`](Chunks::gather) copies as little as makes it two. With chunks of [`MIN_CHUNK`] and
//! more, and nothing between them, there is nothing to copy: no packet can contain one and more on
//! both sides.

use crate::seq::SeqNum;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::{Buf, Bytes};

/// The smallest chunk that is shared, in bytes: no packet holds more. Smaller ones are copied,
/// which costs less than packets of many slices.
pub(in crate::snd) const MIN_CHUNK: usize = 1 << 16;

/// What a block of the buffer's own holds at least and, if less than that is written at a time, at
/// most, in bytes.
const MIN_BLOCK: usize = 4 << 10;
const MAX_BLOCK: usize = 1 << 16;

/// A part of a chunk that is as long as this is not added to.
const MAX_PART: u32 = 256 << 20;

/// The stream's bytes in parts. See the [module documentation](self).
#[derive(Debug)]
pub(in crate::snd) struct Chunks {
    parts: VecDeque<Part>,
    /// One past the last byte.
    end: SeqNum,
    /// Bytes that the parts hold.
    held: usize,
    /// Where records end, in order: no segment has bytes on both sides.
    records: VecDeque<SeqNum>,
}

/// Bytes of the stream that are contiguous in memory.
#[derive(Debug)]
struct Part {
    start: SeqNum,
    len: u32,
    /// Bytes of memory that it keeps from being freed.
    held: u32,
    data: Data,
}

/// Memory of at least a part's length.
#[derive(Debug)]
enum Data {
    /// A chunk of the application's, with what follows in it.
    Shared(Bytes),
    /// A copy. What lies behind the part's length is spare.
    Own(Vec<u8>),
}

impl Part {
    fn end(&self) -> SeqNum {
        self.start + self.len
    }

    fn bytes(&self) -> &[u8] {
        let data: &[u8] = match &self.data {
            Data::Shared(bytes) => bytes,
            Data::Own(bytes) => bytes,
        };
        data.get(..self.len as usize).unwrap_or(data)
    }

    /// Bytes `from .. to`, as far as they are in it.
    fn slice(&self, from: SeqNum, to: SeqNum) -> &[u8] {
        let (skip, end) =
            (from.saturating_distance_from(self.start), to.saturating_distance_from(self.start));
        let range = skip as usize..end.min(self.len) as usize;
        self.bytes().get(range).unwrap_or_default()
    }

    /// Drops the first `n` bytes.
    fn advance(&mut self, n: u32) {
        let n = n.min(self.len);
        let mut bytes = match core::mem::replace(&mut self.data, Data::Shared(Bytes::new())) {
            Data::Shared(bytes) => bytes,
            Data::Own(bytes) => bytes.into(),
        };
        bytes.advance(n as usize);
        self.start += n;
        self.len -= n;
        self.data = Data::Shared(bytes);
    }
}

impl Chunks {
    /// Without any bytes; the first one will be `start`.
    pub(in crate::snd) const fn new(start: SeqNum) -> Self {
        Self { parts: VecDeque::new(), end: start, held: 0, records: VecDeque::new() }
    }

    /// One past the last byte.
    pub(in crate::snd) const fn end(&self) -> SeqNum {
        self.end
    }

    /// True if no part is left.
    pub(in crate::snd) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Bytes that the parts hold: what the application shared counts as well.
    pub(in crate::snd) const fn held(&self) -> usize {
        self.held
    }

    /// Bytes of memory beside those.
    pub(in crate::snd) fn overhead(&self) -> usize {
        size_of::<Self>()
            + self.parts.capacity() * size_of::<Part>()
            + self.records.capacity() * size_of::<SeqNum>()
    }

    /// A record ends with the last byte.
    pub(in crate::snd) fn end_record(&mut self) {
        if self.records.back() != Some(&self.end) {
            self.records.push_back(self.end);
        }
    }

    /// The end of the record that `from` is in, if more bytes follow it.
    pub(in crate::snd) fn record_end(&self, from: SeqNum) -> Option<SeqNum> {
        self.records.iter().copied().find(|end| end.gt(from)).filter(|end| end.lt(self.end))
    }

    fn push(&mut self, data: Data, len: u32, held: u32) {
        self.parts.push_back(Part { start: self.end, len, held, data });
        self.held += held as usize;
        self.end += len;
    }

    /// Appends memory of the buffer's own that has become a chunk.
    pub(in crate::snd) fn push_own(&mut self, bytes: Bytes, held: usize) {
        let len = bytes.len() as u32;
        self.push(Data::Shared(bytes), len, held as u32);
    }

    /// Appends the first `n` bytes of `chunk` and drops them there; shares them if it is large
    /// enough.
    pub(in crate::snd) fn push_chunk(&mut self, chunk: &mut Bytes, n: usize) {
        let n = n.min(chunk.len());
        if n == 0 {
            return;
        }
        if let Some(Part { len, held, data: Data::Shared(bytes), .. }) = self.parts.back_mut()
            && let Some(rest) = bytes.get(*len as usize..)
            && rest.as_ptr() == chunk.as_ptr()
            && rest.len() >= n
            && *len < MAX_PART
        {
            // It is the same memory, which is shared and so cannot have changed.
            *len += n as u32;
            let more = (*len).saturating_sub(*held);
            *held += more;
            self.held += more as usize;
            self.end += n as u32;
            chunk.advance(n);
        } else if chunk.len() < MIN_CHUNK {
            self.write(&chunk[..n]);
            chunk.advance(n);
        } else {
            let rest = chunk.slice(n..);
            let bytes = core::mem::replace(chunk, rest);
            self.push(Data::Shared(bytes), n as u32, n as u32);
        }
    }

    /// Appends a copy of `data`.
    pub(in crate::snd) fn write(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let wanted = data.len();
            let Some((len, own)) = self.tail(wanted) else { return };
            own.truncate(*len as usize);
            let n = wanted.min(own.capacity() - own.len());
            own.extend_from_slice(&data[..n]);
            *len += n as u32;
            self.end += n as u32;
            data = &data[n..];
        }
    }

    /// Up to `max` bytes of spare memory of the last block, for a writer that fills it in place.
    pub(in crate::snd) fn writable(&mut self, max: usize) -> &mut [u8] {
        if max == 0 {
            return &mut [];
        }
        let Some((len, own)) = self.tail(max) else { return &mut [] };
        let from = *len as usize;
        let to = own.capacity().min(from + max);
        own.resize(own.len().max(to), 0);
        own.get_mut(from..to).unwrap_or_default()
    }

    /// The first `n` bytes of what was [writable](Self::writable) are filled.
    pub(in crate::snd) fn commit(&mut self, n: usize) {
        if let Some(Part { len, data: Data::Own(own), .. }) = self.parts.back_mut() {
            let n = n.min(own.len() - *len as usize) as u32;
            *len += n;
            self.end += n;
        }
    }

    /// The last block, if it has spare memory, or a new one, with its length. `wanted`: bytes that
    /// will be written.
    fn tail(&mut self, wanted: usize) -> Option<(&mut u32, &mut Vec<u8>)> {
        let has_spare = matches!(self.parts.back(),
            Some(Part { len, data: Data::Own(own), .. }) if own.capacity() > *len as usize);
        if !has_spare {
            let own = Vec::with_capacity(wanted.clamp(MIN_BLOCK, MAX_BLOCK));
            let held = own.capacity() as u32;
            self.push(Data::Own(own), 0, held);
        }
        match self.parts.back_mut() {
            Some(Part { len, data: Data::Own(own), .. }) => Some((len, own)),
            _ => None,
        }
    }

    /// The index of the part that contains `seq`, or follows it.
    fn find(&self, seq: SeqNum) -> usize {
        self.parts.partition_point(|part| part.end().le(seq))
    }

    /// Stream bytes `seq .. seq + len`, as far as two slices contain them.
    pub(in crate::snd) fn slices(&self, seq: SeqNum, len: u32) -> [&[u8]; 2] {
        let at = self.find(seq);
        let slice = |at| self.parts.get(at).map_or(&[][..], |part: &Part| part.slice(seq, seq + len));
        [slice(at), slice(at + 1)]
    }

    /// Copies as little as makes `seq .. seq + len` two [slices](Self::slices).
    pub(in crate::snd) fn gather(&mut self, seq: SeqNum, len: u32) {
        let end = self.end.min(seq + len);
        if !seq.lt(end) {
            return;
        }
        let (first, last) = (self.find(seq), self.find(end - 1));
        if last > first + 1 {
            self.gather_parts(seq, end, first, last);
        }
    }

    #[cold]
    fn gather_parts(&mut self, seq: SeqNum, end: SeqNum, first: usize, last: usize) {
        let (Some(front), Some(back)) = (self.parts.get(first), self.parts.get(last)) else { return };
        // Either all but the last slice become one, or all but the first.
        let (from, to) = if back.start.distance_from(seq) <= end.distance_from(front.end()) {
            (seq, back.start)
        } else {
            (front.end(), end)
        };
        let mut own = Vec::with_capacity(to.distance_from(from) as usize);
        for part in self.parts.range(first..=last) {
            own.extend_from_slice(part.slice(from, to));
        }
        let (len, held) = (own.len() as u32, own.capacity() as u32);
        let copy = Part { start: from, len, held, data: Data::Own(own) };
        // The part that `from` lies in ends there, and the one that `to` lies in begins there.
        let (mut begin, mut until) = (self.find(from), self.find(to));
        if let Some(part) = self.parts.get_mut(begin)
            && part.start.lt(from)
        {
            part.len = from.distance_from(part.start);
            begin += 1;
        }
        if let Some(part) = self.parts.get_mut(until)
            && part.start.lt(to)
        {
            part.advance(to.distance_from(part.start));
        }
        until = until.max(begin);
        let freed: usize = self.parts.drain(begin..until).map(|part| part.held as usize).sum();
        self.parts.insert(begin, copy);
        self.held = self.held - freed + held as usize;
    }

    /// Everything before `una` is acknowledged.
    pub(in crate::snd) fn release(&mut self, una: SeqNum) {
        while let Some(part) = self.parts.front()
            && part.end().le(una)
        {
            self.held -= part.held as usize;
            self.parts.pop_front();
        }
        while self.records.front().is_some_and(|end| end.le(una)) {
            self.records.pop_front();
        }
    }

    /// True if the first part holds more than four times of what is not acknowledged of it; then
    /// [`shrink`](Self::shrink) frees memory.
    pub(in crate::snd) fn has_spare(&self, una: SeqNum) -> bool {
        self.parts.front().is_some_and(|part| {
            let left = part.end().saturating_distance_from(una);
            part.held as usize > MIN_BLOCK && left <= part.held / 4
        })
    }

    /// Copies what is left of a part that [holds much more](Self::has_spare).
    pub(in crate::snd) fn shrink(&mut self, una: SeqNum) {
        if !self.has_spare(una) {
            return;
        }
        let Some(part) = self.parts.front_mut() else { return };
        let left = part.slice(una, part.end());
        let mut own = Vec::with_capacity(left.len().max(1));
        own.extend_from_slice(left);
        let held = own.capacity() as u32;
        self.held = self.held - part.held as usize + held as usize;
        *part =
            Part { start: part.end() - own.len() as u32, len: own.len() as u32, held, data: Data::Own(own) };
    }
}

#[cfg(test)]
impl Chunks {
    /// Fails if parts do not follow one another, or the account is wrong.
    pub(in crate::snd) fn check(&self, una: SeqNum) {
        assert_eq!(self.held, self.parts.iter().map(|part| part.held as usize).sum::<usize>());
        let mut at = None;
        for part in &self.parts {
            assert!(at.is_none_or(|at| at == part.start), "{self:?}");
            assert_eq!(part.bytes().len(), part.len as usize, "its memory is there");
            at = Some(part.end());
        }
        assert!(at.is_none_or(|at| at == self.end));
        assert!(self.parts.front().is_none_or(|part| part.start.le(una)));
    }
}
