//! A stack behind a TUN device, with the kernel at its other end.

use super::one_per_version;
use crate::args::TunnelArgs;
use crate::failure::{Exit, Failure};
use ackline::runtime::Error as SetupError;
use ackline::runtime::device::tun::{self as device, TunConfig};
use ackline::runtime::netlink::{InterfaceAddress, Netlink};
use ackline::runtime::stack::Shards;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr};

/// The stack's address if the command line names none: from the block for benchmarks (RFC 2544,
/// appendix C.2.2), which no one else routes.
const DEFAULT_LOCAL: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const DEFAULT_PREFIX_V4: u8 = 24;
const DEFAULT_PREFIX_V6: u8 = 64;

/// A TUN interface and its two ends.
#[derive(Debug)]
pub(crate) struct Tun {
    name: String,
    /// The stack's addresses, and for each the kernel's end.
    ends: Vec<(IpNet, IpAddr)>,
    mtu: Option<u32>,
    plain: bool,
    /// It needs several queues.
    multi_queue: bool,
}

impl Tun {
    /// `wanted`: an address that the stack should have.
    pub(super) fn plan(args: &TunnelArgs, wanted: Option<IpAddr>) -> Result<Self, Failure> {
        let mut locals = args.local.clone();
        if locals.is_empty() {
            locals.push(match wanted {
                Some(IpAddr::V6(v6)) => Ipv6Net::new_assert(v6, DEFAULT_PREFIX_V6).into(),
                Some(IpAddr::V4(v4)) => Ipv4Net::new_assert(v4, DEFAULT_PREFIX_V4).into(),
                None => Ipv4Net::new_assert(DEFAULT_LOCAL, DEFAULT_PREFIX_V4).into(),
            });
        }
        one_per_version("--local", locals.iter().map(IpNet::addr))?;
        one_per_version("--peer", args.peer.iter().copied())?;
        if let Some(alone) =
            args.peer.iter().find(|peer| !locals.iter().any(|net| net.addr().is_ipv4() == peer.is_ipv4()))
        {
            return Err(Failure::usage(format!("--peer {alone} has no --local of the same IP version")));
        }
        let ends: Result<Vec<_>, Failure> = locals
            .into_iter()
            .map(|net| {
                let given = args.peer.iter().copied().find(|peer| peer.is_ipv4() == net.addr().is_ipv4());
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
        Ok(Self {
            name: args.tun.clone(),
            ends: ends?,
            mtu: args.mtu,
            plain: args.plain,
            multi_queue: args.shards != Shards::One,
        })
    }

    /// The stack's addresses.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.ends.iter().map(|(net, _)| net.addr()).collect()
    }

    /// The addresses at which the stack reaches this machine's kernel.
    pub(super) fn kernel_ends(&self) -> Vec<IpAddr> {
        self.ends.iter().map(|(_, peer)| *peer).collect()
    }

    pub(super) fn interface(&self) -> &str {
        &self.name
    }

    /// Opens the interface, or makes it if there is none of that name.
    pub(super) fn open(&self) -> Result<device::Tun, Failure> {
        match Netlink::open()?.interface(&self.name) {
            Ok(existing) if !existing.up => Err(Failure::new(
                Exit::Device,
                format!("the interface {0} is down: ip link set {0} up", existing.name),
            )),
            Ok(existing) => device::Tun::open_existing(&self.name, !self.plain).map_err(|error| match error {
                SetupError::NotATun { .. } if existing.ethernet => Failure::new(
                    Exit::Device,
                    format!(
                        "the interface {0} is no TUN device, but an Ethernet interface: make the stack a host on its \
                         network (--dev {0} --local CIDR), or choose another name for --tun",
                        existing.name
                    ),
                ),
                other => other.into(),
            }),
            Err(SetupError::NoSuchInterface { .. }) => Ok(device::Tun::create(&self.config())?),
            Err(other) => Err(other.into()),
        }
    }

    fn config(&self) -> TunConfig {
        let mut config = TunConfig::new().name(self.name.as_str());
        if self.plain {
            config = config.plain();
        }
        if self.multi_queue {
            config = config.multi_queue();
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
    use super::super::tests::args;
    use super::*;

    fn planned(local: &[&str], peer: &[&str]) -> String {
        let options =
            |name: &str, values: &[&str]| values.iter().map(|v| format!(" {name} {v}")).collect::<String>();
        options("--local", local) + &options("--peer", peer)
    }

    fn plan(local: &[&str], peer: &[&str], listen: Option<&str>) -> Result<Vec<(IpNet, IpAddr)>, String> {
        let listen = listen.map(|text| text.parse().expect("an address"));
        let planned = Tun::plan(&args(&planned(local, peer)), listen);
        planned.map(|tun| tun.ends).map_err(|failure| failure.to_string())
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
        let complaint = |local: &[&str], peer: &[&str]| plan(local, peer, None).expect_err("refused");
        assert!(complaint(&["10.0.0.1/32"], &[]).contains("add --peer"));
        assert!(complaint(&["10.0.0.1/24"], &["10.0.0.1"]).contains("same address"));
        assert!(complaint(&["10.0.0.1/24"], &["fd00::1"]).contains("no --local"));
        assert!(complaint(&["10.0.0.1/24", "10.0.1.1/24"], &[]).contains("only one"));
    }

    #[test]
    fn a_peer_outside_the_network_makes_a_point_to_point_link() {
        let config = |local: &str, peer: &str| {
            let text = planned(&[local], &[peer]) + " --mtu 9000 --plain";
            Tun::plan(&args(&text), None).expect("fits").config()
        };
        let inside = config("10.0.0.2/24", "10.0.0.7");
        assert_eq!(inside.addresses[0].net.to_string(), "10.0.0.7/24");
        assert_eq!(inside.addresses[0].peer, None);
        assert_eq!((inside.mtu, inside.offload), (Some(9000), false));
        let outside = config("10.0.0.2/24", "192.0.2.1");
        assert_eq!(outside.addresses[0].net.to_string(), "192.0.2.1/32");
        assert_eq!(outside.addresses[0].peer, Some([10, 0, 0, 2].into()));
    }
}
