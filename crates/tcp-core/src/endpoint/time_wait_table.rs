//! Connections in TIME-WAIT that nobody holds any more, as records of 64 bytes.
//!
//! **Names.** A record is found by a keyed hash of its four-tuple, 96 bits of SipHash-1-3-128, instead of the tuple
//! itself, which takes 37 bytes: a segment that belongs to a record brings its addresses along. That a segment of
//! another connection finds a record is a matter of one in 2^96 per record, and nobody without the key can make one.
//!
//! **Order.** One connection waits as long as the next, unless they have different settings. So records stand in
//! a few queues (*lanes*), one per length, each in the order in which its records began to wait. The first of a lane
//! ends first, and the first of all lanes is what the endpoint wakes for, and what makes room in a full table.
//!
//! **Cost.** All operations are O(1), amortised where the arrays grow and shrink. Records are stored without gaps:
//! the last one moves into the place of one that ends. With its place in the hash table, 5 bytes per bucket, a
//! record takes 70 to 76 bytes, and up to a quarter more while the array has just grown.

use crate::conn::{Retired, TimeWait};
use crate::four_tuple::FourTuple;
use crate::rate_limit::ConnRateLimit;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use hashbrown::HashTable;
use siphasher::sip128::SipHasher13;

/// The records of an endpoint.
pub(super) struct TimeWaitTable {
    /// In no order.
    records: Vec<Record>,
    /// Their places, by name.
    places: HashTable<u32>,
    lanes: [Lane; LANES],
    hasher: SipHasher13,
}

/// The hash that stands for a four-tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name([u32; 3]);

impl Name {
    /// The hash in the form the hash table needs: it uses the lowest bits as position, and the seven highest as a
    /// tag.
    const fn table_hash(self) -> u64 {
        (self.0[0] as u64) << 32 | self.0[1] as u64
    }
}

/// A connection in TIME-WAIT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// When TIME-WAIT began, or began anew; never before the record ahead of it in its lane.
    since: Instant,
    /// Limit of the ACKs that anyone can provoke.
    pub(super) answers: ConnRateLimit,
    pub(super) numbers: TimeWait,
    name: Name,
    /// The record ahead in the lane, or [`NIL`].
    ahead: u32,
    /// The record behind in the lane, or [`NIL`].
    behind: u32,
    /// The type of service of its packets.
    pub(super) tos: u8,
    /// Their hop limit.
    pub(super) ttl: u8,
    /// Index of its lane.
    lane: u8,
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

/// Lengths that are told apart. With more, a record waits as long as the next longer lane.
const LANES: usize = 4;
/// Time in TIME-WAIT after which a connection of this side may use the four-tuple again: the peer's segments and ours
/// then show later timestamps than all from before, with clocks of up to a second per tick (RFC 7323, section 5.4).
const REUSE_AFTER: Duration = Duration::from_secs(1);

/// No record.
const NIL: u32 = u32::MAX;
/// Capacity in records below which nothing shrinks.
const KEEP: usize = 64;

impl TimeWaitTable {
    /// An empty table with a secret key, which must be random if peers are not trusted.
    pub(super) fn new(secret: [u8; 16]) -> Self {
        let lane = Lane { length: Duration::ZERO, first: NIL, last: NIL };
        Self {
            records: Vec::new(),
            places: HashTable::new(),
            lanes: [lane; LANES],
            hasher: SipHasher13::new_with_key(&secret),
        }
    }

    /// Number of records.
    pub(super) const fn len(&self) -> usize {
        self.records.len()
    }

    /// Bytes allocated.
    pub(super) fn memory(&self) -> usize {
        self.records.capacity() * size_of::<Record>() + self.places.allocation_size()
    }

    /// The name of `tuple`.
    pub(super) fn name(&self, tuple: &FourTuple) -> Name {
        let (low, high) = self.hasher.hash(tuple.as_bytes()).as_u64();
        Name([low as u32, (low >> 32) as u32, high as u32])
    }

    /// The record of `name`.
    pub(super) fn find(&self, name: Name) -> Option<&Record> {
        self.records.get(self.place(name)? as usize)
    }

    /// The record of `name`.
    pub(super) fn find_mut(&mut self, name: Name) -> Option<&mut Record> {
        let place = self.place(name)?;
        self.records.get_mut(place as usize)
    }

    /// The name of `tuple`, if it has a record.
    pub(super) fn look_up(&self, tuple: &FourTuple) -> Option<Name> {
        // Not worth a hash if there are none.
        if self.records.is_empty() {
            return None;
        }
        let name = self.name(tuple);
        self.place(name).map(|_| name)
    }

    /// True if a connection of this side with timestamps may use the four-tuple of `name` again (RFC 6191, section 2).
    pub(super) fn is_reusable(&self, now: Instant, name: Name) -> bool {
        self.find(name)
            .is_some_and(|record| record.numbers.has_timestamps() && now.since(record.since) >= REUSE_AFTER)
    }

    /// Adds a record, which must not be in the table. `default_ttl` is the endpoint's hop limit.
    pub(super) fn insert(&mut self, name: Name, retired: &Retired, default_ttl: u8) {
        let lane = self.lane_for(retired.length);
        let record = Record {
            since: retired.since,
            answers: retired.answers,
            numbers: retired.numbers,
            name,
            ahead: NIL,
            behind: NIL,
            tos: retired.tos,
            ttl: retired.ttl.unwrap_or(default_ttl),
            lane: lane as u8,
        };
        // The configured maximum of records is a u32.
        let place = self.records.len() as u32;
        if self.records.len() == self.records.capacity() {
            // Not by doubling: spare capacity counts as memory per record.
            self.records.reserve_exact((self.records.len() / 4).max(8));
        }
        self.records.push(record);
        let records = &self.records;
        self.places.insert_unique(name.table_hash(), place, |at| records[*at as usize].name.table_hash());
        self.enqueue(place, retired.since);
    }

    /// Removes the record of `name`.
    pub(super) fn remove(&mut self, name: Name) {
        if let Some(place) = self.place(name) {
            self.remove_at(place);
        }
    }

    /// TIME-WAIT of the record of `name` begins anew.
    pub(super) fn restart(&mut self, name: Name, now: Instant) {
        if let Some(place) = self.place(name) {
            self.unlink(place);
            self.enqueue(place, now);
        }
    }

    /// The end of the record that ends first.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.next().map(|(end, _)| end)
    }

    /// Removes the record that ends first; false if there is none.
    pub(super) fn remove_first(&mut self) -> bool {
        let first = self.next();
        if let Some((_, place)) = first {
            self.remove_at(place);
        }
        first.is_some()
    }

    /// Removes every record that ends by `now`.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((end, place)) = self.next()
            && end <= now
        {
            self.remove_at(place);
        }
    }

    fn next(&self) -> Option<(Instant, u32)> {
        let end = |lane: &Lane| {
            self.records.get(lane.first as usize).map(|record| (record.since + lane.length, lane.first))
        };
        self.lanes.iter().filter_map(end).min()
    }

    fn place(&self, name: Name) -> Option<u32> {
        self.places.find(name.table_hash(), |at| self.records[*at as usize].name == name).copied()
    }

    /// The lane for a record that waits for `length`.
    fn lane_for(&mut self, length: Duration) -> usize {
        let lanes = self.lanes.iter().enumerate();
        let used = lanes.clone().filter(|(_, lane)| lane.first != NIL);
        if let Some((same, _)) = used.clone().find(|(_, lane)| lane.length == length) {
            return same;
        }
        if let Some((empty, _)) = lanes.clone().find(|(_, lane)| lane.first == NIL) {
            self.lanes[empty].length = length;
            return empty;
        }
        let longer =
            used.clone().filter(|(_, lane)| lane.length > length).min_by_key(|(_, lane)| lane.length);
        let longest = used.max_by_key(|(_, lane)| lane.length);
        let (lane, _) = longer.or(longest).expect("there are lanes, and all are in use");
        // Nothing waits for less than it should.
        self.lanes[lane].length = self.lanes[lane].length.max(length);
        lane
    }

    /// Puts a record that is in no lane at the end of its own. One that a connection kept to itself for a while
    /// began before those that are there: it stays as long as they.
    fn enqueue(&mut self, place: u32, since: Instant) {
        let lane = &mut self.lanes[usize::from(self.records[place as usize].lane)];
        let last = core::mem::replace(&mut lane.last, place);
        let mut since = since;
        if let Some(last) = self.records.get_mut(last as usize) {
            last.behind = place;
            since = since.max(last.since);
        } else {
            lane.first = place;
        }
        let record = &mut self.records[place as usize];
        (record.since, record.ahead, record.behind) = (since, last, NIL);
    }

    /// Takes a record out of its lane.
    fn unlink(&mut self, place: u32) {
        let Record { ahead, behind, lane, .. } = self.records[place as usize];
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
            Some(record) => record.ahead = ahead,
            None => lane.last = ahead,
        }
    }

    /// Removes a record; the last one takes its place.
    fn remove_at(&mut self, place: u32) {
        self.unlink(place);
        let hash = self.records[place as usize].name.table_hash();
        if let Ok(entry) = self.places.find_entry(hash, |at| *at == place) {
            entry.remove();
        }
        let last = (self.records.len() - 1) as u32;
        if last != place {
            let Record { name, ahead, behind, lane, .. } = self.records[last as usize];
            if let Some(at) = self.places.find_mut(name.table_hash(), |at| *at == last) {
                *at = place;
            }
            self.link(lane, ahead, place);
            self.link(lane, place, behind);
        }
        self.records.swap_remove(place as usize);
        self.shrink();
    }

    /// Gives memory back. Half full afterwards: many insertions or removals pass before the next resize.
    fn shrink(&mut self) {
        let len = self.records.len();
        if self.records.capacity() > KEEP && len < self.records.capacity() / 4 {
            self.records.shrink_to((2 * len).max(KEEP / 2));
        }
        if self.places.capacity() > KEEP && len < self.places.capacity() / 8 {
            let records = &self.records;
            let hash = |at: &u32| records[*at as usize].name.table_hash();
            self.places.shrink_to((2 * len).max(KEEP / 2), hash);
        }
    }
}

impl core::fmt::Debug for TimeWaitTable {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("TimeWaitTable").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{KEEP, Record, TimeWaitTable};
    use crate::conn::{Retired, TimeWait};
    use crate::four_tuple::FourTuple;
    use crate::rate_limit::ConnRateLimit;
    use crate::time::{Duration, Instant};
    use core::net::SocketAddr;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn retired(since: Instant, length: Duration) -> Retired {
        let (answers, ttl) = (ConnRateLimit::default(), Some(64));
        Retired { numbers: TimeWait::for_test(), since, length, answers, tos: 0, ttl }
    }

    #[test]
    fn record_takes_64_bytes_and_memory_follows_the_number_of_records() {
        assert_eq!(size_of::<Record>(), 64, "with its name, for either family");
        let mut table = TimeWaitTable::new([1; 16]);
        let (mut total, mut worst) = (0, 0);
        for number in 0..100_000 {
            table.insert(
                table.name(&FourTuple::numbered(number)),
                &retired(Instant::ZERO, Duration::from_secs(60)),
                64,
            );
            let bytes = table.memory() / table.len().max(30);
            total += bytes;
            worst = worst.max(bytes);
        }
        // A quarter of the records, and 5 bytes in each of up to two and a quarter buckets.
        assert!(worst <= 64 * 5 / 4 + 12, "{worst} bytes");
        assert!((64..=82).contains(&(total / 100_000)), "{} bytes on average", total / 100_000);
        for number in 0..100_000 {
            table.remove(table.name(&FourTuple::numbered(number)));
            assert!(
                table.memory() <= 4 * 100 * table.len().max(KEEP),
                "{} for {}",
                table.memory(),
                table.len()
            );
        }
    }

    #[test]
    fn name_depends_on_the_secret_and_on_every_byte() {
        let table = TimeWaitTable::new([1; 16]);
        for number in [6, 7] {
            let tuple = FourTuple::numbered(number);
            let (local, remote) = (tuple.local(), tuple.remote());
            let name = table.name(&tuple);
            assert_eq!(name, table.name(&FourTuple::new(local, remote)));
            assert_ne!(name, TimeWaitTable::new([2; 16]).name(&tuple));
            assert_ne!(name, table.name(&FourTuple::new(remote, local)), "not symmetric");
            let with_port = |port| SocketAddr::new(remote.ip(), port);
            assert_ne!(name, table.name(&FourTuple::new(local, with_port(remote.port() + 1))));
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u32, u64),
        Remove(u32),
        Restart(u32),
        Pass(u64),
        RemoveFirst,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u32..16, 0u64..3).prop_map(|(number, kept)| Step::Insert(number, kept)),
            (0u32..16).prop_map(Step::Remove),
            (0u32..16).prop_map(Step::Restart),
            (0u64..3).prop_map(Step::Pass),
            Just(Step::RemoveFirst),
        ]
    }

    proptest! {
        /// Against a list in the order of the queue. Numbers have one of three lengths.
        #[test]
        fn behaves_as_a_list(steps in prop::collection::vec(step(), 0..120)) {
            let length = |number: u32| Duration::from_secs(5 * (1 + u64::from(number) % 3));
            let mut table = TimeWaitTable::new([3; 16]);
            let mut now = Instant::from_secs(100);
            let mut model: Vec<(Instant, u32)> = Vec::new();
            let push = |model: &mut Vec<(Instant, u32)>, since: Instant, number: u32| {
                let same = model.iter().filter(|(_, other)| length(*other) == length(number));
                let last = same.map(|(since, _)| *since).max();
                model.push((last.map_or(since, |last| last.max(since)), number));
            };
            for step in steps {
                match step {
                    Step::Insert(number, kept) => {
                        if model.iter().all(|(_, other)| *other != number) {
                            let since = now - Duration::from_secs(kept);
                            let name = table.name(&FourTuple::numbered(number));
                            table.insert(name, &retired(since, length(number)), 64);
                            push(&mut model, since, number);
                        }
                    }
                    Step::Remove(number) => {
                        table.remove(table.name(&FourTuple::numbered(number)));
                        model.retain(|(_, other)| *other != number);
                    }
                    Step::Restart(number) => {
                        table.restart(table.name(&FourTuple::numbered(number)), now);
                        if model.iter().any(|(_, other)| *other == number) {
                            model.retain(|(_, other)| *other != number);
                            push(&mut model, now, number);
                        }
                    }
                    Step::Pass(seconds) => {
                        now += Duration::from_secs(seconds);
                        table.expire(now);
                        model.retain(|(since, number)| *since + length(*number) > now);
                    }
                    Step::RemoveFirst => {
                        let before = table.next_end();
                        let was_there = table.remove_first();
                        prop_assert_eq!(was_there, !model.is_empty());
                        let end = |&(since, number): &(Instant, u32)| since + length(number);
                        prop_assert_eq!(before, model.iter().map(end).min());
                        // Any of those that end at that time.
                        model.retain(|&(_, number)| table.look_up(&FourTuple::numbered(number)).is_some());
                    }
                }
                prop_assert_eq!(table.len(), model.len());
                let end = |&(since, number): &(Instant, u32)| since + length(number);
                prop_assert_eq!(table.next_end(), model.iter().map(end).min());
                for number in 0..16 {
                    let known = model.iter().find(|(_, other)| *other == number);
                    let name = table.look_up(&FourTuple::numbered(number));
                    prop_assert_eq!(name.is_some(), known.is_some());
                    let since = name.and_then(|name| table.find(name)).map(|record| record.since);
                    prop_assert_eq!(since, known.map(|(since, _)| *since));
                }
            }
        }
    }
}
