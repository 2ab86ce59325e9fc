//! A stack that shares the address of an interface with the kernel, on some TCP ports.

use super::{PortsFor, one_per_version};
use crate::args::values::Destination;
use crate::args::{RawFirewall, TunnelArgs};
use crate::failure::{Exit, Failure};
use crate::network::interfaces::{self, Interface};
use ackline::runtime::Error as SetupError;
use ackline::runtime::device::raw::{self as device, Firewall, RawConfig};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// Which interface, and which of its addresses and ports are the stack's.
#[derive(Debug)]
pub(crate) struct Raw {
    name: String,
    addresses: Vec<IpAddr>,
    /// None: so many that are free.
    ports: Option<RangeInclusive<u16>>,
    free: u16,
    firewall: RawFirewall,
    mtu: Option<u32>,
    plain: bool,
}

impl Raw {
    pub(super) fn plan(args: &TunnelArgs, name: &str, ports_for: PortsFor) -> Result<Self, Failure> {
        let locals: Vec<IpAddr> = args.local.iter().map(IpNet::addr).collect();
        one_per_version("--local", locals.iter().copied())?;
        let ports = ports(args, ports_for)?;
        let free = match ports_for {
            PortsFor::Connections(count) if ports.is_none() => count,
            _ => 0,
        };
        let all = interfaces::all()?;
        let interface = usable(&all, name)?;
        if let Some(mtu) = args.mtu
            && mtu > interface.mtu
        {
            return Err(Failure::usage(format!(
                "--mtu {mtu} is more than the {} bytes that {name} carries",
                interface.mtu
            )));
        }
        let known: Vec<String> = interface.addresses.iter().map(|net| net.addr().to_string()).collect();
        if let Some(strange) =
            locals.iter().find(|own| !interface.addresses.iter().any(|net| net.addr() == **own))
        {
            return Err(Failure::usage(format!(
                "--local {strange} is none of the addresses of {name}: {}; with --raw the stack shares one of them",
                known.join(", ")
            )));
        }
        let addresses = if locals.is_empty() { shared(interface) } else { locals };
        let (firewall, mtu, plain) = (args.raw_firewall, args.mtu, args.plain);
        Ok(Self { name: name.to_owned(), addresses, ports, free, firewall, mtu, plain })
    }

    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.addresses.clone()
    }

    pub(super) fn interface(&self) -> &str {
        &self.name
    }

    /// In a few words.
    pub(super) fn title(&self) -> String {
        format!("raw {}", self.name)
    }

    /// Those of `targets` that the interface leads to.
    pub(super) fn reachable(
        &self,
        to: &Destination,
        targets: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, Failure> {
        let all = interfaces::all()?;
        let (own, others): (Vec<_>, Vec<_>) =
            targets.into_iter().partition(|target| interfaces::holder(&all, target.ip()).is_some());
        match (own.first(), others.is_empty()) {
            (Some(own), true) => Err(Failure::usage(format!(
                "{to}: {} is this machine's own address, and what leaves an interface does not come back in: reach this machine \
                 through a TUN device (without --raw)",
                own.ip()
            ))),
            _ => Ok(others),
        }
    }

    pub(super) fn open(&self) -> Result<device::Raw, Failure> {
        device::Raw::open(&self.config()).map_err(|error| match error {
            SetupError::NotRaw => {
                let program = super::program_path();
                Failure::new(
                    Exit::Device,
                    format!(
                        "no permission for --raw: a raw socket needs CAP_NET_RAW, and the firewall's table CAP_NET_ADMIN; run as root, \
                         or give them to the program once: setcap cap_net_raw,cap_net_admin+ep {program}"
                    ),
                )
            }
            SetupError::NoFirewall { why, command, ports } => Failure::new(
                Exit::Device,
                format!(
                    "--raw cannot make the firewall's table that keeps the kernel from resetting the stack's connections: {why}; or \
                     install the rule as root: {command} and add --raw-firewall none --ports {ports}"
                ),
            ),
            other => other.into(),
        })
    }

    fn config(&self) -> RawConfig {
        let mut config = RawConfig::new(&*self.name).free_ports(self.free);
        config.addresses.clone_from(&self.addresses);
        config.ports.extend(self.ports.clone());
        config.firewall = match self.firewall {
            RawFirewall::Auto => Firewall::Own,
            RawFirewall::None => Firewall::Installed,
        };
        (config.mtu, config.offload) = (self.mtu, !self.plain);
        config
    }
}

/// The ports that the command line names, or that the command listens on.
fn ports(args: &TunnelArgs, ports_for: PortsFor) -> Result<Option<RangeInclusive<u16>>, Failure> {
    match (&args.ports, ports_for) {
        (Some(ports), PortsFor::Listener(port)) if !ports.contains(&port) => Err(Failure::usage(format!(
            "--ports {}-{} is without {port}, the port to listen on",
            ports.start(),
            ports.end()
        ))),
        (Some(ports), _) => Ok(Some(ports.clone())),
        (None, PortsFor::Listener(0)) => {
            Err(Failure::usage("--raw needs a port to listen on, or --ports LOW-HIGH to choose one from"))
        }
        (None, PortsFor::Listener(port)) => Ok(Some(port..=port)),
        (None, PortsFor::Connections(_)) if args.raw_firewall == RawFirewall::None => Err(Failure::usage(
            "--raw-firewall none needs --ports LOW-HIGH, the ports in the rule that is installed",
        )),
        (None, PortsFor::Connections(_)) => Ok(None),
    }
}

/// The interface of this name, if it can be used and has an address.
fn usable<'a>(all: &'a [Interface], name: &str) -> Result<&'a Interface, Failure> {
    let device = |message: String| Err(Failure::new(Exit::Device, message));
    let Some(interface) = all.iter().find(|known| known.name == name) else {
        return device(format!("there is no interface {name}; there are: {}", interfaces::summary(all)));
    };
    match &interface.problem {
        Some(problem) if interface.up => device(format!("--raw {name}: {problem}")),
        Some(problem) => device(format!("the interface {name} {problem}")),
        None if interface.addresses.is_empty() => device(format!(
            "--raw {name}: the interface has no address to share: give it one (ip addr add CIDR dev {name}), or give the stack one of \
             its own (--dev {name} --local CIDR)"
        )),
        None => Ok(interface),
    }
}

/// The addresses that the stack shares unless the command line chooses: the first of each version,
/// link-local ones only if there is no other at all.
fn shared(interface: &Interface) -> Vec<IpAddr> {
    let all: Vec<IpAddr> = interface.addresses.iter().map(IpNet::addr).collect();
    let only_link_local = all.iter().copied().all(super::is_link_local);
    let of = |version: fn(&IpAddr) -> bool| {
        all.iter().copied().find(|own| version(own) && (only_link_local || !super::is_link_local(*own)))
    };
    [of(IpAddr::is_ipv4), of(IpAddr::is_ipv6)].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::args;
    use super::*;

    fn chosen(text: &str, ports_for: PortsFor) -> Result<Option<RangeInclusive<u16>>, String> {
        ports(&args(&format!("--raw nic0 {text}")), ports_for).map_err(|failure| failure.to_string())
    }

    #[test]
    fn ports_are_named_listened_on_or_found() {
        let (listening, connecting) = (PortsFor::Listener(5001), PortsFor::Connections(8));
        assert_eq!(chosen("", connecting), Ok(None));
        assert_eq!(chosen("", listening), Ok(Some(5001..=5001)));
        assert_eq!(chosen("--ports 5000-5003", listening), Ok(Some(5000..=5003)));
        assert_eq!(chosen("--ports 7000", connecting), Ok(Some(7000..=7000)));
        assert_eq!(chosen("--ports 7000-7001 --raw-firewall none", connecting), Ok(Some(7000..=7001)));
        let complaint = |text, ports_for| chosen(text, ports_for).expect_err("refused");
        assert!(complaint("--ports 6000-6001", listening).contains("is without 5001"));
        assert!(complaint("--raw-firewall none", connecting).contains("needs --ports LOW-HIGH"));
    }
}
