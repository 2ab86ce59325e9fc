//! The two directions of a stream, for two owners.

use super::{Handle, TcpStream};
use ackline_tcp_core::info::Info;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(super) fn borrowed(stream: &mut TcpStream) -> (ReadHalf<'_>, WriteHalf<'_>) {
    (ReadHalf { conn: &stream.conn }, WriteHalf { conn: &stream.conn })
}

pub(super) fn owned(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let conn = stream.conn;
    (OwnedReadHalf { conn: conn.clone() }, OwnedWriteHalf { conn, shutdown_on_drop: true })
}

/// The reading half of a [`TcpStream::split`].
#[derive(Debug)]
pub struct ReadHalf<'a> {
    conn: &'a Handle,
}

/// The writing half of a [`TcpStream::split`].
#[derive(Debug)]
pub struct WriteHalf<'a> {
    conn: &'a Handle,
}

/// The reading half of a [`TcpStream::into_split`].
#[derive(Debug)]
pub struct OwnedReadHalf {
    conn: Arc<Handle>,
}

/// The writing half of a [`TcpStream::into_split`]. Dropping it sends a FIN after what was written.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    conn: Arc<Handle>,
    shutdown_on_drop: bool,
}

/// The halves given to [`OwnedReadHalf::reunite`] are not of one stream.
#[derive(Debug)]
pub struct ReuniteError(
    /// The reading half.
    pub OwnedReadHalf,
    /// The writing half.
    pub OwnedWriteHalf,
);

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the two halves are not of one stream")
    }
}

impl std::error::Error for ReuniteError {}

impl OwnedReadHalf {
    /// Makes one stream of its two halves again.
    ///
    /// # Errors
    /// Returns the halves where they belong to different streams.
    pub fn reunite(self, write: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        if !Arc::ptr_eq(&self.conn, &write.conn) {
            return Err(ReuniteError(self, write));
        }
        write.forget();
        Ok(TcpStream { conn: self.conn })
    }

    /// As [`TcpStream::with_readable`].
    ///
    /// # Errors
    /// As reading.
    pub async fn with_readable<R>(
        &mut self,
        use_data: impl FnOnce([&[u8]; 2]) -> (usize, R),
    ) -> io::Result<R> {
        self.conn.with_readable(use_data).await
    }
}

impl ReadHalf<'_> {
    /// As [`TcpStream::with_readable`].
    ///
    /// # Errors
    /// As reading.
    pub async fn with_readable<R>(
        &mut self,
        use_data: impl FnOnce([&[u8]; 2]) -> (usize, R),
    ) -> io::Result<R> {
        self.conn.with_readable(use_data).await
    }
}

impl WriteHalf<'_> {
    /// As [`TcpStream::flushed`].
    ///
    /// # Errors
    /// Where the connection ends with an error first.
    pub async fn flushed(&mut self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.conn.poll_flushed(cx)).await
    }
}

impl OwnedWriteHalf {
    /// Gives the half up without a FIN.
    pub fn forget(mut self) {
        self.shutdown_on_drop = false;
    }

    /// As [`TcpStream::write_with`].
    ///
    /// # Errors
    /// As writing.
    pub async fn write_with(
        &mut self,
        max: usize,
        fill: impl FnOnce([&mut [u8]; 2]) -> usize,
    ) -> io::Result<usize> {
        self.conn.write_with(max, fill).await
    }

    /// As [`TcpStream::flushed`].
    ///
    /// # Errors
    /// Where the connection ends with an error first.
    pub async fn flushed(&mut self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.conn.poll_flushed(cx)).await
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.shutdown_on_drop {
            // Fails where the connection ended already.
            let _ = self.conn.shutdown();
        }
    }
}

/// Questions that either half answers.
macro_rules! questions {
    ($($half:ty),*) => {$(
        impl $half {
            /// The peer's address.
            #[must_use]
            pub fn peer_addr(&self) -> SocketAddr {
                self.conn.remote
            }

            /// The near address.
            #[must_use]
            pub fn local_addr(&self) -> SocketAddr {
                self.conn.local
            }

            /// A snapshot of the connection.
            ///
            /// # Errors
            /// `NetworkDown` where the device is gone.
            pub fn info(&self) -> io::Result<Info> {
                self.conn.info()
            }
        }
    )*};
}

questions!(ReadHalf<'_>, WriteHalf<'_>, OwnedReadHalf, OwnedWriteHalf);

macro_rules! reads {
    ($($half:ty),*) => {$(
        impl AsyncRead for $half {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.conn.poll_read(cx, buf)
            }
        }
    )*};
}

reads!(ReadHalf<'_>, OwnedReadHalf);

macro_rules! writes {
    ($($half:ty),*) => {$(
        impl AsyncWrite for $half {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.conn.poll_write(cx, &[IoSlice::new(buf)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.conn.poll_write(cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(self.conn.shutdown())
            }
        }
    )*};
}

writes!(WriteHalf<'_>, OwnedWriteHalf);
