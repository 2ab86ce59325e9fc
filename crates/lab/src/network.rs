//! From a point of a scenario to a simulation.

use crate::scenario::setup::{Setup, What};
use crate::scenario::{Ends, Wiring};
use ackline_netsim::stis::Stis;
use ackline_netsim::{Change, LinkId, NodeId, Service, Sim, SimRng};
use ackline_tcp_core::config::Target;
use ackline_tcp_core::{Duration, Instant};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A simulation that has not begun, in which everything of the scenario is in it.
pub(crate) struct Network {
    pub(crate) sim: Sim,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) links: Vec<LinkId>,
    pub(crate) flows: Vec<FlowPlace>,
}

/// Where a flow is.
pub(crate) struct FlowPlace {
    pub(crate) ends: Ends,
    /// Node and number of the application that sends the data.
    pub(crate) sender: (NodeId, u32),
    /// Of the one that receives it.
    pub(crate) receiver: (NodeId, u32),
    pub(crate) start: Instant,
    /// Port of the one who accepts; no other flow has it.
    pub(crate) port: u16,
}

/// The first flow's port.
const FIRST_PORT: u16 = 1_024;
/// The stream of random numbers for start times, apart from those of the simulation.
const STREAM_STARTS: u64 = 9 << 32;

/// The address of the host at a place among all nodes.
fn address(place: usize) -> IpAddr {
    let [_, high, middle, low] = (place as u32 + 1).to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, high, middle, low))
}

impl Network {
    pub(crate) fn build(setup: &Setup, seed: u64) -> Self {
        let mut sim = Sim::new(seed);
        sim.set_checksums(setup.checksums);
        let nodes: Vec<NodeId> = setup
            .nodes
            .iter()
            .enumerate()
            .map(|(place, node)| {
                if let Some(stis) = &node.stis {
                    return sim.add_middlebox(Stis::new(stis.clone()));
                }
                let Some(host) = &node.host else { return sim.add_router() };
                let mut config = host.config.clone();
                config.addresses = vec![address(place)];
                sim.add_host(config, (host.scheduler)(), host.egress)
            })
            .collect();
        let links: Vec<LinkId> = setup
            .links
            .iter()
            .map(|link| sim.add_link(nodes[link.from], nodes[link.to], link.path.build()))
            .collect();
        let mut starts = SimRng::new(seed, STREAM_STARTS);
        let mut apps_on = vec![0_u32; nodes.len()];
        let mut number = |place: usize| {
            apps_on[place] += 1;
            apps_on[place] - 1
        };
        let mut flows = vec![];
        for (place, flow) in setup.flows.iter().enumerate() {
            let port = FIRST_PORT + place as u16;
            let jitter = Duration::from_nanos(starts.below(flow.jitter.as_nanos().saturating_add(1)));
            let start = Instant::ZERO + flow.start + jitter;
            let (from, to) = (nodes[flow.from], nodes[flow.to]);
            let ends = flow.kind.add(
                &mut sim,
                Wiring {
                    from,
                    to,
                    target: Target::new(SocketAddr::new(address(flow.to), port)),
                    start,
                    conn: flow.conn.clone(),
                    accept: flow.accept.clone(),
                },
            );
            let (acceptor, opener) = ((to, number(flow.to)), (from, number(flow.from)));
            let (sender, receiver) = if flow.kind.pulls() { (acceptor, opener) } else { (opener, acceptor) };
            flows.push(FlowPlace { ends, sender, receiver, start, port });
        }
        for change in &setup.changes {
            for place in &change.links {
                let link = links[*place];
                let what = match change.what {
                    What::Rate(rate) => Change::Service(link, Service::Rate(rate)),
                    What::Delay(delay) => Change::Delay(link, delay),
                    What::Stall => Change::Stall(link),
                    What::Resume => Change::Resume(link),
                    What::Down => Change::Down(link),
                    What::Up => Change::Up(link),
                };
                sim.add_change(Instant::ZERO + change.at, what);
            }
        }
        Self { sim, nodes, links, flows }
    }
}
