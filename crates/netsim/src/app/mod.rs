//! Applications: they write and read on hosts.

mod bsd_writer;
mod bulk;
mod datagrams;
mod download;
mod draw;
mod request;
mod sink;
mod source;
mod stream;

pub use bsd_writer::{BsdWriter, CHUNK, CopyRule};
pub use bulk::{Amount, Bulk};
pub use datagrams::Datagrams;
pub use download::{Downloader, FileServer};
pub use draw::Draw;
pub use request::{Client, ClientOptions, Exchange, Server};
pub use sink::{Reading, Sink};
pub use source::{Schedule, Source};

use crate::rng::SimRng;
use ackline_tcp_core::config::{AcceptConfig, ConnConfig};
use ackline_tcp_core::error::{ConnError, ConnectError, ListenError};
use ackline_tcp_core::{Conn, ConnId, Duration, Endpoint, Instant, ListenOn, ListenerId, Target};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// An application on a host. Each call takes place at one instant; what it writes is sent at that
/// instant.
pub trait App: Debug + Send + Any {
    /// Its start time has come.
    fn start(&mut self, cx: &mut AppCx<'_>);

    /// An event on one of its connections.
    fn event(&mut self, cx: &mut AppCx<'_>, conn: ConnId, event: AppEvent);

    /// A timer has expired; `number` is the one given when it was set. Timers are never cancelled:
    /// ignore one that is no longer needed.
    fn timer(&mut self, cx: &mut AppCx<'_>, number: u64) {
        let _ = (cx, number);
    }

    /// Reports measurements by name. The name includes the unit (`completion_s`, `received_bytes`);
    /// otherwise the value is a count.
    fn metrics(&self, report: &mut dyn FnMut(&str, f64));

    /// Reports individual times by name: when each ended, and how long it was.
    fn samples(&self, report: &mut dyn FnMut(&str, &[Timed])) {
        let _ = report;
    }
}

/// When something ended, and how long it took.
pub type Timed = (Instant, Duration);

/// The time that a host's work takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCosts {
    /// To wake a waiting process.
    pub wake_up: Duration,
    /// To copy 1,024 bytes.
    pub copy_kb: Duration,
}

impl HostCosts {
    /// The time to copy `bytes` bytes.
    #[must_use]
    pub const fn copy(&self, bytes: usize) -> Duration {
        self.copy_kb.mul_ratio(bytes as u64, 1_024)
    }
}

/// An event on an application's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppEvent {
    /// A connection that it opened has been established.
    Connected,
    /// One of its listeners accepted this connection.
    Accepted,
    /// There is data to read, or the stream has ended.
    Readable,
    /// The send buffer has room again.
    Writable,
    /// Everything written and the FIN have been acknowledged.
    Flushed,
    /// The connection has ended.
    Closed(Option<ConnError>),
}

/// An application's access to its host during one call.
#[derive(Debug)]
pub struct AppCx<'a> {
    pub(crate) now: Instant,
    pub(crate) app: u32,
    pub(crate) endpoint: &'a mut Endpoint,
    pub(crate) owners: &'a mut Owners,
    pub(crate) timers: &'a mut Vec<(Instant, u32, u64)>,
    pub(crate) raw: &'a mut Vec<Vec<u8>>,
    pub(crate) rng: &'a mut SimRng,
}

impl AppCx<'_> {
    /// The time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The application's own random numbers.
    pub fn rng(&mut self) -> &mut SimRng {
        self.rng
    }

    /// Opens a connection; its events are delivered to this application.
    ///
    /// # Errors
    /// Those of [`Endpoint::connect`].
    pub fn connect(&mut self, to: Target, config: Arc<ConnConfig>) -> Result<ConnId, ConnectError> {
        let conn = self.endpoint.connect(self.now, to, config)?;
        self.owners.set(conn, self.app);
        Ok(conn)
    }

    /// Listens. Accepted connections belong to this application.
    ///
    /// # Errors
    /// Those of [`Endpoint::listen`].
    pub fn listen(&mut self, on: ListenOn, accept: AcceptConfig) -> Result<ListenerId, ListenError> {
        let listener = self.endpoint.listen(self.now, on, accept)?;
        self.owners.listeners.push((listener, self.app));
        Ok(listener)
    }

    /// The connection; `None` if it is gone.
    pub fn conn(&mut self, conn: ConnId) -> Option<Conn<'_>> {
        self.endpoint.conn(conn)
    }

    /// Releases a connection.
    pub fn release(&mut self, conn: ConnId) {
        self.endpoint.release(self.now, conn);
        self.owners.clear(conn);
    }

    /// Sends an IP packet past TCP, at this instant. Not for hosts that [feed](crate::Egress::Fed)
    /// their links.
    pub fn send_packet(&mut self, packet: Vec<u8>) {
        self.raw.push(packet);
    }

    /// Calls [`App::timer`] with `number` at `at`.
    pub fn set_timer(&mut self, at: Instant, number: u64) {
        self.timers.push((at, self.app, number));
    }
}

/// Maps connections and listeners to applications.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    /// By the connection's index.
    conns: Vec<Option<(ConnId, u32)>>,
    listeners: Vec<(ListenerId, u32)>,
}

impl Owners {
    pub(crate) fn of(&self, conn: ConnId) -> Option<u32> {
        self.conns.get(conn.index()).copied().flatten().filter(|(id, _)| *id == conn).map(|(_, app)| app)
    }

    pub(crate) fn of_listener(&self, listener: ListenerId) -> Option<u32> {
        self.listeners.iter().find(|(id, _)| *id == listener).map(|(_, app)| *app)
    }

    pub(crate) fn set(&mut self, conn: ConnId, app: u32) {
        if self.conns.len() <= conn.index() {
            self.conns.resize(conn.index() + 1, None);
        }
        self.conns[conn.index()] = Some((conn, app));
    }

    fn clear(&mut self, conn: ConnId) {
        if self.of(conn).is_some() {
            self.conns[conn.index()] = None;
        }
    }

    /// Connections owned by applications, by index.
    pub(crate) fn conns(&self) -> impl Iterator<Item = (ConnId, u32)> + '_ {
        self.conns.iter().copied().flatten()
    }
}
