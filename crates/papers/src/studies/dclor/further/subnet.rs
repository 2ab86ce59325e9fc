//! A change of subnets: packets are late, and the path has ten times its capacity, or a tenth, from
//! there on (the draft's section 3.2).

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

const TEXT: ScenarioText = crate::scenario!("dclor/subnet");

/// Name, the second rate, and the buffer: a round trip of it.
const CASES: [(&str, &str); 2] = [("wider", "20mbit"), ("narrower", "200kbit")];

#[derive(Serialize, Deserialize)]
struct Change {
    /// Of the flow in ten seconds from the stall's end on, as a share of the second rate.
    used: f64,
    drops: u64,
    redundant: f64,
    timeouts: u64,
}

fn id(response: &Response, case: &str, seed: u32) -> String {
    format!("subnet/{case}/{}/{seed}", response.id)
}

pub(in super::super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for (case, rate) in CASES {
        let sets = [format!("change.1.rate={rate}")];
        for response in compared() {
            let scenario = scenario(TEXT, "conn", response, &sets)?;
            for seed in 0..seeds(request) {
                jobs.push(Job::outcome(id(response, case, seed), "change", &scenario, 0, seed, |outcome| {
                    read(&outcome)
                }));
            }
        }
    }
    Ok(jobs)
}

fn read(outcome: &Outcome) -> Change {
    let queue = outcome.result.queues.first();
    let bulk = flow(outcome, "bulk");
    Change {
        used: queue.map_or(0.0, |queue| {
            bulk.map_or(0.0, |flow| flow.goodput_bps) / queue.rate_bps.unwrap_or(1) as f64
        }),
        drops: queue.map_or(0, |queue| queue.overflows),
        redundant: bulk.map_or(0.0, |flow| redundant(flow) as f64 / 1_460.0),
        timeouts: bulk.map_or(0, timeouts),
    }
}

pub(in super::super) fn evaluate(
    request: &Request,
    outputs: &Outputs,
) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    for (case, rate) in CASES {
        let mut table = Table::new(format!("subnet-{case}"), format!("From 2 Mbit/s to {rate}, after a stall of two seconds"))
            .note(
                "In the ten seconds from the stall's end on, mean and 95 % interval over seeds; redundant segments and timeouts: whole run.",
            )
            .columns(["", "used of the new rate, %", "drops", "redundant", "timeouts"]);
        for response in compared() {
            let runs = (0..seeds(request))
                .map(|seed| outputs.get(&id(response, case, seed)))
                .collect::<Result<Vec<Change>, _>>()?;
            let each = |of: &dyn Fn(&Change) -> f64| runs.iter().map(of).collect::<Vec<f64>>();
            let redundant = each(&|run| run.redundant);
            let mean = redundant.iter().sum::<f64>() / redundant.len().max(1) as f64;
            table.row(
                response.label,
                [
                    Cell::estimate(&each(&|run| 100.0 * run.used), 1),
                    Cell::estimate(&each(&|run| run.drops as f64), 1),
                    Cell::estimate(&redundant, 1),
                    Cell::number(each(&|run| run.timeouts as f64).iter().sum::<f64>() / runs.len() as f64, 1),
                ],
            );
            if response.id == "dclor" {
                found.checks.push(Check::at_most(
                    format!("subnet/{case}/redundant"),
                    format!("to {rate}: segments that dclor sent in vain, mean"),
                    mean,
                    1.0,
                ));
            }
        }
        found.tables.push(table);
    }
    Ok(found)
}
