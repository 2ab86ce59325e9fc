//! Out-of-order data that lies far ahead, stored apart from the receive buffer.
//!
//! The receive buffer is one contiguous ring, so a byte stored ahead of the readable part costs the
//! whole distance. That is right for the usual hole, which is small compared with what waits behind
//! it, and ruinous for a byte at the far end of the window. Sparse data therefore waits in pieces,
//! which cost what they hold, and moves to the ring once the hole before it is filled.
//!
//! ```text
//!          RCV.NXT
//!   ──────────┬───────┬─────┬──────────────────────┬──────┬───────────────┬───┬─────►
//!     readable│ hole  │ahead│        hole          │piece │     hole      │ p │
//!   ──────────┴───────┴─────┴──────────────────────┴──────┴───────────────┴───┴─────
//!   └──────── ring ─────────┘                      └── each its own memory ───┘
//! ```
//!
//! Pieces are disjoint and in order of sequence. Data that continues a piece is appended to it, so
//! that a stream behind a large hole does not allocate for each segment.

use crate::seq::SeqNum;
use crate::wire::Payload;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A piece that is as long as this is not appended to: growing it copies.
const MAX_PIECE: usize = 64 << 10;

/// What a piece takes beside its bytes, with what the allocator adds.
pub(super) const PIECE: usize = size_of::<Piece>() + 32;

/// A contiguous block of bytes.
#[derive(Debug)]
struct Piece {
    start: SeqNum,
    data: Vec<u8>,
}

impl Piece {
    fn end(&self) -> SeqNum {
        self.start + self.data.len() as u32
    }
}

/// Blocks of bytes by sequence number. See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Pieces {
    pieces: VecDeque<Piece>,
    /// Bytes allocated by the pieces themselves.
    allocated: usize,
}

impl Pieces {
    /// Without memory.
    pub(super) const fn new() -> Self {
        Self { pieces: VecDeque::new(), allocated: 0 }
    }

    /// Number of pieces.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// One past the last byte; `None` if there is none.
    pub(super) fn end(&self) -> Option<SeqNum> {
        self.pieces.back().map(Piece::end)
    }

    /// Bytes allocated.
    pub(super) fn allocated(&self) -> usize {
        self.allocated + self.pieces.capacity() * size_of::<Piece>()
    }

    /// Stores what of `payload`, whose first byte is `start`, is not stored yet.
    pub(super) fn insert(&mut self, start: SeqNum, payload: &Payload<'_>) {
        let mut at = start;
        for slice in payload.slices() {
            self.insert_slice(at, slice);
            at += slice.len() as u32;
        }
    }

    fn insert_slice(&mut self, mut start: SeqNum, mut data: &[u8]) {
        let mut next = self.pieces.partition_point(|piece| piece.end().le(start));
        while !data.is_empty() {
            let Some(piece) = self.pieces.get(next) else {
                self.insert_gap(next, start, data);
                return;
            };
            // Before the piece, and in it.
            let gap = data.len().min(piece.start.saturating_distance_from(start) as usize);
            let end = piece.end();
            if gap > 0 {
                next += self.insert_gap(next, start, &data[..gap]);
                (start, data) = (start + gap as u32, &data[gap..]);
            }
            let held = data.len().min(end.saturating_distance_from(start) as usize);
            (start, data) = (start + held as u32, &data[held..]);
            next += 1;
        }
    }

    /// Stores `data`, none of which is stored yet, before the piece `at`. Returns the number of
    /// pieces added before that.
    fn insert_gap(&mut self, at: usize, start: SeqNum, data: &[u8]) -> usize {
        if let Some(before) = at.checked_sub(1).and_then(|before| self.pieces.get_mut(before))
            && before.end() == start
            && before.data.len() < MAX_PIECE
        {
            let capacity = before.data.capacity();
            before.data.extend_from_slice(data);
            self.allocated += before.data.capacity() - capacity;
            return 0;
        }
        let data = data.to_vec();
        self.allocated += data.capacity();
        self.pieces.insert(at, Piece { start, data });
        1
    }

    /// Takes the first piece if it starts before `end`.
    pub(super) fn take_before(&mut self, end: SeqNum) -> Option<(SeqNum, Vec<u8>)> {
        self.pieces.front().filter(|piece| piece.start.lt(end))?;
        let piece = self.pieces.pop_front()?;
        self.allocated -= piece.data.capacity();
        if self.pieces.is_empty() {
            self.pieces = VecDeque::new();
        }
        Some((piece.start, piece.data))
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PIECE, Piece, Pieces};
    use crate::seq::SeqNum;
    use crate::wire::Payload;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    /// Just before the numbers wrap.
    const BASE: SeqNum = SeqNum(u32::MAX - 5_000);

    fn insert(pieces: &mut Pieces, start: u32, data: &[u8]) {
        let (first, second) = data.split_at(data.len() / 3);
        pieces.insert(BASE + start, &Payload::from([first, second]));
    }

    fn check(pieces: &Pieces) {
        let allocated: usize = pieces.pieces.iter().map(|piece| piece.data.capacity()).sum();
        assert_eq!(pieces.allocated, allocated);
        let held: usize = pieces.pieces.iter().map(|piece| piece.data.len()).sum();
        // A vector starts with 8 bytes.
        assert!(allocated <= 2 * held + 8 * pieces.len(), "{allocated} for {held}");
        let ordered = |pair: (&Piece, &Piece)| pair.0.end().le(pair.1.start);
        assert!(pieces.pieces.iter().zip(pieces.pieces.iter().skip(1)).all(ordered));
    }

    #[test]
    fn a_byte_costs_little_and_a_stream_is_one_piece() {
        let mut pieces = Pieces::new();
        insert(&mut pieces, 60_000, &[1]);
        assert!(pieces.allocated() < 256, "{}", pieces.allocated());
        for segment in 0..100 {
            insert(&mut pieces, segment * 500, &[2; 500]);
        }
        check(&pieces);
        assert_eq!(pieces.len(), 2);
        for segment in 200..400 {
            insert(&mut pieces, segment * 500, &[2; 500]);
        }
        assert_eq!(pieces.len(), 2 + 100_000_usize.div_ceil(MAX_PIECE + 500));
        check(&pieces);
    }

    proptest! {
        /// The bytes come out as they came in, the first of those that came twice, up to any point.
        #[test]
        fn what_is_stored_comes_out(
            inserts in prop::collection::vec((0u32..8_000, 1usize..700, any::<u8>()), 1..60),
            cut in 0u32..9_000,
        ) {
            let mut pieces = Pieces::new();
            let mut model: Vec<Option<u8>> = vec![None; 9_000];
            for (start, len, byte) in inserts {
                insert(&mut pieces, start, &vec![byte; len]);
                for slot in &mut model[start as usize..start as usize + len] {
                    slot.get_or_insert(byte);
                }
                check(&pieces);
            }
            let mut taken: Vec<Option<u8>> = vec![None; 9_000];
            let mut reach = 0;
            for end in [cut, 9_000] {
                while let Some((start, data)) = pieces.take_before(BASE + end) {
                    let at = start.distance_from(BASE) as usize;
                    prop_assert!(at >= reach && at < end as usize);
                    reach = at + data.len();
                    for (slot, byte) in taken[at..reach].iter_mut().zip(data) {
                        *slot = Some(byte);
                    }
                }
            }
            prop_assert_eq!(taken, model);
            prop_assert_eq!((pieces.len(), pieces.allocated()), (0, 0));
        }
    }
}
