//! Where clients come from: a program or others in a namespace, an interface of this machine, or
//! what a descriptor or socket leads to.

use super::namespace;
use crate::args::capture::PcapLink;
use crate::args::netns::NetnsAt;
use crate::args::proxy::{ProxyArgs, ProxyDeviceArgs};
use crate::failure::{Exit, Failure};
use crate::network::interfaces;
use crate::network::names::Names;
use crate::network::program::{self, Addresses, INTERFACE, Inside, IsolatedProgram, Program};
use crate::network::tunnel;
use ackline::runtime::device::frame_socket::{FrameSocket, FrameSocketConfig, Provision};
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::netlink::{InterfaceAddress, Netlink};
use ackline::runtime::stack::Shards;
use ackline::runtime::{Device, Error as SetupError};
use ackline_proxy::Interface;
use ipnet::{IpNet, Ipv4Net};
use rustix::fs::{FileType, fstat};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// A device, and the program behind it.
pub(super) struct OpenDevice {
    pub(super) device: Box<dyn Device>,
    pub(super) program: Option<Program>,
    /// If it is an interface of this machine's.
    pub(super) interface: Option<Interface>,
    /// Packets that may wait in its queue, as far as that is known.
    pub(super) queue: Option<u32>,
}

/// Where clients are, and who the proxy is there.
///
/// **[`find`](Self::find) it while the process has one thread; then [`open`](Self::open) it.**
#[derive(Debug)]
pub(super) struct ClientSide {
    kind: Kind,
    /// As captures name it.
    pub(super) name: String,
    /// As messages do.
    pub(super) title: String,
    /// The proxy's own addresses.
    pub(super) own: Vec<IpAddr>,
    /// The only guest's, if there is one.
    pub(super) guests: Vec<IpAddr>,
}

#[derive(Debug)]
enum Kind {
    /// A program in a namespace of its own.
    Program(Addresses),
    /// An interface of this machine.
    Interface(Addresses),
    Namespace(NetnsAt, Addresses),
    /// A TUN interface's descriptor.
    Tun(OwnedFd),
    /// An Ethernet's.
    Frames(OwnedFd),
    /// A socket with an Ethernet behind it.
    Socket(PathBuf),
}

impl ClientSide {
    /// What the command line names; `descriptor` is that of `--fd`. Gains the rights for
    /// namespaces.
    pub(super) fn find(args: &ProxyArgs, descriptor: Option<(i32, OwnedFd)>) -> Result<Self, Failure> {
        let ProxyDeviceArgs { tun, netns, socket, local, .. } = &args.device;
        let place = |kind, name: &str, title, own: &[IpAddr]| {
            let guests = match &kind {
                Kind::Program(addresses) | Kind::Namespace(_, addresses) => addresses.guest().to_vec(),
                Kind::Interface(_) | Kind::Tun(_) | Kind::Frames(_) | Kind::Socket(_) => vec![],
            };
            Ok(Self { kind, name: name.to_owned(), title, own: own.to_vec(), guests })
        };
        if let Some((number, fd)) = descriptor {
            let name = format!("descriptor {number}");
            let stat =
                fstat(&fd).map_err(|errno| Failure::system("look at the descriptor", &errno.into()))?;
            let is_socket = FileType::from_raw_mode(stat.st_mode).is_socket();
            if is_socket {
                let own = router(&format!("--fd {number}"), local)?;
                let title = format!("the Ethernet behind {name}");
                return place(Kind::Frames(fd), &name, title, &own);
            }
            if !local.is_empty() {
                return Err(Failure::usage(format!(
                    "--local: descriptor {number} is no socket; on a TUN interface the proxy's own address is given"
                )));
            }
            let own = apart_from(&nets()?)?.base();
            return place(Kind::Tun(fd), &name, format!("the interface of {name}"), &own);
        }
        if let Some(path) = socket {
            let name = path.display().to_string();
            let own = router(&format!("--socket {name}"), local)?;
            let title = format!("the Ethernet behind {name}");
            return place(Kind::Socket(path.clone()), &name, title, &own);
        }
        if !local.is_empty() {
            return Err(Failure::usage("--local: this is the address on a socket: --socket, --fd"));
        }
        if let Some(at) = netns {
            namespace::prepare(at)?;
            let mut taken = nets()?;
            taken.extend(namespace::run(at, nets)?);
            let addresses = apart_from(&taken)?;
            let title = format!("the interface {INTERFACE} of the network namespace {at}");
            return place(Kind::Namespace(at.clone(), addresses), INTERFACE, title, &addresses.base());
        }
        let addresses = apart_from(&nets()?)?;
        let (kind, name) = match tun {
            Some(name) => (Kind::Interface(addresses), name.as_str()),
            None => {
                program::prepare()?;
                (Kind::Program(addresses), INTERFACE)
            }
        };
        place(kind, name, format!("the interface {name}"), &addresses.base())
    }

    /// What packets begin with there.
    pub(super) const fn link(&self) -> PcapLink {
        match self.kind {
            Kind::Frames(_) | Kind::Socket(_) => PcapLink::Ethernet,
            Kind::Program(_) | Kind::Interface(_) | Kind::Namespace(..) | Kind::Tun(_) => PcapLink::Raw,
        }
    }

    /// One host has all addresses there.
    pub(super) const fn is_one_host(&self) -> bool {
        match self.kind {
            Kind::Program(_) | Kind::Namespace(..) | Kind::Frames(_) | Kind::Socket(_) => true,
            Kind::Interface(_) | Kind::Tun(_) => false,
        }
    }

    /// Opens the device, and starts the program if there is one.
    pub(super) fn open(self, args: &ProxyArgs, names: &Names) -> Result<OpenDevice, Failure> {
        let Self { kind, name, .. } = self;
        let device = &args.device;
        let inside = |addresses, resolv_conf| Inside {
            addresses,
            base: addresses.base,
            ipv6: true,
            routes: &device.route,
            resolv_conf,
            offload: !device.plain,
            mtu: device.mtu,
            capabilities: args.keep_capabilities,
        };
        let queue = Some(TunConfig::default().queue_length);
        let opened: Box<dyn Device> = match kind {
            Kind::Program(addresses) => {
                let resolv_conf = names.resolv_conf(addresses);
                let IsolatedProgram { program, tun, .. } =
                    program::start(&args.command, inside(addresses, &resolv_conf))?;
                return Ok(OpenDevice {
                    device: Box::new(tun),
                    program: Some(program),
                    interface: None,
                    queue,
                });
            }
            Kind::Interface(addresses) => {
                let device = Box::new(interface(args, &name, addresses)?);
                // An interface that was there has a length of its own.
                let found = Netlink::open()?.interface(&name)?;
                let queue = Some(found.queue_length);
                let interface = Some(Interface { index: found.index, name });
                return Ok(OpenDevice { device, program: None, interface, queue });
            }
            Kind::Namespace(at, addresses) => {
                let inside = inside(addresses, "");
                let device = Box::new(namespace::run(&at, || namespace::make(&at, inside))?);
                return Ok(OpenDevice { device, program: None, interface: None, queue });
            }
            Kind::Tun(fd) => Box::new(Tun::from_fd(fd, device.mtu)?),
            Kind::Frames(fd) => Box::new(FrameSocket::new(fd, name, &ethernet(args))?),
            Kind::Socket(path) => Box::new(FrameSocket::connect(path, &ethernet(args))?),
        };
        Ok(OpenDevice { device: opened, program: None, interface: None, queue: None })
    }
}

/// The addresses of the thread's namespace, with their networks.
fn nets() -> Result<Vec<IpNet>, Failure> {
    Ok(interfaces::all()?.into_iter().flat_map(|interface| interface.addresses).collect())
}

fn apart_from(taken: &[IpNet]) -> Result<Addresses, Failure> {
    Addresses::apart_from(taken).ok_or_else(|| {
        Failure::usage("all of 100.64.0.0/10 is in use, of which the proxy needs four addresses")
    })
}

/// The addresses of `--local` as a router's.
fn router(option: &str, local: &[IpNet]) -> Result<Vec<IpAddr>, Failure> {
    if local.is_empty() {
        return Err(Failure::usage(format!(
            "{option} is an Ethernet and needs --local CIDR, the proxy's address there, which its guests have as their router, \
             such as 10.0.2.2/24"
        )));
    }
    let own: Vec<IpAddr> = local.iter().map(IpNet::addr).collect();
    tunnel::one_per_version("--local", own.iter().copied())?;
    Ok(own)
}

fn ethernet(args: &ProxyArgs) -> FrameSocketConfig {
    let mut config = FrameSocketConfig::default().mtu(args.device.mtu);
    config.addresses.clone_from(&args.device.local);
    let mut provision = Provision::default();
    provision.dhcp = !args.device.no_dhcp;
    provision.router_advertisements = !args.device.no_ra;
    provision.hosts.clone_from(&args.device.dhcp_host);
    provision.domain = args.device.search.first().cloned();
    provision.search.clone_from(&args.device.search);
    config.provision(provision)
}

/// An interface of this machine, which is made if there is none of that name.
fn interface(args: &ProxyArgs, name: &str, addresses: Addresses) -> Result<Tun, Failure> {
    match Netlink::open()?.interface(name) {
        Ok(existing) if !existing.up => {
            Err(Failure::new(Exit::Device, format!("the interface {name} is down: ip link set {name} up")))
        }
        Ok(_) if !args.device.route.is_empty() => Err(Failure::usage(format!(
            "--route: the interface {name} is there already, with routes of its own: ip route add ... dev {name}"
        ))),
        Ok(_) => Ok(Tun::open_existing(name, !args.device.plain)?),
        Err(SetupError::NoSuchInterface { .. }) => Ok(Tun::create(&config(args, name, addresses))?),
        Err(other) => Err(other.into()),
    }
}

/// A new interface: the machine's end has an address, and the proxy's own is behind it.
fn config(args: &ProxyArgs, name: &str, addresses: Addresses) -> TunConfig {
    let host = |address| IpNet::V4(Ipv4Net::new_assert(address, 32));
    let mut config = TunConfig::new().name(name).mtu(args.device.mtu);
    config = config.address(InterfaceAddress::network(host(addresses.program))).route(host(addresses.base));
    for &network in &args.device.route {
        config = config.route(network);
    }
    if args.device.shards != Shards::One {
        config = config.multi_queue();
    }
    if args.device.plain { config.plain() } else { config }
}
