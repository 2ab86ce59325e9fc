//! The four kinds of policy, chosen at run time, and how they are named in text.
//!
//! | trait | decides | scope |
//! |---|---|---|
//! | [`CongestionControl`] | how much may be outstanding, and on what clock | connection |
//! | [`AckPolicy`] | when to acknowledge | connection |
//! | [`RtoResponse`] | what to do when the retransmission timer fires | connection |
//! | [`EgressScheduler`] | what leaves the host next | endpoint |
//!
//! A congestion control that only grows and shrinks a window needs little of its trait: see
//! [`window`].
//!
//! Policies are named as `name:key=value,key=value` ([`spec`]). Each policy crate exports a table
//! of its policies ([`spec::Entry`]). The core includes the simplest of each kind ([`builtin`]),
//! for those who use the core alone; they are the defaults of
//! [`ConnConfig::default`](crate::ConnConfig). The crate `ackline-registry` has all policies by
//! name, and the defaults of a Linux-like host.

pub mod ack;
pub mod builtin;
pub mod cc;
pub mod conformance;
mod entries;
mod ledger;
pub mod metrics;
pub mod rto;
pub mod sched;
pub mod spec;
pub mod window;

pub use ack::{AckPolicy, NewAckPolicy};
pub use cc::{CongestionControl, NewCongestionControl};
pub use ledger::Ledger;
pub use metrics::{Metric, Metrics, Unit};
pub use rto::{NewRtoResponse, RtoResponse};
pub use sched::{EgressScheduler, NewEgressScheduler};
pub use spec::{Params, SpecError};

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

/// The makers of a connection's three policies.
#[derive(Clone)]
pub struct Policies {
    /// Congestion control.
    pub cc: Arc<NewCongestionControl>,
    /// ACK policy.
    pub ack: Arc<NewAckPolicy>,
    /// Response to a retransmission timeout.
    pub rto: Arc<NewRtoResponse>,
}

impl Default for Policies {
    /// The built-in policies: NewReno, delayed ACK of RFC 5681, conventional response.
    fn default() -> Self {
        Self {
            cc: Arc::new(|init: &cc::CcInit| Box::new(builtin::NewReno::new(init))),
            ack: Arc::new(|_: &ack::AckInit| Box::new(builtin::DelayedAck::default())),
            rto: Arc::new(|| Box::new(rto::Episode::new(builtin::Conventional))),
        }
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Policies")
    }
}
