//! The datagrams of one client to one address and port, as a stream.

use ackline_runtime::UdpFlow;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A UDP flow: a read is one datagram, and so is a write. What of a datagram does not fit into the
/// reader's buffer is lost.
///
/// If nothing has passed for [`udp_timeout`](super::IpStackConfig::udp_timeout), it ends, and reads
/// fail with `TimedOut`.
#[derive(Debug)]
pub struct IpStackUdpStream {
    flow: UdpFlow,
    client: SocketAddr,
    destination: SocketAddr,
}

impl IpStackUdpStream {
    pub(super) fn new(flow: UdpFlow) -> io::Result<Self> {
        let (client, destination) = (flow.peer_addr()?, flow.local_addr()?);
        Ok(Self { flow, client, destination })
    }

    /// The client, which is on this side of the tunnel.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.client
    }

    /// Where the client sends to.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.destination
    }
}

impl AsRef<UdpFlow> for IpStackUdpStream {
    fn as_ref(&self) -> &UdpFlow {
        &self.flow
    }
}

impl AsyncRead for IpStackUdpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        loop {
            ready!(self.flow.poll_recv(cx, buf))?;
            if buf.filled().len() > before || buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for IpStackUdpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.flow.poll_send(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(feature = "futures-io")]
crate::futures_streams::of_tokio!(IpStackUdpStream);
