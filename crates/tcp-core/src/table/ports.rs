//! Ephemeral ports: RFC 6056, algorithm 4 (double-hash port selection) toward a known peer,
//! algorithm 1 (simple random selection) without one.
//!
//! Toward a peer, a port is `first + (F + counter) mod size`, where F is a keyed hash of the two
//! addresses and the remote port, and the counter, one of a small table, is chosen by a second hash
//! of the same. An off-path attacker cannot guess the ports toward another host, and connections to
//! one address and port walk through all ports before reusing one, which avoids TIME-WAIT at the
//! peer. The table hides from one peer how many connections go to others, unlike a single counter
//! (algorithm 3).
//!
//! A UDP socket or a listener has no peer when it is bound. One hash for all of them would make
//! their ports a sequence that anybody who sees one of them continues (RFC 8085, section 5.1; RFC
//! 5452, section 9.2, for resolvers). So each of these searches begins at a random port.
//!
//! Tries per connect are limited, and the next connect goes on where this one ended. There is no
//! set of free ports per peer: a record in TIME-WAIT does not know its addresses, so it could not
//! give its port back.

use crate::four_tuple::to_ipv6;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use siphasher::sip::SipHasher24;

/// Chooses local ports. The endpoint has one, and uses it for each connection without a given local
/// port.
#[derive(Clone)]
pub(crate) struct PortSelector {
    hasher: SipHasher24,
    first: u16,
    /// Number of ports to choose from; 0 to 65,535.
    size: u16,
    /// Each below `size`.
    counters: [u16; TABLE_LENGTH],
    /// Searches without a peer so far: the keyed hash of their number is what is random about them.
    searches: u64,
}

/// What a port is to a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortUsage {
    /// Nobody uses it.
    Free,
    /// A connection in TIME-WAIT would make way for the new one.
    Reusable,
    /// It cannot be used.
    Taken,
}

/// Ports tried after the first reusable one, in case one of them is free.
const PREFERENCE: u32 = 16;

/// Bytes that are hashed for a search without a peer: of another length than a peer's, so that no
/// peer's hash is one of them.
const SEARCH_LENGTH: usize = 12;

/// Counters of the table (RFC 6056, section 3.3.4: TABLE_LENGTH).
const TABLE_LENGTH: usize = 64;

impl PortSelector {
    /// A selector over `range` with a secret key, which must be random if peers are not trusted.
    /// Skips port 0; an empty range never gives a port.
    #[must_use]
    pub(crate) fn new(secret: [u8; 16], range: RangeInclusive<u16>) -> Self {
        let hasher = SipHasher24::new_with_key(&secret);
        let first = (*range.start()).max(1);
        let size = if range.is_empty() || *range.end() < first { 0 } else { range.end() - first + 1 };
        // Section 3.3.4 starts with random counters.
        let counters = core::array::from_fn(|index| hasher.hash(&[index as u8]) as u16 % size.max(1));
        Self { hasher, first, size, counters, searches: 0 }
    }

    /// A port without a peer that `is_free`: a random one, or the next after it (RFC 6056, section
    /// 3.3.1). `None` if none is.
    pub(crate) fn select_random(&mut self, mut is_free: impl FnMut(u16) -> bool) -> Option<u16> {
        let mut bytes = [0; SEARCH_LENGTH];
        bytes[..8].copy_from_slice(&self.searches.to_be_bytes());
        self.searches = self.searches.wrapping_add(1);
        let size = u32::from(self.size);
        let start = (self.hasher.hash(&bytes) >> 32) as u32 % size.max(1);
        (0..size).map(|step| self.first + ((start + step) % size) as u16).find(|port| is_free(*port))
    }

    /// A port for a connection from the address `local` to `remote` that `usage` calls free or, if
    /// the next [`PREFERENCE`] are not, one that is reusable. `None` if there is neither among the
    /// next `most`.
    ///
    /// If a part `f` of the range is taken, a call tries `1 / (1 - f)` ports on average, since each
    /// port is tried once before any is tried again; and `most` at worst, after which the next call
    /// goes on.
    pub(crate) fn select(
        &mut self,
        local: IpAddr,
        remote: SocketAddr,
        most: u32,
        mut usage: impl FnMut(u16) -> PortUsage,
    ) -> Option<u16> {
        let hash = self.hash(local, remote);
        let offset = (hash >> 32) as u32 % u32::from(self.size.max(1));
        let counter = &mut self.counters[hash as usize % TABLE_LENGTH];
        let mut reusable = None;
        for probe in 0..most.min(u32::from(self.size)) {
            if let Some((port, found)) = reusable
                && probe - found > PREFERENCE
            {
                return Some(port);
            }
            let step = (offset + u32::from(*counter)) % u32::from(self.size);
            // Always below `size`, so no port is tried twice.
            *counter = (*counter + 1) % self.size;
            let port = self.first + step as u16;
            match usage(port) {
                PortUsage::Free => return Some(port),
                PortUsage::Reusable => reusable = reusable.or(Some((port, probe))),
                PortUsage::Taken => {}
            }
        }
        reusable.map(|(port, _)| port)
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
    use super::{PREFERENCE, PortSelector, PortUsage};
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

    /// All ports of any range.
    const ALL: u32 = 65_535;

    fn free_if(free: bool) -> PortUsage {
        if free { PortUsage::Free } else { PortUsage::Taken }
    }

    fn take(ports: &mut PortSelector, host: u8) -> Option<u16> {
        ports.select(local(), remote(host), ALL, |_| PortUsage::Free)
    }

    proptest! {
        #[test]
        fn visits_every_free_port_once(secret: [u8; 16], first: u16, size in 1u16..500, warm in 0usize..700) {
            let last = first.saturating_add(size - 1);
            let expected: BTreeSet<u16> = (first.max(1)..=last).collect();
            let mut ports = PortSelector::new(secret, first..=last);
            for _ in 0..warm {
                take(&mut ports, 1);
            }
            let mut taken = BTreeSet::new();
            while let Some(port) = ports.select(local(), remote(1), ALL, |port| free_if(!taken.contains(&port))) {
                prop_assert!(taken.insert(port));
            }
            prop_assert_eq!(&taken, &expected);
            let mut asked = Vec::new();
            prop_assert_eq!(ports.select(local(), remote(1), ALL, |port| { asked.push(port); PortUsage::Taken }), None);
            asked.sort_unstable();
            prop_assert_eq!(asked, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn full_range_of_ports_works() {
        let mut ports = PortSelector::new([1; 16], 0..=u16::MAX);
        let mut seen = BTreeSet::new();
        for _ in 0..65_535 {
            assert!(seen.insert(take(&mut ports, 1).expect("free")));
        }
        assert!(!seen.contains(&0));
    }

    #[test]
    fn empty_range_has_no_port() {
        #[expect(clippy::reversed_empty_ranges, reason = "a configuration can say so")]
        let reversed = 5000..=4000;
        assert_eq!(
            PortSelector::new([1; 16], reversed).select(local(), remote(1), ALL, |_| PortUsage::Free),
            None
        );
        assert_eq!(
            PortSelector::new([1; 16], 0..=0).select(local(), remote(1), ALL, |_| PortUsage::Free),
            None
        );
    }

    #[test]
    fn destinations_do_not_see_each_other() {
        let sequence = |others: u8| {
            let mut ports = PortSelector::new([9; 16], DEFAULT_RANGE);
            for host in 2..2 + others {
                take(&mut ports, host);
            }
            take(&mut ports, 1)
        };
        // Of 64 counters, few of eight other destinations share this one's.
        let same = (0..8).filter(|others| sequence(*others) == sequence(0)).count();
        assert!(same >= 6, "{same}");
        let mut ports = PortSelector::new([9; 16], DEFAULT_RANGE);
        let starts: BTreeSet<_> = (0..=255).map(|host| take(&mut ports, host)).collect();
        assert!(starts.len() > 240, "starts are spread: {}", starts.len());
    }

    /// Connections come and go while all but `free` ports of the range are taken.
    fn probes_with(free: usize, most: u32) -> (Vec<usize>, usize) {
        let mut ports = PortSelector::new([3; 16], DEFAULT_RANGE);
        let mut taken: BTreeSet<u16> = DEFAULT_RANGE.collect();
        // Spread over the range, and never the same for long: each port taken frees another one.
        let mut next = 0u16;
        let mut release = |taken: &mut BTreeSet<u16>| {
            next = (next + 10_007) % DEFAULT_RANGE.len() as u16;
            taken.remove(&(DEFAULT_RANGE.start() + next));
        };
        while taken.len() > DEFAULT_RANGE.len() - free {
            release(&mut taken);
        }
        let (mut probes, mut refused) = (Vec::new(), 0);
        for _ in 0..5_000 {
            let mut asked = 0;
            let port = ports.select(local(), remote(1), most, |port| {
                asked += 1;
                free_if(!taken.contains(&port))
            });
            probes.push(asked);
            match port {
                Some(port) => {
                    taken.insert(port);
                    while taken.len() > DEFAULT_RANGE.len() - free {
                        release(&mut taken);
                    }
                }
                None => refused += 1,
            }
        }
        (probes, refused)
    }

    #[test]
    fn a_connect_costs_a_bounded_number_of_probes_however_full_the_range() {
        const MOST: u32 = 1_024;
        let size = DEFAULT_RANGE.len();
        for (free, on_average, at_most_refused) in
            [(size / 2, 3, 0), (size / 10, 15, 0), (size / 100, 150, 10), (28, 1_024, 3_000)]
        {
            let (probes, refused) = probes_with(free, MOST);
            let average = probes.iter().sum::<usize>() / probes.len();
            assert!(average <= on_average, "{average} with {free} free");
            assert!(probes.iter().all(|probes| *probes <= MOST as usize));
            assert!(refused <= at_most_refused, "{refused} refused with {free} free");
        }
        let (probes, refused) = probes_with(0, MOST);
        assert_eq!((probes, refused), (std::vec![MOST as usize; 5_000], 5_000));
    }

    #[test]
    fn a_search_goes_on_where_the_last_one_ended() {
        let mut ports = PortSelector::new([3; 16], 5_000..=5_999);
        let mut searches = 0;
        while ports.select(local(), remote(1), 10, |port| free_if(port == 5_500)).is_none() {
            searches += 1;
        }
        assert!(searches < 100, "{searches} of 10 each");
    }

    #[test]
    fn a_free_port_nearby_goes_before_a_reusable_one() {
        let mut ports = PortSelector::new([3; 16], 5_000..=5_999);
        let mut asked = 0;
        let mut select = |free_from: u32| {
            asked = 0;
            ports.select(local(), remote(1), ALL, |_| {
                asked += 1;
                if asked > free_from { PortUsage::Free } else { PortUsage::Reusable }
            });
            asked
        };
        assert_eq!(select(0), 1);
        assert_eq!(select(PREFERENCE), PREFERENCE + 1);
        assert_eq!(select(PREFERENCE + 1), PREFERENCE + 1, "the first reusable one");
        let last = ports.select(local(), remote(1), 1, |_| PortUsage::Reusable);
        assert!(last.is_some(), "rather than none");
    }

    /// RFC 6056, section 3.1: whoever knows some ports does not know the next one.
    #[test]
    fn ports_without_a_peer_are_no_sequence_and_find_every_free_one() {
        for secret in 0..20 {
            let mut ports = PortSelector::new([secret; 16], DEFAULT_RANGE);
            let run: Vec<_> = (0..1_000).map(|_| ports.select_random(|_| true).expect("free")).collect();
            let steps: BTreeSet<_> = run.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
            // Of 999 steps among some 56,000, about nine meet another one.
            assert!(steps.len() > 950, "{} steps with secret {secret}", steps.len());
            // Each quarter of the range has its part: 250, with a standard deviation of 14.
            for quarter in 0..4 {
                let first = DEFAULT_RANGE.start() + quarter * 7_058;
                let part = run.iter().filter(|port| (first..first + 7_058).contains(*port)).count();
                assert!((180..320).contains(&part), "{part} in quarter {quarter} with secret {secret}");
            }
        }
        let mut ports = PortSelector::new([1; 16], 5_000..=5_099);
        let mut taken = BTreeSet::new();
        while let Some(port) = ports.select_random(|port| !taken.contains(&port)) {
            assert!(taken.insert(port));
        }
        assert!(taken.into_iter().eq(5_000..=5_099));
        assert_eq!(PortSelector::new([1; 16], 0..=0).select_random(|_| true), None);
    }

    #[test]
    fn same_secret_same_ports() {
        let run = |secret| {
            let mut ports = PortSelector::new([secret; 16], DEFAULT_RANGE);
            let random = ports.select_random(|_| true);
            (0..50).map(|host| take(&mut ports, host % 7)).chain([random]).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
