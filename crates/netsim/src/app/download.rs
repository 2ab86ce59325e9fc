//! Downloads: a client opens a connection, the server sends a file and closes; the client waits and
//! repeats.

use super::stream::{Incoming, Outgoing, PerConn};
use super::{App, AppCx, AppEvent, Draw, Timed};
use ackline_tcp_core::config::{AcceptConfig, ConnConfig};
use ackline_tcp_core::{ConnId, Instant, ListenOn, Target};
use std::sync::Arc;

/// Downloads files.
#[derive(Debug)]
pub struct Downloader {
    to: Target,
    config: Arc<ConnConfig>,
    wait: Draw,
    count: Option<u64>,
    conn: Option<ConnId>,
    incoming: Incoming,
    started: Instant,
    begun: u64,
    failed: u64,
    received: u64,
    wrong: u64,
    completions: Vec<Timed>,
}

const BEGIN: u64 = 0;

impl Downloader {
    /// Downloads `count` files (`None`: endless) from the [`FileServer`] at `to`, waiting `wait`
    /// seconds after each.
    #[must_use]
    pub const fn new(to: Target, config: Arc<ConnConfig>, wait: Draw, count: Option<u64>) -> Self {
        Self {
            to,
            config,
            wait,
            count,
            conn: None,
            incoming: Incoming { received: 0, wrong: 0 },
            started: Instant::ZERO,
            begun: 0,
            failed: 0,
            received: 0,
            wrong: 0,
            completions: vec![],
        }
    }

    /// When each download completed, and how long it took from the SYN to the last byte and the
    /// FIN.
    #[must_use]
    pub fn completions(&self) -> &[Timed] {
        &self.completions
    }

    /// Reads that found an octet that was never sent there.
    #[must_use]
    pub const fn wrong(&self) -> u64 {
        self.wrong
    }

    fn begin(&mut self, cx: &mut AppCx<'_>) {
        if self.count.is_some_and(|count| self.begun >= count) {
            return;
        }
        self.begun += 1;
        self.started = cx.now();
        self.incoming = Incoming::default();
        match cx.connect(self.to, self.config.clone()) {
            Ok(conn) => self.conn = Some(conn),
            Err(_) => self.end(cx, false),
        }
    }

    fn end(&mut self, cx: &mut AppCx<'_>, complete: bool) {
        if let Some(conn) = self.conn.take() {
            cx.release(conn);
        }
        self.received += self.incoming.received;
        self.wrong += self.incoming.wrong;
        if complete {
            self.completions.push((cx.now(), cx.now().since(self.started)));
        } else {
            self.failed += 1;
        }
        let wait = self.wait.time(cx.rng());
        cx.set_timer(cx.now() + wait, BEGIN);
    }
}

impl App for Downloader {
    fn start(&mut self, cx: &mut AppCx<'_>) {
        self.begin(cx);
    }

    fn event(&mut self, cx: &mut AppCx<'_>, conn: ConnId, event: AppEvent) {
        if self.conn != Some(conn) {
            return;
        }
        match event {
            AppEvent::Readable => {
                if self.incoming.pull(cx, conn) {
                    let complete = cx.conn(conn).is_some_and(|conn| conn.error().is_none());
                    self.end(cx, complete);
                }
            }
            AppEvent::Closed(_) => self.end(cx, false),
            AppEvent::Connected | AppEvent::Accepted | AppEvent::Writable | AppEvent::Flushed => {}
        }
    }

    fn timer(&mut self, cx: &mut AppCx<'_>, _: u64) {
        self.begin(cx);
    }

    fn metrics(&self, report: &mut dyn FnMut(&str, f64)) {
        report("begun", self.begun as f64);
        report("complete", self.completions.len() as f64);
        report("failed", self.failed as f64);
        report("received_bytes", self.received as f64);
        report("wrong_reads", self.wrong as f64);
    }

    fn samples(&self, report: &mut dyn FnMut(&str, &[Timed])) {
        report("completion", &self.completions);
    }
}

/// Sends a file on each accepted connection, and closes it.
#[derive(Debug)]
pub struct FileServer {
    on: ListenOn,
    accept: AcceptConfig,
    size: Draw,
    streams: PerConn<Outgoing>,
    /// Connections whose files are written but not acknowledged.
    flushing: PerConn<()>,
    served: u64,
    failed: u64,
}

impl FileServer {
    /// Sends a file of `size` bytes on each connection accepted at `on`.
    #[must_use]
    pub fn new(on: ListenOn, accept: AcceptConfig, size: Draw) -> Self {
        Self {
            on,
            accept,
            size,
            streams: PerConn::default(),
            flushing: PerConn::default(),
            served: 0,
            failed: 0,
        }
    }

    fn write(&mut self, cx: &mut AppCx<'_>, id: ConnId) {
        let Some(outgoing) = self.streams.get_mut(&id) else { return };
        outgoing.push(cx, id);
        if outgoing.written >= outgoing.goal {
            self.streams.remove(&id);
            self.served += 1;
            self.flushing.insert(id, ());
            let now = cx.now();
            if let Some(mut conn) = cx.conn(id) {
                conn.shutdown(now);
            }
        }
    }
}

impl App for FileServer {
    fn start(&mut self, cx: &mut AppCx<'_>) {
        let listening = cx.listen(self.on, self.accept.clone());
        self.failed += u64::from(listening.is_err());
    }

    fn event(&mut self, cx: &mut AppCx<'_>, conn: ConnId, event: AppEvent) {
        match event {
            AppEvent::Accepted => {
                let goal = self.size.bytes(cx.rng());
                self.streams.insert(conn, Outgoing { written: 0, goal });
                self.write(cx, conn);
            }
            AppEvent::Writable => self.write(cx, conn),
            AppEvent::Closed(error) => {
                let (unwritten, unacknowledged) =
                    (self.streams.remove(&conn).is_some(), self.flushing.remove(&conn).is_some());
                if unwritten || unacknowledged {
                    self.failed += u64::from(error.is_some());
                    cx.release(conn);
                }
            }
            AppEvent::Flushed => {
                if self.flushing.remove(&conn).is_some() {
                    cx.release(conn);
                }
            }
            AppEvent::Connected | AppEvent::Readable => {}
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&str, f64)) {
        report("served", self.served as f64);
        report("failed", self.failed as f64);
    }
}
