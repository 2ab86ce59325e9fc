//! What leads out: sockets of the kernel, or of another stack.

use crate::eyeballs;
use crate::machine::Machine;
use ackline_runtime::Stack;
use rustix::net::sockopt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net;

/// Notices within two minutes that a silent peer has vanished.
const IDLE: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_secs(10);
const PROBES: u32 = 6;

/// By what connections and flows leave for their destination, or for an upstream's server.
#[derive(Clone, Debug, Default)]
pub enum Exit {
    /// Sockets of the kernel.
    #[default]
    Kernel,
    /// Connections and sockets of a stack, whose scheduler then orders all that leaves. This machine's loopback is the kernel's all the
    /// same. Names of servers are resolved by this machine.
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
                let _ = stream.set_nodelay(true);
                let _ = sockopt::set_socket_keepalive(&stream, true);
                let _ = sockopt::set_tcp_keepidle(&stream, IDLE);
                let _ = sockopt::set_tcp_keepintvl(&stream, INTERVAL);
                let _ = sockopt::set_tcp_keepcnt(&stream, PROBES);
                Ok(Stream::Kernel(stream))
            }
        }
    }

    /// Connects to the address of `host` that answers first.
    pub(crate) async fn connect_to_host(&self, host: &str, port: u16) -> io::Result<Stream> {
        let addresses = net::lookup_host((host, port)).await?;
        eyeballs::connect(addresses, |address| self.connect(address)).await
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

/// A UDP socket that exchanges datagrams with one peer.
#[derive(Debug)]
pub(crate) enum Socket {
    Kernel(net::UdpSocket),
    Stack(ackline_runtime::UdpSocket),
}

impl Socket {
    pub(crate) async fn send(&self, datagram: &[u8]) -> io::Result<()> {
        match self {
            Self::Kernel(socket) => socket.send(datagram).await.map(drop),
            Self::Stack(socket) => socket.send(datagram).await.map(drop),
        }
    }

    pub(crate) async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Kernel(socket) => socket.recv(buffer).await,
            Self::Stack(socket) => socket.recv(buffer).await,
        }
    }
}
