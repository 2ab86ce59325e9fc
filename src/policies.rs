//! Policies by name: the tables of all policy crates, and what resolves a name such as `cubic:beta=0.8` in them.
//!
//! ```
//! use ackline::policies;
//!
//! assert!(policies::congestion_control("cubic:beta=0.8,hystart=off").is_ok());
//! let error = policies::congestion_control("cubik").err().unwrap();
//! assert!(error.to_string().contains("did you mean \"cubic\"?"));
//! ```
//!
//! A table of one's own goes beside these:
//!
//! ```
//! use ackline::core::policy::spec::{self, Entry, PolicyKind};
//! use ackline::core::policy::{NewCongestionControl, builtin::NewReno, cc::CcInit};
//! use ackline::policies;
//! use std::sync::Arc;
//!
//! const MINE: &[Entry<NewCongestionControl>] = &[Entry {
//!     name: "mine",
//!     aliases: &[],
//!     summary: "as reno, for a start",
//!     source: "",
//!     params: &[],
//!     make: |_| Ok(Arc::new(|init: &CcInit| Box::new(NewReno::new(init)))),
//! }];
//! let tables = [policies::CC, &[MINE]].concat();
//! assert!(spec::resolve(&tables, PolicyKind::Cc, "mine").is_ok());
//! ```

use ackline_ack_policy::LinuxLike;
pub use ackline_cc_algos::ecn_for;
use ackline_cc_algos::rto::Linux;
use ackline_cc_algos::{Cubic, CubicParams};
use ackline_tcp_core::ConnConfig;
use ackline_tcp_core::policy::ack::AckInit;
use ackline_tcp_core::policy::cc::CcInit;
use ackline_tcp_core::policy::spec::{Entry, PolicyKind, SpecError, resolve};
use ackline_tcp_core::policy::{
    NewAckPolicy, NewCongestionControl, NewEgressScheduler, NewRtoResponse, Policies,
};
use alloc::boxed::Box;
use alloc::sync::Arc;

/// Congestion controls.
pub const CC: &[&[Entry<NewCongestionControl>]] = &[ackline_cc_algos::CC];
/// ACK policies.
pub const ACK: &[&[Entry<NewAckPolicy>]] = &[ackline_ack_policy::ACK];
/// Responses to a retransmission timeout.
pub const RTO: &[&[Entry<NewRtoResponse>]] = &[ackline_cc_algos::RTO];
/// Egress schedulers.
pub const SCHED: &[&[Entry<NewEgressScheduler>]] = &[ackline_sched::SCHED];

/// The congestion control of [`defaults`].
pub const DEFAULT_CC: &str = "cubic";
/// The ACK policy of [`defaults`].
pub const DEFAULT_ACK: &str = "linux-like";
/// The RTO response of [`defaults`].
pub const DEFAULT_RTO: &str = "linux";
/// The scheduler that a host gets where nothing else is said.
pub const DEFAULT_SCHED: &str = "fifo";

/// The congestion control that `spec` names.
///
/// # Errors
/// Says what is wrong with the name or a parameter, and what would be right.
pub fn congestion_control(spec: &str) -> Result<Arc<NewCongestionControl>, SpecError> {
    resolve(CC, PolicyKind::Cc, spec)
}

/// The ACK policy that `spec` names.
///
/// # Errors
/// Says what is wrong with the name or a parameter, and what would be right.
pub fn ack_policy(spec: &str) -> Result<Arc<NewAckPolicy>, SpecError> {
    resolve(ACK, PolicyKind::Ack, spec)
}

/// The RTO response that `spec` names.
///
/// # Errors
/// Says what is wrong with the name or a parameter, and what would be right.
pub fn rto_response(spec: &str) -> Result<Arc<NewRtoResponse>, SpecError> {
    resolve(RTO, PolicyKind::Rto, spec)
}

/// The egress scheduler that `spec` names.
///
/// # Errors
/// Says what is wrong with the name or a parameter, and what would be right.
pub fn egress_scheduler(spec: &str) -> Result<Arc<NewEgressScheduler>, SpecError> {
    resolve(SCHED, PolicyKind::Sched, spec)
}

/// The three policies of a connection, by name.
///
/// # Errors
/// Those of the first name that is wrong.
pub fn connection(cc: &str, ack: &str, rto: &str) -> Result<Policies, SpecError> {
    Ok(Policies { cc: congestion_control(cc)?, ack: ack_policy(ack)?, rto: rto_response(rto)? })
}

/// CUBIC with HyStart++, ACKs and timeouts like Linux: what a connection is best with unless there is
/// a reason. (The core's own defaults are the simplest of each kind.)
#[must_use]
pub fn defaults() -> Policies {
    Policies {
        cc: Arc::new(|init: &CcInit| Box::new(Cubic::new(init, CubicParams::default()))),
        ack: Arc::new(|_: &AckInit| Box::new(LinuxLike::default())),
        rto: Arc::new(|| Box::new(Linux::default())),
    }
}

/// The settings of a connection with the [`defaults`].
#[must_use]
pub fn conn_config() -> ConnConfig {
    let mut config = ConnConfig::default();
    config.policies = defaults();
    config
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::{Instant, Window};
    use alloc::collections::BTreeSet;
    use alloc::format;
    use alloc::string::String;

    #[test]
    fn the_named_defaults_are_the_defaults() {
        let cc = CcInit::new(Instant::ZERO, 1460, Window::from_bytes(14_600));
        let ack = AckInit::new(Instant::ZERO, 1460, None);
        let (named, given) = (connection(DEFAULT_CC, DEFAULT_ACK, DEFAULT_RTO).unwrap(), defaults());
        assert_eq!(format!("{:?}", (named.cc)(&cc)), format!("{:?}", (given.cc)(&cc)));
        assert_eq!(format!("{:?}", (named.ack)(&ack)), format!("{:?}", (given.ack)(&ack)));
        assert_eq!(format!("{:?}", (named.rto)()), format!("{:?}", (given.rto)()));
        assert_eq!(egress_scheduler(DEFAULT_SCHED).unwrap()().name(), DEFAULT_SCHED);
    }

    /// Names are unique within a kind, every entry says what it is, and its parameters' defaults are accepted.
    fn check<T: ?Sized>(tables: &[&[Entry<T>]], kind: PolicyKind) {
        let mut names = BTreeSet::new();
        for entry in tables.iter().flat_map(|table| table.iter()) {
            for name in [&[entry.name], entry.aliases].concat() {
                assert!(names.insert(name), "{name} stands twice in the tables of {kind}");
            }
            assert!(!entry.summary.is_empty(), "{} has no summary", entry.name);
            let params: alloc::vec::Vec<String> =
                entry.params.iter().map(|info| format!("{}={}", info.name, info.default)).collect();
            let spec = format!("{}:{}", entry.name, params.join(","));
            assert!(resolve(tables, kind, &spec).is_ok(), "{spec}");
        }
    }

    #[test]
    fn the_tables_are_sound() {
        check(CC, PolicyKind::Cc);
        check(ACK, PolicyKind::Ack);
        check(RTO, PolicyKind::Rto);
        check(SCHED, PolicyKind::Sched);
    }
}
