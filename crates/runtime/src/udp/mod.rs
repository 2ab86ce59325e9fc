//! UDP on a [`Stack`](crate::Stack): sockets like tokio's, and flows to any address and port.
//!
//! Datagrams leave and arrive through the stack's device and egress scheduler, beside its TCP.
//! Queues are bounded by [`udp_recv_buffer`](ackline_tcp_core::EndpointConfig::udp_recv_buffer) and
//! [`udp_send_buffer`](ackline_tcp_core::EndpointConfig::udp_send_buffer), and by the stack's
//! memory budget; what finds no room is dropped and counted (`UdpRcvbufErrors`). Nothing is
//! fragmented: a datagram that is longer than the device's MTU allows is refused.

mod flow;
mod handle;

pub use ackline_tcp_core::endpoint::UdpStats;
pub use flow::{IncomingUdp, UdpFlow};
pub(crate) use handle::Handle;

use crate::io_error;
use handle::first_of;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use tokio::io::ReadBuf;
use tokio::net::ToSocketAddrs;

/// An arrival at a socket.
#[derive(Debug)]
pub enum UdpArrival {
    /// A datagram.
    Datagram {
        /// Its length.
        len: usize,
        /// Sender.
        from: SocketAddr,
    },
    /// An ICMP error about an earlier datagram.
    Error {
        /// Where that went.
        to: SocketAddr,
        /// What is wrong there.
        error: io::Error,
    },
}

/// A UDP socket of a [`Stack`](crate::Stack). Its methods are those of [`tokio::net::UdpSocket`];
/// several tasks may use it at once.
///
/// An unspecified address means all of the stack's addresses of that family. An error that ICMP
/// reports about a datagram (nobody listens there: `ConnectionRefused`) is returned once, by the
/// next operation, if the socket is [connected](Self::connect).
///
/// ```no_run
/// # async fn example(stack: &ackline_runtime::Stack) -> std::io::Result<()> {
/// use ackline_runtime::UdpSocket;
///
/// let socket = UdpSocket::bind(stack, "0.0.0.0:7").await?;
/// let mut buf = [0; 2048];
/// loop {
///     let (len, peer) = socket.recv_from(&mut buf).await?;
///     socket.send_to(&buf[..len], peer).await?;
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct UdpSocket {
    handle: Handle,
}

impl UdpSocket {
    pub(crate) fn new(handle: Handle) -> Self {
        Self { handle }
    }

    /// The address that it is bound to.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.handle.addresses().map(|(local, _)| local)
    }

    /// The address that it is connected to.
    ///
    /// # Errors
    /// `NotConnected` if it is not.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.handle.peer()
    }

    /// Connects to the first of the addresses that can be sent to: [`send`](Self::send) sends
    /// there, only datagrams from there are received, and ICMP errors are reported. A socket of any
    /// address gets the one that it sends from.
    ///
    /// # Errors
    /// `InvalidInput` if it is no address of a host, or of the other family; `AddrNotAvailable` if
    /// the stack has no address of that family; `NetworkDown` if the device is gone.
    pub async fn connect(&self, addr: impl ToSocketAddrs) -> io::Result<()> {
        let mut last = None;
        for addr in tokio::net::lookup_host(addr).await? {
            match self.handle.connect(addr) {
                Ok(()) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(io_error::no_address))
    }

    /// Sends a datagram to the first of the addresses; waits while too much waits for the device.
    /// Returns its length.
    ///
    /// # Errors
    /// `InvalidInput` if it is longer than the path carries, or the address cannot be sent to;
    /// `AddrNotAvailable`; `OutOfMemory`; `NetworkDown`; what ICMP has reported.
    pub async fn send_to(&self, buf: &[u8], target: impl ToSocketAddrs) -> io::Result<usize> {
        let to = first_of(target).await?;
        self.handle.send(Some(to), buf).await
    }

    /// Sends a datagram to where the socket is connected to.
    ///
    /// # Errors
    /// `NotConnected` if it is not; otherwise as [`send_to`](Self::send_to).
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.handle.send(None, buf).await
    }

    /// Waits for a datagram, and returns its length and who sent it. What does not fit into `buf`
    /// is lost.
    ///
    /// # Errors
    /// What ICMP has reported; `NetworkDown` if the device is gone and nothing is left to be
    /// received.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.handle.recv(buf).await
    }

    /// The same without the sender.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.handle.recv(buf).await.map(|(len, _)| len)
    }

    /// With `on`, [`recv_or_report`](Self::recv_or_report) tells of ICMP errors about datagrams
    /// that were sent without a connection (Linux: `IP_RECVERR`). Default: off.
    ///
    /// # Errors
    /// None.
    pub fn report_errors(&self, on: bool) -> io::Result<()> {
        self.handle.report_errors(on)
    }

    /// As [`recv_from`](Self::recv_from), and tells whom ICMP errors are about, if the socket
    /// [wants that](Self::report_errors).
    ///
    /// # Errors
    /// As there.
    pub async fn recv_or_report(&self, buf: &mut [u8]) -> io::Result<UdpArrival> {
        self.handle.recv_or_report(buf).await
    }

    /// Waits for a datagram and copies what fits, without taking it.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.handle.peek(buf).await
    }

    /// Sends a datagram if there is room.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; otherwise as [`send_to`](Self::send_to).
    pub fn try_send_to(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.handle.try_send(Some(target), buf)
    }

    /// Sends a datagram to where the socket is connected to, if there is room.
    ///
    /// # Errors
    /// As [`try_send_to`](Self::try_send_to), and `NotConnected`.
    pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
        self.handle.try_send(None, buf)
    }

    /// Takes a datagram if there is one.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; otherwise as [`recv_from`](Self::recv_from).
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.handle.try_recv(buf)
    }

    /// The same without the sender.
    ///
    /// # Errors
    /// As [`try_recv_from`](Self::try_recv_from).
    pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.handle.try_recv(buf).map(|(len, _)| len)
    }

    /// Waits until a receive would not wait.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from), but for what ICMP has reported: that is readable.
    pub async fn readable(&self) -> io::Result<()> {
        self.handle.readable().await
    }

    /// Waits until there is room for a datagram of the largest size.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub async fn writable(&self) -> io::Result<()> {
        self.handle.writable().await
    }

    /// As [`send_to`](Self::send_to), but only the task of the latest call of the `poll_send`
    /// functions is woken.
    ///
    /// # Errors
    /// As there.
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.handle.poll_send(cx, Some(target), buf)
    }

    /// As [`send`](Self::send), but only the task of the latest call of the `poll_send` functions
    /// is woken.
    ///
    /// # Errors
    /// As there.
    pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.handle.poll_send(cx, None, buf)
    }

    /// As [`recv_from`](Self::recv_from), but only the task of the latest call of the `poll_recv`
    /// functions is woken.
    ///
    /// # Errors
    /// As there.
    pub fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        self.handle.poll_recv(cx, buf)
    }

    /// The same without the sender.
    ///
    /// # Errors
    /// As there.
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.handle.poll_recv(cx, buf).map_ok(drop)
    }

    /// What ICMP has reported and no operation has returned.
    ///
    /// # Errors
    /// None.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.handle.take_error())
    }

    /// Traffic of the socket.
    #[must_use]
    pub fn stats(&self) -> UdpStats {
        self.handle.stats()
    }
}
