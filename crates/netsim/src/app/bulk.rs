//! One connection that sends as fast as TCP takes it.

use super::{App, AppCx, AppEvent};
use crate::pattern;
use ackline_tcp_core::config::ConnConfig;
use ackline_tcp_core::{ConnId, Duration, Instant, Target};
use std::sync::Arc;

/// How much to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This many bytes.
    Bytes(u64),
    /// What can be written in this time.
    For(Duration),
    /// Until the simulation ends.
    Endless,
}

const END: u64 = 0;

/// Opens a connection, writes, and closes it after the last byte.
#[derive(Debug)]
pub struct Bulk {
    to: Target,
    config: Arc<ConnConfig>,
    amount: Amount,
    conn: Option<ConnId>,
    written: u64,
    started: Instant,
    finished: Option<Instant>,
    failed: bool,
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
            conn: None,
            written: 0,
            started: Instant::ZERO,
            finished: None,
            failed: false,
            over: false,
        }
    }

    /// Bytes given to TCP so far.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// From the start to the acknowledgment of the last byte and the FIN.
    #[must_use]
    pub fn completion_time(&self) -> Option<Duration> {
        self.finished.map(|at| at.since(self.started))
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
            match conn.write(pattern::piece(self.written, left)) {
                Ok(0) => return,
                Ok(taken) => self.written += taken as u64,
                Err(_) => {
                    self.over = true;
                    return;
                }
            }
        }
    }
}

impl App for Bulk {
    fn start(&mut self, cx: &mut AppCx<'_>) {
        self.started = cx.now();
        match cx.connect(self.to, self.config.clone()) {
            Ok(conn) => self.conn = Some(conn),
            Err(_) => self.failed = true,
        }
        if let Amount::For(time) = self.amount {
            cx.set_timer(self.started + time, END);
        }
    }

    fn event(&mut self, cx: &mut AppCx<'_>, conn: ConnId, event: AppEvent) {
        match event {
            AppEvent::Connected | AppEvent::Writable => self.write(cx),
            AppEvent::Flushed => {
                self.finished = Some(cx.now());
                cx.release(conn);
            }
            AppEvent::Closed(error) => {
                self.failed |= error.is_some();
                cx.release(conn);
            }
            AppEvent::Accepted | AppEvent::Readable => {}
        }
    }

    fn timer(&mut self, cx: &mut AppCx<'_>, number: u64) {
        debug_assert_eq!(number, END);
        if self.over {
            return;
        }
        self.over = true;
        let now = cx.now();
        if let Some(mut conn) = self.conn.and_then(|id| cx.conn(id)) {
            conn.shutdown(now);
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&str, f64)) {
        report("written_bytes", self.written as f64);
        report("failed", f64::from(u8::from(self.failed)));
        if let Some(time) = self.completion_time() {
            report("completion_s", time.as_secs_f64());
        }
    }
}
