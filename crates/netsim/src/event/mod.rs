//! Future events in one total order: by time, then by creation.
//!
//! | file | holds |
//! |---|---|
//! | `mod.rs` | the [`EventQueue`] |
//! | `calendar.rs` | the events of the near future, in buckets |
//! | `heap.rs` | those of the present bucket, and those of the far future |

mod calendar;
mod heap;

use ackline_tcp_core::Instant;
use calendar::Calendar;
use heap::Heap;

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

/// The queue of future events: a calendar (Brown, 1988) whose buckets are about as wide as the time
/// between two events.
///
/// ```text
///                 present bucket
///   ────────┬───────────┬───┬───┬───┬── ··· ──┬──────────────►  time
///           │ near: heap│   calendar: buckets │  far: heap
/// ```
///
/// An event is put into its bucket and taken out of it again without a comparison with others, but
/// for those of the same bucket. The order does not depend on the width, which follows the events:
/// it is halved if buckets are crowded, and doubled if too many events are beyond the last one.
#[derive(Debug)]
pub struct EventQueue<E> {
    /// Events of the present bucket and of earlier ones.
    near: Heap<E>,
    calendar: Calendar<E>,
    /// Events that were beyond the calendar when they were added.
    far: Heap<E>,
    created: u64,
    /// Of the events of this round: how many there were, how many buckets they took, and how many
    /// were added beyond the calendar.
    round: Round,
}

/// What the width of the buckets is judged by.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    events: u32,
    buckets: u32,
    far: u32,
}

/// Events of a round.
const ROUND: u32 = 1_024;

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            near: Heap::default(),
            calendar: Calendar::default(),
            far: Heap::default(),
            created: 0,
            round: Round::default(),
        }
    }
}

impl<E> EventQueue<E> {
    /// Reserves the next position in the order, for an event whose owner keeps it in its own queue
    /// and only [schedules](Self::schedule_in_order) the first.
    #[inline]
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
    #[inline]
    pub fn schedule_in_order(&mut self, order: Order, event: E) {
        if self.calendar.reaches(order.at) {
            self.calendar.add(order, event);
        } else {
            self.schedule_elsewhere(order, event);
        }
    }

    /// Adds an event that is before the buckets of the calendar, or beyond them.
    #[inline(never)]
    fn schedule_elsewhere(&mut self, order: Order, event: E) {
        if self.calendar.is_present(order.at) {
            self.near.push(order, event);
        } else {
            self.far.push(order, event);
            self.round.far += 1;
        }
    }

    /// When the next event is due.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        let first = self.near.first().or_else(|| {
            let far = self.far.first();
            self.calendar.first().into_iter().chain(far).min()
        });
        first.map(|order| order.at)
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Order, E)> {
        self.pop_by(Instant::FAR_FUTURE)
    }

    /// Takes the next event, if it is due by `end`.
    #[inline]
    pub fn pop_by(&mut self, end: Instant) -> Option<(Order, E)> {
        if self.near.is_empty() {
            let far = self.far.first().map_or(Instant::FAR_FUTURE, |order| order.at);
            if let Some(alone) = self.calendar.pop_alone(end, far) {
                self.round.buckets += 1;
                self.count();
                return Some(alone);
            }
        }
        self.pop_near(end)
    }

    /// The same, if there is something in the present bucket, or the next one has several events.
    #[inline(never)]
    fn pop_near(&mut self, end: Instant) -> Option<(Order, E)> {
        if self.near.is_empty() {
            self.turn_over();
        }
        if self.near.first()?.at > end {
            return None;
        }
        self.count();
        self.near.pop()
    }

    /// Another event is taken.
    #[inline]
    fn count(&mut self) {
        self.round.events += 1;
        if self.round.events >= ROUND {
            self.judge();
        }
    }

    /// The next bucket with events becomes the present one.
    fn turn_over(&mut self) {
        let far = self.far.first().map(|order| order.at);
        if self.calendar.turn_over(far, &mut self.near) {
            self.round.buckets += 1;
        }
        self.fetch_far();
    }

    /// Takes those of the far future that are not far any more.
    fn fetch_far(&mut self) {
        while self.far.first().is_some_and(|order| self.calendar.is_present(order.at))
            && let Some((order, event)) = self.far.pop()
        {
            self.near.push(order, event);
        }
    }

    /// A round has ended: the buckets may need another width.
    #[cold]
    fn judge(&mut self) {
        let Round { events, buckets, far } = core::mem::take(&mut self.round);
        let narrower = events > 4 * buckets;
        let wider = far > events / 4 && events < 2 * buckets;
        let Some(now) = self.next_at() else { return };
        if (narrower || wider) && self.calendar.set_width(wider) {
            let (near, far) = (core::mem::take(&mut self.near), core::mem::take(&mut self.far));
            let waiting = self.calendar.restart(now);
            for (order, event) in near.into_iter().chain(waiting).chain(far) {
                self.schedule_in_order(order, event);
            }
            self.round = Round::default();
        }
    }

    /// Number of pending events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.near.len() + self.calendar.len() + self.far.len()
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
                // Reserved positions are used later, and out of turn. Distances between events
                // change by powers of ten.
                let most = 10_u64.pow(2 + step / 20_000);
                let order = queue.reserve(Instant::from_nanos(now + rng.below(most) * rng.below(2)));
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
