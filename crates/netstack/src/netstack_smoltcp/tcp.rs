//! Connections: a listener for every address and port, and their streams.

use crate::accept::poll_connection;
use futures_core::Stream;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The connections to any address and port: a stream of each with its client and the address that
/// the client connected to.
#[derive(Debug)]
pub struct TcpListener {
    listener: ackline_runtime::TcpListener,
}

impl TcpListener {
    pub(super) const fn new(listener: ackline_runtime::TcpListener) -> Self {
        Self { listener }
    }
}

impl Stream for TcpListener {
    type Item = (TcpStream, SocketAddr, SocketAddr);

    /// `None` when the stack has ended.
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(poll_connection(&self.listener, cx));
        Poll::Ready(
            next.ok().map(|(stream, local, remote)| (TcpStream { stream, local, remote }, local, remote)),
        )
    }
}

/// A connection. Dropping it closes it in the background, as
/// [`ackline_runtime::TcpStream`] does.
#[derive(Debug)]
pub struct TcpStream {
    stream: ackline_runtime::TcpStream,
    local: SocketAddr,
    remote: SocketAddr,
}

impl TcpStream {
    /// The client, which is on this side of the tunnel.
    #[must_use]
    pub const fn local_addr(&self) -> &SocketAddr {
        &self.local
    }

    /// Where the client wants to go.
    #[must_use]
    pub const fn remote_addr(&self) -> &SocketAddr {
        &self.remote
    }

    /// The stream with all that it can do: settings, policies, chunks, [`info`][1]. This stack's
    /// own.
    ///
    /// [1]: ackline_runtime::TcpStream::info
    #[must_use]
    pub fn into_inner(self) -> ackline_runtime::TcpStream {
        self.stream
    }
}

impl AsRef<ackline_runtime::TcpStream> for TcpStream {
    fn as_ref(&self) -> &ackline_runtime::TcpStream {
        &self.stream
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(feature = "futures-io")]
crate::futures_streams::of_tokio!(TcpStream);
