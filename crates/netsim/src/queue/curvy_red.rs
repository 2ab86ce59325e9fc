//! Curvy RED as a DualQ Coupled AQM (RFC 9332, appendix B): cheaper than DualPI2, and less exact,
//! because its delay rises with the load.
//!
//! The printed `minTh` of 500 ms cannot be meant beside ranges of 250 and 500 ms; 500 µs is used.

use super::dual::TwoQueues;
use super::{DropReason, Limit, Queue, QueueCx};
use crate::packet::{EcnField, Packet};
use ackline_sched::aqm::{Turns, Which};
use ackline_tcp_core::Duration;

/// Settings of [`CurvyRed`]. Defaults are those of appendix B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvyRedParams {
    /// Size of both queues together.
    pub limit: Limit,
    /// Averaged delay of C up to which nothing is picked.
    pub min: Duration,
    /// From `min`, delay over which the square root of classic traffic's probability rises to 1.
    pub classic_range: Duration,
    /// From `min`, delay over which the coupled probability of L4S traffic rises to 1.
    pub l4s_range: Duration,
    /// The average's weight is 2 to the power of minus this.
    pub weight_log: u32,
    /// Sojourn time above which packets of L are marked.
    pub step: Duration,
    /// How turns are shared.
    pub turns: Turns,
}

impl Default for CurvyRedParams {
    fn default() -> Self {
        Self {
            limit: Limit::Time(Duration::from_millis(250)),
            min: Duration::from_micros(500),
            classic_range: Duration::from_millis(500),
            l4s_range: Duration::from_millis(250),
            weight_log: 5,
            step: Duration::from_millis(1),
            turns: Turns::Shifted(Duration::from_millis(50)),
        }
    }
}

/// The two queues and the averaged delay of C.
#[derive(Debug)]
pub struct CurvyRed {
    queues: TwoQueues,
    params: CurvyRedParams,
    /// Averaged delay of C in seconds.
    average: f64,
}

impl CurvyRed {
    /// Empty queues.
    #[must_use]
    pub fn new(params: CurvyRedParams) -> Self {
        Self { queues: TwoQueues::new(params.limit, params.turns), params, average: 0.0 }
    }

    /// A packet leaves C after so long.
    fn learn(&mut self, sojourn: Duration) {
        self.average +=
            (sojourn.as_secs_f64() - self.average) * libm::ldexp(1.0, -(self.params.weight_log as i32));
    }

    fn over(&self, range: Duration) -> f64 {
        let above = self.average - self.params.min.as_secs_f64();
        (above / range.as_secs_f64()).clamp(0.0, 1.0)
    }

    /// The coupled probability of L4S traffic.
    fn p_cl(&self) -> f64 {
        self.over(self.params.l4s_range)
    }

    /// The square root of classic traffic's probability.
    fn sqrt_p_c(&self) -> f64 {
        self.over(self.params.classic_range)
    }
}

impl Queue for CurvyRed {
    fn name(&self) -> &'static str {
        "curvy-red"
    }

    fn enqueue(&mut self, cx: &mut QueueCx<'_>, packet: Packet) {
        self.queues.push(cx, packet);
    }

    fn dequeue(&mut self, cx: &mut QueueCx<'_>) -> Option<Packet> {
        loop {
            let (which, mut packet) = self.queues.pop(cx)?;
            let sojourn = cx.now.since(packet.queued_at);
            match which {
                Which::L => {
                    if sojourn > self.params.step || cx.rng.chance(self.p_cl()) {
                        cx.mark(&mut packet);
                    }
                    return Some(packet);
                }
                Which::C => {
                    self.learn(sojourn);
                    // The larger of two random numbers squares the probability.
                    let root = self.sqrt_p_c();
                    if !(cx.rng.chance(root) && cx.rng.chance(root)) {
                        return Some(packet);
                    }
                    if packet.ecn() != EcnField::NotEct {
                        cx.mark(&mut packet);
                        return Some(packet);
                    }
                    cx.drop(packet, DropReason::Aqm);
                }
            }
        }
    }

    fn packets(&self) -> usize {
        self.queues.packets()
    }

    fn bytes(&self) -> u64 {
        self.queues.bytes()
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let root = self.sqrt_p_c();
        report("p_c", root * root);
        report("p_cl", self.p_cl());
        self.queues.report(report);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;

    #[test]
    fn follows_the_delay_of_classic_traffic() {
        let mut red = CurvyRed::new(CurvyRedParams::default());
        let expected = [
            (0, 0.0, 0.0, 0.0),
            (10, 0.000_312_500, 0.0, 0.0),
            (20, 0.000_927_734, 0.001_710_937, 0.000_855_469),
            (20, 0.001_523_743, 0.004_094_971, 0.002_047_485),
            (100, 0.004_601_126, 0.016_404_503, 0.008_202_251),
            (100, 0.007_582_341, 0.028_329_362, 0.014_164_681),
            (0, 0.007_345_392, 0.027_381_570, 0.013_690_785),
        ];
        for (millis, average, p_cl, sqrt_p_c) in expected {
            red.learn(Duration::from_millis(millis));
            for (found, expected) in [(red.average, average), (red.p_cl(), p_cl), (red.sqrt_p_c(), sqrt_p_c)]
            {
                assert!((found - expected).abs() < 1e-9, "{found}, not {expected}, after {millis} ms");
            }
        }
    }

    #[test]
    fn marks_l4s_packets_after_a_millisecond() {
        let mut bench = Bench::new(CurvyRed::new(CurvyRedParams::default()), 8_000_000, 1);
        (0..2).for_each(|_| bench.arrive_with_ecn(1_000, 1));
        bench.now += Duration::from_millis(1);
        bench.leave();
        assert_eq!(bench.marked, 0);
        bench.now += Duration::from_nanos(1);
        bench.leave();
        assert_eq!(bench.marked, 1);
    }

    #[test]
    fn drops_what_cannot_be_marked() {
        let mut bench = Bench::new(CurvyRed::new(CurvyRedParams::default()), 8_000_000, 1);
        bench.queue.average = 1.0;
        bench.arrive_with_ecn(1_000, 0);
        bench.arrive_with_ecn(1_000, 2);
        assert!(bench.leave().is_some_and(|packet| packet.ecn() == EcnField::Ce));
        assert_eq!(bench.dropped.len(), 1);
    }
}
