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

use super::ethernet::device::Ethernet;
use super::ethernet::neighbours::Attachment;
use super::ethernet::provision::Provisioner;
use super::ethernet::resolution::Resolution;
use super::ethernet::resolver::Resolver;
use super::{Device, DeviceCaps, forward_device};
use crate::error::{Error, Result};
use crate::platform::random;
use rustix::fd::OwnedFd;
use rustix::net::{SocketType, sockopt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use wire::{FrameWire, Kind};

/// A host's place on the Ethernet behind a socket.
#[derive(Debug)]
pub struct FrameSocket(Ethernet<FrameWire>);

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
        let (path, attachment) = (path.as_ref(), config.attachment()?);
        let stream = UnixStream::connect(path).map_err(Error::at(path, "connect to"))?;
        Self::attach(stream.into(), path.display().to_string(), attachment, config)
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
        let (local, remote, attachment) = (local.as_ref(), remote.as_ref(), config.attachment()?);
        let socket = UnixDatagram::bind(local).map_err(Error::at(local, "bind"))?;
        socket.connect(remote).map_err(Error::at(remote, "connect to"))?;
        Self::attach(socket.into(), remote.display().to_string(), attachment, config)
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
        Self::attach(socket.into(), name.into(), config.attachment()?, config)
    }

    fn attach(fd: OwnedFd, name: String, attachment: Attachment, config: &FrameSocketConfig) -> Result<Self> {
        let kind = match sockopt::socket_type(&fd).map_err(Error::on("use the descriptor as a socket"))? {
            SocketType::STREAM => Kind::Stream,
            SocketType::DGRAM => Kind::Datagrams,
            _ => {
                let why = format!("{name} is neither a stream nor a datagram socket");
                return Err(Error::BadConfig { what: "frame socket", why });
            }
        };
        let seed = random::seed().map_err(|source| Error::System { action: "get random numbers", source })?;
        let provision = config.provision.as_ref();
        let provisioner = provision.map(|provision| Provisioner::new(provision, &attachment, config.mtu));
        let mut resolver = Resolver::new(attachment, config.resolution.clone(), seed)
            .map_err(|error| Error::BadConfig { what: "addresses", why: error.to_string() })?;
        if let Some(provisioner) = provisioner {
            resolver.provide(provisioner);
        }
        let mut wire = FrameWire::new(fd, kind, name.clone());
        let mut resolution = Resolution::new(resolver);
        resolution.claim(&mut wire, &name)?;
        Ok(Self(Ethernet::new(wire, resolution, DeviceCaps::plain(config.mtu))))
    }
}

impl Device for FrameSocket {
    forward_device!(self, self.0);
}
