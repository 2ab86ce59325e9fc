//! Rates that change: a walk of the rate in steps, in bursts, with gaps, as a trace of deliveries.
//!
//! The logarithm of the rate is an Ornstein-Uhlenbeck process: it is drawn back to its mean, and
//! its standard deviation in the long run is `spread`. Each millisecond then has the deliveries
//! that the rate is worth; in bursts those of several milliseconds come at once, and in gaps there
//! are none. Everything is drawn from the walk's own seed, so a path is the same in every run.

use super::Trace;
use ackline_netsim::SimRng;
use ackline_tcp_core::Duration;

/// Length of a trace, after which it begins again, ms.
const PERIOD: u64 = 120_000;
/// Bits of a delivery: 1,500 bytes.
const DELIVERY: f64 = 12_000.0;
/// Streams of random numbers: of the rate, of gaps, of delays.
const STREAM: u64 = 0x7061_7468;

/// A rate that walks.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// Mean, bits per second.
    pub(super) rate: f64,
    pub(super) seed: u64,
    /// Standard deviation of the logarithm.
    pub(super) spread: f64,
    /// How long one rate holds.
    pub(super) step_ms: u64,
    /// Deliveries of so long come together.
    pub(super) burst_ms: u64,
    /// When nothing is delivered, ms.
    pub(super) gaps: Vec<(u64, u64)>,
}

impl Walk {
    pub(super) fn new(rate: u64, seed: u64) -> Self {
        Self { rate: rate as f64, seed, spread: 0.3, step_ms: 100, burst_ms: 1, gaps: vec![] }
    }

    /// The same with gaps.
    pub(super) fn with(self, gaps: Vec<(u64, u64)>) -> Self {
        Self { gaps, ..self }
    }

    fn rng(&self, part: u64) -> SimRng {
        SimRng::new(self.seed, STREAM + part)
    }

    /// Gaps whose distances and lengths are uniform between two times, s.
    pub(super) fn gaps(&self, apart: (f64, f64), length: (f64, f64)) -> Vec<(u64, u64)> {
        let mut rng = self.rng(1);
        let mut uniform = |(low, high): (f64, f64)| ((low + (high - low) * rng.unit()) * 1e3) as u64;
        let mut gaps = vec![];
        let mut at = 0;
        loop {
            at += uniform(apart);
            let end = at + uniform(length);
            if end >= PERIOD {
                return gaps;
            }
            gaps.push((at, end));
            at = end;
        }
    }

    /// Gaps at the beginning of each `every` seconds but the first.
    pub(super) fn handovers(&self, every: f64, length: (f64, f64)) -> Vec<(u64, u64)> {
        let mut rng = self.rng(1);
        let every = (every * 1e3) as u64;
        let starts = (1..PERIOD / every).map(|number| number * every);
        starts.map(|at| (at, at + ((length.0 + (length.1 - length.0) * rng.unit()) * 1e3) as u64)).collect()
    }

    /// Delays that are added in the steps of the walk, up to `most`.
    pub(super) fn delays(&self, most: Duration) -> Vec<Duration> {
        let mut rng = self.rng(2);
        (0..PERIOD / self.step_ms).map(|_| Duration::from_nanos(rng.below(most.as_nanos()))).collect()
    }

    /// The rates of all steps, relative to each other.
    fn rates(&self) -> Vec<f64> {
        let mut rng = self.rng(0);
        // Back to the mean within about a second, or at once if steps are longer.
        let keeps = libm::exp(-(self.step_ms as f64) / 1e3);
        let mut place = 0.0;
        (0..PERIOD.div_ceil(self.step_ms))
            .map(|_| {
                // Twelve uniform numbers less six are nearly normal.
                let normal: f64 = (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
                place = keeps * place + self.spread * libm::sqrt(1.0 - keeps * keeps) * normal;
                libm::exp(place)
            })
            .collect()
    }

    /// Deliveries by the millisecond.
    pub(super) fn trace(&self) -> Trace {
        let rates = self.rates();
        let is_gap = |ms: u64| self.gaps.iter().any(|(from, until)| (*from..*until).contains(&ms));
        let weight = |ms: u64| if is_gap(ms) { 0.0 } else { rates[(ms / self.step_ms) as usize] };
        let weights: Vec<f64> = (0..PERIOD).map(weight).collect();
        let scale = self.rate * PERIOD as f64 / 1e3 / DELIVERY / weights.iter().sum::<f64>();
        let mut lines = String::new();
        let mut due = 0.0;
        for (ms, weight) in (1..=PERIOD).zip(weights) {
            due += weight * scale;
            let opens = ms.is_multiple_of(self.burst_ms) && weight > 0.0;
            if opens || ms == PERIOD {
                // The last line is the period.
                let count = if ms == PERIOD { libm::floor(due).max(1.0) } else { libm::floor(due) };
                due -= count;
                let line = format!("{ms}\n");
                lines += &line.repeat(count as usize);
            }
        }
        // The text is this function's own, with times that rise.
        Trace::parse(&lines).unwrap_or_else(|_| unreachable!("a trace of the generator"))
    }
}
