//! One cell of the matrix: a scenario with a place for the policy under test.

use super::contestant::Contestant;
use crate::error::ScenarioError;
use crate::scenario::Scenario;
use ackline_registry::Registry;
use std::path::Path;

/// Stands in a cell's text for the policy under test.
pub(super) const POLICY: &str = "@POLICY@";
/// Stands for the kind of ECN that it asks for where queues mark.
pub(super) const ECN: &str = "@ECN@";
/// Stands for the world of a host that sends under test, in cells that run in real time.
pub(super) const HOST: &str = "@HOST@";

/// A scenario of the matrix.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its name: the family, and what differs within it (`S-20-40-1`).
    pub id: String,
    /// The family: a letter or two, as in [`Matrix`](super::Matrix).
    pub family: &'static str,
    /// The scenario; [`POLICY`] stands where the policy goes.
    pub(super) text: String,
    /// Seeds of a full run.
    pub seeds: u32,
    /// Millions of data packets of one run, about: what it costs.
    pub packets: f64,
    /// Flows that take part.
    pub(super) takes: Takes,
    /// What its measures refer to.
    pub(super) facts: Facts,
}

/// For whom a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Every policy.
    All,
    /// Those that reduce by ECN.
    Ecn,
    /// None: a flow of the others alone, which theirs beside the policy are compared with.
    Nobody,
}

/// What measures refer to.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Bits per second of payload that the bottleneck can carry.
    pub(super) capacity: f64,
    /// Base round trip, s.
    pub(super) rtt: f64,
    /// The buffer in BDP of the shortest round trip.
    pub(super) buffer: f64,
    /// The cell without what makes it hard: J, V; for harm, the victim alone.
    pub(super) reference: Option<String>,
    /// How often longer the far flow's round trip is (R).
    pub(super) ratio: f64,
    /// Changes of the path, s (P).
    pub(super) changes: Vec<f64>,
    /// Begin and end of an outage, s (P).
    pub(super) outage: Option<(f64, f64)>,
}

impl Cell {
    /// The scenario's text with this policy in it.
    #[must_use]
    pub fn text(&self, contestant: &Contestant) -> String {
        self.text_with(&contestant.spec, contestant.ecn_word(), "world = \"live\"")
    }

    /// The text with this policy and ECN; `host` says where the hosts are that send under test.
    pub(super) fn text_with(&self, policy: &str, ecn: &str, host: &str) -> String {
        self.text.replace(POLICY, policy).replace(ECN, ecn).replace(HOST, host)
    }

    /// The scenario with this policy.
    ///
    /// # Errors
    /// If the registry does not have it.
    pub fn scenario(&self, contestant: &Contestant, registry: &Registry) -> Result<Scenario, ScenarioError> {
        self.parse(&self.text(contestant), registry)
    }

    /// A text of this cell as a scenario.
    pub(super) fn parse(&self, text: &str, registry: &Registry) -> Result<Scenario, ScenarioError> {
        let name = format!("{}.toml", self.id);
        Scenario::parse_with(text, &name, Path::new(""), registry.clone())
    }

    /// True if this policy has runs of its own in the cell.
    #[must_use]
    pub fn is_for(&self, contestant: &Contestant) -> bool {
        match self.takes {
            Takes::All => true,
            Takes::Ecn => contestant.needs_ecn(),
            Takes::Nobody => false,
        }
    }
}
