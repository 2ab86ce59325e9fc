//! The socket layer of a BSD sender of the 1990s, which copies an endless stream in chunks. It
//! determines how much data TCP has when an acknowledgment arrives, and so whether Nagle's
//! algorithm and delayed acknowledgments wait for each other.
//!
//! ```text
//!   ACK ─► free the bytes ─► TCP output ─► wake the writer ─► copy a chunk ─► TCP output ─► copy a chunk ...
//!                                          └ cost per wake-up ┘└ cost per KB ┘
//! ```
//!
//! The writer is woken when its [copy rule](CopyRule) allows a copy, after TCP has sent what the
//! ACK released. Each chunk is given to TCP at once, in one piece, and is only smaller than the
//! rule's unit if the buffer has no more room. The host's costs delay the copy: first the wake-up,
//! then the copying.

use super::{App, AppCx, AppEvent, HostCosts};
use crate::pattern;
use ackline_tcp_core::config::ConnConfig;
use ackline_tcp_core::{ConnId, Duration, Instant, Target};
use std::sync::Arc;

/// When a blocked writer may copy again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyRule {
    /// When there is room for a whole chunk of this many bytes (4096), or for the rest of the
    /// stream. A smaller buffer is one chunk.
    Whole(u32),
    /// When this many bytes (512) are free or the buffer is empty. Chunks have at most [`CHUNK`]
    /// bytes.
    Partial(u32),
}

/// Bytes copied before TCP output is called.
pub const CHUNK: u32 = 4_096;

impl CopyRule {
    /// The free bytes needed for a copy, and its maximum size.
    fn limits(self, buffer: u32) -> (usize, usize) {
        let (from, most) = match self {
            Self::Whole(unit) => (unit.min(buffer), unit.min(buffer)),
            Self::Partial(least) => (least.min(buffer), CHUNK.min(buffer)),
        };
        (from.max(1) as usize, most.max(1) as usize)
    }
}

/// Writes a stream as a BSD process does.
#[derive(Debug)]
pub struct BsdWriter {
    to: Target,
    config: Arc<ConnConfig>,
    rule: CopyRule,
    costs: HostCosts,
    /// Bytes of the stream; `u64::MAX`: endless.
    total: u64,
    conn: Option<ConnId>,
    written: u64,
    /// A copy or a wake-up is in progress.
    is_busy: bool,
    /// Bytes of the copy in progress.
    chunk: usize,
    wake_ups: u64,
    copies: u64,
    failed: bool,
    started: Instant,
    finished: Option<Instant>,
}

/// Timers: the writer runs; it has finished a copy.
const AWAKE: u64 = 0;
const COPIED: u64 = 1;

impl BsdWriter {
    /// Writes `total` bytes (`None`: endless) to `to`. The send buffer is that of `config`.
    #[must_use]
    pub fn new(
        to: Target,
        config: Arc<ConnConfig>,
        rule: CopyRule,
        costs: HostCosts,
        total: Option<u64>,
    ) -> Self {
        Self {
            to,
            config,
            rule,
            costs,
            total: total.unwrap_or(u64::MAX),
            conn: None,
            written: 0,
            is_busy: false,
            chunk: 0,
            wake_ups: 0,
            copies: 0,
            failed: false,
            started: Instant::ZERO,
            finished: None,
        }
    }

    /// Bytes given to TCP so far.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Number of times the writer was blocked and woken.
    #[must_use]
    pub const fn wake_ups(&self) -> u64 {
        self.wake_ups
    }

    /// Time from the start to the acknowledgment of the last byte and the FIN.
    #[must_use]
    pub fn completion_time(&self) -> Option<Duration> {
        self.finished.map(|at| at.since(self.started))
    }

    /// The rest of the stream.
    fn left(&self) -> usize {
        usize::try_from(self.total - self.written).unwrap_or(usize::MAX)
    }

    /// Starts the next copy, or blocks until the rule allows it.
    fn go_on(&mut self, cx: &mut AppCx<'_>) {
        let now = cx.now();
        let left = self.left();
        let (from, most) = self.rule.limits(self.config.send_buffer);
        let (from, most) = (from.min(left), most.min(left));
        let Some(mut conn) = self.conn.and_then(|id| cx.conn(id)) else { return };
        self.is_busy = false;
        if left == 0 {
            conn.shutdown(now);
            return;
        }
        let space = conn.write_space();
        if space < from {
            conn.want_write_space(now, from);
            return;
        }
        self.is_busy = true;
        self.chunk = most.min(space);
        cx.set_timer(now + self.costs.copy(self.chunk), COPIED);
    }

    fn copied(&mut self, cx: &mut AppCx<'_>) {
        let now = cx.now();
        let Some(mut conn) = self.conn.and_then(|id| cx.conn(id)) else { return };
        let mut chunk = self.chunk;
        while chunk > 0 {
            match conn.write(now, pattern::piece(self.written, chunk)) {
                Ok(taken) if taken > 0 => {
                    self.written += taken as u64;
                    chunk -= taken;
                }
                // There was room, so the connection is over.
                _ => {
                    self.failed = true;
                    return;
                }
            }
        }
        self.copies += 1;
        // TCP output precedes the next copy, even if that costs nothing.
        self.chunk = 0;
        cx.set_timer(cx.now(), AWAKE);
    }
}

impl App for BsdWriter {
    fn start(&mut self, cx: &mut AppCx<'_>) {
        self.started = cx.now();
        match cx.connect(self.to, self.config.clone()) {
            Ok(conn) => self.conn = Some(conn),
            Err(_) => self.failed = true,
        }
    }

    fn event(&mut self, cx: &mut AppCx<'_>, conn: ConnId, event: AppEvent) {
        match event {
            AppEvent::Connected => self.go_on(cx),
            AppEvent::Writable if !self.is_busy => {
                self.is_busy = true;
                self.wake_ups += 1;
                cx.set_timer(cx.now() + self.costs.wake_up, AWAKE);
            }
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
            AppEvent::Writable | AppEvent::Accepted | AppEvent::Readable => {}
        }
    }

    fn timer(&mut self, cx: &mut AppCx<'_>, number: u64) {
        match number {
            AWAKE => self.go_on(cx),
            _ => self.copied(cx),
        }
    }

    fn metrics(&self, report: &mut dyn FnMut(&str, f64)) {
        report("written_bytes", self.written as f64);
        report("wake_ups", self.wake_ups as f64);
        report("copies", self.copies as f64);
        report("failed", f64::from(u8::from(self.failed)));
        if let Some(time) = self.completion_time() {
            report("completion_s", time.as_secs_f64());
        }
    }
}
