//! The network of one measurement: namespaces that exist as long as the process, and what joins them.

use crate::Outcome;
use crate::case::Link;
use ackline_runtime::Error;
use ackline_runtime::device::Device;
use ackline_runtime::device::af_packet::{AfPacket, AfPacketConfig};
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::netlink::{Interface, InterfaceAddress, Netlink};
use ackline_runtime::netns::{Namespace, enter_user_net_namespace};
use std::net::Ipv4Addr;

/// The kernel at the other end.
pub(crate) const PEER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// The measured stack.
pub(crate) const HERE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
pub(crate) const PREFIX: u8 = 24;
/// Where the other end listens.
pub(crate) const PORT: u16 = 7000;

const PEER_VETH: &str = "peer0";
const HERE_VETH: &str = "here0";

pub(crate) struct Net {
    /// Where the kernel's end is.
    pub(crate) peer: Namespace,
    pub(crate) here: Here,
}

/// Where the measured end is.
pub(crate) enum Here {
    /// The kernel's TCP in another namespace.
    Kernel(Namespace),
    Device(Box<dyn Device>),
}

impl Net {
    pub(crate) fn new(link: Link) -> Outcome<Self> {
        let peer = namespace()?;
        let here = match link {
            Link::Tun => Here::Device(Box::new(peer.run(|| Tun::create(&tun()))??)),
            Link::TunPlain => Here::Device(Box::new(peer.run(|| Tun::create(&tun().plain()))??)),
            Link::Veth => {
                let there = namespace()?;
                veth(&peer, &there)?;
                there.run(|| set_up(HERE_VETH, Some(HERE)))??;
                Here::Kernel(there)
            }
            Link::Packet => Here::Device(Box::new(packet(&peer, |config| config)?)),
            Link::PacketPlain => Here::Device(Box::new(packet(&peer, AfPacketConfig::plain)?)),
        };
        Ok(Self { peer, here })
    }
}

/// Makes the calling thread able to make namespaces, if it may: as root it is, an ordinary user needs a user
/// namespace around them. To be called while the process has one thread.
pub(crate) fn gain_rights() -> Outcome<()> {
    match Namespace::new_for_thread() {
        Err(Error::NamespaceForbidden) => Ok(enter_user_net_namespace()?),
        other => Ok(other.map(drop)?),
    }
}

fn namespace() -> Outcome<Namespace> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(Namespace::new_for_thread);
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
    })
}

fn tun() -> TunConfig {
    TunConfig::new().address(InterfaceAddress::network(network(PEER)))
}

/// A packet socket in a namespace that lives as long as it. Both ends are told where the other is, so that nobody asks
/// while something is measured.
fn packet(peer: &Namespace, change: impl FnOnce(AfPacketConfig) -> AfPacketConfig) -> Outcome<AfPacket> {
    let there = namespace()?;
    let far = veth(peer, &there)?;
    let near = there.run(|| set_up(HERE_VETH, None))??;
    let mac = |interface: &Interface| interface.mac.ok_or("a veth without an Ethernet address");
    let config = AfPacketConfig::new(HERE_VETH).address(network(HERE)).neighbour(PEER.into(), mac(&far)?);
    peer.run(|| -> Outcome<()> {
        Ok(Netlink::open()?.add_neighbour(far.index, HERE.into(), mac(&near)?)?)
    })??;
    let config = change(config);
    Ok(there.run(|| AfPacket::open(&config))??)
}

/// Joins two namespaces; the peer's end, which is returned, gets its address.
fn veth(peer: &Namespace, here: &Namespace) -> Outcome<Interface> {
    peer.run(|| Netlink::open()?.add_veth(PEER_VETH, HERE_VETH, here))??;
    peer.run(|| set_up(PEER_VETH, Some(PEER)))?
}

fn set_up(name: &str, address: Option<Ipv4Addr>) -> Outcome<Interface> {
    let mut netlink = Netlink::open()?;
    let index = netlink.interface(name)?.index;
    netlink.make_quiet(index)?;
    if let Some(address) = address {
        netlink.add_address(index, InterfaceAddress::network(network(address)))?;
    }
    netlink.set_up(index)?;
    Ok(netlink.interface(name)?)
}

fn network(address: Ipv4Addr) -> ipnet::IpNet {
    ipnet::Ipv4Net::new_assert(address, PREFIX).into()
}
