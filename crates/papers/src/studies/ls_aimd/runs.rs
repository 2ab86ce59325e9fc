//! The runs of each part.

use super::compared::compared;
use super::experiment::{Aqm, Case, EXPERIMENTS, Length, Sender};
use super::figures::Excerpt;
use super::ideal;
use super::measurement::Measurement;
use super::readings::{DESIGN, PROTOTYPE};
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::request::Request;
use crate::{ScenarioText, scenario};
use std::sync::Arc;

/// Seeds that the tolerances are for.
const SEEDS: u32 = 5;
const TESTBED: ScenarioText = scenario!("ls-aimd/testbed");

/// The runs of an AQM's table.
pub(super) fn of_table(aqm: Aqm, request: &Request) -> Result<Vec<Job>, ReproduceError> {
    of_cases(&cases(aqm), request)
}

/// The runs beside C = auto.
pub(super) fn of_auto(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    of_cases(&auto_cases(), request)
}

/// The runs under all readings of the thesis.
pub(super) fn of_readings(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    of_cases(&compared(), request)
}

fn of_cases(cases: &[Case], request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let scenario = TESTBED.parse()?;
    let mut jobs = vec![];
    for case in cases {
        let scenario = Arc::new(scenario.with_set(case.settings(length(request)))?);
        for seed in 0..seeds(request) {
            jobs.push(Job::outcome(run_id(case, seed), "measured", &scenario, 0, seed, Measurement::of));
        }
    }
    Ok(jobs)
}

/// What the runs of a case gave, one for each seed.
pub(super) fn of_case(
    case: &Case,
    request: &Request,
    outputs: &Outputs,
) -> Result<Vec<Measurement>, ReproduceError> {
    (0..seeds(request)).map(|seed| outputs.get(&run_id(case, seed))).collect()
}

/// The runs over an ideal path.
pub(super) fn of_ideal() -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for (case, _) in ideal::cases() {
        let mut settings = case.settings(Length::Short);
        settings.push(case.ideal_path());
        let scenario = TESTBED.with_set(settings)?;
        jobs.push(Job::outcome(ideal::job_id(&case), "measured", &scenario, 0, 0, Measurement::of));
    }
    Ok(jobs)
}

/// The runs of the figures.
pub(super) fn from_within() -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for case in seen_from_within() {
        let mut settings = case.settings(Length::Short);
        settings.push("measure.interval=250us".to_owned());
        let scenario = TESTBED.with_set(settings)?;
        let (smss, rate) = (f64::from(case.of.smss()), f64::from(case.of.rate_mbit));
        let read = move |outcome| Excerpt::of(&outcome, smss, rate);
        jobs.push(Job::outcome(inside_id(&case), "inside", &scenario, 0, 0, read));
    }
    Ok(jobs)
}

/// The cases of an AQM's table.
pub(super) fn cases(aqm: Aqm) -> Vec<Case> {
    let mut cases = vec![];
    for sender in [Sender::Aimd, Sender::Slow, Sender::Full] {
        let runs = EXPERIMENTS.into_iter().filter(|of| sender.runs(of));
        cases.extend(runs.map(|of| Case { of, aqm, sender, reading: PROTOTYPE }));
    }
    cases
}

/// The cases beside C = auto: experiments 4A to 4H with a share of marks.
pub(super) fn auto_cases() -> Vec<Case> {
    let mut cases = vec![];
    for aqm in [Aqm::Step, Aqm::Instantaneous] {
        for sender in [Sender::Slow, Sender::Full, Sender::Auto] {
            let runs = EXPERIMENTS.into_iter().filter(|of| of.varies());
            cases.extend(runs.map(|of| Case { of, aqm, sender, reading: DESIGN }));
        }
    }
    cases
}

/// The cases of the figures: both readings with a step.
pub(super) fn seen_from_within() -> Vec<Case> {
    let experiments = EXPERIMENTS.into_iter().filter(|of| matches!(of.name, "3A" | "4E"));
    let both =
        |of| [DESIGN, PROTOTYPE].map(|reading| Case { of, aqm: Aqm::Step, sender: Sender::Full, reading });
    experiments.flat_map(both).collect()
}

/// True if runs are as long as the thesis has them.
pub(super) fn is_whole(request: &Request) -> bool {
    length(request) == Length::Whole
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

pub(super) fn inside_id(case: &Case) -> String {
    format!("inside/{case}")
}
