//! Senders that do not always have something to send: writes of a size at intervals, and sources
//! that are on and off.

use super::stream::Outgoing;
use super::{App, AppCx, AppEvent, Draw};
use ackline_tcp_core::config::ConnConfig;
use ackline_tcp_core::{ConnId, Duration, Instant, Target};
use std::sync::Arc;

/// When a source has something to write.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// A write of `size` bytes every `interval` seconds, the first when the connection is
    /// established.
    Writes {
        /// Bytes of each write.
        size: Draw,
        /// Seconds between two.
        interval: Draw,
        /// Writes until the connection is closed; `None`: without end.
        count: Option<u64>,
    },
    /// As fast as TCP takes it for a time, then nothing for a time. What stands in the send buffer
    /// when a source goes off is still sent.
    OnOff {
        /// Seconds on.
        on: Draw,
        /// Seconds off.
        off: Draw,
        /// Times on until the connection is closed; `None`: without end.
        count: Option<u64>,
    },
}

/// Writes to one connection by a schedule.
#[derive(Debug)]
pub struct Source {
    to: Target,
    config: Arc<ConnConfig>,
    schedule: Schedule,
    conn: Option<ConnId>,
    outgoing: Outgoing,
    is_on: bool,
    rounds: u64,
    /// Writes that did not fit into the send buffer at once.
    stalled: u64,
    shut: bool,
    failed: bool,
    started: Instant,
    finished: Option<Instant>,
}

const NEXT: u64 = 0;

impl Source {
    /// Writes to `to`.
    #[must_use]
    pub const fn new(to: Target, config: Arc<ConnConfig>, schedule: Schedule) -> Self {
        Self {
            to,
            config,
            schedule,
            conn: None,
            outgoing: Outgoing { written: 0, goal: 0 },
            is_on: false,
            rounds: 0,
            stalled: 0,
            shut: false,
            failed: false,
            started: Instant::ZERO,
            finished: None,
        }
    }

    /// Bytes given to TCP so far.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.outgoing.written
    }

    /// Writes, or times on, that have begun.
    #[must_use]
    pub const fn rounds(&self) -> u64 {
        self.rounds
    }

    /// From the start to the acknowledgment of the last byte and the FIN.
    #[must_use]
    pub fn completion_time(&self) -> Option<Duration> {
        self.finished.map(|at| at.since(self.started))
    }

    fn count(&self) -> Option<u64> {
        match self.schedule {
            Schedule::Writes { count, .. } | Schedule::OnOff { count, .. } => count,
        }
    }

    fn next(&mut self, cx: &mut AppCx<'_>) {
        let wait = match &self.schedule {
            Schedule::Writes { size, interval, .. } => {
                self.rounds += 1;
                self.outgoing.goal += size.bytes(cx.rng());
                interval.time(cx.rng())
            }
            Schedule::OnOff { on, off, .. } => {
                self.is_on = !self.is_on;
                if self.is_on {
                    self.rounds += 1;
                    self.outgoing.goal = u64::MAX;
                    on.time(cx.rng())
                } else {
                    self.outgoing.goal = self.outgoing.written;
                    off.time(cx.rng())
                }
            }
        };
        self.write(cx);
        if self.outgoing.written < self.outgoing.goal && !self.is_on {
            self.stalled += 1;
        }
        if self.is_on || self.count().is_none_or(|count| self.rounds < count) {
            cx.set_timer(cx.now() + wait, NEXT);
        }
    }

    fn write(&mut self, cx: &mut AppCx<'_>) {
        let Some(id) = self.conn else { return };
        self.failed |= !self.outgoing.push(cx, id);
        let over = !self.is_on && self.count().is_some_and(|count| self.rounds >= count);
        if over && self.outgoing.written >= self.outgoing.goal && !self.shut {
            self.shut = true;
            let now = cx.now();
            if let Some(mut conn) = cx.conn(id) {
                conn.shutdown(now);
            }
        }
    }
}

impl App for Source {
    fn start(&mut self, cx: &mut AppCx<'_>) {
        self.started = cx.now();
        match cx.connect(self.to, self.config.clone()) {
            Ok(conn) => self.conn = Some(conn),
            Err(_) => self.failed = true,
        }
    }

    fn event(&mut self, cx: &mut AppCx<'_>, conn: ConnId, event: AppEvent) {
        match event {
            AppEvent::Connected => self.next(cx),
            AppEvent::Writable => self.write(cx),
            AppEvent::Flushed => {
                self.finished = Some(cx.now());
                self.conn = None;
                cx.release(conn);
            }
            AppEvent::Closed(error) => {
                self.failed |= error.is_some();
                self.conn = None;
                cx.release(conn);
            }
            AppEvent::Accepted | AppEvent::Readable => {}
        }
    }

    fn timer(&mut self, cx: &mut AppCx<'_>, _: u64) {
        if self.conn.is_some() {
            self.next(cx);
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&str, f64)) {
        report("written_bytes", self.outgoing.written as f64);
        report("rounds", self.rounds as f64);
        report("stalled_writes", self.stalled as f64);
        report("failed", f64::from(u8::from(self.failed)));
        if let Some(time) = self.completion_time() {
            report("completion_s", time.as_secs_f64());
        }
    }
}
