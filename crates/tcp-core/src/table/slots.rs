//! Storage of connections: a slab whose handles are never reused.

use crate::conn::{Connection, Notices};
use crate::id::ConnId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU32;

/// What the endpoint keeps per connection outside the connection itself.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The connection; `None` in a free slot.
    pub(crate) conn: Option<Box<Connection>>,
    /// Part of the handle; different for each connection that uses the slot.
    generation: u32,
    /// What the connection counts against: until the application accepts it, the backlog of the
    /// listener with this number; once it has [released](Flags::RELEASED) it, the limit of orphans,
    /// with this place among them.
    counts: Option<NonZeroU32>,
    /// Descriptors of the connection in the egress scheduler.
    pub(crate) queued: u32,
    /// Pending notices for the application.
    pub(crate) notices: Notices,
    pub(crate) flags: Flags,
    /// The [corking turn](super::egress::Egress::turn) in which the connection last sent new data.
    pub(crate) sent_in: u8,
}

/// Flags of a slot. Those about queues outlive the connection: they tell whether the slot's index
/// is in the queue, so that no queue ever contains an index twice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags(u16);

impl Flags {
    /// The index is in the ready queue.
    pub(crate) const READY: u16 = 1;
    /// The scheduler deferred the connection's data.
    pub(crate) const DEFERRED: u16 = 2;
    /// The index is in the event queue.
    pub(crate) const EVENTS: u16 = 4;
    /// The application has released the connection.
    pub(crate) const RELEASED: u16 = 8;
    /// The index is in the queue of deferred connections.
    pub(crate) const IN_DEFERRED: u16 = 16;
    /// The index is in the list of connections to settle.
    pub(crate) const TOUCHED: u16 = 32;
    /// Segments find the connection by its four-tuple.
    pub(crate) const NAMED: u16 = 64;
    /// The index is in the list of connections whose pure ACK is held.
    pub(crate) const KEPT: u16 = 128;
    /// The application has the connection's `Accepted` event.
    pub(crate) const OFFERED: u16 = 256;
    /// The connection counts as a pending one of fast open.
    pub(crate) const EARLY: u16 = 512;
    /// The notices have been taken since the connection was touched; the rest is to be settled.
    pub(crate) const NOTICED: u16 = 1_024;

    /// True if `flag` is set, or one of several.
    pub(crate) const fn has(self, flag: u16) -> bool {
        self.0 & flag != 0
    }

    /// True if all of `flags` are set.
    pub(crate) const fn has_all(self, flags: u16) -> bool {
        self.0 & flags == flags
    }

    /// Sets `flag`; false if it was already set.
    pub(crate) const fn set(&mut self, flag: u16) -> bool {
        let new = !self.has(flag);
        self.0 |= flag;
        new
    }

    /// Clears `flag`; false if it was not set.
    pub(crate) const fn clear(&mut self, flag: u16) -> bool {
        let was = self.has(flag);
        self.0 &= !flag;
        was
    }
}

impl Slot {
    /// The handle of the current or next connection in this slot, which is at `index`.
    pub(crate) const fn id(&self, index: u32) -> ConnId {
        ConnId { index, generation: self.generation }
    }

    /// True if another event of a burst needs nothing: the first one has done everything.
    #[inline]
    pub(crate) const fn is_touched(&self) -> bool {
        self.queued == 0 && self.flags.has_all(Flags::TOUCHED | Flags::READY)
    }

    /// The listener whose backlog the connection counts against.
    pub(crate) const fn listener(&self) -> Option<NonZeroU32> {
        if self.flags.has(Flags::RELEASED) { None } else { self.counts }
    }

    /// The connection counts against the backlog of this listener.
    pub(crate) const fn set_listener(&mut self, number: NonZeroU32) {
        self.counts = Some(number);
    }

    /// The connection leaves the backlog.
    pub(crate) const fn take_listener(&mut self) -> Option<NonZeroU32> {
        if self.flags.has(Flags::RELEASED) { None } else { self.counts.take() }
    }

    /// The connection's place among the orphans.
    pub(crate) const fn place(&self) -> Option<NonZeroU32> {
        if self.flags.has(Flags::RELEASED) { self.counts } else { None }
    }

    /// The connection, which the application has released, is an orphan.
    pub(crate) const fn set_place(&mut self, place: NonZeroU32) {
        self.counts = Some(place);
    }

    /// The connection is no orphan any more.
    pub(crate) const fn take_place(&mut self) -> Option<NonZeroU32> {
        if self.flags.has(Flags::RELEASED) { self.counts.take() } else { None }
    }

    /// The connection has these notices for the application. True if its index is to enter the
    /// event queue.
    pub(crate) fn take_in(&mut self, notices: Notices) -> bool {
        if notices.is_empty() || self.flags.has(Flags::RELEASED) {
            return false;
        }
        self.notices.add(notices);
        !self.is_unheld() && self.flags.set(Flags::EVENTS)
    }

    /// Only the endpoint refers to the connection: it is forgotten as soon as it has ended.
    pub(crate) const fn is_unheld(&self) -> bool {
        self.flags.has(Flags::RELEASED)
            || (self.counts.is_some()
                && !self.flags.has(Flags::OFFERED)
                && !self.notices.contains(Notices::ACCEPTED))
    }
}

/// The slab.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    /// Indices of free slots; the last one freed is used first.
    free: Vec<u32>,
}

impl Slots {
    /// Number of connections.
    pub(crate) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Stores the connection that `make` creates for its handle.
    pub(crate) fn insert(&mut self, make: impl FnOnce(ConnId) -> Box<Connection>) -> ConnId {
        let index = self.free.pop().unwrap_or_else(|| {
            if self.slots.len() == self.slots.capacity() {
                // Not by doubling: spare capacity counts as memory per connection.
                self.slots.reserve_exact((self.slots.len() / 8).max(8));
            }
            self.slots.push(Slot::default());
            // The configured maximum of connections is a u32.
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        let id = ConnId { index, generation: slot.generation };
        slot.conn = Some(make(id));
        id
    }

    /// Removes a connection. Its handle no longer matches anything.
    pub(crate) fn remove(&mut self, index: u32) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut(index as usize)?;
        let conn = slot.conn.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        slot.counts = None;
        slot.queued = 0;
        slot.notices = Notices::default();
        slot.flags.clear(Flags::RELEASED | Flags::DEFERRED | Flags::NAMED | Flags::OFFERED);
        self.free.push(index);
        Some(conn)
    }

    /// Number of slots, whether used or free.
    pub(crate) const fn places(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The slot at `index`, whether used or free.
    pub(crate) fn slot(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)
    }

    /// The slot at `index`, whether used or free.
    pub(crate) fn slot_mut(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)
    }

    /// The connection at `index`.
    pub(crate) fn conn(&self, index: u32) -> Option<&Connection> {
        self.slots.get(index as usize)?.conn.as_deref()
    }

    /// The connection at `index`.
    pub(crate) fn conn_mut(&mut self, index: u32) -> Option<&mut Connection> {
        self.slots.get_mut(index as usize)?.conn.as_deref_mut()
    }

    /// The handle of the current or next connection at `index`.
    pub(crate) fn id(&self, index: u32) -> ConnId {
        self.slots.get(index as usize).map_or(ConnId { index, generation: 0 }, |slot| slot.id(index))
    }

    /// The handles of the connections at `from` and behind.
    pub(crate) fn ids(&self, from: usize) -> impl Iterator<Item = ConnId> + '_ {
        let held = |(index, slot): (usize, &Slot)| slot.conn.is_some().then(|| slot.id(index as u32));
        self.slots.iter().enumerate().skip(from).filter_map(held)
    }

    /// The slot of a connection that still exists.
    pub(crate) fn get_mut(&mut self, id: ConnId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(id.index as usize)?;
        (slot.generation == id.generation && slot.conn.is_some()).then_some(slot)
    }

    /// The indices of all connections selected by `which`, lowest first.
    pub(crate) fn indices_where(&self, which: impl Fn(&Slot) -> bool) -> Vec<u32> {
        let picked =
            |(index, slot): (usize, &Slot)| (slot.conn.is_some() && which(slot)).then_some(index as u32);
        self.slots.iter().enumerate().filter_map(picked).collect()
    }
}
