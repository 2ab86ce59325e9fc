//! The two queues of a DualQ Coupled AQM (RFC 9332, figure 1) and whose turn it is: L for traffic
//! with ECT(1) or CE, C for everything else.

use super::{DropReason, Limit, PacketFifo, QueueCx};
use crate::packet::Packet;
use ackline_tcp_core::{Duration, Instant};

/// Size of a full packet with its Ethernet header, as Linux counts it.
pub(super) const MTU: u64 = 1_514;

/// How turns are shared when both queues have packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Weighted round robin: of 100 bytes, C gets so many (Linux: 10). It bounds what L4S traffic
    /// that does not respond can take.
    Weighted {
        /// Percent for C, from 1 to 99.
        classic: u8,
    },
    /// Time-shifted FIFO: the older packet leaves, where one of L counts as older by this time
    /// (RFC 9332, appendix A.1: 50 ms).
    Shifted(Duration),
}

impl Default for Turns {
    fn default() -> Self {
        Self::Weighted { classic: 10 }
    }
}

/// Which of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    L,
    C,
}

/// The two queues.
#[derive(Debug)]
pub(super) struct TwoQueues {
    limit: Limit,
    turns: Turns,
    l: PacketFifo,
    c: PacketFifo,
    /// Bytes by which C is ahead of its share, times the weights; L may leave while it is not
    /// positive.
    credit: i64,
}

impl TwoQueues {
    pub(super) fn new(limit: Limit, turns: Turns) -> Self {
        let mut queues = Self { limit, turns, l: PacketFifo::default(), c: PacketFifo::default(), credit: 0 };
        queues.credit = queues.first_credit();
        queues
    }

    /// Weights of C and L.
    fn weights(&self) -> (i64, i64) {
        match self.turns {
            Turns::Weighted { classic } => {
                let classic = i64::from(classic.clamp(1, 99));
                (classic, 100 - classic)
            }
            Turns::Shifted(_) => (0, 0),
        }
    }

    fn first_credit(&self) -> i64 {
        let (classic, l4s) = self.weights();
        MTU as i64 * (classic - l4s)
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
        let which = if both { self.turn(cx.now) } else { self.only()? };
        let packet = match which {
            Which::L => self.l.pop(cx)?,
            Which::C => self.c.pop(cx)?,
        };
        if both {
            let (classic, l4s) = self.weights();
            let bytes = cx.cost(&packet) as i64;
            self.credit += match which {
                Which::L => classic * bytes,
                Which::C => -l4s * bytes,
            };
        }
        if self.packets() == 0 {
            self.credit = self.first_credit();
        }
        Some((which, packet))
    }

    fn only(&self) -> Option<Which> {
        if self.l.packets() > 0 { Some(Which::L) } else { (self.c.packets() > 0).then_some(Which::C) }
    }

    fn turn(&self, now: Instant) -> Which {
        let l_goes = match self.turns {
            Turns::Weighted { .. } => self.credit <= 0,
            Turns::Shifted(by) => self.l.delay(now) + by >= self.c.delay(now),
        };
        if l_goes { Which::L } else { Which::C }
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
