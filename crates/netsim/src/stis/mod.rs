//! STIS, a simulator of path impairments: a wireless path as the draft on DCLOR measured it (Swami, "DCLOR: De-correlated Loss
//! Recovery using SACK option for spurious timeouts", draft-swami-tsvwg-tcp-dclor-00, 2002, its section on simulation results).
//!
//! ```text
//!   arrival ──► stall? ──► admission ──► the flow's queue, ──► route: ──► fixed ──► out
//!               wait for   to the shared  per direction,       + 0 or     delay
//!               its end    buffer         at its own rate      20 ms
//! ```
//!
//! The steps, by the numbers that the comments below use:
//!
//! 1. Packets arrive over a link of 10 Mbit/s, which is a [link](crate::LinkSpec) of the network and not part of this node.
//! 2. Stalls. Each flow has a [process of its own](Stalls), independent of its traffic. What arrives in a stall, in either
//!    direction, arrives at its end.
//! 3. Admission. A packet is accepted while the bytes that are in the buffer, over all flows and directions, are fewer than the
//!    limit; its own size does not count. It leaves the buffer when it leaves its queue.
//! 4. Service. Each flow has a queue in each direction, with a rate of its own.
//! 5. Delay. A fixed one, and that of the route: before each packet the route changes with a probability, and one of the two
//!    routes takes longer. Packets of one flow may so overtake each other.
//!
//! The stalls of a flow follow from the seed and the flow's [name](FlowBy) alone: whatever its hosts do, they meet the same ones.

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

/// What packets share a queue in each direction, and stalls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowBy {
    /// Those between two hosts.
    Hosts,
    /// Those between two hosts to and from one port of a service, which is the lower one of a packet's two: one client that opens
    /// a connection after the other to one listener is one flow.
    #[default]
    Service,
    /// Those of one TCP connection.
    Connection,
}

/// The parameters of the path. The defaults are the draft's.
#[derive(Clone, Debug, PartialEq)]
pub struct StisParams {
    /// What is a flow.
    pub flow: FlowBy,
    /// Bits per second of each flow in each direction.
    pub rate: u64,
    /// The buffer that all flows share, in bytes.
    pub buffer: u64,
    /// The delay of every packet.
    pub delay: Duration,
    /// The probability that the route changes before a packet.
    pub route_switch: f64,
    /// What the longer route adds.
    pub route_delay: Duration,
    /// The kinds of stalls; their probabilities sum up to at most 1.
    pub stalls: Vec<StallKind>,
    /// The time between two draws that may begin a stall.
    pub stall_every: Duration,
    /// A stall stops the service of the flow's two queues, too. Otherwise it only holds back what arrives, and a backlog keeps
    /// draining.
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

/// What has happened at the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StisStats {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that arrived in a stall.
    pub held: u64,
    /// Packets that found the buffer full.
    pub dropped: u64,
    /// Packets that went on.
    pub left: u64,
    /// Most bytes in the buffer.
    pub peak: u64,
}

/// The node.
#[derive(Debug)]
pub struct Stis {
    params: StisParams,
    places: HashMap<FlowKey, usize>,
    flows: Vec<Flow>,
    /// What is to happen to the packets inside.
    pending: EventQueue<Pending>,
    /// Bytes in the buffer.
    backlog: u64,
    /// When which bytes leave the buffer.
    leaving: BinaryHeap<Reverse<(Instant, u64)>>,
    stats: StisStats,
}

#[derive(Debug)]
enum Pending {
    /// The stall in which it arrived is over.
    Admit(Whose, Packet),
    /// It has crossed the path.
    Out(Packet),
}

/// A flow, and a direction of it.
#[derive(Clone, Copy, Debug)]
struct Whose {
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
    /// There, and backwards.
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

    /// What has happened so far.
    #[must_use]
    pub const fn stats(&self) -> StisStats {
        self.stats
    }

    /// What was due at or before `now`, in its order.
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

    /// Steps 3 to 5, for a packet that arrives at `at` by the rule of step 2.
    fn admit(&mut self, cx: &mut MiddleboxCx<'_>, at: Instant, whose: Whose, packet: Packet) {
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

    fn whose(&mut self, seed: u64, packet: &Packet) -> Whose {
        let (key, backwards) = FlowKey::of(packet, self.params.flow);
        let Self { params, places, flows, .. } = self;
        let flow = *places.entry(key).or_insert_with(|| {
            flows.push(Flow::new(params, seed, &key));
            flows.len() - 1
        });
        Whose { flow, backwards }
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
    /// The flow of a packet, and whether it goes from the higher end to the lower one. Packets without addresses are one flow.
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

    /// The flow's name as a number (FNV-1a), so that its random numbers do not depend on when it is first seen.
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
