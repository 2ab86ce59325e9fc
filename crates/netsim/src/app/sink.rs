//! A listener that reads whatever comes, and checks every octet of it.

use super::{App, AppCx, AppEvent};
use crate::pattern;
use ackline_tcp_core::config::AcceptConfig;
use ackline_tcp_core::{ConnId, Duration, Instant, ListenOn};
use std::collections::HashMap;

/// How fast to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// All there is, the moment it arrives: the ACK shows the window that the read opened.
    Instant,
    /// At most `bytes` every `interval`.
    Slow {
        /// Bytes of one read.
        bytes: usize,
        /// Time between two reads.
        interval: Duration,
    },
}

#[derive(Debug, Default)]
struct Stream {
    received: u64,
    waiting: bool,
}

/// Accepts connections, reads and checks them, and closes each after its peer.
#[derive(Debug)]
pub struct Sink {
    on: ListenOn,
    accept: AcceptConfig,
    reading: Reading,
    streams: HashMap<ConnId, Stream>,
    /// Slow readers' timers, by number.
    due: Vec<ConnId>,
    accepted: u64,
    complete: u64,
    failed: u64,
    received: u64,
    wrong: u64,
    last_byte: Option<Instant>,
}

impl Sink {
    /// Reads what comes to `on`.
    #[must_use]
    pub fn new(on: ListenOn, accept: AcceptConfig, reading: Reading) -> Self {
        Self {
            on,
            accept,
            reading,
            streams: HashMap::new(),
            due: vec![],
            accepted: 0,
            complete: 0,
            failed: 0,
            received: 0,
            wrong: 0,
            last_byte: None,
        }
    }

    /// Bytes read.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Streams that ended in order, each octet as it was sent.
    #[must_use]
    pub const fn complete(&self) -> u64 {
        self.complete
    }

    /// Reads that found an octet which was never sent there.
    #[must_use]
    pub const fn wrong(&self) -> u64 {
        self.wrong
    }

    /// When the last byte was read.
    #[must_use]
    pub const fn last_byte(&self) -> Option<Instant> {
        self.last_byte
    }

    fn read(&mut self, cx: &mut AppCx<'_>, id: ConnId, most: usize) {
        let now = cx.now();
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(mut conn) = cx.conn(id) else { return };
        let mut read = 0;
        for octets in conn.peek() {
            let octets = &octets[..octets.len().min(most - read)];
            self.wrong += u64::from(!pattern::check(stream.received, octets));
            stream.received += octets.len() as u64;
            read += octets.len();
        }
        if read > 0 {
            conn.consume(now, read);
            self.received += read as u64;
            self.last_byte = Some(now);
        }
        if conn.at_end() {
            self.complete += u64::from(conn.error().is_none());
            self.streams.remove(&id);
            cx.release(id);
        }
    }

    fn schedule(&mut self, cx: &mut AppCx<'_>, id: ConnId, interval: Duration) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if !stream.waiting {
            stream.waiting = true;
            cx.set_timer(cx.now() + interval, self.due.len() as u64);
            self.due.push(id);
        }
    }
}

impl App for Sink {
    fn start(&mut self, cx: &mut AppCx<'_>) {
        let listening = cx.listen(self.on, self.accept.clone());
        self.failed += u64::from(listening.is_err());
    }

    fn event(&mut self, cx: &mut AppCx<'_>, conn: ConnId, event: AppEvent) {
        match event {
            AppEvent::Accepted => {
                self.accepted += 1;
                self.streams.insert(conn, Stream::default());
            }
            AppEvent::Readable => match self.reading {
                Reading::Instant => self.read(cx, conn, usize::MAX),
                Reading::Slow { interval, .. } => self.schedule(cx, conn, interval),
            },
            AppEvent::Closed(error) => {
                if self.streams.remove(&conn).is_some() {
                    self.failed += u64::from(error.is_some());
                    cx.release(conn);
                }
            }
            AppEvent::Connected | AppEvent::Writable | AppEvent::Flushed => {}
        }
    }

    fn timer(&mut self, cx: &mut AppCx<'_>, number: u64) {
        let Reading::Slow { bytes, interval } = self.reading else { return };
        let Some(&id) = self.due.get(number as usize) else { return };
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.waiting = false;
        }
        self.read(cx, id, bytes);
        let more = cx.conn(id).is_some_and(|conn| !conn.peek()[0].is_empty());
        if more {
            self.schedule(cx, id, interval);
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&str, f64)) {
        report("accepted", self.accepted as f64);
        report("complete", self.complete as f64);
        report("failed", self.failed as f64);
        report("received_bytes", self.received as f64);
        report("wrong_reads", self.wrong as f64);
    }
}
