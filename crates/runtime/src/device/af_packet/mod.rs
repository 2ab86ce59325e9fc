//! The Ethernet device: the stack as a host of its own on an interface (a veth, a network card),
//! through a packet socket.
//!
//! Every frame is preceded by a virtio header, so super-packets of up to 64 KiB with partial
//! checksums go both ways, as between the kernel's TCP and a network card with TSO and GRO. The
//! stack's addresses are its own: the kernel does not have them and stays silent.
//!
//! Frames are exchanged in batches of `recvmmsg` instead of a ring, by measurement. The socket is
//! watched for writability only while it is full, because each outgoing frame would wake the
//! driver.

mod config;
mod fanout;
mod filter;
mod socket;
#[cfg(test)]
mod tests;

pub use super::ethernet::neighbours;
pub use config::AfPacketConfig;

use super::ethernet::device::Ethernet;
use super::ethernet::resolution::Resolution;
use super::ethernet::resolver::Resolver;
use super::{Device, DeviceCaps, forward_device};
use crate::error::{Error, Result};
use crate::netlink::{Interface, Netlink};
use crate::platform::random;
use ackline_tcp_core::steering::Steering;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use socket::{LINK, PacketSocket};
use std::io;
use std::net::Ipv6Addr;

/// A host's place on an Ethernet.
#[derive(Debug)]
pub struct AfPacket {
    /// What it was opened with, for further queues.
    config: AfPacketConfig,
    ethernet: Ethernet<PacketSocket>,
    interface: Interface,
    /// Keeps the kernel reporting the multicast groups.
    _memberships: Option<OwnedFd>,
}

impl AfPacket {
    /// Opens the interface in the calling thread's network namespace. Changes neither the interface
    /// nor its addresses.
    ///
    /// Blocks the calling thread until it is certain that no other host uses one of the addresses:
    /// 0.3 s by default, see [`ClaimConfig`](neighbours::ClaimConfig).
    ///
    /// # Errors
    /// [`Error::NoSuchInterface`], [`Error::NotEthernet`], [`Error::InterfaceDown`];
    /// [`Error::AddressInUse`]; [`Error::NotRaw`] without `CAP_NET_RAW`; [`Error::BadConfig`] if a
    /// setting is invalid.
    pub fn open(config: &AfPacketConfig) -> Result<Self> {
        config.check()?;
        let interface = Netlink::open()?.interface(&config.interface)?;
        let own = interface.mac.filter(|_| interface.ethernet);
        let name = || interface.name.clone();
        let mac = config.mac.or(own).ok_or_else(|| Error::NotEthernet { name: name() })?;
        if !interface.ethernet {
            return Err(Error::NotEthernet { name: name() });
        }
        if !interface.up {
            return Err(Error::InterfaceDown { name: name() });
        }
        let seed = random::seed().map_err(|source| Error::System { action: "get random numbers", source })?;
        let resolver = Resolver::new(config.attachment(mac), config.resolution.clone(), seed)
            .map_err(|error| Error::BadConfig { what: "addresses", why: error.to_string() })?;
        let groups = resolver.groups();
        let mut socket = PacketSocket::open(config, &interface, mac, &groups)?;
        let memberships = report(&groups, interface.index);
        let mut resolution = Resolution::new(resolver);
        resolution.claim(&mut socket, &interface.name)?;
        Ok(Self {
            config: config.clone(),
            ethernet: Ethernet::new(socket, resolution, capabilities(config, &interface)),
            interface,
            _memberships: memberships,
        })
    }

    /// Opens another queue of the same interface, for a [shard](crate::stack::Builder::shards) of
    /// its own. The calling thread must be in the interface's namespace. All queues are one host:
    /// they have the same addresses and neighbours.
    ///
    /// # Errors
    /// If the interface has gone, or the kernel refuses.
    pub fn open_queue(&mut self) -> Result<Self> {
        let groups = self.ethernet.groups();
        let socket = self.ethernet.wire.open_beside(&self.config, &self.interface, &groups)?;
        Ok(Self {
            config: self.config.clone(),
            ethernet: self.ethernet.beside(socket),
            interface: self.interface.clone(),
            _memberships: None,
        })
    }

    /// The interface as it was when the device was opened.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }
}

impl Device for AfPacket {
    forward_device!(self, self.ethernet);

    fn open_queue(&mut self) -> io::Result<Box<dyn Device>> {
        Ok(Box::new(Self::open_queue(self).map_err(io::Error::other)?))
    }

    fn steer(&mut self, steering: &Steering) -> io::Result<bool> {
        self.ethernet.wire.steer(&steering.terms()).map_err(io::Error::other)
    }
}

/// Makes the kernel report `groups` to the link's multicast routers and snooping switches by MLD
/// (RFC 9777) while the descriptor is open: RFC 4861, section 7.2.1, asks for it. Without IPv6 in
/// the kernel or on the interface there are no reports; that only matters on switches that filter
/// multicast.
fn report(groups: &[Ipv6Addr], interface: u32) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET6, SocketType::DGRAM, flags, None).ok()?;
    groups.iter().try_for_each(|group| sockopt::set_ipv6_add_membership(&socket, group, interface)).ok()?;
    (!groups.is_empty()).then_some(socket)
}

/// With the MTU that the configuration permits; the interface's applies as well.
fn capabilities(config: &AfPacketConfig, interface: &Interface) -> DeviceCaps {
    let mtu = config.mtu.unwrap_or(u32::MAX);
    if !config.offload {
        return DeviceCaps::plain(mtu);
    }
    // The kernel cuts a frame in software that is not below the interface's limit.
    let most = interface.gso_max_size.saturating_sub(LINK.into()).saturating_sub(1);
    DeviceCaps { max_super_packet: most.min(65_535), ..DeviceCaps::offload(mtu) }
}
