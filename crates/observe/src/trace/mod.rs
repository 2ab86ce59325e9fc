//! Traces of a running stack: what happened inside its connections, as JSON.
//!
//! A file is a sequence of JSON texts (RFC 7464) in qlog's container
//! (draft-ietf-quic-qlog-main-schema-14): a [`Header`], then a [`Record`] per event. [`Trace`]
//! writes it, [`Reader`] reads it.
//!
//! | file | owns |
//! |---|---|
//! | `event` | the events: their names and fields, in a file and from the core |
//! | `record`, `header`, `date` | the rest of the format |
//! | `metrics` | the data of `recovery:metrics_updated` |
//! | `latest_values` | what has changed since it was last said of a connection |
//! | `writer` | the thread |
//! | `reader` | reading |

mod date;
mod event;
mod header;
mod latest_values;
mod metrics;
mod reader;
mod record;
#[cfg(test)]
mod tests;
mod time;
mod writer;

use crate::background::BackgroundWriter;
use crate::background::meter::Meter;
use crate::background::queue::Queue;
use ackline_tcp_core::events::{TraceEvent, Tracer};
use ackline_tcp_core::{ConnId, Instant};
use std::io;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use writer::{QueuedEvent, Writer};

pub use crate::record_file::EarlyEnd;
pub use event::{Event, Word};
pub use header::{CommonFields, Header, ReferenceTime, TraceSeq, VantagePoint};
pub use metrics::Metrics;
pub use reader::{ReadError, Reader};
pub use record::{Group, Record};
pub use writer::RECORD_SEPARATOR;

/// How to trace.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TraceOptions {
    /// The instant of the stack's clock that is time 0 of the file; earlier events have time 0,
    /// too.
    pub origin: Instant,
    /// Nanoseconds from 1970 to `origin`.
    pub origin_unix_ns: u64,
    /// The trace's title, such as a command's name.
    pub title: String,
    /// Said of the whole file; empty if nothing.
    pub description: String,
    /// Name of the place where events are seen, such as the interface `ack0`.
    pub vantage_point: String,
    /// Most bytes of the file; `None`: no limit. The trace ends when it is full.
    pub file_size: Option<NonZeroU64>,
    /// Most bytes that wait for the thread, about 100 for each event. Events that find no room are
    /// counted, and missing in the file.
    pub queue: usize,
}

impl TraceOptions {
    /// No limit of the file, 32 MiB of queue.
    #[must_use]
    pub fn new(vantage_point: impl Into<String>, origin: Instant, origin_unix_ns: u64) -> Self {
        Self {
            origin,
            origin_unix_ns,
            title: "ackline".to_owned(),
            description: String::new(),
            vantage_point: vantage_point.into(),
            file_size: None,
            queue: 32 << 20,
        }
    }
}

/// A trace that runs: give its [`tracer`](Self::tracer) to a stack.
///
/// Ends when [finished](Self::finish) or dropped. A stack may keep the tracer, which does nothing
/// from then on.
#[derive(Debug)]
pub struct Trace(BackgroundWriter<QueuedEvent, TraceSummary>);

/// What became of a trace.
#[derive(Debug)]
#[non_exhaustive]
pub struct TraceSummary {
    /// Records in the file, without the header and the last one.
    pub records: u64,
    /// Events that came while the queue was full.
    pub dropped: u64,
    /// Records that came after the trace had been cut short.
    pub unwritten: u64,
    /// Why it is cut short, if it is.
    pub cut_short: Option<EarlyEnd>,
}

impl Trace {
    /// Creates the file and starts the thread. A file of this name is replaced.
    ///
    /// # Errors
    /// If the file cannot be created or written, or the system has no thread left.
    pub fn start(path: impl AsRef<Path>, options: TraceOptions) -> io::Result<Self> {
        let queue = options.queue;
        let writer = Writer::create(path.as_ref(), options)?;
        BackgroundWriter::start("trace", queue, writer).map(Self)
    }

    /// What sees the events.
    #[must_use]
    pub fn tracer(&self) -> Box<dyn Tracer> {
        Box::new(CopyEvents(self.0.queue().clone()))
    }

    /// Reads the counters of records while the trace runs.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.0.meter()
    }

    /// Writes what waits, and ends. Blocks meanwhile.
    #[must_use]
    pub fn finish(self) -> TraceSummary {
        self.0.finish().unwrap_or_else(|error| TraceSummary {
            records: 0,
            dropped: 0,
            unwritten: 0,
            cut_short: Some(EarlyEnd::Error(error)),
        })
    }
}

/// Copies events into the queue.
#[derive(Debug)]
struct CopyEvents(Arc<Queue<QueuedEvent>>);

impl Tracer for CopyEvents {
    fn trace(&mut self, now: Instant, conn: ConnId, event: &TraceEvent) {
        self.0.push(QueuedEvent::Event(now, conn, *event), 1, 0, |_| {});
    }
}
