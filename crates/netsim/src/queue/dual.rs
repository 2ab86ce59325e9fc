//! The two queues of a DualQ Coupled AQM (RFC 9332, figure 1) and whose turn it is: L for traffic
//! with ECT(1) or CE, C for everything else.

use super::{DropReason, Limit, PacketFifo, QueueCx};
use crate::packet::Packet;
use ackline_sched::aqm::{Credit, MTU, Turns, Which};
use ackline_tcp_core::{Duration, Instant};

/// The two queues.
#[derive(Debug)]
pub(super) struct TwoQueues {
    limit: Limit,
    l: PacketFifo,
    c: PacketFifo,
    credit: Credit,
}

impl TwoQueues {
    pub(super) fn new(limit: Limit, turns: Turns) -> Self {
        Self { limit, l: PacketFifo::default(), c: PacketFifo::default(), credit: Credit::new(turns) }
    }

    /// A packet arrives. Both queues share one limit, which must leave room for a full packet
    /// (figure 5).
    pub(super) fn push(&mut self, cx: &mut QueueCx<'_>, mut packet: Packet) {
        packet.l4s_queue = packet.is_l4s();
        if !self.limit.holds(cx, self.packets() + 1, self.bytes() + MTU) {
            cx.drop(packet, DropReason::Overflow);
        } else if packet.l4s_queue {
            self.l.push(cx, packet);
        } else {
            self.c.push(cx, packet);
        }
    }

    /// The next packet and its queue.
    pub(super) fn pop(&mut self, cx: &QueueCx<'_>) -> Option<(Which, Packet)> {
        let both = self.l.packets() > 0 && self.c.packets() > 0;
        let which = if both { self.credit.turn(self.delays(cx.now)) } else { self.only()? };
        let packet = match which {
            Which::L => self.l.pop(cx)?,
            Which::C => self.c.pop(cx)?,
        };
        if both {
            self.credit.left(which, cx.cost(&packet));
        }
        if self.packets() == 0 {
            self.credit.emptied();
        }
        Some((which, packet))
    }

    fn only(&self) -> Option<Which> {
        if self.l.packets() > 0 { Some(Which::L) } else { (self.c.packets() > 0).then_some(Which::C) }
    }

    /// How long the heads of L and C have waited.
    pub(super) fn delays(&self, now: Instant) -> [Duration; 2] {
        [self.l.delay(now), self.c.delay(now)]
    }

    pub(super) fn l4s_packets(&self) -> usize {
        self.l.packets()
    }

    pub(super) fn packets(&self) -> usize {
        self.l.packets() + self.c.packets()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.l.bytes() + self.c.bytes()
    }

    /// Bytes of both queues.
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, f64)) {
        report("l_bytes", self.l.bytes() as f64);
        report("c_bytes", self.c.bytes() as f64);
    }
}
