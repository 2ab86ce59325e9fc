//! Initial sequence numbers and timestamp offsets.
//!
//! Both are keyed hashes of the connection's addresses and ports. An off-path attacker cannot guess
//! them; yet a later connection between the same two sockets continues where the earlier one ended,
//! so that old segments fall outside its window (RFC 6528) and a peer in TIME-WAIT sees its
//! timestamps increase (RFC 6191).

use crate::four_tuple::FourTuple;
use crate::seq::SeqNum;
use crate::time::Instant;
use siphasher::sip::SipHasher24;

/// Generates initial sequence numbers and timestamp offsets. The endpoint has one, and uses it for
/// each SYN and SYN-ACK.
#[derive(Clone)]
pub(crate) struct IsnGenerator {
    hasher: SipHasher24,
}

/// Nanoseconds per step of the timer M of RFC 6528, section 3.
const TICK_NANOS: u64 = 4_000;

impl IsnGenerator {
    /// A generator with a secret key, which must be random if peers are not trusted.
    #[must_use]
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self { hasher: SipHasher24::new_with_key(&secret) }
    }

    /// ISN = M + F(local address, local port, remote address, remote port, secret), where M counts
    /// steps of 4 microseconds (RFC 6528, section 3). F is SipHash-2-4.
    #[must_use]
    pub(crate) fn isn(&self, now: Instant, connection: &FourTuple) -> SeqNum {
        let ticks = now.as_nanos() / TICK_NANOS;
        SeqNum(self.hasher.hash(connection.as_bytes()) as u32) + ticks as u32
    }

    /// The ISN of a connection that follows one in TIME-WAIT between the same sockets whose SND.NXT
    /// was `floor`: [`isn`](Self::isn) if that is above it, otherwise the next number (RFC 9293,
    /// section 3.6.1: "larger than the largest sequence number it used on the previous
    /// connection").
    #[must_use]
    pub(crate) fn isn_above(&self, now: Instant, connection: &FourTuple, floor: SeqNum) -> SeqNum {
        self.isn(now, connection).max(floor + 1)
    }

    /// The offset of a connection's timestamp clock, which keeps the clock from revealing the
    /// host's uptime, or which connections belong to one host (RFC 7323, sections 5.4 and 7.1).
    #[must_use]
    pub(crate) fn timestamp_offset(&self, connection: &FourTuple) -> u32 {
        // The half of the hash not used for the ISN: the bits of a keyed hash reveal nothing about
        // each other.
        (self.hasher.hash(connection.as_bytes()) >> 32) as u32
    }
}

impl core::fmt::Debug for IsnGenerator {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("IsnGenerator").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::IsnGenerator;
    use crate::four_tuple::FourTuple;
    use crate::time::{Duration, Instant};
    use core::hash::Hasher;
    use proptest::prelude::*;

    fn tuple(local_port: u16, remote_port: u16) -> FourTuple {
        let local = ([192, 0, 2, 1], local_port).into();
        FourTuple::new(local, ([198, 51, 100, 7], remote_port).into())
    }

    #[test]
    fn advances_by_one_each_four_microseconds_and_wraps() {
        let isn = IsnGenerator::new([7; 16]);
        let start = Instant::from_secs(1);
        let first = isn.isn(start, &tuple(1, 2));
        assert_eq!(isn.isn(start + Duration::from_micros(3), &tuple(1, 2)), first);
        assert_eq!(isn.isn(start + Duration::from_micros(4), &tuple(1, 2)), first + 1);
        assert_eq!(isn.isn(start + Duration::from_secs(1), &tuple(1, 2)), first + 250_000);
        // RFC 6528: a cycle takes 4 us times 2^32, about 4.77 hours.
        assert_eq!(isn.isn(start + Duration::from_micros(4 << 32), &tuple(1, 2)), first);
    }

    #[test]
    fn successor_of_a_time_wait_connection_begins_beyond_it() {
        let isn = IsnGenerator::new([7; 16]);
        let (now, tuple) = (Instant::from_secs(1), tuple(1, 2));
        let usual = isn.isn(now, &tuple);
        assert_eq!(isn.isn_above(now, &tuple, usual - 1), usual);
        assert_eq!(isn.isn_above(now, &tuple, usual - 1_000_000), usual);
        assert_eq!(isn.isn_above(now, &tuple, usual), usual + 1);
        assert_eq!(isn.isn_above(now, &tuple, usual + 1_000_000), usual + 1_000_001);
    }

    #[test]
    fn offset_is_siphash_2_4_of_the_tuple() {
        let bytes = [192, 0, 2, 1, 198, 51, 100, 7, 0x01, 0xbb, 0xea, 0x60];
        let mut hasher =
            siphasher::sip::SipHasher24::new_with_keys(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        hasher.write(&bytes);
        let expected = hasher.finish();
        let isn = IsnGenerator::new(core::array::from_fn(|i| i as u8));
        assert_eq!(isn.isn(Instant::ZERO, &tuple(443, 60_000)).0, expected as u32);
        assert_eq!(isn.timestamp_offset(&tuple(443, 60_000)), (expected >> 32) as u32);
    }

    proptest! {
        #[test]
        fn grows_with_time_for_one_connection(secret: [u8; 16], start: u64, wait in 4_000u64..8_000_000_000_000) {
            let (isn, tuple) = (IsnGenerator::new(secret), tuple(1, 2));
            let start = Instant::from_nanos(start / 2);
            let (earlier, later) = (isn.isn(start, &tuple), isn.isn(start + Duration::from_nanos(wait), &tuple));
            prop_assert!(later.gt(earlier));
        }

        #[test]
        fn depends_on_secret_and_connection(a: [u8; 16], b: [u8; 16], port in 1u16..u16::MAX) {
            prop_assume!(a != b);
            let (one, other) = (IsnGenerator::new(a), IsnGenerator::new(b));
            let all = |isn: &IsnGenerator, local, remote| {
                let tuple = tuple(local, remote);
                (isn.isn(Instant::ZERO, &tuple), isn.timestamp_offset(&tuple))
            };
            prop_assert_ne!(all(&one, port, 80), all(&other, port, 80));
            prop_assert_ne!(all(&one, port, 80), all(&one, port + 1, 80));
            prop_assert_ne!(all(&one, port, 80), all(&one, 80, port.max(81)));
        }
    }
}
