//! Many connections on one host: the type that a driver drives.

#[cfg_attr(not(test), expect(dead_code, reason = "the endpoint uses it once it is built"))]
pub(crate) mod demux;
#[cfg_attr(not(test), expect(dead_code, reason = "the endpoint uses it once it is built"))]
pub(crate) mod four_tuple;
#[cfg_attr(not(test), expect(dead_code, reason = "the endpoint uses it once it is built"))]
pub(crate) mod isn;
#[cfg_attr(not(test), expect(dead_code, reason = "the endpoint uses it once it is built"))]
pub(crate) mod ports;
#[cfg_attr(not(test), expect(dead_code, reason = "the endpoint uses it once it is built"))]
pub(crate) mod rate_limit;
#[cfg_attr(not(test), expect(dead_code, reason = "the endpoint uses it once it is built"))]
pub(crate) mod rng;
pub mod wheel;

use crate::State;
use crate::config::{AcceptConfig, ConnConfig, EndpointConfig, ListenOn, Target};
use crate::counters::Counters;
use crate::error::{ConnectError, ListenError, StreamError};
use crate::events::{Event, Tracer, Wakeup};
use crate::id::{ConnId, ListenerId, TxId};
use crate::info::Info;
use crate::packet::{TxBudget, TxPacket, TxReport};
use crate::policy::{AckPolicy, CongestionControl, EgressScheduler, RtoResponse};
use crate::time::Instant;
use crate::wire::RxPacket;
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::net::SocketAddr;

/// A host's TCP: all its connections, listeners and timers.
///
/// **Give inputs, all stamped with the same instant; then drain [`transmit`](Self::transmit), then
/// [`poll_event`](Self::poll_event); then sleep until [`poll_timeout`](Self::poll_timeout) or the next input.**
#[derive(Debug)]
pub struct Endpoint {}

/// What [`Endpoint::ingest`] did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ingested {
    /// It belonged to a connection.
    Conn(ConnId),
    /// A listener made a connection of it.
    Accepted(ConnId),
    /// It was answered or used without a connection (ping, RST for an unknown port, ICMP error).
    Handled,
    /// It was dropped; the counter of this name says why.
    Dropped(&'static str),
}

impl Endpoint {
    /// An endpoint without connections. `seed` feeds initial sequence numbers, ports and hashes: it must be
    /// random where peers are not trusted, and fixed where a run must repeat.
    #[must_use]
    pub fn new(config: EndpointConfig, scheduler: Box<dyn EgressScheduler>, seed: [u8; 32]) -> Self {
        let _ = (config, scheduler, seed);
        todo!()
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &EndpointConfig {
        todo!()
    }

    /// Listens.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn listen(
        &mut self,
        now: Instant,
        on: ListenOn,
        accept: AcceptConfig,
    ) -> Result<ListenerId, ListenError> {
        let _ = (now, on, accept);
        todo!()
    }

    /// Stops listening. Connections that the application has not accepted yet are reset.
    pub fn unlisten(&mut self, now: Instant, listener: ListenerId) {
        let _ = (now, listener);
        todo!()
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(
        &mut self,
        now: Instant,
        to: Target,
        config: Arc<ConnConfig>,
    ) -> Result<ConnId, ConnectError> {
        let _ = (now, to, config);
        todo!()
    }

    /// Takes one IP packet, or one super-packet, from the device.
    pub fn ingest(&mut self, now: Instant, packet: RxPacket<'_>) -> Ingested {
        let _ = (now, packet);
        todo!()
    }

    /// Serves every deadline up to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// The last bit of a packet has left. Only for drivers that report departures
    /// ([`TxBudget::with_departures`]); elsewhere Ok from `emit` counts as the departure.
    pub fn departed(&mut self, now: Instant, packet: TxId) {
        let _ = (now, packet);
        todo!()
    }

    /// Sends what may be sent. State is committed only when `emit` says Ok; a packet that it refused is held
    /// and goes first next time.
    ///
    /// # Errors
    /// The first error of `emit`.
    pub fn transmit<E>(
        &mut self,
        now: Instant,
        budget: TxBudget,
        emit: impl FnMut(TxPacket<'_>) -> Result<(), E>,
    ) -> Result<TxReport, E> {
        let _ = (now, budget, emit);
        todo!()
    }

    /// The next event, until there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        todo!()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and [`transmit`](Self::transmit) next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Wakeup> {
        todo!()
    }

    /// The application's side of a connection; `None` where it is gone.
    pub fn conn(&mut self, id: ConnId) -> Option<Conn<'_>> {
        let _ = id;
        todo!()
    }

    /// The application lets go of a connection: it is closed in the background (or reset, where unread data is
    /// lost by it: RFC 9293, section 3.6.1) and forgotten when it is over.
    pub fn release(&mut self, now: Instant, id: ConnId) {
        let _ = (now, id);
        todo!()
    }

    /// Connections, in any state.
    #[must_use]
    pub fn connections(&self) -> usize {
        todo!()
    }

    /// The scheduler, for `configure` and statistics.
    pub fn scheduler(&mut self) -> &mut dyn EgressScheduler {
        todo!()
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        todo!()
    }

    /// Sends trace events to `tracer` from here on; `None`: to nobody.
    pub fn set_tracer(&mut self, tracer: Option<Box<dyn Tracer>>) {
        let _ = tracer;
        todo!()
    }
}

/// The application's side of one connection, borrowed from its endpoint.
#[derive(Debug)]
pub struct Conn<'a> {
    _endpoint: &'a mut Endpoint,
}

impl Conn<'_> {
    /// The handle.
    #[must_use]
    pub fn id(&self) -> ConnId {
        todo!()
    }

    /// State of RFC 9293.
    #[must_use]
    pub fn state(&self) -> State {
        todo!()
    }

    /// Copies as much of `data` into the send buffer as fits; 0 means that it is full and
    /// [`Event::Writable`] will come.
    ///
    /// # Errors
    /// Where nothing can be written any more, or not yet.
    pub fn write(&mut self, data: &[u8]) -> Result<usize, StreamError> {
        let _ = data;
        todo!()
    }

    /// Lets `fill` write into at most `max` bytes of free send buffer in place; it returns how many it wrote.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_with(
        &mut self,
        max: usize,
        fill: impl FnOnce([&mut [u8]; 2]) -> usize,
    ) -> Result<usize, StreamError> {
        let _ = (max, fill);
        todo!()
    }

    /// Free bytes of the send buffer.
    #[must_use]
    pub fn write_space(&self) -> usize {
        todo!()
    }

    /// Copies received data into `buf` and frees it; 0 with a non-empty `buf` means that nothing is there
    /// yet, or, where [`at_end`](Self::at_end) says so, that the stream has ended.
    ///
    /// # Errors
    /// Where the connection ended with an error and everything received is read.
    pub fn read(&mut self, now: Instant, buf: &mut [u8]) -> Result<usize, StreamError> {
        let _ = (now, buf);
        todo!()
    }

    /// The received data, in place.
    #[must_use]
    pub fn peek(&self) -> [&[u8]; 2] {
        todo!()
    }

    /// Frees the first `n` received bytes.
    pub fn consume(&mut self, now: Instant, n: usize) {
        let _ = (now, n);
        todo!()
    }

    /// The peer has closed its side and everything received is read.
    #[must_use]
    pub fn at_end(&self) -> bool {
        todo!()
    }

    /// Closes the sending side: a FIN follows what is written.
    pub fn shutdown(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// Resets the connection and throws away what is queued.
    pub fn abort(&mut self, now: Instant) {
        let _ = now;
        todo!()
    }

    /// A snapshot.
    #[must_use]
    pub fn info(&self) -> Info {
        todo!()
    }

    /// Local and remote address.
    #[must_use]
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        todo!()
    }

    /// Why the connection ended, where it ended with an error.
    #[must_use]
    pub fn error(&self) -> Option<crate::error::ConnError> {
        todo!()
    }

    /// `TCP_NODELAY`.
    pub fn set_nodelay(&mut self, now: Instant, on: bool) {
        let _ = (now, on);
        todo!()
    }

    /// `TCP_CORK`.
    pub fn set_cork(&mut self, now: Instant, on: bool) {
        let _ = (now, on);
        todo!()
    }

    /// Swaps the congestion control; the new one starts from the old one's window and threshold.
    pub fn set_congestion_control(&mut self, now: Instant, make: &crate::policy::NewCongestionControl) {
        let _ = (now, make);
        todo!()
    }

    /// Swaps the ACK policy.
    pub fn set_ack_policy(&mut self, now: Instant, make: &crate::policy::NewAckPolicy) {
        let _ = (now, make);
        todo!()
    }

    /// The congestion control, for `configure` and metrics.
    pub fn congestion_control(&mut self) -> &mut dyn CongestionControl {
        todo!()
    }

    /// The ACK policy, for `configure` and metrics.
    pub fn ack_policy(&mut self) -> &mut dyn AckPolicy {
        todo!()
    }

    /// The RTO response, for `configure` and metrics.
    pub fn rto_response(&mut self) -> &mut dyn RtoResponse {
        todo!()
    }
}
