//! The network of a scenario around something that is not of it: two hosts make room for it, and
//! all others stay.

use crate::error::{Location, ScenarioError};
use crate::run::network::Network;
use crate::scenario::Scenario;
use crate::scenario::setup::Setup;
use crate::stage::{OutsideEnd, OutsideHost, World};
use ackline_netsim::{LinkId, NodeId, Sim};
use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::nearest;
use std::net::IpAddr;

/// A simulation that has not begun, with two hosts taken out.
#[derive(Debug)]
pub struct Around {
    /// The network, and the hosts of the world `virtual`.
    pub sim: Sim,
    /// What stands in place of the two hosts.
    pub taken: [Taken; 2],
    /// The other hosts outside the simulation.
    pub hosts: Vec<OutsideHost>,
    /// The ends of flows on them.
    pub ends: Vec<OutsideEnd>,
    /// The slowest link on the way from the first of the two to the second, and of that back; the
    /// first one of several.
    pub slowest: [(LinkId, String); 2],
    /// Time between samples of connections.
    pub interval: Duration,
    /// The flows that ran on one of the two.
    pub left_out: Vec<String>,
}

/// Where a host was.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Its name.
    pub name: String,
    /// A port, at which packets enter and leave.
    pub port: NodeId,
    /// The host's address.
    pub address: IpAddr,
    /// Its largest IP packet, bytes.
    pub mtu: u32,
}

impl Around {
    /// Takes two hosts out of a scenario, and with them the flows that begin or end there; `None`:
    /// the first and the last host.
    ///
    /// # Errors
    /// If there is no such host, both are the same, no links lead from one to the other and back,
    /// or the scenario sweeps something.
    pub fn of(scenario: &Scenario, [from, to]: [Option<&str>; 2]) -> Result<Self, ScenarioError> {
        let wrong = |given: Option<String>, message: String| ScenarioError {
            name: scenario.name().to_owned(),
            place: given.map_or(Location::Nowhere, Location::Given),
            key: String::new(),
            message,
        };
        if scenario.points() > 1 {
            let swept: Vec<&str> = scenario.swept().collect();
            let text = format!("it sweeps {}; set a value of each (--set)", swept.join(", "));
            return Err(wrong(None, text));
        }
        let mut setup = scenario.setup(0)?;
        let hosts: Vec<usize> =
            (0..setup.nodes.len()).filter(|place| setup.nodes[*place].host.is_some()).collect();
        let find = |name: Option<&str>, usual: Option<&usize>| match name {
            Some(name) => find(&setup, &hosts, name).map_err(|text| wrong(Some(name.to_owned()), text)),
            None => usual.copied().ok_or_else(|| wrong(None, "it has no host".to_owned())),
        };
        let places = [find(from, hosts.first())?, find(to, hosts.last())?];
        if places[0] == places[1] {
            let name = setup.nodes[places[0]].name.clone();
            return Err(wrong(Some(name), "one host cannot be both ends of a path".to_owned()));
        }
        let (kept, left_out): (Vec<_>, Vec<_>) = setup
            .flows
            .drain(..)
            .partition(|flow| !places.contains(&flow.from) && !places.contains(&flow.to));
        setup.flows = kept;
        let (mut net, (mut outside, mut ends)) =
            Network::build_where(&setup, scenario.seed(0), |place, world| {
                places.contains(&place) || world != World::Virtual
            });
        let taken = places.map(|place| {
            let node = &setup.nodes[place];
            let address = crate::run::network::address(place);
            let mtu = node.host.as_ref().map_or(0, |host| host.config.mtu);
            Taken { name: node.name.clone(), port: net.nodes[place], address, mtu }
        });
        // The others move up.
        let is_taken = |host: &OutsideHost| taken.iter().any(|taken| taken.port == host.port);
        for end in &mut ends {
            end.host -= outside[..end.host].iter().filter(|host| is_taken(host)).count();
        }
        outside.retain(|host| !is_taken(host));
        let mut slowest = |from: usize, to: usize| {
            let way = net.sim.way(taken[from].port, taken[to].port);
            let view = net.sim.view();
            let link = way.into_iter().min_by_key(|link| view.rate(*link)).ok_or_else(|| {
                wrong(None, format!("no links lead from {} to {}", taken[from].name, taken[to].name))
            })?;
            let place = net.links.iter().position(|other| *other == link);
            Ok::<_, ScenarioError>((
                link,
                place.map_or_else(String::new, |place| setup.links[place].name.clone()),
            ))
        };
        let slowest = [slowest(0, 1)?, slowest(1, 0)?];
        Ok(Self {
            sim: net.sim,
            taken,
            hosts: outside,
            ends,
            slowest,
            interval: setup.measure.interval,
            left_out: left_out.into_iter().map(|flow| flow.name).collect(),
        })
    }
}

/// The place of a host among all nodes.
fn find(setup: &Setup, hosts: &[usize], name: &str) -> Result<usize, String> {
    let names = || hosts.iter().map(|place| setup.nodes[*place].name.as_str());
    if let Some(place) = hosts.iter().find(|place| setup.nodes[**place].name == name) {
        return Ok(*place);
    }
    let near = nearest(name, names());
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
    Err(format!("there is no host named {name:?}{near} (hosts: {})", names().collect::<Vec<_>>().join(", ")))
}
