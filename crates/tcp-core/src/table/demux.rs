//! Finds the connection for a packet's addresses and ports.
//!
//! A hash table of slot numbers; the four-tuples stay in the connections. It takes 9 bytes per
//! bucket, which is 10 to 21 per connection. Buckets keep 32 bits of the hash, so that neither a
//! miss nor growth touches a connection. The hash is keyed, because an attacker who could choose
//! colliding tuples could make each look-up slow.

use crate::four_tuple::FourTuple;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

/// The connections of an endpoint by four-tuple. The endpoint adds a slot when it creates a
/// connection, and removes it when it forgets the connection. All operations are O(1).
pub(crate) struct Demux {
    table: HashTable<Bucket>,
    hasher: SipHasher13,
}

#[derive(Clone, Copy)]
struct Bucket {
    hash: u32,
    slot: u32,
}

impl Bucket {
    /// The hash in the form the table needs: it uses the lowest bits as position, and the seven
    /// highest as a tag.
    const fn table_hash(self) -> u64 {
        (self.hash as u64) << 32 | self.hash as u64
    }
}

/// Capacity in connections below which the table never shrinks.
const KEEP: usize = 64;

impl Demux {
    /// An empty table with a secret key, which must be random if peers are not trusted.
    #[must_use]
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self { table: HashTable::new(), hasher: SipHasher13::new_with_key(&secret) }
    }

    /// Number of connections.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// The slot of the connection `tuple`. `is_at` tells whether the connection in a slot has that
    /// four-tuple; it is rarely called more than once.
    #[must_use]
    pub(crate) fn find(&self, tuple: &FourTuple, mut is_at: impl FnMut(u32) -> bool) -> Option<u32> {
        let key = self.bucket(tuple, 0);
        let found = self.table.find(key.table_hash(), |it| it.hash == key.hash && is_at(it.slot));
        found.map(|it| it.slot)
    }

    /// Adds the connection `tuple`, which must not be in the table, in `slot`.
    pub(crate) fn insert(&mut self, tuple: &FourTuple, slot: u32) {
        let bucket = self.bucket(tuple, slot);
        self.table.insert_unique(bucket.table_hash(), bucket, |it| it.table_hash());
    }

    /// Removes the connection `tuple` in `slot`; false if there is none.
    pub(crate) fn remove(&mut self, tuple: &FourTuple, slot: u32) -> bool {
        let key = self.bucket(tuple, slot);
        let Ok(entry) = self.table.find_entry(key.table_hash(), |it| it.slot == slot && it.hash == key.hash)
        else {
            return false;
        };
        entry.remove();
        // Half full afterwards: many insertions or removals pass before the next resize.
        if self.table.capacity() > KEEP && self.table.len() < self.table.capacity() / 8 {
            self.table.shrink_to((2 * self.table.len()).max(KEEP / 2), |it| it.table_hash());
        }
        true
    }

    fn bucket(&self, tuple: &FourTuple, slot: u32) -> Bucket {
        Bucket { hash: self.hasher.hash(tuple.as_bytes()) as u32, slot }
    }
}

impl core::fmt::Debug for Demux {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Demux").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Bucket, Demux, FourTuple};
    use core::net::SocketAddr;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    #[test]
    fn bucket_is_small_and_memory_follows_the_number_of_connections() {
        assert_eq!(size_of::<Bucket>(), 8);
        let mut demux = Demux::new([1; 16]);
        for number in 0..100_000 {
            demux.insert(&FourTuple::numbered(number), number);
            let bytes = demux.table.allocation_size();
            assert!(bytes <= 24 * demux.len().max(30), "{bytes} for {}", demux.len());
        }
        for number in 0..100_000 {
            assert!(demux.remove(&FourTuple::numbered(number), number));
            assert!(demux.table.allocation_size() <= 200 * demux.len().max(10), "at {number}");
        }
    }

    #[test]
    fn look_ups_ask_for_hardly_any_connection() {
        let mut demux = Demux::new([2; 16]);
        for number in 0..10_000 {
            demux.insert(&FourTuple::numbered(number), number);
        }
        let mut asked = 0;
        for number in 0..20_000 {
            let found = demux.find(&FourTuple::numbered(number), |slot| {
                asked += 1;
                slot == number
            });
            assert_eq!(found, (number < 10_000).then_some(number));
        }
        // 20,000 times 10,000 pairs of 32-bit hashes: 0.05 collisions are to be expected.
        assert!((10_000..10_003).contains(&asked), "{asked}");
    }

    #[test]
    fn same_hash_does_not_mean_same_connection() {
        let mut demux = Demux::new([3; 16]);
        demux.insert(&FourTuple::numbered(7), 1);
        assert_eq!(demux.find(&FourTuple::numbered(7), |_| false), None);
        demux.insert(&FourTuple::numbered(7), 2);
        assert_eq!(demux.find(&FourTuple::numbered(7), |slot| slot == 2), Some(2));
        assert!(demux.remove(&FourTuple::numbered(7), 1));
        assert_eq!(demux.find(&FourTuple::numbered(7), |_| true), Some(2));
    }

    #[test]
    fn hash_depends_on_the_secret_and_on_every_byte() {
        let hash = |secret, tuple: &FourTuple| Demux::new([secret; 16]).bucket(tuple, 0).hash;
        assert_ne!(hash(1, &FourTuple::numbered(6)), hash(2, &FourTuple::numbered(6)));
        let (a, b) = (SocketAddr::from(([10, 0, 0, 1], 80)), SocketAddr::from(([10, 0, 0, 2], 80)));
        assert_ne!(hash(1, &FourTuple::new(a, b)), hash(1, &FourTuple::new(b, a)), "not symmetric");
    }

    proptest! {
        #[test]
        fn behaves_as_a_map(steps in prop::collection::vec((any::<bool>(), 0u32..60), 0..600)) {
            let (mut demux, mut model, mut slots) = (Demux::new([4; 16]), BTreeMap::new(), Vec::new());
            for (add, number) in steps {
                let name = FourTuple::numbered(number);
                match (add, model.get(&number).copied()) {
                    (true, None) => {
                        let slot = slots.len() as u32;
                        slots.push(name);
                        demux.insert(&name, slot);
                        model.insert(number, slot);
                    }
                    (false, Some(slot)) => {
                        prop_assert!(!demux.remove(&name, slot + 1));
                        prop_assert!(demux.remove(&name, slot));
                        model.remove(&number);
                    }
                    (false, None) => prop_assert!(!demux.remove(&name, 0)),
                    (true, Some(_)) => {}
                }
                prop_assert_eq!(demux.len(), model.len());
                for number in 0..60 {
                    let name = FourTuple::numbered(number);
                    let found = demux.find(&name, |slot| slots[slot as usize] == name);
                    prop_assert_eq!(found, model.get(&number).copied());
                }
            }
        }
    }
}
