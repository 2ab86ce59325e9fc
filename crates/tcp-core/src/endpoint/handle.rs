//! The application's side of a connection.

use super::Endpoint;
use crate::State;
use crate::conn::Connection;
use crate::ctx::Ctx;
use crate::error::{ConnError, StreamError};
use crate::events::WakeReason;
use crate::id::ConnId;
use crate::info::{Blocked, Info};
use crate::policy::spec::PolicyKind;
use crate::policy::{AckPolicy, CongestionControl, Metric, RtoResponse};
use crate::table::Flags;
use crate::time::Instant;
use bytes::Bytes;
use core::net::SocketAddr;

/// The application's side of one connection, borrowed from its endpoint.
#[derive(Debug)]
pub struct Conn<'a> {
    endpoint: &'a mut Endpoint,
    /// A connection of the endpoint, which cannot disappear while it is borrowed.
    id: ConnId,
}

impl<'a> Conn<'a> {
    /// The connection `id` of `endpoint`, which must exist.
    pub(super) const fn new(endpoint: &'a mut Endpoint, id: ConnId) -> Self {
        Self { endpoint, id }
    }

    pub(super) fn conn(&self) -> &Connection {
        self.endpoint.owners.table.slots.conn(self.id.index).expect("a borrowed connection exists")
    }

    fn conn_mut(&mut self) -> &mut Connection {
        self.endpoint.owners.table.slots.conn_mut(self.id.index).expect("a borrowed connection exists")
    }

    /// Calls `act`, after which there may be something to send or to report.
    pub(super) fn act<T>(&mut self, now: Instant, act: impl FnOnce(&mut Connection, &mut Ctx<'_>) -> T) -> T {
        let (owners, mut cx) = self.endpoint.enter(now);
        let conn = owners.table.slots.conn_mut(self.id.index).expect("a borrowed connection exists");
        let result = act(conn, &mut cx.conn(self.id));
        owners.touch(&mut cx, self.id.index);
        result
    }
}

impl Conn<'_> {
    /// The handle.
    #[must_use]
    pub fn id(&self) -> ConnId {
        self.id
    }

    /// State of RFC 9293.
    #[must_use]
    pub fn state(&self) -> State {
        self.conn().state()
    }

    /// Copies as much of `data` into the send buffer as it takes at present, which follows the
    /// congestion window ([`ConnConfig::min_send_buffer`](crate::ConnConfig::min_send_buffer)). 0
    /// means that it is full; [`Event::Writable`](crate::Event::Writable) will follow.
    ///
    /// # Errors
    /// If nothing can be written any more, or not yet.
    pub fn write(&mut self, now: Instant, data: &[u8]) -> Result<usize, StreamError> {
        self.act(now, |conn, ctx| {
            conn.ask_for_memory(&mut ctx.observe.budget, data.len());
            conn.write(data)
        })
    }

    /// Takes as much of `chunk` as the send buffer takes at present off its front, and returns the
    /// number of bytes; `chunk` keeps the rest. 0 means that the buffer is full;
    /// [`Event::Writable`](crate::Event::Writable) will follow, as after a partial
    /// [`write`](Self::write).
    ///
    /// A chunk of at least 65,536 bytes is not copied: the connection shares its memory, and
    /// packets borrow from it. Smaller ones are copied like the data of a write, except for the
    /// rest of a larger one that was taken in part. Chunks and writes may alternate; the stream has
    /// the order of the calls.
    ///
    /// What is shared counts as memory of the connection ([`Endpoint::memory`]), and cannot be
    /// freed, until the peer has acknowledged all of it that was taken. If a chunk is a small part
    /// of a larger allocation, it keeps all of that from being freed meanwhile, which the
    /// connection cannot know.
    ///
    /// # Errors
    /// As [`write`](Self::write); then nothing was taken.
    ///
    /// # Examples
    /// ```
    /// # use ackline_tcp_core::{Instant, endpoint::Conn, error::StreamError};
    /// use bytes::Bytes;
    ///
    /// /// Returns what is still to be written.
    /// fn write_all_that_fits(conn: &mut Conn<'_>, now: Instant, mut data: Bytes) -> Result<Bytes, StreamError> {
    ///     conn.write_bytes(now, &mut data)?;
    ///     Ok(data)
    /// }
    /// ```
    pub fn write_bytes(&mut self, now: Instant, chunk: &mut Bytes) -> Result<usize, StreamError> {
        self.write_bytes_up_to(now, chunk, usize::MAX)
    }

    /// The same, for at most `most` bytes of `chunk`: for a driver whose connections take turns.
    /// Whether it is shared depends on the length of the chunk, and not on `most`.
    ///
    /// # Errors
    /// As [`write_bytes`](Self::write_bytes).
    pub fn write_bytes_up_to(
        &mut self,
        now: Instant,
        chunk: &mut Bytes,
        most: usize,
    ) -> Result<usize, StreamError> {
        self.act(now, |conn, ctx| conn.write_chunk(&mut ctx.observe.budget, chunk, most))
    }

    /// Lets `fill` write into at most `max` bytes of free send buffer in place; it returns the
    /// number of bytes written.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_with(
        &mut self,
        now: Instant,
        max: usize,
        fill: impl FnOnce([&mut [u8]; 2]) -> usize,
    ) -> Result<usize, StreamError> {
        self.act(now, |conn, ctx| {
            conn.ask_for_memory(&mut ctx.observe.budget, max);
            conn.write_with(max, fill)
        })
    }

    /// Ends a record with what is written so far (`MSG_EOR` of Linux): no segment has bytes from
    /// before and from behind it, and what is before does not wait for more. The peer sees nothing
    /// of it but the sizes of segments.
    pub fn end_record(&mut self, now: Instant) {
        self.act(now, |conn, _| conn.end_record());
    }

    /// Bytes that a write would take.
    #[must_use]
    pub fn write_space(&self) -> usize {
        self.conn().write_space_within(&self.endpoint.context.observe.budget)
    }

    /// True if a write would take something, or fail at once. If false,
    /// [`Event::Writable`](crate::Event::Writable) will follow, as after a partial write.
    pub fn is_writable(&mut self) -> bool {
        self.conn_mut().is_writable()
    }

    /// Requests [`Event::Writable`](crate::Event::Writable) when a write would take `bytes`, or all
    /// that the send buffer takes at present; at once if it already would. Without it the event
    /// comes after a partial write, when a third of the buffer is free.
    pub fn want_write_space(&mut self, now: Instant, bytes: usize) {
        self.act(now, |conn, _| conn.want_space(bytes));
    }

    /// Copies received data into `buf` and frees it. 0 with a non-empty `buf` means that there is
    /// no data yet or, if [`at_end`](Self::at_end) is true, that the stream has ended.
    ///
    /// # Errors
    /// If the connection ended with an error before the end of the peer's stream, and everything
    /// received was read.
    pub fn read(&mut self, now: Instant, buf: &mut [u8]) -> Result<usize, StreamError> {
        self.act(now, |conn, ctx| conn.read(ctx, buf))
    }

    /// Takes the first received data out of the connection: at most `max` bytes, and as many as lie
    /// together in memory, which may be fewer than have arrived. `None` with a `max` above 0 means
    /// what 0 means for [`read`](Self::read): there is no data yet or, if [`at_end`](Self::at_end)
    /// is true, the stream has ended.
    ///
    /// Large chunks are not copied: of a connection whose data is read in chunks, it is received
    /// into blocks of 65,536 bytes, which the chunks share. So a chunk may keep as much memory from
    /// being freed until it is dropped; the connection does not count that any more. Small ones are
    /// copied into memory of their own.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_chunk(&mut self, now: Instant, max: usize) -> Result<Option<Bytes>, StreamError> {
        self.act(now, |conn, ctx| conn.read_chunk(ctx, max))
    }

    /// The received data, in place: all of it or, if it lies in more than two places, its
    /// beginning.
    #[must_use]
    pub fn peek(&self) -> [&[u8]; 2] {
        self.conn().peek()
    }

    /// Frees the first `n` received bytes.
    pub fn consume(&mut self, now: Instant, n: usize) {
        self.act(now, |conn, ctx| conn.consume(ctx, n));
    }

    /// True if the peer has closed its side and everything received was read. Stays true however
    /// the connection ends later.
    #[must_use]
    pub fn at_end(&self) -> bool {
        self.conn().at_end()
    }

    /// True if the peer has acknowledged everything written and the FIN. Stays true however the
    /// connection ends later.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        self.conn().is_flushed()
    }

    /// Closes the sending side: a FIN follows the written data.
    pub fn shutdown(&mut self, now: Instant) {
        self.act(now, |conn, ctx| conn.shutdown(ctx));
    }

    /// Resets the connection and discards queued data.
    pub fn abort(&mut self, now: Instant) {
        self.act(now, |conn, ctx| conn.abort(ctx, ConnError::Aborted));
    }

    /// A snapshot at the latest instant that the endpoint was given.
    #[must_use]
    pub fn info(&self) -> Info {
        self.info_at(self.endpoint.context.latest())
    }

    /// A snapshot at `now`: what goes on meanwhile counts up to then.
    #[must_use]
    pub fn info_at(&self, now: Instant) -> Info {
        let mut info = self.conn().info(now);
        let slot = self.endpoint.owners.table.slots.slot(self.id.index);
        if slot.is_some_and(|slot| slot.flags.has(Flags::DEFERRED)) {
            info.blocked = Blocked::Scheduler;
        }
        info
    }

    /// The connection's next deadline, and its purpose.
    #[must_use]
    pub fn next_deadline(&self) -> Option<(Instant, WakeReason)> {
        self.conn().next_deadline()
    }

    /// Calls `visit` with each variable that the policies of the connection show: those of the
    /// congestion control, of the ACK policy, and of the RTO response, in this order. None before
    /// the connection is established.
    pub fn metrics(&self, visit: &mut dyn FnMut(PolicyKind, Metric)) {
        self.conn().metrics(visit);
    }

    /// Local and remote address.
    #[must_use]
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        let tuple = self.conn().tuple();
        (tuple.local(), tuple.remote())
    }

    /// The error that ended the connection, if any.
    #[must_use]
    pub fn error(&self) -> Option<ConnError> {
        self.conn().error()
    }

    /// The congestion control, for `configure`; `None` before the connection is established.
    pub fn congestion_control(&mut self) -> Option<&mut (dyn CongestionControl + 'static)> {
        self.conn_mut().congestion_control()
    }

    /// The ACK policy, for `configure`; `None` before the connection is established.
    pub fn ack_policy(&mut self) -> Option<&mut (dyn AckPolicy + 'static)> {
        self.conn_mut().ack_policy()
    }

    /// The RTO response, for `configure`; `None` before the connection is established.
    pub fn rto_response(&mut self) -> Option<&mut (dyn RtoResponse + 'static)> {
        self.conn_mut().rto_response()
    }
}
