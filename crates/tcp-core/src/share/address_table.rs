//! What is known by destination, in a table of bounded size: what paths carry ([`PathCache`]), and
//! fast open cookies.
//!
//! The table is a fixed number of sets of four entries; a keyed hash of the address names the set.
//! All operations are O(1), and where a set is full the entry goes that ends first.

use crate::time::Instant;
use alloc::vec::Vec;
use core::net::IpAddr;
use siphasher::sip::SipHasher13;

/// Entries of a set.
const WAYS: usize = 4;

/// The largest IP packet that arrives, in bytes: what one connection has found, the next one begins
/// with (RFC 8201, section 5.2; Linux keeps it as exceptions of routes).
///
/// Only what packets have shown enters ([`PathNews`](crate::conn::PathNews)): an ICMP message alone
/// is no reason, so nobody who forges them can fill the table or poison an entry. An entry lasts
/// for the [`path_mtu_expiry`](crate::config::ConnConfig::path_mtu_expiry) of the connection that
/// made it.
pub(crate) type PathCache = AddressTable<u16>;

/// Values by destination.
pub(crate) struct AddressTable<T> {
    /// Empty until the first entry.
    entries: Vec<Option<Entry<T>>>,
    len: usize,
    hasher: SipHasher13,
}

/// What is known of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<T> {
    to: IpAddr,
    pub(crate) value: T,
    /// When the entry ends.
    pub(crate) until: Instant,
}

impl<T: Copy> AddressTable<T> {
    /// An empty table with a secret key, which must be random if peers are not trusted.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self { entries: Vec::new(), len: 0, hasher: SipHasher13::new_with_key(&secret) }
    }

    /// Number of entries, those included that have ended and whose place nobody needed.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes held.
    pub(crate) const fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Option<Entry<T>>>()
    }

    /// What is known of `to`.
    pub(crate) fn find(&self, now: Instant, to: IpAddr) -> Option<Entry<T>> {
        if self.len == 0 {
            return None;
        }
        let entry = self.set_of(to).iter().flatten().find(|entry| entry.to == to)?;
        (entry.until > now).then_some(*entry)
    }

    /// Keeps `value` for `to` until `until`. At most `max` entries are kept. True if another one
    /// had to go.
    pub(crate) fn learn(&mut self, now: Instant, to: IpAddr, value: T, until: Instant, max: u32) -> bool {
        if max == 0 {
            return false;
        }
        if self.entries.is_empty() {
            self.entries.resize((max as usize).next_multiple_of(WAYS), None);
        }
        let set = self.set_of_mut(to);
        let end = |slot: &Option<Entry<T>>| match slot {
            Some(entry) if entry.to == to => (0, Instant::ZERO),
            None => (1, Instant::ZERO),
            Some(entry) => (2, entry.until),
        };
        let Some(slot) = set.iter_mut().min_by_key(|slot| end(slot)) else { return false };
        let before = slot.replace(Entry { to, value, until });
        self.len += usize::from(before.is_none());
        before.is_some_and(|entry| entry.to != to && entry.until > now)
    }

    /// Nothing is known of `to` any more.
    pub(crate) fn forget(&mut self, to: IpAddr) {
        let known = |slot: &&mut Option<Entry<T>>| slot.is_some_and(|entry| entry.to == to);
        if self.len > 0
            && let Some(slot) = self.set_of_mut(to).iter_mut().find(known)
        {
            *slot = None;
            self.len -= 1;
        }
    }

    fn set_of(&self, to: IpAddr) -> &[Option<Entry<T>>] {
        let first = self.first_of(to);
        self.entries.get(first..first + WAYS).unwrap_or_default()
    }

    fn set_of_mut(&mut self, to: IpAddr) -> &mut [Option<Entry<T>>] {
        let first = self.first_of(to);
        self.entries.get_mut(first..first + WAYS).unwrap_or_default()
    }

    /// Index of the first entry of the set of `to`.
    fn first_of(&self, to: IpAddr) -> usize {
        let hash = match to {
            IpAddr::V4(to) => self.hasher.hash(&to.octets()),
            IpAddr::V6(to) => self.hasher.hash(&to.octets()),
        };
        let sets = (self.entries.len() / WAYS).max(1) as u64;
        (hash % sets) as usize * WAYS
    }
}

impl<T> core::fmt::Debug for AddressTable<T> {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AddressTable").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::PathCache;
    use crate::time::Instant;
    use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    const NOW: Instant = Instant::from_secs(1);

    fn host(n: u32) -> IpAddr {
        if n.is_multiple_of(2) { Ipv4Addr::from(n).into() } else { Ipv6Addr::from(u128::from(n)).into() }
    }

    fn at(second: u64) -> Instant {
        Instant::from_secs(second)
    }

    #[test]
    fn an_entry_ends_is_renewed_and_forgotten() {
        let mut cache = PathCache::new([1; 16]);
        assert_eq!(cache.find(NOW, host(1)), None);
        cache.forget(host(1));
        assert!(!cache.learn(NOW, host(1), 1_400, at(600), 100));
        assert!(!cache.learn(NOW, host(2), 1_300, at(700), 100));
        let mtu = |cache: &PathCache, now, n| cache.find(now, host(n)).map(|entry| entry.value);
        assert_eq!([1, 2, 3].map(|n| mtu(&cache, NOW, n)), [Some(1_400), Some(1_300), None]);
        assert_eq!((mtu(&cache, at(599), 1), mtu(&cache, at(600), 1)), (Some(1_400), None));
        assert!(!cache.learn(at(650), host(1), 1_200, at(1_250), 100));
        assert_eq!((mtu(&cache, at(700), 1), cache.len()), (Some(1_200), 2));
        cache.forget(host(1));
        assert_eq!((mtu(&cache, at(660), 1), mtu(&cache, at(660), 2), cache.len()), (None, Some(1_300), 1));
    }

    #[test]
    fn memory_is_bounded_and_the_entry_goes_that_ends_first() {
        let mut cache = PathCache::new([1; 16]);
        let mut replaced = 0;
        for n in 0..100_000 {
            replaced += u32::from(cache.learn(NOW, host(n), 1_400, at(u64::from(600 + n)), 1_000));
        }
        assert_eq!((cache.len(), replaced), (1_000, 99_000));
        assert!(cache.memory() <= 32_000, "{} bytes", cache.memory());
        assert!(cache.find(NOW, host(99_999)).is_some(), "what was learnt last is known");
        let newest = (98_000..100_000).filter(|n| cache.find(NOW, host(*n)).is_some()).count();
        assert!(newest > 600, "{newest} of 1,000 are among the 2,000 that end last");
    }

    #[test]
    fn what_has_ended_makes_room_uncounted_and_without_a_limit_nothing_is_kept() {
        let mut cache = PathCache::new([1; 16]);
        for n in 0..100 {
            assert!(!cache.learn(at(u64::from(2 * n)), host(n), 1_400, at(u64::from(2 * n + 1)), 4));
        }
        let mut cache = PathCache::new([1; 16]);
        assert!(!cache.learn(NOW, host(1), 1_400, at(600), 0));
        assert_eq!((cache.find(NOW, host(1)), cache.len(), cache.entries.capacity()), (None, 0, 0));
    }
}
