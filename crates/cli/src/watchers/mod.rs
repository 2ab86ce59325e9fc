//! What looks at a command's stack while it runs: captures and traces, the control socket, metrics.
//!
//! ```text
//! plan ─► the command enters its network ─► begin ─► there is a stack ─► watch ─► it is shut down ─► end ─► the summary
//! ```

pub(crate) mod background;
pub(crate) mod capture;
pub(crate) mod control;
pub(crate) mod filter;
pub(crate) mod metrics;
pub(crate) mod publishing;
pub(crate) mod recorded;
pub(crate) mod summary;

use crate::args::capture::{CaptureArgs, PcapLink};
use crate::args::watch::WatchArgs;
use crate::failure::Failure;
use crate::settings::Settings;
use ackline::runtime::Stack;
use background::Background;
use capture::Capturing;
use control::{Control, ControlPlace};
use metrics::MetricsListener;
use publishing::Publishing;
use recorded::RecordedCounters;

/// Where a stack is going to be watched.
pub(crate) struct WatchPlan {
    command: &'static str,
    speaks: bool,
    control: ControlPlace,
    metrics: Option<MetricsListener>,
    capture: CaptureArgs,
}

/// Files that have begun before there is a stack.
pub(crate) struct Recording {
    command: &'static str,
    control: ControlPlace,
    metrics: Option<MetricsListener>,
    capture: Option<Capturing>,
    proxy: Option<(ackline_proxy::Meter, Publishing)>,
}

/// What watches a stack. Each ends when it is dropped.
pub(crate) struct Watchers {
    capture: Option<Capturing>,
    metrics: Option<Background>,
    control: Option<Control>,
}

impl WatchArgs {
    /// Finds the places, as the caller's user and in the caller's network: before a command enters
    /// a namespace. `speaks`: lines for people are wanted.
    pub(crate) fn plan(&self, command: &'static str, speaks: bool) -> Result<WatchPlan, Failure> {
        let Self { control, metrics, capture } = self;
        let (control, metrics) = (control.place(), metrics.listen(speaks)?);
        Ok(WatchPlan { command, speaks, control, metrics, capture: capture.clone() })
    }
}

impl WatchPlan {
    /// Begins the files: what cannot be recorded as asked does not start.
    pub(crate) fn begin(
        self,
        interface: (&str, PcapLink),
        settings: &Settings,
    ) -> Result<Recording, Failure> {
        let Self { command, speaks, control, metrics, capture } = self;
        let capture = capture.start(interface, &settings.names, speaks)?;
        Ok(Recording { command, control, metrics, capture, proxy: None })
    }
}

impl Recording {
    /// Shows what `proxy` counts, too, and changes what it publishes.
    pub(crate) fn with_proxy(mut self, proxy: ackline_proxy::Meter, publishing: Publishing) -> Self {
        self.proxy = Some((proxy, publishing));
        self
    }

    /// Watches `stack` from now on.
    pub(crate) fn watch(self, stack: &Stack, settings: &Settings) -> Result<Watchers, Failure> {
        let Self { command, control, metrics, capture, proxy } = self;
        if let Some(capture) = &capture {
            capture.watch(stack);
        }
        let recorded = capture.as_ref().map(Capturing::counters).unwrap_or_default();
        let (proxy, publishing) = proxy.unzip();
        let recorded = RecordedCounters { proxy, ..recorded };
        let control = control.serve(stack, settings, command, recorded.clone(), publishing)?;
        let serve = |listener: MetricsListener| listener.serve(stack, settings, command, recorded);
        let metrics = metrics.map(serve).transpose()?;
        Ok(Watchers { capture, metrics, control })
    }
}

impl Watchers {
    /// Ends them, after the stack has been shut down. Captures and traces say what became of them,
    /// before the command does.
    pub(crate) fn end(self) {
        let Self { capture, metrics, control } = self;
        drop((capture, metrics, control));
    }
}
