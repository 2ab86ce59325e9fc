//! L. Kalampoukas, A. Varma and K. K. Ramakrishnan, "Improving TCP Throughput over Two-Way Asymmetric Links: Analysis and
//! Solutions", UCSC-CRL-97-20, 1997.
//!
//! An upload and a download share a line that is much slower in one direction. The paper compares four ways to choose what
//! leaves next on the slow side, by closed forms and by simulation. Each of its figures is a point of a scenario here; what is
//! measured is the efficiency: the share of a direction's rate that its data packets use.

mod cable;
mod distance;
mod experiments;
pub mod formulas;
mod home;
mod reading;
mod rows;

use super::error::ReproduceError;
use super::job::{Job, Outputs};
use super::reproduction::Reproduction;
use super::study::{Paper, Part, Request, Study};
use crate::scenario::Scenario;
use std::sync::Arc;

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

/// A part with the scenarios that it runs, and what it makes of their results.
struct Piece {
    part: Part,
    scenarios: &'static [&'static str],
    evaluate: fn(&Outputs) -> Result<Reproduction, ReproduceError>,
}

const PIECES: &[Piece] = &[
    Piece {
        part: Part {
            name: "figures",
            what: "figures 2.3, 4.2 to 4.4, 5.3 to 5.6 and 6.2 to 6.5, and shares beyond them",
        },
        scenarios: &["fifo", "ack-priority", "backpressure", "six-connections", "allocation"],
        evaluate: experiments::figures,
    },
    Piece {
        part: Part { name: "thresholds", what: "backpressure with thresholds from 2 packets to a window" },
        scenarios: &["thresholds"],
        evaluate: experiments::thresholds,
    },
    Piece {
        part: Part { name: "distance", what: "backpressure over lines of 0 to 100 ms" },
        scenarios: &["distance"],
        evaluate: distance::evaluate,
    },
    Piece {
        part: Part { name: "cable", what: "section 3: the download's window over a cable modem" },
        scenarios: &["cable"],
        evaluate: cable::evaluate,
    },
    Piece {
        part: Part {
            name: "home",
            what: "beyond the paper: a home's line with today's TCP, 1 to 50 connections each way",
        },
        scenarios: &["home", "home-acks"],
        evaluate: home::evaluate,
    },
];

const PARTS: &[Part] = &{
    let mut parts = [PIECES[0].part; PIECES.len()];
    let mut place = 0;
    while place < PIECES.len() {
        parts[place] = PIECES[place].part;
        place += 1;
    }
    parts
};

macro_rules! scenarios {
    ($($name:literal,)*) => {
        &[$(($name, include_str!(concat!("../../../scenarios/papers/kalampoukas/", $name, ".toml"))),)*]
    };
}

const SCENARIOS: &[(&str, &str)] = scenarios![
    "fifo",
    "ack-priority",
    "backpressure",
    "six-connections",
    "allocation",
    "thresholds",
    "distance",
    "cable",
    "home",
    "home-acks",
];

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

    fn page(&self) -> &str {
        include_str!("page.md")
    }

    fn plan(&self, request: &Request) -> Result<Vec<Job>, ReproduceError> {
        let mut jobs = vec![];
        for piece in PIECES.iter().filter(|piece| request.wants(piece.part.name)) {
            for (name, text) in SCENARIOS.iter().filter(|(name, _)| piece.scenarios.contains(name)) {
                let scenario = Arc::new(Scenario::parse(text, &format!("{name}.toml"))?);
                let points = 0..scenario.points();
                jobs.extend(points.map(|point| Job::scenario(job(name, point), &scenario, point, 0)));
            }
        }
        Ok(jobs)
    }

    fn evaluate(&self, request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
        let mut found = Reproduction::default();
        for piece in PIECES.iter().filter(|piece| request.wants(piece.part.name)) {
            found.extend((piece.evaluate)(outputs)?);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_point_and_every_scenario_its_part() {
        let scenario = |name: &str| {
            let (_, text) = SCENARIOS.iter().find(|(other, _)| *other == name).unwrap();
            Scenario::parse(text, name).unwrap()
        };
        for row in rows::ROWS {
            assert!(row.point < scenario(row.scenario).points(), "{}", row.name);
        }
        assert_eq!(scenario("distance").points(), rows::DISTANCES.len());
        for (name, _) in SCENARIOS {
            assert_eq!(PIECES.iter().filter(|piece| piece.scenarios.contains(name)).count(), 1, "{name}");
        }
    }

    #[test]
    fn every_part_can_be_planned() {
        let parts = PARTS.iter().map(|part| part.name).collect();
        let jobs = Kalampoukas.plan(&Request { parts, ..Request::default() }).unwrap();
        let names: std::collections::BTreeSet<&str> = jobs.iter().map(Job::id).collect();
        assert_eq!(names.len(), jobs.len());
        let needed = rows::ROWS.iter().map(|row| job(row.scenario, row.point));
        assert!(needed.into_iter().all(|id| names.contains(id.as_str())));
    }

    /// The name of the near host's scheduler at a point.
    fn scheduler(scenario: &str, point: usize) -> &'static str {
        let (_, text) = SCENARIOS.iter().find(|(name, _)| *name == scenario).unwrap();
        let setup = Scenario::parse(text, scenario).unwrap().setup(point).unwrap();
        (setup.nodes[0].host.as_ref().unwrap().scheduler)().name()
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
            let label = row.discipline.label();
            assert_eq!(scheduler(row.scenario, row.point), expected(&label), "{}", row.name);
        }
        for (scenario, hosts) in [("home", home::HOSTS.as_slice()), ("home-acks", &home::ACK_HOSTS)] {
            for (place, (label, _)) in hosts.iter().enumerate() {
                assert_eq!(self::scheduler(scenario, 3 * place), expected(label), "{label}");
            }
        }
    }

    #[test]
    fn each_row_has_the_sizes_of_its_point() {
        for row in rows::ROWS {
            let (_, text) = SCENARIOS.iter().find(|(name, _)| *name == row.scenario).unwrap();
            let setup = Scenario::parse(text, row.scenario).unwrap().setup(row.point).unwrap();
            let mss = |app: &str| {
                let flow = setup.flows.iter().find(|flow| flow.app == app).unwrap();
                assert_eq!(flow.conn.recv_buffer, 65_536, "{}", row.name);
                u32::from(flow.conn.mss.unwrap())
            };
            let pricing = setup.nodes[0].host.as_ref().unwrap().config.pricing;
            assert_eq!([mss("up"), mss("down"), pricing.price(0, 0, 1)], row.sizes, "{}", row.name);
        }
    }
}
