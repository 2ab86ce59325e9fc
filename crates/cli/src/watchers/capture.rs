//! `--pcap` and `--trace`: a capture and a trace of a command's stack.

use crate::args::capture::{CaptureArgs, PcapLink};
use crate::failure::{Failure, plain};
use crate::output::{self, clock};
use crate::settings::PolicyNames;
use crate::watchers::recorded::RecordedCounters;
use ackline::core::Instant;
use ackline::core::events::Tracer;
use ackline::runtime::{Stack, timer};
use ackline_observe::capture::{CaptureSummary, EarlyEnd};
use ackline_observe::pcapng::LinkType;
use ackline_observe::trace::TraceSummary;
use ackline_observe::{Capture, CaptureOptions, Trace, TraceOptions};
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// A capture, a trace or both, which say what became of them when they are dropped: after the stack
/// has been shut down, however that ended.
pub(crate) struct Capturing {
    capture: Option<(Capture, PathBuf)>,
    trace: Option<(Trace, PathBuf)>,
    /// Says so, too, if nothing is missing.
    speaks: bool,
}

impl CaptureArgs {
    /// Begins the files, if some are asked for, before there is a stack: of an interface, and what
    /// its packets begin with. `speaks`: lines are printed at the end even if nothing is missing.
    pub(crate) fn start(
        &self,
        (interface, link): (&str, PcapLink),
        names: &PolicyNames,
        speaks: bool,
    ) -> Result<Option<Capturing>, Failure> {
        let PolicyNames { cc, ack, rto, sched } = names;
        let policies = format!("policies: cc={cc}, ack={ack}, rto={rto}, sched={sched}");
        let pcap_link = self.pcap_link.unwrap_or(link);
        if pcap_link == PcapLink::Ethernet && link == PcapLink::Raw {
            return Err(Failure::usage(format!(
                "--pcap-link ethernet: packets of {interface} have no Ethernet header; --dev opens an Ethernet"
            )));
        }
        let capture = begin("--pcap", self.pcap.as_deref(), |file| {
            let mut options = CaptureOptions::new(interface, unix_ns(Instant::ZERO));
            options.link_type = match pcap_link {
                PcapLink::Raw => LinkType::Raw,
                PcapLink::Ethernet => LinkType::Ethernet,
            };
            options.comment.clone_from(&policies);
            options.snap_length = self.pcap_snaplen.and_then(NonZeroU32::new);
            options.split = self.pcap_split;
            options.file_size = self.pcap_size;
            options.files = self.pcap_files;
            options.queue = self.pcap_buffer.unwrap_or(options.queue);
            Capture::start(file, options)
        })?;
        let trace = begin("--trace", self.trace.as_deref(), |file| {
            let now = timer::now();
            let mut options = TraceOptions::new(interface, now, unix_ns(now));
            options.description.clone_from(&policies);
            options.file_size = self.trace_size;
            options.queue = self.trace_buffer.unwrap_or(options.queue);
            Trace::start(file, options)
        })?;
        Ok((capture.is_some() || trace.is_some()).then_some(Capturing { capture, trace, speaks }))
    }
}

/// What writes to `file`, if one is asked for.
fn begin<T>(
    option: &str,
    file: Option<&Path>,
    start: impl FnOnce(&Path) -> io::Result<T>,
) -> Result<Option<(T, PathBuf)>, Failure> {
    let begin = |file: &Path| match start(file) {
        Ok(started) => Ok((started, file.to_path_buf())),
        Err(error) => Err(Failure::file("write", format_args!("{option} {}", file.display()), &error)),
    };
    file.map(begin).transpose()
}

impl Capturing {
    /// Watches what this stack does from now on.
    pub(crate) fn watch(&self, stack: &Stack) {
        let mut tracers: Vec<Box<dyn Tracer>> = vec![];
        if let Some((capture, _)) = &self.capture {
            stack.set_observer(Some(capture.observer()));
            tracers.push(capture.tracer());
        }
        if let Some((trace, _)) = &self.trace {
            tracers.push(trace.tracer());
        }
        stack.set_tracer(match tracers.len() {
            0 | 1 => tracers.pop(),
            _ => Some(Box::new(tracers)),
        });
    }

    /// What was recorded and lost so far.
    pub(crate) fn counters(&self) -> RecordedCounters {
        RecordedCounters {
            capture: self.capture.as_ref().map(|(capture, _)| capture.meter()).unwrap_or_default(),
            trace: self.trace.as_ref().map(|(trace, _)| trace.meter()).unwrap_or_default(),
            ..RecordedCounters::default()
        }
    }

    fn say(&self, file: &Path, ended: &FileReport) {
        let FileReport { words: [what, written, things], .. } = ended;
        let file = file.display();
        if let Some(warning) = ended.missing() {
            output::say(&format!("warning: the {what} in {file} {warning}"));
        } else if self.speaks {
            output::say(&format!("{written} {} {things} in {file}", ended.count));
        }
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        if let Some((capture, file)) = self.capture.take() {
            self.say(&file, &capture.finish().into());
        }
        if let Some((trace, file)) = self.trace.take() {
            self.say(&file, &trace.finish().into());
        }
    }
}

/// What became of a file.
struct FileReport {
    /// What it is, what was done to the things in it, and these.
    words: [&'static str; 3],
    /// Things in it.
    count: u64,
    dropped: u64,
    unwritten: u64,
    cut_short: Option<EarlyEnd>,
    /// Options that help if some were dropped.
    help: &'static str,
}

impl From<CaptureSummary> for FileReport {
    fn from(summary: CaptureSummary) -> Self {
        let CaptureSummary { packets, dropped, unwritten, cut_short, .. } = summary;
        let (words, help) = (["capture", "captured", "packets"], "--pcap-buffer, --pcap-snaplen");
        Self { words, count: packets, dropped, unwritten, cut_short, help }
    }
}

impl From<TraceSummary> for FileReport {
    fn from(summary: TraceSummary) -> Self {
        let TraceSummary { records, dropped, unwritten, cut_short, .. } = summary;
        let (words, help) = (["trace", "traced", "events"], "--trace-buffer");
        Self { words, count: records, dropped, unwritten, cut_short, help }
    }
}

impl FileReport {
    /// What is not in the file; `None` if all is.
    fn missing(&self) -> Option<String> {
        let Self { words: [_, _, things], count, dropped, unwritten, cut_short, help } = self;
        let mut parts = vec![];
        if *dropped > 0 {
            parts.push(format!("lacks {dropped} {things} that found its queue full ({help})"));
        }
        if let Some(why) = cut_short {
            let why = match why {
                EarlyEnd::Error(error) => plain(error),
                other => other.to_string(),
            };
            parts.push(format!("is cut short after {count} {things}, {unwritten} are missing: {why}"));
        }
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}

/// Nanoseconds from 1970 to an instant of the stack's clock.
pub(crate) fn unix_ns(at: Instant) -> u64 {
    let since = clock::wall_clock().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let ago = timer::now().as_nanos().saturating_sub(at.as_nanos());
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).saturating_sub(ago)
}
