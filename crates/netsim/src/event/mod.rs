//! Future events in one total order: by time, then by creation.

use ackline_tcp_core::Instant;

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

/// The queue of future events: a heap in which each entry has four below it.
///
/// An event that is taken leaves its place at the top to the next one that is added: most events cause another, so each of them
/// costs one way through the heap instead of two.
#[derive(Debug)]
pub struct EventQueue<E> {
    heap: Vec<Entry<E>>,
    /// The first entry has been taken, and is still there.
    is_taken: bool,
    created: u64,
}

#[derive(Debug)]
struct Entry<E> {
    order: Order,
    /// `None` once it has been taken.
    event: Option<E>,
}

/// Entries below each one.
const BELOW: usize = 4;

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { heap: vec![], is_taken: false, created: 0 }
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
        let entry = Entry { order, event: Some(event) };
        if std::mem::take(&mut self.is_taken)
            && let Some(first) = self.heap.first_mut()
        {
            *first = entry;
            self.sink();
            return;
        }
        let mut place = self.heap.len();
        self.heap.push(entry);
        while place > 0 {
            let above = (place - 1) / BELOW;
            if self.heap[above].order.key() <= order.key() {
                return;
            }
            self.heap.swap(above, place);
            place = above;
        }
    }

    /// The first entry goes down to its place.
    fn sink(&mut self) {
        let Some(first) = self.heap.first() else { return };
        let (key, mut place) = (first.order.key(), 0);
        loop {
            let below = place * BELOW + 1;
            let (next, least) = match self.heap.get(below..) {
                // Without a loop, and without branches that nothing foretells.
                Some([a, b, c, d, ..]) => {
                    let keys = [a, b, c, d].map(|entry| entry.order.key());
                    let one = usize::from(keys[1] < keys[0]);
                    let other = 2 + usize::from(keys[3] < keys[2]);
                    let next = if keys[other] < keys[one] { other } else { one };
                    (below + next, keys[next])
                }
                Some(last) => {
                    let keys = last.iter().map(|entry| entry.order.key());
                    let Some((next, least)) = keys.enumerate().min_by_key(|(_, key)| *key) else { return };
                    (below + next, least)
                }
                None => return,
            };
            if key <= least {
                return;
            }
            self.heap.swap(place, next);
            place = next;
        }
    }

    /// Removes the first entry if it has been taken.
    fn settle(&mut self) {
        if std::mem::take(&mut self.is_taken) {
            self.heap.swap_remove(0);
            self.sink();
        }
    }

    /// When the next event is due.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        if !self.is_taken {
            return self.heap.first().map(|entry| entry.order.at);
        }
        self.heap.iter().skip(1).take(BELOW).map(|entry| entry.order.at).min()
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Order, E)> {
        self.settle();
        let first = self.heap.first_mut()?;
        self.is_taken = true;
        first.event.take().map(|event| (first.order, event))
    }

    /// Number of pending events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.is_taken)
    }

    /// True if there are no pending events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

    /// Against a sorted list: whatever is added between two events, they come in order.
    #[test]
    fn keeps_the_order_whatever_is_added() {
        use crate::rng::SimRng;
        let seed = 11;
        let mut rng = SimRng::new(seed, 0);
        let (mut queue, mut model) = (EventQueue::default(), std::collections::BTreeMap::new());
        let mut now = 0;
        for step in 0..200_000 {
            if rng.below(2) == 0 || model.is_empty() {
                // Reserved positions are used later, and out of turn.
                let order = queue.reserve(Instant::from_nanos(now + rng.below(200)));
                queue.schedule_in_order(order, step);
                model.insert(order, step);
            } else {
                let (order, event) = queue.pop().expect("the model has one");
                assert_eq!(Some((order, event)), model.pop_first(), "seed {seed}, step {step}");
                now = order.at.as_nanos();
            }
            assert_eq!(queue.len(), model.len(), "seed {seed}, step {step}");
            assert_eq!(
                queue.next_at(),
                model.keys().next().map(|order| order.at),
                "seed {seed}, step {step}"
            );
        }
    }
}
