//! The network of one measurement.

use crate::case::Device;
use crate::rights::{self, Outcome};
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::netlink::{InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use ipnet::Ipv4Net;
use rustix::fd::OwnedFd;
use std::fs;
use std::net::Ipv4Addr;

/// The servers.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
/// Of a client's network.
const PREFIX: u8 = 16;
/// The clients are several hosts, as behind a router.
const HOSTS: u8 = 8;
/// Connections that wait to be accepted.
pub(crate) const BACKLOG: u32 = 16_384;
/// Congestion control of all sockets that are the kernel's, the terminator's too. One that paces by
/// timers (BBR) would be all that is measured; of the others, this is the one that every kernel
/// lets a namespace have by default.
const KERNEL_CC: &str = "reno";

/// Ports of the terminator's own connections. To one destination the kernel looks for a free one
/// among every other port first: by default among 14,116, one after the other, and those of closed
/// connections stay taken for a minute. Once they are used up that search would be all that is
/// measured.
const PORTS: &str = "10000 65535";

/// The address of a client.
pub(crate) const fn client(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 80, 0, 1 + (number % HOSTS as usize) as u8)
}

pub(crate) struct Net {
    /// Of the clients, with the TUN device as the only way out.
    pub(crate) clients: Namespace,
    /// Of the servers, on its loopback interface, and of the terminator's sockets.
    pub(crate) servers: Namespace,
    /// The terminator's side of the device.
    pub(crate) device: OwnedFd,
}

impl Net {
    pub(crate) fn new(device: Device) -> Outcome<Self> {
        let (clients, servers) = (rights::namespace()?, rights::namespace()?);
        servers.run(|| -> Outcome<()> {
            set("net/core/somaxconn", &BACKLOG.to_string())?;
            set("net/ipv4/tcp_congestion_control", KERNEL_CC)?;
            set("net/ipv4/ip_local_port_range", PORTS)?;
            let mut netlink = Netlink::open()?;
            let loopback = netlink.interface("lo")?.index;
            let address = Ipv4Net::new_assert(SERVER, 32).into();
            Ok(netlink.add_address(loopback, InterfaceAddress::network(address))?)
        })??;
        let device = clients.run(|| -> Outcome<OwnedFd> {
            set("net/ipv4/tcp_congestion_control", KERNEL_CC)?;
            let mut config = match device {
                Device::Offload => TunConfig::new(),
                Device::Plain => TunConfig::new().plain(),
            };
            for number in 0..usize::from(HOSTS) {
                let address = Ipv4Net::new_assert(client(number), PREFIX).into();
                config = config.address(InterfaceAddress::network(address));
            }
            Ok(Tun::create(&config.route(Ipv4Net::default().into()))?.try_clone_fd()?)
        })??;
        Ok(Self { clients, servers, device })
    }
}

/// Sets what the calling thread's namespace has of its own below `/proc/sys`.
fn set(name: &str, value: &str) -> Outcome<()> {
    let path = format!("/proc/sys/{name}");
    Ok(fs::write(&path, value).map_err(|error| format!("{path}: {error}"))?)
}
