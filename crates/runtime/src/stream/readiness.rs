//! Waiting without reading or writing, trying without waiting, and looking without taking.
//!
//! Readiness is level-triggered: each call checks the connection anew. A stream is writable if a
//! write would accept data. After a partial write it becomes writable when a third of the send
//! buffer is free, so that ACKs do not wake its task one by one.

use super::TcpStream;
use super::handle::{Operation, Otherwise, few};
use crate::shard::turns::Exchange;
use ackline_tcp_core::State;
use ackline_tcp_core::endpoint::Conn;
use bytes::{BufMut, Bytes};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::task::{Context, Poll};
use tokio::io::{Interest, ReadBuf, Ready};

impl TcpStream {
    /// Waits until the stream is ready for something in `interest`, and returns what. Several tasks
    /// may wait at once.
    ///
    /// # Errors
    /// `NetworkDown` if the device is gone and nothing is left to be read.
    pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        // Received data can be read without a device; everything else needs it.
        let operation = if interest.is_writable() { Operation::Write } else { Operation::Read };
        let look = |conn: &mut Conn<'_>, _: &mut Exchange| some(readiness(conn, interest));
        self.conn.when(|| self.conn.operate(operation, Otherwise::Tell, look)).await
    }

    /// Waits until a read would not block. Several tasks may wait at once.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await.map(drop)
    }

    /// Waits until a write would not block. Several tasks may wait at once.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await.map(drop)
    }

    /// Ready when a read would not block. Only the task of the latest call of this, `poll_peek` or
    /// `poll_read` is woken.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let look = |conn: &mut Conn<'_>, _: &mut Exchange| some(readiness(conn, Interest::READABLE));
        self.conn.poll_operation(cx, Operation::Read, look).map_ok(drop)
    }

    /// Ready when a write would not block. Only the task of the latest call of this or `poll_write`
    /// is woken.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let look = |conn: &mut Conn<'_>, _: &mut Exchange| some(readiness(conn, Interest::WRITABLE));
        self.conn.poll_operation(cx, Operation::Write, look).map_ok(drop)
    }

    /// Reads available data, at most `buf.len()` bytes, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; otherwise as for reads.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.try_read_vectored(&mut [IoSliceMut::new(buf)])
    }

    /// Reads available data into one buffer after the other.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.try_receive(|pieces, most| {
            let read = copy(few(pieces, most), bufs);
            (read, read)
        })
    }

    /// Reads available data into the free part of `buf`, and advances it.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.try_receive(|pieces, most| {
            let mut read = 0;
            for piece in few(pieces, most) {
                let taken = &piece[..piece.len().min(buf.remaining_mut())];
                buf.put_slice(taken);
                read += taken.len();
            }
            (read, read)
        })
    }

    /// Writes as much of `buf` as there is room for, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; otherwise as for writes.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        self.try_write_vectored(&[IoSlice::new(buf)])
    }

    /// Writes one buffer after the other, as much as there is room for.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        at_once(self.conn.operate(Operation::Write, Otherwise::GiveUp, self.conn.send(bufs)))
    }

    /// Takes a chunk of what is available, of at most `max` bytes, without waiting; see
    /// [`read_chunk`](Self::read_chunk).
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn try_read_chunk(&self, max: usize) -> io::Result<Option<Bytes>> {
        at_once(self.conn.operate(Operation::Read, Otherwise::GiveUp, self.conn.take_chunk(max)))
    }

    /// Takes as much of `chunk` off its front as there is room for, without waiting; see
    /// [`poll_write_bytes`](Self::poll_write_bytes).
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write); then nothing was taken.
    pub fn try_write_bytes(&self, chunk: &mut Bytes) -> io::Result<usize> {
        at_once(self.conn.operate(Operation::Write, Otherwise::GiveUp, self.conn.give_chunk(chunk)))
    }

    /// Waits for data, and copies as much as fits into `buf` without consuming it: the next read
    /// returns it again. 0 is the end of the stream. Several tasks may wait at once.
    ///
    /// # Errors
    /// As for reads.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.conn
            .when(|| {
                let look =
                    |pieces: [&[u8]; 2], most| (0, copy(few(pieces, most), &mut [IoSliceMut::new(buf)]));
                self.conn.operate(Operation::Read, Otherwise::Tell, self.conn.receive(look))
            })
            .await
    }

    /// Like [`peek`](Self::peek), but only the task of the latest call of this, `poll_read_ready`
    /// or `poll_read` is woken.
    ///
    /// # Errors
    /// As for reads.
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
        let look = |pieces: [&[u8]; 2], most| {
            let before = buf.remaining();
            for piece in few(pieces, most) {
                buf.put_slice(&piece[..piece.len().min(buf.remaining())]);
            }
            (0, before - buf.remaining())
        };
        self.conn.poll_operation(cx, Operation::Read, self.conn.receive(look))
    }

    fn try_receive<R>(&self, use_data: impl FnOnce([&[u8]; 2], usize) -> (usize, R)) -> io::Result<R> {
        at_once(self.conn.operate(Operation::Read, Otherwise::GiveUp, self.conn.receive(use_data)))
    }
}

/// The part of `interest` that the stream is ready for, as `epoll` reports it.
fn readiness(conn: &mut Conn<'_>, interest: Interest) -> Ready {
    let state = conn.state();
    let failed = conn.error().is_some();
    // The peer's FIN was reached; and both directions ended (EPOLLHUP).
    let ended =
        matches!(state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait | State::Closed);
    let over = ended && state != State::CloseWait;
    let mut ready = Ready::EMPTY;
    if interest.is_readable() {
        let there = conn.peek().iter().any(|piece| !piece.is_empty());
        ready |= when(there || ended || failed, Ready::READABLE);
        ready |= when(ended || failed, Ready::READ_CLOSED);
    }
    if interest.is_writable() {
        ready |= when(conn.is_writable(), Ready::WRITABLE);
        ready |= when(over || failed, Ready::WRITE_CLOSED);
    }
    if interest.is_error() {
        ready |= when(failed, Ready::ERROR);
    }
    // Urgent data stays in the stream (RFC 6093), so only the end is reported.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if interest.is_priority() {
        ready |= when(ended || failed, Ready::READ_CLOSED);
    }
    ready
}

fn when(holds: bool, ready: Ready) -> Ready {
    if holds { ready } else { Ready::EMPTY }
}

fn some(ready: Ready) -> Poll<io::Result<Ready>> {
    if ready.is_empty() { Poll::Pending } else { Poll::Ready(Ok(ready)) }
}

/// Turns pending into `WouldBlock`.
fn at_once<R>(outcome: Poll<io::Result<R>>) -> io::Result<R> {
    match outcome {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

/// Copies the pieces into one buffer after the other, and returns the number of bytes.
fn copy(mut pieces: [&[u8]; 2], bufs: &mut [IoSliceMut<'_>]) -> usize {
    let mut copied = 0;
    for buf in bufs {
        let mut room = &mut **buf;
        for piece in &mut pieces {
            let len = piece.len().min(room.len());
            let (taken, rest) = room.split_at_mut(len);
            taken.copy_from_slice(&piece[..len]);
            (room, *piece) = (rest, &piece[len..]);
            copied += len;
        }
    }
    copied
}
