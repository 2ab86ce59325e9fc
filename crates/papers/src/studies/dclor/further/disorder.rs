//! A stall after which some of what it held back is lost, or comes out of order.

use super::super::responses::Response;
use super::{compared, flow, redundant, scenario, seeds, timeouts};
use crate::ScenarioText;
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::table::{Cell, Table};
use crate::request::Request;
use ackline_lab::Outcome;
use serde::{Deserialize, Serialize};

const TEXT: ScenarioText = crate::scenario!("dclor/disorder");

/// Name, probability of a loss and of coming 40 ms later, in percent.
const CASES: [(&str, u32, u32); 6] = [
    ("calm", 0, 0),
    ("loss-1", 1, 0),
    ("loss-2", 2, 0),
    ("loss-5", 5, 0),
    ("reordering", 0, 12),
    ("both", 2, 12),
];

#[derive(Serialize, Deserialize)]
struct Disorder {
    /// The transfer's time, s.
    time: Option<f64>,
    redundant: f64,
    retransmits: u64,
    timeouts: u64,
}

fn id(response: &Response, case: &str, seed: u32) -> String {
    format!("disorder/{case}/{}/{seed}", response.id)
}

pub(in super::super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for (case, loss, reorder) in CASES {
        let sets = [
            format!("link.path.impairments.0.probability={loss}%"),
            format!("link.path.impairments.1.probability={reorder}%"),
        ];
        for response in compared() {
            let scenario = scenario(TEXT, "conn", response, &sets)?;
            for seed in 0..seeds(request) {
                jobs.push(Job::outcome(
                    id(response, case, seed),
                    "disorder",
                    &scenario,
                    0,
                    seed,
                    |outcome| read(&outcome),
                ));
            }
        }
    }
    Ok(jobs)
}

fn read(outcome: &Outcome) -> Disorder {
    let bulk = flow(outcome, "bulk");
    Disorder {
        time: bulk.and_then(|flow| flow.times_s.first().copied()),
        redundant: bulk.map_or(0.0, |flow| redundant(flow) as f64 / 1_460.0),
        retransmits: bulk.map_or(0, |flow| flow.retransmits),
        timeouts: bulk.map_or(0, timeouts),
    }
}

pub(in super::super) fn evaluate(
    request: &Request,
    outputs: &Outputs,
) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut unfinished = 0;
    for (case, loss, reorder) in CASES {
        let mut table = Table::new(
            format!("disorder-{case}"),
            format!("After a stall of three seconds, {loss} % are lost and {reorder} % come 40 ms later"),
        )
        .note("A transfer of 1 MB; mean and 95 % interval over seeds. Redundant: segments that came again.")
        .columns(["", "time, s", "redundant", "retransmissions", "timeouts"]);
        let mut redundant_of = vec![];
        for response in compared() {
            let runs = (0..seeds(request))
                .map(|seed| outputs.get(&id(response, case, seed)))
                .collect::<Result<Vec<Disorder>, _>>()?;
            let each = |of: &dyn Fn(&Disorder) -> f64| runs.iter().map(of).collect::<Vec<f64>>();
            let times: Vec<f64> = runs.iter().filter_map(|run| run.time).collect();
            unfinished += runs.len() - times.len();
            let redundant = each(&|run| run.redundant);
            table.row(
                response.label,
                [
                    Cell::estimate(&times, 3),
                    Cell::estimate(&redundant, 1),
                    Cell::estimate(&each(&|run| run.retransmits as f64), 1),
                    Cell::number(each(&|run| run.timeouts as f64).iter().sum::<f64>() / runs.len() as f64, 1),
                ],
            );
            redundant_of.push((response.id, redundant.iter().sum::<f64>() / redundant.len().max(1) as f64));
        }
        let of =
            |id: &str| redundant_of.iter().find(|(name, _)| *name == id).map_or(f64::NAN, |(_, mean)| *mean);
        found.checks.push(Check::at_least(
            format!("disorder/{case}/redundant"),
            format!("{loss} % lost, {reorder} % late: segments that go-back-n sent in vain less those of dclor, mean"),
            of("go-back-n") - of("dclor"),
            10.0,
        ));
        found.tables.push(table);
    }
    found.checks.push(Check::exactly(
        "disorder/unfinished",
        "transfers of all responses that did not end",
        unfinished as f64,
        0.0,
    ));
    Ok(found)
}
