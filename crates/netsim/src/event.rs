//! Future events in one total order: by time, then by creation.

use ackline_tcp_core::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A position in the total order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Order {
    /// When.
    pub at: Instant,
    /// Of events at the same instant the older one goes first.
    pub serial: u64,
}

impl Order {
    /// The same order as one number, which is compared without an unpredictable branch.
    const fn key(self) -> u128 {
        (self.at.as_nanos() as u128) << 64 | self.serial as u128
    }
}

/// The queue of future events.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    created: u64,
}

#[derive(Debug)]
struct Entry<E> {
    order: Order,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap gives its largest element first.
        other.order.key().cmp(&self.order.key())
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), created: 0 }
    }
}

impl<E> EventQueue<E> {
    /// Reserves the next position in the order, for an event whose owner keeps it in its own queue and only
    /// [schedules](Self::schedule_in_order) the first.
    pub fn reserve(&mut self, at: Instant) -> Order {
        self.created += 1;
        Order { at, serial: self.created }
    }

    /// Adds an event.
    pub fn schedule(&mut self, at: Instant, event: E) {
        let order = self.reserve(at);
        self.schedule_in_order(order, event);
    }

    /// Adds an event at a reserved position.
    pub fn schedule_in_order(&mut self, order: Order, event: E) {
        self.heap.push(Entry { order, event });
    }

    /// When the next event is due.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.order.at)
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Order, E)> {
        self.heap.pop().map(|entry| (entry.order, entry.event))
    }

    /// Number of pending events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if there are no pending events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_by_time_then_by_creation() {
        let mut queue = EventQueue::default();
        let reserved = queue.reserve(Instant::from_micros(5));
        queue.schedule(Instant::from_micros(5), "later created");
        queue.schedule(Instant::from_micros(1), "earliest");
        queue.schedule_in_order(reserved, "reserved first");
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, ["earliest", "reserved first", "later created"]);
    }
}
