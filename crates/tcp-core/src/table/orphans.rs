//! Orphans: connections that the application has released and that still have something to deliver,
//! or wait for the peer's FIN.
//!
//! Nobody waits for them any more, so the endpoint gives up on them. It ends with an RST
//!
//! - those whose peer has acknowledged nothing new for [`EndpointConfig::orphan_timeout`]. A peer
//!   that answers each probe and keeps its window closed is alive (RFC 9293, section 3.8.6.1), but
//!   ending the connection is a matter of resources, not of TCP (RFC 6429, section 4).
//! - the one whose last progress is the longest ago, if there are more than
//!   [`EndpointConfig::max_orphans`].
//!
//! All orphans have the same timeout, so the order of their last progress is also that of their
//! deadlines: two linked lists in this order serve both limits, and every operation is O(1). The
//! second list has the orphans in FIN-WAIT-2. These have delivered everything, and have a
//! [timer](crate::ConnConfig::fin_wait_2) of their own.

use super::Table;
use super::slots::Slot;
use crate::config::EndpointConfig;
use crate::events::{WakeReason, Wakeup};
use crate::seq::SeqNum;
use crate::share::Cx;
use crate::state::State;
use crate::time::Instant;
use alloc::vec::Vec;
use core::num::NonZeroU32;

/// What an orphan waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// For the ACK of data, of its FIN or of its SYN.
    ForAck,
    /// For the peer's FIN, in FIN-WAIT-2.
    ForFin,
}

impl Waits {
    /// `None` if a connection in `state` is no orphan: it has ended, or is in TIME-WAIT.
    const fn in_state(state: State) -> Option<Self> {
        match state {
            State::Closed | State::TimeWait => None,
            State::FinWait2 => Some(Self::ForFin),
            _ => Some(Self::ForAck),
        }
    }
}

/// The number of an entry, plus one.
type EntryIndex = NonZeroU32;

/// The orphans of an endpoint. See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// Indexed by place; free ones are in `free`.
    entries: Vec<Entry>,
    free: Vec<EntryIndex>,
    /// By [`Waits`].
    lists: [List; 2],
}

/// First and last entry of a list: the least and the most recent progress.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    first: Option<EntryIndex>,
    last: Option<EntryIndex>,
}

/// One orphan.
#[derive(Debug)]
struct Entry {
    /// Its last progress, or its release.
    since: Instant,
    /// Its SND.UNA then.
    una: SeqNum,
    /// Its index among the connections.
    index: u32,
    /// The entries before and after it in its list.
    before: Option<EntryIndex>,
    after: Option<EntryIndex>,
    waits: Waits,
}

impl Orphans {
    /// Number of orphans.
    pub(crate) const fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// The orphan at `place`, which is not free.
    fn entry(&mut self, place: EntryIndex) -> &mut Entry {
        &mut self.entries[place.get() as usize - 1]
    }

    /// A new orphan.
    fn enter(&mut self, entry: Entry) -> EntryIndex {
        let place = match self.free.pop() {
            Some(place) => {
                *self.entry(place) = entry;
                place
            }
            None => {
                self.entries.push(entry);
                // There are no more orphans than connections, whose indices are below 2^30.
                EntryIndex::MIN.saturating_add(self.entries.len() as u32 - 1)
            }
        };
        self.append(place);
        place
    }

    /// The orphan at `place` is none any more.
    fn leave(&mut self, place: EntryIndex) {
        self.unlink(place);
        self.free.push(place);
    }

    /// Follows the orphan at `place`, which now waits for `waits` with SND.UNA at `una`.
    fn follow(&mut self, now: Instant, place: EntryIndex, waits: Waits, una: SeqNum) {
        let entry = self.entry(place);
        if entry.una == una && entry.waits == waits {
            return;
        }
        self.unlink(place);
        let entry = self.entry(place);
        (entry.since, entry.una, entry.waits) = (now, una, waits);
        self.append(place);
    }

    /// Makes `place` the last of its list.
    fn append(&mut self, place: EntryIndex) {
        let list = self.entry(place).waits as usize;
        let last = self.lists[list].last.replace(place);
        match last {
            Some(last) => self.entry(last).after = Some(place),
            None => self.lists[list].first = Some(place),
        }
        let entry = self.entry(place);
        (entry.before, entry.after) = (last, None);
    }

    /// Takes `place` out of its list.
    fn unlink(&mut self, place: EntryIndex) {
        let &mut Entry { before, after, waits, .. } = self.entry(place);
        match before {
            Some(before) => self.entry(before).after = after,
            None => self.lists[waits as usize].first = after,
        }
        match after {
            Some(after) => self.entry(after).before = before,
            None => self.lists[waits as usize].last = before,
        }
    }

    /// The orphan that has waited for the longest for `waits`: since when, and its index.
    fn first(&self, waits: Waits) -> Option<(Instant, u32)> {
        let place = self.lists[waits as usize].first?;
        self.entries.get(place.get() as usize - 1).map(|entry| (entry.since, entry.index))
    }

    /// The index of the orphan whose last progress is the longest ago.
    pub(crate) fn stalest(&self) -> Option<u32> {
        let firsts = [Waits::ForAck, Waits::ForFin].into_iter().filter_map(|waits| self.first(waits));
        firsts.min_by_key(|(since, _)| *since).map(|(_, index)| index)
    }

    /// Notes what the orphan in `slot` has come to. True if it is none any more.
    pub(crate) fn settle(&mut self, now: Instant, slot: &mut Slot) -> bool {
        let Some((place, conn)) = slot.place().zip(slot.conn.as_deref()) else { return false };
        let waits = Waits::in_state(conn.state());
        match waits {
            Some(waits) => self.follow(now, place, waits, conn.snd_una()),
            None => {
                slot.take_place();
                self.leave(place);
            }
        }
        waits.is_none()
    }
}

impl Table {
    /// The application has released the connection at `index`, which is an orphan from now on,
    /// unless it has ended.
    pub(crate) fn orphan(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.slot_mut(index) else { return };
        let Some(conn) = slot.conn.as_deref() else { return };
        let Some(waits) = Waits::in_state(conn.state()) else { return };
        let entry = Entry { since: now, una: conn.snd_una(), index, before: None, after: None, waits };
        slot.set_place(self.orphans.enter(entry));
    }

    /// When the next orphan will have waited for too long.
    pub(crate) fn orphan_deadline(&self, config: &EndpointConfig) -> Option<Wakeup> {
        let (since, index) = self.orphans.first(Waits::ForAck)?;
        let at = since + config.orphan_timeout?;
        Some(Wakeup::new(at, WakeReason::Orphan, Some(self.slots.id(index))))
    }

    /// The connection at `index` is no orphan any more.
    pub(crate) fn adopt(&mut self, index: u32) {
        if let Some(place) = self.slots.slot_mut(index).and_then(Slot::take_place) {
            self.orphans.leave(place);
        }
    }

    /// Shows their number among the counters.
    pub(crate) fn count_orphans(&self, cx: &mut Cx<'_>) {
        cx.observe.counters.tcp_curr_orphans = self.orphans.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    fn entry(at: u64, index: u32, waits: Waits) -> Entry {
        let since = Instant::from_secs(at);
        Entry { since, una: SeqNum(0), index, before: None, after: None, waits }
    }

    /// Against a plain list, sorted by last progress, with every operation in a pseudo-random
    /// order.
    #[test]
    fn the_lists_are_in_the_order_of_progress() {
        let mut orphans = Orphans::default();
        // Entry, index, SND.UNA and what it waits for; the stalest first.
        let mut model: Vec<(EntryIndex, u32, u32, Waits)> = vec![];
        let mut random = 1_u32;
        for step in 0..20_000 {
            let mut draw = |below: u32| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (random >> 16) % below
            };
            let now = Instant::from_secs(step);
            let waits = if draw(3) == 0 { Waits::ForFin } else { Waits::ForAck };
            let (action, at) = (draw(4), draw(64) as usize);
            if action == 0 && model.len() < 64 {
                let index = step as u32;
                model.push((orphans.enter(entry(step, index, waits)), index, 0, waits));
            } else if at < model.len() {
                let (place, index, una, before) = model[at];
                let una = una + draw(2);
                match action {
                    1 => {
                        orphans.leave(place);
                        model.remove(at);
                    }
                    _ => {
                        orphans.follow(now, place, waits, SeqNum(una));
                        if (model[at].2, before) != (una, waits) {
                            model.remove(at);
                            model.push((place, index, una, waits));
                        }
                    }
                }
            }
            assert_eq!(orphans.len(), model.len());
            assert_eq!(orphans.stalest(), model.first().map(|it| it.1));
            for waits in [Waits::ForAck, Waits::ForFin] {
                let first = model.iter().find(|it| it.3 == waits).map(|it| it.1);
                assert_eq!(orphans.first(waits).map(|(_, index)| index), first);
            }
        }
        assert!(orphans.entries.len() <= 64, "places are used again");
    }
}
