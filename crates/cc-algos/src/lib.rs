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
//! | `copa` | moves towards a rate that weighs throughput against delay | Arun and Balakrishnan 2018 |
//! | `hstcp` | the larger the window, the faster it grows and the less it gives up | RFC 3649, RFC 3742 |
//! | `scalable` | grows by a hundredth of a segment for each one acknowledged | Kelly 2003 |
//! | `htcp` | grows the faster the longer ago the last loss | draft-leith-tcp-htcp |
//! | `illinois` | queueing delay decides how fast it grows and how much a loss costs | Liu et al. 2008 |
//! | `westwood` | keeps bandwidth times smallest RTT after a loss | Grieco and Mascolo 2004 |
//! | `vegas` | keeps two to four segments in the queue | Brakmo and Peterson 1995 |
//! | `ledbat` | takes what others leave, and makes a queue of at most 60 ms | RFC 6817 |
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
pub mod copa;
pub mod cubic;
pub mod dctcp;
pub mod hstcp;
mod htcp;
pub mod hystart;
mod illinois;
mod ledbat;
pub mod ls_aimd;
pub mod prague;
mod reno;
mod round_trip;
pub mod rto;
pub mod scalable;
mod vegas;
mod westwood;
mod windowed;

pub use acwap::AcwapParams;
pub use bbr::{Bbr, BbrParams};
pub use copa::{Copa, CopaParams};
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
    copa::ENTRY,
    hstcp::ENTRY,
    scalable::ENTRY,
    htcp::ENTRY,
    illinois::ENTRY,
    westwood::ENTRY,
    vegas::ENTRY,
    ledbat::ENTRY,
    acwap::ENTRY,
    prague::ENTRY,
    ls_aimd::RENO,
    ls_aimd::DCTCP,
];

#[cfg(test)]
mod tests {
    use super::CC;
    use ackline_tcp_core::policy::conformance;

    #[test]
    fn every_control_keeps_the_rules_of_its_seam() {
        for entry in CC {
            let make = (entry.make)(&"".parse().unwrap()).unwrap();
            for seed in 0..20 {
                conformance::congestion_control(&*make, seed);
            }
        }
    }
}

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
