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

use super::batch::{Gathered, MOST};
use super::ethernet::Wire as _;
use super::ethernet::frame::HEADER_LEN;
use super::ethernet::neighbours::{Outbound, Resolver};
use super::ethernet::resolution::Resolution;
use super::interface::{MAX_SKIPPED, vnet};
use super::{Device, DeviceCaps, DeviceStats, RxBatch, RxPacket, TxChecksum, unsendable};
use crate::error::{Error, Result};
use crate::netlink::{Interface, Netlink};
use crate::random;
use ackline_tcp_core::steering::Steering;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use socket::{PacketSocket, Slot};
use std::io;
use std::net::Ipv6Addr;
use std::num::NonZeroU16;
use std::task::{Context, Poll};

/// [`HEADER_LEN`] as the virtio header counts.
const LINK: u16 = HEADER_LEN as u16;

/// A host's place on an Ethernet.
#[derive(Debug)]
pub struct AfPacket {
    /// What it was opened with, for further queues.
    config: AfPacketConfig,
    socket: PacketSocket,
    interface: Interface,
    /// With the MTU when the device was opened.
    caps: DeviceCaps,
    /// The largest MTU that the configuration permits.
    most: u32,
    resolution: Resolution,
    /// Keeps the kernel reporting the multicast groups.
    _memberships: Option<OwnedFd>,
    stats: DeviceStats,
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
            socket,
            caps: capabilities(config, &interface),
            most: config.mtu.unwrap_or(u32::MAX),
            interface,
            resolution,
            _memberships: memberships,
            stats: DeviceStats::default(),
        })
    }

    /// Opens another queue of the same interface, for a [shard](crate::stack::Builder::shards) of
    /// its own. The calling thread must be in the interface's namespace. All queues are one host:
    /// they have the same addresses and neighbours.
    ///
    /// # Errors
    /// If the interface has gone, or the kernel refuses.
    pub fn open_queue(&mut self) -> Result<Self> {
        let groups = self.resolution.groups();
        let socket = self.socket.open_beside(&self.config, &self.interface, &groups)?;
        Ok(Self {
            config: self.config.clone(),
            socket,
            caps: self.caps,
            most: self.most,
            interface: self.interface.clone(),
            resolution: self.resolution.beside(),
            _memberships: None,
            stats: DeviceStats::default(),
        })
    }

    /// The interface as it was when the device was opened.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The next packet for the stack: in a slot up to this end, and what its virtio header says;
    /// or, if `None`, the resolution's error.
    fn next(&mut self) -> io::Result<Option<(Slot, usize, vnet::RxMeta)>> {
        for _ in 0..MAX_SKIPPED {
            let Some((slot, end)) = self.resolution.next_packet(&mut self.socket, &mut self.stats)? else {
                return Ok(None);
            };
            let packet = self.socket.part(slot, HEADER_LEN, end);
            if let Some(received) = vnet::parse_behind(LINK, self.socket.virtio(slot), packet) {
                self.stats.received(packet.len());
                return Ok(Some((slot, end, received)));
            }
            self.stats.rx_malformed += 1;
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// The header of the link in front of that packet.
    fn link(&self, next: Option<(Slot, usize, vnet::RxMeta)>) -> &[u8] {
        next.map_or(&[][..], |(slot, ..)| self.socket.part(slot, 0, HEADER_LEN))
    }

    fn packet(&self, next: Option<(Slot, usize, vnet::RxMeta)>) -> RxPacket<'_> {
        let Some((slot, end, vnet::RxMeta { segment_size, checksum })) = next else {
            return RxPacket::new(self.resolution.error());
        };
        let head = self.socket.part(slot, HEADER_LEN, end);
        RxPacket::new(head).with_segment_size(segment_size).with_checksum(checksum)
    }

    fn send(
        &mut self,
        header: &[u8],
        payload: [&[u8]; 2],
        segment_size: Option<NonZeroU16>,
        checksum: TxChecksum,
    ) -> io::Result<()> {
        if self.socket.is_down() {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        let length = header.len() + payload[0].len() + payload[1].len();
        self.caps().admit(length, header.len(), segment_size, checksum)?;
        let virtio = vnet::build_behind(LINK, header, segment_size, checksum).map_err(unsendable)?;
        let packet = Outbound { header, payload, segment_size, checksum };
        match self.resolution.route(&mut self.socket, &packet)? {
            Some(station) => self.socket.send_packet(station, virtio, header, payload),
            None => {
                self.socket.keep_for_later(header);
                Ok(())
            }
        }
    }
}

impl Device for AfPacket {
    fn caps(&self) -> DeviceCaps {
        DeviceCaps { mtu: self.socket.mtu().min(self.most), ..self.caps }
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        let next = self.next()?;
        Ok(self.packet(next))
    }

    fn try_recv_with_link(&mut self) -> io::Result<(&[u8], RxPacket<'_>)> {
        let next = self.next()?;
        Ok((self.link(next), self.packet(next)))
    }

    /// What one system call has received.
    fn try_recv_batch(&mut self, most: usize, take: &mut dyn FnMut(RxBatch<'_>)) -> io::Result<()> {
        let mut last = self.next()?;
        let mut batch = [last; MOST];
        let mut count = 1;
        self.socket.keep(true);
        // There is one place for an error of the resolution, so it ends the batch.
        while count < most.min(MOST) && last.is_some() && self.socket.is_pending() {
            let Ok(next) = self.next() else { break };
            batch[count] = next;
            (last, count) = (next, count + 1);
        }
        self.socket.keep(false);
        let mut gathered = Gathered::new();
        for &next in batch.iter().take(count) {
            gathered.push(self.link(next), self.packet(next));
        }
        gathered.give(take);
        Ok(())
    }

    fn sent_link(&self) -> &[u8] {
        self.socket.sent_link()
    }

    fn try_send(
        &mut self,
        header: &[u8],
        payload: [&[u8]; 2],
        segment_size: Option<NonZeroU16>,
        checksum: TxChecksum,
    ) -> io::Result<()> {
        let outcome = self.send(header, payload, segment_size, checksum);
        self.stats.sent(header.len() + payload[0].len() + payload[1].len(), &outcome);
        outcome
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.resolution.poll(cx, &mut self.socket)?.is_ready() {
            return Poll::Ready(Ok(()));
        }
        self.socket.poll_readable(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_writable(cx)
    }

    fn open_queue(&mut self) -> io::Result<Box<dyn Device>> {
        Ok(Box::new(Self::open_queue(self).map_err(io::Error::other)?))
    }

    fn steer(&mut self, steering: &Steering) -> io::Result<bool> {
        self.socket.steer(&steering.terms()).map_err(io::Error::other)
    }

    fn stats(&self) -> DeviceStats {
        let rx_kernel_drops = self.socket.kernel_drops();
        let neighbours = self.resolution.stats();
        DeviceStats { rx_kernel_drops, down: self.socket.is_down(), neighbours, ..self.stats }
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

fn capabilities(config: &AfPacketConfig, interface: &Interface) -> DeviceCaps {
    let mtu = config.mtu.map_or(interface.mtu, |mtu| mtu.min(interface.mtu));
    if !config.offload {
        return DeviceCaps::plain(mtu);
    }
    // The kernel cuts a frame in software that is not below the interface's limit.
    let most = interface.gso_max_size.saturating_sub(LINK.into()).saturating_sub(1);
    DeviceCaps { max_super_packet: most.min(65_535), ..DeviceCaps::offload(mtu) }
}
