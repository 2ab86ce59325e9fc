//! A connection that ends when it has been idle for too long.

use ackline_runtime::TcpStream;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A connection. Dropping it closes it in the background, as [`ackline_runtime::TcpStream`] does.
///
/// If nothing is read or written for [`timeout`](super::TcpConfig::timeout), it is reset, and reads
/// fail with `TimedOut`.
#[derive(Debug)]
pub struct IpStackTcpStream {
    stream: TcpStream,
    client: SocketAddr,
    destination: SocketAddr,
    timeout: Duration,
    /// When something was read or written last.
    active: Instant,
    /// Expires no later than the timeout after that. Moving it with each read would cost more than
    /// looking at `active` when it expires.
    alarm: Pin<Box<Sleep>>,
}

impl IpStackTcpStream {
    pub(super) fn new(
        stream: TcpStream,
        client: SocketAddr,
        destination: SocketAddr,
        timeout: Duration,
    ) -> Self {
        let alarm = Box::pin(sleep(timeout));
        Self { stream, client, destination, timeout, active: Instant::now(), alarm }
    }

    /// The client, which is on this side of the tunnel.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.client
    }

    /// Where the client wants to go.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.destination
    }

    /// The stream with all that it can do: settings, policies, chunks, [`info`][1]; without the
    /// timeout. This stack's own.
    ///
    /// [1]: ackline_runtime::TcpStream::info
    #[must_use]
    pub fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Ready when it has been idle for too long. It is reset then.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let end = self.active + self.timeout;
            if end <= Instant::now() {
                self.stream.abort();
                return Poll::Ready(());
            }
            self.alarm.as_mut().reset(end);
        }
        Poll::Pending
    }

    /// Something has been read or written.
    fn passed<T>(&mut self, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if matches!(outcome, Poll::Ready(Ok(_))) {
            self.active = Instant::now();
        }
        outcome
    }
}

impl AsRef<TcpStream> for IpStackTcpStream {
    fn as_ref(&self) -> &TcpStream {
        &self.stream
    }
}

impl AsyncRead for IpStackTcpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buf);
        if outcome.is_pending() && self.poll_idle(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.passed(outcome)
    }
}

impl AsyncWrite for IpStackTcpStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.passed(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.passed(outcome)
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
crate::futures_streams::of_tokio!(IpStackTcpStream);
