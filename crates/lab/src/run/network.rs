//! From a point of a scenario to a simulation.

use crate::scenario::setup::{FlowSetup, HostSetup, NodeSetup, Setup, What};
use crate::scenario::{End, Ends, Opening};
use crate::stage::{OutsideEnd, OutsideHost, Role, Stage, StageError, Validity, Virtual, World};
use ackline_netsim::app::Timed;
use ackline_netsim::record::ConnRecord;
use ackline_netsim::stis::Stis;
use ackline_netsim::{Change, Checksums, LinkId, NodeId, Service, Sim, SimRng};
use ackline_tcp_core::config::Target;
use ackline_tcp_core::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A simulation that has not begun, in which everything of the scenario is in it.
pub(crate) struct Network {
    pub(crate) sim: Sim,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) links: Vec<LinkId>,
    pub(crate) flows: Vec<FlowPlace>,
    /// For each node, its place among the hosts outside the simulation, if it is one.
    pub(crate) outside: Vec<Option<usize>>,
    stage: Box<dyn Stage>,
}

/// The hosts outside, and the ends of flows on them.
type Outside = (Vec<OutsideHost>, Vec<OutsideEnd>);

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
pub(crate) fn address(place: usize) -> IpAddr {
    let [_, high, middle, low] = (place as u32 + 1).to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, high, middle, low))
}

impl Network {
    /// On the simulator's own stage.
    pub(crate) fn virtual_only(setup: &Setup, seed: u64) -> Self {
        Self::build_where(setup, seed, |_, _| false).0
    }

    /// Hosts of the worlds that `stage` has outside are ports; they start with
    /// [`begin`](Self::begin).
    pub(crate) fn build(setup: &Setup, seed: u64, stage: Box<dyn Stage>) -> (Self, Outside) {
        let (net, outside) = Self::build_where(setup, seed, |_, world| stage.is_outside(world));
        (Self { stage, ..net }, outside)
    }

    /// Hosts of which `is_outside` is true, by their place among all nodes and their world, are
    /// ports.
    pub(crate) fn build_where(
        setup: &Setup,
        seed: u64,
        is_outside: impl Fn(usize, World) -> bool,
    ) -> (Self, Outside) {
        let mut sim = Sim::new(seed);
        let (mut outside, mut outside_hosts) = (vec![], vec![]);
        let nodes: Vec<NodeId> = setup
            .nodes
            .iter()
            .enumerate()
            .map(|(place, node)| {
                let is_outside = node.host.as_ref().is_some_and(|host| is_outside(place, host.world));
                outside.push(is_outside.then_some(outside_hosts.len()));
                if let Some(stis) = &node.stis {
                    return sim.add_middlebox(Stis::new(stis.clone()));
                }
                let Some(host) = &node.host else { return sim.add_router() };
                if is_outside {
                    let port = sim.add_port([address(place)]);
                    outside_hosts.push(outside_host(node, host, port, address(place)));
                    return port;
                }
                let mut config = host.config.clone();
                config.addresses = vec![address(place)];
                sim.add_host(config, (host.scheduler)(), host.egress)
            })
            .collect();
        // Others compute them, and verify them.
        sim.set_checksums(if outside_hosts.is_empty() { setup.checksums } else { Checksums::Computed });
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
        let (mut flows, mut outside_ends) = (vec![], vec![]);
        for (place, flow) in setup.flows.iter().enumerate() {
            let port = FIRST_PORT + place as u16;
            let jitter = Duration::from_nanos(starts.below(flow.jitter.as_nanos().saturating_add(1)));
            let start = Instant::ZERO + flow.start + jitter;
            let (from, to) = (nodes[flow.from], nodes[flow.to]);
            let (acceptor, opener) = ((to, number(flow.to)), (from, number(flow.from)));
            let mut away = |host, app, role| {
                outside_ends.push(outside_end(flow, host, app, role, seed));
                End::Outside(outside_ends.len() - 1)
            };
            let remote = SocketAddr::new(address(flow.to), port);
            let ends = Ends {
                acceptor: match outside[flow.to] {
                    Some(host) => away(host, acceptor.1, Role::Accept { port }),
                    None => End::Inside(flow.kind.add_acceptor(&mut sim, to, port, flow.accept.clone())),
                },
                opener: match outside[flow.from] {
                    Some(host) => away(host, opener.1, Role::Open { to: remote, start }),
                    None => {
                        let (target, conn) = (Target::new(remote), flow.conn.clone());
                        End::Inside(flow.kind.add_opener(&mut sim, Opening { on: from, target, start, conn }))
                    }
                },
            };
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
        let stage = Box::new(Virtual);
        (Self { sim, nodes, links, flows, outside, stage }, (outside_hosts, outside_ends))
    }

    /// Time begins.
    pub(crate) fn begin(&mut self, (hosts, ends): Outside, interval: Duration) -> Result<(), StageError> {
        self.stage.begin(&mut self.sim, hosts, ends, interval)
    }

    /// Lets time pass.
    pub(crate) fn run_until(&mut self, until: Instant) -> Result<(), StageError> {
        self.stage.run_until(&mut self.sim, until)
    }

    /// What the hosts outside leave behind.
    pub(crate) fn finish(&mut self) -> (Vec<ConnRecord>, Option<Validity>) {
        self.stage.finish()
    }

    /// What an application reports about itself.
    pub(crate) fn metrics(&self, end: End) -> BTreeMap<String, f64> {
        match end {
            End::Inside(app) => {
                let mut metrics = BTreeMap::new();
                if let Some(app) = self.sim.any_app(app) {
                    app.metrics(&mut |name, value| {
                        metrics.insert(name.to_owned(), value);
                    });
                }
                metrics
            }
            End::Outside(end) => self.stage.report(end).metrics,
        }
    }

    /// Times that an application has measured.
    pub(crate) fn times(&self, end: End) -> Vec<Timed> {
        match end {
            End::Inside(app) => {
                let mut times = vec![];
                if let Some(app) = self.sim.any_app(app) {
                    app.samples(&mut |_, samples: &[Timed]| times.extend_from_slice(samples));
                }
                times
            }
            End::Outside(end) => self.stage.report(end).times,
        }
    }
}

fn outside_host(node: &NodeSetup, host: &HostSetup, port: NodeId, address: IpAddr) -> OutsideHost {
    let mut config = host.config.clone();
    config.addresses = vec![address];
    OutsideHost {
        name: node.name.clone(),
        world: host.world,
        port,
        address,
        kernel: host.kernel.clone(),
        config,
        scheduler: host.scheduler.clone(),
    }
}

fn outside_end(flow: &FlowSetup, host: usize, app: u32, role: Role, seed: u64) -> OutsideEnd {
    let accepts = matches!(role, Role::Accept { .. });
    let (conn, cc_place) =
        if accepts { (&flow.accept, &flow.accept_cc) } else { (&flow.conn, &flow.conn_cc) };
    OutsideEnd {
        host,
        app,
        kind: flow.kind.clone(),
        role,
        conn: conn.clone(),
        cc_place: cc_place.clone(),
        sends: accepts == flow.kind.pulls(),
        seed,
    }
}
