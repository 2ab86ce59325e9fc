//! Whose turn it is: round robin over the connections that may have something to send.

use super::slots::{Flags, Slot, Slots};
use alloc::collections::VecDeque;

/// The ready queue. The connection whose turn it is goes on until it has nothing to send, or has sent a quantum;
/// in the latter case it goes to the end of the queue. So connections with small segments get as many bytes as
/// those with large ones. All is O(1).
#[derive(Debug)]
pub(super) struct Ready {
    /// Those who wait for their turn. [`Flags::READY`] says who stands here or has the turn.
    queue: VecDeque<u32>,
    /// Whose turn it is, and how many bytes are left of it.
    turn: Option<(u32, u32)>,
    /// IP bytes per turn.
    quantum: u32,
}

impl Ready {
    pub(super) const fn new(quantum: u32) -> Self {
        Self { queue: VecDeque::new(), turn: None, quantum }
    }

    /// Nobody has anything to send.
    pub(super) fn is_empty(&self) -> bool {
        self.turn.is_none() && self.queue.is_empty()
    }

    /// The connection at `index` may have something to send.
    pub(super) fn enter(&mut self, slot: &mut Slot, index: u32) {
        if slot.flags.set(Flags::READY) {
            self.queue.push_back(index);
        }
    }

    /// Whose turn it is.
    pub(super) fn current(&mut self) -> Option<u32> {
        if self.turn.is_none() {
            self.turn = self.queue.pop_front().map(|index| (index, self.quantum));
        }
        self.turn.map(|(index, _)| index)
    }

    /// The one whose turn it is has nothing to send.
    pub(super) fn leave(&mut self, slots: &mut Slots) {
        if let Some((index, _)) = self.turn.take()
            && let Some(slot) = slots.slot_mut(index)
        {
            slot.flags.clear(Flags::READY);
        }
    }

    /// The connection at `index` used `bytes` of its turn, which ends where as many again are not left.
    pub(super) fn spend(&mut self, index: u32, bytes: u32) {
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
