//! A heap in which each entry has four below it.

use super::Order;

/// Events in their order.
#[derive(Debug)]
pub(super) struct Heap<E>(Vec<(Order, E)>);

/// Entries below each one.
const BELOW: usize = 4;

impl<E> Default for Heap<E> {
    fn default() -> Self {
        Self(vec![])
    }
}

impl<E> Heap<E> {
    /// Number of events.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no events.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The position of the first event.
    #[inline]
    pub(super) fn first(&self) -> Option<Order> {
        self.0.first().map(|(order, _)| *order)
    }

    /// Adds an event.
    #[inline]
    pub(super) fn push(&mut self, order: Order, event: E) {
        self.0.push((order, event));
        if self.0.len() > 1 {
            self.rise(order);
        }
    }

    /// The last entry, which is at `order`, goes up to its place.
    fn rise(&mut self, order: Order) {
        let mut place = self.0.len() - 1;
        while place > 0 {
            let above = (place - 1) / BELOW;
            if self.0[above].0.key() <= order.key() {
                return;
            }
            self.0.swap(above, place);
            place = above;
        }
    }

    /// Takes the first event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(Order, E)> {
        if self.0.len() > 1 {
            let first = self.0.swap_remove(0);
            self.sink();
            return Some(first);
        }
        self.0.pop()
    }

    /// The first entry goes down to its place.
    fn sink(&mut self) {
        let (key, mut place) = (self.0[0].0.key(), 0);
        loop {
            let below = place * BELOW + 1;
            let (next, least) = match self.0.get(below..) {
                // Without a loop, and without branches that nothing foretells.
                Some([a, b, c, d, ..]) => {
                    let keys = [a, b, c, d].map(|(order, _)| order.key());
                    let one = usize::from(keys[1] < keys[0]);
                    let other = 2 + usize::from(keys[3] < keys[2]);
                    let next = if keys[other] < keys[one] { other } else { one };
                    (below + next, keys[next])
                }
                Some(last) => {
                    let keys = last.iter().map(|(order, _)| order.key());
                    let Some((next, least)) = keys.enumerate().min_by_key(|(_, key)| *key) else { return };
                    (below + next, least)
                }
                None => return,
            };
            if key <= least {
                return;
            }
            self.0.swap(place, next);
            place = next;
        }
    }
}

impl<E> IntoIterator for Heap<E> {
    type Item = (Order, E);
    type IntoIter = std::vec::IntoIter<(Order, E)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
