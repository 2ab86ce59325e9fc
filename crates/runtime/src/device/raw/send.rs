//! Sending: a raw socket for each IP version, with the stack's own IP headers (`IPPROTO_RAW`:
//! raw(7), ipv6(7)).
//!
//! The kernel routes the packets and finds their neighbours. A raw socket takes single packets that
//! are complete, so super-packets are cut here, and leave by one system call for up to [`BATCH`]
//! packets. If there is no room for all of them, the rest leaves before anything else, because a
//! device takes a super-packet as a whole.

use super::ports::on_interface;
use crate::device::interface::bpf::DROP;
use crate::device::interface::frames::set_send_buffer;
use crate::device::interface::ready_fd::ReadyFd;
use crate::device::interface::room::Room;
use crate::device::{OutgoingPacket, unsendable};
use crate::error::{Error, Result};
use crate::netlink::Interface;
use crate::sys::filter::attach_filter;
use crate::sys::socket::bind_to_interface;
use ackline_tcp_core::wire::gso;
use ackline_tcp_core::wire::{EmitError, HeaderBuf, Payload, TxChecksumMode};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg as _;
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, SocketFlags, SocketType, bind,
    ipproto, sendmmsg, socket_with, sockopt,
};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;

/// Packets for one system call.
const BATCH: usize = 64;

/// The socket for one of the host's addresses.
#[derive(Debug)]
pub(super) struct Sender {
    own: IpAddr,
    interface: u32,
    fd: ReadyFd<OwnedFd>,
    room: Room,
    cut: Cut,
    /// The last send found no room.
    full: bool,
}

/// Complete packets for one destination, one behind the other.
#[derive(Debug)]
struct Cut {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// How many have left.
    left: usize,
    to: SocketAddrAny,
}

impl Sender {
    /// Opens it for packets from `own` that leave through `interface`.
    ///
    /// # Errors
    /// [`Error::NotRaw`] without `CAP_NET_RAW`.
    pub(super) fn open(own: IpAddr, interface: &Interface, send_buffer: usize) -> Result<Self> {
        let fd = open(own, interface, send_buffer).map_err(|errno| match errno {
            Errno::PERM | Errno::ACCESS => Error::NotRaw,
            other => Error::system("open a raw socket", other),
        })?;
        let cut = Cut {
            bytes: Vec::new(),
            ends: Vec::new(),
            left: 0,
            to: on_interface(own, interface.index, 0).as_any(),
        };
        let fd = ReadyFd::watching(fd, Interest::WRITABLE);
        Ok(Self { own, interface: interface.index, fd, room: Room::default(), cut, full: false })
    }

    /// The address from which it sends.
    pub(super) const fn own(&self) -> IpAddr {
        self.own
    }

    /// Sends a packet, all of it or nothing; what there is no room for of a super-packet leaves
    /// later.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; `InvalidInput` if it is no packet of TCP; what the kernel
    /// says otherwise.
    pub(super) fn send(&mut self, to: IpAddr, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        self.flush()?;
        self.cut.fill(packet).map_err(|error| unsendable(text(error)))?;
        self.cut.to = on_interface(to, self.interface, 0).as_any();
        match self.flush() {
            Err(error) if self.cut.left == 0 => {
                self.cut.clear();
                Err(error)
            }
            // Whatever has left makes the packet one that was sent.
            _ => Ok(()),
        }
    }

    /// Sends the rest of an earlier packet. If the kernel refuses it, it is lost on the way.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room for all of it; another error if nothing of the packet had
    /// left.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.cut.ends.is_empty() {
            return Ok(());
        }
        while self.cut.left < self.cut.ends.len() {
            let Self { fd, room, cut, .. } = &mut *self;
            match room.attempt(fd, |fd| Ok(cut.send(fd)?)) {
                Ok(sent) => self.cut.left += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.room.missed();
                    self.full = true;
                    return Err(error);
                }
                Err(error) => {
                    // tokio would report it as readiness from then on.
                    self.room.forget();
                    self.full = false;
                    let partly = self.cut.left > 0;
                    self.cut.clear();
                    return if partly { Ok(()) } else { Err(error) };
                }
            }
        }
        self.cut.clear();
        self.full = false;
        self.room.found();
        Ok(())
    }

    /// Ready when nothing of an earlier packet is left, and there may be room if there was none.
    pub(super) fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_flushed(cx));
        if self.full { self.room.poll(&self.fd, cx) } else { Poll::Ready(Ok(())) }
    }

    /// Ready when nothing of an earlier packet is left, or it cannot be waited for: then the next
    /// send tries again.
    pub(super) fn poll_flushed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.flush().is_err() {
            if ready!(self.room.poll(&self.fd, cx)).is_err() {
                break;
            }
        }
        Poll::Ready(())
    }
}

impl Cut {
    /// Takes the packets that `packet` becomes.
    fn fill(&mut self, packet: &OutgoingPacket<'_>) -> std::result::Result<(), EmitError> {
        let &OutgoingPacket { header, payload: [first, second], segment_size, .. } = packet;
        self.clear();
        let payload = Payload::new([first, second, &[]]);
        let size = segment_size.unwrap_or(NonZeroU16::MAX);
        let mut packets = gso::split(header, payload, size, TxChecksumMode::Complete)?;
        let mut buffer = HeaderBuf::new();
        while let Some((_, data)) = packets.next_into(&mut buffer) {
            self.bytes.extend_from_slice(buffer.as_slice());
            for slice in data.slices() {
                self.bytes.extend_from_slice(slice);
            }
            self.ends.push(self.bytes.len());
        }
        Ok(())
    }

    /// Sends as many of those that have not left as one call takes; how many that were, at least
    /// one.
    fn send(&self, fd: &OwnedFd) -> std::result::Result<usize, Errno> {
        let mut start = self.left.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0);
        let ends = self.ends.get(self.left..).unwrap_or(&[]);
        let slices: Vec<[IoSlice<'_>; 1]> = ends
            .iter()
            .take(BATCH)
            .map(|&end| {
                let packet = self.bytes.get(start..end).unwrap_or(&[]);
                start = end;
                [IoSlice::new(packet)]
            })
            .collect();
        let mut controls: Vec<_> = slices.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let mut messages: Vec<_> = slices
            .iter()
            .zip(&mut controls)
            .map(|(slice, control)| MMsgHdr::new_with_addr(&self.to, slice, control))
            .collect();
        sendmmsg(fd, &mut messages, SendFlags::DONTWAIT)
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.left = 0;
    }
}

fn open(own: IpAddr, interface: &Interface, send_buffer: usize) -> std::result::Result<OwnedFd, Errno> {
    let family = if own.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = socket_with(family, SocketType::RAW, flags, Some(ipproto::RAW))?;
    // It only sends: what arrives for the protocol of this number (255) is nobody's.
    attach_filter(&fd, &mut [DROP])?;
    bind_to_interface(&fd, &interface.name)?;
    // Routes of this address, if there are rules that choose them by it.
    bind(&fd, &on_interface(own, interface.index, 0))?;
    // The stack finds the MTU of the path, and what the kernel has heard of it may have changed:
    // ip(7).
    match own {
        IpAddr::V4(_) => sockopt::set_ip_mtu_discover(&fd, Ipv4PathMtuDiscovery::PROBE)?,
        IpAddr::V6(_) => sockopt::set_ipv6_mtu_discover(&fd, Ipv6PathMtuDiscovery::PROBE)?,
    }
    set_send_buffer(&fd, send_buffer)?;
    Ok(fd)
}

const fn text(error: EmitError) -> &'static str {
    match error {
        EmitError::NotSplittable => "a segment with SYN, RST or URG cannot be split",
        EmitError::TooLong => "a segment is larger than IP permits",
        _ => "only packets of TCP are sent",
    }
}
