//! Congestion controls and responses to a retransmission timeout for ackline.
//!
//! | name | what it is | source |
//! |---|---|---|
//! | `reno` | NewReno's window | RFC 5681, RFC 6582, RFC 3465 |
//! | `cubic` | a window that is a cubic function of time, with HyStart++ | RFC 9438, RFC 9406 |
//! | `dctcp` | reduces the window by the fraction of marked data | RFC 8257 |
//! | `prague` | L4S: DCTCP's decrease, independent of short round trips, paced | draft-briscoe-iccrg-prague |
//! | `ls-aimd-reno`, `ls-aimd-dctcp` | windows below one segment, on a departure clock | Ahmed 2019 |
//! | `bbr` | paces by a model of the path, which losses only bound | draft-ietf-ccwg-bbr |
//! | `hstcp` | the larger the window, the faster it grows and the less it gives up | RFC 3649, RFC 3742 |
//! | `scalable` | grows by a hundredth of a segment for each one acknowledged | Kelly 2003 |
//! | `acwap` | wraps `hstcp`, `scalable`, `reno` or `cubic`, slows their growth near a full queue, and paces | Su et al. 2006 |
//!
//! Responses to a timeout are in [`rto`]: `linux`, `dclor`, `frto`, `eifel`, `go-back-n`.
//!
//! [`CC`] and [`RTO`] are the tables that resolve names such as `cubic:beta=0.8`.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod acwap;
mod aimd;
pub mod bbr;
pub mod cubic;
pub mod dctcp;
pub mod hstcp;
pub mod hystart;
pub mod ls_aimd;
pub mod prague;
mod reno;
pub mod rto;
pub mod scalable;

pub use acwap::AcwapParams;
pub use bbr::{Bbr, BbrParams};
pub use cubic::{Cubic, CubicParams, SlowStartExit};
pub use dctcp::{Dctcp, DctcpParams};
pub use hstcp::HstcpParams;
pub use hystart::HyStart;
pub use ls_aimd::{LsAimd, LsAimdParams};
pub use prague::{Prague, PragueParams};
pub use rto::RTO;
pub use scalable::ScalableParams;

use ackline_tcp_core::policy::NewCongestionControl;
use ackline_tcp_core::policy::spec::Entry;

/// The congestion controls of this crate.
pub const CC: &[Entry<NewCongestionControl>] = &[
    cubic::ENTRY,
    reno::ENTRY,
    dctcp::ENTRY,
    bbr::ENTRY,
    hstcp::ENTRY,
    scalable::ENTRY,
    acwap::ENTRY,
    prague::ENTRY,
    ls_aimd::RENO,
    ls_aimd::DCTCP,
];

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
