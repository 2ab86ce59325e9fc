//! Captures of a running stack.
//!
//! | file | owns |
//! |---|---|
//! | `observer` | copying packets and events, inside the stack |
//! | `record`, `pieces` | what waits for the thread |
//! | `writer` | the thread |
//! | `comments`, `notes` | what is said of packets |
//! | `checksum` | completing checksums |
//! | `files` | the files: their limit, their rotation, and what is left if one cannot be written |

mod checksum;
mod comments;
mod files;
mod notes;
mod observer;
mod pieces;
mod record;
#[cfg(test)]
mod tests;
mod writer;

use crate::background::BackgroundWriter;
use crate::background::meter::Meter;
use crate::pcapng::LinkType;
use ackline_tcp_core::events::{PacketObserver, Tracer};
use files::Files;
use observer::{CopyEvents, CopyPackets};
use record::Record;
use std::io;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use writer::Writer;

pub use crate::record_file::EarlyEnd;

/// How to capture.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CaptureOptions {
    /// Nanoseconds from 1970 to the first instant of the stack's clock.
    pub epoch_ns: u64,
    /// Name of the interface in the file, such as `ack0`.
    pub interface: String,
    /// What packets begin with. [`LinkType::Ethernet`] is for a device with Ethernet frames: their
    /// headers are captured, too.
    pub link_type: LinkType,
    /// Said of the whole file; empty if nothing.
    pub comment: String,
    /// Bytes of each packet that are captured; `None`: all. The file states every packet's length,
    /// and the checksum of the whole packet also if it is cut.
    pub snap_length: Option<NonZeroU32>,
    /// Write a super-packet as the packets that it is split into on the wire; otherwise as one
    /// packet, as the device gets it.
    pub split: bool,
    /// Most bytes of a file; `None`: no limit.
    pub file_size: Option<NonZeroU64>,
    /// Files of [`file_size`](Self::file_size) to keep: after the last, the oldest is deleted.
    /// Their names are numbered: `trace_00001.pcapng`. `None`: one file, and the capture ends when
    /// it is full.
    pub files: Option<NonZeroU32>,
    /// Most bytes that wait for the thread, about 100 for each packet included. Packets that find
    /// no room are counted, and missing in the file.
    pub queue: usize,
}

impl CaptureOptions {
    /// Whole packets without link headers, super-packets as they are, one file without limit, 32
    /// MiB of queue.
    #[must_use]
    pub fn new(interface: impl Into<String>, epoch_ns: u64) -> Self {
        Self {
            epoch_ns,
            interface: interface.into(),
            link_type: LinkType::Raw,
            comment: String::new(),
            snap_length: None,
            split: false,
            file_size: None,
            files: None,
            queue: 32 << 20,
        }
    }
}

/// A capture that runs: give [`observer`](Self::observer) and [`tracer`](Self::tracer) to a stack.
///
/// Ends when [finished](Self::finish) or dropped. A stack may keep its observer and tracer, which
/// do nothing from then on.
#[derive(Debug)]
pub struct Capture {
    background: BackgroundWriter<Record, CaptureSummary>,
    snap_length: u32,
    split: bool,
    link_type: LinkType,
}

/// What became of a capture.
#[derive(Debug)]
#[non_exhaustive]
pub struct CaptureSummary {
    /// Packets in files, those in files that were deleted since included.
    pub packets: u64,
    /// Packets that came while the queue was full.
    pub dropped: u64,
    /// Packets that came after the capture had been cut short.
    pub unwritten: u64,
    /// Files that were begun.
    pub files: u32,
    /// Why it is cut short, if it is.
    pub cut_short: Option<EarlyEnd>,
}

impl Capture {
    /// Creates the first file and starts the thread. A file of this name is replaced.
    ///
    /// # Errors
    /// If the file cannot be created or written, or the system has no thread left.
    pub fn start(path: impl Into<PathBuf>, options: CaptureOptions) -> io::Result<Self> {
        let snap_length = options.snap_length.map_or(u32::MAX, NonZeroU32::get);
        let CaptureOptions { split, link_type, queue, epoch_ns, .. } = options;
        let writer = Writer::new(Files::create(path.into(), options)?, epoch_ns);
        Ok(Self {
            background: BackgroundWriter::start("capture", queue, writer)?,
            snap_length,
            split,
            link_type,
        })
    }

    /// What sees the packets.
    #[must_use]
    pub fn observer(&self) -> Box<dyn PacketObserver> {
        Box::new(CopyPackets {
            queue: self.background.queue().clone(),
            snap_length: self.snap_length,
            split: self.split,
            link_type: self.link_type,
        })
    }

    /// What sees the events that comments tell of. Without it, they only say why packets were sent.
    #[must_use]
    pub fn tracer(&self) -> Box<dyn Tracer> {
        Box::new(CopyEvents(self.background.queue().clone()))
    }

    /// Reads the counters of packets while the capture runs.
    #[must_use]
    pub fn meter(&self) -> Meter {
        self.background.meter()
    }

    /// Writes what waits, and ends. Blocks meanwhile.
    #[must_use]
    pub fn finish(self) -> CaptureSummary {
        self.background.finish().unwrap_or_else(|error| CaptureSummary {
            packets: 0,
            dropped: 0,
            unwritten: 0,
            files: 0,
            cut_short: Some(EarlyEnd::Error(error)),
        })
    }
}
