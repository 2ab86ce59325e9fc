//! What left an endpoint, by kind of packet, and how long it waited in the egress scheduler.
//!
//! Delays go into a histogram of fixed size with logarithmic buckets: 32 to each doubling, so that a percentile is
//! at most 3.2 % too high. Recording costs a shift and an addition, and takes no memory.

use crate::policy::sched::SegmentClass;
use crate::time::Duration;
use alloc::boxed::Box;

/// What left an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct EgressStats {
    /// Pure ACKs.
    pub ack: ClassStats,
    /// New data.
    pub data: ClassStats,
    /// Data that left before.
    pub retransmit: ClassStats,
    /// SYN, FIN, RST, probes, echo replies.
    pub control: ClassStats,
}

impl EgressStats {
    /// Name and figures of each kind, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &ClassStats)> {
        let Self { ack, data, retransmit, control } = self;
        [("ack", ack), ("data", data), ("retransmit", retransmit), ("control", control)].into_iter()
    }
}

/// What left of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ClassStats {
    /// Packets on the wire.
    pub packets: u64,
    /// Their IP bytes; a super-packet counts one header.
    pub bytes: u64,
    /// Packets that went through the scheduler's queue, of which the delays tell; a super-packet counts once.
    pub queued: u64,
    /// Half of these waited for no longer than this.
    pub delay_p50: Duration,
    /// 90 % waited for no longer than this.
    pub delay_p90: Duration,
    /// 99 % waited for no longer than this.
    pub delay_p99: Duration,
    /// The longest wait.
    pub delay_max: Duration,
}

/// How many kinds are told apart.
const KINDS: usize = 4;

/// Collects the figures.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// Packets and bytes by kind.
    sent: [(u64, u64); KINDS],
    /// Delays by kind; made when the first packet is queued.
    delays: Option<Box<[DelayHistogram; KINDS]>>,
}

impl Accounts {
    /// `packets` packets of this kind with `bytes` IP bytes left.
    #[inline]
    pub(crate) const fn sent(&mut self, class: SegmentClass, packets: u64, bytes: u64) {
        let sent = &mut self.sent[kind(class)];
        sent.0 += packets;
        sent.1 += bytes;
    }

    /// A packet of this kind left after this time in the scheduler's queue.
    pub(crate) fn waited(&mut self, class: SegmentClass, delay: Duration) {
        let delays = self.delays.get_or_insert_with(Box::default);
        delays[kind(class)].record(delay);
    }

    /// The figures so far.
    pub(crate) fn stats(&self) -> EgressStats {
        let of = |class| {
            let kind = kind(class);
            let (packets, bytes) = self.sent[kind];
            let mut stats = ClassStats { packets, bytes, ..ClassStats::default() };
            if let Some(delays) = &self.delays {
                let delays = &delays[kind];
                stats.queued = delays.count();
                stats.delay_p50 = delays.percentile(50);
                stats.delay_p90 = delays.percentile(90);
                stats.delay_p99 = delays.percentile(99);
                stats.delay_max = delays.max();
            }
            stats
        };
        EgressStats {
            ack: of(SegmentClass::PureAck),
            data: of(SegmentClass::Data),
            retransmit: of(SegmentClass::Retransmit),
            control: of(SegmentClass::Control(crate::policy::sched::ControlKind::Other)),
        }
    }
}

/// The place of a kind in the tables.
const fn kind(class: SegmentClass) -> usize {
    match class {
        SegmentClass::PureAck => 0,
        SegmentClass::Data => 1,
        SegmentClass::Retransmit => 2,
        SegmentClass::Control(_) => 3,
    }
}

/// Buckets to each doubling, as a power of two.
const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;
/// The finest delay that is told apart, as a power of two of nanoseconds: about a microsecond.
const UNIT_BITS: u32 = 10;
/// Doublings above the linear part: up to 2^32 units, more than an hour.
const DOUBLINGS: usize = 27;
const BUCKETS: usize = SUB * (1 + DOUBLINGS);

/// Delays from a microsecond to an hour.
#[derive(Clone, Debug)]
pub struct DelayHistogram {
    buckets: [u32; BUCKETS],
    count: u64,
    max: Duration,
}

impl Default for DelayHistogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], count: 0, max: Duration::ZERO }
    }
}

impl DelayHistogram {
    /// Counts one delay.
    pub fn record(&mut self, delay: Duration) {
        let bucket = &mut self.buckets[bucket_of(delay)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.max = self.max.max(delay);
    }

    /// Delays counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The longest delay, exactly.
    #[must_use]
    pub const fn max(&self) -> Duration {
        self.max
    }

    /// The delay that `percent` per cent of all do not exceed, at most 3.2 % (or a microsecond) too high; zero where
    /// nothing was counted.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Duration {
        let rank = (u128::from(self.count) * u128::from(percent.min(100))).div_ceil(100) as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank && seen > 0 {
                return upper_edge(index).min(self.max);
            }
        }
        self.max
    }
}

/// Where a delay is counted.
fn bucket_of(delay: Duration) -> usize {
    let units = delay.as_nanos() >> UNIT_BITS;
    if units < SUB as u64 {
        return units as usize;
    }
    // At least SUB_BITS: the value has more than that many bits.
    let doubling = units.ilog2() - SUB_BITS;
    let within = (units >> doubling) as usize & (SUB - 1);
    (SUB * (doubling as usize + 1) + within).min(BUCKETS - 1)
}

/// The longest delay of a bucket.
fn upper_edge(bucket: usize) -> Duration {
    let (doubling, within) = (bucket / SUB, bucket % SUB);
    let next = match doubling {
        0 => within as u64 + 1,
        _ => ((SUB + within) as u64 + 1) << (doubling - 1),
    };
    Duration::from_nanos((next << UNIT_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn percentiles_of_a_known_set() {
        let mut histogram = DelayHistogram::default();
        for ms in 1..=1_000 {
            histogram.record(Duration::from_millis(ms));
        }
        for (percent, ms) in [(50, 500), (90, 900), (99, 990)] {
            let got = histogram.percentile(percent).as_nanos() as f64 / 1e6;
            assert!((f64::from(ms)..=f64::from(ms) * 1.032).contains(&got), "p{percent}: {got} ms");
        }
        assert_eq!((histogram.count(), histogram.max()), (1_000, Duration::from_secs(1)));
        assert_eq!(histogram.percentile(100), Duration::from_secs(1));
    }

    #[test]
    fn nothing_counted_is_zero_and_the_extremes_have_a_place() {
        let mut histogram = DelayHistogram::default();
        assert_eq!(histogram.percentile(99), Duration::ZERO);
        histogram.record(Duration::ZERO);
        histogram.record(Duration::MAX);
        assert_eq!(
            (histogram.percentile(50) < Duration::from_micros(2), histogram.max()),
            (true, Duration::MAX)
        );
    }

    proptest! {
        #[test]
        fn a_percentile_is_that_of_the_sorted_delays(
            mut delays in proptest::collection::vec(0_u64..4_000_000_000_000, 1..200),
            percent in 1_u64..=100,
        ) {
            let mut histogram = DelayHistogram::default();
            for delay in &delays {
                histogram.record(Duration::from_nanos(*delay));
            }
            delays.sort_unstable();
            let sorted: Vec<u64> = delays;
            let rank = (sorted.len() as u64 * percent).div_ceil(100) as usize;
            let exact = sorted[rank - 1];
            let got = histogram.percentile(percent).as_nanos();
            prop_assert!(got >= exact && got <= exact + exact / 31 + 1_024, "{got} for {exact}");
        }
    }
}
