//! Where a run takes place: whose clock its time follows, and who stands in for hosts that are not
//! in the simulation.

pub use crate::error::StageError;
pub use crate::scenario::{KernelSetting, KernelSettings, World};

use crate::scenario::AppKind;
use ackline_netsim::app::Timed;
use ackline_netsim::record::ConnRecord;
use ackline_netsim::{NodeId, Sim};
use ackline_tcp_core::config::ConnConfig;
use ackline_tcp_core::policy::NewEgressScheduler;
use ackline_tcp_core::policy::cc::CcInit;
use ackline_tcp_core::{Duration, EndpointConfig, Instant, Window};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A host outside the simulation. Its packets enter and leave at a port.
#[derive(Clone)]
pub struct OutsideHost {
    /// Its name in the scenario.
    pub name: String,
    /// Where it is.
    pub world: World,
    /// Where its packets enter and leave.
    pub port: NodeId,
    /// Its address.
    pub address: IpAddr,
    /// For a host of the kernel.
    pub kernel: KernelSettings,
    /// For a stack of ackline; of the kernel, the MTU.
    pub config: EndpointConfig,
    /// For a stack of ackline.
    pub scheduler: Arc<NewEgressScheduler>,
}

impl Debug for OutsideHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, world, port, address, kernel, config: _, scheduler: _ } = self;
        let mut text = f.debug_struct("OutsideHost");
        text.field("name", name).field("world", world).field("port", port).field("address", address);
        text.field("kernel", kernel).finish_non_exhaustive()
    }
}

/// One end of a flow, on a host outside.
#[derive(Clone, Debug)]
pub struct OutsideEnd {
    /// The host, by its place among those outside.
    pub host: usize,
    /// Number of the application on its host, from 0.
    pub app: u32,
    /// What the flow does.
    pub kind: AppKind,
    /// Which end it is.
    pub role: Role,
    /// Settings of its connections.
    pub conn: Arc<ConnConfig>,
    /// Where the scenario names their congestion control, for errors.
    pub cc_place: Option<String>,
    /// It sends the data.
    pub sends: bool,
    /// The run's.
    pub seed: u64,
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It opens connections to this address.
    Open {
        /// The other end.
        to: SocketAddr,
        /// When it begins.
        start: Instant,
    },
    /// It accepts connections on this port, from the beginning on.
    Accept {
        /// The port.
        port: u16,
    },
}

/// What one end has done so far.
#[derive(Clone, Debug, Default)]
pub struct EndReport {
    /// What its application reports about itself, by the names that netsim's applications have.
    pub metrics: BTreeMap<String, f64>,
    /// Times that it has measured.
    pub times: Vec<Timed>,
}

/// Whether a run in real time kept its times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Validity {
    /// Why its results are not those of the scenario. Empty if they are.
    pub reasons: Vec<String>,
    /// Departures to hosts outside: half were late by at most this, us.
    pub late_p50_us: f64,
    /// 99 % were.
    pub late_p99_us: f64,
    /// The latest.
    pub late_max_us: f64,
    /// What the run depends on and its scenario does not say, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
}

impl Validity {
    /// True if the machine kept up.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// Where one run takes place.
pub trait Stage: Debug {
    /// True if hosts of this world are outside the simulation.
    fn is_outside(&self, world: World) -> bool;

    /// The network is there, and its time is about to begin: starts the hosts outside. Their
    /// connections are sampled every `interval`.
    ///
    /// # Errors
    /// If a host cannot be made, or has no application of a kind.
    fn begin(
        &mut self,
        sim: &mut Sim,
        hosts: Vec<OutsideHost>,
        ends: Vec<OutsideEnd>,
        interval: Duration,
    ) -> Result<(), StageError>;

    /// Lets time pass up to and including `until`.
    ///
    /// # Errors
    /// If a host outside, or the way to it, has failed.
    fn run_until(&mut self, sim: &mut Sim, until: Instant) -> Result<(), StageError>;

    /// What an end of a flow has done so far, by its place among those that [`begin`](Self::begin)
    /// was given.
    fn report(&self, end: usize) -> EndReport;

    /// The run is over: the connections of all ends outside, and whether times were kept.
    fn finish(&mut self) -> (Vec<ConnRecord>, Option<Validity>);
}

/// Makes a stage for each run.
pub trait Stages: Debug + Send + Sync {
    /// Sets its results apart from those of others; empty for the simulator's.
    fn name(&self) -> &'static str;

    /// The stage of one run.
    ///
    /// # Errors
    /// If the machine cannot have it.
    fn stage(&self) -> Result<Box<dyn Stage>, StageError>;

    /// True if several runs can take place at once without a change of their results.
    fn is_parallel(&self) -> bool;
}

/// Name of the congestion control that connections with this configuration have.
pub fn cc_name(conn: &ConnConfig) -> String {
    let cc = (conn.policies.cc)(&CcInit::new(Instant::ZERO, 1_460, Window::from_bytes(14_600)));
    cc.name().to_owned()
}

/// The simulator's own stage: every host is inside, and time passes as fast as it is computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Virtual;

impl Stage for Virtual {
    fn is_outside(&self, _: World) -> bool {
        false
    }

    fn begin(
        &mut self,
        _: &mut Sim,
        _: Vec<OutsideHost>,
        _: Vec<OutsideEnd>,
        _: Duration,
    ) -> Result<(), StageError> {
        Ok(())
    }

    fn run_until(&mut self, sim: &mut Sim, until: Instant) -> Result<(), StageError> {
        sim.run_until(until);
        Ok(())
    }

    fn report(&self, _: usize) -> EndReport {
        EndReport::default()
    }

    fn finish(&mut self) -> (Vec<ConnRecord>, Option<Validity>) {
        (vec![], None)
    }
}

impl Stages for Virtual {
    fn name(&self) -> &'static str {
        ""
    }

    fn stage(&self) -> Result<Box<dyn Stage>, StageError> {
        Ok(Box::new(Self))
    }

    fn is_parallel(&self) -> bool {
        true
    }
}
