//! Drop-tail: packets that do not fit are dropped.

use super::{DropReason, Limit, PacketFifo, Queue, QueueCx};
use crate::packet::Packet;

/// A buffer without AQM.
#[derive(Debug)]
pub struct DropTail {
    fifo: PacketFifo,
    limit: Limit,
}

impl DropTail {
    /// A buffer of this size.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self { fifo: PacketFifo::default(), limit }
    }
}

impl Queue for DropTail {
    fn name(&self) -> &'static str {
        "drop-tail"
    }

    fn enqueue(&mut self, cx: &mut QueueCx<'_>, packet: Packet) {
        if self.limit.admits(cx, &self.fifo, &packet) {
            self.fifo.push(cx, packet);
        } else {
            cx.drop(packet, DropReason::Overflow);
        }
    }

    fn dequeue(&mut self, cx: &mut QueueCx<'_>) -> Option<Packet> {
        self.fifo.pop(cx)
    }

    fn pass(&mut self, cx: &mut QueueCx<'_>, packet: Packet) -> Option<Packet> {
        if self.limit.admits(cx, &self.fifo, &packet) {
            return Some(packet);
        }
        cx.drop(packet, DropReason::Overflow);
        None
    }

    fn packets(&self) -> usize {
        self.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;
    use ackline_tcp_core::Duration;

    #[test]
    fn holds_what_its_limit_says() {
        for (limit, held) in [
            (Limit::Bytes(2_999), 2),
            (Limit::Bytes(3_000), 3),
            (Limit::Packets(4), 4),
            // 8 Mbit/s: a packet of 1,000 bytes takes a millisecond.
            (Limit::Time(Duration::from_millis(5)), 5),
            (Limit::Unlimited, 10),
        ] {
            let mut bench = Bench::new(DropTail::new(limit), 8_000_000, 0);
            (0..10).for_each(|_| bench.arrive(1_000, false));
            assert_eq!(bench.queue.packets(), held, "{limit:?}");
            assert_eq!(bench.queue.bytes(), held as u64 * 1_000);
            assert_eq!(bench.dropped.len(), 10 - held);
            assert_eq!(bench.leave().map(|packet| packet.number), Some(0));
        }
    }
}
