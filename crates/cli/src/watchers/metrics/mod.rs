//! `--metrics`: what a stack counts, for Prometheus: its text format over HTTP, on the machine's
//! own network.
//!
//! | file | owns |
//! |---|---|
//! | `server` | HTTP |
//! | `families` | metrics as the format has them |
//! | `exposition` | which metrics there are |

mod exposition;
mod families;
mod server;

use crate::args::metrics::MetricsArgs;
use crate::failure::Failure;
use crate::network::tunnel;
use crate::output;
use crate::settings::Settings;
use crate::watchers::background::Background;
use crate::watchers::recorded::RecordedCounters;
use ackline::runtime::Stack;
use exposition::Exposition;
use std::net::TcpListener;

/// A socket that listens, before there is anything to tell.
pub(crate) struct MetricsListener {
    listener: TcpListener,
    announces: bool,
}

impl MetricsArgs {
    /// Listens at the address of `--metrics`, in the network of the caller: whoever cannot be
    /// watched as asked sends nothing. `speaks`: says where the metrics are.
    pub(crate) fn listen(&self, speaks: bool) -> Result<Option<MetricsListener>, Failure> {
        let Some(address) = self.metrics else { return Ok(None) };
        let refused = |error| Failure::system(&format!("listen at --metrics {address}"), &error);
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        Ok(Some(MetricsListener { listener, announces: speaks }))
    }
}

impl MetricsListener {
    /// Answers for `stack` until the result is dropped.
    pub(crate) fn serve(
        self,
        stack: &Stack,
        settings: &Settings,
        command: &'static str,
        recorded: RecordedCounters,
    ) -> Result<Background, Failure> {
        let runtime = tunnel::build(&mut tokio::runtime::Builder::new_current_thread())?;
        if self.announces
            && let Ok(address) = self.listener.local_addr()
        {
            output::say(&format!("metrics at http://{address}/metrics"));
        }
        let exposition = Exposition::new(stack.clone(), settings.names.clone(), command, recorded);
        Background::start("metrics", runtime, |stopped| server::run(self.listener, exposition, stopped))
            .map_err(|error| Failure::system("start the thread of --metrics", &error))
    }
}
