//! The memory that several endpoints of one host have together.
//!
//! An endpoint reserves before it takes, a step more than it needs, and gives back what it has not
//! used of more than two steps. So it writes what is shared once per step at most, and otherwise
//! looks at one cache line when it settles its account. `left` is negative only by what may exceed
//! the budget of an endpoint alone as well: a packet's worth in each buffer.
//!
//! **Whoever holds more than its part makes room.** An endpoint's part of the budget is that of its
//! connections among all, where each endpoint counts as a connection more, for its tables. All
//! parts together are the budget. So if memory is short, and an endpoint holds less than its part,
//! then another one holds more, and what is [wanted](MemoryPart::wanted) is for that one to free.

use super::Reserve;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering};

/// Connections are counted exactly up to this number, and beyond it to one in so many.
const EXACT: usize = 64;

/// What all endpoints of the host share.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct HostMemory {
    /// Bytes.
    bytes: Reserve,
    /// Connections of all endpoints.
    connections: AtomicUsize,
    /// Memory is under pressure.
    pressed: AtomicBool,
    endpoints: usize,
}

impl HostMemory {
    /// A budget of `bytes` for `endpoints` endpoints.
    pub(crate) fn new(bytes: u64, endpoints: usize) -> Self {
        let whole = isize::try_from(bytes).unwrap_or(isize::MAX);
        let steps = isize::try_from(endpoints.max(1)).unwrap_or(isize::MAX).saturating_mul(128);
        Self {
            bytes: Reserve::new(whole, whole / steps),
            connections: AtomicUsize::new(0),
            pressed: AtomicBool::new(false),
            endpoints: endpoints.max(1),
        }
    }
}

/// What one endpoint has of it. When it ends, that is the others'.
#[derive(Debug)]
pub(crate) struct MemoryPart {
    host: Arc<HostMemory>,
    reserved: isize,
    /// What it has told of its connections: their number, rounded up.
    connections: usize,
}

impl MemoryPart {
    pub(crate) const fn new(host: Arc<HostMemory>) -> Self {
        Self { host, reserved: 0, connections: 0 }
    }

    /// Bytes reserved.
    #[inline]
    pub(crate) const fn reserved(&self) -> u64 {
        self.reserved as u64
    }

    /// Bytes that the others have reserved.
    pub(crate) fn of_others(&self) -> u64 {
        (self.host.bytes.whole - self.host.bytes.left() - self.reserved).max(0) as u64
    }

    /// Bytes that somebody had no room for.
    #[inline]
    pub(crate) fn wanted(&self) -> u64 {
        self.host.bytes.wanted() as u64
    }

    /// Says that there was no room for so many bytes; false if that is known.
    pub(crate) fn want(&self, bytes: u64) -> bool {
        self.host.bytes.want(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Clears the request for memory: it was met, or cannot be. An endpoint that still needs some
    /// asks again.
    pub(crate) fn end_want(&self) {
        self.host.bytes.end_want();
    }

    /// The same, if there is as much as is wanted.
    pub(crate) fn end_want_if_left(&self) {
        if self.host.bytes.left() >= isize::try_from(self.wanted()).unwrap_or(isize::MAX) {
            self.end_want();
        }
    }

    /// Reserves enough to hold `bytes`; false if that is not left.
    pub(crate) fn reserve(&mut self, bytes: u64) -> bool {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
        let needed = bytes.saturating_sub(self.reserved);
        if needed <= 0 {
            return true;
        }
        let taken = self.host.bytes.take(needed);
        self.reserved += taken.unwrap_or(0);
        taken.is_some()
    }

    /// It holds so many bytes, whether that was left or not; what it does not need is the others'.
    #[inline]
    pub(crate) fn settle(&mut self, bytes: u64) {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
        let unused = self.reserved - bytes;
        if unused < 0 || unused > 2 * self.host.bytes.step || (unused > 0 && self.wanted() > 0) {
            self.adjust(bytes);
        }
    }

    #[cold]
    fn adjust(&mut self, bytes: isize) {
        if self.reserve(bytes as u64) {
            let spare = if self.wanted() > 0 { 0 } else { self.host.bytes.step };
            let given = self.reserved - bytes - spare;
            if given > 0 {
                self.reserved -= given;
                self.host.bytes.give(given);
            }
        } else {
            let missing = bytes - self.reserved;
            self.reserved = bytes;
            self.host.bytes.overdraw(missing);
        }
    }

    /// It has so many connections. True if others did not know.
    #[inline]
    pub(crate) fn tell(&mut self, connections: usize) -> bool {
        let unit = connections / EXACT + 1;
        let news = connections > self.connections || self.connections - connections >= 2 * unit - 1;
        if news {
            self.tell_rounded(connections.next_multiple_of(unit));
        }
        news
    }

    #[cold]
    fn tell_rounded(&mut self, connections: usize) {
        let before = core::mem::replace(&mut self.connections, connections);
        // Wraps as the sum does.
        self.host.connections.fetch_add(connections.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Connections of all endpoints, as far as they have been told.
    #[inline]
    pub(crate) fn connections(&self) -> usize {
        self.host.connections.load(Ordering::Relaxed)
    }

    /// This endpoint's part of the budget while there are so many `connections` of all.
    pub(crate) fn fair(&self, connections: usize) -> u64 {
        let all = (connections.max(self.connections) + self.host.endpoints) as u128;
        (self.host.bytes.whole as u128 * (self.connections as u128 + 1) / all) as u64
    }

    /// True if memory is under pressure.
    pub(crate) fn is_pressed(&self) -> bool {
        self.host.pressed.load(Ordering::Relaxed)
    }

    /// Memory is under pressure, or is not any more; false if that is known.
    pub(crate) fn press(&self, pressed: bool) -> bool {
        self.is_pressed() != pressed && self.host.pressed.swap(pressed, Ordering::Relaxed) != pressed
    }
}

impl Drop for MemoryPart {
    fn drop(&mut self) {
        self.host.bytes.give(self.reserved);
        self.host.connections.fetch_sub(self.connections, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{HostMemory, MemoryPart};
    use crate::sync::Arc;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn parts(bytes: u64, endpoints: usize) -> Vec<MemoryPart> {
        let host = Arc::new(HostMemory::new(bytes, endpoints));
        (0..endpoints).map(|_| MemoryPart::new(host.clone())).collect()
    }

    #[test]
    fn nearly_all_may_be_reserved_by_one() {
        let mut parts = parts(1_000_000, 2);
        parts[1].settle(600_000);
        assert!(!parts[0].reserve(400_001 - 3_906));
        assert_eq!((parts[0].reserved(), parts[0].of_others()), (0, 603_906), "a step more");
        parts[1].settle(0);
        assert_eq!(parts[1].reserved(), 3_906);
        assert!(parts[0].reserve(996_000) && !parts[0].reserve(996_100));
        // What is wanted is not kept.
        assert!(parts[0].want(4_000) && !parts[0].want(3_000));
        parts[1].settle(0);
        assert!(parts[1].reserved() == 0 && parts[0].reserve(1_000_000));
        drop(parts.remove(0));
        assert!(parts[0].reserve(1_000_000));
    }

    #[test]
    fn what_is_held_counts_even_if_it_was_not_left() {
        let mut parts = parts(10_000, 2);
        parts[0].settle(9_000);
        parts[1].settle(3_000);
        assert_eq!(parts[0].of_others(), 3_000);
        assert!(!parts[0].reserve(9_200));
        parts[0].settle(5_000);
        assert!(parts[1].reserve(4_900));
    }

    #[test]
    fn the_parts_are_the_whole() {
        let mut parts = parts(1_000, 4);
        let fair = |parts: &[MemoryPart]| -> Vec<u64> {
            parts.iter().map(|part| part.fair(part.connections())).collect()
        };
        assert_eq!(fair(&parts), [250; 4]);
        parts[0].tell(15);
        parts[1].tell(1);
        assert_eq!(fair(&parts), [800, 100, 50, 50]);
        parts[0].tell(0);
        parts[1].tell(0);
        assert_eq!(fair(&parts), [250; 4]);
    }

    #[test]
    fn many_connections_are_told_of_in_steps() {
        let mut part = parts(1_000, 1).remove(0);
        let mut told = 0;
        let mut last = 0;
        for connections in (0..100_000).chain((0..100_000).rev()) {
            part.tell(connections);
            let known = part.connections();
            assert!(
                (connections..=connections + connections / 20 + 1).contains(&known),
                "{known} of {connections}"
            );
            told += usize::from(known != last);
            last = known;
        }
        assert_eq!(last, 0);
        assert!(told < 2_500, "{told}");
    }

    proptest! {
        #[test]
        fn no_more_is_reserved_than_there_is(
            steps in prop::collection::vec((0usize..3, 0u64..120_000, any::<bool>(), any::<bool>()), 0..100),
        ) {
            let mut parts = parts(200_000, 3);
            let mut held = [0; 3];
            for (at, bytes, wants, ends) in steps {
                if bytes <= held[at] || parts[at].reserve(bytes) {
                    held[at] = bytes;
                }
                if wants {
                    parts[at].want(bytes);
                }
                if ends {
                    parts[at].end_want();
                }
                parts[at].settle(held[at]);
                let reserved: Vec<_> = parts.iter().map(MemoryPart::reserved).collect();
                prop_assert!(reserved.iter().sum::<u64>() <= 200_000);
                prop_assert!(reserved.iter().zip(held).all(|(reserved, held)| held <= *reserved));
                prop_assert_eq!(parts[0].of_others() + reserved[0], reserved.iter().sum::<u64>());
            }
        }
    }
}
