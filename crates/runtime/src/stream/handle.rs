//! A stream's handle to its connection, and the operations of streams and their halves.

use super::addresses::Addresses;
use crate::info::Info;
use crate::io_error;
use crate::shard::Anchor;
use crate::shard::state::StackState;
use crate::shard::turns::{Exchange, Side};
use crate::wakes::Wakes;
use ackline_tcp_core::endpoint::Conn;
use ackline_tcp_core::error::{ConnError, StreamError};
use ackline_tcp_core::{ConnId, Instant, State};
use bytes::Bytes;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::ReadBuf;
use tokio::task::coop::{consume_budget, poll_proceed};

/// Maximum bytes copied under the stack's lock per call: few enough that nobody waits long, and
/// that they are still in the cache when they are sent or used.
const COPY_LIMIT: usize = 256 << 10;

/// A connection that an application owns.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) shard: Arc<Anchor>,
    pub(super) id: ConnId,
    pub(super) addresses: Addresses,
    /// The application has been told of the error that ended the connection.
    told: AtomicBool,
}

/// What an application may wait for. Received data can be read even if the device is gone, and
/// delivered data stays delivered.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    Read,
    Write,
    Flush,
}

/// What to do if an operation has nothing to do yet, or the connection has used up its share of the
/// driver's turn.
#[derive(Clone, Copy, Debug)]
pub(super) enum Otherwise<'a> {
    /// Nothing. The share does not matter.
    GiveUp,
    /// The task is woken.
    Wake(&'a Waker),
    /// Whoever waits for news of the connection is woken.
    Tell,
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
    /// Takes ownership of a connection.
    pub(super) fn new(shard: Arc<Anchor>, id: ConnId) -> io::Result<Self> {
        let addresses = Addresses::new(shard.lock().conn(id)?.addresses());
        Ok(Self { shard, id, addresses, told: AtomicBool::new(false) })
    }

    pub(super) fn poll_connected(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shard.lock();
        let conn = state.conn(self.id)?;
        if let Some(error) = conn.error() {
            return Poll::Ready(Err(io_error::conn(error)));
        }
        match conn.state() {
            State::SynSent | State::SynReceived => {
                state.await_side(self.id, Side::Write, cx.waker());
                Poll::Pending
            }
            State::Closed => Poll::Ready(Err(io_error::gone())),
            _ => Poll::Ready(Ok(())),
        }
    }

    pub(super) fn with<R>(&self, act: impl FnOnce(&mut Conn<'_>, Instant) -> R) -> io::Result<R> {
        self.shard.act(|state, now, _| state.conn(self.id).map(|mut conn| act(&mut conn, now)))
    }

    /// Runs a query that changes nothing.
    pub(super) fn ask<R>(&self, question: impl FnOnce(&Conn<'_>) -> R) -> io::Result<R> {
        self.shard.lock().conn(self.id).map(|conn| question(&conn))
    }

    pub(super) fn info(&self) -> io::Result<Info> {
        self.ask(Info::of)
    }

    /// As on a socket, shutting down a connection that has already ended does nothing, and is no
    /// error.
    pub(super) fn shutdown(&self) -> io::Result<()> {
        self.with(|conn, now| match conn.error() {
            Some(error @ ConnError::Aborted) => Err(io_error::conn(error)),
            Some(_) => Ok(()),
            None => {
                conn.shutdown(now);
                Ok(())
            }
        })?
    }

    /// The error that ended the connection, unless an operation has already returned it.
    pub(super) fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.shard.lock().remains(self.id)?.error();
        Ok(error.filter(|_| !self.told.swap(true, Ordering::Relaxed)).map(io_error::conn))
    }

    /// The error of an operation on an ended connection.
    fn ended(&self, error: ConnError) -> io::Error {
        self.told.store(true, Ordering::Relaxed);
        io_error::conn(error)
    }

    fn refused(&self, error: StreamError) -> io::Error {
        match error {
            StreamError::Connection(error) => self.ended(error),
            other => io_error::stream(other),
        }
    }

    /// Tries `act` once, within the connection's share of the driver's turn.
    pub(super) fn operate<R>(
        &self,
        operation: Operation,
        otherwise: Otherwise<'_>,
        act: impl FnOnce(&mut Conn<'_>, &mut Exchange) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        self.shard.act(|state: &mut StackState, now, wakes| {
            if state.handover.is_open() && !matches!(otherwise, Otherwise::Tell) {
                self.before_waiting(state, operation, wakes);
            }
            let share = match (operation, otherwise) {
                (Operation::Flush, _) | (_, Otherwise::GiveUp) => usize::MAX,
                _ => state.share(self.id, operation.side()),
            };
            let mut conn = match operation {
                Operation::Write => state.conn(self.id)?,
                Operation::Read | Operation::Flush => state.remains(self.id)?,
            };
            let mut exchange = Exchange::new(now, share.min(COPY_LIMIT));
            let outcome = if share > 0 { act(&mut conn, &mut exchange) } else { Poll::Pending };
            state.charge(self.id, &exchange);
            if outcome.is_pending() {
                if let Some(failure) = state.failure() {
                    return Poll::Ready(Err(failure));
                }
                if let Otherwise::Wake(waker) = otherwise {
                    state.await_side(self.id, operation.side(), waker);
                }
            }
            outcome
        })
    }

    /// If the operation would have to wait: the connection has nothing more to do in this turn. If
    /// it is the last one, it runs the next.
    fn before_waiting(&self, state: &mut StackState, operation: Operation, wakes: &mut Wakes) {
        if state.would_wait(self.id, operation.side()) {
            state.give_back(self.id);
            let mut again = false;
            state.take_turns(wakes, |state| {
                again = !state.would_wait(self.id, operation.side());
                again
            });
            if again {
                state.go_on(self.id, wakes);
            }
        }
    }

    /// Runs `act` as one operation of the current task.
    pub(super) fn poll_operation<R>(
        &self,
        cx: &mut Context<'_>,
        operation: Operation,
        act: impl FnOnce(&mut Conn<'_>, &mut Exchange) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        let budget = ready!(poll_proceed(cx));
        let outcome = self.operate(operation, Otherwise::Wake(cx.waker()), act);
        if outcome.is_ready() {
            budget.made_progress();
        }
        outcome
    }

    /// Waits until `attempt` has a result. Unlike the single polling reader and writer, any number
    /// of tasks may wait.
    pub(super) async fn when<R>(&self, mut attempt: impl FnMut() -> Poll<io::Result<R>>) -> io::Result<R> {
        consume_budget().await;
        if let Poll::Ready(outcome) = attempt() {
            return outcome;
        }
        let news = self.shard.lock().news(self.id).ok_or_else(io_error::gone)?;
        loop {
            let mut next = pin!(news.notified());
            // Registered before the next check, so that nothing in between is missed.
            next.as_mut().enable();
            if let Poll::Ready(outcome) = attempt() {
                return outcome;
            }
            next.await;
        }
    }

    /// Calls `use_data` with the received data and the number of bytes that may be copied; it
    /// returns how many bytes it consumed.
    pub(super) fn receive<'a, R>(
        &'a self,
        use_data: impl FnOnce([&[u8]; 2], usize) -> (usize, R) + 'a,
    ) -> impl FnOnce(&mut Conn<'_>, &mut Exchange) -> Poll<io::Result<R>> + 'a {
        move |conn, exchange| {
            let pieces = conn.peek();
            let there = pieces[0].len() + pieces[1].len();
            if there == 0 && !conn.at_end() {
                return match conn.error() {
                    Some(error) => Poll::Ready(Err(self.ended(error))),
                    None => Poll::Pending,
                };
            }
            let (used, outcome) = use_data(pieces, exchange.left());
            if used > 0 {
                conn.consume(exchange.now, used.min(there));
                exchange.add(used.min(there));
            }
            Poll::Ready(Ok(outcome))
        }
    }

    pub(super) fn poll_read(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let copy = |pieces: [&[u8]; 2], most| {
            let before = buf.remaining();
            for piece in few(pieces, most) {
                buf.put_slice(&piece[..piece.len().min(buf.remaining())]);
            }
            (before - buf.remaining(), ())
        };
        self.poll_operation(cx, Operation::Read, self.receive(copy))
    }

    /// Copies as much of `bufs` as fits into the send buffer.
    pub(super) fn send<'a>(
        &'a self,
        bufs: &'a [IoSlice<'a>],
    ) -> impl FnOnce(&mut Conn<'_>, &mut Exchange) -> Poll<io::Result<usize>> + 'a {
        move |conn, exchange| {
            let mut written = 0;
            for buf in bufs.iter().filter(|buf| !buf.is_empty()) {
                let wanted = buf.len().min(exchange.left());
                match conn.write(exchange.now, &buf[..wanted]) {
                    Ok(taken) => {
                        exchange.add(taken);
                        written += taken;
                        if taken < buf.len() {
                            break;
                        }
                    }
                    // Report what the first pieces achieved; the next call returns the error.
                    Err(_) if written > 0 => break,
                    Err(error) => return Poll::Ready(Err(self.refused(error))),
                }
            }
            if written == 0 && bufs.iter().any(|buf| !buf.is_empty()) {
                return Poll::Pending;
            }
            Poll::Ready(Ok(written))
        }
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.poll_operation(cx, Operation::Write, self.send(bufs))
    }

    /// Takes a chunk of received data, of at most `max` bytes; none at the end of the stream.
    pub(super) fn take_chunk<'a>(
        &'a self,
        max: usize,
    ) -> impl FnOnce(&mut Conn<'_>, &mut Exchange) -> Poll<io::Result<Option<Bytes>>> + 'a {
        move |conn, exchange| {
            if max == 0 {
                return Poll::Ready(Ok(Some(Bytes::new())));
            }
            match conn.read_chunk(exchange.now, max.min(exchange.left())) {
                Ok(Some(chunk)) => {
                    exchange.add(chunk.len());
                    Poll::Ready(Ok(Some(chunk)))
                }
                _ if conn.at_end() => Poll::Ready(Ok(None)),
                _ => match conn.error() {
                    Some(error) => Poll::Ready(Err(self.ended(error))),
                    None => Poll::Pending,
                },
            }
        }
    }

    pub(super) fn poll_read_chunk(
        &self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<io::Result<Option<Bytes>>> {
        self.poll_operation(cx, Operation::Read, self.take_chunk(max))
    }

    pub(super) async fn read_chunk(&self, max: usize) -> io::Result<Option<Bytes>> {
        poll_fn(|cx| self.poll_read_chunk(cx, max)).await
    }

    /// Takes as much of `chunk` as fits into the send buffer off its front.
    pub(super) fn give_chunk<'a>(
        &'a self,
        chunk: &'a mut Bytes,
    ) -> impl FnOnce(&mut Conn<'_>, &mut Exchange) -> Poll<io::Result<usize>> + 'a {
        move |conn, exchange| {
            if chunk.is_empty() {
                return Poll::Ready(Ok(0));
            }
            match conn.write_bytes_up_to(exchange.now, chunk, exchange.left()) {
                Ok(0) => Poll::Pending,
                Ok(taken) => {
                    exchange.add(taken);
                    Poll::Ready(Ok(taken))
                }
                Err(error) => Poll::Ready(Err(self.refused(error))),
            }
        }
    }

    pub(super) fn poll_write_bytes(
        &self,
        cx: &mut Context<'_>,
        chunk: &mut Bytes,
    ) -> Poll<io::Result<usize>> {
        self.poll_operation(cx, Operation::Write, self.give_chunk(chunk))
    }

    pub(super) async fn write_bytes(&self, mut chunk: Bytes) -> io::Result<()> {
        while !chunk.is_empty() {
            poll_fn(|cx| self.poll_write_bytes(cx, &mut chunk)).await?;
        }
        Ok(())
    }

    pub(super) fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_operation(cx, Operation::Flush, |conn, _| match (conn.error(), conn.state()) {
            _ if conn.is_flushed() => Poll::Ready(Ok(())),
            (Some(error), _) => Poll::Ready(Err(self.ended(error))),
            // An RST may arrive in place of the ACK of the FIN, after everything before it was
            // delivered.
            (None, State::Closed) => Poll::Ready(Ok(())),
            (None, _) => Poll::Pending,
        })
    }

    pub(super) async fn with_readable<R>(
        &self,
        use_data: impl FnOnce([&[u8]; 2]) -> (usize, R),
    ) -> io::Result<R> {
        let mut use_data = Some(use_data);
        poll_fn(|cx| {
            let once = |pieces: [&[u8]; 2], _| {
                let use_data = use_data.take().expect("a ready future is not polled again");
                use_data(pieces)
            };
            self.poll_operation(cx, Operation::Read, self.receive(once))
        })
        .await
    }

    pub(super) async fn write_with(
        &self,
        max: usize,
        fill: impl FnOnce([&mut [u8]; 2]) -> usize,
    ) -> io::Result<usize> {
        let mut fill = Some(fill);
        poll_fn(|cx| {
            self.poll_operation(cx, Operation::Write, |conn, exchange| {
                let written =
                    conn.write_with(exchange.now, max.min(exchange.left()), |room| match fill.take() {
                        Some(fill) => fill(room),
                        None => 0,
                    });
                match written {
                    // The core had no room, and noted that a writer waits.
                    Ok(_) if fill.is_some() && max > 0 => Poll::Pending,
                    Ok(written) => {
                        exchange.add(written);
                        Poll::Ready(Ok(written))
                    }
                    Err(error) => Poll::Ready(Err(self.refused(error))),
                }
            })
        })
        .await
    }
}

/// The first `most` bytes.
pub(super) fn few(pieces: [&[u8]; 2], most: usize) -> [&[u8]; 2] {
    let first = pieces[0].len().min(most);
    let second = pieces[1].len().min(most - first);
    [&pieces[0][..first], &pieces[1][..second]]
}
