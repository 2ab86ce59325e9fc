//! The packet socket: receives frames in batches, sends single frames, and handles an interface
//! that goes down or disappears.

use super::config::AfPacketConfig;
use super::{fanout, filter};
use crate::device::OutgoingPacket;
use crate::device::ethernet::Wire;
use crate::device::ethernet::frame::HEADER_LEN;
use crate::device::interface::bpf::DROP;
use crate::device::interface::frames::{self, Frames, Slot};
use crate::device::interface::link::{Link, LinkMonitor};
use crate::device::interface::room::Room;
use crate::device::interface::{RxMeta, removed, vnet};
use crate::device::unsendable;
use crate::error::{Error, Result};
use crate::mac::MacAddress;
use crate::netlink::Interface;
use crate::sys::filter::{Instruction, attach_filter};
use crate::sys::packet as sys;
use crate::timer::{self, Timer};
use ackline_tcp_core::steering::Terms;
use ackline_tcp_core::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr};
use std::task::{Context, Poll, ready};

/// [`HEADER_LEN`] as the virtio header counts.
pub(super) const LINK: u16 = HEADER_LEN as u16;

/// First and last delay before a frame that the queueing discipline or the card dropped is sent
/// again. The kernel does not report when there is room.
const FIRST_RETRY: Duration = Duration::from_micros(100);
const LAST_RETRY: Duration = Duration::from_millis(10);

/// A packet socket that is bound to one interface.
#[derive(Debug)]
pub(super) struct PacketSocket {
    frames: Frames,
    room: Room,
    /// The queue behind the socket was full: how long to wait.
    retry: Option<Duration>,
    retry_timer: Option<Timer>,
    link: LinkMonitor,
    /// A send found that the interface is gone; `link` may not have noticed yet.
    gone: bool,
    name: String,
    /// That of several queues.
    group: Option<u16>,
    mac: MacAddress,
}

impl PacketSocket {
    /// Opens it for frames to the station `mac` and to the multicast `groups`.
    pub(super) fn open(
        config: &AfPacketConfig,
        interface: &Interface,
        mac: MacAddress,
        groups: &[Ipv6Addr],
    ) -> Result<Self> {
        Self::open_with(&mut filter_of(config, mac), config, interface, mac, groups)
    }

    /// Opens a further queue of the same interface. Until they are [steered](Self::steer), this one
    /// gets all frames.
    pub(super) fn open_beside(
        &mut self,
        config: &AfPacketConfig,
        interface: &Interface,
        groups: &[Ipv6Addr],
    ) -> Result<Self> {
        let group = match self.group {
            Some(group) => group,
            None => *self.group.insert(fanout::found(self.fd()?)?),
        };
        // Only what is bound can join, and gets copies of all frames meanwhile.
        let beside = Self::open_with(&mut [DROP], config, interface, self.mac, groups)?;
        let fd = beside.fd()?;
        fanout::join(fd, group)?;
        attach_filter(fd, &mut filter_of(config, self.mac))
            .map_err(Error::on("set the packet socket's filter"))?;
        Ok(Self { group: Some(group), ..beside })
    }

    /// Lets the kernel deliver each segment to its owner's queue, if there are several.
    pub(super) fn steer(&self, terms: &Terms) -> Result<bool> {
        if self.group.is_some() {
            fanout::steer(self.fd()?, terms)?;
        }
        Ok(self.group.is_some())
    }

    fn fd(&self) -> Result<&OwnedFd> {
        self.frames.fd().get().map_err(|source| Error::System { action: "use the packet socket", source })
    }

    fn open_with(
        filter: &mut [Instruction],
        config: &AfPacketConfig,
        interface: &Interface,
        mac: MacAddress,
        groups: &[Ipv6Addr],
    ) -> Result<Self> {
        let fd = frames::open(filter, config.receive_buffer)?;
        frames::set_send_buffer(&fd, config.send_buffer)
            .map_err(Error::on("set the packet socket's buffers"))?;
        if config.qdisc_bypass {
            sys::set_option(&fd, libc::PACKET_QDISC_BYPASS, 1)
                .map_err(Error::on("bypass the queueing discipline"))?;
        }
        if config.mac.is_some() {
            sys::join(&fd, interface.index, libc::PACKET_MR_UNICAST, mac.0)
                .map_err(Error::on("make the interface take frames for the stack's Ethernet address"))?;
        }
        for group in groups {
            let group = MacAddress::multicast(IpAddr::V6(*group));
            sys::join(&fd, interface.index, libc::PACKET_MR_MULTICAST, group.0)
                .map_err(Error::on("join a multicast group of neighbour discovery"))?;
        }
        // Last, because frames arrive from here on.
        sys::bind(&fd, interface.index).map_err(Error::on("bind the packet socket to the interface"))?;

        Ok(Self {
            frames: Frames::new(fd, config.receive_batch),
            room: Room::default(),
            retry: None,
            retry_timer: None,
            link: LinkMonitor::open(interface)?,
            gone: false,
            name: interface.name.clone(),
            group: None,
            mac,
        })
    }

    fn write(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let Err(error) = self.try_write(parts) else {
            self.retry = None;
            self.room.found();
            return Ok(());
        };
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::AGAIN) => {
                self.room.missed();
                self.retry = None;
                Err(error)
            }
            Some(Errno::NOBUFS) => {
                self.retry = Some(self.retry.map_or(FIRST_RETRY, |last| LAST_RETRY.min(last + last)));
                Err(io::ErrorKind::WouldBlock.into())
            }
            Some(Errno::NETDOWN) => {
                self.room.forget();
                // The kernel reports it once too often before it sends.
                if self.link.refresh() == Link::Up { self.try_write(parts) } else { Err(error) }
            }
            Some(Errno::MSGSIZE) => {
                // The MTU is smaller than it was.
                self.link.refresh();
                Err(error)
            }
            Some(Errno::NXIO | Errno::NODEV) => {
                self.gone = true;
                Err(removed(&self.name))
            }
            _ => Err(error),
        }
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.room.attempt(self.frames.fd(), |fd| {
            rustix::net::sendmsg(fd, parts, &mut SendAncillaryBuffer::default(), SendFlags::DONTWAIT)?;
            Ok(())
        })
    }
}

/// What the stack wants of the interface's frames.
fn filter_of(config: &AfPacketConfig, mac: MacAddress) -> Vec<Instruction> {
    let own: Vec<IpAddr> = config.addresses.iter().map(ipnet::IpNet::addr).collect();
    filter::program(mac, (!config.any_address).then_some(&own[..]))
}

impl Wire for PacketSocket {
    type Slot = Slot;
    type Front = [u8; vnet::LEN];

    /// Reads a batch if no frame is left.
    fn receive(&mut self) -> io::Result<Option<Slot>> {
        if !self.frames.is_pending() && (self.gone || self.link.link() == Link::Gone) {
            return Err(removed(&self.name));
        }
        self.frames.receive().map_err(|error| match Errno::from_io_error(&error) {
            // Reported once when the interface goes down; `link` has the state.
            Some(Errno::NETDOWN) => {
                self.room.forget();
                io::ErrorKind::WouldBlock.into()
            }
            _ => error,
        })
    }

    fn frame(&self, slot: Slot) -> &[u8] {
        self.frames.frame(slot)
    }

    fn meta(&self, slot: Slot, end: usize) -> Option<RxMeta> {
        let packet = self.frames.frame(slot).get(HEADER_LEN..end).unwrap_or(&[]);
        vnet::parse_behind(LINK, self.frames.virtio(slot), packet)
    }

    fn is_pending(&self) -> bool {
        self.frames.is_pending()
    }

    fn keep(&mut self, keep: bool) {
        self.frames.keep(keep);
    }

    fn front(packet: &OutgoingPacket<'_>) -> io::Result<[u8; vnet::LEN]> {
        let &OutgoingPacket { header, segment_size, checksum, .. } = packet;
        vnet::build_behind(LINK, header, segment_size, checksum).map_err(unsendable)
    }

    fn send(
        &mut self,
        virtio: [u8; vnet::LEN],
        link: &[u8; HEADER_LEN],
        packet: &OutgoingPacket<'_>,
    ) -> io::Result<()> {
        let &OutgoingPacket { header, payload: [first, second], .. } = packet;
        let mut front = [0; vnet::LEN + HEADER_LEN];
        front[..vnet::LEN].copy_from_slice(&virtio);
        front[vnet::LEN..].copy_from_slice(link);
        self.write(&[&front, header, first, second].map(IoSlice::new))
    }

    fn send_frame(&mut self, frame: &[u8]) -> io::Result<()> {
        self.write(&[IoSlice::new(&[0; vnet::LEN]), IoSlice::new(frame)])
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Also of an interface that always has frames: its MTU may have changed.
        let (before, link) = (self.link.link(), self.link.poll(cx));
        if self.frames.is_pending() {
            return Poll::Ready(Ok(()));
        }
        match (before, link) {
            (_, Link::Gone) => Poll::Ready(Err(removed(&self.name))),
            // Wake the waiting task, to let it know that the interface is up.
            (Link::Down, Link::Up) => Poll::Ready(Ok(())),
            _ => self.frames.waiting().poll_readable(cx),
        }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.gone {
            return Poll::Ready(Err(removed(&self.name)));
        }
        match self.link.poll(cx) {
            Link::Up => {}
            Link::Down => return Poll::Pending,
            Link::Gone => return Poll::Ready(Err(removed(&self.name))),
        }
        if let Some(after) = self.retry {
            if self.retry_timer.as_ref().is_none_or(|timer| timer.deadline().is_none()) {
                armed(&mut self.retry_timer, timer::now() + after)?;
            }
            if let Some(timer) = &mut self.retry_timer {
                ready!(timer.poll_expired(cx))?;
            }
            return Poll::Ready(Ok(()));
        }
        self.room.poll(self.frames.fd(), cx)
    }

    fn wait_until(&mut self, end: Instant) -> io::Result<()> {
        let left = std::time::Duration::from(end.since(timer::now()));
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(self.frames.waiting().get()?, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn is_down(&self) -> bool {
        self.link.link() == Link::Down
    }

    fn mtu(&self) -> u32 {
        self.link.mtu()
    }

    fn kernel_drops(&self) -> u64 {
        self.frames.kernel_drops()
    }
}

/// The timer, made if there is none, with this deadline.
fn armed(place: &mut Option<Timer>, deadline: Instant) -> io::Result<&mut Timer> {
    let timer = match place {
        Some(timer) => timer,
        None => place.insert(Timer::new()?),
    };
    timer.arm(Some(deadline))?;
    Ok(timer)
}
