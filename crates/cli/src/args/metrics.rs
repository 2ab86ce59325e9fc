//! Where metrics are told.

use clap::Args;
use std::net::{Ipv6Addr, SocketAddr};

/// Metrics for Prometheus.
#[derive(Args, Clone, Copy)]
#[command(next_help_heading = "Output")]
pub(crate) struct MetricsArgs {
    /// Serve metrics for Prometheus over HTTP at this address of the machine: 127.0.0.1:9464, or
    /// :9464 for all
    ///
    /// http://ADDR:PORT/metrics has counters, connections by state, queues, memory and histograms
    /// of lateness, in Prometheus's text format. The address is the kernel's, not the stack's.
    /// Whoever can reach it can read it. Port 0 takes a free one, which is printed.
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    pub(crate) metrics: Option<SocketAddr>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    if let Some(port) = text.strip_prefix(':')
        && let Ok(port) = port.parse()
    {
        return Ok(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    }
    text.parse().map_err(|_| "not an address and port; write 127.0.0.1:9464, [::1]:9464 or :9464".to_owned())
}
