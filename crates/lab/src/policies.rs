//! The tables in which a scenario's policies are looked up.

use ackline_tcp_core::policy::spec::{Entry, PolicyKind, SpecError, resolve};
use ackline_tcp_core::policy::{NewAckPolicy, NewCongestionControl, NewEgressScheduler, NewRtoResponse};
use std::sync::Arc;

/// Tables of policies by kind. Those of ackline's policy crates by default; a table of one's own goes beside them.
#[derive(Clone, Debug)]
pub struct PolicyTables {
    /// Congestion controls.
    pub cc: Vec<&'static [Entry<NewCongestionControl>]>,
    /// ACK policies.
    pub ack: Vec<&'static [Entry<NewAckPolicy>]>,
    /// Responses to a retransmission timeout.
    pub rto: Vec<&'static [Entry<NewRtoResponse>]>,
    /// Egress schedulers.
    pub sched: Vec<&'static [Entry<NewEgressScheduler>]>,
}

impl Default for PolicyTables {
    fn default() -> Self {
        Self {
            cc: vec![ackline_cc_algos::CC],
            ack: vec![ackline_ack_policy::ACK],
            rto: vec![ackline_cc_algos::RTO],
            sched: vec![ackline_sched::SCHED],
        }
    }
}

/// What a connection has where a scenario does not say.
pub(crate) const DEFAULT_CC: &str = "cubic";
pub(crate) const DEFAULT_ACK: &str = "linux-like";
pub(crate) const DEFAULT_RTO: &str = "conventional";
pub(crate) const DEFAULT_SCHED: &str = "fifo";

impl PolicyTables {
    pub(crate) fn cc(&self, spec: &str) -> Result<Arc<NewCongestionControl>, SpecError> {
        resolve(&self.cc, PolicyKind::Cc, spec)
    }

    pub(crate) fn ack(&self, spec: &str) -> Result<Arc<NewAckPolicy>, SpecError> {
        resolve(&self.ack, PolicyKind::Ack, spec)
    }

    pub(crate) fn rto(&self, spec: &str) -> Result<Arc<NewRtoResponse>, SpecError> {
        resolve(&self.rto, PolicyKind::Rto, spec)
    }

    pub(crate) fn sched(&self, spec: &str) -> Result<Arc<NewEgressScheduler>, SpecError> {
        resolve(&self.sched, PolicyKind::Sched, spec)
    }
}
