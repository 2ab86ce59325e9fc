//! Ethernet frames over a socket, as virtual machines exchange them: the stack as a host beside a
//! guest, without privileges and without an interface.
//!
//! | other side | socket | a frame |
//! |---|---|---|
//! | QEMU (`-netdev stream`), passt | a Unix stream socket | behind its length, 32 bits in network byte order |
//! | QEMU (`-netdev dgram`) | a pair of Unix datagram sockets | a datagram |
//!
//! Frames are whole and plain: no offload, complete checksums. A full socket holds packets back in
//! the stack, and of a frame that a stream has taken in part, the rest leaves first. If the other
//! side closes its socket, the device is gone, with an error that names the socket.
//!
//! Whoever has the other side decides what arrives, and is trusted with no more than an Ethernet
//! is: what is malformed is dropped and counted. Only a length that no frame has ends the device,
//! because nothing behind it can be found.

mod config;
#[cfg(test)]
mod tests;
mod wire;

pub use super::ethernet::neighbours;
pub use super::ethernet::provision::Provision;
pub use config::FrameSocketConfig;

use super::batch::{Gathered, MOST};
use super::ethernet::Wire as _;
use super::ethernet::frame::HEADER_LEN;
use super::ethernet::neighbours::{Outbound, Resolver};
use super::ethernet::provision::Provisioner;
use super::ethernet::resolution::Resolution;
use super::{Device, DeviceCaps, DeviceStats, RxBatch, RxPacket, TxChecksum};
use crate::error::{Error, Result};
use crate::random;
use rustix::fd::OwnedFd;
use rustix::net::{SocketType, sockopt};
use std::io;
use std::num::NonZeroU16;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::task::{Context, Poll};
use wire::{FrameWire, Kind, Slot};

/// A host's place on the Ethernet behind a socket.
#[derive(Debug)]
pub struct FrameSocket {
    wire: FrameWire,
    caps: DeviceCaps,
    resolution: Resolution,
    stats: DeviceStats,
}

impl FrameSocket {
    /// Connects to the stream socket at `path`: passt's, or QEMU's with `-netdev stream,server=on`.
    ///
    /// Blocks the calling thread until it is certain that no other host uses one of the addresses:
    /// 0.3 s by default, see [`ClaimConfig`](neighbours::ClaimConfig).
    ///
    /// ```no_run
    /// use ackline_runtime::Stack;
    /// use ackline_runtime::device::frame_socket::{FrameSocket, FrameSocketConfig};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = FrameSocketConfig::default().address("10.0.2.77/24".parse()?).gateway("10.0.2.2".parse()?);
    /// let device = FrameSocket::connect("/tmp/passt_1.socket", &config)?;
    /// let stack = Stack::builder(device).address([10, 0, 2, 77]).spawn()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Socket`] if nobody listens there; otherwise as [`new`](Self::new).
    pub fn connect(path: impl AsRef<Path>, config: &FrameSocketConfig) -> Result<Self> {
        let path = path.as_ref();
        let stream = UnixStream::connect(path).map_err(Error::at(path, "connect to"))?;
        Self::new(stream, path.display().to_string(), config)
    }

    /// Binds a datagram socket to `local`, which must not exist, and connects it to the one at
    /// `remote`: QEMU's with
    /// `-netdev dgram,local.type=unix,local.path=REMOTE,remote.type=unix,remote.path=LOCAL`.
    /// Whoever opens the device removes `local` afterwards.
    ///
    /// # Errors
    /// [`Error::Socket`]; otherwise as [`new`](Self::new).
    pub fn datagrams(
        local: impl AsRef<Path>,
        remote: impl AsRef<Path>,
        config: &FrameSocketConfig,
    ) -> Result<Self> {
        let (local, remote) = (local.as_ref(), remote.as_ref());
        let socket = UnixDatagram::bind(local).map_err(Error::at(local, "bind"))?;
        socket.connect(remote).map_err(Error::at(remote, "connect to"))?;
        Self::new(socket, remote.display().to_string(), config)
    }

    /// Takes a connected stream or datagram socket: one that a
    /// [listener](std::os::unix::net::UnixListener) has accepted, that a parent process has passed
    /// on, or an end of a pair. `name` is what errors call it.
    ///
    /// Blocks like [`connect`](Self::connect).
    ///
    /// # Errors
    /// [`Error::AddressInUse`]; [`Error::BadConfig`] if a setting, or the kind of socket, is
    /// invalid; [`Error::System`] if the other side goes away meanwhile.
    pub fn new(
        socket: impl Into<OwnedFd>,
        name: impl Into<String>,
        config: &FrameSocketConfig,
    ) -> Result<Self> {
        let (fd, name) = (socket.into(), name.into());
        let attachment = config.attachment()?;
        let kind = match sockopt::socket_type(&fd).map_err(Error::on("use the descriptor as a socket"))? {
            SocketType::STREAM => Kind::Stream,
            SocketType::DGRAM => Kind::Datagrams,
            _ => {
                let why = format!("{name} is neither a stream nor a datagram socket");
                return Err(Error::BadConfig { what: "frame socket", why });
            }
        };
        let seed = random::seed().map_err(|source| Error::System { action: "get random numbers", source })?;
        let mac = attachment.mac;
        let provision = config.provision.as_ref();
        let provisioner = provision.map(|provision| Provisioner::new(provision, &attachment, config.mtu));
        let mut resolver = Resolver::new(attachment, config.resolution.clone(), seed)
            .map_err(|error| Error::BadConfig { what: "addresses", why: error.to_string() })?;
        if let Some(provisioner) = provisioner {
            resolver.provide(provisioner);
        }
        let mut wire = FrameWire::new(fd, kind, name.clone(), mac);
        let mut resolution = Resolution::new(resolver);
        resolution.claim(&mut wire, &name)?;
        Ok(Self { wire, caps: DeviceCaps::plain(config.mtu), resolution, stats: DeviceStats::default() })
    }

    /// The next packet for the stack: in a frame up to this end, or, if `None`, the resolution's
    /// error.
    fn next(&mut self) -> io::Result<Option<(Slot, usize)>> {
        let next = self.resolution.next_packet(&mut self.wire, &mut self.stats)?;
        if let Some((_, end)) = next {
            self.stats.received(end - HEADER_LEN);
        }
        Ok(next)
    }

    /// The header of the link in front of that packet.
    fn link(&self, next: Option<(Slot, usize)>) -> &[u8] {
        next.map_or(&[][..], |(slot, _)| self.wire.part(slot, 0, HEADER_LEN))
    }

    fn packet(&self, next: Option<(Slot, usize)>) -> RxPacket<'_> {
        RxPacket::new(match next {
            Some((slot, end)) => self.wire.part(slot, HEADER_LEN, end),
            None => self.resolution.error(),
        })
    }

    fn send(&mut self, packet: &Outbound<'_>) -> io::Result<()> {
        let &Outbound { header, payload, segment_size, checksum } = packet;
        let length = header.len() + payload[0].len() + payload[1].len();
        self.caps.admit(length, header.len(), segment_size, checksum)?;
        match self.resolution.route(&mut self.wire, packet)? {
            Some(station) => self.wire.send(station, packet),
            None => {
                self.wire.keep_for_later(header);
                Ok(())
            }
        }
    }
}

impl Device for FrameSocket {
    fn caps(&self) -> DeviceCaps {
        self.caps
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        let next = self.next()?;
        Ok(self.packet(next))
    }

    fn try_recv_with_link(&mut self) -> io::Result<(&[u8], RxPacket<'_>)> {
        let next = self.next()?;
        Ok((self.link(next), self.packet(next)))
    }

    /// What one read of a stream has brought.
    fn try_recv_batch(&mut self, most: usize, take: &mut dyn FnMut(RxBatch<'_>)) -> io::Result<()> {
        let mut last = self.next()?;
        let mut batch = [last; MOST];
        let mut count = 1;
        self.wire.keep(true);
        // There is one place for an error of the resolution, so it ends the batch.
        while count < most.min(MOST) && last.is_some() {
            let Ok(next) = self.next() else { break };
            batch[count] = next;
            (last, count) = (next, count + 1);
        }
        self.wire.keep(false);
        let mut gathered = Gathered::new();
        for &next in batch.iter().take(count) {
            gathered.push(self.link(next), self.packet(next));
        }
        gathered.give(take);
        Ok(())
    }

    fn sent_link(&self) -> &[u8] {
        self.wire.sent_link()
    }

    fn try_send(
        &mut self,
        header: &[u8],
        payload: [&[u8]; 2],
        segment_size: Option<NonZeroU16>,
        checksum: TxChecksum,
    ) -> io::Result<()> {
        let outcome = self.send(&Outbound { header, payload, segment_size, checksum });
        self.stats.sent(header.len() + payload[0].len() + payload[1].len(), &outcome);
        outcome
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.resolution.poll(cx, &mut self.wire)?.is_ready() {
            return Poll::Ready(Ok(()));
        }
        self.wire.poll_readable(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.poll_writable(cx)
    }

    fn stats(&self) -> DeviceStats {
        DeviceStats { neighbours: self.resolution.stats(), ..self.stats }
    }
}
