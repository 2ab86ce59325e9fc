//! Times as qlog has them.

use ackline_tcp_core::Duration;

/// A duration in milliseconds.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
