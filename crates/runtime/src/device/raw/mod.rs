//! A host's own address, shared with its kernel: for machines that have only one, and no TUN.
//!
//! The stack has some of the host's TCP ports, for its listeners and its connections. What belongs
//! to these ports is the stack's; all other traffic of the host goes on as before.
//!
//! ```text
//!   interface ── packet socket ──> stack        TCP for the own ports, and the ICMP errors that quote it
//!       │  └──── nftables ──X                   the same, kept from the kernel, which would reset it
//!       └─────── raw socket <───── stack        with the stack's IP headers; routes and neighbours are the kernel's
//! ```
//!
//! - **The kernel's own ICMP errors** (no such neighbour, a packet that a rule has rejected) come
//!   over loopback, where a second packet socket reads them.
//! - **Ports** are reserved: no program of the host can bind one of them, and the kernel gives none
//!   to a connection.
//! - **The firewall's table** belongs to the process, so it vanishes with it, also after a crash
//!   ([`Firewall`]).
//! - **Packets** that were merged (GRO) are received whole, and checksums that were never computed
//!   (on a veth) are known as such. A raw socket sends single packets, so super-packets are cut
//!   here.
//! - **No segment leaves from another port** or address than the own ones: whatever the stack
//!   believes, it cannot reset a connection of the host's.
//!
//! The host's firewall does not see what the stack receives: a packet socket comes before it. What
//! the stack sends passes its rules for output.
//!
//! The packet socket is that of the Ethernet device (`interface::frames`): a raw socket for TCP
//! would get each segment of the host, and only after the firewall. Sending by raw sockets leaves
//! routes, neighbours, and the firewall's output to the kernel. The table is at the input hook: at
//! the output hook it would have to tell the kernel's resets from the stack's, and at an earlier
//! one conntrack would not see the answers to the stack.

mod config;
mod filter;
mod firewall;
mod ports;
mod send;
#[cfg(test)]
mod tests;

pub use config::{Firewall, RawConfig};

use super::batch::{Gathered, MOST};
use super::interface::frames::{self, Frames, Slot};
use super::interface::link::{Link, LinkMonitor};
use super::interface::{MAX_SKIPPED, removed, vnet};
use super::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxBatch, RxPacket, unsendable};
use crate::error::{Error, Result};
use crate::netlink::{Interface, Netlink};
use crate::platform::random;
use crate::sys::filter::Instruction;
use crate::sys::packet as sys;
use firewall::{Rules, Table};
use ports::Reserved;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use send::Sender;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::task::{Context, Poll, ready};

/// Bytes of an Ethernet header.
const LINK: usize = libc::ETH_HLEN as usize;
const TCP: u8 = 6;
/// Bytes of memory for the kernel's own ICMP errors that have not been read yet.
const ERRORS: usize = 64 << 10;

/// Some TCP ports of the host's addresses on one interface.
#[derive(Debug)]
pub struct Raw {
    /// What comes in through the interface, and the kernel's own ICMP errors, which come over
    /// loopback.
    inlets: [Frames; 2],
    /// One for each own address.
    senders: Vec<Sender>,
    reserved: Reserved,
    _table: Option<Table>,
    link: LinkMonitor,
    interface: Interface,
    addresses: Vec<IpAddr>,
    /// With the MTU when the device was opened.
    caps: DeviceCaps,
    /// The largest MTU that the configuration permits.
    most: u32,
    stats: DeviceStats,
}

impl Raw {
    /// Opens the interface in the calling thread's network namespace: reserves the ports, makes the
    /// firewall's table, and receives from then on. Changes neither the interface nor its
    /// addresses.
    ///
    /// ```no_run
    /// use ackline_runtime::Stack;
    /// use ackline_runtime::device::raw::{Raw, RawConfig};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Raw::open(&RawConfig::new("eth0").ports(5001..=5001).free_ports(16))?;
    /// let own = device.addresses().to_vec();
    /// let stack = own.into_iter().fold(Stack::builder(device), |builder, own| builder.address(own)).spawn()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchInterface`], [`Error::NotEthernet`], [`Error::InterfaceDown`],
    /// [`Error::NoAddress`]; [`Error::PortInUse`], [`Error::NoFreePorts`]; [`Error::NotRaw`]
    /// without `CAP_NET_RAW`; [`Error::NoFirewall`] if the device is to make a table and cannot;
    /// [`Error::BadConfig`] if a setting is invalid.
    pub fn open(config: &RawConfig) -> Result<Self> {
        config.check()?;
        let mut netlink = Netlink::open()?;
        let interface = netlink.interface(&config.interface)?;
        let name = || interface.name.clone();
        if !interface.ethernet {
            return Err(Error::NotEthernet { name: name() });
        }
        if !interface.up {
            return Err(Error::InterfaceDown { name: name() });
        }
        let index = interface.index;
        let addresses = own_addresses(config, &interface, &mut netlink)?;
        let senders = addresses.iter().map(|own| Sender::open(*own, &interface, config.send_buffer));
        let senders = senders.collect::<Result<Vec<_>>>()?;
        let seed = random::seed().map_err(|source| Error::System { action: "get random numbers", source })?;
        let [a, b, c, d, e, f, ..] = seed;
        let place = u16::from_ne_bytes([a, b]);
        let reserved = Reserved::new(&addresses, index, &config.ports, config.free_ports, place)?;
        let (all, errors) = filter::programs(&addresses, reserved.ranges());
        let (all, errors) = (inlet(all, config.receive_buffer)?, inlet(errors, ERRORS)?);
        // The ports are the device's own by now, so no connection of the host's is cut off.
        let table = match config.firewall {
            Firewall::Installed => None,
            Firewall::Own => {
                let rules = Rules {
                    interface: index,
                    name: &interface.name,
                    addresses: &addresses,
                    ports: reserved.ranges(),
                };
                Some(Table::new(&format!("ackline-raw-{:08x}", u32::from_ne_bytes([c, d, e, f])), rules)?)
            }
        };
        // Last, because frames arrive from here on.
        let loopback = netlink.interface("lo")?.index;
        for (fd, index) in [(&all, index), (&errors, loopback)] {
            sys::bind(fd, index).map_err(Error::on("bind the packet socket to the interface"))?;
        }
        let mtu = config.mtu.map_or(interface.mtu, |mtu| mtu.min(interface.mtu));
        Ok(Self {
            inlets: [Frames::new(all, config.receive_batch), Frames::new(errors, 1)],
            senders,
            reserved,
            _table: table,
            link: LinkMonitor::open(&interface)?,
            caps: if config.offload { DeviceCaps::offload(mtu) } else { DeviceCaps::plain(mtu) },
            most: config.mtu.unwrap_or(u32::MAX),
            interface,
            addresses,
            stats: DeviceStats::default(),
        })
    }

    /// The interface as it was when the device was opened.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The host's addresses that the stack shares: at most one per IP version. Give them to the
    /// [stack](crate::stack::Builder::address).
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// All ports that are the stack's: those of the configuration, then the free ones that were
    /// found. A listener gets nothing at another port.
    #[must_use]
    pub fn ports(&self) -> &[RangeInclusive<u16>] {
        self.reserved.ranges()
    }

    /// The next packet, through which inlet it came, and what its virtio header says of it.
    fn next(&mut self) -> io::Result<(usize, Slot, vnet::RxMeta)> {
        // If the driver polls instead of waiting, nobody else does it.
        for sender in &mut self.senders {
            let _: io::Result<()> = sender.flush();
        }
        if !self.inlets[0].is_pending() && self.link.link() == Link::Gone {
            return Err(removed(&self.interface.name));
        }
        let mut skipped = 0;
        for (inlet, frames) in self.inlets.iter_mut().enumerate() {
            while skipped < MAX_SKIPPED {
                let slot = match frames.receive() {
                    Ok(slot) => slot,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // Reported once when the interface goes down; `link` has the state.
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::NETDOWN) => break,
                    Err(error) => return Err(error),
                };
                if let Some(slot) = slot {
                    let packet = frames.frame(slot).get(LINK..).unwrap_or(&[]);
                    if let Some(meta) = vnet::parse_behind(LINK as u16, frames.virtio(slot), packet) {
                        self.stats.received(packet.len());
                        return Ok((inlet, slot, meta));
                    }
                }
                self.stats.rx_malformed += 1;
                skipped += 1;
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// See [`Frames::keep`].
    fn keep(&mut self, keep: bool) {
        self.inlets.iter_mut().for_each(|frames| frames.keep(keep));
    }

    fn packet(&self, (inlet, slot, meta): (usize, Slot, vnet::RxMeta)) -> RxPacket<'_> {
        let vnet::RxMeta { segment_size, checksum } = meta;
        let head = self.inlets[inlet].frame(slot).get(LINK..).unwrap_or(&[]);
        RxPacket::new(head).with_segment_size(segment_size).with_checksum(checksum)
    }

    fn send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        if self.link.link() == Link::Down {
            return Err(io::ErrorKind::NetworkDown.into());
        }
        self.caps().admit(packet)?;
        let ends = Ends::of(packet.header).ok_or_else(|| unsendable("only packets of TCP are sent"))?;
        if !self.reserved.ranges().iter().any(|range| range.contains(&ends.port)) {
            return Err(unsendable("the source port is none of the device's"));
        }
        let sender = self.senders.iter_mut().find(|sender| sender.own() == ends.from);
        let sender = sender.ok_or_else(|| unsendable("the source address is none of the device's"))?;
        sender.send(ends.to, packet).map_err(|error| self.refused(error))
    }

    /// What the kernel's refusal means.
    fn refused(&mut self, error: io::Error) -> io::Error {
        match Errno::from_io_error(&error) {
            // The MTU may have become smaller.
            Some(Errno::MSGSIZE) => {
                self.link.refresh();
                error
            }
            // Without its interface a route or an address is gone as well.
            Some(
                Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::NODEV
                | Errno::NXIO
                | Errno::INVAL
                | Errno::ADDRNOTAVAIL,
            ) => match self.link.refresh() {
                Link::Up => error,
                Link::Down => io::ErrorKind::NetworkDown.into(),
                Link::Gone => removed(&self.interface.name),
            },
            _ => error,
        }
    }
}

impl Device for Raw {
    fn caps(&self) -> DeviceCaps {
        DeviceCaps { mtu: self.link.mtu().min(self.most), ..self.caps }
    }

    fn local_ports(&self) -> Option<RangeInclusive<u16>> {
        self.reserved.ephemeral()
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        let next = self.next()?;
        Ok(self.packet(next))
    }

    /// What one system call has received.
    fn try_recv_batch(&mut self, most: usize, take: &mut dyn FnMut(RxBatch<'_>)) -> io::Result<()> {
        let mut batch = [self.next()?; MOST];
        let mut count = 1;
        self.keep(true);
        while count < most.min(MOST) && self.inlets.iter().any(Frames::is_pending) {
            let Ok(next) = self.next() else { break };
            batch[count] = next;
            count += 1;
        }
        self.keep(false);
        let mut gathered = Gathered::new();
        for &next in batch.iter().take(count) {
            gathered.push(&[], self.packet(next));
        }
        gathered.give(take);
        Ok(())
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let outcome = self.send(packet);
        self.stats.sent(packet.length(), &outcome);
        outcome
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Also of an interface that always has packets: its MTU may have changed.
        let (before, link) = (self.link.link(), self.link.poll(cx));
        if self.inlets.iter().any(Frames::is_pending) {
            return Poll::Ready(Ok(()));
        }
        for sender in &mut self.senders {
            // The task is woken when there is room for the rest.
            let _: Poll<()> = sender.poll_flushed(cx);
        }
        match (before, link) {
            (_, Link::Gone) => Poll::Ready(Err(removed(&self.interface.name))),
            // Wake the waiting task, to let it know that the interface is up.
            (Link::Down, Link::Up) => Poll::Ready(Ok(())),
            _ => {
                // Both wake the task.
                let [all, errors] = self.inlets.each_mut().map(|frames| frames.waiting().poll_readable(cx));
                if all.is_ready() { all } else { errors }
            }
        }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.link.poll(cx) {
            Link::Up => {}
            Link::Down => return Poll::Pending,
            Link::Gone => return Poll::Ready(Err(removed(&self.interface.name))),
        }
        for sender in &mut self.senders {
            ready!(sender.poll_writable(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn stats(&self) -> DeviceStats {
        let rx_kernel_drops = self.inlets.iter().map(Frames::kernel_drops).sum();
        DeviceStats { rx_kernel_drops, down: self.link.link() == Link::Down, ..self.stats }
    }
}

/// A packet socket for what a program accepts, until it is bound nothing.
fn inlet(mut program: Vec<Instruction>, receive_buffer: usize) -> Result<OwnedFd> {
    frames::open(&mut program, receive_buffer)
}

/// The interface's addresses that the stack is to have.
fn own_addresses(config: &RawConfig, interface: &Interface, netlink: &mut Netlink) -> Result<Vec<IpAddr>> {
    let on_it = |(index, net): (u32, ipnet::IpNet)| (index == interface.index).then(|| net.addr());
    let known: Vec<IpAddr> = netlink.addresses()?.into_iter().filter_map(on_it).collect();
    if known.is_empty() {
        return Err(Error::NoAddress { name: interface.name.clone() });
    }
    if let Some(strange) = config.addresses.iter().find(|own| !known.contains(own)) {
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        let why = format!("{strange} is none of those of {}: {}", interface.name, known.join(", "));
        return Err(Error::BadConfig { what: "own addresses", why });
    }
    if !config.addresses.is_empty() {
        return Ok(config.addresses.clone());
    }
    let is_link_local =
        |address: &IpAddr| matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    // From a link-local address nothing beyond the link is reached, so it is none to choose if
    // there is another.
    let only_link_local = known.iter().all(is_link_local);
    let of = |version: fn(&IpAddr) -> bool| {
        known.iter().find(|own| version(own) && (only_link_local || !is_link_local(own))).copied()
    };
    Ok([of(IpAddr::is_ipv4), of(IpAddr::is_ipv6)].into_iter().flatten().collect())
}

/// Where a segment comes from and goes to.
struct Ends {
    from: IpAddr,
    to: IpAddr,
    /// The source port.
    port: u16,
}

impl Ends {
    /// Of a TCP packet as the stack builds it: without extension headers.
    fn of(header: &[u8]) -> Option<Self> {
        let (from, to, protocol, tcp) = match header.first()? >> 4 {
            4 => {
                let ip: &[u8; 20] = header.first_chunk()?;
                let [.., a, b, c, d, e, f, g, h] = *ip;
                let (from, to) = (Ipv4Addr::new(a, b, c, d), Ipv4Addr::new(e, f, g, h));
                (from.into(), to.into(), ip[9], usize::from(ip[0] & 0x0f) * 4)
            }
            6 => {
                let ip: &[u8; 40] = header.first_chunk()?;
                let address = |at: usize| -> Option<Ipv6Addr> {
                    ip.get(at..)?.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets))
                };
                (address(8)?.into(), address(24)?.into(), ip[6], 40)
            }
            _ => return None,
        };
        let port = u16::from_be_bytes(*header.get(tcp..)?.first_chunk()?);
        (protocol == TCP).then_some(Self { from, to, port })
    }
}
