//! Connections in TIME-WAIT that nobody holds any more, as records of 64 bytes in a
//! [`DeadlineTable`].
//!
//! **Names.** A record is found by a keyed hash of its four-tuple, 96 bits of SipHash-1-3-128,
//! instead of the tuple itself, which takes 37 bytes: a segment that belongs to a record brings its
//! addresses along. That a segment of another connection finds a record is a matter of one in 2^96
//! per record, and nobody without the key can make one.
//!
//! **Cost.** With its place in the hash table, 5 bytes per bucket, a record takes 70 to 76 bytes,
//! and up to a quarter more while the array has just grown.
//!
//! **When.** TIME-WAIT reports `Closed` to the application on entry, because both directions are
//! finished then. Once the application has released the connection and its last ACK has left, it
//! becomes a record, outside `max_connections`, in a table with a cap of its own and one timer for
//! all. A handle that is kept keeps its connection. One function has the rules for both
//! (`Expected::in_time_wait`), and a test sends the same segments to both and compares what leaves.

use crate::conn::{Retired, TimeWait};
use crate::four_tuple::FourTuple;
use crate::rate_limit::ConnRateLimit;
use crate::share::{DeadlineTable, Hashed};
use crate::time::{Duration, Instant};
use siphasher::sip128::SipHasher13;

/// The records of an endpoint.
pub(crate) struct TimeWaitTable {
    records: DeadlineTable<Record, LANES>,
    hasher: SipHasher13,
}

/// The hash that stands for a four-tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name([u32; 3]);

impl Name {
    /// The hash in the form the hash table needs: it uses the lowest bits as position, and the
    /// seven highest as a tag.
    const fn table_hash(self) -> u64 {
        (self.0[0] as u64) << 32 | self.0[1] as u64
    }
}

/// A connection in TIME-WAIT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Limit of the ACKs that anyone can provoke.
    pub(crate) answers: ConnRateLimit,
    /// Limit of challenge ACKs.
    pub(crate) challenges: ConnRateLimit,
    pub(crate) numbers: TimeWait,
    name: Name,
    /// The type of service of its packets.
    pub(crate) tos: u8,
    /// Their hop limit.
    pub(crate) ttl: u8,
}

impl Hashed for Record {
    fn table_hash(&self) -> u64 {
        self.name.table_hash()
    }
}

/// What a record takes, with its share of the table, in bytes.
pub(crate) const TIME_WAIT: usize = 76;

/// Lengths of TIME-WAIT that are told apart. With more, a record waits as long as the next longer
/// lane.
const LANES: usize = 4;
/// Time in TIME-WAIT after which a connection of this side may use the four-tuple again: the peer's
/// segments and ours then show later timestamps than all from before, with clocks of up to a second
/// per tick (RFC 7323, section 5.4).
const REUSE_AFTER: Duration = Duration::from_secs(1);

impl TimeWaitTable {
    /// An empty table with a secret key, which must be random if peers are not trusted.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self { records: DeadlineTable::default(), hasher: SipHasher13::new_with_key(&secret) }
    }

    /// Number of records.
    pub(crate) const fn len(&self) -> usize {
        self.records.len()
    }

    /// Bytes allocated.
    pub(crate) fn memory(&self) -> usize {
        self.records.memory()
    }

    /// The name of `tuple`.
    pub(crate) fn name(&self, tuple: &FourTuple) -> Name {
        let (low, high) = self.hasher.hash(tuple.as_bytes()).as_u64();
        Name([low as u32, (low >> 32) as u32, high as u32])
    }

    /// The record of `name`.
    pub(crate) fn find(&self, name: Name) -> Option<&Record> {
        self.records.get(self.place(name)?)
    }

    /// The record of `name`.
    pub(crate) fn find_mut(&mut self, name: Name) -> Option<&mut Record> {
        let place = self.place(name)?;
        self.records.get_mut(place)
    }

    /// The name of `tuple`, if it has a record.
    pub(crate) fn look_up(&self, tuple: &FourTuple) -> Option<Name> {
        // Not worth a hash if there are none.
        if self.len() == 0 {
            return None;
        }
        let name = self.name(tuple);
        self.place(name).map(|_| name)
    }

    /// True if a connection of this side with timestamps may use the four-tuple of `name` again
    /// (RFC 6191, section 2).
    pub(crate) fn is_reusable(&self, now: Instant, name: Name) -> bool {
        let since = self.place(name).and_then(|place| self.records.since(place));
        self.find(name)
            .zip(since)
            .is_some_and(|(record, since)| record.numbers.has_timestamps() && now.since(since) >= REUSE_AFTER)
    }

    /// Adds a record, which must not be in the table. `default_ttl` is the endpoint's hop limit.
    pub(crate) fn insert(&mut self, name: Name, retired: &Retired, default_ttl: u8) {
        let record = Record {
            answers: retired.answers,
            challenges: retired.challenges,
            numbers: retired.numbers,
            name,
            tos: retired.tos,
            ttl: retired.ttl.unwrap_or(default_ttl),
        };
        self.records.insert(record, retired.since, retired.length, usize::MAX);
    }

    /// Removes the record of `name`.
    pub(crate) fn remove(&mut self, name: Name) {
        if let Some(place) = self.place(name) {
            self.records.remove(place);
        }
    }

    /// TIME-WAIT of the record of `name` begins anew.
    pub(crate) fn restart(&mut self, name: Name, now: Instant) {
        if let Some(place) = self.place(name) {
            self.records.restart(place, now);
        }
    }

    /// The end of the record that ends first.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.records.next().map(|(end, _)| end)
    }

    /// Removes the record that ends first; false if there is none.
    pub(crate) fn remove_first(&mut self) -> bool {
        let first = self.records.next();
        if let Some((_, place)) = first {
            self.records.remove(place);
        }
        first.is_some()
    }

    /// Removes every record that ends by `now`.
    pub(crate) fn expire(&mut self, now: Instant) {
        while let Some((end, place)) = self.records.next()
            && end <= now
        {
            self.records.remove(place);
        }
    }

    fn place(&self, name: Name) -> Option<u32> {
        self.records.find(name.table_hash(), |record| record.name == name)
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
    use super::{Record, TimeWaitTable};
    use crate::conn::{Retired, TimeWait};
    use crate::four_tuple::FourTuple;
    use crate::rate_limit::ConnRateLimit;
    use crate::share::KEEP;
    use crate::time::{Duration, Instant};
    use core::net::SocketAddr;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn retired(since: Instant, length: Duration) -> Retired {
        let (answers, challenges, ttl) = (ConnRateLimit::default(), ConnRateLimit::default(), Some(64));
        Retired { numbers: TimeWait::for_test(), since, length, answers, challenges, tos: 0, ttl }
    }

    #[test]
    fn record_takes_64_bytes_and_memory_follows_the_number_of_records() {
        assert_eq!(size_of::<Record>(), 48, "with its name, for either family; its place in a lane takes 16");
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
                    let since = name.and_then(|name| table.place(name)).and_then(|place| table.records.since(place));
                    prop_assert_eq!(since, known.map(|(since, _)| *since));
                }
            }
        }
    }
}
