//! STIS, a simulator of path impairments: a wireless path as measured for the DCLOR draft (Swami,
//! "DCLOR: De-correlated Loss Recovery using SACK option for spurious timeouts",
//! draft-swami-tsvwg-tcp-dclor-00, 2002, section on simulation results).
//!
//! ```text
//!   arrival ──► stall? ──► admission ──► the flow's queue, ──► route: ──► fixed ──► out
//!               wait for   to the shared  per direction,       + 0 or     delay
//!               its end    buffer         at its own rate      20 ms
//! ```
//!
//! The steps, with the numbers used in the comments below:
//!
//! 1. Packets arrive over a link of 10 Mbit/s, which is a [link](crate::LinkSpec) of the network,
//!    not part of this node.
//! 2. Stalls. Each flow has its own [stall process](Stalls), independent of its traffic. A packet
//!    that arrives during a stall, in either direction, counts as arriving at its end.
//! 3. Admission. A packet is accepted while the bytes in the buffer, over all flows and directions,
//!    are below the limit; its own size does not count. It leaves the buffer when it leaves its
//!    queue.
//! 4. Service. Each flow has a queue in each direction, with its own rate.
//! 5. Delay. A fixed delay, plus that of the route: before each packet the route changes with a
//!    given probability, and one of the two routes takes longer. So packets of one flow may
//!    overtake each other.
//!
//! A flow's stalls only depend on the seed and the flow's [name](FlowBy): whatever its hosts do,
//! they meet the same stalls.

mod stalls;
#[cfg(test)]
mod tests;

pub use stalls::{StallKind, Stalls};

use crate::event::EventQueue;
use crate::middlebox::{Middlebox, MiddleboxCx};
use crate::packet::Packet;
use crate::queue::DropReason;
use crate::rng::SimRng;
use crate::service::serialisation;
use ackline_tcp_core::{Duration, Instant};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;

/// Which packets share stalls, and a queue in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowBy {
    /// Those between two hosts.
    Hosts,
    /// Those between two hosts to and from one service port, the lower of a packet's two ports: a
    /// client that opens one connection after another to one listener is one flow.
    #[default]
    Service,
    /// Those of one TCP connection.
    Connection,
}

/// The parameters of the path. The defaults are the draft's.
#[derive(Clone, Debug, PartialEq)]
pub struct StisParams {
    /// What counts as a flow.
    pub flow: FlowBy,
    /// Bits per second of each flow in each direction.
    pub rate: u64,
    /// The shared buffer of all flows, in bytes.
    pub buffer: u64,
    /// The fixed delay.
    pub delay: Duration,
    /// The probability that the route changes before a packet.
    pub route_switch: f64,
    /// Additional delay of the longer route.
    pub route_delay: Duration,
    /// The kinds of stalls; the sum of their probabilities is at most 1.
    pub stalls: Vec<StallKind>,
    /// The time between two draws that may start a stall.
    pub stall_every: Duration,
    /// A stall also stops the service of the flow's two queues. Otherwise it only delays arriving
    /// packets, and a backlog keeps draining.
    pub stall_stops_service: bool,
}

impl Default for StisParams {
    fn default() -> Self {
        Self {
            flow: FlowBy::default(),
            rate: 50_000,
            buffer: 74 * 1_024,
            delay: Duration::from_millis(200),
            route_switch: 0.12,
            route_delay: Duration::from_millis(20),
            stalls: vec![
                StallKind { probability: 0.005, lasts: Duration::from_secs(8) },
                StallKind { probability: 0.05, lasts: Duration::from_secs(5) },
            ],
            stall_every: Duration::from_secs(1),
            stall_stops_service: true,
        }
    }
}

/// Counters of the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StisStats {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that arrived during a stall.
    pub held: u64,
    /// Packets that found the buffer full.
    pub dropped: u64,
    /// Packets forwarded.
    pub left: u64,
    /// Maximum bytes in the buffer.
    pub peak: u64,
}

/// The node.
#[derive(Debug)]
pub struct Stis {
    params: StisParams,
    places: HashMap<FlowKey, usize>,
    flows: Vec<Flow>,
    /// Future events of the packets inside.
    pending: EventQueue<Pending>,
    /// Bytes in the buffer.
    backlog: u64,
    /// When bytes leave the buffer, and how many.
    leaving: BinaryHeap<Reverse<(Instant, u64)>>,
    stats: StisStats,
}

#[derive(Debug)]
enum Pending {
    /// The stall during which it arrived has ended.
    Admit(FlowDirection, Packet),
    /// It has crossed the path.
    Out(Packet),
}

/// A flow, and a direction of it.
#[derive(Clone, Copy, Debug)]
struct FlowDirection {
    flow: usize,
    backwards: bool,
}

/// The two ends of a flow, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FlowKey {
    ends: [(IpAddr, u16); 2],
}

#[derive(Debug)]
struct Flow {
    stalls: Stalls,
    /// Forward and backward direction.
    lanes: [Lane; 2],
}

/// One direction of a flow.
#[derive(Debug)]
struct Lane {
    last_departure: Instant,
    takes_longer: bool,
    rng: SimRng,
}

impl Stis {
    /// A path that nothing has crossed yet.
    #[must_use]
    pub fn new(params: StisParams) -> Self {
        Self {
            params,
            places: HashMap::new(),
            flows: vec![],
            pending: EventQueue::default(),
            backlog: 0,
            leaving: BinaryHeap::new(),
            stats: StisStats::default(),
        }
    }

    /// The counters so far.
    #[must_use]
    pub const fn stats(&self) -> StisStats {
        self.stats
    }

    /// Processes everything due at or before `now`, in order.
    fn run(&mut self, cx: &mut MiddleboxCx<'_>) {
        while self.pending.next_at().is_some_and(|at| at <= cx.now) {
            match self.pending.pop() {
                Some((order, Pending::Admit(whose, packet))) => self.admit(cx, order.at, whose, packet),
                Some((_, Pending::Out(packet))) => {
                    self.stats.left += 1;
                    cx.out.push(packet);
                }
                None => return,
            }
        }
    }

    /// Steps 3 to 5, for a packet that arrives at `at` according to step 2.
    fn admit(&mut self, cx: &mut MiddleboxCx<'_>, at: Instant, whose: FlowDirection, packet: Packet) {
        while let Some(Reverse((gone, bytes))) = self.leaving.peek().copied()
            && gone <= at
        {
            self.leaving.pop();
            self.backlog -= bytes;
        }
        if self.backlog >= self.params.buffer {
            self.stats.dropped += 1;
            cx.dropped.push((packet, DropReason::Overflow));
            return;
        }
        let params = &self.params;
        let Flow { stalls, lanes } = &mut self.flows[whose.flow];
        let lane = &mut lanes[usize::from(whose.backwards)];
        let bytes = u64::from(packet.price);
        let begin = at.max(lane.last_departure);
        let work = serialisation(params.rate.max(1), bytes);
        let departure = if params.stall_stops_service { stalls.finish(begin, work) } else { begin + work };
        lane.last_departure = departure;
        self.backlog += bytes;
        self.stats.peak = self.stats.peak.max(self.backlog);
        self.leaving.push(Reverse((departure, bytes)));

        lane.takes_longer ^= lane.rng.chance(params.route_switch);
        let route = if lane.takes_longer { params.route_delay } else { Duration::ZERO };
        self.pending.schedule(departure + params.delay + route, Pending::Out(packet));
    }

    fn whose(&mut self, seed: u64, packet: &Packet) -> FlowDirection {
        let (key, backwards) = FlowKey::of(packet, self.params.flow);
        let Self { params, places, flows, .. } = self;
        let flow = *places.entry(key).or_insert_with(|| {
            flows.push(Flow::new(params, seed, &key));
            flows.len() - 1
        });
        FlowDirection { flow, backwards }
    }
}

impl Middlebox for Stis {
    fn arrive(&mut self, cx: &mut MiddleboxCx<'_>, packet: Packet) {
        self.run(cx);
        self.stats.arrived += 1;
        let whose = self.whose(cx.seed, &packet);
        let stalls = &mut self.flows[whose.flow].stalls;
        stalls.forget_before(cx.now);
        let at = stalls.released(cx.now);
        if at > cx.now {
            self.stats.held += 1;
            self.pending.schedule(at, Pending::Admit(whose, packet));
        } else {
            self.admit(cx, at, whose, packet);
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.pending.next_at()
    }

    fn timeout(&mut self, cx: &mut MiddleboxCx<'_>) {
        self.run(cx);
    }
}

impl FlowKey {
    /// The flow of a packet, and whether it goes from the higher address to the lower. Packets
    /// without addresses form one flow.
    fn of(packet: &Packet, by: FlowBy) -> (Self, bool) {
        let nobody = IpAddr::from([0; 4]);
        let addresses = [packet.source().unwrap_or(nobody), packet.destination().unwrap_or(nobody)];
        let ports = packet.ports().unwrap_or([0, 0]);
        let ends = match by {
            FlowBy::Hosts => [(addresses[0], 0), (addresses[1], 0)],
            FlowBy::Service => {
                let service = ports[0].min(ports[1]);
                [0, 1].map(|end| (addresses[end], if ports[end] == service { service } else { 0 }))
            }
            FlowBy::Connection => [(addresses[0], ports[0]), (addresses[1], ports[1])],
        };
        let backwards = ends[0] > ends[1];
        (Self { ends: if backwards { [ends[1], ends[0]] } else { ends } }, backwards)
    }

    /// The flow's name as a number (FNV-1a), so that its random numbers do not depend on when it is
    /// first seen.
    fn number(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |octet: u8| hash = (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
        for (address, port) in self.ends {
            match address {
                IpAddr::V4(address) => address.octets().into_iter().for_each(&mut add),
                IpAddr::V6(address) => address.octets().into_iter().for_each(&mut add),
            }
            port.to_be_bytes().into_iter().for_each(&mut add);
        }
        hash
    }
}

impl Flow {
    fn new(params: &StisParams, seed: u64, key: &FlowKey) -> Self {
        // The streams of the simulation's own parts are far below 2^40.
        let stream = |part: u64| SimRng::new(seed, (key.number() << 2 | part) | 1 << 63);
        let lane = |part| Lane { last_departure: Instant::ZERO, takes_longer: false, rng: stream(part) };
        Self {
            stalls: Stalls::new(params.stalls.clone(), params.stall_every, stream(0)),
            lanes: [lane(1), lane(2)],
        }
    }
}
