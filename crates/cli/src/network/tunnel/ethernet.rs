//! A stack that is a host of its own on an Ethernet, through a packet socket or a socket that
//! carries frames.

use super::{is_link_local, one_per_version, program_path, same_version};
use crate::args::TunnelArgs;
use crate::args::values::Destination;
use crate::failure::{Exit, Failure};
use crate::network::interfaces;
use ackline::runtime::device::af_packet::{AfPacket, AfPacketConfig};
use ackline::runtime::device::frame_socket::{FrameSocket, FrameSocketConfig};
use ackline::runtime::{Device, Error as SetupError, MacAddress};
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Where an Ethernet is.
#[derive(Debug)]
pub(super) enum Medium {
    /// The interface of this name.
    Interface(String),
    /// Behind the socket at this path.
    Socket(PathBuf),
}

/// Which Ethernet, and who the stack is there.
#[derive(Debug)]
pub(crate) struct Ethernet {
    place: Medium,
    /// What messages call it.
    name: String,
    locals: Vec<IpNet>,
    gateways: Vec<IpAddr>,
    mac: Option<MacAddress>,
    mtu: Option<u32>,
    plain: bool,
    qdisc_bypass: bool,
    share_address: bool,
}

impl Ethernet {
    pub(super) fn plan(args: &TunnelArgs, place: Medium) -> Result<Self, Failure> {
        let TunnelArgs { local, gateway, mac, mtu, plain, qdisc_bypass, share_address, .. } = args;
        let (option, name) = match &place {
            Medium::Interface(name) => ("--dev", name.clone()),
            Medium::Socket(path) => ("--socket", path.display().to_string()),
        };
        if local.is_empty() {
            return Err(Failure::usage(format!(
                "{option} {name} needs --local CIDR, an address for the stack that no other host of that network \
                 has, such as {} (there is no default that would be safe)",
                place.example().unwrap_or_else(|| "192.0.2.77/24".to_owned())
            )));
        }
        one_per_version("--local", local.iter().map(IpNet::addr))?;
        one_per_version("--gateway", gateway.iter().copied())?;
        for &gateway in gateway {
            match same_version(local, gateway) {
                None => {
                    return Err(Failure::usage(format!(
                        "--gateway {gateway} has no --local of the same IP version"
                    )));
                }
                Some(net) if gateway == net.addr() => {
                    return Err(Failure::usage(format!(
                        "--gateway {gateway} is the stack's own address; name the network's router"
                    )));
                }
                // A link-local address is on every link (RFC 4861, section 5.1), and a network of
                // one host leaves the router to be somewhere else.
                Some(net)
                    if !net.contains(&gateway)
                        && !is_link_local(gateway)
                        && net.prefix_len() < net.max_prefix_len() =>
                {
                    return Err(Failure::usage(format!(
                        "--gateway {gateway} is not in {}, the network of --local {net}: a gateway must be reached directly",
                        net.trunc()
                    )));
                }
                Some(_) => {}
            }
        }
        Ok(Self {
            place,
            name,
            locals: local.clone(),
            gateways: gateway.clone(),
            mac: *mac,
            mtu: *mtu,
            plain: *plain,
            qdisc_bypass: *qdisc_bypass,
            share_address: *share_address,
        })
    }

    /// The kernel may have the stack's addresses, too.
    pub(super) const fn shares_address(&self) -> bool {
        self.share_address
    }

    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.locals.iter().map(IpNet::addr).collect()
    }

    pub(super) fn interface(&self) -> &str {
        &self.name
    }

    /// In a few words.
    pub(super) fn title(&self) -> String {
        match self.place {
            Medium::Interface(_) => format!("Ethernet {}", self.name),
            Medium::Socket(_) => format!("Ethernet behind {}", self.name),
        }
    }

    /// Those of `targets` to which there is a way.
    pub(super) fn reachable(
        &self,
        to: &Destination,
        targets: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, Failure> {
        let has_way = |target: &SocketAddr| {
            self.locals.iter().any(|net| net.contains(&target.ip()))
                || self.gateways.iter().any(|gateway| gateway.is_ipv4() == target.is_ipv4())
        };
        let Some(&first) = targets.first() else { return Ok(targets) };
        if let Medium::Interface(interface) = &self.place
            && let Some((holder, _)) = interfaces::holder(&interfaces::all()?, first.ip())
            && holder.name == *interface
        {
            return Err(Failure::usage(format!(
                "{} is this machine's own address on {}, and what leaves an interface does not come back in: reach this \
                 machine through a TUN device (without --dev)",
                first.ip(),
                holder.name
            )));
        }
        let reachable: Vec<SocketAddr> = targets.into_iter().filter(has_way).collect();
        if reachable.is_empty() {
            let nets: Vec<String> = self.locals.iter().map(|net| net.trunc().to_string()).collect();
            return Err(Failure::usage(format!(
                "no way to {to}: {} is outside of {}; name that network's router with --gateway IP",
                first.ip(),
                nets.join(" and ")
            )));
        }
        Ok(reachable)
    }

    pub(super) fn open(&self) -> Result<Box<dyn Device>, Failure> {
        match &self.place {
            Medium::Interface(interface) => Ok(Box::new(self.open_interface(interface)?)),
            Medium::Socket(path) => Ok(Box::new(FrameSocket::connect(path, &self.socket_config())?)),
        }
    }

    fn open_interface(&self, interface: &str) -> Result<AfPacket, Failure> {
        self.look_around(interface)?;
        AfPacket::open(&self.config(interface)).map_err(|error| match error {
            SetupError::NotRaw => {
                let program = program_path();
                Failure::new(
                    Exit::Device,
                    format!(
                        "no permission for --dev: a packet socket needs CAP_NET_RAW; run as root, or give it to the \
                         program once: setcap cap_net_raw+ep {program}"
                    ),
                )
            }
            other => other.into(),
        })
    }

    fn socket_config(&self) -> FrameSocketConfig {
        let mut config = FrameSocketConfig::default();
        config.addresses.clone_from(&self.locals);
        config.gateways.clone_from(&self.gateways);
        config.mac = self.mac;
        config.mtu = self.mtu.unwrap_or(config.mtu);
        config
    }

    fn config(&self, interface: &str) -> AfPacketConfig {
        let mut config = AfPacketConfig::new(interface);
        config.addresses.clone_from(&self.locals);
        config.gateways.clone_from(&self.gateways);
        config.mac = self.mac;
        config.mtu = self.mtu;
        config.offload = !self.plain;
        config.qdisc_bypass = self.qdisc_bypass;
        config
    }

    /// What can be known before the device is opened: that the interface can be used, and that the
    /// kernel does not have the stack's addresses.
    fn look_around(&self, name: &str) -> Result<(), Failure> {
        let device = |message: String| Err(Failure::new(Exit::Device, message));
        let all = interfaces::all()?;
        let Some(interface) = all.iter().find(|known| known.name == name) else {
            return device(format!("there is no interface {name}; there are: {}", interfaces::summary(&all)));
        };
        if let Some(problem) = &interface.problem {
            return device(if interface.up {
                format!("--dev {name}: {problem}; {}", interfaces::choices(&all))
            } else {
                format!("the interface {name} {problem}")
            });
        }
        if let Some(mtu) = self.mtu
            && mtu > interface.mtu
        {
            return Err(Failure::usage(format!(
                "--mtu {mtu} is more than the {} bytes that {name} carries",
                interface.mtu
            )));
        }
        if self.share_address {
            return Ok(());
        }
        for address in self.addresses() {
            if let Some((holder, net)) = interfaces::holder(&all, address) {
                return device(format!(
                    "{address} is this machine's own address (on {}): its kernel would answer the stack's peers with \
                     resets. Choose a free address for --local, or remove that one (ip addr del {net} dev {0}), or see \
                     --share-address",
                    holder.name
                ));
            }
        }
        Ok(())
    }
}

impl Medium {
    /// An address for the error that asks for one: in the network of the interface, and not the
    /// kernel's.
    fn example(&self) -> Option<String> {
        let Self::Interface(interface) = self else { return None };
        let all = interfaces::all().ok()?;
        let known = all.iter().find(|known| known.name == *interface)?;
        let net = known.addresses.iter().find(|net| net.addr().is_ipv4() && net.prefix_len() < 31)?;
        // From the end of the network, where addresses are rarely given out, as far as a guess can
        // know.
        let last = match net.broadcast() {
            IpAddr::V4(v4) => IpAddr::from((v4.to_bits() - 1).to_be_bytes()),
            v6 @ IpAddr::V6(_) => v6,
        };
        let free = if last == net.addr() { return None } else { last };
        Some(format!("{free}/{} if that one is free", net.prefix_len()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::args;
    use super::super::{Kind, PortsFor};
    use super::*;

    fn plan(text: &str) -> Result<Ethernet, String> {
        match args(text).plan(None, PortsFor::Connections(1)).map(|tunnel| tunnel.device) {
            Ok(Kind::Ethernet(ethernet)) => Ok(ethernet),
            Ok(Kind::Tun(_) | Kind::Raw(_)) => panic!("an Ethernet was given"),
            Err(failure) => {
                assert_eq!(failure.exit, Exit::Usage);
                Err(failure.to_string())
            }
        }
    }

    #[test]
    fn options_reach_the_device() {
        let ethernet = plan(
            "--dev veth0 --local 10.0.0.2/24 --local fd00::2/64 --gateway 10.0.0.1 --mac 02:00:00:00:00:07 --mtu 1400 \
             --plain --qdisc-bypass",
        )
        .expect("fits");
        let config = ethernet.config("veth0");
        assert_eq!((config.interface.as_str(), config.addresses.len()), ("veth0", 2));
        assert_eq!(config.gateways, [IpAddr::from([10, 0, 0, 1])]);
        assert_eq!(config.mac, Some(MacAddress([2, 0, 0, 0, 0, 7])));
        assert_eq!((config.mtu, config.offload, config.qdisc_bypass), (Some(1400), false, true));
        let config = plan("--dev veth0 --local 10.0.0.2/24").expect("fits").config("veth0");
        assert!(config.offload && !config.qdisc_bypass && config.mac.is_none() && config.mtu.is_none());
    }

    #[test]
    fn options_reach_the_socket() {
        let ethernet =
            plan("--socket /run/vm --local 10.0.2.77/24 --gateway 10.0.2.2 --mac 02:00:00:00:00:07")
                .expect("fits");
        let config = ethernet.socket_config();
        assert_eq!((ethernet.interface(), ethernet.title().as_str()), ("/run/vm", "Ethernet behind /run/vm"));
        assert_eq!((config.addresses.len(), config.gateways.len(), config.mtu), (1, 1, 1_500));
        assert_eq!(config.mac, Some(MacAddress([2, 0, 0, 0, 0, 7])));
        let config = plan("--socket vm --local 10.0.2.77/24 --mtu 9000").expect("fits").socket_config();
        assert_eq!((config.mtu, config.mac), (9_000, None));
        let missing = plan("--socket vm").expect_err("refused");
        assert!(missing.starts_with("--socket vm needs --local CIDR"), "{missing}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let complaint = |text: &str| plan(&format!("--dev no-such-dev0 {text}")).expect_err("refused");
        let missing = complaint("");
        assert!(missing.starts_with("--dev no-such-dev0 needs --local CIDR"), "{missing}");
        let local = "--local 10.0.0.2/24 --gateway";
        assert!(complaint(&format!("{local} 10.0.1.1")).contains("is not in 10.0.0.0/24"));
        assert!(complaint(&format!("{local} 10.0.0.2")).contains("the stack's own address"));
        assert!(complaint(&format!("{local} fd00::1")).contains("no --local of the same IP version"));
        assert!(
            complaint(&format!("{local} 10.0.0.1 --gateway 10.0.0.3")).contains("only one per IP version")
        );
        assert!(complaint("--local 10.0.0.2/24 --local 10.0.0.3/24").contains("only one per IP version"));
    }

    #[test]
    fn far_hosts_need_a_gateway() {
        let reach = |text: &str, to: &str| {
            let to: Destination = to.parse().expect("a destination");
            let targets = vec![to.to_string().parse().expect("an address")];
            let ethernet = plan(&format!("--dev veth0 --local 10.0.0.2/24 {text}")).expect("fits");
            ethernet.reachable(&to, targets).map(|found| found.len()).map_err(|error| error.to_string())
        };
        assert_eq!(reach("", "10.0.0.9:1"), Ok(1));
        assert_eq!(reach("--gateway 10.0.0.1", "192.0.2.1:1"), Ok(1));
        // What most IPv6 routers have.
        assert_eq!(reach("--local fd00::2/64 --gateway fe80::1", "[2001:db8::1]:1"), Ok(1));
        assert_eq!(
            reach("", "192.0.2.1:1").expect_err("far"),
            "no way to 192.0.2.1:1: 192.0.2.1 is outside of 10.0.0.0/24; name that network's router with --gateway IP"
        );
    }
}
