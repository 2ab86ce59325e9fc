//! PIE (RFC 8033): drops or marks at random, with a probability that a controller moves with the
//! queueing delay and its trend.
//!
//! The delay is that of the packet that left last (section 5.2 estimates it from the departure rate
//! for want of time stamps).

use super::{Action, DropReason, Limit, PacketFifo, Queue, QueueCx};
use crate::packet::Packet;
use ackline_tcp_core::{Duration, Instant};

/// Settings of [`Pie`]. Defaults are RFC 8033's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieParams {
    /// Size of the buffer.
    pub limit: Limit,
    /// The delay that it aims at (QDELAY_REF, 15 ms).
    pub target: Duration,
    /// Time between two updates of the probability (T_UPDATE, 15 ms).
    pub update: Duration,
    /// Weight of the distance to the target, per second (1/8).
    pub alpha: f64,
    /// Weight of the trend, per second (1 + 1/4).
    pub beta: f64,
    /// The burst that passes undisturbed (MAX_BURST, 150 ms).
    pub burst: Duration,
    /// What to do with a selected packet. Marks become drops while the probability is above a tenth
    /// (section 5.1).
    pub action: Action,
}

impl Default for PieParams {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(1_000),
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            burst: Duration::from_millis(150),
            action: Action::Mark,
        }
    }
}

/// Bytes in the queue up to which nothing is dropped: two packets of MEAN_PKTSIZE.
const SMALL_QUEUE: u64 = 2 * 1_500;
/// Section 5.1: above this probability packets are dropped rather than marked.
const MARK_ECNTH: f64 = 0.1;

/// A PIE queue. Names are those of RFC 8033, section 4 and appendix A.
#[derive(Debug)]
pub struct Pie {
    fifo: PacketFifo,
    params: PieParams,
    drop_prob: f64,
    accu_prob: f64,
    qdelay: Duration,
    qdelay_old: Duration,
    burst_allowance: Duration,
    update_at: Instant,
}

impl Pie {
    /// An empty queue. An `update` of zero counts as a nanosecond.
    #[must_use]
    pub fn new(mut params: PieParams) -> Self {
        params.update = params.update.max(Duration::from_nanos(1));
        Self {
            fifo: PacketFifo::default(),
            params,
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay: Duration::ZERO,
            qdelay_old: Duration::ZERO,
            burst_allowance: params.burst,
            update_at: Instant::ZERO + params.update,
        }
    }

    /// The updates that were due by now.
    fn catch_up(&mut self, now: Instant) {
        while self.update_at <= now {
            self.update_at += self.params.update;
            self.update();
            if self.fifo.packets() == 0 && self.drop_prob == 0.0 && self.update_at <= now {
                // The others change nothing.
                self.update_at = now + self.params.update;
                self.burst_allowance = self.params.burst;
            }
        }
    }

    /// Section 4.2.
    fn update(&mut self) {
        if self.fifo.packets() == 0 {
            self.qdelay = Duration::ZERO;
        }
        let seconds = |time: Duration| time.as_secs_f64();
        let PieParams { alpha, beta, target, update, .. } = self.params;
        let mut p = alpha * (seconds(self.qdelay) - seconds(target))
            + beta * (seconds(self.qdelay) - seconds(self.qdelay_old));
        // Small probabilities move in small steps.
        p /= match self.drop_prob {
            prob if prob < 0.000_001 => 2_048.0,
            prob if prob < 0.000_01 => 512.0,
            prob if prob < 0.000_1 => 128.0,
            prob if prob < 0.001 => 32.0,
            prob if prob < 0.01 => 8.0,
            prob if prob < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.drop_prob >= 0.1 {
            // Section 5.5.
            p = p.min(0.02);
        }
        self.drop_prob += p;
        if self.qdelay == Duration::ZERO && self.qdelay_old == Duration::ZERO {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(update);
        let half = target.div(2);
        if self.drop_prob == 0.0 && self.qdelay < half && self.qdelay_old < half {
            // Section 4.4.
            self.burst_allowance = self.params.burst;
        }
        self.qdelay_old = self.qdelay;
    }

    /// Sections 4.1 and 5.4: true if an arriving packet is to be dropped.
    fn drop_early(&mut self, cx: &mut QueueCx<'_>) -> bool {
        if self.burst_allowance > Duration::ZERO
            || (self.qdelay_old < self.params.target.div(2) && self.drop_prob < 0.2)
            || self.fifo.bytes() <= SMALL_QUEUE
        {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob < 8.5 && cx.rng.unit() >= self.drop_prob {
            return false;
        }
        self.accu_prob = 0.0;
        true
    }
}

impl Queue for Pie {
    fn name(&self) -> &'static str {
        "pie"
    }

    fn enqueue(&mut self, cx: &mut QueueCx<'_>, packet: Packet) {
        self.catch_up(cx.now);
        if !self.params.limit.admits(cx, &self.fifo, &packet) {
            // Like any drop, as on Linux (sch_pie).
            self.accu_prob = 0.0;
            cx.drop(packet, DropReason::Overflow);
            return;
        }
        let packet = if self.drop_early(cx) {
            let action = match self.params.action {
                Action::Mark if self.drop_prob > MARK_ECNTH => Action::Drop,
                action => action,
            };
            cx.signal(packet, action)
        } else {
            Some(packet)
        };
        if let Some(packet) = packet {
            self.fifo.push(cx, packet);
        }
    }

    fn dequeue(&mut self, cx: &mut QueueCx<'_>) -> Option<Packet> {
        self.catch_up(cx.now);
        let packet = self.fifo.pop(cx)?;
        self.qdelay = cx.now.since(packet.queued_at);
        Some(packet)
    }

    fn packets(&self) -> usize {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("drop_prob", self.drop_prob);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;

    /// Packets of 1,000 bytes through 8 Mbit/s for so long; `load` arrive for each that leaves.
    /// Returns the delays.
    fn run(bench: &mut Bench<Pie>, millis: u64, load: f64, ect: bool) -> Vec<Duration> {
        let mut delays = vec![];
        let mut owed = 0.0;
        for _ in 0..millis {
            bench.now += Duration::from_millis(1);
            owed += load;
            while owed >= 1.0 {
                bench.arrive(1_000, ect);
                owed -= 1.0;
            }
            delays.extend(bench.leave().map(|packet| bench.now.since(packet.queued_at)));
        }
        delays
    }

    fn pie(action: Action) -> Bench<Pie> {
        Bench::new(Pie::new(PieParams { action, ..PieParams::default() }), 8_000_000, 3)
    }

    #[test]
    fn keeps_the_delay_near_its_target() {
        let mut bench = pie(Action::Drop);
        // Twenty per cent more than the link carries: a sixth must be dropped.
        run(&mut bench, 20_000, 1.2, false);
        let before = bench.dropped.len();
        let delays = run(&mut bench, 40_000, 1.2, false);
        let mean = delays.iter().map(|delay| delay.as_secs_f64()).sum::<f64>() / delays.len() as f64;
        assert!((0.010..0.020).contains(&mean), "seed 3: {mean} s");
        let share = (bench.dropped.len() - before) as f64 / 48_000.0;
        assert!((share - 1.0 / 6.0).abs() < 0.01, "seed 3: {share}");
    }

    #[test]
    fn lets_a_burst_pass_and_an_empty_queue_alone() {
        let mut bench = pie(Action::Drop);
        (0..100).for_each(|_| bench.arrive(1_000, false));
        run(&mut bench, 100, 0.0, false);
        run(&mut bench, 10_000, 0.9, false);
        assert_eq!(bench.dropped.len(), 0);
    }

    #[test]
    fn another_burst_passes_after_two_short_delays_in_a_row() {
        let mut bench = pie(Action::Drop);
        bench.arrive(1_000, false);
        let mut allowances = vec![];
        for millis in [10, 1, 1] {
            bench.queue.qdelay = Duration::from_millis(millis);
            bench.queue.update();
            allowances.push(bench.queue.burst_allowance.as_millis());
        }
        assert_eq!(allowances, [135, 120, 150]);
    }

    #[test]
    fn what_finds_the_buffer_full_counts_as_a_drop() {
        let mut bench = Bench::new(
            Pie::new(PieParams { limit: Limit::Packets(1), ..PieParams::default() }),
            8_000_000,
            3,
        );
        bench.arrive(1_000, false);
        bench.queue.accu_prob = 0.8;
        bench.arrive(1_000, false);
        assert_eq!((bench.dropped.len(), bench.queue.accu_prob), (1, 0.0));
    }

    #[test]
    fn marks_while_the_probability_is_small() {
        let mut bench = pie(Action::Mark);
        run(&mut bench, 20_000, 1.05, true);
        assert!(bench.marked > 0);
        // What marks do not slow down is dropped in the end.
        run(&mut bench, 20_000, 1.5, true);
        assert!(bench.dropped.iter().any(|(_, reason)| *reason == DropReason::Aqm));
    }
}
