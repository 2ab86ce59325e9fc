//! Pieces: what is kept of a packet or of a segment in the queue.
//!
//! A piece is the first octets and, if a checksum is to be completed, the ones' complement sum of
//! those that are cut off. So the payload is read where it is, and not copied.

use ackline_tcp_core::wire::checksum::Accumulator;

/// Octets of the sum.
pub(super) const SUM: usize = 2;

/// Appends the first `room` octets of `slices`, which are one string, and their sum if `sums` and
/// more follow.
pub(super) fn keep<'a>(
    bytes: &mut Vec<u8>,
    slices: impl IntoIterator<Item = &'a [u8]>,
    mut room: usize,
    sums: bool,
) {
    let (mut rest, mut is_cut) = (Accumulator::new(), false);
    for slice in slices {
        let (kept, cut) = slice.split_at(room.min(slice.len()));
        bytes.extend_from_slice(kept);
        room -= kept.len();
        is_cut |= !cut.is_empty();
        if sums {
            rest.add(cut);
        }
    }
    if sums && is_cut {
        bytes.extend_from_slice(&rest.sum().to_be_bytes());
    }
}

/// Takes the piece of `length` octets that was [kept](keep): its first octets, and the sum of the
/// others.
pub(super) fn take<'a>(
    bytes: &mut &'a mut [u8],
    length: usize,
    room: usize,
    sums: bool,
) -> (&'a mut [u8], u16) {
    let kept = bytes.split_off_mut(..length.min(room)).unwrap_or_default();
    let sum = if sums && kept.len() < length { bytes.split_off_mut(..SUM) } else { None };
    let sum = sum.and_then(|sum| sum.first_chunk().copied()).map_or(0, u16::from_be_bytes);
    (kept, sum)
}
