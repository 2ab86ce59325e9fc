//! A connection as the application sees it.
//!
//! | file | holds |
//! |---|---|
//! | `addresses.rs` | its addresses |
//! | `handle.rs` | the handle to a connection, and its operations |
//! | `readiness.rs` | waiting without reading or writing, and trying without waiting |
//! | `settings.rs` | socket options and policies |
//! | `split.rs` | read and write halves with separate owners |

mod addresses;
mod handle;
mod readiness;
mod settings;
mod split;

pub(crate) use settings::{check_family, check_keepalive, dscp_of_tos, ttl_of};
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};

use crate::info::Info;
use crate::shard::Anchor;
use ackline_tcp_core::endpoint::Conn;
use ackline_tcp_core::{ConnId, Instant};
use bytes::Bytes;
use handle::Handle;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A TCP connection of a [`Stack`](crate::Stack).
///
/// `poll_shutdown` sends a FIN after the written data; reading continues. Dropping the stream
/// closes it in the background: written data and a FIN are still delivered. But if received data
/// was not read, or [`set_linger`](Self::set_linger) says so, the peer gets a RST (RFC 9293,
/// section 3.6.1; RFC 2525, section 2.17). A peer that acknowledges nothing new for
/// [`orphan_timeout`](ackline_tcp_core::EndpointConfig::orphan_timeout) gets one, too.
///
/// Its methods are those of [`tokio::net::TcpStream`], and more; [what
/// differs](crate#parity-with-tokionet).
#[derive(Debug)]
pub struct TcpStream {
    conn: Handle,
}

impl TcpStream {
    /// Takes ownership of a connection; it is released when the stream is dropped.
    pub(crate) fn new(shard: Arc<Anchor>, id: ConnId) -> io::Result<Self> {
        Handle::new(shard, id).map(|conn| Self { conn })
    }

    pub(crate) fn poll_connected(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.conn.poll_connected(cx)
    }

    /// Which of the stack's [shards](crate::stack::Builder::shards) has the connection, from 0.
    #[must_use]
    pub fn shard(&self) -> usize {
        self.conn.shard.index
    }

    /// The runtime that drives the connection's shard. Tasks that serve the connection run there
    /// beside its driver: if that is a thread of its own, neither waits for the other, and no
    /// wake-up crosses threads.
    #[must_use]
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        self.conn.shard.runtime()
    }

    /// The local and the peer's address. Still available after the connection has ended.
    #[must_use]
    pub const fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.conn.addresses.local(), self.conn.addresses.remote())
    }

    /// The peer's address. Still available after the connection has ended.
    ///
    /// # Errors
    /// None.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.conn.addresses.remote())
    }

    /// The local address; for a connection accepted by a listener on any address, the destination
    /// that the peer asked for. Still available after the connection has ended.
    ///
    /// # Errors
    /// None.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.conn.addresses.local())
    }

    /// A snapshot of the connection, like Linux's `TCP_INFO`, with what its policies show of
    /// themselves.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn info(&self) -> io::Result<Info> {
        self.conn.info()
    }

    /// The error that ended the connection, unless a read, a write or this method has already
    /// returned it; `SO_ERROR`. Reads and writes keep returning it.
    ///
    /// # Errors
    /// `NotConnected` if the connection is gone.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.conn.take_error()
    }

    /// Calls `act` with the core's view of the connection, for example to configure its policies.
    /// The stack is locked while it runs: it must not block, nor use the stack or its streams.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone.
    pub fn with_core<R>(&self, act: impl FnOnce(&mut Conn<'_>, Instant) -> R) -> io::Result<R> {
        self.conn.with(act)
    }

    /// Resets the connection and discards queued data. Reads and writes fail with
    /// `ConnectionAborted`.
    pub fn abort(&self) {
        // If the device is gone there is nobody to notify.
        let _ = self.conn.with(|conn, now| conn.abort(now));
    }

    /// Calls `use_data` with the received data, in place and in order; it returns how many bytes it
    /// consumed, which are freed. Waits until there is data. Both pieces are empty at the end of
    /// the stream.
    ///
    /// The stack is locked while `use_data` runs: it may hash or copy, but must not block, nor use
    /// the stack or its streams.
    ///
    /// # Errors
    /// As for reads.
    pub async fn with_readable<R>(
        &mut self,
        use_data: impl FnOnce([&[u8]; 2]) -> (usize, R),
    ) -> io::Result<R> {
        self.conn.with_readable(use_data).await
    }

    /// Lets `fill` write into at most `max` bytes of the send buffer in place; it returns how many
    /// bytes it wrote. Waits until there is room.
    ///
    /// The stack is locked while `fill` runs: it must not block, nor use the stack or its streams.
    ///
    /// # Errors
    /// As for writes.
    pub async fn write_with(
        &mut self,
        max: usize,
        fill: impl FnOnce([&mut [u8]; 2]) -> usize,
    ) -> io::Result<usize> {
        self.conn.write_with(max, fill).await
    }

    /// Takes received data out of the connection: at most `max` bytes, and as many as lie together
    /// in memory, which may be fewer than have arrived. Waits until there is some; `None` is the
    /// end of the stream. With a `max` of 0 the chunk is empty, and nothing is waited for.
    ///
    /// Bulk data is not copied to make chunks, and the lock of the stack is held for less time than
    /// a read holds it. A chunk shares a block of 65,536 bytes with its neighbours, which is freed
    /// when the last of them is dropped: who keeps small parts of a stream for long should copy
    /// them. A small chunk has memory of its own. Chunks and reads may alternate.
    ///
    /// Nothing is lost if the future is dropped before it is ready.
    ///
    /// # Errors
    /// As for reads.
    ///
    /// # Examples
    /// ```
    /// # use ackline_runtime::TcpStream;
    /// /// Passes on what comes, without copying it.
    /// async fn relay(from: &mut TcpStream, to: &mut TcpStream) -> std::io::Result<()> {
    ///     while let Some(chunk) = from.read_chunk(1 << 16).await? {
    ///         to.write_bytes(chunk).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub async fn read_chunk(&mut self, max: usize) -> io::Result<Option<Bytes>> {
        self.conn.read_chunk(max).await
    }

    /// [`read_chunk`](Self::read_chunk) as a poll function.
    ///
    /// # Errors
    /// As for reads.
    pub fn poll_read_chunk(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<io::Result<Option<Bytes>>> {
        self.conn.poll_read_chunk(cx, max)
    }

    /// Writes all of `chunk`: waits until the send buffer has taken its last byte, not until it is
    /// sent.
    ///
    /// The connection shares the memory of a chunk of at least 65,536 bytes instead of copying it,
    /// until the peer has acknowledged the chunk; smaller ones are copied like a write. Shared
    /// memory counts as the connection's. If a chunk is a part of something larger (a slice of a
    /// mapped file), all of that stays until then. Chunks and writes may alternate; the stream has
    /// the order of the calls.
    ///
    /// If the future is dropped before it is ready, a part may have been written:
    /// [`poll_write_bytes`](Self::poll_write_bytes) tells how much.
    ///
    /// # Errors
    /// As for writes.
    ///
    /// # Examples
    /// ```
    /// # use ackline_runtime::TcpStream;
    /// use bytes::Bytes;
    ///
    /// /// Every connection sends from the same memory.
    /// async fn answer(stream: &mut TcpStream, page: &Bytes) -> std::io::Result<()> {
    ///     stream.write_bytes(page.clone()).await
    /// }
    /// ```
    pub async fn write_bytes(&mut self, chunk: Bytes) -> io::Result<()> {
        self.conn.write_bytes(chunk).await
    }

    /// Takes as much of `chunk` as fits into the send buffer off its front, and returns the number
    /// of bytes. Waits until something fits; an empty chunk is ready at once, with 0. As
    /// [`write_bytes`](Self::write_bytes), whether memory is shared depends on what the chunk still
    /// holds: call it again with the same one for the rest, which then is shared, too.
    ///
    /// # Errors
    /// As for writes; then nothing was taken.
    pub fn poll_write_bytes(&mut self, cx: &mut Context<'_>, chunk: &mut Bytes) -> Poll<io::Result<usize>> {
        self.conn.poll_write_bytes(cx, chunk)
    }

    /// Waits until the peer has acknowledged all written data and the FIN. Call it after
    /// `shutdown`; without that it waits for the end of the connection.
    ///
    /// # Errors
    /// If the connection ends with an error before that.
    pub async fn flushed(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.conn.poll_flushed(cx)).await
    }

    /// Splits the stream into two halves that borrow it.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        split::borrowed(self)
    }

    /// Splits the stream into two halves that different tasks may own. Dropping the write half
    /// sends a FIN; the connection is released when both halves are dropped.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        split::owned(self)
    }
}

impl AsRef<Self> for TcpStream {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.conn.poll_read(cx, buf)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
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
