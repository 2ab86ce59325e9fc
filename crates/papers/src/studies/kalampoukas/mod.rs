//! L. Kalampoukas, A. Varma and K. K. Ramakrishnan, "Improving TCP Throughput over Two-Way
//! Asymmetric Links: Analysis and Solutions", UCSC-CRL-97-20, 1997.
//!
//! An upload and a download share a line that is much slower in one direction. The paper compares
//! four ways to choose what leaves next on the slow side, by closed forms and by simulation. Each
//! of its figures is a point of a scenario here; what is measured is the efficiency: the share of a
//! direction's rate that its data packets use.

mod auto;
mod cable;
mod distance;
mod experiments;
pub mod formulas;
mod home;
mod reading;
mod rows;

use crate::error::ReproduceError;
use crate::job::Job;
use crate::request::Knob;
use crate::study::{Paper, Part, Study};
use crate::{ScenarioText, scenario};

/// The study.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kalampoukas;

const PAPER: Paper = Paper {
    name: "kalampoukas",
    stem: "kalampoukas",
    title: "Improving TCP Throughput over Two-Way Asymmetric Links: Analysis and Solutions",
    authors: "L. Kalampoukas, A. Varma, K. K. Ramakrishnan",
    year: Some(1997),
};

const PARTS: &[Part] = &[
    Part {
        name: "figures",
        what: "figures 2.3, 4.2 to 4.4, 5.3 to 5.6 and 6.2 to 6.5, and shares beyond them",
        plan: |_| every_point(FIGURES),
        evaluate: |_, outputs| experiments::figures(outputs),
    },
    Part {
        name: "thresholds",
        what: "backpressure with thresholds from 2 packets to a window",
        plan: |_| every_point(THRESHOLDS),
        evaluate: |_, outputs| experiments::thresholds(outputs),
    },
    Part {
        name: "distance",
        what: "backpressure over lines of 0 to 100 ms",
        plan: |_| every_point(DISTANCE),
        evaluate: |_, outputs| distance::evaluate(outputs),
    },
    Part {
        name: "cable",
        what: "section 3: the download's window over a cable modem",
        plan: |_| every_point(CABLE),
        evaluate: |_, outputs| cable::evaluate(outputs),
    },
    Part {
        name: "home",
        what: "beyond the paper: a home's line with today's TCP, 1 to 50 connections each way",
        plan: |_| every_point(HOME),
        evaluate: |_, outputs| home::evaluate(outputs),
    },
    Part {
        name: "auto",
        what: "beyond the paper: f=auto over eight lines, beside fixed shares and other schedulers",
        plan: auto::plan,
        evaluate: auto::evaluate,
    },
];

const FIGURES: &[ScenarioText] = &[
    scenario!("kalampoukas/fifo"),
    scenario!("kalampoukas/ack-priority"),
    scenario!("kalampoukas/backpressure"),
    scenario!("kalampoukas/six-connections"),
    scenario!("kalampoukas/allocation"),
];
const THRESHOLDS: &[ScenarioText] = &[scenario!("kalampoukas/thresholds")];
const DISTANCE: &[ScenarioText] = &[scenario!("kalampoukas/distance")];
const CABLE: &[ScenarioText] = &[scenario!("kalampoukas/cable")];
const AUTO: ScenarioText = scenario!("kalampoukas/auto");
const HOME: &[ScenarioText] = &[scenario!("kalampoukas/home"), scenario!("kalampoukas/home-acks")];

/// A job for each point of these scenarios.
fn every_point(scenarios: &[ScenarioText]) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for text in scenarios {
        let scenario = text.parse()?;
        let points = 0..scenario.points();
        jobs.extend(points.map(|point| Job::scenario(job(short_name(text), point), &scenario, point, 0)));
    }
    Ok(jobs)
}

/// A scenario's name within the study.
fn short_name(text: &ScenarioText) -> &'static str {
    text.name().rsplit('/').next().unwrap_or_default()
}

/// The name of the job that runs a point of a scenario.
fn job(scenario: &str, point: usize) -> String {
    format!("{scenario}/{point}")
}

impl Study for Kalampoukas {
    fn paper(&self) -> &Paper {
        &PAPER
    }

    fn parts(&self) -> &[Part] {
        PARTS
    }

    fn knobs(&self) -> &[Knob] {
        &[Knob::Quick]
    }

    fn page(&self) -> &str {
        include_str!("page.md")
    }

    fn reading(&self) -> &[&str] {
        &["kalampoukas/auto/shares.rs"]
    }

    fn pins(&self) -> &str {
        include_str!("pins.toml")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Request;
    use ackline_lab::results::{Amount, RunResult};
    use ackline_lab::{Scenario, run_one};
    use std::sync::Arc;

    /// The scenario of this name, for its first `duration`.
    fn beginning(name: &str, duration: &str) -> Arc<Scenario> {
        let all = [FIGURES, THRESHOLDS, DISTANCE, CABLE, HOME].concat();
        let text = all.iter().find(|text| short_name(text) == name).unwrap();
        text.with_set([format!("duration={duration}"), "measure.from=0s".to_owned()]).unwrap()
    }

    fn run(scenario: &Scenario, point: usize) -> RunResult {
        run_one(scenario, point, 0).unwrap().result
    }

    fn scheduler(run: &RunResult) -> &str {
        &run.hosts.iter().find(|host| host.host == "near").unwrap().scheduler
    }

    #[test]
    fn labels_are_those_of_the_schedulers() {
        let expected = |label: &str| match label.split([',', ' ']).next() {
            Some("ACKs") => "ack-priority",
            Some("backpressure") => "backpressure",
            Some("connections") => "drr",
            Some("allocation") => "kalampoukas",
            _ => "fifo",
        };
        for row in rows::ROWS {
            let (label, run) = (row.discipline.label(), run(&beginning(row.scenario, "3s"), row.point));
            assert_eq!(scheduler(&run), expected(&label), "{}", row.name);
        }
        for (scenario, hosts) in [("home", home::HOSTS.as_slice()), ("home-acks", &home::ACK_HOSTS)] {
            for (place, (label, _)) in hosts.iter().enumerate() {
                let run = run(&beginning(scenario, "1s"), 3 * place);
                assert_eq!(scheduler(&run), expected(label), "{scenario}: {label}");
            }
        }
    }

    /// What the packets of a run weigh is what the formulas of its row count with. Windows show in
    /// the efficiencies.
    #[test]
    fn each_row_has_the_sizes_of_its_point() {
        for row in rows::ROWS {
            let run = run(&beginning(row.scenario, "12s"), row.point);
            let classes = |link: &str| run.queues.iter().find(|queue| queue.link == link).unwrap().classes;
            let size = |of: Amount| (of.bytes / of.packets.max(1)) as u32;
            let (there, back) = (classes("line"), classes("line.back"));
            assert_eq!([size(there.data), size(back.data), size(there.ack)], row.sizes, "{}", row.name);
        }
    }

    #[test]
    fn every_row_has_its_point() {
        let points = |name: &str| beginning(name, "3s").points();
        for row in rows::ROWS {
            assert!(row.point < points(row.scenario), "{}", row.name);
        }
        assert_eq!(points("distance"), rows::DISTANCES.len());
    }

    #[test]
    fn every_part_can_be_planned() {
        let request = Request::default();
        let jobs: Vec<Job> = PARTS.iter().flat_map(|part| (part.plan)(&request).unwrap()).collect();
        let names: std::collections::BTreeSet<&str> = jobs.iter().map(Job::id).collect();
        assert_eq!(names.len(), jobs.len());
        let needed = rows::ROWS.iter().map(|row| job(row.scenario, row.point));
        assert!(needed.into_iter().all(|id| names.contains(id.as_str())));
    }
}
