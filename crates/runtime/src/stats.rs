//! What a driver measures of itself: how late it serves deadlines, and how evenly packets leave.

use crate::device::DeviceStats;
use ackline_tcp_core::counters::Counters;
use ackline_tcp_core::queueing::EgressStats;
use ackline_tcp_core::{Duration, Instant};
use hdrhistogram::Histogram;

/// Longest time that a [`Distribution`] tells apart; longer ones count as this.
const LONGEST: Duration = Duration::from_secs(60);

/// A distribution of times, to two significant digits.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram<u64>,
}

impl Distribution {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST.as_nanos(), 2);
        Self { histogram: histogram.expect("bounds and precision are constants that the histogram accepts") }
    }

    /// One more value. A few nanoseconds, no allocation.
    pub(crate) fn record(&mut self, value: Duration) {
        self.histogram.saturating_record(value.as_nanos());
    }

    /// Values recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The time that a share of `quantile` (0 to 1) of all values does not exceed; zero without values.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_quantile(quantile))
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

/// A snapshot of what a stack measured since it was started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// How long after its deadline each wake-up was served, the rounding to the granularity included.
    pub lateness: Distribution,
    /// Times between one packet's departure and the next one's.
    pub departure_gaps: Distribution,
    /// Times between one departure of a packet with data and the next such one: what pacing is judged by where one
    /// connection sends. A packet with several segments counts once.
    pub data_gaps: Distribution,
    /// Times that the driver task ran.
    pub driver_runs: u64,
    /// Of these, runs because the timer expired.
    pub timer_expiries: u64,
    /// Connections reset because the queue of their listener was full.
    pub accept_overflows: u64,
    /// Packets that the device refused for good; to TCP they are lost on the way.
    pub device_drops: u64,
    /// Received packets that stood for several segments (GRO, or the TSO of a sender on this machine).
    pub rx_super_packets: u64,
    /// Sent packets that the device cuts into several segments (TSO).
    pub tx_super_packets: u64,
    /// Connections, in any state.
    pub connections: usize,
    /// What left, by kind of packet, and how long it waited in the egress scheduler's queue.
    pub egress: EgressStats,
    /// The device's own numbers.
    pub device: DeviceStats,
    /// The core's counters.
    pub counters: Counters,
}

/// The running values behind [`Stats`].
#[derive(Debug)]
pub(crate) struct Meters {
    pub(crate) lateness: Distribution,
    pub(crate) departure_gaps: Distribution,
    pub(crate) data_gaps: Distribution,
    pub(crate) driver_runs: u64,
    pub(crate) timer_expiries: u64,
    pub(crate) accept_overflows: u64,
    pub(crate) device_drops: u64,
    pub(crate) rx_super_packets: u64,
    pub(crate) tx_super_packets: u64,
    last_departure: Option<Instant>,
    last_data: Option<Instant>,
}

impl Meters {
    pub(crate) fn new() -> Self {
        Self {
            lateness: Distribution::new(),
            departure_gaps: Distribution::new(),
            data_gaps: Distribution::new(),
            driver_runs: 0,
            timer_expiries: 0,
            accept_overflows: 0,
            device_drops: 0,
            rx_super_packets: 0,
            tx_super_packets: 0,
            last_departure: None,
            last_data: None,
        }
    }

    /// A packet left at `at`, with data or without.
    pub(crate) fn departed(&mut self, at: Instant, data: bool) {
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
    fn a_time_beyond_the_scale_counts_as_the_longest() {
        let mut distribution = Distribution::new();
        distribution.record(Duration::MAX);
        distribution.record(Duration::ZERO);
        assert_eq!(distribution.count(), 2);
        assert!(distribution.max() >= LONGEST);
    }
}
