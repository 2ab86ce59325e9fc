//! The driver's measurements: how late it serves deadlines, and how evenly packets leave.

use crate::device::DeviceStats;
use ackline_tcp_core::counters::Counters;
use ackline_tcp_core::queueing::EgressStats;
use ackline_tcp_core::{Duration, Instant};
use hdrhistogram::Histogram;
use std::collections::VecDeque;

/// Longest time that a [`Distribution`] distinguishes; longer ones count as this.
const LONGEST: Duration = Duration::from_secs(60);

/// A distribution of times, to two significant digits.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram<u64>,
}

/// Without values.
impl Default for Distribution {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST.as_nanos(), 2);
        Self { histogram: histogram.expect("bounds and precision are constants that the histogram accepts") }
    }
}

impl Distribution {
    /// Adds a value. A few nanoseconds, no allocation.
    pub fn record(&mut self, value: Duration) {
        self.histogram.saturating_record(value.as_nanos());
    }

    /// Values recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The smallest time that at least a share of `quantile` (0 to 1) of all values does not
    /// exceed; zero without values.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_quantile(quantile))
    }

    /// Number of values of at most `limit`, to the precision of the distribution: what it does not
    /// distinguish from `limit` counts.
    #[must_use]
    pub fn at_most(&self, limit: Duration) -> u64 {
        self.histogram.count_between(0, limit.as_nanos())
    }

    /// Smallest value; zero without values.
    #[must_use]
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.histogram.min())
    }

    /// Largest value; zero without values.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.histogram.max())
    }

    /// Mean; zero without values.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.histogram.mean() as u64)
    }
}

/// Count, smallest, mean, largest, and quantiles, in nanoseconds.
#[cfg(feature = "serde")]
impl serde::Serialize for Distribution {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        const QUANTILES: [(&str, f64); 5] =
            [("p10", 0.1), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)];
        let mut fields = to.serialize_struct("Distribution", 4 + QUANTILES.len())?;
        fields.serialize_field("count", &self.count())?;
        fields.serialize_field("min", &self.min())?;
        fields.serialize_field("mean", &self.mean())?;
        for (name, quantile) in QUANTILES {
            fields.serialize_field(name, &self.quantile(quantile))?;
        }
        fields.serialize_field("max", &self.max())?;
        fields.end()
    }
}

/// A snapshot of a stack's measurements since it was started.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// How long after its permitted instant each departure held back by pacing or a shaper began.
    /// Only counts packets that were waited for, not those that left along with them.
    pub departure_lateness: Distribution,
    /// How long after its deadline each other wake-up (retransmission, delayed ACK, ...) was
    /// served, including the rounding to the granularity.
    pub timer_lateness: Distribution,
    /// Times between consecutive departures.
    pub departure_gaps: Distribution,
    /// Times between consecutive departures of packets with data: the measure of pacing if one
    /// connection sends. A super-packet counts once.
    pub data_gaps: Distribution,
    /// Time for which the driver waited for departures without sleeping
    /// ([`Pacing::Spin`](crate::Pacing::Spin)): the processor time that spinning costs, less what
    /// other tasks of the runtime used of it.
    pub awake: Duration,
    /// How long before a departure a spinning driver currently wakes; zero if it does not spin.
    pub wakes_early_by: Duration,
    /// Number of times the driver task ran.
    pub driver_runs: u64,
    /// Of these, runs because the timer expired.
    pub timer_expiries: u64,
    /// Packets that the device refused permanently; TCP sees them as lost.
    pub device_drops: u64,
    /// Times that an application had to wait until the driver had run, because its connection had
    /// used up its share of a [turn](crate::stack::Builder::turn).
    pub turn_waits: u64,
    /// Times that packets began to [wait in the device](crate::stack::Builder::backlog_time),
    /// because the stack or its applications did not keep up.
    pub device_backlogs: u64,
    /// Received packets that represent several segments (GRO, or the TSO of a sender on this
    /// machine).
    pub rx_super_packets: u64,
    /// Sent packets that the device segments (TSO).
    pub tx_super_packets: u64,
    /// Packets that came to the queue of another [shard](crate::stack::Builder::shards) than their
    /// own, and were handed over. Zero with one shard.
    pub handed_over: u64,
    /// Packets that shards have taken from others: as many, once all have been taken.
    pub taken_over: u64,
    /// Packets handed over and dropped, because their shard did not keep up or had stopped.
    pub handover_drops: u64,
    /// Connections, in any state; without those in `half_open` and `time_wait`.
    pub connections: usize,
    /// Connections of listeners whose SYN-ACK is not acknowledged yet, each a record of at most 128
    /// bytes.
    pub half_open: usize,
    /// SYNs that are held for the program's answer
    /// ([`TcpListener::incoming`](crate::TcpListener::incoming)).
    pub held_syns: usize,
    /// Of `connections`, those accepted with their SYN by fast open, whose SYN-ACK is not
    /// acknowledged yet.
    pub fast_open_pending: usize,
    /// Servers whose fast open cookie, or refusal of fast open, is remembered
    /// ([`max_fast_open_entries`](ackline_tcp_core::EndpointConfig::max_fast_open_entries)).
    pub fast_open_entries: usize,
    /// Of `connections`, those that the application has dropped and that still have something to
    /// deliver, or wait for the peer's FIN.
    pub orphans: usize,
    /// Dropped connections in TIME-WAIT, each a record of 70 to 76 bytes.
    pub time_wait: usize,
    /// Bytes of memory held for connections, their buffers and records, and tables.
    pub memory: u64,
    /// The budget for it,
    /// [`EndpointConfig::max_memory`](ackline_tcp_core::EndpointConfig::max_memory), of all shards
    /// together; `None`: no limit.
    pub max_memory: Option<u64>,
    /// Memory is [under pressure](ackline_tcp_core::EndpointConfig::memory_pressure).
    pub memory_pressure: bool,
    /// Destinations whose path is known to carry less than the device
    /// ([`max_path_entries`](ackline_tcp_core::EndpointConfig::max_path_entries)).
    pub path_entries: usize,
    /// Packets of which some fragments have come, and not all
    /// ([`max_fragment_memory`](ackline_tcp_core::EndpointConfig::max_fragment_memory)).
    pub incomplete_packets: usize,
    /// UDP sockets that are not flows.
    pub udp_sockets: usize,
    /// UDP flows ([`max_udp_flows`](ackline_tcp_core::EndpointConfig::max_udp_flows)).
    pub udp_flows: usize,
    /// Largest IP packet that the stack sends, in bytes: [`Stack::mtu`](crate::Stack::mtu).
    pub mtu: u32,
    /// Packets sent, by kind, and their time in the egress scheduler's queue.
    pub egress: EgressStats,
    /// The device's counters.
    pub device: DeviceStats,
    /// The core's counters.
    pub counters: Counters,
}

impl Distribution {
    /// Adds the values of another one.
    fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.histogram.add(&other.histogram);
    }
}

impl Stats {
    /// Adds the measurements of another shard of the same stack.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            departure_lateness,
            timer_lateness,
            departure_gaps,
            data_gaps,
            awake,
            wakes_early_by,
            driver_runs,
            timer_expiries,
            device_drops,
            turn_waits,
            device_backlogs,
            rx_super_packets,
            tx_super_packets,
            handed_over,
            taken_over,
            handover_drops,
            connections,
            half_open,
            held_syns,
            fast_open_pending,
            fast_open_entries,
            orphans,
            time_wait,
            memory,
            max_memory,
            memory_pressure,
            path_entries,
            incomplete_packets,
            udp_sockets,
            udp_flows,
            mtu,
            egress,
            device,
            counters,
        } = other;
        self.departure_lateness.add(departure_lateness);
        self.timer_lateness.add(timer_lateness);
        self.departure_gaps.add(departure_gaps);
        self.data_gaps.add(data_gaps);
        self.awake = self.awake.saturating_add(*awake);
        self.wakes_early_by = self.wakes_early_by.max(*wakes_early_by);
        self.driver_runs += driver_runs;
        self.timer_expiries += timer_expiries;
        self.device_drops += device_drops;
        self.turn_waits += turn_waits;
        self.device_backlogs += device_backlogs;
        self.rx_super_packets += rx_super_packets;
        self.tx_super_packets += tx_super_packets;
        self.handed_over += handed_over;
        self.taken_over += taken_over;
        self.handover_drops += handover_drops;
        self.connections += connections;
        self.half_open += half_open;
        self.held_syns += held_syns;
        self.fast_open_pending += fast_open_pending;
        self.fast_open_entries += fast_open_entries;
        self.orphans += orphans;
        self.time_wait += time_wait;
        self.memory += memory;
        // The budget is that of all.
        self.max_memory = self.max_memory.min(*max_memory);
        self.memory_pressure |= memory_pressure;
        self.path_entries += path_entries;
        self.incomplete_packets += incomplete_packets;
        self.udp_sockets += udp_sockets;
        self.udp_flows += udp_flows;
        self.mtu = self.mtu.min(*mtu);
        self.egress.add(egress);
        self.device.add(device);
        self.counters.add(counters);
    }
}

/// The running values behind [`Stats`].
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) departure_lateness: Distribution,
    pub(crate) timer_lateness: Distribution,
    pub(crate) departure_gaps: Distribution,
    pub(crate) data_gaps: Distribution,
    pub(crate) awake: Duration,
    pub(crate) driver_runs: u64,
    pub(crate) timer_expiries: u64,
    pub(crate) device_drops: u64,
    pub(crate) rx_super_packets: u64,
    pub(crate) tx_super_packets: u64,
    /// Due departures, soonest first, until they leave or turn out to have nothing to send.
    dues: VecDeque<Instant>,
    last_departure: Option<Instant>,
    last_data: Option<Instant>,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Self {
            departure_lateness: Distribution::default(),
            timer_lateness: Distribution::default(),
            departure_gaps: Distribution::default(),
            data_gaps: Distribution::default(),
            awake: Duration::ZERO,
            driver_runs: 0,
            timer_expiries: 0,
            device_drops: 0,
            rx_super_packets: 0,
            tx_super_packets: 0,
            dues: VecDeque::new(),
            last_departure: None,
            last_data: None,
        }
    }

    /// A departure is due at `at`.
    pub(crate) fn due(&mut self, at: Instant) {
        self.dues.push_back(at);
    }

    /// Nothing more is due.
    pub(crate) fn all_departed(&mut self) {
        self.dues.clear();
    }

    /// A packet left at `at`, with or without data.
    pub(crate) fn departed(&mut self, at: Instant, data: bool) {
        if let Some(due) = self.dues.pop_front() {
            self.departure_lateness.record(at.since(due));
        }
        if let Some(last) = self.last_departure.replace(at) {
            self.departure_gaps.record(at.since(last));
        }
        if data && let Some(last) = self.last_data.replace(at) {
            self.data_gaps.record(at.since(last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_those_between_departures() {
        let mut meters = Meters::new();
        for (micros, data) in [(100, true), (110, false), (130, true)] {
            meters.departed(Instant::from_micros(micros), data);
        }
        let gaps = &meters.departure_gaps;
        assert_eq!(gaps.count(), 2);
        assert!((9_900..=10_100).contains(&gaps.min().as_nanos()), "{:?}", gaps.min());
        assert!((19_800..=20_200).contains(&gaps.max().as_nanos()), "{:?}", gaps.max());
        assert_eq!(meters.data_gaps.count(), 1);
        assert!(
            (29_700..=30_300).contains(&meters.data_gaps.min().as_nanos()),
            "{:?}",
            meters.data_gaps.min()
        );
    }

    #[test]
    fn lateness_is_that_of_departures_that_were_waited_for() {
        let mut meters = Meters::new();
        let at = |micros| Instant::from_micros(micros);
        meters.departed(at(5), true);
        meters.due(at(10));
        meters.due(at(11));
        // The first is 30 us late, the second 32, and the third was not waited for.
        for micros in [40, 43, 46] {
            meters.departed(at(micros), true);
        }
        // What was due had nothing to send.
        meters.due(at(60));
        meters.all_departed();
        meters.departed(at(90), true);
        let late = &meters.departure_lateness;
        assert_eq!(late.count(), 2);
        assert!((29_700..=30_300).contains(&late.min().as_nanos()), "{:?}", late.min());
        assert!((31_700..=32_400).contains(&late.max().as_nanos()), "{:?}", late.max());
    }

    #[test]
    fn values_up_to_a_limit_are_counted() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.at_most(Duration::MAX), 0);
        for micros in [0, 1, 100, 100, 5_000] {
            distribution.record(Duration::from_micros(micros));
        }
        for (micros, expected) in [(0, 1), (1, 2), (98, 2), (100, 4), (101, 4), (4_900, 4), (5_000, 5)] {
            assert_eq!(distribution.at_most(Duration::from_micros(micros)), expected, "{micros} µs");
        }
        distribution.record(Duration::MAX);
        assert_eq!(distribution.at_most(Duration::from_secs(59)), 5);
        assert_eq!(distribution.at_most(Duration::MAX), distribution.count());
    }

    #[test]
    fn a_time_beyond_the_scale_counts_as_the_longest() {
        let mut distribution = Distribution::default();
        distribution.record(Duration::MAX);
        distribution.record(Duration::ZERO);
        assert_eq!(distribution.count(), 2);
        assert!(distribution.max() >= LONGEST);
    }
}
