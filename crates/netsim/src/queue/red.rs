//! Random early detection (Floyd, Jacobson, 1993) as in Linux: an average with a power-of-two
//! weight that decays while the queue is empty, uniformly spread marks, and an adaptive `max_p`
//! (Floyd, Gummadi, Shenker, 2001).
//!
//! ```text
//!   mark probability
//!   1     |              ┌────────  avg >= max: every packet
//!   max_p |           ／ |
//!   0     |_________／   |
//!                 min   max        average queue
//! ```

use super::threshold::admit;
use super::{Action, Limit, PacketFifo, Queue, QueueCx};
use crate::packet::Packet;
use ackline_tcp_core::{Duration, Instant};

/// Settings of [`Red`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedParams {
    /// Size of the buffer.
    pub limit: Limit,
    /// Average queue in bytes below which nothing is marked.
    pub min: u64,
    /// Average queue in bytes from which everything is marked.
    pub max: u64,
    /// Mark probability just below `max`, 0 to 1.
    pub max_p: f64,
    /// The average's weight is 2^-`wlog`.
    pub wlog: u32,
    /// Size of an average packet in bytes: how fast the average decays while the queue is empty.
    pub avpkt: u32,
    /// Whether `max_p` adapts.
    pub adaptive: Option<Adaptive>,
    /// What to do with a selected packet.
    pub action: Action,
}

/// How `max_p` adapts: it keeps the average queue in the middle fifth between `min` and `max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adaptive {
    /// Time between two steps (0.5 s).
    pub interval: Duration,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self { interval: Duration::from_millis(500) }
    }
}

impl RedParams {
    /// Linux's weight for a burst of `burst` packets: the smallest w with
    /// burst + 1 - min/avpkt <= (1 - (1 - 2^-w)^burst) / 2^-w; `None` if there is none up to 31.
    #[must_use]
    pub fn wlog_for(min: u64, avpkt: u32, burst: u32) -> Option<u32> {
        let left = f64::from(burst) + 1.0 - min as f64 / f64::from(avpkt);
        (1..32).find(|wlog| {
            let weight = libm::exp2(-f64::from(*wlog));
            left <= (1.0 - libm::pow(1.0 - weight, f64::from(burst))) / weight
        })
    }
}

/// A RED queue on the averaged backlog.
#[derive(Debug)]
pub struct Red {
    fifo: PacketFifo,
    params: RedParams,
    max_p: f64,
    average: f64,
    /// Since when the queue has been empty.
    idle_since: Option<Instant>,
    /// Arrivals since the last mark while the average was between the thresholds; -1: none yet.
    count: i64,
    /// The random draw that the count is compared with.
    draw: f64,
    adapt_at: Instant,
}

impl Red {
    /// An empty queue.
    #[must_use]
    pub fn new(params: RedParams) -> Self {
        Self {
            fifo: PacketFifo::default(),
            params,
            max_p: params.max_p,
            average: 0.0,
            idle_since: Some(Instant::ZERO),
            count: -1,
            draw: 0.0,
            adapt_at: Instant::ZERO,
        }
    }

    fn weight(&self) -> f64 {
        libm::exp2(-f64::from(self.params.wlog))
    }

    fn update_average(&mut self, cx: &QueueCx<'_>) {
        if let Some(since) = self.idle_since.take() {
            // The idle time counts as packets that found an empty queue.
            let packet_time = f64::from(self.params.avpkt) * 8.0 / cx.rate.max(1) as f64;
            let missed = cx.now.since(since).as_secs_f64() / packet_time;
            self.average *= libm::pow(1.0 - self.weight(), missed);
        } else {
            self.average += (self.fifo.bytes() as f64 - self.average) * self.weight();
        }
    }

    fn adapt(&mut self, now: Instant) {
        let Some(adaptive) = self.params.adaptive else { return };
        if self.adapt_at == Instant::ZERO {
            self.adapt_at = now + adaptive.interval;
        }
        while self.adapt_at <= now {
            self.adapt_at += adaptive.interval;
            let (min, max) = (self.params.min as f64, self.params.max as f64);
            if self.average > min + 0.6 * (max - min) && self.max_p <= 0.5 {
                self.max_p += (self.max_p / 4.0).min(0.01);
            } else if self.average < min + 0.4 * (max - min) && self.max_p >= 0.01 {
                self.max_p *= 0.9;
            }
        }
    }

    fn picks(&mut self, cx: &mut QueueCx<'_>) -> bool {
        let (min, max) = (self.params.min as f64, self.params.max as f64);
        if self.average < min {
            self.count = -1;
            return false;
        }
        if self.average >= max {
            self.count = -1;
            return true;
        }
        self.count += 1;
        if self.count == 0 {
            self.draw = cx.rng.unit();
            return false;
        }
        let probability = self.max_p * (self.average - min) / (max - min);
        if probability * (self.count as f64) < self.draw {
            return false;
        }
        self.count = 0;
        self.draw = cx.rng.unit();
        true
    }
}

impl Queue for Red {
    fn name(&self) -> &'static str {
        "red"
    }

    fn enqueue(&mut self, cx: &mut QueueCx<'_>, packet: Packet) {
        self.update_average(cx);
        self.adapt(cx.now);
        let picked = self.picks(cx);
        admit(&mut self.fifo, self.params.limit, cx, packet, picked, self.params.action);
        if self.fifo.packets() == 0 {
            self.idle_since = Some(cx.now);
        }
    }

    fn dequeue(&mut self, cx: &mut QueueCx<'_>) -> Option<Packet> {
        let packet = self.fifo.pop(cx);
        if self.fifo.packets() == 0 && self.idle_since.is_none() {
            self.idle_since = Some(cx.now);
        }
        packet
    }

    fn packets(&self) -> usize {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("average", self.average);
        report("max_p", self.max_p);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;

    fn params() -> RedParams {
        RedParams {
            limit: Limit::Unlimited,
            min: 10_000,
            max: 30_000,
            max_p: 0.1,
            wlog: 4,
            avpkt: 1_000,
            adaptive: None,
            action: Action::Drop,
        }
    }

    /// A queue whose average is held at `average`.
    fn share_picked(average: f64, seed: u64) -> (f64, Vec<u64>) {
        let mut bench = Bench::new(Red::new(params()), 8_000_000, seed);
        let mut gaps = vec![];
        let mut last = 0;
        let n = 60_000;
        for at in 0..n {
            bench.queue.average = average;
            bench.queue.idle_since = Some(bench.now);
            let before = bench.dropped.len();
            bench.arrive(1_000, false);
            bench.leave();
            if bench.dropped.len() > before {
                gaps.push(at - last);
                last = at;
            }
        }
        (bench.dropped.len() as f64 / n as f64, gaps)
    }

    #[test]
    fn marks_uniformly_in_one_to_one_over_p() {
        // With Pb = 0.05 the gap between two marks is uniform in 1..=20, so its mean is 10.5.
        let (share, gaps) = share_picked(20_000.0, 3);
        assert!(gaps.iter().skip(1).all(|gap| (1..=20).contains(gap)), "seed 3");
        let expected = 1.0 / 10.5;
        assert!((share - expected).abs() < 0.05 * expected, "seed 3: {share} instead of {expected}");
        assert_eq!(share_picked(9_999.0, 3).0, 0.0);
        assert_eq!(share_picked(30_000.0, 3).0, 1.0);
    }

    #[test]
    fn average_decays_while_the_queue_is_empty() {
        let mut bench = Bench::new(Red::new(params()), 8_000_000, 0);
        bench.queue.average = 16_000.0;
        // Ten packets of 1,000 bytes could have passed in 10 ms.
        bench.now = Instant::from_millis(10);
        bench.arrive(1_000, false);
        let expected = 16_000.0 * libm::pow(15.0 / 16.0, 10.0);
        assert!((bench.queue.average - expected).abs() < 1e-6);
    }

    #[test]
    fn max_p_steps_down_and_up() {
        let adaptive = RedParams { adaptive: Some(Adaptive::default()), ..params() };
        let mut bench = Bench::new(Red::new(adaptive), 8_000_000, 0);
        let mut steps = 0;
        bench.arrive(1_000, false);
        while bench.queue.max_p >= 0.01 {
            bench.now += Duration::from_millis(500);
            bench.leave();
            bench.arrive(1_000, false);
            steps += 1;
            assert!(steps < 100);
        }
        // 0.1 * 0.9^22 is the first below 0.01.
        assert_eq!(steps, 22);
        bench.queue.average = 40_000.0;
        bench.queue.max_p = 0.4;
        bench.queue.adapt(bench.now + Duration::from_millis(500));
        assert!((bench.queue.max_p - 0.41).abs() < 1e-9);
    }

    #[test]
    fn weight_is_that_of_linux() {
        assert_eq!(RedParams::wlog_for(12_500, 1_000, 20), Some(4));
        assert_eq!(RedParams::wlog_for(18_750, 1_000, 31), Some(4));
    }
}
