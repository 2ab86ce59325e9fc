//! UDP (RFC 768): sockets of applications, and flows to any address and port.
//!
//! ```text
//!   in   ingest ─► flow of the four-tuple ─► socket of the port ─► new flow, if taken ─► ICMP error
//!                         └───────────┬──────────────┘
//!                               bounded queue ─► recv
//!   out  send ─► egress scheduler, as a packet without a connection ─► device
//! ```
//!
//! Datagrams are not fragmented: one that is longer than the device or the path carries is refused.
//!
//! | file | holds |
//! |---|---|
//! | `sockets.rs`, `flows.rs` | sockets, and flows by four-tuple and idle time |
//! | `arrivals.rs` | received datagrams, and ICMP errors about those that were sent |
//! | `datagrams.rs` | what an application does with sockets and flows |

mod arrivals;
mod datagrams;
mod flows;
mod sockets;

pub use datagrams::Datagrams;
pub use sockets::{UdpEvent, UdpReceived, UdpStats};

pub(crate) use sockets::Udp;

use crate::share::Cx;
use flows::Timeouts;

/// How long flows may be silent.
const fn timeouts(cx: &Cx<'_>) -> Timeouts {
    Timeouts { flow: cx.config.udp_flow_timeout, dns: cx.config.udp_dns_timeout }
}
