//! From `--cc`, `--ack`, `--rto` and `--sched` to what they name.

use crate::args::{EcnKind, PolicyArgs};
use crate::failure::Failure;
use ackline::core::config::Ecn;
use ackline::core::policy::spec::SpecError;
use ackline::core::policy::{NewEgressScheduler, Policies};
use ackline::policies;
use std::sync::Arc;

/// What a stack is built with.
pub(crate) struct Chosen {
    pub(crate) connection: Policies,
    pub(crate) scheduler: Arc<NewEgressScheduler>,
    pub(crate) ecn: Ecn,
}

impl PolicyArgs {
    /// Finds all of them.
    pub(crate) fn resolve(&self) -> Result<Chosen, Failure> {
        let option =
            |name: &'static str| move |error: SpecError| Failure::usage(format!("--{name}: {error}"));
        Ok(Chosen {
            connection: Policies {
                cc: policies::congestion_control(&self.cc).map_err(option("cc"))?,
                ack: policies::ack_policy(&self.ack).map_err(option("ack"))?,
                rto: policies::rto_response(&self.rto).map_err(option("rto"))?,
            },
            scheduler: policies::egress_scheduler(&self.sched).map_err(option("sched"))?,
            ecn: match self.ecn {
                None => policies::ecn_for(&self.cc),
                Some(EcnKind::Off) => Ecn::Off,
                Some(EcnKind::Classic) => Ecn::Classic,
                Some(EcnKind::Dctcp) => Ecn::Dctcp,
            },
        })
    }
}
