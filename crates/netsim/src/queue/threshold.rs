//! Marking by the instantaneous queue, as for DCTCP: a step at one threshold, or a ramp between
//! two.

use super::{Action, DropReason, Limit, PacketFifo, Queue, QueueCx};
use crate::packet::Packet;

/// Marks every packet that finds a backlog of more than `threshold` bytes (RFC 8257, section 3.1:
/// K).
#[derive(Debug)]
pub struct Step {
    fifo: PacketFifo,
    limit: Limit,
    threshold: u64,
    action: Action,
}

impl Step {
    /// A step at `threshold` bytes.
    #[must_use]
    pub fn new(limit: Limit, threshold: u64, action: Action) -> Self {
        Self { fifo: PacketFifo::default(), limit, threshold, action }
    }
}

impl Queue for Step {
    fn name(&self) -> &'static str {
        "step"
    }

    fn enqueue(&mut self, cx: &mut QueueCx<'_>, packet: Packet) {
        let picked = self.fifo.bytes() > self.threshold;
        admit(&mut self.fifo, self.limit, cx, packet, picked, self.action);
    }

    fn dequeue(&mut self, cx: &mut QueueCx<'_>) -> Option<Packet> {
        self.fifo.pop(cx)
    }

    fn packets(&self) -> usize {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}

/// Marks with a probability that rises from 0 at `min` bytes of backlog to 1 at `max`,
/// independently for each packet.
#[derive(Debug)]
pub struct Ramp {
    fifo: PacketFifo,
    limit: Limit,
    min: u64,
    max: u64,
    action: Action,
}

impl Ramp {
    /// A ramp from `min` to `max` bytes; `max` must not be smaller.
    #[must_use]
    pub fn new(limit: Limit, min: u64, max: u64, action: Action) -> Self {
        Self { fifo: PacketFifo::default(), limit, min, max, action }
    }

    fn probability(&self) -> f64 {
        let backlog = self.fifo.bytes();
        if backlog >= self.max {
            1.0
        } else if backlog <= self.min {
            0.0
        } else {
            (backlog - self.min) as f64 / (self.max - self.min) as f64
        }
    }
}

impl Queue for Ramp {
    fn name(&self) -> &'static str {
        "ramp"
    }

    fn enqueue(&mut self, cx: &mut QueueCx<'_>, packet: Packet) {
        let probability = self.probability();
        let picked = probability > 0.0 && cx.rng.chance(probability);
        admit(&mut self.fifo, self.limit, cx, packet, picked, self.action);
    }

    fn dequeue(&mut self, cx: &mut QueueCx<'_>) -> Option<Packet> {
        self.fifo.pop(cx)
    }

    fn packets(&self) -> usize {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}

/// Queues a packet behind the buffer's limit, after the AQM's decision.
pub(super) fn admit(
    fifo: &mut PacketFifo,
    limit: Limit,
    cx: &mut QueueCx<'_>,
    packet: Packet,
    picked: bool,
    action: Action,
) {
    if !limit.admits(cx, fifo, &packet) {
        cx.drop(packet, DropReason::Overflow);
    } else if !picked {
        fifo.push(cx, packet);
    } else if let Some(marked) = cx.signal(packet, action) {
        fifo.push(cx, marked);
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;

    #[test]
    fn step_marks_above_its_threshold_only() {
        let mut bench = Bench::new(Step::new(Limit::Unlimited, 3_000, Action::Mark), 1_000_000, 0);
        (0..10).for_each(|_| bench.arrive(1_000, true));
        // The fifth packet is the first to find more than 3,000 bytes.
        assert_eq!(bench.marked, 6);
        (0..10).for_each(|_| bench.arrive(1_000, false));
        assert_eq!(bench.dropped.len(), 10, "what is not ECN-capable is dropped");
    }

    #[test]
    fn what_cannot_be_marked_passes_where_nothing_is_to_be_dropped() {
        let mut bench = Bench::new(Step::new(Limit::Bytes(15_000), 3_000, Action::MarkOnly), 1_000_000, 0);
        (0..5).for_each(|_| bench.arrive(1_000, true));
        (0..5).for_each(|_| bench.arrive(1_000, false));
        assert_eq!((bench.marked, bench.dropped.len()), (1, 0));
        (0..10).for_each(|_| bench.arrive(1_000, false));
        assert!(!bench.dropped.is_empty(), "but by a full buffer");
    }

    #[test]
    fn ramp_marks_in_proportion() {
        for (backlog, expected) in [(5, 0.0), (10, 0.0), (15, 0.5), (19, 0.9), (20, 1.0)] {
            let seed = 11;
            let mut bench = Bench::new(Ramp::new(Limit::Unlimited, 10_000, 20_000, Action::Drop), 1, seed);
            let ramp = &mut bench.queue;
            // A queue that is held at a length: what was admitted is taken out again.
            let fill = Ramp::new(Limit::Unlimited, u64::MAX - 1, u64::MAX, Action::Drop);
            let (min, max) = (ramp.min, ramp.max);
            *ramp = fill;
            (0..backlog).for_each(|_| bench.arrive(1_000, false));
            (bench.queue.min, bench.queue.max) = (min, max);
            let n = 20_000;
            for _ in 0..n {
                bench.arrive(1_000, false);
                if bench.queue.packets() > backlog {
                    bench.leave();
                }
            }
            let share = bench.dropped.len() as f64 / f64::from(n);
            // Five standard errors at most.
            assert!((share - expected).abs() < 0.018, "seed {seed}: {share} at {backlog}, not {expected}");
        }
    }
}
