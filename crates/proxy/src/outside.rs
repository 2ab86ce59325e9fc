//! The way out: sockets of the kernel, or of another stack.

mod eyeballs;
pub(crate) mod machine;

use ackline_runtime::{Stack, UdpArrival};
use machine::Machine;
use rustix::net::sockopt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net;

/// Notices within two minutes that a silent peer has vanished.
const IDLE: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 6;

/// Stack through which connections and flows reach their destination, or an upstream's server.
#[derive(Clone, Debug, Default)]
pub enum Exit {
    /// Sockets of the kernel.
    #[default]
    Kernel,
    /// Connections and sockets of a stack, whose scheduler then orders all that leaves. This
    /// machine's loopback is the kernel's all the same. Names of servers are resolved by this
    /// machine.
    Stack(Stack),
}

/// An exit, apart from what leads back to the proxy.
#[derive(Clone, Debug)]
pub(crate) struct WayOut {
    exit: Exit,
    machine: Arc<Machine>,
}

impl WayOut {
    pub(crate) const fn new(exit: Exit, machine: Arc<Machine>) -> Self {
        Self { exit, machine }
    }

    /// Connects to one address.
    pub(crate) async fn connect(&self, to: SocketAddr) -> io::Result<Stream> {
        match &self.exit {
            Exit::Stack(stack) if !to.ip().is_loopback() => {
                let stream = stack.connect(to).await?;
                // A connection without these options works as well.
                let _ = stream.set_nodelay(true);
                Ok(Stream::Stack(Box::new(stream)))
            }
            Exit::Kernel | Exit::Stack(_) => {
                self.machine.check_leaves(to.ip())?;
                let stream = net::TcpStream::connect(to).await?;
                keep_alive(&stream);
                Ok(Stream::Kernel(stream))
            }
        }
    }

    /// Connects to the address of `host` that answers first.
    pub(crate) async fn connect_to_host(&self, host: &str, port: u16) -> io::Result<Stream> {
        let addresses = net::lookup_host((host, port)).await?;
        eyeballs::connect(addresses, |address| self.connect(address)).await
    }

    /// The address is one of the stack's own.
    pub(crate) fn is_of_stack(&self, address: IpAddr) -> bool {
        match &self.exit {
            Exit::Stack(stack) => stack.bind_udp((address, 0).into()).is_ok(),
            Exit::Kernel => false,
        }
    }

    /// A UDP socket that exchanges datagrams with anybody, for a client of this kind.
    pub(crate) async fn socket_for_all(&self, from: Origin) -> io::Result<Socket> {
        let any: IpAddr = match from {
            Origin::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Origin::V6 => Ipv6Addr::UNSPECIFIED.into(),
            Origin::LoopbackV4 => Ipv4Addr::LOCALHOST.into(),
            Origin::LoopbackV6 => Ipv6Addr::LOCALHOST.into(),
        };
        match &self.exit {
            Exit::Stack(stack) if any.is_unspecified() => {
                let socket = stack.bind_udp((any, 0).into())?;
                socket.report_errors(true)?;
                Ok(Socket::Stack(socket))
            }
            Exit::Kernel | Exit::Stack(_) => {
                let socket = net::UdpSocket::bind((any, 0)).await?;
                // Without, nobody is told that a port is closed.
                let _ = errors::report(&socket);
                Ok(Socket::Kernel(socket))
            }
        }
    }

    /// Checks that traffic to `to` would not come back to the proxy.
    ///
    /// # Errors
    /// If it would.
    pub(crate) fn check_leaves(&self, to: IpAddr) -> io::Result<()> {
        match &self.exit {
            Exit::Stack(_) if !to.is_loopback() => Ok(()),
            Exit::Kernel | Exit::Stack(_) => self.machine.check_leaves(to),
        }
    }

    /// A UDP socket that exchanges datagrams with `to` alone.
    pub(crate) async fn socket(&self, to: SocketAddr) -> io::Result<Socket> {
        let any: IpAddr =
            if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        match &self.exit {
            Exit::Stack(stack) if !to.ip().is_loopback() => {
                let socket = stack.bind_udp((any, 0).into())?;
                socket.connect(to).await?;
                Ok(Socket::Stack(socket))
            }
            Exit::Kernel | Exit::Stack(_) => {
                self.machine.check_leaves(to.ip())?;
                let socket = net::UdpSocket::bind((any, 0)).await?;
                socket.connect(to).await?;
                Ok(Socket::Kernel(socket))
            }
        }
    }
}

/// Sends what is written at once, and notices a peer that has vanished. A connection without these
/// options works as well.
pub(crate) fn keep_alive(stream: &net::TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, IDLE);
    let _ = sockopt::set_tcp_keepintvl(stream, INTERVAL);
    let _ = sockopt::set_tcp_keepcnt(stream, PROBES);
}

/// Kind of client that a socket without a fixed peer serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    V4,
    V6,
    /// This machine's loopback, from which alone it receives.
    LoopbackV4,
    LoopbackV6,
}

/// A connection to the outside.
#[derive(Debug)]
pub(crate) enum Stream {
    Kernel(net::TcpStream),
    Stack(Box<ackline_runtime::TcpStream>),
}

impl Stream {
    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Kernel(stream) => stream.peer_addr(),
            Self::Stack(stream) => stream.peer_addr(),
        }
    }

    /// Lets the peer hear of a failure when it is dropped.
    pub(crate) fn abort(&self) {
        match self {
            // A socket that cannot be told so has ended already.
            Self::Kernel(stream) => drop(stream.set_zero_linger()),
            Self::Stack(stream) => stream.abort(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Kernel(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Stack(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Kernel(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Stack(stream) => Pin::new(&mut **stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Kernel(stream) => Pin::new(stream).poll_flush(cx),
            Self::Stack(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Kernel(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Stack(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }
}

/// A UDP socket that exchanges datagrams with one peer, or with anybody.
#[derive(Debug)]
pub(crate) enum Socket {
    Kernel(net::UdpSocket),
    Stack(ackline_runtime::UdpSocket),
}

/// What comes back.
#[derive(Debug)]
pub(crate) enum Inward {
    /// A datagram: its range in the buffer, and its source, if that is an address.
    Datagram(Range<usize>, Option<SocketAddr>),
    /// The destination port of an earlier datagram is closed.
    Refused(SocketAddr),
}

impl Socket {
    /// To the one peer.
    pub(crate) async fn send(&self, datagram: &[u8]) -> io::Result<()> {
        match self {
            Self::Kernel(socket) => socket.send(datagram).await.map(drop),
            Self::Stack(socket) => socket.send(datagram).await.map(drop),
        }
    }

    /// From the one peer.
    pub(crate) async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Kernel(socket) => socket.recv(buffer).await,
            Self::Stack(socket) => socket.recv(buffer).await,
        }
    }

    /// To anybody.
    pub(crate) async fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        match self {
            Self::Kernel(socket) => match socket.send_to(datagram, to).await {
                // What ICMP says of an earlier datagram, perhaps to somebody else: this one has not
                // left yet.
                Err(_) => socket.send_to(datagram, to).await.map(drop),
                Ok(_) => Ok(()),
            },
            Self::Stack(socket) => socket.send_to(datagram, to).await.map(drop),
        }
    }

    /// From anybody, and what ICMP says about what was sent.
    pub(crate) async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<Inward> {
        match self {
            Self::Kernel(socket) => loop {
                socket.ready(Interest::READABLE | Interest::ERROR).await?;
                if let Ok((length, from)) = socket.try_recv_from(buffer) {
                    return Ok(Inward::Datagram(0..length, Some(from)));
                }
                if let Some(to) = errors::next_refused(socket) {
                    return Ok(Inward::Refused(to));
                }
            },
            Self::Stack(socket) => loop {
                match socket.recv_or_report(buffer).await? {
                    UdpArrival::Datagram { len, from } => return Ok(Inward::Datagram(0..len, Some(from))),
                    UdpArrival::Error { to, error } if error.kind() == ErrorKind::ConnectionRefused => {
                        return Ok(Inward::Refused(to));
                    }
                    UdpArrival::Error { .. } => {}
                }
            },
        }
    }
}

/// ICMP errors about datagrams of a socket of the kernel that is not connected: Linux's
/// `IP_RECVERR` (ip(7)).
#[cfg(target_os = "linux")]
mod errors {
    use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr};
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
    use std::io::{self, IoSliceMut};
    use std::net::SocketAddr;
    use std::os::fd::AsRawFd as _;
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    /// The socket keeps them from now on.
    pub(super) fn report(socket: &UdpSocket) -> io::Result<()> {
        match socket.local_addr()? {
            SocketAddr::V4(_) => setsockopt(socket, Ipv4RecvErr, &true)?,
            SocketAddr::V6(_) => setsockopt(socket, Ipv6RecvErr, &true)?,
        }
        Ok(())
    }

    /// The next peer that refused a datagram.
    pub(super) fn next_refused(socket: &UdpSocket) -> Option<SocketAddr> {
        loop {
            let next = socket.try_io(Interest::ERROR, || next(socket));
            if let Some(refused) = next.ok()? {
                return Some(refused);
            }
        }
    }

    /// Takes the next error; returns the peer if its port is closed.
    fn next(socket: &UdpSocket) -> io::Result<Option<SocketAddr>> {
        // Of the datagram nothing is needed.
        let mut data = [0; 1];
        let mut data = [IoSliceMut::new(&mut data)];
        // The error, and who reports it.
        let mut control = nix::cmsg_space!([u8; 128]);
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut data, Some(&mut control), flags)?;
        let mut is_refused = false;
        for control in message.cmsgs()? {
            let error = match control {
                ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                    error
                }
                _ => continue,
            };
            is_refused |= io::Error::from_raw_os_error(error.ee_errno.cast_signed()).kind()
                == io::ErrorKind::ConnectionRefused;
        }
        let to = message.address.filter(|_| is_refused);
        Ok(to.and_then(|to| {
            let v4 = to.as_sockaddr_in().map(|v4| SocketAddr::from((v4.ip(), v4.port())));
            v4.or_else(|| to.as_sockaddr_in6().map(|v6| SocketAddr::from((v6.ip(), v6.port()))))
        }))
    }
}

/// Other platforms do not report it.
#[cfg(not(target_os = "linux"))]
mod errors {
    use std::io;
    use std::net::SocketAddr;
    use tokio::net::UdpSocket;

    pub(super) const fn report(_: &UdpSocket) -> io::Result<()> {
        Ok(())
    }

    pub(super) const fn next_refused(_: &UdpSocket) -> Option<SocketAddr> {
        None
    }
}
