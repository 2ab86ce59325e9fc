//! A. S. Ahmed, "Extending TCP for Low Round Trip Delay": the data set.

mod checks;
mod compared;
mod experiment;
mod figures;
mod findings;
mod ideal;
mod measurement;
mod readings;
mod runs;
mod tables;
mod thesis;

use crate::Check;
use crate::error::ReproduceError;
use crate::job::Outputs;
use crate::reproduction::Reproduction;
use crate::request::{Knob, Request};
use crate::study::{Paper, Part, Study};
use checks::Results;
use compared::compared;
use experiment::{AQMS, Aqm, Case, Sender};
use figures::Excerpt;
use measurement::Measurement;
use readings::{DESIGN, PROTOTYPE};
use std::collections::BTreeMap;

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

const PARTS: &[Part] = &[
    Part {
        name: "9.1",
        what: "RED on the averaged queue: Reno and LS-AIMD Reno",
        plan: |request| runs::of_table(Aqm::Ramp, request),
        evaluate: |request, outputs| tables(Aqm::Ramp, request, outputs),
    },
    Part {
        name: "9.2",
        what: "marking above a step: DCTCP and LS-AIMD DCTCP",
        plan: |request| runs::of_table(Aqm::Step, request),
        evaluate: |request, outputs| tables(Aqm::Step, request, outputs),
    },
    Part {
        name: "9.3",
        what: "RED on the instantaneous queue: DCTCP and LS-AIMD DCTCP",
        plan: |request| runs::of_table(Aqm::Instantaneous, request),
        evaluate: |request, outputs| tables(Aqm::Instantaneous, request, outputs),
    },
    Part {
        name: "auto",
        what: "C = min(1, (1 - alpha) / alpha) beside the thesis' two values of C, experiments 4A to 4H",
        plan: runs::of_auto,
        evaluate: auto,
    },
    Part {
        name: "readings",
        what: "what the thesis leaves open, settled in seven ways",
        plan: runs::of_readings,
        evaluate: readings,
    },
    Part {
        name: "ideal",
        what: "hosts and wires that add nothing to the base RTT",
        plan: |_| runs::of_ideal(),
        evaluate: |_, outputs| ideal::evaluate(outputs),
    },
    Part {
        name: "figures",
        what: "windows, queue and alpha within 100 ms",
        plan: |_| runs::from_within(),
        evaluate: |_, outputs| inside(outputs),
    },
];

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

    fn reading(&self) -> &[&str] {
        &["ls_aimd/measurement.rs", "ls_aimd/figures.rs"]
    }

    fn pins(&self) -> &str {
        include_str!("pins.toml")
    }
}

/// Tables, figures and checks of an AQM.
fn tables(aqm: Aqm, request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let cases = runs::cases(aqm);
    let whole = runs::is_whole(request);
    let mut means = Means::read(&cases, request, outputs)?;
    let mut found = Reproduction::default();
    found.findings.push(findings::of_table(&means, aqm));
    found.tables.extend(tables::delays(&means, aqm, whole));
    found.tables.push(tables::rest(&means, aqm));
    let senders = [Sender::Aimd, Sender::Slow, Sender::Full];
    found.figures.push(figures::over_base(&means, aqm, &senders, PROTOTYPE));
    found.checks.extend(each(&cases, &means, whole));
    found.checks.extend(checks::claims_of_aqm(&means, aqm, whole));
    // The orders between all three belong to the last one.
    if aqm == Aqm::Instantaneous && AQMS.iter().all(|aqm| request.wants(aqm.table())) {
        for other in [Aqm::Ramp, Aqm::Step] {
            means.0.extend(Means::read(&runs::cases(other), request, outputs)?.0);
        }
        found.checks.extend(checks::marking_order(&means));
    }
    found.notes.extend(extent(request));
    Ok(found)
}

/// The scale factor that finds itself.
fn auto(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let cases = runs::auto_cases();
    let senders = [Sender::Slow, Sender::Full, Sender::Auto];
    let means = Means::read(&cases, request, outputs)?;
    Ok(Reproduction {
        tables: vec![tables::scale(&means)],
        checks: checks::of_scale(&means),
        figures: [Aqm::Step, Aqm::Instantaneous]
            .map(|aqm| figures::over_base(&means, aqm, &senders, DESIGN))
            .into(),
        notes: extent(request).into_iter().collect(),
        ..Reproduction::default()
    })
}

/// The readings of the thesis.
fn readings(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let means = Means::read(&compared(), request, outputs)?;
    Ok(Reproduction {
        findings: vec![findings::of_swings(&means)],
        tables: tables::readings(&means),
        checks: checks::of_readings(&means, runs::is_whole(request)),
        notes: extent(request).into_iter().collect(),
        ..Reproduction::default()
    })
}

/// The last 100 ms of some runs.
fn inside(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    for name in ["3A", "4E"] {
        let mut runs = vec![];
        for case in runs::seen_from_within().into_iter().filter(|case| case.of.name == name) {
            let inside: Excerpt = outputs.get(&runs::inside_id(&case))?;
            runs.push((case.reading.what, inside));
        }
        let title = format!("Experiment {name}, step, LS-AIMD DCTCP C=1, the last 100 ms");
        found.figures.push(Excerpt::figure(&format!("inside-{name}"), title, &runs));
    }
    Ok(found)
}

/// The checks of each run by itself.
fn each(cases: &[Case], means: &Means, whole: bool) -> Vec<Check> {
    let measured = cases.iter().filter_map(|case| Some((case, means.get(case)?)));
    measured.flat_map(|(case, measured)| checks::of_case(case, measured, whole)).collect()
}

/// What a reader must know of short runs.
fn extent(request: &Request) -> Option<String> {
    (!runs::is_whole(request)).then(|| {
        "Short runs of ten seconds: the average of RED's ramp does not settle in them, and what depends on it is not checked."
            .to_owned()
    })
}

/// What was measured of each case: the mean over seeds, and each run.
struct Means(BTreeMap<String, (Measurement, Vec<Measurement>)>);

impl Means {
    fn read(cases: &[Case], request: &Request, outputs: &Outputs) -> Result<Self, ReproduceError> {
        let mean = |case: &Case| {
            let runs = runs::of_case(case, request, outputs)?;
            Ok((case.to_string(), (Measurement::mean(&runs), runs)))
        };
        cases.iter().map(mean).collect::<Result<_, _>>().map(Self)
    }
}

impl Results for Means {
    fn get(&self, case: &Case) -> Option<&Measurement> {
        Some(&self.0.get(&case.to_string())?.0)
    }

    fn runs(&self, case: &Case) -> &[Measurement] {
        self.0.get(&case.to_string()).map_or(&[], |(_, runs)| runs)
    }
}
