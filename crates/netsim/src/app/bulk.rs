//! One connection that sends as fast as TCP takes it.

use super::{App, AppCx, AppEvent, Draw, Timed};
use crate::pattern;
use ackline_tcp_core::config::ConnConfig;
use ackline_tcp_core::{ConnId, Duration, Instant, Target};
use std::sync::Arc;

/// How much to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This many bytes.
    Bytes(u64),
    /// As much as can be written in this time.
    For(Duration),
    /// Until the simulation ends.
    Endless,
}

/// Timers: the next transfer starts; higher numbers, by transfer: its time is over.
const BEGIN: u64 = 0;
const END: u64 = 1;

/// Opens a connection, writes, and closes it after the last byte; once, or again and again.
#[derive(Debug)]
pub struct Bulk {
    to: Target,
    config: Arc<ConnConfig>,
    amount: Amount,
    transfers: u64,
    wait: Draw,
    begun: u64,
    conn: Option<ConnId>,
    written: u64,
    started: Instant,
    written_before: u64,
    completions: Vec<Timed>,
    failed: u64,
    over: bool,
}

impl Bulk {
    /// Sends `amount` to `to`.
    #[must_use]
    pub const fn new(to: Target, config: Arc<ConnConfig>, amount: Amount) -> Self {
        Self {
            to,
            config,
            amount,
            transfers: 1,
            wait: Draw::ZERO,
            begun: 0,
            conn: None,
            written: 0,
            started: Instant::ZERO,
            written_before: 0,
            completions: vec![],
            failed: 0,
            over: false,
        }
    }

    /// The same, `transfers` times, each on its own connection, `wait` seconds after the end of the
    /// previous one.
    #[must_use]
    pub fn repeated(self, transfers: u64, wait: Draw) -> Self {
        Self { transfers, wait, ..self }
    }

    /// Bytes given to TCP so far.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written_before + self.written
    }

    /// Time from the start of the last completed transfer to the acknowledgment of its last byte
    /// and the FIN.
    #[must_use]
    pub fn completion_time(&self) -> Option<Duration> {
        self.completions.last().map(|(_, time)| *time)
    }

    /// When each transfer completed, and how long it took.
    #[must_use]
    pub fn completions(&self) -> &[Timed] {
        &self.completions
    }

    fn left(&self) -> u64 {
        match self.amount {
            Amount::Bytes(total) => total - self.written,
            Amount::For(_) | Amount::Endless => u64::MAX,
        }
    }

    fn write(&mut self, cx: &mut AppCx<'_>) {
        let now = cx.now();
        let Some(mut conn) = self.conn.and_then(|id| cx.conn(id)) else { return };
        while !self.over {
            let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
            if left == 0 {
                self.over = true;
                conn.shutdown(now);
                return;
            }
            match conn.write(now, pattern::piece(self.written, left)) {
                Ok(0) => return,
                Ok(taken) => self.written += taken as u64,
                Err(_) => {
                    self.over = true;
                    return;
                }
            }
        }
    }

    fn begin(&mut self, cx: &mut AppCx<'_>) {
        self.begun += 1;
        self.started = cx.now();
        self.written_before += self.written;
        (self.written, self.over) = (0, false);
        match cx.connect(self.to, self.config.clone()) {
            Ok(conn) => self.conn = Some(conn),
            Err(_) => {
                self.failed += 1;
                self.end(cx);
                return;
            }
        }
        if let Amount::For(time) = self.amount {
            cx.set_timer(self.started + time, END + self.begun);
        }
    }

    fn end(&mut self, cx: &mut AppCx<'_>) {
        if let Some(conn) = self.conn.take() {
            cx.release(conn);
        }
        self.over = true;
        if self.begun < self.transfers {
            let wait = self.wait.time(cx.rng());
            cx.set_timer(cx.now() + wait, BEGIN);
        }
    }
}

impl App for Bulk {
    fn start(&mut self, cx: &mut AppCx<'_>) {
        self.begin(cx);
    }

    fn event(&mut self, cx: &mut AppCx<'_>, conn: ConnId, event: AppEvent) {
        if self.conn != Some(conn) {
            return;
        }
        match event {
            AppEvent::Connected | AppEvent::Writable => self.write(cx),
            AppEvent::Flushed => {
                self.completions.push((cx.now(), cx.now().since(self.started)));
                self.end(cx);
            }
            AppEvent::Closed(error) => {
                self.failed += u64::from(error.is_some());
                self.end(cx);
            }
            AppEvent::Accepted | AppEvent::Readable => {}
        }
    }

    fn timer(&mut self, cx: &mut AppCx<'_>, number: u64) {
        if number == BEGIN {
            self.begin(cx);
        } else if number == END + self.begun && !self.over {
            self.over = true;
            let now = cx.now();
            if let Some(mut conn) = self.conn.and_then(|id| cx.conn(id)) {
                conn.shutdown(now);
            }
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&str, f64)) {
        report("written_bytes", self.written() as f64);
        report("begun", self.begun as f64);
        report("complete", self.completions.len() as f64);
        report("failed", self.failed as f64);
        if let Some(time) = self.completion_time() {
            report("completion_s", time.as_secs_f64());
        }
    }

    fn samples(&self, report: &mut dyn FnMut(&str, &[Timed])) {
        report("completion", &self.completions);
    }
}
