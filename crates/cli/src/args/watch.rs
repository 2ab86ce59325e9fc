//! What looks at the stack of a command while it runs: the same options for each command that has
//! one.

use super::capture::CaptureArgs;
use super::control::ControlArgs;
use super::metrics::MetricsArgs;
use clap::Args;

/// The control socket, metrics, captures and traces.
#[derive(Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) control: ControlArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,
}
