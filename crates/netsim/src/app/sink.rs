//! A listener that reads everything it receives, and checks every octet.

use super::stream::PerConn;
use super::{App, AppCx, AppEvent, HostCosts};
use crate::pattern;
use ackline_tcp_core::config::AcceptConfig;
use ackline_tcp_core::{ConnId, Duration, Instant, ListenOn};

/// How fast to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Everything, at the moment it arrives: the ACK already shows the window opened by the read.
    Instant,
    /// At most `bytes` every `interval`.
    Slow {
        /// Bytes per read.
        bytes: usize,
        /// Time between two reads.
        interval: Duration,
    },
    /// Everything, after the host has woken the reader and copied the data, at these costs.
    Copying(HostCosts),
}

#[derive(Debug, Default)]
struct Stream {
    received: u64,
    /// A timer is set.
    waiting: bool,
    /// The number of its timers.
    number: Option<u64>,
    /// Bytes of the copy in progress.
    copying: usize,
}

/// Accepts connections, reads and checks their data, and closes each after its peer has.
#[derive(Debug)]
pub struct Sink {
    on: ListenOn,
    accept: AcceptConfig,
    reading: Reading,
    streams: PerConn<Stream>,
    /// Streams that are not read at once, by the number of their timers.
    slow: Vec<ConnId>,
    accepted: u64,
    complete: u64,
    failed: u64,
    received: u64,
    wrong: u64,
    last_byte: Option<Instant>,
}

impl Sink {
    /// Reads from connections accepted at `on`.
    #[must_use]
    pub fn new(on: ListenOn, accept: AcceptConfig, reading: Reading) -> Self {
        Self {
            on,
            accept,
            reading,
            streams: PerConn::default(),
            slow: vec![],
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

    /// Streams that ended in order, with every octet as sent.
    #[must_use]
    pub const fn complete(&self) -> u64 {
        self.complete
    }

    /// Reads that found an octet that was never sent there.
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

    /// Sets the timer of a stream.
    fn read_in(&mut self, cx: &mut AppCx<'_>, id: ConnId, time: Duration) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.waiting = true;
        let number = *stream.number.get_or_insert_with(|| {
            self.slow.push(id);
            self.slow.len() as u64 - 1
        });
        cx.set_timer(cx.now() + time, number);
    }

    /// Starts to copy everything available, after the time `after`.
    fn copy(&mut self, cx: &mut AppCx<'_>, id: ConnId, costs: HostCosts, after: Duration) {
        let there: usize = cx.conn(id).map_or(0, |conn| conn.peek().iter().map(|octets| octets.len()).sum());
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.copying = there;
            self.read_in(cx, id, after.saturating_add(costs.copy(there)));
        }
    }

    fn is_waiting(&mut self, id: ConnId) -> bool {
        self.streams.get_mut(&id).is_some_and(|stream| stream.waiting)
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
            AppEvent::Readable if self.is_waiting(conn) => {}
            AppEvent::Readable => match self.reading {
                Reading::Instant => self.read(cx, conn, usize::MAX),
                Reading::Slow { interval, .. } => self.read_in(cx, conn, interval),
                Reading::Copying(costs) => self.copy(cx, conn, costs, costs.wake_up),
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
        let Some(&id) = self.slow.get(number as usize) else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.waiting = false;
        let copying = stream.copying;
        self.read(cx, id, if let Reading::Slow { bytes, .. } = self.reading { bytes } else { copying });
        let more = cx.conn(id).is_some_and(|conn| !conn.peek()[0].is_empty());
        match self.reading {
            Reading::Slow { interval, .. } if more => self.read_in(cx, id, interval),
            Reading::Copying(costs) if more => self.copy(cx, id, costs, Duration::ZERO),
            _ => {}
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
