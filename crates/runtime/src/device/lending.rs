//! Memory that a device receives into, and lends: a connection keeps what has come until the
//! application has read it.
//!
//! A packet that takes little of the memory is copied, and the next one overwrites it. Otherwise
//! the device goes on with other memory: with what has been given back, or with new.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Pieces of memory that are out, or back again, and that the device remembers: as many
/// super-packets as a stack receives in four turns. Others are freed by whoever has them last.
const MOST: usize = 64;

/// Buffers that stay while the device is idle.
const FEW: usize = 8;

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Lending {
    /// What is received into next; nobody else has a part of it.
    buffer: BytesMut,
    /// What was kept, from what has been out for longest on.
    lent: VecDeque<Bytes>,
    size: usize,
}

impl Lending {
    /// Pieces of `size` bytes.
    pub(super) fn new(size: usize) -> Self {
        Self { buffer: piece(size), lent: VecDeque::new(), size }
    }

    /// A packet so long is worth lending the memory that has it: it takes half of it.
    pub(super) const fn is_worth(&self, bytes: usize) -> bool {
        bytes >= self.size / 2
    }

    /// What has been received last.
    pub(super) fn received(&self) -> &[u8] {
        &self.buffer
    }

    /// Where to receive.
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Lends what has been received last, until the end of the call or for longer.
    pub(super) fn lend(&mut self, give: impl FnOnce(&Bytes)) {
        let lent = std::mem::take(&mut self.buffer).freeze();
        give(&lent);
        self.buffer = lent.try_into_mut().unwrap_or_else(|kept| {
            let next = self.next();
            self.lent.push_back(kept);
            next
        });
    }

    /// The device waits: frees a piece that nobody has, if there are more than a few.
    pub(super) fn rest(&mut self) {
        if self.lent.len() > FEW
            && let Some(first) = self.lent.pop_front().filter(|first| !first.is_unique())
        {
            self.lent.push_back(first);
        }
    }

    /// Memory that nobody has. Connections mostly give back in the order in which they were given;
    /// looking at two pieces for each that is lent, the device comes past those that somebody
    /// keeps.
    fn next(&mut self) -> BytesMut {
        for _ in 0..2 {
            match self.lent.pop_front().map(Bytes::try_into_mut) {
                Some(Ok(back)) => return back,
                Some(Err(out)) => self.lent.push_back(out),
                None => break,
            }
        }
        if self.lent.len() >= MOST {
            self.lent.pop_front();
        }
        piece(self.size)
    }
}

/// Memory whose owners are counted from the beginning, so that lending it allocates nothing.
fn piece(size: usize) -> BytesMut {
    let mut piece = BytesMut::zeroed(size);
    drop(piece.split_off(size));
    piece
}

#[cfg(test)]
mod tests {
    use super::{FEW, Lending, MOST};
    use bytes::Bytes;

    /// Receives a byte and lends it: what was kept, and where.
    fn lend(lending: &mut Lending, byte: u8) -> (Bytes, usize) {
        lending.buffer()[0] = byte;
        let mut kept = Bytes::new();
        lending.lend(|memory| kept = memory.slice(..10));
        let place = kept.as_ptr().addr();
        (kept, place)
    }

    #[test]
    fn memory_that_nobody_keeps_is_used_again() {
        let mut lending = Lending::new(100);
        let place = lending.buffer().as_ptr();
        for byte in 0..10 {
            lending.buffer()[0] = byte;
            assert_eq!(lending.received()[0], byte);
            lending.lend(|memory| assert_eq!((memory[0], memory.len()), (byte, 100)));
            assert_eq!((lending.buffer().as_ptr(), lending.buffer().len()), (place, 100));
        }
        assert!(lending.is_worth(50) && !lending.is_worth(49));
    }

    #[test]
    fn what_is_kept_stays_as_it_is_and_is_used_again_when_it_is_back() {
        let mut lending = Lending::new(100);
        let (kept, places): (Vec<_>, Vec<_>) = (0..5).map(|byte| lend(&mut lending, byte)).unzip();
        assert!(kept.iter().zip(0..).all(|(kept, byte)| kept[0] == byte));
        drop(kept);
        let again: Vec<_> = (5..10).map(|byte| lend(&mut lending, byte).1).collect();
        assert!(
            again[1..].iter().all(|place| places.contains(place)),
            "the first is memory that was free before"
        );
    }

    #[test]
    fn one_that_is_never_given_back_stops_nothing() {
        let mut lending = Lending::new(100);
        let (forever, _) = lend(&mut lending, 7);
        let places: Vec<_> = (0..100).map(|byte| lend(&mut lending, byte).1).collect();
        let different: std::collections::BTreeSet<_> = places.iter().collect();
        assert!(different.len() <= 3, "{}", different.len());
        assert_eq!(forever[0], 7);
    }

    #[test]
    fn only_so_many_are_remembered() {
        let mut lending = Lending::new(100);
        let kept: Vec<_> = (0..200).map(|byte| lend(&mut lending, byte).0).collect();
        assert_eq!(lending.lent.len(), MOST);
        assert!(kept.iter().zip(0..).all(|(kept, byte)| kept[0] == byte));
    }

    #[test]
    fn what_is_back_is_freed_while_the_device_waits() {
        let mut lending = Lending::new(100);
        let mut kept: Vec<_> = (0..20).map(|byte| lend(&mut lending, byte).0).collect();
        let forever = kept.swap_remove(3);
        (0..40).for_each(|_| lending.rest());
        assert_eq!(lending.lent.len(), 20, "all of it is out");
        drop(kept);
        (0..40).for_each(|_| lending.rest());
        assert_eq!((lending.lent.len(), forever[0]), (FEW, 3));
    }
}
