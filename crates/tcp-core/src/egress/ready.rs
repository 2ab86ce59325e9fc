//! Round robin over the connections that may have something to send.

use crate::table::{Flags, Slot, Slots};
use alloc::collections::VecDeque;

/// The ready queue. A connection keeps its turn until it has nothing to send, or has sent a
/// quantum; then, in the latter case, it goes to the end of the queue. So connections with small
/// segments get as many bytes as those with large ones. All operations are O(1).
#[derive(Debug)]
pub(crate) struct Ready {
    /// Connections waiting for their turn. [`Flags::READY`] marks those in this queue and the
    /// current one.
    queue: VecDeque<u32>,
    /// The current connection, and the bytes left of its turn.
    turn: Option<(u32, u32)>,
    /// IP bytes per turn.
    quantum: u32,
}

impl Ready {
    pub(crate) const fn new(quantum: u32) -> Self {
        Self { queue: VecDeque::new(), turn: None, quantum }
    }

    /// Turns that begin from now on have `quantum` bytes.
    pub(crate) const fn set_quantum(&mut self, quantum: u32) {
        self.quantum = quantum;
    }

    /// True if no connection has anything to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.turn.is_none() && self.queue.is_empty()
    }

    /// The connection at `index` may have something to send.
    pub(crate) fn enter(&mut self, slot: &mut Slot, index: u32) {
        if slot.flags.set(Flags::READY) {
            self.queue.push_back(index);
        }
    }

    /// The current connection.
    pub(crate) fn current(&mut self) -> Option<u32> {
        if self.turn.is_none() {
            self.turn = self.queue.pop_front().map(|index| (index, self.quantum));
        }
        self.turn.map(|(index, _)| index)
    }

    /// The current connection has nothing to send.
    pub(crate) fn leave(&mut self, slots: &mut Slots) {
        if let Some((index, _)) = self.turn.take()
            && let Some(slot) = slots.slot_mut(index)
        {
            slot.flags.clear(Flags::READY);
        }
    }

    /// The connection at `index` used `bytes` of its turn, which ends if fewer than that are left.
    pub(crate) fn spend(&mut self, index: u32, bytes: u32) {
        if let Some((current, left)) = &mut self.turn
            && *current == index
        {
            *left = left.saturating_sub(bytes);
            if *left < bytes {
                self.turn = None;
                self.queue.push_back(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use std::vec;

    /// The order of `packets` packets if the connection `i` always has one of `sizes[i]` bytes.
    fn serve(quantum: u32, sizes: &[u32], packets: usize) -> Vec<u32> {
        let mut ready = Ready::new(quantum);
        let mut slots: Vec<Slot> = sizes.iter().map(|_| Slot::default()).collect();
        for (index, slot) in slots.iter_mut().enumerate() {
            ready.enter(slot, index as u32);
            ready.enter(slot, index as u32);
        }
        let mut served = vec![];
        for _ in 0..packets {
            let index = ready.current().unwrap();
            served.push(index);
            ready.spend(index, sizes[index as usize]);
        }
        served
    }

    #[test]
    fn full_packets_take_turns_one_by_one() {
        assert_eq!(serve(1_500, &[1_500, 1_500, 1_400], 7), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn small_packets_get_as_many_bytes_as_large_ones() {
        assert_eq!(serve(1_500, &[1_500, 500], 8), [0, 1, 1, 1, 0, 1, 1, 1]);
        let served = serve(65_535, &[65_000, 1_500], 440);
        let large = served.iter().filter(|index| **index == 0).count();
        assert_eq!(large, 10, "43 packets of 1,500 bytes for each of 65,000");
    }

    #[test]
    fn whoever_has_nothing_left_comes_again_when_it_is_woken() {
        let mut slots = Slots::default();
        let mut ready = Ready::new(1_500);
        assert_eq!(ready.current(), None);
        ready.leave(&mut slots);
        let mut slot = Slot::default();
        ready.enter(&mut slot, 3);
        assert_eq!((ready.current(), ready.is_empty()), (Some(3), false));
        ready.leave(&mut slots);
        assert!(ready.is_empty() && ready.current().is_none());
        slot.flags.clear(Flags::READY);
        ready.enter(&mut slot, 3);
        assert_eq!(ready.current(), Some(3));
    }
}
