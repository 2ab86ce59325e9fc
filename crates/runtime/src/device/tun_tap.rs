//! A TUN device through the crate `tun-tap`: single packets, complete checksums.
//!
//! [`Tun`](super::tun::Tun) without offload does the same with one copy less per sent packet; this
//! device is for programs that already hold an [`Iface`].

use super::interface::MAX_SKIPPED;
use super::spans::{PacketSpan, PacketSpans, WORTH};
use super::tun::{TunConfig, refusal};
use super::tun_fd::TunFd;
use super::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxBatch, RxPacket, TxChecksum, unsendable};
use crate::error::{Error, Result};
use crate::netlink::{Interface, Netlink};
use crate::sys::tun::MAX_NAME;
use rustix::io::Errno;
use std::io;
use std::path::Path;
use std::task::{Context, Poll};
use tun_tap::{Iface, Mode};

/// A TUN device of the crate `tun-tap`.
#[derive(Debug)]
pub struct TunTap {
    fd: TunFd<Iface>,
    interface: Interface,
    /// The packets that were lent out last, and behind the first [`WORTH`] bytes room for one of
    /// the largest MTU so far.
    receive: Vec<u8>,
    /// The last batch emptied the device.
    drained: bool,
    /// The parts of a packet to send, joined: the crate sends from one slice.
    send: Vec<u8>,
    stats: DeviceStats,
}

impl TunTap {
    /// Creates an interface in the calling thread's network namespace, configures its addresses and
    /// brings it up. Ignores `offload` and `multi_queue`.
    ///
    /// # Errors
    /// As [`Tun::create`](super::tun::Tun::create).
    pub fn create(config: &TunConfig) -> Result<Self> {
        let name = config.name.as_deref().unwrap_or("");
        // The crate truncates a long name, and would attach to an existing interface.
        if name.len() > MAX_NAME || name.contains(['\0', '/', ' ']) {
            return Err(Error::BadName { name: name.to_owned() });
        }
        if !name.is_empty() && Netlink::open()?.interface(name).is_ok() {
            return Err(Error::NameInUse { name: name.to_owned() });
        }
        let iface = Iface::without_packet_info(name, Mode::Tun).map_err(|error| cause(name, &error))?;
        let mut device = Self::from_iface(iface)?;
        device.interface = config.apply(&device.interface)?;
        // It was down when it was made.
        device.fd.refresh();
        Ok(device)
    }

    /// Takes an interface that was opened without packet information
    /// ([`Iface::without_packet_info`]) in TUN mode, in the calling thread's network namespace. Its
    /// addresses are left alone.
    ///
    /// # Errors
    /// [`Error::NotATun`] for a TAP interface; if the interface cannot be made non-blocking.
    pub fn from_iface(iface: Iface) -> Result<Self> {
        if iface.mode() != Mode::Tun {
            return Err(Error::NotATun { name: iface.name().to_owned() });
        }
        iface
            .set_non_blocking()
            .map_err(|source| Error::System { action: "make the TUN device non-blocking", source })?;
        let interface = Netlink::open()?.interface(iface.name())?;
        Ok(Self {
            fd: TunFd::new(iface, &interface)?,
            receive: Vec::new(),
            drained: false,
            send: Vec::with_capacity(interface.mtu as usize),
            interface,
            stats: DeviceStats::default(),
        })
    }

    /// The interface, as it was when the device was opened.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Reads until a packet arrives that is not longer than the MTU, behind the first `at` bytes of
    /// the buffer, at most [`WORTH`].
    fn receive(&mut self, at: usize) -> io::Result<PacketSpan> {
        // The MTU may have become larger. One byte more, so that a truncated packet can be told
        // from one that fits.
        let room = self.fd.mtu() as usize + 1;
        self.receive.resize((WORTH + room).max(self.receive.len()), 0);
        for _ in 0..MAX_SKIPPED {
            let Self { fd, receive, .. } = &mut *self;
            let receive = receive.get_mut(at..).and_then(|rest| rest.get_mut(..room)).unwrap_or_default();
            let length = fd.read(|iface| iface.recv(receive))?;
            if length < room {
                self.stats.received(length);
                return Ok(PacketSpan::plain(at, at + length));
            }
            self.stats.rx_malformed += 1;
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let &OutgoingPacket { segment_size, checksum, .. } = packet;
        if segment_size.is_some() || checksum != TxChecksum::Complete {
            return Err(unsendable("this device has no offload"));
        }
        self.send.clear();
        packet.append_to(&mut self.send);
        if self.send.len() > self.fd.mtu() as usize {
            return Err(unsendable("the packet is larger than the device carries"));
        }
        let Self { fd, send, .. } = self;
        fd.write(|iface| iface.send(send))
    }
}

impl Device for TunTap {
    fn caps(&self) -> DeviceCaps {
        DeviceCaps::plain(self.fd.mtu())
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        let place = self.receive(0)?;
        Ok(place.packet(&self.receive))
    }

    fn try_recv_batch(&mut self, most: usize, take: &mut dyn FnMut(RxBatch<'_>)) -> io::Result<()> {
        if std::mem::take(&mut self.drained) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let spans = PacketSpans::read(most, |at| self.receive(at))?;
        self.drained = spans.drained;
        spans.give(&self.receive, take);
        Ok(())
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let outcome = self.send(packet);
        self.stats.sent(packet.length(), &outcome);
        outcome
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.drained = false;
        self.fd.poll_readable(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.fd.poll_writable(cx)
    }

    fn stats(&self) -> DeviceStats {
        DeviceStats { down: self.fd.is_down(), ..self.stats }
    }
}

/// The crate does not tell whether opening `/dev/net/tun` or attaching to the interface failed.
fn cause(name: &str, error: &io::Error) -> Error {
    let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
    match errno {
        Errno::NOENT | Errno::NODEV | Errno::NXIO if !Path::new("/dev/net/tun").exists() => Error::TunMissing,
        Errno::ACCESS => Error::TunForbidden,
        other => refusal(name, true, other),
    }
}
