//! Packets between two devices.

use ackline_runtime::device::{Device, DeviceCaps, DeviceStats, OutgoingPacket, RxPacket};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use tokio::net::UnixDatagram;

/// An end of the path.
pub(crate) type Wire = Box<dyn Device>;

/// Longest packet.
const LONGEST: usize = 1 << 16;

/// Octets that may wait in a socket of packets, what the kernel needs for each included.
const WAITING: usize = 16 << 20;

/// Carries packets both ways until a device is gone. What a device does not take is lost.
pub(crate) async fn bridge(one: &mut dyn Device, other: &mut dyn Device) -> io::Result<Infallible> {
    let (mut there, mut back) = (None, None);
    poll_fn(|cx| {
        loop {
            let mut moved = carry(one, other, &mut there, cx)?;
            moved |= carry(other, one, &mut back, cx)?;
            let ready = [
                there.is_none() && one.poll_readable(cx)?.is_ready(),
                back.is_none() && other.poll_readable(cx)?.is_ready(),
            ];
            if !moved && ready == [false; 2] {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Carries one packet from one device to another; true if one was taken or handed over.
fn carry(
    from: &mut dyn Device,
    to: &mut dyn Device,
    held: &mut Option<Vec<u8>>,
    cx: &mut Context<'_>,
) -> io::Result<bool> {
    let taken = held.is_none();
    if taken {
        match from.try_recv() {
            Ok(packet) => *held = Some([packet.head, packet.more[0], packet.more[1]].concat()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    let Some(packet) = held else { return Ok(false) };
    match to.try_send(&OutgoingPacket::whole(packet)) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            // Ready at once: the next round tries again.
            return Ok(to.poll_writable(cx)?.is_ready());
        }
        // Refused is lost.
        Ok(()) | Err(_) => *held = None,
    }
    Ok(true)
}

/// A Unix socket of packets, each an IP packet.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    /// Not of datagrams, of which Linux lets few wait; but system calls and readiness are the same.
    socket: UnixDatagram,
    mtu: u32,
    received: Vec<u8>,
}

impl PacketSocket {
    /// And the other end of it.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub(crate) fn pair(mtu: u32) -> io::Result<(Self, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (here, there) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        for end in [&here, &there] {
            // Some programs lose what a full socket does not take. More than the system allows
            // everybody needs a right that only root has.
            if sockopt::set_socket_send_buffer_size_force(end, WAITING).is_err() {
                sockopt::set_socket_send_buffer_size(end, WAITING)?;
            }
        }
        let socket = UnixDatagram::from_std(here.into())?;
        Ok((Self { socket, mtu, received: vec![0; LONGEST] }, there))
    }
}

impl Device for PacketSocket {
    fn caps(&self) -> DeviceCaps {
        DeviceCaps::plain(self.mtu)
    }

    fn try_recv(&mut self) -> io::Result<RxPacket<'_>> {
        match self.socket.try_recv(&mut self.received)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            len => Ok(RxPacket::new(&self.received[..len])),
        }
    }

    fn try_send(&mut self, packet: &OutgoingPacket<'_>) -> io::Result<()> {
        let [first, second] = packet.payload;
        self.socket.try_send(&[packet.header, first, second].concat()).map(drop)
    }

    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_recv_ready(cx)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_send_ready(cx)
    }

    fn stats(&self) -> DeviceStats {
        DeviceStats::default()
    }
}
