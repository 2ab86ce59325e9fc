//! The stack's end and the kernel's end of a veth pair.

use ackline_runtime::device::af_packet::{AfPacket, AfPacketConfig};
use ackline_runtime::netlink::{Interface, InterfaceAddress, Netlink};
use ackline_runtime::netns::Namespace;
use ackline_runtime::{Error, Stack};
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Interface of the stack's namespace.
pub(crate) const NEAR: &str = "near0";
/// Interface of the kernel's namespace.
pub(crate) const FAR: &str = "far0";
pub(crate) const KERNEL4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 0, 1));
pub(crate) const STACK4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 0, 2));
pub(crate) const KERNEL6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 1));
pub(crate) const STACK6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd78, 0, 0, 0, 0, 0, 0, 2));
/// Where the tests' listeners listen.
pub(crate) const PORT: u16 = 7;

/// A veth pair, whose near end lies in the calling thread's namespace.
pub(crate) struct World {
    /// The kernel's side.
    pub(crate) there: Namespace,
    pub(crate) far: Interface,
    /// The stack's end.
    pub(crate) near: Interface,
}

impl World {
    /// A pair with this MTU, up, with addresses on the kernel's side only.
    pub(crate) fn new(mtu: u32) -> Result<Self, Error> {
        Self::build(mtu, Ok)
    }

    /// Of each end a VLAN interface above it: the kernel's addresses are there, and the stack's
    /// device.
    pub(crate) fn on_vlan(id: u16) -> Result<Self, Error> {
        Self::build(1500, |below| {
            let mut netlink = Netlink::open()?;
            let name = format!("{}.{id}", below.name);
            netlink.add_vlan(&name, below.index, id)?;
            let interface = netlink.interface(&name)?;
            netlink.set_up(interface.index)?;
            netlink.interface(&name)
        })
    }

    fn build(mtu: u32, above: impl Fn(Interface) -> Result<Interface, Error> + Sync) -> Result<Self, Error> {
        let there =
            std::thread::scope(|scope| scope.spawn(Namespace::new_for_thread).join().expect("no panic"))?;
        Netlink::open()?.add_veth(NEAR, FAR, &there)?;
        let up = |name: &str| {
            let mut netlink = Netlink::open()?;
            let index = netlink.interface(name)?.index;
            netlink.set_mtu(index, mtu)?;
            netlink.set_up(index)?;
            netlink.interface(name)
        };
        let far = there.run(|| {
            let far = above(up(FAR)?)?;
            let mut netlink = Netlink::open()?;
            for network in ["10.78.0.1/24", "fd78::1/64"] {
                let network = network.parse().expect("a network");
                netlink.add_address(far.index, InterfaceAddress::network(network))?;
            }
            Ok::<_, Error>(far)
        })??;
        let near = above(up(NEAR)?)?;
        there.run(|| Netlink::open()?.await_address(KERNEL6))??;
        Ok(Self { there, far, near })
    }

    /// The stack's device.
    pub(crate) fn config(&self) -> AfPacketConfig {
        AfPacketConfig::new(&self.near.name)
            .address("10.78.0.2/24".parse().expect("a network"))
            .address("fd78::2/64".parse().expect("a network"))
    }
}

/// A stack with both addresses on the device. Within a runtime.
pub(crate) fn stack(device: AfPacket) -> Stack {
    Stack::builder(device).address(STACK4).address(STACK6).spawn().expect("a timerfd and random numbers")
}

/// Runs `work` on a tokio runtime of this thread, for at most twenty seconds.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(20), work).await.expect("still waiting after twenty seconds")
    })
}
