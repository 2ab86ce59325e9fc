//! Responses to a retransmission timeout: what to send, what counts as lost, what happens to the
//! window.
//!
//! | name | idea | after a timeout that lost nothing | needs |
//! |---|---|---|---|
//! | `linux` | go-back-N, undone when timestamps, DSACK or F-RTO show that it was wrong | everything restored | |
//! | `dclor` | one probe above all outstanding data; what the peer reports about it tells what is lost | restart from two segments, `ssthresh` kept | SACK |
//! | `frto` | two segments of new data after the first ACK decide | window as in RFC 4015, or half | new data |
//! | `eifel` | the timestamp of the first ACK decides | window as in RFC 4015, or all of it | timestamps |
//! | `go-back-n` | everything not SACKed is lost | a window sent again | |
//! | `conventional` | the core's own: like `go-back-n`, with congestion control's rule for `ssthresh` | a window sent again | |
//!
//! Which one to use: `linux` is right for almost every path. `dclor` is for paths that delay
//! packets for seconds (cellular, satellite hand-over): it retransmits nothing but a probe, and
//! leaves the capacity of the returning path to others; if a path stalls briefly and carries
//! nothing else, that costs a slow start. `frto` and `eifel` are separate for comparison; `linux`
//! includes both ideas.

pub mod dclor;
pub mod eifel;
pub mod frto;
pub mod go_back_n;
pub mod linux;
#[cfg(test)]
mod tests;

pub use dclor::{Dclor, DclorParams};
pub use eifel::{Eifel, Restore};
pub use frto::{FRto, Spurious};
pub use go_back_n::GoBackN;
pub use linux::Linux;

use ackline_tcp_core::policy::NewRtoResponse;
use ackline_tcp_core::policy::builtin::Conventional;
use ackline_tcp_core::policy::rto::{AckFacts, RtoView};
use ackline_tcp_core::policy::spec::Entry;
use ackline_tcp_core::{SeqNum, Window};

/// The RTO responses of this crate.
pub const RTO: &[Entry<NewRtoResponse>] = &[
    linux::ENTRY,
    dclor::ENTRY,
    frto::ENTRY,
    eifel::ENTRY,
    go_back_n::ENTRY,
    Entry {
        source: "RFC 6298 section 5, RFC 5681 section 3.1",
        ..Entry::rto_step::<Conventional>("what is not SACKed is lost; one segment, then slow start")
    },
];

/// RFC 5681, equation 4: half of `bytes`, at least two segments.
fn halved(bytes: u64, smss: u32) -> Window {
    Window::from_bytes((bytes / 2).max(2 * u64::from(smss)))
}

/// RFC 4015, section 3, step 8: FlightSize + min(bytes_acked, IW).
fn reversed_window(view: &RtoView, ack: &AckFacts) -> Window {
    let acked = u64::from(ack.acked).min(view.initial_window);
    Window::from_bytes(u64::from(view.flow.flight_size) + acked)
}

/// RFC 4015, section 3, step 0: pipe_prev = max(FlightSize, ssthresh).
fn pipe_prev(view: &RtoView) -> Window {
    view.ssthresh.max(Window::from_bytes(u64::from(view.flow.flight_size)))
}

/// True if the DSACK of an ACK reports that the octet `seq` was received twice.
fn reports_twice(ack: &AckFacts, seq: SeqNum) -> bool {
    ack.dsack.is_some_and(|(start, end)| seq.within(start, end))
}
