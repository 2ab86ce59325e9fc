//! A timing wheel with exact deadlines, for millions of timers.
//!
//! The endpoint gives each connection one key (its index) and one deadline: the earliest of its
//! timers. It calls [`TimingWheel::set`] whenever that moves (for a busy connection with each ACK),
//! sleeps until [`TimingWheel::next`], and calls [`TimingWheel::pop_expired`] until there is none
//! left.
//!
//! **Slots.** A deadline is filed under the highest group of six bits in which it differs from the
//! wheel's own time, and under its value of that group:
//!
//! ```text
//!   bits      63..60   59..54    ...    11..6     5..0
//!   level       10       9                1         0       64 slots each (16 at level 10)
//! ```
//!
//! The classic hierarchical wheel (Varghese and Lauck, 1987) moves timers down as their time
//! approaches, and only finds the slot of its next timer. Here a timer stays where it was filed: a
//! slot is a pairing heap (Fredman, Sedgewick, Sleator and Tarjan, 1986), whose top is exact. No
//! pending timer is in a slot before the wheel's time, so the first occupied slot of a level
//! contains that level's earliest timer, and the earliest of all is one of at most eleven tops.
//!
//! **Cost.** Setting a timer is O(1). Cancelling or moving one is O(1) if it has no children in its
//! heap, which holds for a timer that moves often, and otherwise amortised O(log n) for the n
//! timers of that slot alone. 4 bytes per key and 24 per armed one; only allocates for keys higher
//! than any before, and for more armed at a time than ever.

use crate::time::Instant;
use alloc::vec::Vec;

/// Deadlines of up to 2^32 - 1 keys. See the [module documentation](self).
///
/// Keys index an array, so they should be dense. Timers expire in the order of (deadline, key); the
/// same calls always give the same results.
pub(crate) struct TimingWheel {
    /// Where in `nodes` each key is; [`NIL`] if it is not armed.
    places: Vec<u32>,
    /// Those of the armed keys, and free ones.
    nodes: Vec<Node>,
    /// The first free node, linked by `next`, or [`NIL`].
    free: u32,
    /// Nothing armed expires before this instant, except what was armed in the past.
    time: u64,
    /// Levels with an occupied slot.
    levels: u16,
    /// Occupied slots of each level.
    slots: [u64; LEVELS],
    /// Tops of the slots' heaps, or [`NIL`].
    tops: [u32; LEVELS * SLOTS],
    /// Comparisons of the heaps, as a measure of work.
    #[cfg(test)]
    comparisons: u64,
}

/// Bits of time per level.
const BITS: u32 = 6;
/// Slots of a level.
const SLOTS: usize = 1 << BITS;
/// Levels that it takes to cover 64 bits.
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;
/// No key.
const NIL: u32 = u32::MAX;
/// A key's timer, linked into the heap of its slot: first child, next sibling, and back.
#[derive(Clone, Copy)]
struct Node {
    /// Nanoseconds.
    deadline: u64,
    /// First child, or [`NIL`].
    child: u32,
    /// Next sibling, or [`NIL`].
    next: u32,
    /// Sibling before, or the parent of a first child; [`NIL`] at the top.
    back: u32,
    /// Level times [`SLOTS`] plus slot.
    slot: u16,
}

/// Spare entries are for an eighth more keys: a vector that doubles has as many of them as entries
/// in use.
fn grow<T>(entries: &mut Vec<T>, len: usize) {
    if len > entries.capacity() {
        let more = (entries.len() / 8).max(8);
        entries.reserve_exact((len - entries.len()).max(more));
    }
}

impl Default for TimingWheel {
    fn default() -> Self {
        Self::new()
    }
}

impl TimingWheel {
    /// A wheel with nothing armed, at [`Instant::ZERO`].
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            places: Vec::new(),
            nodes: Vec::new(),
            free: NIL,
            time: 0,
            levels: 0,
            slots: [0; LEVELS],
            tops: [NIL; LEVELS * SLOTS],
            #[cfg(test)]
            comparisons: 0,
        }
    }

    /// Arms `key`, or moves its deadline. A deadline in the past expires at once, ordered by its
    /// true time.
    pub(crate) fn set(&mut self, key: u32, deadline: Instant) {
        let deadline = deadline.as_nanos();
        let slot = self.slot_for(deadline);
        if let Some(node) = self.armed_mut(key) {
            if node.slot == slot && node.child == NIL && node.deadline <= deadline {
                // Without children it may move later in place.
                node.deadline = deadline;
                return;
            }
            self.unlink(key);
        } else {
            self.take_node(key);
        }
        *self.node_mut(key) = Node { deadline, child: NIL, next: NIL, back: NIL, slot };
        let (level, bit) = (usize::from(slot) / SLOTS, usize::from(slot) % SLOTS);
        self.levels |= 1 << level;
        self.slots[level] |= 1 << bit;
        let top = self.tops[usize::from(slot)];
        self.tops[usize::from(slot)] = if top == NIL { key } else { self.meld(top, key) };
    }

    /// Disarms `key`; returns whether it was armed.
    pub(crate) fn cancel(&mut self, key: u32) -> bool {
        let armed = self.deadline(key).is_some();
        if armed {
            self.unlink(key);
            let place = core::mem::replace(&mut self.places[key as usize], NIL);
            self.nodes[place as usize].next = core::mem::replace(&mut self.free, place);
        }
        armed
    }

    /// The deadline of `key`; `None` if it is not armed.
    #[must_use]
    pub(crate) fn deadline(&self, key: u32) -> Option<Instant> {
        let place = *self.places.get(key as usize)?;
        self.nodes.get(place as usize).map(|node| Instant::from_nanos(node.deadline))
    }

    /// Bytes of the nodes, free ones included.
    pub(crate) const fn memory(&self) -> usize {
        self.nodes.len() * size_of::<Node>()
    }

    /// The node of an armed key.
    fn node(&self, key: u32) -> &Node {
        &self.nodes[self.places[key as usize] as usize]
    }

    /// The node of an armed key.
    fn node_mut(&mut self, key: u32) -> &mut Node {
        &mut self.nodes[self.places[key as usize] as usize]
    }

    /// The node of `key`; `None` if it is not armed.
    fn armed_mut(&mut self, key: u32) -> Option<&mut Node> {
        let place = *self.places.get(key as usize)?;
        self.nodes.get_mut(place as usize)
    }

    /// Gives a node to a key that is not armed.
    fn take_node(&mut self, key: u32) {
        let index = key as usize;
        if index >= self.places.len() {
            grow(&mut self.places, index + 1);
            self.places.resize(index + 1, NIL);
        }
        let mut place = self.free;
        if let Some(node) = self.nodes.get(place as usize) {
            self.free = node.next;
        } else {
            // Nodes are no more than keys.
            place = self.nodes.len() as u32;
            grow(&mut self.nodes, place as usize + 1);
            self.nodes.push(Node { deadline: 0, child: NIL, next: NIL, back: NIL, slot: 0 });
        }
        self.places[index] = place;
    }

    /// The earliest deadline, exact, and its key; the smallest key if several share it.
    #[must_use]
    pub(crate) fn next(&self) -> Option<(Instant, u32)> {
        let mut earliest: Option<(u64, u32)> = None;
        let mut levels = self.levels;
        while levels != 0 {
            let level = levels.trailing_zeros() as usize;
            levels &= levels - 1;
            let top = self.tops[level * SLOTS + self.slots[level].trailing_zeros() as usize];
            let candidate = (self.node(top).deadline, top);
            if earliest.is_none_or(|earliest| candidate < earliest) {
                earliest = Some(candidate);
            }
        }
        earliest.map(|(deadline, key)| (Instant::from_nanos(deadline), key))
    }

    /// Disarms and returns the key with the earliest deadline, if that is not after `now`. Call it
    /// until it returns `None`, which also moves the wheel's own time to `now`: the closer that is
    /// to the deadlines set, the fewer timers share a slot.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<u32> {
        match self.next() {
            Some((deadline, key)) if deadline <= now => {
                self.cancel(key);
                Some(key)
            }
            _ => {
                self.time = self.time.max(now.as_nanos());
                None
            }
        }
    }

    /// The slot of a deadline, given the wheel's own time; one in the past counts as due at that
    /// time.
    fn slot_for(&self, deadline: u64) -> u16 {
        let deadline = deadline.max(self.time);
        let highest_bit = ((deadline ^ self.time) | 1).ilog2();
        let level = highest_bit / BITS;
        let slot = (deadline >> (level * BITS)) as usize % SLOTS;
        (level as usize * SLOTS + slot) as u16
    }

    /// Removes an armed key from the heap of its slot; its node is stale afterwards.
    fn unlink(&mut self, key: u32) {
        let Node { child, next, back, slot, .. } = *self.node(key);
        let below = self.meld_siblings(child);
        let at = usize::from(slot);
        if back == NIL {
            self.tops[at] = below;
            if below == NIL {
                let (level, bit) = (usize::from(slot) / SLOTS, usize::from(slot) % SLOTS);
                self.slots[level] &= !(1 << bit);
                if self.slots[level] == 0 {
                    self.levels &= !(1 << level);
                }
            }
            return;
        }
        let before = self.node_mut(back);
        if before.child == key {
            before.child = next;
        } else {
            before.next = next;
        }
        if next != NIL {
            self.node_mut(next).back = back;
        }
        if below != NIL {
            self.tops[at] = self.meld(self.tops[at], below);
        }
    }

    /// Merges two heaps, and returns the top. Both arguments are tops without siblings.
    fn meld(&mut self, a: u32, b: u32) -> u32 {
        #[cfg(test)]
        {
            self.comparisons += 1;
        }
        let a_first = (self.node(a).deadline, a) < (self.node(b).deadline, b);
        let (top, below) = if a_first { (a, b) } else { (b, a) };
        let child = core::mem::replace(&mut self.node_mut(top).child, below);
        if child != NIL {
            self.node_mut(child).back = below;
        }
        let node = self.node_mut(below);
        node.next = child;
        node.back = top;
        top
    }

    /// Merges a list of siblings into one heap, in the two passes of the pairing heap, and returns
    /// its top; `NIL` if the list is empty.
    fn meld_siblings(&mut self, first: u32) -> u32 {
        // Pairs from left to right; their tops form a stack, linked by `next`.
        let (mut rest, mut stack) = (first, NIL);
        while rest != NIL {
            let mut top = rest;
            let second = self.detach(top);
            rest = NIL;
            if second != NIL {
                rest = self.detach(second);
                top = self.meld(top, second);
            }
            self.node_mut(top).next = stack;
            stack = top;
        }
        // Merge all pairs, from right to left.
        let mut all = NIL;
        while stack != NIL {
            let top = stack;
            stack = self.detach(top);
            all = if all == NIL { top } else { self.meld(all, top) };
        }
        all
    }

    /// Makes a sibling a top of its own, and returns the next sibling.
    fn detach(&mut self, key: u32) -> u32 {
        let node = self.node_mut(key);
        node.back = NIL;
        core::mem::replace(&mut node.next, NIL)
    }
}

impl core::fmt::Debug for TimingWheel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TimingWheel").field("next", &self.next()).finish()
    }
}

#[cfg(test)]
mod tests;
