//! The server's cookies of TCP Fast Open (RFC 7413, section 4.1.2): they show that a client has
//! received something at its address before.
//!
//! A cookie is the SipHash-2-4 of both addresses, 8 octets, under a key that only the server knows.
//! It takes no memory. A key is used for a period; cookies of the period before count as well, and
//! are renewed, so one is good for one to two periods. A period's key is the endpoint's with the
//! number of the period, so rotation costs nothing. Keys that the caller sets have no periods:
//! hosts that share one have no common clock.
//!
//! **Failure modes.** Whoever can receive at an address, now or within two periods, can forge SYNs
//! with data from it; clients behind one NAT have one cookie. That is why the number of pending
//! connections is bounded (section 5.1).

use crate::four_tuple::FourTuple;
use crate::time::{Duration, Instant};
use crate::wire::FastOpenCookie;
use core::net::IpAddr;
use siphasher::sip::SipHasher24;

/// Makes and checks cookies. The endpoint has one.
pub(crate) struct FastOpenCookies {
    current: SipHasher24,
    /// Keys that the caller has set.
    set: Option<Previous>,
}

/// The key before the one in use, if there is one.
type Previous = Option<SipHasher24>;

/// What a cookie proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validity {
    /// It was made with the key in use.
    Current,
    /// It was made with the key before.
    Previous,
    /// Nothing.
    Invalid,
}

impl FastOpenCookies {
    /// `secret` must be random if peers are not trusted.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self { current: SipHasher24::new_with_key(&secret), set: None }
    }

    /// Replaces the keys.
    pub(crate) fn set_keys(&mut self, current: [u8; 16], previous: Option<[u8; 16]>) {
        self.current = SipHasher24::new_with_key(&current);
        self.set = Some(previous.map(|key| SipHasher24::new_with_key(&key)));
    }

    /// The cookie for the client of `tuple`. `lifetime`: that of a key of the endpoint's own.
    pub(crate) fn make(&self, now: Instant, lifetime: Duration, tuple: &FourTuple) -> FastOpenCookie {
        let period = if self.set.is_some() { 0 } else { period(now, lifetime) };
        cookie(&self.current, period, tuple)
    }

    /// What `shown` proves of the client of `tuple`.
    pub(crate) fn check(
        &self,
        now: Instant,
        lifetime: Duration,
        tuple: &FourTuple,
        shown: &FastOpenCookie,
    ) -> Validity {
        if shown.as_slice() == self.make(now, lifetime, tuple).as_slice() {
            return Validity::Current;
        }
        let before = match &self.set {
            Some(previous) => previous.as_ref().map(|key| cookie(key, 0, tuple)),
            None => period(now, lifetime).checked_sub(1).map(|period| cookie(&self.current, period, tuple)),
        };
        if before.is_some_and(|before| before.as_slice() == shown.as_slice()) {
            Validity::Previous
        } else {
            Validity::Invalid
        }
    }
}

fn period(now: Instant, lifetime: Duration) -> u64 {
    now.as_nanos() / lifetime.as_nanos().max(1)
}

fn cookie(key: &SipHasher24, period: u64, tuple: &FourTuple) -> FastOpenCookie {
    // Two IPv6 addresses and the period. Those of IPv4 make a shorter text.
    let mut text = [0; 16 + 16 + 8];
    let mut len = 0;
    let mut put = |octets: &[u8]| {
        if let Some(room) = text.get_mut(len..len + octets.len()) {
            room.copy_from_slice(octets);
            len += octets.len();
        }
    };
    for address in [tuple.remote_ip(), tuple.local().ip()] {
        match address {
            IpAddr::V4(address) => put(&address.octets()),
            IpAddr::V6(address) => put(&address.octets()),
        }
    }
    put(&period.to_be_bytes());
    let hash = key.hash(text.get(..len).unwrap_or_default()).to_be_bytes();
    FastOpenCookie::new(&hash).unwrap_or(FastOpenCookie::REQUEST)
}

impl core::fmt::Debug for FastOpenCookies {
    /// Leaves out the secrets.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FastOpenCookies").field("set", &self.set.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{FastOpenCookies, Validity};
    use crate::four_tuple::FourTuple;
    use crate::time::{Duration, Instant};
    use crate::wire::FastOpenCookie;
    use proptest::prelude::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn at(second: u64) -> Instant {
        Instant::from_secs(second)
    }

    #[test]
    fn a_cookie_is_good_for_one_to_two_periods() {
        let (cookies, tuple) = (FastOpenCookies::new([1; 16]), FourTuple::numbered(1));
        let cookie = cookies.make(at(5_000), HOUR, &tuple);
        assert_eq!(cookie.as_slice().len(), 8);
        for (second, validity) in [
            (3_600, Validity::Current),
            (7_199, Validity::Current),
            (7_200, Validity::Previous),
            (10_799, Validity::Previous),
            (10_800, Validity::Invalid),
        ] {
            assert_eq!(cookies.check(at(second), HOUR, &tuple, &cookie), validity, "{second}");
        }
        assert_eq!(cookies.check(at(5_000), HOUR, &tuple, &FastOpenCookie::REQUEST), Validity::Invalid);
    }

    #[test]
    fn hosts_with_one_key_accept_each_others_cookies_at_any_time() {
        let tuple = FourTuple::numbered(1);
        let mut hosts = [1, 2].map(|seed| FastOpenCookies::new([seed; 16]));
        let own = hosts[0].make(at(0), HOUR, &tuple);
        assert_eq!(hosts[1].check(at(0), HOUR, &tuple, &own), Validity::Invalid);
        hosts.iter_mut().for_each(|host| host.set_keys([7; 16], None));
        let old = hosts[0].make(at(10), HOUR, &tuple);
        assert_eq!(hosts[1].check(at(1_000_000), HOUR, &tuple, &old), Validity::Current);
        hosts.iter_mut().for_each(|host| host.set_keys([8; 16], Some([7; 16])));
        assert_eq!(hosts[1].check(at(10), HOUR, &tuple, &old), Validity::Previous);
        let new = hosts[0].make(at(10), HOUR, &tuple);
        assert_eq!(hosts[1].check(at(10), HOUR, &tuple, &new), Validity::Current);
        hosts[1].set_keys([9; 16], Some([8; 16]));
        assert_eq!(hosts[1].check(at(10), HOUR, &tuple, &old), Validity::Invalid);
    }

    proptest! {
        #[test]
        fn nothing_of_a_cookie_can_be_changed(secret: [u8; 16], number in 0u32..1_000, bit in 0usize..64) {
            let (cookies, tuple) = (FastOpenCookies::new(secret), FourTuple::numbered(number << 16));
            let cookie = cookies.make(at(1), HOUR, &tuple);
            let mut octets: [u8; 8] = cookie.as_slice().try_into().unwrap();
            octets[bit / 8] ^= 1 << (bit % 8);
            for shown in [&octets[..], &octets[..6], &[&octets[..], &[0, 0]].concat()] {
                let shown = FastOpenCookie::new(shown).unwrap();
                prop_assert_eq!(cookies.check(at(1), HOUR, &tuple, &shown), Validity::Invalid);
            }
            let other = FourTuple::numbered((number + 1) << 16);
            prop_assert_eq!(cookies.check(at(1), HOUR, &other, &cookie), Validity::Invalid);
        }
    }
}
