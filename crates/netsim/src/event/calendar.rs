//! Buckets of equal width, for the events of the near future.

use super::Order;
use super::heap::Heap;
use ackline_tcp_core::Instant;

/// Events behind the present bucket, up to [`BUCKETS`] behind it.
#[derive(Debug)]
pub(super) struct Calendar<E> {
    /// A bucket has `2^shift` nanoseconds.
    shift: u32,
    /// The present bucket: the number of the time in it, without the last `shift` bits.
    present: u64,
    /// The first event of each bucket, in no order; [`NIL`] if there is none.
    firsts: [u32; BUCKETS],
    /// Which buckets have events.
    used: [u64; WORDS],
    /// Events, and free places.
    nodes: Vec<Node<E>>,
    /// The first free place, or [`NIL`].
    free: u32,
    len: usize,
}

#[derive(Debug)]
struct Node<E> {
    order: Order,
    /// `None` if the place is free.
    event: Option<E>,
    /// The next one in the bucket, or the next free place; [`NIL`] if there is none.
    next: u32,
}

const BUCKETS: usize = 64 * WORDS;
const WORDS: usize = 8;
/// No event.
const NIL: u32 = u32::MAX;
/// The narrowest and the widest buckets, 16 ns and 17 s, and what it begins with, 16 µs.
const NARROWEST: u32 = 4;
const WIDEST: u32 = 34;
const FIRST: u32 = 14;

impl<E> Default for Calendar<E> {
    fn default() -> Self {
        Self {
            shift: FIRST,
            present: 0,
            firsts: [NIL; BUCKETS],
            used: [0; WORDS],
            nodes: vec![],
            free: NIL,
            len: 0,
        }
    }
}

impl<E> Calendar<E> {
    /// Number of events.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// True if `at` is in the present bucket, or before it.
    #[inline]
    pub(super) const fn is_present(&self, at: Instant) -> bool {
        at.as_nanos() >> self.shift <= self.present
    }

    /// True if `at` is in a bucket behind the present one, up to the last.
    #[inline]
    pub(super) const fn reaches(&self, at: Instant) -> bool {
        let number = at.as_nanos() >> self.shift;
        // One comparison: what is before the first one wraps around.
        number.wrapping_sub(self.present + 1) < BUCKETS as u64 - 1
    }

    /// Adds an event that the calendar [reaches](Self::reaches).
    #[inline]
    pub(super) fn add(&mut self, order: Order, event: E) {
        let bucket = (order.at.as_nanos() >> self.shift) as usize % BUCKETS;
        let node = Node { order, event: Some(event), next: self.firsts[bucket] };
        let place = self.free;
        if let Some(free) = self.nodes.get_mut(place as usize) {
            self.free = free.next;
            *free = node;
            self.firsts[bucket] = place;
        } else {
            self.firsts[bucket] = self.nodes.len() as u32;
            self.nodes.push(node);
        }
        self.used[bucket / 64] |= 1 << (bucket % 64);
        self.len += 1;
    }

    /// If the next bucket with events has only one, which is due by `end` and in a bucket before
    /// that of `far`, it becomes the present one, and the event is taken.
    #[inline]
    pub(super) fn pop_alone(&mut self, end: Instant, far: Instant) -> Option<(Order, E)> {
        let number = self.next()?;
        let bucket = number as usize % BUCKETS;
        let place = self.firsts[bucket];
        let node = self.nodes.get_mut(place as usize)?;
        if node.next != NIL || node.order.at > end || number >= far.as_nanos() >> self.shift {
            return None;
        }
        let event = node.event.take()?;
        node.next = core::mem::replace(&mut self.free, place);
        let order = node.order;
        self.present = number;
        self.firsts[bucket] = NIL;
        self.used[bucket / 64] &= !(1 << (bucket % 64));
        self.len -= 1;
        Some((order, event))
    }

    /// The next bucket with events becomes the present one, and they move to `near`; or a bucket
    /// before it, with the event at `far`. False if there is none.
    #[inline]
    pub(super) fn turn_over(&mut self, far: Option<Instant>, near: &mut Heap<E>) -> bool {
        let far = far.map(|at| at.as_nanos() >> self.shift);
        let Some(number) = self.next().filter(|next| far.is_none_or(|far| *next <= far)) else {
            self.present = far.unwrap_or(self.present);
            return far.is_some();
        };
        self.present = number;
        let bucket = number as usize % BUCKETS;
        self.used[bucket / 64] &= !(1 << (bucket % 64));
        let mut place = core::mem::replace(&mut self.firsts[bucket], NIL);
        while let Some(node) = self.nodes.get_mut(place as usize) {
            if let Some(event) = node.event.take() {
                near.push(node.order, event);
            }
            self.len -= 1;
            let next = core::mem::replace(&mut node.next, self.free);
            self.free = core::mem::replace(&mut place, next);
        }
        true
    }

    /// The number of the next bucket with events.
    #[inline]
    fn next(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let from = (self.present + 1) as usize % BUCKETS;
        let (first, bit) = (from / 64, from % 64);
        // The word in which it begins comes again at the end, for the bits before.
        for turn in 0..=WORDS {
            let mut word = self.used[(first + turn) % WORDS];
            if turn == 0 {
                word &= u64::MAX << bit;
            }
            if word != 0 {
                let bucket = (first + turn) * 64 + word.trailing_zeros() as usize;
                return Some(self.present + 1 + (bucket - from) as u64);
            }
        }
        None
    }

    /// The position of the first event.
    pub(super) fn first(&self) -> Option<Order> {
        let bucket = self.next()? as usize % BUCKETS;
        let mut place = self.firsts[bucket];
        let events = core::iter::from_fn(|| {
            let node = self.nodes.get(place as usize)?;
            place = node.next;
            Some(node.order)
        });
        events.min()
    }

    /// Doubles the width of the buckets, or halves it. False if it stays.
    /// [`restart`](Self::restart) must follow.
    pub(super) fn set_width(&mut self, wider: bool) -> bool {
        let shift = if wider { self.shift + 1 } else { self.shift - 1 };
        let changes = (NARROWEST..=WIDEST).contains(&shift);
        if changes {
            self.shift = shift;
        }
        changes
    }

    /// Takes all events out, in no order. The bucket of `now` becomes the present one.
    pub(super) fn restart(&mut self, now: Instant) -> impl Iterator<Item = (Order, E)> + use<E> {
        self.present = now.as_nanos() >> self.shift;
        (self.firsts, self.used, self.free, self.len) = ([NIL; BUCKETS], [0; WORDS], NIL, 0);
        let nodes = core::mem::take(&mut self.nodes);
        nodes.into_iter().filter_map(|node| node.event.map(|event| (node.order, event)))
    }
}
