//! `--pcap`: a capture of a command's stack.

use crate::args::capture::CaptureArgs;
use crate::failure::{Failure, plain};
use crate::output;
use crate::settings::PolicyNames;
use ackline::runtime::{Stack, timer};
use ackline_observe::capture::{CaptureSummary, CutShort};
use ackline_observe::{Capture, CaptureOptions};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// A capture that runs, and says what became of it when it is dropped: after the stack has been shut down, however that
/// ended.
pub(crate) struct Capturing {
    capture: Option<Capture>,
    file: PathBuf,
    /// Says so, too, if nothing is missing.
    speaks: bool,
}

impl CaptureArgs {
    /// Begins the file, if one is asked for, before there is a stack. `speaks`: a line is printed at the end even if
    /// nothing is missing.
    pub(crate) fn start(
        &self,
        interface: &str,
        names: &PolicyNames,
        speaks: bool,
    ) -> Result<Option<Capturing>, Failure> {
        let Some(file) = &self.pcap else { return Ok(None) };
        let PolicyNames { cc, ack, rto, sched } = names;
        let mut options = CaptureOptions::new(interface, epoch_ns());
        options.comment = format!("policies: cc={cc}, ack={ack}, rto={rto}, sched={sched}");
        options.snap_length = self.pcap_snaplen.and_then(NonZeroU32::new);
        options.split = self.pcap_split;
        options.file_size = self.pcap_size;
        options.files = self.pcap_files;
        options.queue = self.pcap_buffer.unwrap_or(options.queue);
        let capture = Capture::start(file, options)
            .map_err(|error| Failure::file("write", format_args!("--pcap {}", file.display()), &error))?;
        Ok(Some(Capturing { capture: Some(capture), file: file.clone(), speaks }))
    }
}

impl Capturing {
    /// Captures what this stack sends and receives from now on.
    pub(crate) fn watch(&self, stack: &Stack) {
        if let Some(capture) = &self.capture {
            stack.set_observer(Some(capture.observer()));
            stack.set_tracer(Some(capture.tracer()));
        }
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        let Some(summary) = self.capture.take().map(Capture::finish) else { return };
        let file = self.file.display();
        if let Some(warning) = missing(&summary) {
            output::say(&format!("warning: the capture in {file} {warning}"));
        } else if self.speaks {
            output::say(&format!("captured {} packets in {file}", summary.packets));
        }
    }
}

/// What is not in the file; `None` if all is.
fn missing(summary: &CaptureSummary) -> Option<String> {
    let CaptureSummary { packets, dropped, unwritten, cut_short, .. } = summary;
    let mut parts = vec![];
    if *dropped > 0 {
        parts.push(format!(
            "lacks {dropped} packets that found its queue full (--pcap-buffer, --pcap-snaplen)"
        ));
    }
    if let Some(why) = cut_short {
        let why = match why {
            CutShort::Error(error) => plain(error),
            other => other.to_string(),
        };
        parts.push(format!("is cut short after {packets} packets, {unwritten} are missing: {why}"));
    }
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// Nanoseconds from 1970 to the first instant of the stack's clock.
fn epoch_ns() -> u64 {
    let since = output::wall_clock().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let now = timer::now().as_nanos();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).saturating_sub(now)
}
