//! What the program is behind: a path of the options, or the network of a scenario.

use super::path;
use crate::args::emulate::EmulateArgs;
use crate::commands::sim::read;
use crate::failure::Failure;
use crate::network::interfaces;
use crate::network::program::Addresses;
use ackline::Registry;
use ackline::core::Duration;
use ackline_emulate::Path;
use ackline_lab::stage::{OutsideEnd, OutsideHost};
use ackline_lab::{Around, RunError};
use std::net::{IpAddr, Ipv4Addr};

/// A network between the program and everything else, which has not begun.
pub(super) struct Network {
    pub(super) path: Path,
    pub(super) addresses: Addresses,
    /// Largest IP packet of the program's interface, and of what is behind the network.
    pub(super) mtu: [u32; 2],
    /// Other hosts outside the simulation, their ends of flows, and how often these are sampled.
    pub(super) hosts: Vec<OutsideHost>,
    pub(super) ends: Vec<OutsideEnd>,
    pub(super) interval: Duration,
    /// What the summary says of it.
    pub(super) conditions: Vec<String>,
}

impl Network {
    pub(super) fn of(args: &EmulateArgs, registry: &Registry) -> Result<Self, Failure> {
        match &args.scenario.scenario {
            Some(file) => {
                let scenario = read(file, &args.scenario.set, args.seed, registry)?;
                let ends = [&args.scenario.at, &args.scenario.exit].map(Option::as_deref);
                let around = Around::of(&scenario, ends).map_err(RunError::from)?;
                Self::around(around, scenario.name())
            }
            None => Self::path(args),
        }
    }

    fn path(args: &EmulateArgs) -> Result<Self, Failure> {
        let [up, down] = path::links(&args.path)?;
        let taken: Vec<_> =
            interfaces::all()?.into_iter().flat_map(|interface| interface.addresses).collect();
        let addresses = Addresses::apart_from(&taken).ok_or_else(|| {
            Failure::usage("this machine has all of 100.64.0.0/10, of which the program needs four addresses")
        })?;
        Ok(Self {
            path: Path::new([addresses.program.into()], up, down, args.seed.unwrap_or(1)),
            addresses,
            mtu: [args.mtu; 2],
            hosts: vec![],
            ends: vec![],
            interval: Duration::ZERO,
            conditions: vec![],
        })
    }

    /// The program has the place of one host, everything else that of another one.
    fn around(around: Around, scenario: &str) -> Result<Self, Failure> {
        let Around { mut sim, taken: [at, exit], hosts, ends, slowest, interval, left_out } = around;
        let [(up, up_name), (down, down_name)] = slowest;
        sim.set_default_node(exit.port);
        let ipv4 = |address: IpAddr| match address {
            IpAddr::V4(address) => Ok(address),
            IpAddr::V6(_) => Err(Failure::usage(format!("{scenario}: {address} is not of IPv4"))),
        };
        let program: Ipv4Addr = ipv4(at.address)?;
        let mut conditions = vec![format!(
            "{scenario} from {} to {}, with the numbers of its links {up_name} and {down_name}",
            at.name, exit.name
        )];
        if !left_out.is_empty() {
            let flows = if left_out.len() > 3 {
                format!("{} and {} more", left_out[..3].join(", "), left_out.len() - 3)
            } else {
                left_out.join(", ")
            };
            conditions.push(format!("flows of these two are left out: {flows}"));
        }
        Ok(Self {
            path: Path { sim, inside: at.port, outside: exit.port, up, down },
            addresses: Addresses { program, base: ipv4(exit.address)? },
            mtu: [at.mtu, exit.mtu],
            hosts,
            ends,
            interval,
            conditions,
        })
    }
}
