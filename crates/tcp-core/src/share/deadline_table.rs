//! A table of small records, each of which waits until an instant of its own.
//!
//! **Order.** Records that wait equally long stand in a queue, a *lane*, in the order in which they
//! began to wait. So the first of a lane ends first, and the first of all lanes is what the
//! endpoint wakes for.
//!
//! **Cost.** All operations are O(1), amortised where the arrays grow and shrink, and O(lanes)
//! where the lanes are compared. Records are stored without gaps: the last one moves into the place
//! of one that is removed. A place in the hash table takes 5 bytes per bucket, which is 6 to 12
//! bytes per record.

use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use hashbrown::HashTable;

/// The table: at most `LANES` lengths of time are told apart, 16 at most. With more, a record waits
/// as long as the next longer lane.
#[derive(Debug)]
pub(crate) struct DeadlineTable<R, const LANES: usize> {
    /// In no order.
    records: Vec<Waiting<R>>,
    /// Their places, by hash.
    places: HashTable<u32>,
    lanes: [Lane; LANES],
    /// Bytes allocated: asked for after each burst, and computed when they change.
    memory: usize,
}

/// A record of a [`DeadlineTable`].
pub(crate) trait Hashed {
    /// The hash by which the record is found. The hash table uses the lowest bits as position, and
    /// the seven highest as a tag.
    fn table_hash(&self) -> u64;
}

/// A record, and its place in its lane.
#[derive(Debug)]
struct Waiting<R> {
    /// When it began; never before the record ahead.
    since: Instant,
    /// The record ahead, or [`NIL`], and in the four highest bits the index of the lane: in a field
    /// of its own it would take eight bytes.
    ahead: u32,
    /// The record behind, or [`NIL`].
    behind: u32,
    record: R,
}

impl<R> Waiting<R> {
    const fn ahead(&self) -> u32 {
        self.ahead & NIL
    }

    const fn set_ahead(&mut self, ahead: u32) {
        self.ahead = self.ahead & !NIL | ahead;
    }

    const fn lane(&self) -> u8 {
        (self.ahead >> LANE_SHIFT) as u8
    }
}

/// The records that wait equally long, in the order in which they end.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// How long each of them waits.
    length: Duration,
    /// The one that ends first, or [`NIL`].
    first: u32,
    /// The one that ends last, or [`NIL`].
    last: u32,
}

/// Bits of a place.
const LANE_SHIFT: u32 = 28;
/// No record. There are fewer than 2^28: as many would take more than 16 GiB.
const NIL: u32 = (1 << LANE_SHIFT) - 1;
/// Capacity in records below which nothing shrinks.
pub(crate) const KEEP: usize = 64;

impl<R, const LANES: usize> Default for DeadlineTable<R, LANES> {
    fn default() -> Self {
        let lane = Lane { length: Duration::ZERO, first: NIL, last: NIL };
        Self { records: Vec::new(), places: HashTable::new(), lanes: [lane; LANES], memory: 0 }
    }
}

impl<R: Hashed, const LANES: usize> DeadlineTable<R, LANES> {
    /// Number of records.
    pub(crate) const fn len(&self) -> usize {
        self.records.len()
    }

    /// The place of the record with this hash for which `is_it` is true.
    pub(crate) fn find(&self, hash: u64, is_it: impl Fn(&R) -> bool) -> Option<u32> {
        self.places.find(hash, |at| is_it(&self.records[*at as usize].record)).copied()
    }

    /// The record at `place`.
    pub(crate) fn get(&self, place: u32) -> Option<&R> {
        self.records.get(place as usize).map(|waiting| &waiting.record)
    }

    /// The record at `place`.
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut R> {
        self.records.get_mut(place as usize).map(|waiting| &mut waiting.record)
    }

    /// When the record at `place` began to wait.
    pub(crate) fn since(&self, place: u32) -> Option<Instant> {
        self.records.get(place as usize).map(|waiting| waiting.since)
    }

    /// Adds a record, which must not be in the table, and which waits for `length` from `since` on.
    /// The array does not grow beyond `most` records. Returns its place.
    pub(crate) fn insert(&mut self, record: R, since: Instant, length: Duration, most: usize) -> u32 {
        let lane = self.lane_for(length);
        let hash = record.table_hash();
        let place = self.records.len() as u32;
        assert!(place < NIL, "no table has so many records");
        if self.records.len() == self.records.capacity() {
            // Not by doubling: spare capacity counts as memory per record.
            let quarter = (self.records.len() / 4).max(8);
            self.records.reserve_exact(quarter.min(most.saturating_sub(self.records.len())).max(1));
        }
        self.records.push(Waiting { since, ahead: NIL, behind: NIL, record });
        let records = &self.records;
        self.places.insert_unique(hash, place, |at| records[*at as usize].record.table_hash());
        self.enqueue(place, lane, since);
        self.measure();
        place
    }

    /// All records, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &R> {
        self.records.iter().map(|waiting| &waiting.record)
    }

    /// The record at `place` waits anew, for `length`.
    pub(crate) fn move_to(&mut self, place: u32, now: Instant, length: Duration) {
        if self.get(place).is_some() {
            self.unlink(place);
            let lane = self.lane_for(length);
            self.enqueue(place, lane, now);
        }
    }

    /// The record at `place` waits anew, as long as before.
    pub(crate) fn restart(&mut self, place: u32, now: Instant) {
        let Some(lane) = self.records.get(place as usize).map(Waiting::lane) else { return };
        self.unlink(place);
        self.enqueue(place, lane, now);
    }

    /// The instant and the place of the record that ends first.
    pub(crate) fn next(&self) -> Option<(Instant, u32)> {
        if self.records.is_empty() {
            return None;
        }
        self.firsts().map(|(first, lane)| (first.since + lane.length, lane.first)).min()
    }

    /// The place of the record that came first if each has waited before, altogether for as long as
    /// it does now.
    pub(crate) fn oldest(&self) -> Option<u32> {
        let began = |(first, lane): (&Waiting<R>, &Lane)| {
            let since = i128::from(first.since.as_nanos());
            (since - i128::from(lane.length.as_nanos()), lane.first)
        };
        self.firsts().map(began).min().map(|(_, place)| place)
    }

    /// The first record of each lane that has any.
    fn firsts(&self) -> impl Iterator<Item = (&Waiting<R>, &Lane)> {
        self.lanes.iter().filter_map(|lane| self.records.get(lane.first as usize).map(|first| (first, lane)))
    }

    /// The lane for a record that waits for `length`.
    fn lane_for(&mut self, length: Duration) -> u8 {
        let lanes = self.lanes.iter().enumerate();
        let used = lanes.clone().filter(|(_, lane)| lane.first != NIL);
        if let Some((same, _)) = used.clone().find(|(_, lane)| lane.length == length) {
            return same as u8;
        }
        if let Some((empty, _)) = lanes.clone().find(|(_, lane)| lane.first == NIL) {
            self.lanes[empty].length = length;
            return empty as u8;
        }
        let longer =
            used.clone().filter(|(_, lane)| lane.length > length).min_by_key(|(_, lane)| lane.length);
        let longest = used.max_by_key(|(_, lane)| lane.length);
        let (lane, _) = longer.or(longest).expect("there are lanes, and all are in use");
        // Nothing waits for less than it should.
        self.lanes[lane].length = self.lanes[lane].length.max(length);
        lane as u8
    }

    /// Puts a record that is in no lane at the end of `number`. One that began before those that
    /// are there stays as long as they.
    fn enqueue(&mut self, place: u32, number: u8, since: Instant) {
        let lane = &mut self.lanes[usize::from(number)];
        let last = core::mem::replace(&mut lane.last, place);
        let mut since = since;
        if let Some(last) = self.records.get_mut(last as usize) {
            last.behind = place;
            since = since.max(last.since);
        } else {
            lane.first = place;
        }
        let record = &mut self.records[place as usize];
        record.since = since;
        record.ahead = u32::from(number) << LANE_SHIFT | last;
        record.behind = NIL;
    }

    /// Takes a record out of its lane.
    fn unlink(&mut self, place: u32) {
        let record = &self.records[place as usize];
        let (ahead, behind, lane) = (record.ahead(), record.behind, record.lane());
        self.link(lane, ahead, behind);
    }

    /// Makes two records, or the ends of the lane, neighbours.
    fn link(&mut self, lane: u8, ahead: u32, behind: u32) {
        let lane = &mut self.lanes[usize::from(lane)];
        match self.records.get_mut(ahead as usize) {
            Some(record) => record.behind = behind,
            None => lane.first = behind,
        }
        match self.records.get_mut(behind as usize) {
            Some(record) => record.set_ahead(ahead),
            None => lane.last = ahead,
        }
    }

    /// Removes the record at `place`, where the last one goes instead.
    pub(crate) fn remove(&mut self, place: u32) -> Option<R> {
        let hash = self.get(place)?.table_hash();
        self.unlink(place);
        if let Ok(entry) = self.places.find_entry(hash, |at| *at == place) {
            entry.remove();
        }
        let last = (self.records.len() - 1) as u32;
        if last != place {
            let record = &self.records[last as usize];
            let (ahead, behind, lane) = (record.ahead(), record.behind, record.lane());
            if let Some(at) = self.places.find_mut(record.record.table_hash(), |at| *at == last) {
                *at = place;
            }
            self.link(lane, ahead, place);
            self.link(lane, place, behind);
        }
        let removed = self.records.swap_remove(place as usize);
        self.shrink();
        self.measure();
        Some(removed.record)
    }

    /// Gives memory back. Half full afterwards: many insertions or removals pass before the next
    /// resize.
    fn shrink(&mut self) {
        let len = self.records.len();
        if self.records.capacity() > KEEP && len < self.records.capacity() / 4 {
            self.records.shrink_to((2 * len).max(KEEP / 2));
        }
        if self.places.capacity() > KEEP && len < self.places.capacity() / 8 {
            let records = &self.records;
            let hash = |at: &u32| records[*at as usize].record.table_hash();
            self.places.shrink_to((2 * len).max(KEEP / 2), hash);
        }
    }

    /// Bytes allocated.
    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }

    fn measure(&mut self) {
        self.memory = self.records.capacity() * size_of::<Waiting<R>>() + self.places.allocation_size();
    }
}
