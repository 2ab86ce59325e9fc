//! Ephemeral ports: RFC 6056, algorithm 4 (double-hash port selection).
//!
//! A port is `first + (F + counter) mod size`, where F is a keyed hash of the two addresses and the remote
//! port, and the counter, one of a small table, is chosen by a second hash of the same. An off-path attacker
//! cannot guess the ports toward another host, and connections to one address and port walk through all ports
//! before reusing one, which avoids TIME-WAIT at the peer. The table hides from one peer how many connections
//! go to others, unlike a single counter (algorithm 3).

use crate::four_tuple::to_ipv6;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use siphasher::sip::SipHasher24;

/// Chooses local ports. The endpoint has one, and uses it for each connection without a given local port.
#[derive(Clone)]
pub(crate) struct PortSelector {
    hasher: SipHasher24,
    first: u16,
    /// Number of ports to choose from; 0 to 65,535.
    size: u16,
    /// Each below `size`.
    counters: [u16; TABLE_LENGTH],
}

/// Counters of the table (RFC 6056, section 3.3.4: TABLE_LENGTH).
const TABLE_LENGTH: usize = 64;

impl PortSelector {
    /// A selector over `range` with a secret key, which must be random if peers are not trusted. Skips port
    /// 0; an empty range never gives a port.
    #[must_use]
    pub(crate) fn new(secret: [u8; 16], range: RangeInclusive<u16>) -> Self {
        let hasher = SipHasher24::new_with_key(&secret);
        let first = (*range.start()).max(1);
        let size = if range.is_empty() || *range.end() < first { 0 } else { range.end() - first + 1 };
        // Section 3.3.4 starts with random counters.
        let counters = core::array::from_fn(|index| hasher.hash(&[index as u8]) as u16 % size.max(1));
        Self { hasher, first, size, counters }
    }

    /// A port for a connection from the address `local` to `remote` that `is_free` accepts. `is_free` is
    /// called at most once for each port of the range, so it should be quick. `None` if all are taken.
    pub(crate) fn select(
        &mut self,
        local: IpAddr,
        remote: SocketAddr,
        mut is_free: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        let hash = self.hash(local, remote);
        let offset = (hash >> 32) as u32 % u32::from(self.size.max(1));
        let counter = &mut self.counters[hash as usize % TABLE_LENGTH];
        for _ in 0..self.size {
            let step = (offset + u32::from(*counter)) % u32::from(self.size);
            // Always below `size`, so no port is tried twice.
            *counter = (*counter + 1) % self.size;
            let port = self.first + step as u16;
            if is_free(port) {
                return Some(port);
            }
        }
        None
    }

    fn hash(&self, local: IpAddr, remote: SocketAddr) -> u64 {
        let mut bytes = [0; 34];
        let len = match (local, remote.ip()) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                bytes[2..6].copy_from_slice(&local.octets());
                bytes[6..10].copy_from_slice(&remote.octets());
                10
            }
            (local, remote) => {
                bytes[2..18].copy_from_slice(&to_ipv6(local).octets());
                bytes[18..].copy_from_slice(&to_ipv6(remote).octets());
                34
            }
        };
        bytes[..2].copy_from_slice(&remote.port().to_be_bytes());
        self.hasher.hash(&bytes[..len])
    }
}

impl core::fmt::Debug for PortSelector {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let range = self.first..self.first.saturating_add(self.size);
        f.debug_struct("PortSelector").field("range", &range).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::PortSelector;
    use core::net::{IpAddr, SocketAddr};
    use core::ops::RangeInclusive;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    const DEFAULT_RANGE: RangeInclusive<u16> = 32_768..=60_999;

    fn local() -> IpAddr {
        [10, 0, 0, 1].into()
    }

    fn remote(host: u8) -> SocketAddr {
        ([10, 0, 1, host], 443).into()
    }

    proptest! {
        #[test]
        fn visits_every_free_port_once(secret: [u8; 16], first: u16, size in 1u16..500, warm in 0usize..700) {
            let last = first.saturating_add(size - 1);
            let expected: BTreeSet<u16> = (first.max(1)..=last).collect();
            let mut ports = PortSelector::new(secret, first..=last);
            for _ in 0..warm {
                ports.select(local(), remote(1), |_| true);
            }
            let mut taken = BTreeSet::new();
            while let Some(port) = ports.select(local(), remote(1), |port| !taken.contains(&port)) {
                prop_assert!(taken.insert(port));
            }
            prop_assert_eq!(&taken, &expected);
            let mut asked = Vec::new();
            prop_assert_eq!(ports.select(local(), remote(1), |port| { asked.push(port); false }), None);
            asked.sort_unstable();
            prop_assert_eq!(asked, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn full_range_of_ports_works() {
        let mut ports = PortSelector::new([1; 16], 0..=u16::MAX);
        let mut seen = BTreeSet::new();
        for _ in 0..65_535 {
            assert!(seen.insert(ports.select(local(), remote(1), |_| true).expect("free")));
        }
        assert!(!seen.contains(&0));
    }

    #[test]
    fn empty_range_has_no_port() {
        #[expect(clippy::reversed_empty_ranges, reason = "a configuration can say so")]
        let reversed = 5000..=4000;
        assert_eq!(PortSelector::new([1; 16], reversed).select(local(), remote(1), |_| true), None);
        assert_eq!(PortSelector::new([1; 16], 0..=0).select(local(), remote(1), |_| true), None);
    }

    #[test]
    fn destinations_do_not_see_each_other() {
        let sequence = |others: u8| {
            let mut ports = PortSelector::new([9; 16], DEFAULT_RANGE);
            for host in 2..2 + others {
                ports.select(local(), remote(host), |_| true);
            }
            ports.select(local(), remote(1), |_| true)
        };
        // Of 64 counters, few of eight other destinations share this one's.
        let same = (0..8).filter(|others| sequence(*others) == sequence(0)).count();
        assert!(same >= 6, "{same}");
        let mut ports = PortSelector::new([9; 16], DEFAULT_RANGE);
        let starts: BTreeSet<_> =
            (0..=255).map(|host| ports.select(local(), remote(host), |_| true)).collect();
        assert!(starts.len() > 240, "starts are spread: {}", starts.len());
    }

    #[test]
    fn same_secret_same_ports() {
        let run = |secret| {
            let mut ports = PortSelector::new([secret; 16], DEFAULT_RANGE);
            (0..50).map(|host| ports.select(local(), remote(host % 7), |_| true)).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
