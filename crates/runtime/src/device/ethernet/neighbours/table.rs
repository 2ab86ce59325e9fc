//! The neighbour table: bounded, with an eviction order.
//!
//! A flood must not evict neighbours in use. Entries are in four classes; the lowest class that is
//! not empty loses its least recently used entry. So hosts that send requests (or pretend to)
//! replace each other, as do addresses that nobody answers for; gateways and fixed entries are
//! never evicted.

use super::entry::NeighbourState;
use ackline_tcp_core::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// An entry's place in the order of use is updated at most this often.
const USE_GRANULARITY: Duration = Duration::from_secs(1);

/// Where an entry is. It stays there until the entry is forgotten.
pub(super) type Slot = u32;

/// The order of eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Learned from its own request; nothing was sent to it.
    Learned,
    /// Asked for, and silent so far.
    Unresolved,
    /// Packets were sent to it.
    Used,
    /// A gateway or fixed entry.
    Kept,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) ip: IpAddr,
    pub(super) state: NeighbourState,
    /// Never evicted.
    keep: bool,
    used: bool,
    /// Its place in `order`.
    place: (Class, Instant),
    /// Its place in `deadlines`.
    deadline: Option<Instant>,
}

impl Entry {
    const fn class(&self) -> Class {
        match (self.keep, &self.state, self.used) {
            (true, ..) => Class::Kept,
            (false, NeighbourState::Incomplete { .. }, _) => Class::Unresolved,
            (false, _, true) => Class::Used,
            (false, _, false) => Class::Learned,
        }
    }
}

/// Which entries a new one may evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Anything but a gateway.
    ByUse,
    /// Only what was learned in the same way.
    ByLearned,
}

/// All entries. Lookup, update and next deadline cost O(log n).
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Option<Entry>>,
    free: Vec<Slot>,
    by_ip: BTreeMap<IpAddr, Slot>,
    order: BTreeSet<(Class, Instant, Slot)>,
    deadlines: BTreeSet<(Instant, Slot)>,
    /// Addresses that are never evicted.
    kept: Vec<IpAddr>,
    max_entries: usize,
    /// Number of changes.
    version: u64,
}

impl Table {
    pub(super) fn new(max_entries: usize, kept: Vec<IpAddr>) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_ip: BTreeMap::new(),
            order: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            max_entries: max_entries.max(1).saturating_add(kept.len()),
            kept,
            version: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_ip.len()
    }

    /// A number that changes with the table.
    pub(super) const fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn find(&self, ip: IpAddr) -> Option<Slot> {
        self.by_ip.get(&ip).copied()
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Entry> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Adds a neighbour that is not in the table, and returns the one it evicted. `None` if none
    /// may be evicted.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        ip: IpAddr,
        state: NeighbourState,
        room: Room,
    ) -> Option<(Slot, Option<Entry>)> {
        self.version += 1;
        let evicted = if self.by_ip.len() < self.max_entries {
            None
        } else {
            let &(class, _, slot) = self.order.first()?;
            let may_go = match room {
                Room::ByUse => class < Class::Kept,
                Room::ByLearned => class == Class::Learned,
            };
            if !may_go {
                return None;
            }
            self.remove(slot)
        };
        let mut entry = Entry {
            ip,
            state,
            keep: self.kept.contains(&ip),
            used: room == Room::ByUse,
            place: (Class::Learned, now),
            deadline: state.deadline(),
        };
        entry.place.0 = entry.class();
        let (class, deadline) = (entry.place.0, entry.deadline);
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = Slot::try_from(self.slots.len()).ok()?;
                self.slots.push(None);
                slot
            }
        };
        if let Some(place) = self.slots.get_mut(slot as usize) {
            *place = Some(entry);
        }
        self.by_ip.insert(ip, slot);
        self.order.insert((class, now, slot));
        self.deadlines.extend(deadline.map(|at| (at, slot)));
        Some((slot, evicted))
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Option<Entry> {
        self.version += 1;
        let entry = self.slots.get_mut(slot as usize)?.take()?;
        let (class, at) = entry.place;
        self.order.remove(&(class, at, slot));
        if let Some(at) = entry.deadline {
            self.deadlines.remove(&(at, slot));
        }
        self.by_ip.remove(&entry.ip);
        self.free.push(slot);
        Some(entry)
    }

    /// Applies `change` to a neighbour's state, and keeps the orderings consistent.
    pub(super) fn update<R>(
        &mut self,
        slot: Slot,
        change: impl FnOnce(&mut NeighbourState) -> R,
    ) -> Option<R> {
        self.version += 1;
        let entry = self.slots.get_mut(slot as usize)?.as_mut()?;
        let outcome = change(&mut entry.state);
        let deadline = entry.state.deadline();
        if deadline != entry.deadline {
            if let Some(at) = std::mem::replace(&mut entry.deadline, deadline) {
                self.deadlines.remove(&(at, slot));
            }
            self.deadlines.extend(deadline.map(|at| (at, slot)));
        }
        let at = entry.place.1;
        Self::reorder(&mut self.order, slot, entry, at);
        Some(outcome)
    }

    /// A packet is sent to the neighbour.
    pub(super) fn touch(&mut self, now: Instant, slot: Slot) {
        let Some(Some(entry)) = self.slots.get_mut(slot as usize) else { return };
        if !entry.used || now.since(entry.place.1) >= USE_GRANULARITY {
            entry.used = true;
            Self::reorder(&mut self.order, slot, entry, now);
        }
    }

    fn reorder(order: &mut BTreeSet<(Class, Instant, Slot)>, slot: Slot, entry: &mut Entry, at: Instant) {
        let place = (entry.class(), at);
        let (class, before) = std::mem::replace(&mut entry.place, place);
        if (class, before) != place {
            order.remove(&(class, before, slot));
            order.insert((place.0, place.1, slot));
        }
    }

    /// All slots, taken or not.
    pub(super) fn slots(&self) -> std::ops::Range<Slot> {
        // No slot is made whose number does not fit.
        0..Slot::try_from(self.slots.len()).unwrap_or(Slot::MAX)
    }

    /// When the earliest deadline is.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// A neighbour whose deadline has passed.
    pub(super) fn due(&self, now: Instant) -> Option<Slot> {
        self.deadlines.first().filter(|(at, _)| *at <= now).map(|&(_, slot)| slot)
    }
}
