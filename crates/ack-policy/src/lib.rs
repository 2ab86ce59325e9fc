//! ACK policies for ackline: when to acknowledge.
//!
//! | name | an ACK goes out | source |
//! |---|---|---|
//! | `immediate` | for every arrival | RFC 9293 section 3.8.6.3 permits it |
//! | `delayed` | for every second segment, or after a fixed delay | RFC 1122 section 4.2.3.2, RFC 5681 section 4.2 |
//! | `linux-like` | for every arrival at first, then for every second segment or after an adaptive delay | Linux |
//! | `ce-echo` | as in another policy, and at once when CE marking starts or stops | RFC 8257 section 3.2 |
//! | `a3` | for 35 % of what the sender can have outstanding, measured by staying silent | Chang, Chan and Yeung |
//! | `csa3` | as `a3`, and more often after signs of congestion | the same |
//! | `sunos-delayed` | for 35 % of the receive buffer or two segments, or at a tick of 200 ms | SunOS 4.1 |
//!
//! [`ACK`] is the table that resolves names such as `delayed:delay=100ms`. Whatever a policy says,
//! the core sends the ACKs that RFC 9293 demands.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod a3;
mod ce_echo;
mod delayed;
mod immediate;
mod linux_like;
mod profile;
mod sunos;

pub use ackline_tcp_core::policy::builtin::{CeEcho, DelayedAck};
pub use immediate::Immediate;
pub use linux_like::LinuxLike;
pub use sunos::SunOsDelayed;

use ackline_tcp_core::policy::NewAckPolicy;
use ackline_tcp_core::policy::spec::Entry;

/// The ACK policies of this crate.
pub const ACK: &[Entry<NewAckPolicy>] =
    &[linux_like::ENTRY, delayed::ENTRY, immediate::ENTRY, ce_echo::ENTRY, a3::A3, a3::CSA3, sunos::ENTRY];

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::ACK;
    use ackline_tcp_core::Instant;
    use ackline_tcp_core::policy::ack::AckInit;
    use ackline_tcp_core::policy::conformance;

    #[test]
    fn every_entry_keeps_the_rules() {
        let specs = [
            ("immediate", ""),
            ("delayed", ""),
            ("delayed", "segments=16,delay=0ms"),
            ("delayed", "segments=1"),
            ("ce-echo", ""),
            ("ce-echo", "inner=delayed"),
            ("linux-like", ""),
            ("linux-like", "quick=0,min=1ms,max=1ms"),
            ("linux-like", "quick=1000,min=1ms,max=499ms"),
            ("sunos-delayed", ""),
            ("sunos-delayed", "profile=paper,phase=130ms"),
            ("sunos-delayed", "profile=paper,timer=segment,delay=500ms"),
            ("a3", ""),
            ("a3", "profile=paper"),
            ("a3", "profile=paper,fewer=on,sampling=paper,rtt=190ms"),
            ("a3", "delay=1ms,bound=1ms,cap=1"),
            ("csa3", ""),
            ("csa3", "profile=paper,pause=400ms,pause_from=ack"),
            ("csa3", "sampling=paper,pause=off,dupacks=off,duplicates=off"),
        ];
        for (name, params) in specs {
            let entry = ACK.iter().find(|entry| entry.name == name).unwrap();
            let make = (entry.make)(&params.parse().unwrap()).unwrap();
            assert_eq!(make(&AckInit::new(Instant::ZERO, 1448, None)).name(), name);
            for seed in 0..30 {
                conformance::ack_policy(&*make, seed);
            }
        }
    }

    #[test]
    fn the_defaults_in_the_table_are_the_defaults() {
        for entry in ACK {
            let given: std::vec::Vec<_> =
                entry.rows().iter().map(|info| std::format!("{}={}", info.name, info.default)).collect();
            let init = AckInit::new(Instant::ZERO, 1448, None);
            let default = (entry.make)(&"".parse().unwrap()).unwrap()(&init);
            let spelled = (entry.make)(&given.join(",").parse().unwrap()).unwrap()(&init);
            assert_eq!(std::format!("{default:?}"), std::format!("{spelled:?}"), "{}", entry.name);
        }
    }
}
