//! The runs of each part.

use super::reading::{Detail, read};
use crate::error::ReproduceError;
use crate::job::Job;
use crate::request::Request;
use crate::{ScenarioText, scenario};
use ackline_lab::Scenario;
use std::sync::Arc;

const SINGLE: ScenarioText = scenario!("acwap/single");
const SHARED: ScenarioText = scenario!("acwap/shared");

/// HSTCP as the paper's authors must have had it: with a(w) of the RFC's table, of whose rows the
/// text quotes three.
const HSTCP: &str = "hstcp:aw=table-floor";

/// ACWAP around it, with `more` parameters.
fn acwap(more: &str) -> String {
    format!("acwap:inner=hstcp,aw=table-floor,pacing=paper{more}")
}

/// A line for one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) id: &'static str,
    /// Bits per second, as text and as a number.
    pub(super) rate: (&'static str, f64),
    /// The round trip, as text and in seconds.
    pub(super) rtt: (&'static str, f64),
    /// Packets.
    pub(super) buffer: u32,
    pub(super) beta: &'static str,
    /// Part of the smaller version.
    quick: bool,
}

/// The paper's rate, with buffers and round trips with which the window at the overflow is the
/// paper's 8400.
pub(super) const PAPERS: [Line; 3] = [
    Line {
        id: "1200",
        rate: ("500mbit", 500e6),
        rtt: ("120ms", 0.12),
        buffer: 1200,
        beta: "0.8",
        quick: true,
    },
    Line {
        id: "1000",
        rate: ("500mbit", 500e6),
        rtt: ("123ms", 0.123),
        buffer: 1000,
        beta: "0.8",
        quick: false,
    },
    Line {
        id: "300",
        rate: ("500mbit", 500e6),
        rtt: ("134.8ms", 0.1348),
        buffer: 300,
        beta: "0.8",
        quick: true,
    },
];

/// Lines on which a paced stream stands at the full queue for long.
pub(super) const OTHERS: [Line; 3] = [
    Line { id: "40m", rate: ("40mbit", 40e6), rtt: ("50ms", 0.05), buffer: 60, beta: "0.8", quick: true },
    Line { id: "300m", rate: ("300mbit", 300e6), rtt: ("50ms", 0.05), buffer: 400, beta: "0.9", quick: true },
    Line {
        id: "150m",
        rate: ("150mbit", 150e6),
        rtt: ("200ms", 0.2),
        buffer: 300,
        beta: "0.65",
        quick: true,
    },
];

/// Controls that send alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SoloControl {
    /// HSTCP with a(w) of the table.
    Table,
    /// HSTCP with a(w) by the formula.
    Formula,
    /// ACWAP around the first.
    Acwap,
}

impl SoloControl {
    /// Those that are alone on the paper's lines.
    pub(super) const ALL: [Self; 3] = [Self::Table, Self::Formula, Self::Acwap];
    /// Those on the others.
    pub(super) const TWO: [Self; 2] = [Self::Table, Self::Acwap];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Table => "hstcp",
            Self::Formula => "hstcp-formula",
            Self::Acwap => "acwap",
        }
    }

    fn cc(self, beta: &str) -> String {
        match self {
            Self::Table => HSTCP.to_owned(),
            Self::Formula => "hstcp:aw=loglog".to_owned(),
            Self::Acwap => acwap(&format!(",beta={beta}")),
        }
    }

    /// The run on a line; `noisy`: with 0.2 ms of noise on the ACKs' way.
    pub(super) fn id(self, line: &Line, noisy: bool) -> String {
        format!("single-{}-{}{}", self.name(), line.id, if noisy { "-noise" } else { "" })
    }
}

/// The runs of one flow: line, who sends, noise.
pub(super) fn alone(request: &Request) -> Vec<(Line, SoloControl, bool)> {
    let mut all = vec![];
    for line in PAPERS.iter().filter(|line| line.quick || !request.quick) {
        for who in SoloControl::ALL {
            all.push((*line, who, false));
            if !request.quick {
                all.push((*line, who, true));
            }
        }
    }
    for line in &OTHERS {
        for who in SoloControl::TWO {
            all.extend([(*line, who, false), (*line, who, true)]);
        }
    }
    all
}

/// Controls that share the link: flows of 60, 120 and 180 ms.
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

/// The window of measurement, in whole seconds from the start of a run that ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: u32,
    pub(super) until: u32,
}

/// That of Tables 1 and 2: the paper's. The smaller version has a part of it in which shares move
/// no more.
pub(super) fn long(request: &Request) -> Span {
    if request.quick { Span { from: 125, until: 200 } } else { Span { from: 50, until: 400 } }
}

/// That of ACWAP's halves.
pub(super) const HALVES: Span = Span { from: 65, until: 90 };
/// That of the sweep.
pub(super) const SWEEP: Span = Span { from: 40, until: 90 };

impl Span {
    pub(super) const fn seconds(self) -> u32 {
        self.until - self.from
    }

    fn set(self) -> Vec<String> {
        let Self { from, until } = self;
        vec![
            format!("duration=\"{until}s\""),
            format!("measure.from=\"{from}s\""),
            format!("measure.until=\"{until}s\""),
        ]
    }
}

/// Runs with different seeds: ten for confidence intervals, or two.
pub(super) fn seeds(request: &Request) -> u32 {
    request.seeds.unwrap_or(if request.quick { 2 } else { 10 })
}

/// Tenths of beta.
pub(super) fn betas(request: &Request) -> Vec<u32> {
    if request.quick { vec![2, 4, 8] } else { (2..=9).collect() }
}

/// HSTCP's shares.
pub(super) fn table_1(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    shared([Group::Hstcp], request, long(request))
}

/// ACWAP's shares. Its two ratios are against HSTCP, so both are run.
pub(super) fn table_2(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    shared([Group::Hstcp, Group::Acwap], request, long(request))
}

/// ACWAP's halves, beside the whole and HSTCP.
pub(super) fn ablation(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = shared([Group::ClampOnly, Group::PacingOnly], request, HALVES)?;
    jobs.extend(table_2(request)?);
    Ok(jobs)
}

/// Runs of groups that share the link. Of one run of each the windows are kept, for a figure.
fn shared(
    groups: impl IntoIterator<Item = Group>,
    request: &Request,
    span: Span,
) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for group in groups {
        let mut given = span.set();
        given.push(format!("conn.cc=\"{}\"", group.cc()));
        if group != Group::Hstcp {
            given.push(format!("app.r1.start=\"{}s\"", span.until));
        }
        let scenario = SHARED.with_set(given)?;
        jobs.extend((0..seeds(request)).map(|seed| {
            let keep = if seed == 0 { Detail::Series } else { Detail::Numbers };
            run(group.id(seed), &scenario, seed, keep)
        }));
    }
    Ok(jobs)
}

/// HSTCP beside ACWAP over beta.
pub(super) fn beta(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for tenths in betas(request) {
        let cc = acwap("");
        let mut given = SWEEP.set();
        given.extend([
            format!("app.h1.conn.cc=\"{HSTCP}\""),
            format!("app.h2.conn.cc=\"{cc},beta=0.{tenths}\""),
            "link.way-1.delay=\"120ms\"".to_owned(),
            format!("app.h3.start=\"{}s\"", SWEEP.until),
            format!("app.r1.start=\"{}s\"", SWEEP.until),
        ]);
        let scenario = SHARED.with_set(given)?;
        jobs.extend(
            (0..seeds(request)).map(|seed| run(beta_id(tenths, seed), &scenario, seed, Detail::Numbers)),
        );
    }
    Ok(jobs)
}

/// One flow.
pub(super) fn single(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let jobs = alone(request).into_iter().map(|(line, who, noisy)| {
        let mut given = vec![
            format!("conn.cc=\"{}\"", who.cc(line.beta)),
            format!("link.bottleneck.rate=\"{}\"", line.rate.0),
            format!("link.bottleneck.delay=\"{}\"", line.rtt.0),
            format!("link.bottleneck.queue.limit=\"{}p\"", line.buffer),
        ];
        if noisy {
            given.push("link.acks.impairments=[{ kind = \"jitter\", limit = \"200us\" }]".to_owned());
        }
        Ok(run(who.id(&line, noisy), &SINGLE.with_set(given)?, 0, Detail::Series))
    });
    jobs.collect()
}

pub(super) fn run(id: String, scenario: &Arc<Scenario>, seed: u32, keep: Detail) -> Job {
    Job::outcome(id, &format!("acwap {keep:?}"), scenario, 0, seed, move |outcome| read(outcome, keep))
}

/// How much was run.
pub(super) fn extent(request: &Request) -> String {
    let (seeds, betas, tables) = (seeds(request), betas(request).len(), long(request));
    format!(
        "Tables 1 and 2 are means of {seeds} runs with different seeds, from {} to {} s; ACWAP's halves alone of {seeds} runs each, from {} to \
         {} s; the sweep has {betas} values of beta with {seeds} runs each, from {} to {} s.",
        tables.from, tables.until, HALVES.from, HALVES.until, SWEEP.from, SWEEP.until
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_can_be_built() {
        for (quick, expected) in [(true, 4 + 6 + 6 + 12 + 4), (false, 20 + 80 + 18 + 12 + 20)] {
            let request = Request { quick, ..Request::default() };
            let plans: [Result<Vec<Job>, ReproduceError>; 5] =
                [single(&request), table_1(&request), table_2(&request), beta(&request), ablation(&request)];
            let jobs: Vec<Job> = plans.into_iter().flat_map(|jobs| jobs.expect("scenarios")).collect();
            let ids: std::collections::BTreeSet<&str> = jobs.iter().map(Job::id).collect();
            assert_eq!(ids.len(), expected, "{ids:?}");
        }
    }
}
