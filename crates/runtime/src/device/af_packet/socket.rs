//! The packet socket: receives frames in batches, sends single frames, and handles an interface that goes
//! down or disappears.

use super::config::AfPacketConfig;
use super::{LINK, filter};
use crate::device::ethernet::Wire;
use crate::device::ethernet::frame::{self, HEADER_LEN};
use crate::device::ethernet::neighbours::Outbound;
use crate::device::interface::link::{Link, LinkMonitor};
use crate::device::interface::ready_fd::ReadyFd;
use crate::device::interface::room::Room;
use crate::device::interface::{removed, vnet};
use crate::device::unsendable;
use crate::error::{Error, Result};
use crate::mac::MacAddress;
use crate::netlink::Interface;
use crate::sys::filter::attach_filter;
use crate::sys::packet as sys;
use crate::timer::{self, Timer};
use ackline_tcp_core::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sockopt};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr};
use std::task::{Context, Poll, ready};
use tokio::io::Interest;

/// The largest packet that an IPv6 header can describe; larger than any IPv4 packet.
const LARGEST_PACKET: usize = 40 + 65_535;
/// Bytes from one frame to the next in the receive buffer. An odd number of cache lines, so that the starts
/// of the frames do not map to the same cache sets.
const STRIDE: usize = 1027 * 64;
const _: () = assert!(vnet::LEN + HEADER_LEN + LARGEST_PACKET <= STRIDE);

/// Where a frame begins in its slot.
const FRAME: usize = vnet::LEN;

/// Bytes that one receive call should return: what is read in one go is still in the processor's cache when
/// TCP reads it.
const BATCH_BYTES: usize = 128 << 10;

/// First and last delay before a frame that the queueing discipline or the card dropped is sent again. The
/// kernel does not report when there is room.
const FIRST_RETRY: Duration = Duration::from_micros(100);
const LAST_RETRY: Duration = Duration::from_millis(10);

/// A packet socket that is bound to one interface.
#[derive(Debug)]
pub(super) struct PacketSocket {
    fd: ReadyFd<OwnedFd>,
    room: Room,
    /// The queue behind the socket was full: how long to wait.
    retry: Option<Duration>,
    retry_timer: Option<Timer>,
    link: LinkMonitor,
    /// A send found that the interface is gone; `link` may not have noticed yet.
    gone: bool,
    name: String,
    mac: MacAddress,
    /// The Ethernet header of the last packet.
    sent_link: [u8; HEADER_LEN],
    /// Slots of [`STRIDE`] bytes, each for a virtio header and a frame.
    buffer: Box<[u8]>,
    /// Contents of the slots; filled up to `received`, read up to `next`.
    messages: Box<[sys::Message]>,
    received: usize,
    next: usize,
    /// How many frames to ask for: depends on their size in the last batch.
    ask: usize,
    /// The last batch emptied the socket.
    drained: bool,
}

impl PacketSocket {
    /// Opens it for frames to the station `mac` and to the multicast `groups`.
    pub(super) fn open(
        config: &AfPacketConfig,
        interface: &Interface,
        mac: MacAddress,
        groups: &[Ipv6Addr],
    ) -> Result<Self> {
        let fd = sys::open().map_err(|errno| match errno {
            Errno::PERM | Errno::ACCESS => Error::NotRaw,
            other => Error::system("open a packet socket", other),
        })?;
        sys::set_option(&fd, libc::PACKET_VNET_HDR, 1)
            .map_err(Error::on("switch the packet socket's virtio header on"))?;
        // Ignores copies of what this host sends, including the stack's own frames. Needs Linux 4.20.
        sys::set_option(&fd, libc::PACKET_IGNORE_OUTGOING, 1)
            .map_err(Error::on("turn copies of outgoing frames off"))?;
        if config.qdisc_bypass {
            sys::set_option(&fd, libc::PACKET_QDISC_BYPASS, 1)
                .map_err(Error::on("bypass the queueing discipline"))?;
        }
        set_buffers(&fd, config).map_err(Error::on("set the packet socket's buffers"))?;

        let own: Vec<IpAddr> = config.addresses.iter().map(ipnet::IpNet::addr).collect();
        let wanted = (!config.any_address).then_some(&own[..]);
        attach_filter(&fd, &mut filter::program(mac, wanted))
            .map_err(Error::on("set the packet socket's filter"))?;
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

        let slots = config.receive_batch;
        Ok(Self {
            fd: ReadyFd::watching(fd, Interest::READABLE),
            room: Room::default(),
            retry: None,
            retry_timer: None,
            link: LinkMonitor::open(interface)?,
            gone: false,
            name: interface.name.clone(),
            mac,
            sent_link: [0; HEADER_LEN],
            buffer: vec![0; slots * STRIDE].into_boxed_slice(),
            messages: vec![sys::Message::default(); slots].into_boxed_slice(),
            received: 0,
            next: 0,
            ask: slots,
            drained: false,
        })
    }

    /// The virtio header in a slot.
    pub(super) fn virtio(&self, slot: Slot) -> &[u8; vnet::LEN] {
        // A slot holds a whole header.
        self.buffer.get(slot.at..).and_then(|bytes| bytes.first_chunk()).unwrap_or(&[0; vnet::LEN])
    }

    /// A part of the frame in a slot.
    pub(super) fn part(&self, slot: Slot, from: usize, to: usize) -> &[u8] {
        self.buffer.get(slot.at + FRAME + from..slot.at + FRAME + to).unwrap_or(&[])
    }

    fn fill(&mut self) -> io::Result<()> {
        (self.next, self.received) = (0, 0);
        if self.gone || self.link.link() == Link::Gone {
            return Err(removed(&self.name));
        }
        if std::mem::take(&mut self.drained) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let Self { fd, buffer, messages, received, ask, .. } = &mut *self;
        let messages = messages.get_mut(..*ask).unwrap_or_default();
        let outcome = fd.attempt(Interest::READABLE, |fd| {
            *received = sys::receive_batch(fd, buffer, STRIDE, messages)?;
            // A batch that is not full emptied the socket, so the readiness can be cleared. (An error may end
            // a batch too: an interface that goes down makes the socket ready again, and the filter rejects
            // frames that the kernel could not describe.)
            if *received < messages.len() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        if let Some(mean) = self.mean_length() {
            self.ask = (BATCH_BYTES / mean).clamp(1, self.messages.len());
        }
        let Err(error) = outcome else { return Ok(()) };
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            _ if self.received > 0 => {
                self.drained = true;
                Ok(())
            }
            // Reported once when the interface goes down; `link` has the state.
            Some(Errno::NETDOWN) => {
                self.room.forget();
                Err(io::ErrorKind::WouldBlock.into())
            }
            // A frame whose offload the virtio header cannot describe; the kernel has dropped it.
            Some(Errno::INVAL) => {
                self.received = 1;
                self.messages[0] = sys::Message { length: 0, cut: true };
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Mean length of the frames in the last batch, in bytes; at least 1.
    fn mean_length(&self) -> Option<usize> {
        let lengths = self.messages.get(..self.received)?.iter().map(|message| message.length);
        lengths.sum::<usize>().checked_div(self.received).map(|mean| mean.max(1))
    }

    /// Sends an IP packet to a station.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; `NetworkDown` while the interface is down, or if it is gone.
    pub(super) fn send_packet(
        &mut self,
        to: MacAddress,
        virtio: [u8; vnet::LEN],
        header: &[u8],
        payload: [&[u8]; 2],
    ) -> io::Result<()> {
        self.sent_link = frame::header(to, self.mac, header);
        let mut front = [0; FRAME + HEADER_LEN];
        front[..FRAME].copy_from_slice(&virtio);
        front[FRAME..].copy_from_slice(&self.sent_link);
        self.write(&[
            IoSlice::new(&front),
            IoSlice::new(header),
            IoSlice::new(payload[0]),
            IoSlice::new(payload[1]),
        ])
    }

    /// An IP packet waits for the address of its station.
    pub(super) fn keep_for_later(&mut self, header: &[u8]) {
        self.sent_link = frame::header(MacAddress::default(), self.mac, header);
    }

    /// The Ethernet header of the packet that was [sent](Self::send_packet) or [kept](Self::keep_for_later) last, whose station is all
    /// zeros while it is not known.
    pub(super) const fn sent_link(&self) -> &[u8] {
        &self.sent_link
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
        self.room.attempt(&self.fd, |fd| {
            rustix::net::sendmsg(fd, parts, &mut SendAncillaryBuffer::default(), SendFlags::DONTWAIT)?;
            Ok(())
        })
    }

    /// Ready when frames may be waiting.
    pub(super) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.next < self.received {
            return Poll::Ready(Ok(()));
        }
        self.drained = false;
        let before = self.link.link();
        match (before, self.link.poll(cx)) {
            (_, Link::Gone) => Poll::Ready(Err(removed(&self.name))),
            // Wake the waiting task, to let it know that the interface is up.
            (Link::Down, Link::Up) => Poll::Ready(Ok(())),
            _ => self.fd.poll_readable(cx),
        }
    }

    /// Frames that the kernel dropped because the receive buffer was full, since the last call.
    pub(super) fn take_drops(&self) -> u64 {
        // If the socket does not answer, the count is unknown.
        self.fd.get().ok().and_then(|fd| sys::take_drops(fd).ok()).unwrap_or(0).into()
    }

    /// The interface's MTU in bytes, as far as is known.
    pub(super) const fn mtu(&self) -> u32 {
        self.link.mtu()
    }
}

impl Wire for PacketSocket {
    type Slot = Slot;

    /// Reads a batch if no frame is left.
    fn receive(&mut self) -> io::Result<Option<Slot>> {
        if self.next == self.received {
            self.fill()?;
        }
        let slot = self.next;
        self.next += 1;
        let Some(&sys::Message { length, cut }) = self.messages.get(slot) else { return Ok(None) };
        let whole = !cut && (FRAME..=STRIDE).contains(&length);
        Ok(whole.then_some(Slot { at: slot * STRIDE, length }))
    }

    fn frame(&self, slot: Slot) -> &[u8] {
        self.buffer.get(slot.at + FRAME..slot.at + slot.length).unwrap_or(&[])
    }

    fn send(&mut self, to: MacAddress, packet: &Outbound<'_>) -> io::Result<()> {
        let &Outbound { header, payload, segment_size, checksum } = packet;
        let virtio = vnet::build_behind(LINK, header, segment_size, checksum).map_err(unsendable)?;
        self.send_packet(to, virtio, header, payload)
    }

    fn send_frame(&mut self, frame: &[u8]) -> io::Result<()> {
        self.write(&[IoSlice::new(&[0; FRAME]), IoSlice::new(frame)])
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
        self.room.poll(&self.fd, cx)
    }

    fn wait_until(&mut self, end: Instant) -> io::Result<()> {
        self.drained = false;
        let left = std::time::Duration::from(end.since(timer::now()));
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(self.fd.get()?, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn is_down(&self) -> bool {
        self.link.link() == Link::Down
    }
}

/// A frame in the receive buffer, valid until the next receive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// Where its slot begins in the buffer.
    at: usize,
    /// Bytes of virtio header and frame.
    length: usize,
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

/// The kernel doubles the sizes for its bookkeeping; the configured sizes are the result.
fn set_buffers(fd: &OwnedFd, config: &AfPacketConfig) -> std::result::Result<(), Errno> {
    let fd = fd.as_fd();
    let (receive, send) = (config.receive_buffer / 2, config.send_buffer / 2);
    // Limits such as net.core.rmem_max can only be exceeded with CAP_NET_ADMIN.
    match sockopt::set_socket_recv_buffer_size_force(fd, receive) {
        Err(Errno::PERM) => sockopt::set_socket_recv_buffer_size(fd, receive),
        outcome => outcome,
    }?;
    match sockopt::set_socket_send_buffer_size_force(fd, send) {
        Err(Errno::PERM) => sockopt::set_socket_send_buffer_size(fd, send),
        outcome => outcome,
    }
}
