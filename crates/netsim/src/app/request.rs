//! Requests and responses: a client sends a request, waits for the whole response, thinks, and
//! repeats.
//!
//! ```text
//!   client  ──request──►          ──request──►
//!   server             ──response──►         ──response──►
//!             └─ latency ─────────┘ think └─ latency ─────┘
//! ```

use super::stream::{Incoming, Outgoing, PerConn};
use super::{App, AppCx, AppEvent, Draw, Timed};
use ackline_tcp_core::config::{AcceptConfig, ConnConfig};
use ackline_tcp_core::{ConnId, Instant, ListenOn, Target};
use std::sync::Arc;

/// The sizes that client and server have agreed on, in bytes; both at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of a request.
    pub request: u64,
    /// Bytes of a response.
    pub response: u64,
}

/// What a [`Client`] does.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Sizes.
    pub exchange: Exchange,
    /// Time from a response to the next request, in seconds.
    pub think: Draw,
    /// Number of requests; `None`: endless.
    pub count: Option<u64>,
    /// Use a new connection for each request; the latency then includes its handshake.
    pub reconnect: bool,
}

/// Sends requests.
#[derive(Debug)]
pub struct Client {
    to: Target,
    config: Arc<ConnConfig>,
    options: ClientOptions,
    conn: Option<ConnId>,
    outgoing: Outgoing,
    incoming: Incoming,
    asked_at: Instant,
    asked: u64,
    failed: u64,
    wrong: u64,
    latencies: Vec<Timed>,
}

const ASK: u64 = 0;

impl Client {
    /// Sends requests to the server at `to`.
    #[must_use]
    pub const fn new(to: Target, config: Arc<ConnConfig>, options: ClientOptions) -> Self {
        Self {
            to,
            config,
            options,
            conn: None,
            outgoing: Outgoing { written: 0, goal: 0 },
            incoming: Incoming { received: 0, wrong: 0 },
            asked_at: Instant::ZERO,
            asked: 0,
            failed: 0,
            wrong: 0,
            latencies: vec![],
        }
    }

    /// When each response completed, and the latency since its request.
    #[must_use]
    pub fn latencies(&self) -> &[Timed] {
        &self.latencies
    }

    /// Reads that found an octet that was never sent there.
    #[must_use]
    pub const fn wrong(&self) -> u64 {
        self.wrong + self.incoming.wrong
    }

    fn is_done(&self) -> bool {
        self.options.count.is_some_and(|count| self.asked >= count)
    }

    fn ask(&mut self, cx: &mut AppCx<'_>) {
        self.asked += 1;
        self.asked_at = cx.now();
        self.outgoing.goal += self.options.exchange.request.max(1);
        match self.conn {
            Some(conn) => {
                self.outgoing.push(cx, conn);
            }
            None => match cx.connect(self.to, self.config.clone()) {
                Ok(conn) => self.conn = Some(conn),
                Err(_) => self.failed += 1,
            },
        }
    }

    /// The connection is no longer needed.
    fn leave(&mut self, cx: &mut AppCx<'_>) {
        if let Some(conn) = self.conn.take() {
            cx.release(conn);
        }
        self.wrong += self.incoming.wrong;
        (self.outgoing, self.incoming) = Default::default();
    }

    fn read(&mut self, cx: &mut AppCx<'_>, conn: ConnId) {
        self.incoming.pull(cx, conn);
        let requests = self.outgoing.goal / self.options.exchange.request.max(1);
        if requests == 0 || self.incoming.received < requests * self.options.exchange.response.max(1) {
            return;
        }
        let waited = cx.now().since(self.asked_at);
        self.latencies.push((cx.now(), waited));
        if self.options.reconnect || self.is_done() {
            self.leave(cx);
        }
        if !self.is_done() {
            let think = self.options.think.time(cx.rng());
            // The next request is sent after this response was acknowledged, even without think
            // time.
            cx.set_timer(cx.now() + think, ASK);
        }
    }
}

impl App for Client {
    fn start(&mut self, cx: &mut AppCx<'_>) {
        if !self.is_done() {
            self.ask(cx);
        }
    }

    fn event(&mut self, cx: &mut AppCx<'_>, conn: ConnId, event: AppEvent) {
        if self.conn != Some(conn) {
            return;
        }
        match event {
            AppEvent::Connected | AppEvent::Writable => {
                self.outgoing.push(cx, conn);
            }
            AppEvent::Readable => self.read(cx, conn),
            AppEvent::Closed(_) => {
                self.failed += 1;
                self.leave(cx);
                if !self.is_done() {
                    let think = self.options.think.time(cx.rng());
                    cx.set_timer(cx.now() + think, ASK);
                }
            }
            AppEvent::Accepted | AppEvent::Flushed => {}
        }
    }

    fn timer(&mut self, cx: &mut AppCx<'_>, _: u64) {
        self.ask(cx);
    }

    fn metrics(&self, report: &mut dyn FnMut(&str, f64)) {
        report("asked", self.asked as f64);
        report("answered", self.latencies.len() as f64);
        report("failed", self.failed as f64);
        report("wrong_reads", self.wrong() as f64);
    }

    fn samples(&self, report: &mut dyn FnMut(&str, &[Timed])) {
        report("latency", &self.latencies);
    }
}

/// Sends responses.
#[derive(Debug)]
pub struct Server {
    on: ListenOn,
    accept: AcceptConfig,
    exchange: Exchange,
    streams: PerConn<(Incoming, Outgoing)>,
    answered: u64,
    failed: u64,
    wrong: u64,
}

impl Server {
    /// Responds to requests on connections accepted at `on`.
    #[must_use]
    pub fn new(on: ListenOn, accept: AcceptConfig, exchange: Exchange) -> Self {
        Self { on, accept, exchange, streams: PerConn::default(), answered: 0, failed: 0, wrong: 0 }
    }

    /// Reads that found an octet that was never sent there.
    #[must_use]
    pub const fn wrong(&self) -> u64 {
        self.wrong
    }

    fn read(&mut self, cx: &mut AppCx<'_>, conn: ConnId) {
        let Some((incoming, outgoing)) = self.streams.get_mut(&conn) else { return };
        let before = incoming.wrong;
        let ended = incoming.pull(cx, conn);
        self.wrong += incoming.wrong - before;
        let answers = incoming.received / self.exchange.request.max(1);
        let goal = answers * self.exchange.response.max(1);
        self.answered += (goal - outgoing.goal) / self.exchange.response.max(1);
        outgoing.goal = goal;
        outgoing.push(cx, conn);
        if ended {
            self.streams.remove(&conn);
            cx.release(conn);
        }
    }
}

impl App for Server {
    fn start(&mut self, cx: &mut AppCx<'_>) {
        let listening = cx.listen(self.on, self.accept.clone());
        self.failed += u64::from(listening.is_err());
    }

    fn event(&mut self, cx: &mut AppCx<'_>, conn: ConnId, event: AppEvent) {
        match event {
            AppEvent::Accepted => {
                self.streams.insert(conn, Default::default());
            }
            AppEvent::Readable => self.read(cx, conn),
            AppEvent::Writable => {
                if let Some((_, outgoing)) = self.streams.get_mut(&conn) {
                    outgoing.push(cx, conn);
                }
            }
            AppEvent::Closed(error) => {
                if self.streams.remove(&conn).is_some() {
                    self.failed += u64::from(error.is_some());
                    cx.release(conn);
                }
            }
            AppEvent::Connected | AppEvent::Flushed => {}
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&str, f64)) {
        report("answered", self.answered as f64);
        report("failed", self.failed as f64);
        report("wrong_reads", self.wrong as f64);
    }
}
