//! Packets that wait in the egress scheduler.
//!
//! A reserved packet counts against the window and pipe; departure time, RTT and RTO begin when it
//! leaves. New data leaves in order of sequence whatever order the scheduler pops in: a pop names a
//! slot, and the oldest reserved data takes it.

use crate::packet::SendReason;
use crate::plan::Plan;
use crate::seq::SeqNum;
use alloc::collections::VecDeque;

/// One reserved packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reservation {
    pub(crate) out: Plan,
    /// Key of the scheduler's descriptor.
    pub(crate) serial: u64,
    /// Carries data (or a FIN) that never left.
    pub(crate) new: bool,
}

/// The reserved packets of one connection.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    queue: VecDeque<Reservation>,
    /// Sequence numbers of new data among them.
    new_bytes: u32,
    /// Serials of what became void.
    voided: VecDeque<u64>,
}

impl Reservations {
    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        self.queue.capacity() * size_of::<Reservation>() + self.voided.capacity() * size_of::<u64>()
    }

    /// Sequence numbers reserved past SND.NXT.
    pub(crate) const fn new_bytes(&self) -> u32 {
        self.new_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.voided.is_empty()
    }

    /// A packet with stream bytes is reserved.
    pub(crate) fn holds_data(&self) -> bool {
        self.queue.iter().any(|reserved| reserved.out.class.is_data())
    }

    /// A packet with such a reason is reserved.
    pub(crate) fn holds(&self, such: impl Fn(SendReason) -> bool) -> bool {
        self.queue.iter().any(|reserved| such(reserved.out.reason))
    }

    pub(crate) fn push(&mut self, out: Plan, serial: u64, new: bool) {
        if new {
            self.new_bytes += out.seq_len();
        }
        self.queue.push_back(Reservation { out, serial, new });
    }

    /// The packet that leaves in the slot `serial`: the one that was reserved under it, or the
    /// oldest new data if that is new data. Both exchange their slots then.
    pub(crate) fn find(&mut self, serial: u64) -> Option<Reservation> {
        // The common scheduler pops in the order in which packets were pushed.
        if let Some(first) = self.queue.front()
            && first.serial == serial
        {
            return Some(*first);
        }
        let Some(named) = self.queue.iter().position(|entry| entry.serial == serial) else {
            // The slot is gone from the scheduler: there is nothing left to report.
            self.voided.retain(|voided| *voided != serial);
            return None;
        };
        let entry = *self.queue.get(named)?;
        if !entry.new {
            return Some(entry);
        }
        let oldest = self.queue.iter().position(|entry| entry.new)?;
        if oldest != named
            && let Some(serial) = self.queue.get(oldest).map(|entry| entry.serial)
        {
            if let Some(slot) = self.queue.get_mut(named) {
                slot.serial = serial;
            }
            if let Some(slot) = self.queue.get_mut(oldest) {
                slot.serial = entry.serial;
            }
        }
        self.queue.get(oldest).copied()
    }

    /// Removes the reservation that ends at `end`.
    pub(crate) fn remove(&mut self, end: SeqNum, new: bool) -> Option<Reservation> {
        let wanted = |entry: &Reservation| entry.new == new && entry.out.end() == end;
        let entry = if wanted(self.queue.front()?) {
            self.queue.pop_front()?
        } else {
            let i = self.queue.iter().position(wanted)?;
            self.queue.remove(i)?
        };
        if new {
            self.new_bytes -= entry.out.seq_len();
        }
        Some(entry)
    }

    /// Removes the first retransmission that `void` names; its serial is to be reported.
    pub(crate) fn take_void(&mut self, void: impl Fn(&Reservation) -> bool) -> Option<Reservation> {
        let i = self.queue.iter().position(|entry| !entry.new && void(entry))?;
        let entry = self.queue.remove(i)?;
        self.voided.push_back(entry.serial);
        Some(entry)
    }

    /// All new data becomes void, but for the slot `except`, which the scheduler has popped.
    pub(crate) fn void_new(&mut self, except: Option<u64>) {
        let voided = &mut self.voided;
        self.queue.retain(|entry| {
            if entry.new && Some(entry.serial) != except {
                voided.push_back(entry.serial);
            }
            !entry.new
        });
        self.new_bytes = 0;
    }

    pub(crate) fn take_voided(&mut self) -> Option<u64> {
        self.voided.pop_front()
    }
}
