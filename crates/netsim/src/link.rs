//! One direction of a link.
//!
//! ```text
//!   queue ──► serialise at the rate ──► impairments ──► propagate for the delay ──► the other end
//! ```
//!
//! Packets in propagation are in a queue of the link, so the queue of events only holds one for all
//! of them.

use crate::event::Order;
use crate::impair::Impairment;
use crate::packet::Packet;
use crate::queue::{DropReason, DropTail, Limit, Queue};
use crate::rng::SimRng;
use crate::service::{Service, serialisation};
use crate::topology::NodeId;
use ackline_tcp_core::{Duration, Instant};
use std::collections::VecDeque;

/// The parameters of a link.
#[derive(Debug)]
pub struct LinkSpec {
    /// How fast it serialises.
    pub service: Service,
    /// Propagation delay.
    pub delay: Duration,
    /// Bytes added to each packet on this link (Ethernet: 38 with preamble and gap).
    pub framing: u32,
    /// The queue before it. Not used if the sending host [feeds the link](crate::Egress::Fed)
    /// itself.
    pub queue: Box<dyn Queue>,
    /// Impairments, in this order.
    pub impairments: Vec<Box<dyn Impairment>>,
}

impl LinkSpec {
    /// A link of `rate` bits per second and this delay, with an unlimited buffer and no impairment.
    #[must_use]
    pub fn new(rate: u64, delay: Duration) -> Self {
        Self {
            service: Service::Rate(rate),
            delay,
            framing: 0,
            queue: Box::new(DropTail::new(Limit::Unlimited)),
            impairments: vec![],
        }
    }

    /// The same, with another queue.
    #[must_use]
    pub fn with_queue(self, queue: Box<dyn Queue>) -> Self {
        Self { queue, ..self }
    }

    /// The same, with one more impairment.
    #[must_use]
    pub fn with_impairment(mut self, impairment: impl Impairment + 'static) -> Self {
        self.impairments.push(Box::new(impairment));
        self
    }
}

/// Counters of a link. Every packet offered is eventually delivered or dropped, and duplicates are
/// counted separately: `offered + duplicated = delivered + dropped + on the link`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkStats {
    /// Packets that arrived at the queue (or that the host fed to the link).
    pub offered: u64,
    /// Packets delivered to the far node.
    pub delivered: u64,
    /// Their bytes, by price and framing.
    pub delivered_bytes: u64,
    /// Packets dropped because the buffer was full.
    pub overflows: u64,
    /// Packets dropped by the AQM.
    pub aqm_drops: u64,
    /// Packets lost by an impairment.
    pub impaired: u64,
    /// Copies that an impairment made.
    pub duplicated: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// Time spent serialising.
    pub busy: Duration,
}

impl LinkStats {
    /// Packets that did not arrive.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.overflows + self.aqm_drops + self.impaired
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        match reason {
            DropReason::Overflow => self.overflows += 1,
            DropReason::Aqm => self.aqm_drops += 1,
            DropReason::Impairment | DropReason::NoRoute | DropReason::HopLimit => self.impaired += 1,
        }
    }
}

/// The state of a link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) spec: LinkSpec,
    /// The sending host feeds packets one by one.
    pub(crate) fed: bool,
    /// An observer watches departures.
    pub(crate) watched: bool,
    /// Nothing is serialised while it is down or stalled.
    pub(crate) stopped: bool,
    /// Packets in its queue, which is asked only after it has taken or given one.
    pub(crate) waiting: usize,
    /// The packet being serialised.
    pub(crate) in_service: Option<Packet>,
    /// Position, among all events, of the end of the current or last serialisation.
    pub(crate) done: Order,
    /// An event is scheduled at `done`.
    pub(crate) done_scheduled: bool,
    /// The arrival of the packet being serialised, if nothing can happen to it on the way.
    pub(crate) arrives: Option<Order>,
    /// The delay when that packet's first bit left.
    pub(crate) delay: Duration,
    /// Packets in propagation, in order of arrival.
    flying: VecDeque<(Order, Packet)>,
    last_arrival: Instant,
    /// What the last packet cost, and its time, if the link serialises at a rate.
    usual: Option<(u64, Duration)>,
    pub(crate) rng: SimRng,
    pub(crate) stats: LinkStats,
}

impl Link {
    pub(crate) fn new(from: NodeId, to: NodeId, spec: LinkSpec, rng: SimRng) -> Self {
        Self {
            from,
            to,
            spec,
            fed: false,
            watched: false,
            stopped: false,
            waiting: 0,
            in_service: None,
            done: Order { at: Instant::ZERO, serial: 0 },
            done_scheduled: false,
            arrives: None,
            delay: Duration::ZERO,
            flying: VecDeque::new(),
            last_arrival: Instant::ZERO,
            usual: None,
            rng,
            stats: LinkStats::default(),
        }
    }

    /// True if a packet is being serialised after the event at `current`.
    pub(crate) fn is_busy(&self, current: Order) -> bool {
        self.in_service.is_some() || self.done > current
    }

    /// True if nothing happens to a packet when its last bit leaves: its arrival is known when its
    /// first bit leaves.
    pub(crate) fn is_plain(&self) -> bool {
        !self.fed && self.spec.impairments.is_empty()
    }

    /// Serves the next packets at another rate.
    pub(crate) fn set_service(&mut self, service: Service) {
        self.spec.service = service;
        self.usual = None;
    }

    /// How long it serialises `packet` from `now` on.
    #[inline]
    pub(crate) fn time_for(&mut self, now: Instant, packet: &Packet) -> Duration {
        let cost = self.cost(packet);
        match &mut self.spec.service {
            // Most packets are as long as the one before, and a division takes as long as all else
            // here.
            Service::Rate(rate) => match self.usual {
                Some((usual, time)) if usual == cost => time,
                _ => {
                    let time = serialisation(*rate, cost);
                    self.usual = Some((cost, time));
                    time
                }
            },
            Service::Instant => Duration::ZERO,
            Service::Trace(trace) => trace.deliver(now, cost).since(now),
        }
    }

    /// Bytes that the link serialises for `packet`.
    pub(crate) fn cost(&self, packet: &Packet) -> u64 {
        u64::from(packet.price) + u64::from(self.spec.framing)
    }

    /// Packets that are queued, serialised or propagating.
    pub(crate) fn inside(&self) -> usize {
        self.waiting + usize::from(self.in_service.is_some()) + self.flying.len()
    }

    /// When a packet that left at `now` will arrive.
    #[inline]
    pub(crate) fn arrival(&mut self, now: Instant, extra: Duration, reorders: bool) -> Instant {
        let at = now + self.delay.saturating_add(extra);
        if reorders {
            return at;
        }
        self.last_arrival = self.last_arrival.max(at);
        self.last_arrival
    }

    /// Starts the propagation of a packet. True if it is the next to arrive.
    #[inline]
    pub(crate) fn fly(&mut self, order: Order, packet: Packet) -> bool {
        if self.flying.back().is_none_or(|(last, _)| *last < order) {
            self.flying.push_back((order, packet));
            return self.flying.len() == 1;
        }
        self.overtake(order, packet)
    }

    /// The same for a packet that arrives before others that have left earlier.
    #[cold]
    fn overtake(&mut self, order: Order, packet: Packet) -> bool {
        let after = self.flying.iter().rev().take_while(|(other, _)| *other > order).count();
        let place = self.flying.len() - after;
        self.flying.insert(place, (order, packet));
        place == 0
    }

    /// The packet that arrives at `now`, and the order of the one behind it.
    pub(crate) fn land(&mut self, now: Instant) -> Option<Packet> {
        if self.flying.front()?.0.at > now {
            return None;
        }
        self.flying.pop_front().map(|(_, packet)| packet)
    }

    pub(crate) fn next_arrival(&self) -> Option<Order> {
        self.flying.front().map(|(order, _)| *order)
    }
}
