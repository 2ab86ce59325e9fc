//! The thread: it writes a JSON text per event.

use super::event::Event;
use super::header::Header;
use super::latest_values::LatestValues;
use super::record::{Group, Record};
use super::{EarlyEnd, TraceOptions, TraceSummary};
use crate::background::Sink;
use crate::background::queue::{Batch, QueueEntry};
use crate::record_file::{CHUNK, LostRecords, RecordFile};
use ackline_tcp_core::events::TraceEvent;
use ackline_tcp_core::{ConnId, Duration, Instant};
use serde::Serialize;
use std::io;
use std::num::NonZeroU64;
use std::path::Path;

/// Begins a JSON text in a sequence (RFC 7464, section 2.2).
pub const RECORD_SEPARATOR: u8 = 0x1e;

/// One thing that waits for the thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum QueuedEvent {
    Event(Instant, ConnId, TraceEvent),
    /// Events that came while the queue was full.
    Gap(u64),
}

impl QueueEntry for QueuedEvent {
    fn gap(events: u64) -> Self {
        Self::Gap(events)
    }
}

/// Writes batches of events.
#[derive(Debug)]
pub(super) struct Writer {
    file: RecordFile,
    /// Texts that are not in the file yet.
    texts: Vec<u8>,
    /// Most bytes of the file.
    limit: u64,
    origin: Instant,
    /// Of the last event.
    at: Duration,
    said: LatestValues,
    dropped: u64,
    unwritten: u64,
    cut_short: Option<EarlyEnd>,
}

impl Writer {
    pub(super) fn create(path: &Path, options: TraceOptions) -> io::Result<Self> {
        let mut texts = vec![];
        add_text(&mut texts, &Header::of(&options));
        let file = RecordFile::create(path, &texts)?;
        texts.clear();
        Ok(Self {
            file,
            texts,
            limit: options.file_size.map_or(u64::MAX, NonZeroU64::get),
            origin: options.origin,
            at: Duration::ZERO,
            said: LatestValues::default(),
            dropped: 0,
            unwritten: 0,
            cut_short: None,
        })
    }

    fn event(&mut self, conn: ConnId, event: &TraceEvent) {
        if let Some(event) = self.said.record(conn, event) {
            self.add(event, Some(conn.into()));
        }
    }

    /// Adds a record, unless the file is at its end.
    fn add(&mut self, event: Event, group: Option<Group>) {
        if self.cut_short.is_some() {
            self.unwritten += 1;
            return;
        }
        let start = self.texts.len();
        add_text(&mut self.texts, &Record::new(self.at, event, group));
        if !self.file.has_room(self.texts.len(), self.limit) {
            self.texts.truncate(start);
            self.flush();
            self.unwritten += 1;
            if self.cut_short.is_none() {
                self.cut(EarlyEnd::FileSize);
            }
            return;
        }
        self.file.begin(start);
        if self.texts.len() >= CHUNK {
            self.flush();
        }
    }

    /// Writes what is there.
    fn flush(&mut self) {
        if self.cut_short.is_none()
            && let Err(failed) = self.write()
        {
            self.fail(failed);
        }
    }

    fn write(&mut self) -> Result<(), LostRecords> {
        let written = self.file.write(&self.texts);
        self.texts.clear();
        written
    }

    /// The file could not be written.
    fn fail(&mut self, failed: LostRecords) {
        self.unwritten += failed.records;
        self.cut(EarlyEnd::Error(failed.error));
    }

    /// Ends the trace early.
    fn cut(&mut self, why: EarlyEnd) {
        // If not even that can be written, the summary says so.
        let _ = self.end(Some(why.to_string()));
        self.cut_short = Some(why);
    }

    /// Writes the last record.
    fn end(&mut self, cut_short: Option<String>) -> Result<(), LostRecords> {
        let ended = Event::TraceEnded {
            records: self.file.records(),
            dropped: self.dropped,
            unwritten: self.unwritten,
            cut_short,
        };
        add_text(&mut self.texts, &Record::new(self.at, ended, None));
        self.write()
    }
}

impl Sink for Writer {
    type Record = QueuedEvent;
    type Summary = TraceSummary;

    fn write(&mut self, batch: &mut Batch<QueuedEvent>) {
        for waiting in &batch.records {
            match waiting {
                QueuedEvent::Event(now, conn, event) => {
                    self.at = now.since(self.origin);
                    self.event(*conn, event);
                }
                QueuedEvent::Gap(count) => {
                    self.dropped += count;
                    self.add(Event::EventsDropped { count: *count }, None);
                }
            }
        }
        self.flush();
    }

    fn counts(&self) -> (u64, u64) {
        (self.file.records(), self.unwritten)
    }

    fn finish(mut self) -> TraceSummary {
        self.flush();
        if self.cut_short.is_none()
            && let Err(failed) = self.end(None)
        {
            self.fail(failed);
        }
        let Self { file, dropped, unwritten, cut_short, .. } = self;
        TraceSummary { records: file.records(), dropped, unwritten, cut_short }
    }
}

/// Adds a JSON text.
fn add_text(texts: &mut Vec<u8>, value: &impl Serialize) {
    texts.push(RECORD_SEPARATOR);
    // A vector takes everything, and no key is anything but a string.
    let _ = serde_json::to_writer(&mut *texts, value);
    texts.push(b'\n');
}
