//! PI2 (De Schepper et al., "PI² : A Linearized AQM for both Classic and Scalable TCP", CoNEXT
//! 2016): one queue whose controller moves p'. Classic packets are picked with its square, which
//! makes the controller stable without PIE's table of steps; those of L4S are marked with k p'.

use super::{DropReason, Limit, PacketFifo, Queue, QueueCx};
use crate::packet::{EcnField, Packet};
use ackline_sched::aqm::{Coupling, MTU, PiController, PiParams};

/// Settings of [`Pi2`]. The controller's defaults are those of RFC 9332.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pi2Params {
    /// Size of the buffer.
    pub limit: Limit,
    /// The controller.
    pub pi: PiParams,
    /// How much more often L4S traffic is marked than the square root of classic traffic's
    /// probability (2).
    pub coupling: f64,
}

impl Default for Pi2Params {
    fn default() -> Self {
        Self { limit: Limit::Packets(1_000), pi: PiParams::default(), coupling: 2.0 }
    }
}

/// A PI2 queue.
#[derive(Debug)]
pub struct Pi2 {
    fifo: PacketFifo,
    limit: Limit,
    pi: PiController,
    coupling: Coupling,
}

impl Pi2 {
    /// An empty queue.
    #[must_use]
    pub fn new(params: Pi2Params) -> Self {
        Self {
            fifo: PacketFifo::default(),
            limit: params.limit,
            pi: PiController::new(params.pi),
            coupling: Coupling::new(params.coupling, params.pi.arithmetic),
        }
    }
}

impl Queue for Pi2 {
    fn name(&self) -> &'static str {
        "pi2"
    }

    fn enqueue(&mut self, cx: &mut QueueCx<'_>, packet: Packet) {
        let Self { fifo, pi, .. } = self;
        pi.catch_up(cx.now, |at| fifo.delay(at));
        if self.limit.admits(cx, &self.fifo, &packet) {
            self.fifo.push(cx, packet);
        } else {
            cx.drop(packet, DropReason::Overflow);
        }
    }

    fn dequeue(&mut self, cx: &mut QueueCx<'_>) -> Option<Packet> {
        let Self { fifo, pi, .. } = self;
        pi.catch_up(cx.now, |at| fifo.delay(at));
        loop {
            let small = self.fifo.bytes() < 2 * MTU;
            let packet = self.fifo.pop(cx)?;
            let prob = if small { 0.0 } else { self.pi.prob() };
            let chance = |prob| cx.rng.chance(prob);
            let verdict = if packet.is_l4s() {
                self.coupling.l4s(chance, prob, 0.0)
            } else {
                self.coupling.classic(chance, prob, packet.ecn() != EcnField::NotEct)
            };
            if let Some(packet) = cx.carry_out(verdict, packet) {
                return Some(packet);
            }
        }
    }

    fn packets(&self) -> usize {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("p", self.pi.prob());
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;
    use ackline_tcp_core::Duration;

    #[test]
    fn keeps_the_delay_near_its_target() {
        let mut bench = Bench::new(Pi2::new(Pi2Params::default()), 8_000_000, 3);
        let mut run = |millis: u64| {
            let mut waited = 0.0;
            for number in 0..millis {
                bench.now += Duration::from_millis(1);
                bench.arrive(1_000, false);
                if number % 5 == 0 {
                    bench.arrive(1_000, false);
                }
                waited += bench.leave().map_or(0.0, |packet| bench.now.since(packet.queued_at).as_secs_f64());
            }
            waited / millis as f64
        };
        run(20_000);
        let mean = run(40_000);
        assert!((0.010..0.020).contains(&mean), "seed 3: {mean} s");
        // A sixth of what arrives is too much, and p'² is that.
        let prob = bench.queue.pi.prob();
        assert!((prob * prob - 1.0 / 6.0).abs() < 0.03, "seed 3: {prob}");
    }
}
