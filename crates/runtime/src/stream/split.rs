//! Read and write halves of a stream.

use super::TcpStream;
use crate::info::Info;
use bytes::{BufMut, Bytes};
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};

pub(super) fn borrowed(stream: &mut TcpStream) -> (ReadHalf<'_>, WriteHalf<'_>) {
    (ReadHalf { stream }, WriteHalf { stream })
}

pub(super) fn owned(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let stream = Arc::new(stream);
    (OwnedReadHalf { stream: stream.clone() }, OwnedWriteHalf { stream, shutdown_on_drop: true })
}

/// The reading half of a [`TcpStream::split`].
#[derive(Debug)]
pub struct ReadHalf<'a> {
    stream: &'a TcpStream,
}

/// The writing half of a [`TcpStream::split`].
#[derive(Debug)]
pub struct WriteHalf<'a> {
    stream: &'a TcpStream,
}

/// The reading half of a [`TcpStream::into_split`].
#[derive(Debug)]
pub struct OwnedReadHalf {
    stream: Arc<TcpStream>,
}

/// The writing half of a [`TcpStream::into_split`]. Dropping it sends a FIN after the written data.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    stream: Arc<TcpStream>,
    shutdown_on_drop: bool,
}

/// The halves passed to [`OwnedReadHalf::reunite`] belong to different streams.
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

fn reunite(read: OwnedReadHalf, write: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
    if !Arc::ptr_eq(&read.stream, &write.stream) {
        return Err(ReuniteError(read, write));
    }
    write.forget();
    Ok(Arc::into_inner(read.stream).expect("a stream has two halves, and this was the last"))
}

impl OwnedReadHalf {
    /// Joins two halves into a stream again.
    ///
    /// # Errors
    /// Returns the halves if they belong to different streams.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        reunite(self, other)
    }
}

impl OwnedWriteHalf {
    /// Joins two halves into a stream again.
    ///
    /// # Errors
    /// Returns the halves if they belong to different streams.
    pub fn reunite(self, other: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        reunite(other, self)
    }

    /// Drops the half without sending a FIN.
    pub fn forget(mut self) {
        self.shutdown_on_drop = false;
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        if self.shutdown_on_drop {
            // Fails if the connection ended already.
            let _ = self.stream.conn.shutdown();
        }
    }
}

/// Methods of both halves.
macro_rules! both {
    ($($half:ty),*) => {$(
        impl $half {
            /// The peer's address.
            ///
            /// # Errors
            /// None.
            pub fn peer_addr(&self) -> io::Result<SocketAddr> {
                self.stream.peer_addr()
            }

            /// The local address.
            ///
            /// # Errors
            /// None.
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                self.stream.local_addr()
            }

            /// A snapshot of the connection.
            ///
            /// # Errors
            /// `NetworkDown` if the device is gone.
            pub fn info(&self) -> io::Result<Info> {
                self.stream.info()
            }

            /// As [`TcpStream::ready`].
            ///
            /// # Errors
            /// As there.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.stream.ready(interest).await
            }
        }

        impl AsRef<TcpStream> for $half {
            fn as_ref(&self) -> &TcpStream {
                &self.stream
            }
        }
    )*};
}

both!(ReadHalf<'_>, WriteHalf<'_>, OwnedReadHalf, OwnedWriteHalf);

macro_rules! reads {
    ($($half:ty),*) => {$(
        impl $half {
            /// As [`TcpStream::poll_peek`].
            ///
            /// # Errors
            /// As there.
            pub fn poll_peek(
                &mut self,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<usize>> {
                self.stream.poll_peek(cx, buf)
            }

            /// As [`TcpStream::peek`].
            ///
            /// # Errors
            /// As there.
            pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                self.stream.peek(buf).await
            }

            /// As [`TcpStream::readable`].
            ///
            /// # Errors
            /// As there.
            pub async fn readable(&self) -> io::Result<()> {
                self.stream.readable().await
            }

            /// As [`TcpStream::try_read`].
            ///
            /// # Errors
            /// As there.
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.stream.try_read(buf)
            }

            /// As [`TcpStream::try_read_vectored`].
            ///
            /// # Errors
            /// As there.
            pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.stream.try_read_vectored(bufs)
            }

            /// As [`TcpStream::try_read_buf`].
            ///
            /// # Errors
            /// As there.
            pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                self.stream.try_read_buf(buf)
            }

            /// As [`TcpStream::with_readable`].
            ///
            /// # Errors
            /// As for reads.
            pub async fn with_readable<R>(
                &mut self,
                use_data: impl FnOnce([&[u8]; 2]) -> (usize, R),
            ) -> io::Result<R> {
                self.stream.conn.with_readable(use_data).await
            }

            /// As [`TcpStream::read_chunk`].
            ///
            /// # Errors
            /// As for reads.
            pub async fn read_chunk(&mut self, max: usize) -> io::Result<Option<Bytes>> {
                self.stream.conn.read_chunk(max).await
            }

            /// As [`TcpStream::poll_read_chunk`].
            ///
            /// # Errors
            /// As for reads.
            pub fn poll_read_chunk(
                &mut self,
                cx: &mut Context<'_>,
                max: usize,
            ) -> Poll<io::Result<Option<Bytes>>> {
                self.stream.conn.poll_read_chunk(cx, max)
            }

            /// As [`TcpStream::try_read_chunk`].
            ///
            /// # Errors
            /// As there.
            pub fn try_read_chunk(&self, max: usize) -> io::Result<Option<Bytes>> {
                self.stream.try_read_chunk(max)
            }
        }

        impl AsyncRead for $half {
            fn poll_read(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                self.stream.conn.poll_read(cx, buf)
            }
        }
    )*};
}

reads!(ReadHalf<'_>, OwnedReadHalf);

macro_rules! writes {
    ($($half:ty),*) => {$(
        impl $half {
            /// As [`TcpStream::writable`].
            ///
            /// # Errors
            /// As there.
            pub async fn writable(&self) -> io::Result<()> {
                self.stream.writable().await
            }

            /// As [`TcpStream::try_write`].
            ///
            /// # Errors
            /// As there.
            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                self.stream.try_write(buf)
            }

            /// As [`TcpStream::try_write_vectored`].
            ///
            /// # Errors
            /// As there.
            pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                self.stream.try_write_vectored(bufs)
            }

            /// As [`TcpStream::write_with`].
            ///
            /// # Errors
            /// As for writes.
            pub async fn write_with(
                &mut self,
                max: usize,
                fill: impl FnOnce([&mut [u8]; 2]) -> usize,
            ) -> io::Result<usize> {
                self.stream.conn.write_with(max, fill).await
            }

            /// As [`TcpStream::write_bytes`].
            ///
            /// # Errors
            /// As for writes.
            pub async fn write_bytes(&mut self, chunk: Bytes) -> io::Result<()> {
                self.stream.conn.write_bytes(chunk).await
            }

            /// As [`TcpStream::poll_write_bytes`].
            ///
            /// # Errors
            /// As there.
            pub fn poll_write_bytes(
                &mut self,
                cx: &mut Context<'_>,
                chunk: &mut Bytes,
            ) -> Poll<io::Result<usize>> {
                self.stream.conn.poll_write_bytes(cx, chunk)
            }

            /// As [`TcpStream::try_write_bytes`].
            ///
            /// # Errors
            /// As there.
            pub fn try_write_bytes(&self, chunk: &mut Bytes) -> io::Result<usize> {
                self.stream.try_write_bytes(chunk)
            }

            /// As [`TcpStream::flushed`].
            ///
            /// # Errors
            /// If the connection ends with an error first.
            pub async fn flushed(&mut self) -> io::Result<()> {
                std::future::poll_fn(|cx| self.stream.conn.poll_flushed(cx)).await
            }
        }

        impl AsyncWrite for $half {
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                self.stream.conn.poll_write(cx, &[IoSlice::new(buf)])
            }

            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.stream.conn.poll_write(cx, bufs)
            }

            fn is_write_vectored(&self) -> bool {
                true
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(self.stream.conn.shutdown())
            }
        }
    )*};
}

writes!(WriteHalf<'_>, OwnedWriteHalf);
