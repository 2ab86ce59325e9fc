//! The policies of ackline by name, the default of each kind, and every setting as text.
//!
//! A [`Registry`] has four [tables](Table) of policies: congestion controls, ACK policies,
//! responses to a retransmission timeout, egress schedulers. [`Registry::default`] has everything
//! that ackline offers, with the defaults of a Linux-like host: `cubic`, `linux-like`, `linux`,
//! `flow-queue`. Stacks, scenarios and the command line all take a registry, so a host is the same
//! in all of them, and a policy added here can be named everywhere.
//!
//! ```
//! use ackline_registry::Registry;
//!
//! let registry = Registry::default();
//! assert_eq!(registry.cc_table().default(), "cubic");
//! let error = registry.cc("cubik").err().unwrap();
//! assert!(error.to_string().contains("did you mean \"cubic\"?"));
//!
//! let options = registry.options("cc=cubic:beta=0.8,sack=off,iw=4")?;
//! let config = options.conn(&registry.conn_config())?;
//! assert_eq!((config.sack, config.initial_window), (false, 4));
//! # Ok::<(), ackline_tcp_core::policy::SpecError>(())
//! ```
//!
//! A policy of your own is one [`Entry`]:
//!
//! ```
//! use ackline_registry::Registry;
//! use ackline_tcp_core::policy::spec::Entry;
//! use ackline_tcp_core::policy::{NewCongestionControl, builtin::NewReno};
//! use std::sync::Arc;
//!
//! const MINE: Entry<NewCongestionControl> = Entry {
//!     summary: "like reno, for a start",
//!     ..Entry::new("mine", |params| {
//!         params.reject_all("mine")?;
//!         Ok(Arc::new(|init| Box::new(NewReno::new(init))))
//!     })
//! };
//! let registry = Registry::default().with_cc(MINE);
//! assert!(registry.cc("mine").is_ok());
//!
//! // A name that is taken is refused, and the registry with it.
//! let registry = registry.with_cc(MINE);
//! assert!(registry.check().unwrap_err().to_string().contains("the name \"mine\" is taken"));
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod change;
mod options;
mod table;

pub use change::Change;
pub use options::{OptionInfo, Options, Scope};
pub use table::{PolicyInfo, Table};

use ackline_ack_policy::LinuxLike;
use ackline_cc_algos::rto::Linux;
use ackline_cc_algos::{Cubic, CubicParams};
use ackline_sched::{Drr, LimitedQueue, QueueParams, Shaped, ShaperParams};
use ackline_tcp_core::config::{ConnConfig, Ecn};
use ackline_tcp_core::policy::ack::AckInit;
use ackline_tcp_core::policy::cc::CcInit;
use ackline_tcp_core::policy::spec::{Entry, PolicyKind, SpecError};
use ackline_tcp_core::policy::{
    NewAckPolicy, NewCongestionControl, NewEgressScheduler, NewRtoResponse, Policies,
};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The congestion control of [`Registry::default`].
pub const DEFAULT_CC: &str = "cubic";
/// The ACK policy of [`Registry::default`].
pub const DEFAULT_ACK: &str = "linux-like";
/// The response to a retransmission timeout of [`Registry::default`].
pub const DEFAULT_RTO: &str = "linux";
/// The egress scheduler of [`Registry::default`].
pub const DEFAULT_SCHED: &str = "flow-queue";

/// The policies that can be named, and the default of each kind.
///
/// An invalid addition (a name that is taken, a parameter whose default its own maker rejects, an
/// unknown default) is kept as an error: [`check`](Self::check) and every look-up return the first
/// one, and nothing accepts the registry.
#[derive(Clone, Debug)]
pub struct Registry {
    cc: Table<NewCongestionControl>,
    ack: Table<NewAckPolicy>,
    rto: Table<NewRtoResponse>,
    sched: Table<NewEgressScheduler>,
    refused: Option<SpecError>,
}

impl Default for Registry {
    /// All policies of ackline's crates, with the defaults of a Linux-like host.
    fn default() -> Self {
        Self {
            cc: Table::new(
                PolicyKind::Cc,
                ackline_cc_algos::CC,
                DEFAULT_CC,
                Arc::new(|init: &CcInit| Box::new(Cubic::new(init, CubicParams::default()))),
            ),
            ack: Table::new(
                PolicyKind::Ack,
                ackline_ack_policy::ACK,
                DEFAULT_ACK,
                Arc::new(|_: &AckInit| Box::new(LinuxLike::default())),
            ),
            rto: Table::new(
                PolicyKind::Rto,
                ackline_cc_algos::RTO,
                DEFAULT_RTO,
                Arc::new(|| Box::new(Linux::default())),
            ),
            sched: Table::new(
                PolicyKind::Sched,
                ackline_sched::SCHED,
                DEFAULT_SCHED,
                Arc::new(|| {
                    let queue = LimitedQueue::new(Drr::default().sparse_first(), QueueParams::default());
                    Box::new(Shaped::new(queue, ShaperParams::default()))
                }),
            ),
            refused: None,
        }
    }
}

impl Registry {
    /// Adds a congestion control.
    #[must_use]
    pub fn with_cc(mut self, entry: Entry<NewCongestionControl>) -> Self {
        let outcome = self.cc.add(entry);
        self.note(outcome)
    }

    /// Adds an ACK policy.
    #[must_use]
    pub fn with_ack(mut self, entry: Entry<NewAckPolicy>) -> Self {
        let outcome = self.ack.add(entry);
        self.note(outcome)
    }

    /// Adds a response to a retransmission timeout.
    #[must_use]
    pub fn with_rto(mut self, entry: Entry<NewRtoResponse>) -> Self {
        let outcome = self.rto.add(entry);
        self.note(outcome)
    }

    /// Adds an egress scheduler.
    #[must_use]
    pub fn with_sched(mut self, entry: Entry<NewEgressScheduler>) -> Self {
        let outcome = self.sched.add(entry);
        self.note(outcome)
    }

    /// Makes `spec` the default of its kind: a name, or a name with parameters.
    #[must_use]
    pub fn with_default(mut self, kind: PolicyKind, spec: &str) -> Self {
        let outcome = match kind {
            PolicyKind::Cc => self.cc.set_default(spec),
            PolicyKind::Ack => self.ack.set_default(spec),
            PolicyKind::Rto => self.rto.set_default(spec),
            PolicyKind::Sched => self.sched.set_default(spec),
        };
        self.note(outcome)
    }

    fn note(mut self, outcome: Result<(), SpecError>) -> Self {
        self.refused = self.refused.or(outcome.err());
        self
    }

    /// Checks that everything added is valid.
    ///
    /// # Errors
    /// The first invalid addition, and what is wrong with it.
    pub fn check(&self) -> Result<(), SpecError> {
        self.refused.clone().map_or(Ok(()), Err)
    }

    /// The congestion controls.
    #[must_use]
    pub const fn cc_table(&self) -> &Table<NewCongestionControl> {
        &self.cc
    }

    /// The ACK policies.
    #[must_use]
    pub const fn ack_table(&self) -> &Table<NewAckPolicy> {
        &self.ack
    }

    /// The responses to a retransmission timeout.
    #[must_use]
    pub const fn rto_table(&self) -> &Table<NewRtoResponse> {
        &self.rto
    }

    /// The egress schedulers.
    #[must_use]
    pub const fn sched_table(&self) -> &Table<NewEgressScheduler> {
        &self.sched
    }

    /// The default of a kind, as text.
    #[must_use]
    pub fn default_of(&self, kind: PolicyKind) -> &str {
        match kind {
            PolicyKind::Cc => self.cc.default(),
            PolicyKind::Ack => self.ack.default(),
            PolicyKind::Rto => self.rto.default(),
            PolicyKind::Sched => self.sched.default(),
        }
    }

    /// The policies of a kind, for listings.
    #[must_use]
    pub fn list(&self, kind: PolicyKind) -> Vec<PolicyInfo> {
        match kind {
            PolicyKind::Cc => self.cc.list(),
            PolicyKind::Ack => self.ack.list(),
            PolicyKind::Rto => self.rto.list(),
            PolicyKind::Sched => self.sched.list(),
        }
    }

    /// The congestion control that `spec` names, such as `cubic:beta=0.8`.
    ///
    /// # Errors
    /// What is wrong with the name or a parameter, and what would be right; as
    /// [`check`](Self::check).
    pub fn cc(&self, spec: &str) -> Result<Arc<NewCongestionControl>, SpecError> {
        self.check()?;
        self.cc.resolve(spec)
    }

    /// The ACK policy that `spec` names, such as `delayed:segments=4`.
    ///
    /// # Errors
    /// As [`cc`](Self::cc).
    pub fn ack(&self, spec: &str) -> Result<Arc<NewAckPolicy>, SpecError> {
        self.check()?;
        self.ack.resolve(spec)
    }

    /// The response to a retransmission timeout that `spec` names.
    ///
    /// # Errors
    /// As [`cc`](Self::cc).
    pub fn rto(&self, spec: &str) -> Result<Arc<NewRtoResponse>, SpecError> {
        self.check()?;
        self.rto.resolve(spec)
    }

    /// The egress scheduler that `spec` names, such as `fifo:rate=20mbit`.
    ///
    /// # Errors
    /// As [`cc`](Self::cc).
    pub fn sched(&self, spec: &str) -> Result<Arc<NewEgressScheduler>, SpecError> {
        self.check()?;
        self.sched.resolve(spec)
    }

    /// The ECN feedback that the congestion control named by `spec` is designed for.
    ///
    /// # Errors
    /// As [`cc`](Self::cc).
    pub fn ecn(&self, spec: &str) -> Result<Ecn, SpecError> {
        self.check()?;
        Ok(self.cc.entry(spec)?.ecn)
    }

    /// The three policies of a connection, by name.
    ///
    /// # Errors
    /// As [`cc`](Self::cc), for the first invalid name.
    pub fn named(&self, cc: &str, ack: &str, rto: &str) -> Result<Policies, SpecError> {
        Ok(Policies { cc: self.cc(cc)?, ack: self.ack(ack)?, rto: self.rto(rto)? })
    }

    /// The default policies of a connection.
    #[must_use]
    pub fn policies(&self) -> Policies {
        Policies {
            cc: self.cc.default_maker().clone(),
            ack: self.ack.default_maker().clone(),
            rto: self.rto.default_maker().clone(),
        }
    }

    /// The default settings of a connection: the default policies, and the settings they need.
    #[must_use]
    pub fn conn_config(&self) -> ConnConfig {
        let mut config = ConnConfig::default();
        config.policies = self.policies();
        config.ecn = self.cc.entry(self.cc.default()).map_or(Ecn::Off, |entry| entry.ecn);
        config
    }

    /// The maker of the default egress scheduler.
    #[must_use]
    pub fn scheduler(&self) -> Arc<NewEgressScheduler> {
        self.sched.default_maker().clone()
    }
}

#[cfg(test)]
mod tests;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
