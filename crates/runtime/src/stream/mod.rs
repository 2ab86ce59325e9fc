//! A connection as an application sees it.

mod split;

pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};

use crate::io_error;
use crate::stack::shard::Anchor;
use crate::stack::state::{Side, State};
use ackline_tcp_core::endpoint::Conn;
use ackline_tcp_core::info::Info;
use ackline_tcp_core::policy::{NewAckPolicy, NewCongestionControl};
use ackline_tcp_core::{ConnId, Duration, Instant, State as TcpState};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::poll_proceed;

/// Bytes that one call copies under the stack's lock: few enough that nobody waits long, and that they are
/// still in the cache when they are sent or used.
const COPY_LIMIT: usize = 256 << 10;

/// A TCP connection of a [`Stack`](crate::Stack).
///
/// `poll_shutdown` sends a FIN after what was written; reading goes on. Dropping the stream closes it in the
/// background: what was written and a FIN are still delivered, unless received data was not read, or
/// [`set_linger`](Self::set_linger) says so: then the peer gets a RST (RFC 9293, section 3.6.1; RFC 2525,
/// section 2.17).
#[derive(Debug)]
pub struct TcpStream {
    conn: Arc<Handle>,
}

impl TcpStream {
    /// Takes a connection over; it is released when the stream is dropped.
    pub(crate) fn new(shard: Arc<Anchor>, id: ConnId) -> io::Result<Self> {
        let (local, remote) = shard.lock().conn(id)?.addresses();
        Ok(Self { conn: Arc::new(Handle { shard, id, local, remote }) })
    }

    pub(crate) fn poll_connected(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Handle { shard, id, .. } = &*self.conn;
        let mut state = shard.lock();
        let conn = state.conn(*id)?;
        if let Some(error) = conn.error() {
            return Poll::Ready(Err(io_error::conn(error)));
        }
        match conn.state() {
            TcpState::SynSent | TcpState::SynReceived => {
                state.await_side(*id, Side::Write, cx.waker());
                Poll::Pending
            }
            TcpState::Closed => Poll::Ready(Err(io_error::gone())),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// The peer's address.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.conn.remote
    }

    /// The near address; for a connection accepted by a listener on any address, the destination that the
    /// peer asked for.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.conn.local
    }

    /// A snapshot of the connection, as Linux's `TCP_INFO`.
    ///
    /// # Errors
    /// `NetworkDown` where the device is gone.
    pub fn info(&self) -> io::Result<Info> {
        self.conn.info()
    }

    /// `TCP_NODELAY`: small segments leave at once (no Nagle's algorithm).
    ///
    /// # Errors
    /// `NetworkDown` where the device is gone.
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_nodelay(now, on))
    }

    /// `TCP_CORK`: only full segments leave until it is set off again.
    ///
    /// # Errors
    /// `NetworkDown` where the device is gone.
    pub fn set_cork(&self, on: bool) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_cork(now, on))
    }

    /// Swaps the congestion control; the new one starts from the old one's window and threshold.
    ///
    /// # Errors
    /// `NetworkDown` where the device is gone.
    pub fn set_congestion_control(&self, make: &NewCongestionControl) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_congestion_control(now, make))
    }

    /// Swaps the ACK policy.
    ///
    /// # Errors
    /// `NetworkDown` where the device is gone.
    pub fn set_ack_policy(&self, make: &NewAckPolicy) -> io::Result<()> {
        self.conn.with(|conn, now| conn.set_ack_policy(now, make))
    }

    /// What dropping the stream does. `None`, the default: it closes in the background, however long the peer
    /// takes. `Some(zero)`: it resets. `Some(limit)`: it closes in the background and is reset where that
    /// takes longer than `limit`.
    pub fn set_linger(&self, linger: Option<std::time::Duration>) {
        let Handle { shard, id, .. } = &*self.conn;
        shard.lock().set_linger(*id, linger.map(Duration::from));
    }

    /// As set by [`set_linger`](Self::set_linger).
    #[must_use]
    pub fn linger(&self) -> Option<std::time::Duration> {
        let Handle { shard, id, .. } = &*self.conn;
        shard.lock().linger(*id).map(std::time::Duration::from)
    }

    /// Lets `act` use the core's view of the connection: to configure or read its policies, for instance. The
    /// stack stands still while it runs, so it must not wait, nor use the stack or a stream of it.
    ///
    /// # Errors
    /// `NetworkDown` where the device is gone.
    pub fn with_core<R>(&self, act: impl FnOnce(&mut Conn<'_>, Instant) -> R) -> io::Result<R> {
        self.conn.with(act)
    }

    /// Resets the connection and throws away what is queued. Reads and writes fail with `ConnectionAborted`.
    pub fn abort(&self) {
        // Where the device is gone there is nobody to tell.
        let _ = self.conn.with(|conn, now| conn.abort(now));
    }

    /// Lets `use_data` see what was received, in place and in order, and say how many bytes it used up; these
    /// are freed. Waits until there is something. The two pieces are empty at the end of the stream.
    ///
    /// The stack stands still while `use_data` runs: it may hash or copy, but must not wait, nor use the stack or
    /// a stream of it.
    ///
    /// # Errors
    /// As reading.
    pub async fn with_readable<R>(
        &mut self,
        use_data: impl FnOnce([&[u8]; 2]) -> (usize, R),
    ) -> io::Result<R> {
        self.conn.with_readable(use_data).await
    }

    /// Lets `fill` write into at most `max` bytes of the send buffer in place and say how many bytes it wrote.
    /// Waits until there is room.
    ///
    /// The stack stands still while `fill` runs: it must not wait, nor use the stack or a stream of it.
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

    /// Waits until the peer has acknowledged everything that was written, and the FIN. To be called after
    /// `shutdown`; without it this waits for the end of the connection.
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

    /// Splits the stream into two halves that different tasks may own. Dropping the write half sends a FIN;
    /// the connection is released when both are gone.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        split::owned(self)
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

/// The connection that a stream, or its two halves, own.
#[derive(Debug)]
struct Handle {
    shard: Arc<Anchor>,
    id: ConnId,
    local: SocketAddr,
    remote: SocketAddr,
}

/// What an application may wait for. What was received can be read, and what was delivered is delivered, also when the device is gone.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Read,
    Write,
    Flush,
}

impl Operation {
    const fn side(self) -> Side {
        match self {
            Self::Read => Side::Read,
            Self::Write | Self::Flush => Side::Write,
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shard.act(|state, now, _| state.release(now, self.id));
    }
}

impl Handle {
    fn with<R>(&self, act: impl FnOnce(&mut Conn<'_>, Instant) -> R) -> io::Result<R> {
        self.shard.act(|state, now, _| state.conn(self.id).map(|mut conn| act(&mut conn, now)))
    }

    fn info(&self) -> io::Result<Info> {
        self.shard.lock().conn(self.id).map(|conn| conn.info())
    }

    fn shutdown(&self) -> io::Result<()> {
        self.with(|conn, now| match conn.error() {
            Some(error) => Err(io_error::conn(error)),
            None => {
                conn.shutdown(now);
                Ok(())
            }
        })?
    }

    /// Runs `act` as one operation: where it says that there is nothing to be done yet, the task waits for news.
    fn poll_operation<R>(
        &self,
        cx: &mut Context<'_>,
        operation: Operation,
        act: impl FnOnce(&mut Conn<'_>, Instant) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        let budget = ready!(poll_proceed(cx));
        let outcome = self.shard.act(|state: &mut State, now, _| {
            let mut conn = match operation {
                Operation::Write => state.conn(self.id)?,
                Operation::Read | Operation::Flush => state.remains(self.id)?,
            };
            let outcome = act(&mut conn, now);
            if outcome.is_pending() {
                if let Some(failure) = state.failure() {
                    return Poll::Ready(Err(failure));
                }
                state.await_side(self.id, operation.side(), cx.waker());
            }
            outcome
        });
        if outcome.is_ready() {
            budget.made_progress();
        }
        outcome
    }

    fn poll_readable<R>(
        &self,
        cx: &mut Context<'_>,
        use_data: impl FnOnce([&[u8]; 2]) -> (usize, R),
    ) -> Poll<io::Result<R>> {
        self.poll_operation(cx, Operation::Read, |conn, now| {
            let pieces = conn.peek();
            let there = pieces[0].len() + pieces[1].len();
            if there == 0 && !conn.at_end() {
                return match conn.error() {
                    Some(error) => Poll::Ready(Err(io_error::conn(error))),
                    None => Poll::Pending,
                };
            }
            let (used, outcome) = use_data(pieces);
            if used > 0 {
                conn.consume(now, used.min(there));
            }
            Poll::Ready(Ok(outcome))
        })
    }

    fn poll_read(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        self.poll_readable(cx, |pieces| {
            let before = buf.remaining();
            for piece in pieces {
                let room = buf.remaining().min((COPY_LIMIT + buf.remaining()).saturating_sub(before));
                buf.put_slice(&piece[..piece.len().min(room)]);
            }
            (before - buf.remaining(), ())
        })
    }

    fn poll_write(&self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.poll_operation(cx, Operation::Write, |conn, now| {
            let mut written = 0;
            for buf in bufs.iter().filter(|buf| !buf.is_empty()) {
                let wanted = buf.len().min(COPY_LIMIT - written);
                match conn.write(now, &buf[..wanted]) {
                    Ok(taken) => {
                        written += taken;
                        if taken < buf.len() {
                            break;
                        }
                    }
                    // What the first pieces achieved must be reported; the next call meets the error again.
                    Err(_) if written > 0 => break,
                    Err(error) => return Poll::Ready(Err(io_error::stream(error))),
                }
            }
            if written == 0 && bufs.iter().any(|buf| !buf.is_empty()) {
                return Poll::Pending;
            }
            Poll::Ready(Ok(written))
        })
    }

    fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_operation(cx, Operation::Flush, |conn, _| match (conn.error(), conn.state()) {
            _ if conn.is_flushed() => Poll::Ready(Ok(())),
            (Some(error), _) => Poll::Ready(Err(io_error::conn(error))),
            // An RST may take the place of the ACK of the FIN, with everything before it delivered.
            (None, TcpState::Closed) => Poll::Ready(Ok(())),
            (None, _) => Poll::Pending,
        })
    }

    async fn with_readable<R>(&self, use_data: impl FnOnce([&[u8]; 2]) -> (usize, R)) -> io::Result<R> {
        let mut use_data = Some(use_data);
        poll_fn(|cx| {
            self.poll_readable(cx, |pieces| {
                let use_data = use_data.take().expect("a ready future is not polled again");
                use_data(pieces)
            })
        })
        .await
    }

    async fn write_with(&self, max: usize, fill: impl FnOnce([&mut [u8]; 2]) -> usize) -> io::Result<usize> {
        let mut fill = Some(fill);
        poll_fn(|cx| {
            self.poll_operation(cx, Operation::Write, |conn, now| {
                let written = conn.write_with(now, max, |room| match fill.take() {
                    Some(fill) => fill(room),
                    None => 0,
                });
                match written {
                    // The core had no room to offer, and noted that a writer waits.
                    Ok(_) if fill.is_some() && max > 0 => Poll::Pending,
                    Ok(written) => Poll::Ready(Ok(written)),
                    Err(error) => Poll::Ready(Err(io_error::stream(error))),
                }
            })
        })
        .await
    }
}
