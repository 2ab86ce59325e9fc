//! The stack of a command that meets the world: a host of its own behind a device.
//!
//! `plan` checks what the command line says, `open` makes or opens the device, `start` starts the stack on it.

use crate::args::{PacingKind, TunnelArgs};
use crate::failure::{Exit, Failure};
use crate::policies::Chosen;
use ackline::core::ConnConfig;
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::netlink::{InterfaceAddress, Netlink};
use ackline::runtime::stack::Builder;
use ackline::runtime::{Device, Error as SetupError, Pacing, Stack};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The stack's address where the command line names none: from the block for benchmarks (RFC 2544, appendix
/// C.2.2), which no one else routes.
const DEFAULT_LOCAL: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const DEFAULT_PREFIX_V4: u8 = 24;
const DEFAULT_PREFIX_V6: u8 = 64;

/// A device and its two ends, checked as far as that can be done without touching the system.
#[derive(Debug)]
pub(crate) struct Tunnel {
    name: String,
    /// The stack's addresses, and for each the kernel's end.
    ends: Vec<(IpNet, IpAddr)>,
    mtu: Option<u32>,
    plain: bool,
    /// How long the driver asks the device again and again instead of sleeping.
    busy_poll: Duration,
    /// How the driver waits for departures.
    pacing: Pacing,
}

impl From<PacingKind> for Pacing {
    fn from(kind: PacingKind) -> Self {
        match kind {
            PacingKind::Timer => Self::Timer,
            PacingKind::Spin => Self::spin(),
        }
    }
}

impl TunnelArgs {
    /// Completes what the command line leaves open. `wanted`: an address that the stack must have, behind the name
    /// of the option that says so.
    pub(crate) fn plan(&self, wanted: Option<(&str, IpAddr)>) -> Result<Tunnel, Failure> {
        let mut locals = self.local.clone();
        if locals.is_empty() {
            locals.push(match wanted.map(|(_, address)| address) {
                Some(IpAddr::V6(v6)) => Ipv6Net::new_assert(v6, DEFAULT_PREFIX_V6).into(),
                Some(IpAddr::V4(v4)) => Ipv4Net::new_assert(v4, DEFAULT_PREFIX_V4).into(),
                None => Ipv4Net::new_assert(DEFAULT_LOCAL, DEFAULT_PREFIX_V4).into(),
            });
        }
        if let Some((option, address)) = wanted
            && !locals.iter().any(|net| net.addr() == address)
        {
            let known: Vec<String> = locals.iter().map(|net| net.addr().to_string()).collect();
            return Err(Failure::usage(format!(
                "{option} {address} is not an address of the stack, which has {} (--local)",
                known.join(" and ")
            )));
        }
        one_per_version("--local", locals.iter().map(IpNet::addr))?;
        one_per_version("--peer", self.peer.iter().copied())?;
        if let Some(alone) =
            self.peer.iter().find(|peer| !locals.iter().any(|net| net.addr().is_ipv4() == peer.is_ipv4()))
        {
            return Err(Failure::usage(format!("--peer {alone} has no --local of the same IP version")));
        }
        let ends: Result<Vec<_>, Failure> = locals
            .into_iter()
            .map(|net| {
                let given = self.peer.iter().copied().find(|peer| peer.is_ipv4() == net.addr().is_ipv4());
                let peer = given.or_else(|| first_other_host(&net)).ok_or_else(|| {
                    Failure::usage(format!(
                        "--local {net} leaves no address for the kernel's end: add --peer IP"
                    ))
                })?;
                if peer == net.addr() {
                    return Err(Failure::usage(format!("--local and --peer are the same address, {peer}")));
                }
                Ok((net, peer))
            })
            .collect();
        let busy_poll = self.busy_poll.unwrap_or_default();
        Ok(Tunnel {
            name: self.tun.clone(),
            ends: ends?,
            mtu: self.mtu,
            plain: self.plain,
            busy_poll,
            pacing: self.pacing.into(),
        })
    }
}

impl Tunnel {
    /// The stack's addresses.
    pub(crate) fn addresses(&self) -> Vec<IpAddr> {
        self.ends.iter().map(|(net, _)| net.addr()).collect()
    }

    /// The addresses at which the stack reaches this machine's kernel.
    pub(crate) fn kernel_ends(&self) -> Vec<IpAddr> {
        self.ends.iter().map(|(_, peer)| *peer).collect()
    }

    /// The device in a few words, such as `TUN ack0`.
    pub(crate) fn name(&self) -> String {
        format!("TUN {}", self.name)
    }

    /// Opens the device, or makes it where there is none of that name.
    pub(crate) fn open(&self) -> Result<Box<dyn Device>, Failure> {
        Ok(Box::new(self.open_tun()?))
    }

    /// Starts a stack with the tunnel's addresses on `device`, inside a tokio runtime. `tune` changes the settings of
    /// its connections.
    pub(crate) fn start(
        &self,
        device: Box<dyn Device>,
        policies: &Chosen,
        tune: impl FnOnce(&mut ConnConfig),
    ) -> Result<Stack, Failure> {
        spawn(
            configured(device, &self.addresses(), policies, tune)
                .busy_poll(self.busy_poll)
                .pacing(self.pacing),
        )
    }

    fn open_tun(&self) -> Result<Tun, Failure> {
        match Netlink::open()?.interface(&self.name) {
            Ok(existing) if !existing.up => Err(Failure::new(
                Exit::Device,
                format!("the interface {0} is down: ip link set {0} up", existing.name),
            )),
            Ok(_) => Ok(Tun::open_existing(&self.name, !self.plain)?),
            Err(SetupError::NoSuchInterface { .. }) => Ok(Tun::create(&self.config())?),
            Err(other) => Err(other.into()),
        }
    }

    fn config(&self) -> TunConfig {
        let mut config = TunConfig::new().name(self.name.as_str());
        if self.plain {
            config = config.plain();
        }
        if let Some(mtu) = self.mtu {
            config = config.mtu(mtu);
        }
        for &(net, peer) in &self.ends {
            let address = if net.contains(&peer) {
                InterfaceAddress { net: with_address(&net, peer), peer: None }
            } else {
                InterfaceAddress::point_to_point(peer, net.addr())
            };
            config = config.address(address);
        }
        config
    }
}

/// Starts a stack on `device`, inside a tokio runtime. `tune` changes the settings of its connections.
pub(crate) fn start(
    device: impl Device + 'static,
    addresses: &[IpAddr],
    policies: &Chosen,
    tune: impl FnOnce(&mut ConnConfig),
) -> Result<Stack, Failure> {
    spawn(configured(device, addresses, policies, tune))
}

fn configured(
    device: impl Device + 'static,
    addresses: &[IpAddr],
    policies: &Chosen,
    tune: impl FnOnce(&mut ConnConfig),
) -> Builder {
    let mut connections = ConnConfig::default();
    policies.set(&mut connections);
    tune(&mut connections);
    let mut builder = Stack::builder(device).connections(connections).scheduler((policies.scheduler)());
    for &address in addresses {
        builder = builder.address(address);
    }
    builder
}

fn spawn(builder: Builder) -> Result<Stack, Failure> {
    builder.spawn().map_err(|error| Failure::system("start the TCP stack", &error))
}

/// The tokio runtime of a command: one thread, so that what it costs can be told.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system("start the runtime", &error))
}

fn one_per_version(option: &str, addresses: impl Iterator<Item = IpAddr>) -> Result<(), Failure> {
    let (v4, v6): (Vec<_>, Vec<_>) = addresses.partition(IpAddr::is_ipv4);
    for several in [v4, v6] {
        if let [first, second, ..] = several[..] {
            return Err(Failure::usage(format!("{option} {first} and {second}: only one per IP version")));
        }
    }
    Ok(())
}

fn first_other_host(net: &IpNet) -> Option<IpAddr> {
    // An IPv6 network's first address is every router's (RFC 4291, section 2.6.1).
    let routers = net.addr().is_ipv6() && net.prefix_len() < 127;
    net.hosts().find(|host| *host != net.addr() && !(routers && *host == net.network()))
}

/// `address` with the prefix length of `net`.
fn with_address(net: &IpNet, address: IpAddr) -> IpNet {
    // The prefix length comes from a network of the same version.
    IpNet::new(address, net.prefix_len()).unwrap_or_else(|_| IpNet::from(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(local: &[&str], peer: &[&str], listen: Option<&str>) -> Result<Vec<(IpNet, IpAddr)>, String> {
        let args = TunnelArgs {
            tun: "ack0".to_owned(),
            local: local.iter().map(|text| text.parse().expect("a network")).collect(),
            peer: peer.iter().map(|text| text.parse().expect("an address")).collect(),
            mtu: None,
            plain: false,
            busy_poll: None,
            pacing: PacingKind::Timer,
        };
        let listen = listen.map(|text| text.parse().expect("an address"));
        args.plan(listen.map(|address| ("--listen", address)))
            .map(|tunnel| tunnel.ends)
            .map_err(|failure| failure.to_string())
    }

    fn ends(local: &str, peer: &str) -> (IpNet, IpAddr) {
        (local.parse().expect("a network"), peer.parse().expect("an address"))
    }

    #[test]
    fn defaults_follow_what_is_given() {
        assert_eq!(plan(&[], &[], None), Ok(vec![ends("198.18.0.2/24", "198.18.0.1")]));
        assert_eq!(plan(&[], &[], Some("10.1.2.1")), Ok(vec![ends("10.1.2.1/24", "10.1.2.2")]));
        assert_eq!(plan(&[], &[], Some("fd00::2")), Ok(vec![ends("fd00::2/64", "fd00::1")]));
        let both = plan(&["10.0.0.5/8", "fd00::5/48"], &["fd00::9"], None);
        assert_eq!(both, Ok(vec![ends("10.0.0.5/8", "10.0.0.1"), ends("fd00::5/48", "fd00::9")]));
        assert_eq!(plan(&["10.0.0.1/32"], &["192.0.2.1"], None), Ok(vec![ends("10.0.0.1/32", "192.0.2.1")]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let complaint =
            |local: &[&str], peer: &[&str], listen| plan(local, peer, listen).expect_err("refused");
        assert!(complaint(&["10.0.0.1/32"], &[], None).contains("add --peer"));
        assert!(complaint(&["10.0.0.1/24"], &["10.0.0.1"], None).contains("same address"));
        assert!(complaint(&["10.0.0.1/24"], &["fd00::1"], None).contains("no --local"));
        assert!(complaint(&["10.0.0.1/24", "10.0.1.1/24"], &[], None).contains("only one"));
        assert!(complaint(&["10.0.0.1/24"], &[], Some("10.0.0.2")).contains("not an address of the stack"));
    }

    #[test]
    fn a_peer_outside_the_network_makes_a_point_to_point_link() {
        let args = |local: &str, peer: &str| TunnelArgs {
            tun: "ack0".to_owned(),
            local: vec![local.parse().expect("a network")],
            peer: vec![peer.parse().expect("an address")],
            mtu: Some(9000),
            plain: true,
            busy_poll: None,
            pacing: PacingKind::Timer,
        };
        let inside = args("10.0.0.2/24", "10.0.0.7").plan(None).expect("fits").config();
        assert_eq!(inside.addresses[0].net.to_string(), "10.0.0.7/24");
        assert_eq!(inside.addresses[0].peer, None);
        assert_eq!((inside.mtu, inside.offload), (Some(9000), false));
        let outside = args("10.0.0.2/24", "192.0.2.1").plan(None).expect("fits").config();
        assert_eq!(outside.addresses[0].net.to_string(), "192.0.2.1/32");
        assert_eq!(outside.addresses[0].peer, Some([10, 0, 0, 2].into()));
    }
}
