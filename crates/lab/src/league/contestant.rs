//! A contestant: a policy of the registry, with parameters.

use ackline_registry::Registry;
use ackline_tcp_core::config::Ecn;
use ackline_tcp_core::policy::NewCongestionControl;
use ackline_tcp_core::policy::cc::{AckSample, CcInit, FlowView, Pacing};
use ackline_tcp_core::policy::spec::{Deployment, PolicyKind, SpecError};
use ackline_tcp_core::{Duration, Instant, Window};
use serde::{Deserialize, Serialize};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A policy that takes part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contestant {
    /// Its name with parameters, as `-o cc=` takes it.
    pub spec: String,
    /// RFC or paper.
    pub source: String,
    /// Where it is meant to be used: `general`, `scavenger` or `controlled`.
    pub scope: String,
    /// The ECN that it is designed for; empty if none.
    pub ecn: String,
    /// It spaces departures.
    pub paces: bool,
    /// ackline's own; else of the program that wrote the result.
    pub is_built_in: bool,
    /// Not run here: another document has its runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_reported: bool,
}

/// The standard controls, and CUBIC with a pacer, since pacing alone moves shares.
pub(super) const BASELINES: [&str; 3] = ["reno", "cubic", PACED];
/// What a control that paces is compared with.
pub(super) const PACED: &str = "cubic:pacing=on";

impl Contestant {
    /// The congestion control that `spec` names.
    ///
    /// # Errors
    /// If the registry does not have it, or it refuses its parameters.
    pub fn cc(spec: &str, registry: &Registry) -> Result<Self, SpecError> {
        let maker = registry.cc(spec)?;
        let entry = registry.cc_table().entry(spec)?;
        let ecn = match entry.ecn {
            Ecn::Classic => "classic",
            Ecn::Dctcp => "dctcp",
            Ecn::Accurate => "accurate",
            _ => "",
        };
        let scope = match entry.deployment {
            Deployment::General => "general",
            Deployment::Scavenger => "scavenger",
            Deployment::Controlled => "controlled",
        };
        Ok(Self {
            spec: spec.to_owned(),
            source: entry.source.to_owned(),
            scope: scope.to_owned(),
            ecn: ecn.to_owned(),
            paces: paces(&*maker, entry.ecn),
            is_built_in: Registry::default().cc(spec).is_ok(),
            is_reported: false,
        })
    }

    /// The standard controls, and every congestion control of the registry.
    ///
    /// # Errors
    /// If one of the standard controls is not there.
    pub fn all(registry: &Registry) -> Result<Vec<Self>, SpecError> {
        let others = registry.list(PolicyKind::Cc).into_iter().map(|policy| policy.name);
        let others: Vec<&str> = others.filter(|name| !BASELINES.contains(name)).collect();
        BASELINES.into_iter().chain(others).map(|spec| Self::cc(spec, registry)).collect()
    }

    /// Those that `specs` name, after the standard controls, each once.
    ///
    /// # Errors
    /// If the registry does not have one.
    pub fn named(specs: &[String], registry: &Registry) -> Result<Vec<Self>, SpecError> {
        let mut all: Vec<Self> = vec![];
        for spec in BASELINES.into_iter().chain(specs.iter().map(String::as_str)) {
            if !all.iter().any(|other| other.spec == spec) {
                all.push(Self::cc(spec, registry)?);
            }
        }
        Ok(all)
    }

    /// The name without parameters.
    #[must_use]
    pub fn name(&self) -> &str {
        self.spec.split(':').next().unwrap_or(&self.spec)
    }

    /// The name as a part of a file's name.
    #[must_use]
    pub fn stem(&self) -> String {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        self.spec.chars().map(|letter| if fits(letter) { letter } else { '-' }).collect()
    }

    /// True if it is one of those that others are compared with.
    #[must_use]
    pub fn is_baseline(&self) -> bool {
        BASELINES.contains(&self.spec.as_str())
    }

    pub(super) fn needs_ecn(&self) -> bool {
        !self.ecn.is_empty()
    }

    /// What it asks for where queues mark: what it is designed for, or classic ECN.
    pub(super) fn ecn_word(&self) -> &str {
        if self.ecn.is_empty() { "classic" } else { &self.ecn }
    }

    pub(super) fn is_scavenger(&self) -> bool {
        self.scope == "scavenger"
    }

    pub(super) fn is_controlled(&self) -> bool {
        self.scope == "controlled"
    }
}

/// Whether a control spaces departures, once it knows a round trip and has the ECN that it is
/// designed for. One that panics does not.
fn paces(maker: &NewCongestionControl, ecn: Ecn) -> bool {
    let decide = || {
        let mut init = CcInit::new(Instant::ZERO, 1_448, Window::from_bytes(14_480));
        init.ecn = ecn;
        let mut cc = maker(&init);
        let rtt = Some(Duration::from_millis(40));
        let mut view = FlowView::new(Instant::from_millis(40), 1_448);
        (view.srtt, view.srtt_pace, view.min_rtt) = (rtt, rtt, rtt);
        let mut ack = AckSample::new(2 * 1_448, 2);
        (ack.rtt, ack.rtt_oldest, ack.prior_pipe) = (rtt, rtt, 10 * 1_448);
        cc.on_ack(&view, &ack);
        cc.decision().pacing != Pacing::Unpaced
    };
    catch_unwind(AssertUnwindSafe(decide)).unwrap_or(false)
}
