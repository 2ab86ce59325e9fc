//! A. S. Ahmed, "Extending TCP for Low Round Trip Delay": the data set.

mod checks;
mod experiment;
mod figures;
mod ideal;
mod measured;
mod tables;
mod thesis;

use super::error::ReproduceError;
use super::job::{Job, Outputs};
use super::reproduction::Reproduction;
use super::study::{Knob, Paper, Part, Request, Study};
use crate::scenario::Scenario;
use checks::Results;
use experiment::{AQMS, Aqm, Case, EXPERIMENTS, Length, Sender};
use figures::Inside;
use measured::Measured;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The study.
#[derive(Clone, Copy, Debug)]
pub(super) struct LsAimd;

const PAPER: Paper = Paper {
    name: "ls-aimd",
    stem: "ls-aimd",
    title: "Extending TCP for Low Round Trip Delay (master's thesis, University of Oslo)",
    authors: "A. S. Ahmed",
    year: Some(2019),
};

const AUTO: &str = "auto";
const IDEAL: &str = "ideal";
const FIGURES: &str = "figures";

const PARTS: &[Part] = &[
    Part { name: "9.1", what: "RED on the averaged queue: Reno and LS-AIMD Reno" },
    Part { name: "9.2", what: "marking above a step: DCTCP and LS-AIMD DCTCP" },
    Part { name: "9.3", what: "RED on the instantaneous queue: DCTCP and LS-AIMD DCTCP" },
    Part {
        name: AUTO,
        what: "C = min(1, (1 - alpha) / alpha) beside the thesis' two values of C, experiments 4A to 4H",
    },
    Part { name: IDEAL, what: "hosts and wires that add nothing to the base RTT" },
    Part { name: FIGURES, what: "windows, queue and alpha within 100 ms" },
];

/// Seeds that the tolerances are for.
const SEEDS: u32 = 5;
const SCENARIO: &str = include_str!("../../../scenarios/papers/ls-aimd/testbed.toml");

impl Study for LsAimd {
    fn paper(&self) -> &Paper {
        &PAPER
    }

    fn parts(&self) -> &[Part] {
        PARTS
    }

    fn knobs(&self) -> &[Knob] {
        &[Knob::Quick, Knob::Seeds]
    }

    fn page(&self) -> &str {
        include_str!("page.md")
    }

    fn plan(&self, request: &Request) -> Result<Vec<Job>, ReproduceError> {
        let scenario = Scenario::parse(SCENARIO, "scenarios/papers/ls-aimd/testbed.toml")?;
        let mut jobs = vec![];
        for case in cases(request) {
            let scenario = Arc::new(scenario.with_set(case.settings(length(request)))?);
            for seed in 0..seeds(request) {
                jobs.push(Job::outcome(run_id(&case, seed), "measured", &scenario, 0, seed, Measured::of));
            }
        }
        for (case, _) in ideal::cases().filter(|_| request.wants(IDEAL)) {
            let mut settings = case.settings(Length::Short);
            settings.push(case.ideal_path());
            let scenario = Arc::new(scenario.with_set(settings)?);
            jobs.push(Job::outcome(ideal::job_id(&case), "measured", &scenario, 0, 0, Measured::of));
        }
        for case in seen_from_within(request) {
            let mut settings = case.settings(Length::Short);
            settings.push("measure.interval=500us".to_owned());
            let scenario = Arc::new(scenario.with_set(settings)?);
            let (smss, rate) = (f64::from(case.of.smss()), f64::from(case.of.rate_mbit));
            let read = move |outcome| Inside::of(&outcome, smss, rate);
            jobs.push(Job::outcome(inside_id(&case), "inside", &scenario, 0, 0, read));
        }
        Ok(jobs)
    }

    fn evaluate(&self, request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
        let mut means = Means(BTreeMap::new());
        for case in cases(request) {
            let runs = (0..seeds(request)).map(|seed| outputs.get(&run_id(&case, seed)));
            means.0.insert(case.to_string(), Measured::mean(&runs.collect::<Result<Vec<_>, _>>()?));
        }
        let whole = length(request) == Length::Whole;
        let mut found = Reproduction::default();
        let tables: Vec<Aqm> = AQMS.into_iter().filter(|aqm| request.wants(aqm.table())).collect();
        for aqm in &tables {
            found.tables.extend(tables::delays(&means, *aqm, whole));
            found.tables.push(tables::rest(&means, *aqm));
            found.figures.extend(figures::over_base(&means, *aqm));
        }
        for case in cases(request) {
            if let Some(measured) = means.get(&case) {
                found.checks.extend(checks::of_case(&case, measured, whole));
            }
        }
        found.checks.extend(checks::shapes(&means, &tables, whole));
        if request.wants(AUTO) {
            found.tables.push(tables::scale(&means));
        }
        if request.wants(IDEAL) {
            let runs =
                ideal::cases().map(|(case, mean)| Ok((case, mean, outputs.get(&ideal::job_id(&case))?)));
            found.extend(ideal::evaluate(&runs.collect::<Result<Vec<_>, ReproduceError>>()?));
        }
        for case in seen_from_within(request) {
            let inside: Inside = outputs.get(&inside_id(&case))?;
            found.figures.extend(inside.figures(&case));
        }
        if !whole {
            found.notes.push(
                "Short runs of ten seconds: the average of RED's ramp does not settle in them, and what depends on it is not \
                 checked."
                    .to_owned(),
            );
        }
        Ok(found)
    }
}

struct Means(BTreeMap<String, Measured>);

impl Results for Means {
    fn get(&self, case: &Case) -> Option<&Measured> {
        self.0.get(&case.to_string())
    }
}

/// The runs of the wanted parts.
fn cases(request: &Request) -> Vec<Case> {
    let mut cases = vec![];
    for aqm in AQMS {
        for sender in [Sender::Aimd, Sender::Slow, Sender::Full, Sender::Auto] {
            let auto = request.wants(AUTO) && aqm != Aqm::Ramp && sender != Sender::Aimd;
            let wanted = request.wants(aqm.table()) || auto;
            let runs = EXPERIMENTS.into_iter().filter(|of| sender.runs(of));
            let runs = runs.filter(|of| wanted && (request.wants(aqm.table()) || of.varies()));
            cases.extend(runs.map(|of| Case { of, aqm, sender }));
        }
    }
    cases
}

/// The runs of the figures.
fn seen_from_within(request: &Request) -> Vec<Case> {
    let mut cases = vec![];
    for of in
        EXPERIMENTS.into_iter().filter(|of| request.wants(FIGURES) && matches!(of.name, "1" | "3A" | "4E"))
    {
        cases.extend(AQMS.map(|aqm| Case { of, aqm, sender: Sender::Full }));
    }
    cases
}

fn length(request: &Request) -> Length {
    if request.quick { Length::Short } else { Length::Whole }
}

fn seeds(request: &Request) -> u32 {
    request.seeds.unwrap_or(if request.quick { 1 } else { SEEDS }).max(1)
}

fn run_id(case: &Case, seed: u32) -> String {
    format!("{case}/{seed}")
}

fn inside_id(case: &Case) -> String {
    format!("inside/{case}")
}
