//! Where a measurement beside the kernel takes place: namespaces that exist as long as the process,
//! and what joins them.

use ackline_runtime::device::af_packet::{AfPacket, AfPacketConfig};
use ackline_runtime::device::tun::{Tun, TunConfig};
use ackline_runtime::mac::MacAddress;
use ackline_runtime::netlink::{Interface, InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use std::net::Ipv4Addr;

#[path = "rights.rs"]
mod rights;

pub(crate) use rights::{Outcome, gain_rights, namespace};

/// The kernel at the other end.
pub(crate) const PEER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
/// The measured stack.
pub(crate) const HERE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
pub(crate) const PREFIX: u8 = 24;
/// Where the other end listens.
pub(crate) const PORT: u16 = 7000;

const PEER_VETH: &str = "peer0";
/// The measured end's interface of a pair of veth.
pub(crate) const HERE_VETH: &str = "here0";

/// A TUN device in the peer's namespace.
pub(crate) fn tun(peer: &Namespace, change: impl FnOnce(TunConfig) -> TunConfig + Send) -> Outcome<Tun> {
    let config = change(TunConfig::new().address(InterfaceAddress::network(network(PEER))));
    Ok(peer.run(|| Tun::create(&config))??)
}

/// A packet socket, in a namespace that lives at least as long as it. Both ends are told where the
/// other is, so that nobody asks while something is measured.
pub(crate) fn packet(
    peer: &Namespace,
    change: impl FnOnce(AfPacketConfig) -> AfPacketConfig,
) -> Outcome<(AfPacket, Namespace)> {
    let (there, far) = without_stack(peer)?;
    let config = AfPacketConfig::new(HERE_VETH).address(network(HERE)).neighbour(PEER.into(), far);
    let config = change(config);
    Ok((there.run(|| AfPacket::open(&config))??, there))
}

/// A namespace with the kernel's TCP, joined to the peer's.
pub(crate) fn with_kernel(peer: &Namespace) -> Outcome<Namespace> {
    let there = namespace()?;
    veth(peer, &there)?;
    there.run(|| set_up(HERE_VETH, Some(HERE)))??;
    Ok(there)
}

/// A namespace behind a pair of veth whose end in it, [`HERE_VETH`], has no address: somebody
/// else's stack is to have it. And the peer's Ethernet address. The peer has been told the other
/// one.
pub(crate) fn without_stack(peer: &Namespace) -> Outcome<(Namespace, MacAddress)> {
    let there = namespace()?;
    let far = veth(peer, &there)?;
    let near = there.run(|| set_up(HERE_VETH, None))??;
    let mac = |interface: &Interface| interface.mac.ok_or("a veth without an Ethernet address");
    peer.run(|| -> Outcome<()> {
        Ok(Netlink::open()?.add_neighbour(far.index, HERE.into(), mac(&near)?)?)
    })??;
    Ok((there, mac(&far)?))
}

/// Joins two namespaces; the peer's end, which is returned, gets its address.
fn veth(peer: &Namespace, here: &Namespace) -> Outcome<Interface> {
    peer.run(|| Netlink::open()?.add_veth(PEER_VETH, HERE_VETH, here))??;
    peer.run(|| set_up(PEER_VETH, Some(PEER)))?
}

pub(crate) fn set_up(name: &str, address: Option<Ipv4Addr>) -> Outcome<Interface> {
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
