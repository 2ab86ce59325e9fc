//! Rate limits for answers that anyone can provoke: challenge ACKs (RFC 5961, section 7), RSTs,
//! ICMP.
//!
//! A connection's own limits keep two confused hosts from exchanging ACKs forever, and cap an
//! attack on it at two packets a second of each kind. The endpoint's limit bounds what all
//! connections send together; it must not be the only one, because those who share it can observe
//! how much of it others use (RFC 5961, section 10; CVE-2016-5696): [`RateLimit::concealed`].
//! Endpoints of one host [have one together](RateLimit::join), which is concealed in the same way:
//! what each interval permits is the same for all, whoever takes it, and none can tell it from what
//! it gets itself.

use crate::reserve::{HostRate, MOST};
use crate::sync::Arc;
use crate::time::{Duration, Instant};
use siphasher::sip::SipHasher13;

/// At most a number of events per interval. An interval starts with the first event after the
/// previous one has ended.
#[derive(Clone)]
pub(crate) struct RateLimit {
    /// Events per interval, at most.
    max: u32,
    interval: Duration,
    /// End of the current interval.
    until: Instant,
    /// Events that the current interval still permits.
    left: u32,
    concealment: Option<SipHasher13>,
    /// What all endpoints of the host have together.
    host: Option<Arc<HostRate>>,
}

impl RateLimit {
    /// A limit of `max` events per `interval`. With `max` 0 nothing is permitted; otherwise an
    /// interval of zero means no limit.
    #[must_use]
    pub(crate) const fn new(max: u32, interval: Duration) -> Self {
        Self { max, interval, until: Instant::ZERO, left: 0, concealment: None, host: None }
    }

    /// A limit that each interval draws from `max / 2 ..= max`, so that an attacker who counts the
    /// answers it gets cannot infer how many others got in the same interval (CVE-2016-5696).
    #[must_use]
    pub(crate) fn concealed(max: u32, interval: Duration, secret: [u8; 16]) -> Self {
        Self { concealment: Some(SipHasher13::new_with_key(&secret)), ..Self::new(max, interval) }
    }

    /// The limit is one of several endpoints together, all of which have the same one, with the
    /// same secret. Their intervals begin together, at multiples of their length.
    pub(crate) fn join(&mut self, host: Arc<HostRate>) {
        self.host = Some(host);
    }

    /// Counts an event at `now`; false if it exceeds the limit.
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        if self.host.is_some() {
            return self.allow_of_host(now);
        }
        if now >= self.until {
            self.until = now + self.interval;
            self.left = self.draw(now);
        }
        let allowed = self.left > 0;
        self.left -= u32::from(allowed);
        allowed
    }

    /// The same for a limit of several endpoints.
    fn allow_of_host(&mut self, now: Instant) -> bool {
        let length = self.interval.as_nanos().max(1);
        let interval = now.as_nanos() / length;
        let begin = Instant::from_nanos(interval * length);
        if now < self.until && self.left > 0 {
            self.left -= 1;
            return true;
        }
        // As many events as the word has numbers are taken one by one.
        let unit = self.max.div_ceil(u32::from(MOST)).max(1);
        let whole = || (self.draw(begin) / unit) as u16;
        let allowed = self.host.as_ref().is_some_and(|host| host.take(interval, whole));
        if allowed {
            (self.until, self.left) = (begin + self.interval, unit - 1);
        }
        allowed
    }

    /// The limit of the interval that starts at `now`.
    fn draw(&self, now: Instant) -> u32 {
        let Some(hasher) = &self.concealment else { return self.max };
        let least = self.max.div_ceil(2);
        let choices = u64::from(self.max - least) + 1;
        // At most 2^31 choices of 2^64: the bias of the remainder is negligible.
        least + (hasher.hash(&now.as_nanos().to_le_bytes()) % choices) as u32
    }
}

impl core::fmt::Debug for RateLimit {
    /// Leaves out the secret, and what was drawn with it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RateLimit")
            .field("max", &self.max)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

/// A connection's own limit, in four bytes: events are at least 500 ms apart.
///
/// Its clock has units of 2^20 ns, about a millisecond, and wraps after 52 days. An event is
/// refused if the next one is due within the gap, so one that comes a multiple of 52 days after the
/// last may be refused, too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ConnRateLimit {
    /// When the next event is permitted; 0 before the first.
    next: u32,
}

impl ConnRateLimit {
    /// 500 ms, as in Linux (`net.ipv4.tcp_invalid_ratelimit`): the rate of RFC 5961, section 7,
    /// which is 10 challenge ACKs in 5 seconds, without its bursts. Legitimate peers need one ACK,
    /// and if it is lost repeat their segment no sooner than after their RTO. Counted from the
    /// start of a unit: one more.
    const GAP: u32 = Duration::from_millis(500).as_nanos().div_ceil(1 << 20) as u32 + 1;

    /// Counts an event at `now`; false if it exceeds the limit.
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        let now = now.coarse();
        let wait = self.next.wrapping_sub(now);
        let allowed = self.next == 0 || wait == 0 || wait > Self::GAP;
        if allowed {
            self.next = now.wrapping_add(Self::GAP).max(1);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnRateLimit, RateLimit};
    use crate::reserve::HostRate;
    use crate::sync::Arc;
    use crate::time::{Duration, Instant};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    const SECOND: Duration = Duration::from_secs(1);
    const SECOND_ONE: Instant = Instant::from_secs(1);

    fn allowed(limit: &mut RateLimit, at: Instant, events: usize) -> usize {
        (0..events).filter(|_| limit.allow(at)).count()
    }

    #[test]
    fn each_interval_permits_its_share() {
        let mut limit = RateLimit::new(3, SECOND);
        assert_eq!(allowed(&mut limit, Instant::from_millis(400), 10), 3);
        assert_eq!(allowed(&mut limit, Instant::from_millis(1_399), 10), 0);
        assert_eq!(allowed(&mut limit, Instant::from_millis(1_400), 2), 2);
        assert_eq!(
            allowed(&mut limit, Instant::from_millis(1_500), 2),
            1,
            "the share is the whole interval's"
        );
        assert_eq!(allowed(&mut limit, Instant::from_secs(60), 10), 3, "what was not used is lost");
    }

    #[test]
    fn zero_permits_nothing_and_no_interval_everything() {
        assert_eq!(allowed(&mut RateLimit::new(0, SECOND), Instant::from_secs(9), 10), 0);
        assert_eq!(allowed(&mut RateLimit::concealed(0, SECOND, [1; 16]), Instant::from_secs(9), 10), 0);
        assert_eq!(allowed(&mut RateLimit::new(1, Duration::ZERO), Instant::from_secs(9), 10), 10);
        assert_eq!(allowed(&mut RateLimit::new(2, Duration::MAX), Instant::from_secs(9), 10), 2);
        assert_eq!(allowed(&mut RateLimit::new(u32::MAX, SECOND), Instant::FAR_FUTURE, 10), 10);
    }

    #[test]
    fn concealed_limit_is_another_one_each_interval() {
        let run = |secret| {
            let mut limit = RateLimit::concealed(1_000, SECOND, [secret; 16]);
            (0..50).map(|second| allowed(&mut limit, Instant::from_secs(second), 2_000)).collect::<Vec<_>>()
        };
        let limits = run(1);
        assert!(limits.iter().all(|limit| (500..=1_000).contains(limit)), "{limits:?}");
        assert!(limits.iter().collect::<BTreeSet<_>>().len() > 40, "{limits:?}");
        assert_eq!(limits, run(1));
        assert_ne!(limits, run(2));
        assert_eq!(
            allowed(&mut RateLimit::concealed(1, SECOND, [1; 16]), Instant::ZERO, 10),
            1,
            "never none"
        );
    }

    /// The limits of endpoints of one host.
    fn together(max: u32, endpoints: usize) -> Vec<RateLimit> {
        let host = Arc::new(HostRate::new());
        let mut limit = RateLimit::concealed(max, SECOND, [1; 16]);
        limit.join(host);
        (0..endpoints).map(|_| limit.clone()).collect()
    }

    #[test]
    fn endpoints_have_one_limit_together() {
        for max in [0, 1, 2, 100, 1_000] {
            let mut limits = together(max, 3);
            let mut seen = BTreeSet::new();
            for second in 0..60_u64 {
                let at = |millis: u64| Instant::from_millis(second * 1_000 + millis);
                let first = allowed(&mut limits[0], at(10), 30);
                let others = allowed(&mut limits[1], at(500), 20) + allowed(&mut limits[2], at(999), 2_000);
                assert_eq!(allowed(&mut limits[0], at(999), 10), 0);
                let sum = (first + others) as u32;
                assert!((max.div_ceil(2)..=max).contains(&sum), "{sum} of {max}");
                seen.insert(sum);
                // One alone has the same.
                let mut alone = together(max, 1).remove(0);
                assert_eq!(allowed(&mut alone, at(700), 2_000) as u32, sum);
            }
            assert!(max < 1_000 || seen.len() > 40, "{seen:?}");
        }
    }

    #[test]
    fn a_limit_of_more_than_a_word_counts_is_nearly_exact() {
        let mut limits = together(1_000_000, 2);
        let sum =
            allowed(&mut limits[0], SECOND_ONE, 300_000) + allowed(&mut limits[1], SECOND_ONE, 2_000_000);
        assert!((499_000..=1_000_000).contains(&sum), "{sum}");
        let mut limits = together(u32::MAX, 2);
        assert!(limits.iter_mut().all(|limit| allowed(limit, Instant::FAR_FUTURE, 10) == 10));
    }

    #[test]
    fn connection_sends_two_a_second() {
        assert_eq!(size_of::<ConnRateLimit>(), 4);
        // The last starts just before the clock wraps.
        for start in [0_u64, 5_000, (1 << 52) / 1_000_000] {
            let at = |millis| Instant::from_millis(start + millis);
            let mut limit = ConnRateLimit::default();
            assert!(limit.allow(at(0)), "the first");
            assert!(!limit.allow(at(499)));
            assert!(limit.allow(at(502)));
            assert!(!limit.allow(at(1_001)), "refusals do not move the limit");
            assert!(limit.allow(at(1_004)));
            assert!(limit.allow(at(3_600_000)), "much later");
        }
    }

    proptest! {
        #[test]
        fn rfc_5961_section_7_holds_over_any_window(gaps in prop::collection::vec(0u64..2_000, 1..200)) {
            let (mut limit, mut now) = (ConnRateLimit::default(), 0);
            let mut sent = Vec::new();
            for gap in gaps {
                now += gap;
                if limit.allow(Instant::from_millis(now)) {
                    sent.push(now);
                }
            }
            for start in &sent {
                let burst = sent.iter().filter(|at| (*start..start + 5_000).contains(*at)).count();
                prop_assert!(burst <= 10);
            }
        }
    }
}
