//! SYN cookies: SYN-ACKs that leave no state behind (RFC 4987, section 3.6).
//!
//! What the SYN said comes back with the ACK of the SYN-ACK. The initial sequence number says what
//! it must:
//!
//! ```text
//!   31    29 28                                             0
//!   ┌───────┬────────────────────────────────────────────────┐
//!   │  MSS  │ SipHash-2-4 of four-tuple, IRS, MSS and period │
//!   └───────┴────────────────────────────────────────────────┘
//! ```
//!
//! If the peer sends timestamps, the six lowest bits of the SYN-ACK's timestamp say the rest, as in
//! Linux: the window shift (4 bits; 15: none), SACK and ECN. Its time is up to 64 ms early. The
//! echo is not authenticated: a peer that changes it misleads only itself. Without timestamps the
//! SYN-ACK offers neither window scaling nor SACK nor ECN.
//!
//! **Forgery.** Time is divided into periods of 64 s, and the hash of each is as good as one with a
//! key of its own. A cookie counts in its period and in the next, so for 64 to 128 s, and 2 of 2^29
//! hashes are right at a time: a blind ACK passes with a probability of 2^-28. ACKs are only
//! checked while a cookie that was sent can be valid. Somebody who saw a valid ACK can repeat it in
//! that time, and so can the peer, which opens a connection once more.
//!
//! **Failure modes.** Nothing is retransmitted: if the SYN-ACK is lost, the peer repeats its SYN.
//! If the ACK is lost, a peer that does not speak first waits for a server that knows nothing of
//! it. The MSS is rounded down to one of eight, and the round trip of the handshake is not
//! measured.

use crate::conn::Offer;
use crate::four_tuple::FourTuple;
use crate::seq::SeqNum;
use crate::time::{Duration, Instant};
use siphasher::sip::SipHasher24;

/// Makes and checks cookies. The endpoint has one.
pub(crate) struct SynCookies {
    hasher: SipHasher24,
    /// When the last cookie was sent.
    last_sent: Option<Instant>,
}

/// A cookie is valid in the period in which it was made, and in the next one.
const PERIOD: Duration = Duration::from_secs(64);
/// Bits of the hash.
const HASH_BITS: u32 = 29;
/// The segment sizes that a cookie tells apart: those of common links less 40 or 60 bytes of
/// headers, the defaults of both families, and the smallest that counts.
const SIZES: [u16; 8] = [48, 536, 1_220, 1_360, 1_400, 1_440, 1_460, 8_940];
/// Bits of the timestamp.
const STAMP: u32 = (1 << 6) - 1;
/// In place of a window shift, of which 14 is the largest.
const NO_SCALE: u32 = 15;
const SACK: u32 = 1 << 4;
const ECN: u32 = 1 << 5;

impl SynCookies {
    /// `secret` must be random if peers are not trusted.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self { hasher: SipHasher24::new_with_key(&secret), last_sent: None }
    }

    /// The initial sequence number that answers a SYN of `tuple` with the number `irs` and this
    /// MSS.
    pub(crate) fn make(&mut self, now: Instant, tuple: &FourTuple, irs: SeqNum, mss: u16) -> SeqNum {
        self.last_sent = Some(now);
        let index = SIZES.iter().rposition(|size| *size <= mss).unwrap_or(0) as u32;
        SeqNum(index << HASH_BITS | self.hash(period(now), tuple, irs, index))
    }

    /// The MSS of the SYN with the number `irs` that was answered with `cookie`; `None` if none
    /// was.
    pub(crate) fn check(&self, now: Instant, tuple: &FourTuple, irs: SeqNum, cookie: SeqNum) -> Option<u16> {
        let index = cookie.0 >> HASH_BITS;
        let hash = cookie.0 & ((1 << HASH_BITS) - 1);
        let this = period(now);
        let valid = [Some(this), this.checked_sub(1)];
        let is_right = |period| self.hash(period, tuple, irs, index) == hash;
        valid.into_iter().flatten().any(is_right).then(|| SIZES[index as usize])
    }

    /// True if a cookie that was sent may still be valid.
    pub(crate) fn may_be_valid(&self, now: Instant) -> bool {
        self.last_sent.is_some_and(|sent| period(now) - period(sent) <= 1)
    }

    fn hash(&self, period: u64, tuple: &FourTuple, irs: SeqNum, index: u32) -> u32 {
        // The longest four-tuple has 36 bytes. Those of another family make a text of another
        // length.
        let mut text = [0; 36 + 4 + 8 + 1];
        let name = tuple.as_bytes();
        let (head, tail) = text.split_at_mut(name.len());
        head.copy_from_slice(name);
        tail[..4].copy_from_slice(&irs.0.to_be_bytes());
        tail[4..12].copy_from_slice(&period.to_be_bytes());
        tail[12] = index as u8;
        let len = name.len() + 13;
        self.hasher.hash(&text[..len]) as u32 & ((1 << HASH_BITS) - 1)
    }
}

/// The number of the period.
fn period(now: Instant) -> u64 {
    now.as_nanos() / PERIOD.as_nanos()
}

/// The latest time in milliseconds, at most `clock`, whose lowest bits stand for `offer`.
pub(crate) fn stamp(clock: u32, offer: Offer) -> u32 {
    let scale = offer.window_scale().map_or(NO_SCALE, |shift| u32::from(shift.min(14)));
    let flag = |set: bool, flag: u32| if set { flag } else { 0 };
    let bits = scale | flag(offer.sack(), SACK) | flag(offer.ecn(), ECN);
    let stamp = clock & !STAMP | bits;
    if bits > clock & STAMP { stamp.wrapping_sub(STAMP + 1) } else { stamp }
}

/// The offer for which [`stamp`] stands, of a peer whose own clock shows `val`.
pub(crate) fn offer(mss: u16, stamp: u32, val: u32) -> Offer {
    let scale = stamp & NO_SCALE;
    let scale = (scale != NO_SCALE).then_some(scale as u8);
    Offer::new(Some(mss), scale, stamp & SACK != 0, Some(val), stamp & ECN != 0)
}

impl core::fmt::Debug for SynCookies {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SynCookies").field("last_sent", &self.last_sent).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{SIZES, SynCookies, offer, stamp};
    use crate::conn::Offer;
    use crate::four_tuple::FourTuple;
    use crate::seq::SeqNum;
    use crate::time::{Duration, Instant};
    use proptest::prelude::*;

    const IRS: SeqNum = SeqNum(77);

    #[test]
    fn a_cookie_is_valid_for_64_to_128_seconds() {
        for (at, lasts) in [(128_000, 127_999), (191_999, 64_000), (150_000, 105_999)] {
            let (mut cookies, tuple) = (SynCookies::new([1; 16]), FourTuple::numbered(4));
            let made = Instant::from_millis(at);
            assert!(!cookies.may_be_valid(made));
            let cookie = cookies.make(made, &tuple, IRS, 1_460);
            for (later, valid) in [(0, true), (lasts, true), (lasts + 1, false), (1_000_000, false)] {
                let now = made + Duration::from_millis(later);
                assert_eq!(cookies.check(now, &tuple, IRS, cookie), valid.then_some(1_460), "{at} {later}");
                assert_eq!(cookies.may_be_valid(now), valid, "{at} {later}");
            }
        }
    }

    #[test]
    fn the_size_is_the_next_one_that_the_peer_takes() {
        let (mut cookies, tuple) = (SynCookies::new([1; 16]), FourTuple::numbered(5));
        for (mss, told) in [(1, 48), (535, 48), (536, 536), (1_459, 1_440), (1_460, 1_460), (65_535, 8_940)] {
            let cookie = cookies.make(Instant::ZERO, &tuple, IRS, mss);
            assert_eq!(cookies.check(Instant::ZERO, &tuple, IRS, cookie), Some(told));
        }
        assert!(SIZES.is_sorted());
    }

    /// Two periods of 2^29 hashes.
    #[test]
    fn a_guess_is_right_as_seldom_as_stated() {
        let (cookies, tuple) = (SynCookies::new([1; 16]), FourTuple::numbered(6));
        let now = Instant::from_secs(1_000);
        let right = (0..2_000_000u32).filter(|guess| {
            cookies.check(now, &tuple, IRS, SeqNum(guess.wrapping_mul(2_654_435_761))).is_some()
        });
        assert_eq!(right.count(), 0, "0.007 are to be expected");
    }

    proptest! {
        #[test]
        fn nothing_of_a_cookie_can_be_changed(
            secret: [u8; 16], number in 0u32..1_000, irs: u32, seconds in 0u64..1_000_000, mss: u16, bit in 0u32..32,
        ) {
            let (mut cookies, tuple) = (SynCookies::new(secret), FourTuple::numbered(number));
            let now = Instant::from_secs(seconds);
            let cookie = cookies.make(now, &tuple, SeqNum(irs), mss);
            prop_assert!(cookies.check(now, &tuple, SeqNum(irs), cookie).is_some());
            prop_assert_eq!(cookies.check(now, &tuple, SeqNum(irs), SeqNum(cookie.0 ^ 1 << bit)), None);
            prop_assert_eq!(cookies.check(now, &tuple, SeqNum(irs ^ 1 << bit), cookie), None);
            prop_assert_eq!(cookies.check(now, &FourTuple::numbered(number + 1), SeqNum(irs), cookie), None);
        }

        #[test]
        fn a_stamp_tells_the_offer_and_is_hardly_early(
            clock: u32, scale in prop::option::of(0u8..=14), sack: bool, ecn: bool, val: u32,
        ) {
            let offered = Offer::new(Some(1_460), scale, sack, Some(val), ecn);
            let stamp = stamp(clock, offered);
            prop_assert!(clock.wrapping_sub(stamp) < 64);
            prop_assert_eq!(offer(1_460, stamp, val), offered);
        }
    }
}
