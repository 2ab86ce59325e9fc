//! The runs of each part.

use super::reading::read;
use super::{ABLATION, BETA, SINGLE, TABLE_1, TABLE_2};
use crate::reproduce::error::ReproduceError;
use crate::reproduce::job::Job;
use crate::reproduce::study::Request;
use crate::scenario::Scenario;
use std::sync::Arc;

const SINGLE_TOML: &str = include_str!("../../../scenarios/papers/acwap/single.toml");
const SHARED_TOML: &str = include_str!("../../../scenarios/papers/acwap/shared.toml");

/// HSTCP as the paper's authors must have had it: with a(w) of the RFC's table, of whose rows the text quotes three.
const HSTCP: &str = "hstcp:aw=table-floor";

/// ACWAP around it, with `more` parameters.
fn acwap(more: &str) -> String {
    format!("acwap:inner=hstcp,aw=table-floor,pacing=paper{more}")
}

/// A buffer in packets and the round trip in seconds with which the window at the overflow is the paper's 8400.
pub(super) const BUFFERS: [(u32, &str, f64); 3] =
    [(1200, "120ms", 0.12), (1000, "123ms", 0.123), (300, "134.8ms", 0.1348)];

/// Who sends alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alone {
    /// HSTCP with a(w) of the table.
    Table,
    /// HSTCP with a(w) by the formula.
    Formula,
    /// ACWAP around the first.
    Acwap,
}

impl Alone {
    pub(super) const ALL: [Self; 3] = [Self::Table, Self::Formula, Self::Acwap];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Table => "hstcp",
            Self::Formula => "hstcp-formula",
            Self::Acwap => "acwap",
        }
    }

    fn cc(self) -> String {
        match self {
            Self::Table => HSTCP.to_owned(),
            Self::Formula => "hstcp:aw=loglog".to_owned(),
            Self::Acwap => acwap(""),
        }
    }

    pub(super) fn id(self, buffer: u32) -> String {
        format!("single-{}-{buffer}", self.name())
    }
}

/// Who shares the link: flows of 60, 120 and 180 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// HSTCP, with a Reno flow of 120 ms (Table 1).
    Hstcp,
    /// ACWAP (Table 2).
    Acwap,
    /// ACWAP without pacing.
    ClampOnly,
    /// ACWAP without clamp.
    PacingOnly,
}

impl Group {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Hstcp => "hstcp",
            Self::Acwap => "acwap",
            Self::ClampOnly => "clamp-only",
            Self::PacingOnly => "pacing-only",
        }
    }

    fn cc(self) -> String {
        match self {
            Self::Hstcp => HSTCP.to_owned(),
            Self::Acwap => acwap(""),
            Self::ClampOnly => acwap("").replace("pacing=paper", "pacing=off"),
            Self::PacingOnly => acwap(",clamp=off"),
        }
    }

    pub(super) fn id(self, seed: u32) -> String {
        format!("shared-{}-{seed}", self.name())
    }
}

/// The id of a run of HSTCP beside ACWAP; beta in tenths.
pub(super) fn beta_id(tenths: u32, seed: u32) -> String {
    format!("beta-0.{tenths}-{seed}")
}

/// Runs with different seeds: ten for confidence intervals, or two.
pub(super) fn seeds(request: &Request) -> u32 {
    request.seeds.unwrap_or(if request.quick { 2 } else { 10 })
}

/// Runs with different seeds of the sweep and of the ablation.
pub(super) fn side_seeds(request: &Request) -> u32 {
    if request.quick { 1 } else { seeds(request) }
}

/// Tenths of beta.
pub(super) fn betas(request: &Request) -> Vec<u32> {
    if request.quick { vec![2, 4, 8] } else { (2..=9).collect() }
}

/// The groups of the wanted parts. ACWAP's two ratios are against HSTCP, so Table 2 runs both.
fn groups(request: &Request) -> Vec<(Group, u32)> {
    let mut groups = vec![];
    if request.wants(TABLE_1) || request.wants(TABLE_2) {
        groups.push((Group::Hstcp, seeds(request)));
    }
    if request.wants(TABLE_2) {
        groups.push((Group::Acwap, seeds(request)));
    }
    if request.wants(ABLATION) {
        groups.push((Group::ClampOnly, side_seeds(request)));
        groups.push((Group::PacingOnly, side_seeds(request)));
        groups.push((Group::Hstcp, side_seeds(request)));
        groups.push((Group::Acwap, side_seeds(request)));
    }
    groups
}

pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    // The longest first, so that none is left alone in the end.
    let shared = Scenario::parse(SHARED_TOML, "scenarios/papers/acwap/shared.toml")?;
    for (group, seeds) in groups(request) {
        let mut given = vec![format!("conn.cc=\"{}\"", group.cc())];
        if group != Group::Hstcp {
            given.push("app.r1.start=\"400s\"".to_owned());
        }
        let scenario = Arc::new(shared.with_set(given)?);
        jobs.extend((0..seeds).map(|seed| run(group.id(seed), &scenario, seed)));
    }
    if request.wants(BETA) {
        for tenths in betas(request) {
            let cc = acwap("");
            let scenario = Arc::new(shared.with_set([
                format!("app.h1.conn.cc=\"{HSTCP}\""),
                format!("app.h2.conn.cc=\"{cc},beta=0.{tenths}\""),
                "link.way-1.delay=\"120ms\"".to_owned(),
                "app.h3.start=\"400s\"".to_owned(),
                "app.r1.start=\"400s\"".to_owned(),
            ])?);
            jobs.extend((0..side_seeds(request)).map(|seed| run(beta_id(tenths, seed), &scenario, seed)));
        }
    }
    if request.wants(SINGLE) {
        let single = Scenario::parse(SINGLE_TOML, "scenarios/papers/acwap/single.toml")?;
        for (buffer, delay, _) in BUFFERS {
            for who in Alone::ALL {
                let scenario = Arc::new(single.with_set([
                    format!("conn.cc=\"{}\"", who.cc()),
                    format!("link.bottleneck.delay=\"{delay}\""),
                    format!("link.bottleneck.queue.limit=\"{buffer}p\""),
                ])?);
                jobs.push(run(who.id(buffer), &scenario, 0));
            }
        }
    }
    Ok(jobs)
}

fn run(id: String, scenario: &Arc<Scenario>, seed: u32) -> Job {
    Job::outcome(id, "acwap", scenario, 0, seed, read)
}

/// How much was run.
pub(super) fn extent(request: &Request) -> String {
    let (seeds, side, betas) = (seeds(request), side_seeds(request), betas(request).len());
    format!(
        "Tables 1 and 2 are means of {seeds} seeds; the sweep has {betas} values of beta, and it and the ablation {side} seed(s)."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_can_be_built() {
        let all = vec![SINGLE, TABLE_1, TABLE_2, BETA, ABLATION];
        for (quick, expected) in [(true, 4 + 3 + 9 + 2), (false, 20 + 80 + 9 + 20)] {
            let request = Request { parts: all.clone(), quick, ..Request::default() };
            let jobs = plan(&request).expect("scenarios");
            let ids: std::collections::BTreeSet<&str> = jobs.iter().map(Job::id).collect();
            assert_eq!(ids.len(), expected, "{ids:?}");
        }
    }
}
