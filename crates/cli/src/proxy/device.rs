//! Where clients come from: a program in a namespace, or a TUN interface.

use crate::args::proxy::ProxyArgs;
use crate::failure::{Exit, Failure};
use crate::names::Names;
use crate::program::{self, Addresses, INTERFACE, Inside, Started};
use ackline::runtime::Error as SetupError;
use ackline::runtime::device::tun::{Tun, TunConfig};
use ackline::runtime::netlink::{InterfaceAddress, Netlink};
use ipnet::{IpNet, Ipv4Net};
use tokio::process::Child;

/// A device, and the program behind it.
pub(super) struct Opened {
    pub(super) tun: Tun,
    pub(super) program: Option<Child>,
}

/// The name of the interface.
pub(super) fn interface(args: &ProxyArgs) -> &str {
    args.device.tun.as_deref().unwrap_or(INTERFACE)
}

/// Opens the device, and starts the program if there is one.
pub(super) fn open(args: &ProxyArgs, addresses: Addresses, names: &Names) -> Result<Opened, Failure> {
    let Some(name) = &args.device.tun else {
        let resolv_conf = names.resolv_conf(addresses);
        let (offload, mtu) = (!args.device.plain, args.device.mtu);
        let inside = Inside { addresses, ipv6: true, resolv_conf: &resolv_conf, offload, mtu };
        let Started { child, tun, .. } = program::start(&args.command, inside)?;
        return Ok(Opened { tun, program: Some(child) });
    };
    let tun = match Netlink::open()?.interface(name) {
        Ok(existing) if !existing.up => {
            return Err(Failure::new(
                Exit::Device,
                format!("the interface {name} is down: ip link set {name} up"),
            ));
        }
        Ok(_) if !args.device.route.is_empty() => {
            return Err(Failure::usage(format!(
                "--route: the interface {name} is there already, with routes of its own: ip route add ... dev {name}"
            )));
        }
        Ok(_) => Tun::open_existing(name, !args.device.plain)?,
        Err(SetupError::NoSuchInterface { .. }) => Tun::create(&config(args, name, addresses))?,
        Err(other) => return Err(other.into()),
    };
    Ok(Opened { tun, program: None })
}

/// A new interface: the machine's end has an address, and the proxy's own is behind it.
fn config(args: &ProxyArgs, name: &str, addresses: Addresses) -> TunConfig {
    let host = |address| IpNet::V4(Ipv4Net::new_assert(address, 32));
    let mut config = TunConfig::new().name(name).mtu(args.device.mtu);
    config = config.address(InterfaceAddress::network(host(addresses.program))).route(host(addresses.base));
    for &network in &args.device.route {
        config = config.route(network);
    }
    if args.device.plain { config.plain() } else { config }
}
