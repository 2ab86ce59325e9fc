//! The keys that an endpoint derives from its seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// One secret key per use, so that what one of them reveals says nothing about the others.
///
/// The endpoint derives them once, when it is created. They are consecutive blocks of the ChaCha8
/// stream keyed with the seed: the same on every machine, and as unpredictable as the seed.
pub(crate) struct Keys {
    /// Of `IsnGenerator`: initial sequence numbers and timestamp
    /// offsets.
    pub(crate) isn: [u8; 16],
    /// Of `PortSelector`.
    pub(crate) ports: [u8; 16],
    /// Of `Demux`.
    pub(crate) demux: [u8; 16],
    /// Of [`RateLimit::concealed`](crate::rate_limit::RateLimit::concealed).
    pub(crate) rate_limit: [u8; 16],
    /// The same of ICMP errors.
    pub(crate) icmp_limit: [u8; 16],
    /// Of `TimeWaitTable`.
    pub(crate) time_wait: [u8; 16],
    /// Of `SynCache`.
    pub(crate) syn_cache: [u8; 16],
    /// Of [`PathCache`](crate::share::PathCache).
    pub(crate) paths: [u8; 16],
    /// Of `SynCookies`.
    pub(crate) syn_cookies: [u8; 16],
    /// Of [`RateLimit::concealed`](crate::rate_limit::RateLimit::concealed), of RSTs.
    pub(crate) reset_limit: [u8; 16],
    /// Of `FastOpenCookies`.
    pub(crate) fast_open_cookies: [u8; 16],
    /// Of the [`AddressTable`](crate::share::AddressTable) of fast open cookies.
    pub(crate) fast_open_servers: [u8; 16],
    /// Of the flows of UDP.
    pub(crate) udp_flows: [u8; 16],
    /// Of `HeldSyns`.
    pub(crate) held_syns: [u8; 16],
    /// Of `Reassembly`.
    pub(crate) reassembly: [u8; 16],
}

impl Keys {
    /// The keys of an endpoint with this seed.
    #[must_use]
    pub(crate) fn from_seed(seed: [u8; 32]) -> Self {
        let mut stream = ChaCha8Rng::from_seed(seed);
        let mut key = || {
            let mut key = [0; 16];
            stream.fill_bytes(&mut key);
            key
        };
        // In this order: any other would change every run with a known seed.
        Self {
            isn: key(),
            ports: key(),
            demux: key(),
            rate_limit: key(),
            icmp_limit: key(),
            time_wait: key(),
            syn_cache: key(),
            paths: key(),
            syn_cookies: key(),
            reset_limit: key(),
            fast_open_cookies: key(),
            fast_open_servers: key(),
            udp_flows: key(),
            held_syns: key(),
            reassembly: key(),
        }
    }
}

impl core::fmt::Debug for Keys {
    /// Leaves out the secrets.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Keys;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn all(seed: [u8; 32]) -> [[u8; 16]; 15] {
        let keys = Keys::from_seed(seed);
        let Keys {
            isn,
            ports,
            demux,
            rate_limit,
            icmp_limit,
            time_wait,
            syn_cache,
            paths,
            syn_cookies,
            reset_limit,
            fast_open_cookies,
            fast_open_servers,
            udp_flows,
            held_syns,
            reassembly,
        } = keys;
        [
            isn,
            ports,
            demux,
            rate_limit,
            icmp_limit,
            time_wait,
            syn_cache,
            paths,
            syn_cookies,
            reset_limit,
            fast_open_cookies,
            fast_open_servers,
            udp_flows,
            held_syns,
            reassembly,
        ]
    }

    #[test]
    fn keys_are_the_chacha8_stream_of_the_seed() {
        // draft-strombergson-chacha-test-vectors-01, TC1: 256-bit key of zeros, 8 rounds, IV of
        // zeros.
        let stream = [
            0x3e, 0x00, 0xef, 0x2f, 0x89, 0x5f, 0x40, 0xd6, 0x7f, 0x5b, 0xb8, 0xe8, 0x1f, 0x09, 0xa5, 0xa1,
            0x2c, 0x84, 0x0e, 0xc3, 0xce, 0x9a, 0x7f, 0x3b, 0x18, 0x1b, 0xe1, 0x88, 0xef, 0x71, 0x1a, 0x1e,
            0x98, 0x4c, 0xe1, 0x72, 0xb9, 0x21, 0x6f, 0x41, 0x9f, 0x44, 0x53, 0x67, 0x45, 0x6d, 0x56, 0x19,
            0x31, 0x4a, 0x42, 0xa3, 0xda, 0x86, 0xb0, 0x01, 0x38, 0x7b, 0xfd, 0xb8, 0x0e, 0x0c, 0xfe, 0x42,
        ];
        assert_eq!(all([0; 32]).as_flattened()[..stream.len()], stream);
    }

    proptest! {
        #[test]
        fn every_key_is_another_one(a: [u8; 32], b: [u8; 32]) {
            prop_assume!(a != b);
            let different: BTreeSet<_> = all(a).into_iter().chain(all(b)).collect();
            prop_assert_eq!(different.len(), 30);
        }
    }
}
