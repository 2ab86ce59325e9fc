//! Spans of the crate `tracing`: one for each connection, with what matters of its life.
//!
//! ```no_run
//! # fn with(stack: ackline_runtime::Stack) {
//! use ackline_runtime::spans::ConnectionSpans;
//!
//! stack.set_tracer(Some(Box::new(ConnectionSpans::default())));
//! # }
//! ```
//!
//! The span is called `connection`, and has the level INFO and the fields `id` (the index of its
//! [`ConnId`], used again after its end), `local`, `remote` and `role` (`active` or `passive`). It
//! has no parent, because packets of any connection are handled in the task that happens to run the
//! stack. Its events:
//!
//! | event | level | fields |
//! |---|---|---|
//! | `state` | DEBUG | `from`, `to`: states of RFC 9293 |
//! | `lost` | DEBUG | `bytes`; `by_timer`: RACK's timer found it, otherwise an ACK did |
//! | `timeout` | DEBUG | `expiries` in a row, `rto_ms`: the next one |
//! | `closed` | INFO | `error`, unless it was closed in order |
//!
//! The target of all is `ackline`. A segment that nothing happens to costs a comparison; [`trace`]
//! of `ackline-observe` has every segment.
//!
//! [`trace`]: https://docs.rs/ackline-observe/latest/ackline_observe/trace

use ackline_tcp_core::events::{TraceEvent, Tracer};
use ackline_tcp_core::{ConnId, FourTuple, Instant};
use tracing::{Span, debug, info, info_span};

const TARGET: &str = "ackline";

/// Opens and closes spans as a stack opens and closes connections: a [`Tracer`], for
/// [`Stack::set_tracer`](crate::Stack::set_tracer). A connection that was there before has no span.
#[derive(Debug, Default)]
pub struct ConnectionSpans {
    /// By the connection's index; as many as are open at once.
    spans: Vec<Option<(ConnId, Span)>>,
}

impl ConnectionSpans {
    fn open(&mut self, conn: ConnId, tuple: &FourTuple, passive: bool) {
        let span = info_span!(
            target: TARGET,
            parent: None,
            "connection",
            id = conn.index(),
            local = %tuple.local(),
            remote = %tuple.remote(),
            role = if passive { "passive" } else { "active" },
        );
        let index = conn.index();
        if self.spans.len() <= index {
            self.spans.resize_with(index + 1, || None);
        }
        self.spans[index] = Some((conn, span));
    }

    fn span(&self, conn: ConnId) -> Option<&Span> {
        let (id, span) = self.spans.get(conn.index())?.as_ref()?;
        (*id == conn).then_some(span)
    }

    fn close(&mut self, conn: ConnId) -> Option<Span> {
        let (_, span) = self.spans.get_mut(conn.index())?.take_if(|(id, _)| *id == conn)?;
        Some(span)
    }
}

impl Tracer for ConnectionSpans {
    fn trace(&mut self, _now: Instant, conn: ConnId, event: &TraceEvent) {
        match event {
            TraceEvent::Opened { tuple, passive } => self.open(conn, tuple, *passive),
            TraceEvent::State { from, to } => {
                if let Some(span) = self.span(conn) {
                    debug!(target: TARGET, parent: span, %from, %to, "state");
                }
            }
            TraceEvent::Lost { bytes, by_timer, .. } => {
                if let Some(span) = self.span(conn) {
                    debug!(target: TARGET, parent: span, bytes, by_timer, "lost");
                }
            }
            TraceEvent::Rto { expiries, rto } => {
                if let Some(span) = self.span(conn) {
                    debug!(target: TARGET, parent: span, expiries, rto_ms = rto.as_millis(), "timeout");
                }
            }
            TraceEvent::Closed { error } => {
                if let Some(span) = self.close(conn) {
                    let error = error.as_ref().map(tracing::field::display);
                    info!(target: TARGET, parent: &span, error, "closed");
                }
            }
            _ => {}
        }
    }
}
