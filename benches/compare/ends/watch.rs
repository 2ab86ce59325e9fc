//! What writes down what the measured stack does: into files that nobody keeps.

use crate::case::{Observed, SuperPackets};
use ackline::Stack;
use ackline::core::Instant;
use ackline::core::events::Tracer;
use ackline_observe::{Capture, CaptureOptions, Trace, TraceOptions};
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// Bytes of a packet that a capture keeps: all headers.
const HEADERS: u32 = 128;

/// A capture, a trace or both.
pub(crate) struct Watch {
    capture: Option<Capture>,
    trace: Option<Trace>,
}

impl Watch {
    pub(crate) fn start(observed: Observed) -> io::Result<Self> {
        let capture = observed.capture.map(|super_packets| {
            let mut options = CaptureOptions::new("tun", 0);
            options.snap_length = NonZeroU32::new(HEADERS);
            options.split = super_packets == SuperPackets::Split;
            nameless("pcapng", |path| Capture::start(path, options))
        });
        let trace = observed
            .trace
            .then(|| nameless("qlog", |path| Trace::start(path, TraceOptions::new("tun", Instant::ZERO, 0))));
        Ok(Self { capture: capture.transpose()?, trace: trace.transpose()? })
    }

    pub(crate) fn attach(&self, stack: &Stack) {
        let mut tracers: Vec<Box<dyn Tracer>> = vec![];
        if let Some(capture) = &self.capture {
            stack.set_observer(Some(capture.observer()));
            tracers.push(capture.tracer());
        }
        tracers.extend(self.trace.as_ref().map(Trace::tracer));
        stack.set_tracer(Some(Box::new(tracers)));
    }

    /// Packets and events that are in no file.
    pub(crate) fn missing(self) -> u64 {
        let captured = self.capture.map(Capture::finish);
        let traced = self.trace.map(Trace::finish);
        captured.map_or(0, |summary| summary.dropped + summary.unwritten)
            + traced.map_or(0, |summary| summary.dropped + summary.unwritten)
    }
}

/// What writes to a file that has no name once it is there.
fn nameless<T>(extension: &str, start: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let name = format!("ackline-compare-{}.{extension}", std::process::id());
    let path: PathBuf = std::env::temp_dir().join(name);
    let started = start(&path)?;
    std::fs::remove_file(&path)?;
    Ok(started)
}
