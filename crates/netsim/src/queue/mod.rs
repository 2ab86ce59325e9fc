//! Queues before a link, and active queue management (AQM), which marks or drops.
//!
//! Decisions at enqueue use the backlog found by the arriving packet: without that packet, and
//! without the one being serialised.

mod codel;
mod curvy_red;
mod drop_tail;
mod dual;
mod dualpi2;
mod fifo;
mod fq_codel;
mod pi2;
mod pie;
mod red;
mod threshold;

pub use ackline_sched::aqm::{Arithmetic, PiParams, Ramp as L4sRamp, Turns};
pub use codel::{CeThreshold, CoDel, CoDelParams};
pub use curvy_red::{CurvyRed, CurvyRedParams};
pub use drop_tail::DropTail;
pub use dualpi2::{DualPi2, DualPi2Params};
pub use fq_codel::{FqCoDel, FqCoDelParams};
pub use pi2::{Pi2, Pi2Params};
pub use pie::{Pie, PieParams};
pub use red::{Adaptive, Red, RedParams};
pub use threshold::{Ramp, Step};

use crate::packet::Packet;
use crate::rng::SimRng;
use ackline_sched::aqm::Verdict;
use ackline_tcp_core::{Duration, Instant};
use fifo::PacketFifo;
use std::fmt::Debug;

/// A queue before a link.
pub trait Queue: Debug + Send {
    /// The name under which it is chosen (`drop-tail`).
    fn name(&self) -> &'static str;

    /// A packet arrives. Keep it, or pass it to `cx` as dropped.
    fn enqueue(&mut self, cx: &mut QueueCx<'_>, packet: Packet);

    /// The link is idle: returns the next packet. Packets dropped on the way go to `cx`.
    fn dequeue(&mut self, cx: &mut QueueCx<'_>) -> Option<Packet>;

    /// A packet arrives while the queue is empty and the link idle: the same as
    /// [`enqueue`](Self::enqueue) and, unless the packet was dropped, [`dequeue`](Self::dequeue).
    fn pass(&mut self, cx: &mut QueueCx<'_>, packet: Packet) -> Option<Packet> {
        self.enqueue(cx, packet);
        if self.packets() == 0 { None } else { self.dequeue(cx) }
    }

    /// Number of queued packets.
    fn packets(&self) -> usize;

    /// Queued bytes, by price and framing.
    fn bytes(&self) -> u64;

    /// Reports the queue's own variables, by name.
    fn metrics(&self, report: &mut dyn FnMut(&'static str, f64)) {
        let _ = report;
    }
}

/// The context of one event of a queue.
#[derive(Debug)]
pub struct QueueCx<'a> {
    /// The time of the event.
    pub now: Instant,
    /// Bits per second of the link behind the queue.
    pub rate: u64,
    /// Bytes that the link adds to the price of each packet.
    pub framing: u32,
    /// The queue's random numbers.
    pub rng: &'a mut SimRng,
    /// Packets dropped during the event.
    pub dropped: &'a mut Vec<(Packet, DropReason)>,
    /// Number of packets marked.
    pub marked: &'a mut u64,
}

impl QueueCx<'_> {
    fn cost(&self, packet: &Packet) -> u64 {
        u64::from(packet.price) + u64::from(self.framing)
    }

    /// The bytes that the link serialises in `time`.
    fn bytes_in(&self, time: Duration) -> u64 {
        let bits = u128::from(self.rate) * u128::from(time.as_nanos()) / 1_000_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }

    /// Applies `action` to a packet. Returns the packet unless it is dropped.
    fn signal(&mut self, mut packet: Packet, action: Action) -> Option<Packet> {
        if action != Action::Drop && packet.mark() {
            *self.marked += 1;
            return Some(packet);
        }
        if action == Action::MarkOnly {
            return Some(packet);
        }
        self.drop(packet, DropReason::Aqm);
        None
    }

    /// Does to a packet that leaves what `verdict` says; `None` if it is dropped.
    fn carry_out(&mut self, verdict: Verdict, mut packet: Packet) -> Option<Packet> {
        match verdict {
            Verdict::Drop => {
                self.drop(packet, DropReason::Aqm);
                return None;
            }
            Verdict::Mark => self.mark(&mut packet),
            Verdict::Pass => {}
        }
        Some(packet)
    }

    /// Marks a packet that is ECN-capable.
    fn mark(&mut self, packet: &mut Packet) {
        *self.marked += u64::from(packet.mark());
    }

    fn drop(&mut self, packet: Packet, reason: DropReason) {
        self.dropped.push((packet, reason));
    }
}

/// What an AQM does with a selected packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// Marks it CE if it is ECN-capable (RFC 3168), and drops it otherwise.
    #[default]
    Mark,
    /// Drops it.
    Drop,
    /// Marks it CE if it is ECN-capable, and otherwise lets it pass: only a full buffer drops
    /// (`nodrop` of tc-red).
    MarkOnly,
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DropReason {
    /// The buffer was full.
    Overflow,
    /// The AQM dropped it.
    Aqm,
    /// An impairment lost it.
    Impairment,
    /// There is no route to its destination, or it is no longer an IP packet.
    NoRoute,
    /// Its hop limit was exhausted.
    HopLimit,
}

impl DropReason {
    /// The reason as a word, for records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Aqm => "aqm",
            Self::Impairment => "impairment",
            Self::NoRoute => "no-route",
            Self::HopLimit => "hop-limit",
        }
    }
}

/// The capacity of a buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Bytes, by price and framing.
    Bytes(u64),
    /// Packets.
    Packets(usize),
    /// The bytes that the link serialises in this time.
    Time(Duration),
    /// Anything.
    Unlimited,
}

impl Limit {
    /// True if there is room for `packet`.
    fn admits(self, cx: &QueueCx<'_>, queue: &PacketFifo, packet: &Packet) -> bool {
        self.holds(cx, queue.packets() + 1, queue.bytes() + cx.cost(packet))
    }

    /// True if the buffer has room for so much.
    fn holds(self, cx: &QueueCx<'_>, packets: usize, bytes: u64) -> bool {
        match self {
            Self::Bytes(limit) => bytes <= limit,
            Self::Packets(limit) => packets <= limit,
            Self::Time(limit) => bytes <= cx.bytes_in(limit),
            Self::Unlimited => true,
        }
    }
}

#[cfg(test)]
pub(crate) mod bench {
    //! Drives one queue by hand.

    use super::*;
    use crate::packet::test_packets::ipv4;

    /// A queue before a link, with the clock in the test's hand.
    pub(crate) struct Bench<Q> {
        pub(crate) queue: Q,
        pub(crate) now: Instant,
        pub(crate) rate: u64,
        pub(crate) rng: SimRng,
        pub(crate) dropped: Vec<(Packet, DropReason)>,
        pub(crate) marked: u64,
        number: u64,
    }

    impl<Q: Queue> Bench<Q> {
        pub(crate) fn new(queue: Q, rate: u64, seed: u64) -> Self {
            Self {
                queue,
                now: Instant::ZERO,
                rate,
                rng: SimRng::new(seed, 0),
                dropped: vec![],
                marked: 0,
                number: 0,
            }
        }

        pub(crate) fn with<R>(&mut self, f: impl FnOnce(&mut Q, &mut QueueCx<'_>) -> R) -> R {
            let Self { queue, now, rate, rng, dropped, marked, .. } = self;
            f(queue, &mut QueueCx { now: *now, rate: *rate, framing: 0, rng, dropped, marked })
        }

        pub(crate) fn arrive(&mut self, len: usize, ect: bool) {
            self.offer(ipv4(self.number, len, ect));
        }

        /// A packet with this ECN field: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
        pub(crate) fn arrive_with_ecn(&mut self, len: usize, ecn: u8) {
            let mut packet = ipv4(self.number, len, false);
            packet.octets_mut()[1] = ecn;
            self.offer(packet);
        }

        /// A packet of 10.0.1.`host`.
        pub(crate) fn arrive_from(&mut self, host: u8, len: usize) {
            let mut packet = ipv4(self.number, len, false);
            packet.octets_mut()[12..16].copy_from_slice(&[10, 0, 1, host]);
            self.offer(packet);
        }

        fn offer(&mut self, mut packet: Packet) {
            packet.queued_at = self.now;
            self.number += 1;
            self.with(|queue, cx| queue.enqueue(cx, packet));
        }

        pub(crate) fn leave(&mut self) -> Option<Packet> {
            self.with(|queue, cx| queue.dequeue(cx))
        }
    }
}
