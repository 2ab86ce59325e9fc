//! The shaper: any scheduler behind a token bucket.
//!
//! The bucket decides *when* a packet may leave; the scheduler decides *which*, at that moment. No
//! packet is taken out of the scheduler early, so an urgent one that arrives later still goes
//! first.

use crate::bucket::TokenBucket;
use ackline_tcp_core::policy::sched::{
    Admission, Arrival, Ask, Backlog, Bypass, Descriptor, EgressScheduler, Forget, LinkView, Popped,
    SchedulerProperties, Scope,
};
use ackline_tcp_core::policy::spec::{Key, Keyed};
use ackline_tcp_core::policy::{Metrics, Params, SpecError};
use ackline_tcp_core::quantity::Amount;
use ackline_tcp_core::{ConnId, Duration, Instant, Rate};

/// The largest burst.
const MAX_BURST: (u64, Duration) = (1 << 30, Duration::from_secs(10));

/// The shaper's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShaperParams {
    /// The rate; `None`: unlimited.
    pub rate: Option<Rate>,
    /// What an idle period saves up, at most 1 GiB or 10 s.
    pub burst: Amount,
    /// The longest compensated lateness of the driver, at most 1 s. A driver that wakes up late
    /// while packets wait sends at once what the rate would have allowed meanwhile, beyond the
    /// burst; lateness above this limit costs rate.
    pub late: Duration,
    /// Bytes added to each wire packet's price, at most 1000: headers of lower layers.
    pub overhead: u32,
}

impl Default for ShaperParams {
    /// No rate; with one, a burst of 1 ms, up to 100 ms of compensated lateness, and no overhead.
    fn default() -> Self {
        Self {
            rate: None,
            burst: Amount::Time(Duration::from_millis(1)),
            late: Duration::from_millis(100),
            overhead: 0,
        }
    }
}

impl Keyed for ShaperParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::rate_or("rate", "off", "shape what leaves to this rate (10mbit)", |it| &mut it.rate),
        Key::amount(
            "burst",
            MAX_BURST,
            "what an idle time saves up, in bytes (32k) or as a time at the rate (5ms)",
            |it| it.burst,
            |it, burst| it.burst = burst,
        ),
        Key::time(
            "late",
            Duration::ZERO..=Duration::from_secs(1),
            "up to how late a wake-up of the host may be without costing rate",
            |it| &mut it.late,
        ),
        Key::integer("overhead", 0..=1_000, "bytes that each packet costs beyond its length", |it| {
            &mut it.overhead
        }),
    ];
}

impl ShaperParams {
    fn burst_bytes(&self, rate: Rate) -> u64 {
        match self.burst {
            Amount::Size(bytes) => bytes,
            Amount::Time(time) => {
                let bytes = u128::from(rate.bytes_per_second()) * u128::from(time.as_nanos());
                u64::try_from(bytes / 1_000_000_000).unwrap_or(u64::MAX)
            }
        }
    }
}

/// A scheduler behind a token bucket. Without a rate it costs one branch.
///
/// It has the name of the inner scheduler, reports its metrics in addition to its own, and passes
/// on parameters that are not the shaper's.
#[derive(Clone, Debug)]
pub struct Shaped<S> {
    inner: S,
    params: ShaperParams,
    bucket: Option<TokenBucket>,
    /// The bucket has yet to adopt `params`.
    changed: bool,
    lateness: Lateness,
}

/// How late the driver was, and how much was compensated.
#[derive(Clone, Copy, Debug, Default)]
struct Lateness {
    wake_ups: u64,
    longest: Duration,
    bytes: u64,
}

impl<S: EgressScheduler> Shaped<S> {
    /// Puts `inner` behind a shaper.
    #[must_use]
    pub fn new(inner: S, params: ShaperParams) -> Self {
        let bucket = params.rate.map(|rate| TokenBucket::new(rate, params.burst_bytes(rate)));
        Self { inner, params, bucket, changed: false, lateness: Lateness::default() }
    }

    /// The shaper's parameters.
    #[must_use]
    pub const fn params(&self) -> &ShaperParams {
        &self.params
    }

    /// Adopts parameters that `configure` could not, because it has no timestamp.
    fn reconfigure(&mut self, now: Instant) {
        self.changed = false;
        let Some(rate) = self.params.rate else { return };
        let burst = self.params.burst_bytes(rate);
        match &mut self.bucket {
            Some(bucket) => bucket.set(now, rate, burst),
            None => self.bucket = Some(TokenBucket::new(rate, burst)),
        }
    }
}

impl<S: EgressScheduler> EgressScheduler for Shaped<S> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn admit(&mut self, now: Instant, ask: &Ask) -> Admission {
        self.inner.admit(now, ask)
    }

    fn push(&mut self, now: Instant, packet: Descriptor) {
        self.inner.push(now, packet);
    }

    fn pop(&mut self, now: Instant, link: &LinkView) -> Popped {
        if self.changed {
            self.reconfigure(now);
        }
        let Some(bucket) = &mut self.bucket else {
            return self.inner.pop(now, link);
        };
        let earliest = bucket.earliest(now);
        if earliest > now {
            return match self.inner.backlog(Scope::All).packets {
                0 => Popped::Empty,
                _ => Popped::NotBefore(earliest),
            };
        }
        let popped = self.inner.pop(now, link);
        if let Popped::Packet(packet) = &popped {
            let overhead = u64::from(self.params.overhead) * u64::from(packet.segments);
            bucket.take(now, u64::from(packet.len) + overhead);
        }
        popped
    }

    fn woke_late(&mut self, now: Instant, by: Duration) {
        if let Some(bucket) = &mut self.bucket {
            let Lateness { wake_ups, longest, bytes } = &mut self.lateness;
            *wake_ups += 1;
            *longest = by.max(*longest);
            *bytes += bucket.late(now, by.min(self.params.late));
        }
        self.inner.woke_late(now, by);
    }

    fn repriced(&mut self, now: Instant, packet: &Descriptor, len: u32) {
        if let Some(bucket) = &mut self.bucket {
            bucket.correct(u64::from(packet.len), u64::from(len));
        }
        self.inner.repriced(now, packet, len);
    }

    fn departed(&mut self, now: Instant, packet: &Descriptor) {
        self.inner.departed(now, packet);
    }

    fn arrived(&mut self, now: Instant, arrival: &Arrival) {
        self.inner.arrived(now, arrival);
    }

    fn poll_resume(&mut self) -> Option<ConnId> {
        self.inner.poll_resume()
    }

    fn forget(&mut self, now: Instant, which: Forget) {
        self.inner.forget(now, which);
    }

    fn backlog(&self, scope: Scope) -> Backlog {
        self.inner.backlog(scope)
    }

    fn properties(&self) -> SchedulerProperties {
        let inner = self.inner.properties();
        let Some(rate) = self.params.rate else { return inner };
        // What the rate gives in a millisecond: an urgent packet may wait that long behind one that
        // is being sent.
        let quantum = u32::try_from(rate.bytes_per_second() / 1_000).unwrap_or(u32::MAX);
        inner.with_bypass(Bypass::Never).with_largest_packet(quantum.min(inner.largest_packet))
    }

    fn busy_until(&self, now: Instant) -> Instant {
        let busy = self.inner.busy_until(now);
        self.bucket.as_ref().map_or(busy, |bucket| bucket.earliest(now).max(busy))
    }

    fn metrics(&self, report: &mut Metrics<'_>) {
        self.inner.metrics(report);
        if let Some(bucket) = &self.bucket {
            report.rate("shaper_rate_bit", bucket.rate());
            report.bytes("shaper_burst", bucket.burst() as f64);
            report.bytes("shaper_tokens", bucket.tokens());
            let Lateness { wake_ups, longest, bytes } = self.lateness;
            report.count("shaper_late", wake_ups);
            report.millis("shaper_late_max_ms", longest);
            report.bytes("shaper_made_up", bytes as f64);
        }
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        let (own, rest) = params.split::<ShaperParams>();
        let mut new = self.params;
        new.set("the shaper", &own)?;
        self.inner.configure(&rest)?;
        self.changed |= new != self.params;
        self.params = new;
        if new.rate.is_none() {
            // From now on packets may bypass the shaper without its notice.
            (self.bucket, self.changed) = (None, false);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
