//! How many entries of a table come from each source: an IPv4 address, or an IPv6 prefix of 64
//! bits.
//!
//! Sources are counted under a keyed hash of 32 bits. Two with the same hash count as one; nobody
//! without the key can find such a pair. All operations are O(1), amortised where the table grows
//! and shrinks. A source takes 10 to 21 bytes.

use crate::four_tuple::FourTuple;
use core::net::IpAddr;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

/// The counts.
pub(crate) struct Shares {
    shares: HashTable<Share>,
    hasher: SipHasher13,
    /// Bytes allocated: asked for after each burst, and computed when they change.
    memory: usize,
}

/// The entries of one source.
#[derive(Clone, Copy, Debug)]
struct Share {
    source: u32,
    entries: u32,
}

/// Sources below which the table does not shrink.
const KEEP: usize = 64;

impl Shares {
    /// No entries. The secret must be random if peers are not trusted.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self { shares: HashTable::new(), hasher: SipHasher13::new_with_key(&secret), memory: 0 }
    }

    /// Number of entries from the same source as `tuple`.
    pub(crate) fn of(&self, tuple: &FourTuple) -> u32 {
        let source = self.source(tuple);
        self.shares.find(spread(source), |share| share.source == source).map_or(0, |share| share.entries)
    }

    /// An entry of `tuple` has come.
    pub(crate) fn enter(&mut self, tuple: &FourTuple) {
        let source = self.source(tuple);
        let mut share = self
            .shares
            .entry(spread(source), |share| share.source == source, |share| spread(share.source))
            .or_insert(Share { source, entries: 0 });
        share.get_mut().entries += 1;
        self.memory = self.shares.allocation_size();
    }

    /// An entry of `tuple` has gone.
    pub(crate) fn leave(&mut self, tuple: &FourTuple) {
        let source = self.source(tuple);
        if let Ok(mut share) = self.shares.find_entry(spread(source), |share| share.source == source) {
            share.get_mut().entries -= 1;
            if share.get().entries == 0 {
                share.remove();
            }
        }
        if self.shares.capacity() > KEEP && self.shares.len() < self.shares.capacity() / 8 {
            let len = (2 * self.shares.len()).max(KEEP / 2);
            self.shares.shrink_to(len, |share| spread(share.source));
        }
        self.memory = self.shares.allocation_size();
    }

    /// Bytes allocated.
    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }

    /// Number of sources.
    #[cfg(test)]
    pub(crate) fn sources(&self) -> usize {
        self.shares.len()
    }

    fn source(&self, tuple: &FourTuple) -> u32 {
        let hash = match tuple.remote_ip() {
            IpAddr::V4(address) => self.hasher.hash(&address.octets()),
            IpAddr::V6(address) => self.hasher.hash(&address.octets()[..8]),
        };
        hash as u32
    }

    /// True if both come from the same source.
    #[cfg(test)]
    pub(crate) fn are_one(&self, a: &FourTuple, b: &FourTuple) -> bool {
        self.source(a) == self.source(b)
    }
}

/// A hash of 32 bits in the form that a hash table needs: it uses the lowest bits as position, and
/// the seven highest as a tag.
pub(crate) const fn spread(hash: u32) -> u64 {
    (hash as u64) << 32 | hash as u64
}

impl core::fmt::Debug for Shares {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Shares").field("sources", &self.shares.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Share, Shares};
    use crate::four_tuple::FourTuple;

    #[test]
    fn a_source_is_an_ipv4_address_or_a_prefix_of_64_bits() {
        assert_eq!(size_of::<Share>(), 8);
        let shares = Shares::new([2; 16]);
        let from = |remote: &str| {
            let remote: core::net::SocketAddr = remote.parse().unwrap();
            let local = if remote.is_ipv4() { "10.0.0.1:80" } else { "[fd00::1]:80" };
            FourTuple::new(local.parse().unwrap(), remote)
        };
        let are_one = |a, b| shares.are_one(&from(a), &from(b));
        assert!(are_one("192.0.2.1:1", "192.0.2.1:2"));
        assert!(!are_one("192.0.2.1:1", "192.0.2.2:1"));
        assert!(are_one("[2001:db8:1:2::1]:1", "[2001:db8:1:2:ffff::9]:2"));
        assert!(!are_one("[2001:db8:1:2::1]:1", "[2001:db8:1:3::1]:1"));
    }
}
