//! M + 1 flows share a drop-tail router; behind it one of them stalls for k round trips with N
//! segments out. The draft's section 2.2: go-back-N then costs up to N/2 + M k packets, and whoever
//! restores its window still up to M k.

use super::super::responses::Response;
use super::super::runs::differences;
use super::{compared, flow, redundant, scenario, seeds, timeouts};
use crate::ScenarioText;
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::table::{Cell, Table};
use crate::request::Request;
use ackline_lab::Outcome;
use ackline_lab::stats::Estimate;
use serde::{Deserialize, Serialize};

const TEXT: ScenarioText = crate::scenario!("dclor/competing");
/// A round trip of the empty path, ms.
const ROUND_TRIP: u64 = 100;
const STALL_AT: u64 = 20_000;

/// Other flows, and the stall in round trips of the empty path.
const CASES: [(u64, u64); 4] = [(2, 10), (4, 10), (4, 20), (8, 10)];

#[derive(Serialize, Deserialize)]
struct Competition {
    /// N: segments that the stalled flow had out.
    flight: f64,
    /// Packets dropped at the router in two seconds from the stall's end on.
    drops: u64,
    /// Retransmissions of the other flows in that time.
    others: u64,
    /// Segments that came to the stalled flow's receiver again, in the whole run.
    redundant: f64,
    timeouts: u64,
    /// What all flows together got in that time, bit/s.
    goodput: f64,
}

fn id(response: &Response, (others, stall): (u64, u64), seed: u32) -> String {
    format!("competing/{others}-{stall}/{}/{seed}", response.id)
}

fn ids(case: (u64, u64)) -> String {
    format!("competing/{}-{}", case.0, case.1)
}

pub(in super::super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for case in CASES {
        let (others, stall) = case;
        let end = STALL_AT + stall * ROUND_TRIP;
        let sets = [
            format!("node.other-server.count={others}"),
            format!("node.other-client.count={others}"),
            format!("change.0.for={}ms", stall * ROUND_TRIP),
            format!("measure.from={end}ms"),
            format!("measure.until={}ms", end + 2_000),
        ];
        for response in compared() {
            let scenario = scenario(TEXT, "app.stalled.conn", response, &sets)?;
            for seed in 0..seeds(request) {
                jobs.push(Job::outcome(
                    id(response, case, seed),
                    "competition",
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

fn read(outcome: &Outcome) -> Competition {
    let stalled = outcome.result.flows.iter().position(|flow| flow.app == "stalled");
    let flight = outcome
        .record
        .connections
        .iter()
        .zip(&outcome.flow_of)
        .filter(|(_, flow)| **flow == stalled)
        .flat_map(|(conn, _)| &conn.samples)
        .rfind(|sample| sample.at_ns <= STALL_AT * 1_000_000)
        .map_or(0.0, |sample| f64::from(sample.pipe) / 1_460.0);
    let stalled = flow(outcome, "stalled");
    Competition {
        flight,
        drops: outcome
            .result
            .queues
            .iter()
            .find(|queue| queue.link == "bottleneck")
            .map_or(0, |queue| queue.overflows),
        others: outcome
            .result
            .flows
            .iter()
            .filter(|flow| flow.app == "other")
            .map(|flow| flow.retransmits)
            .sum(),
        redundant: stalled.map_or(0.0, |flow| redundant(flow) as f64 / 1_460.0),
        timeouts: stalled.map_or(0, timeouts),
        goodput: outcome.result.flows.iter().map(|flow| flow.goodput_bps).sum(),
    }
}

pub(in super::super) fn evaluate(
    request: &Request,
    outputs: &Outputs,
) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    for case in CASES {
        let (others, stall) = case;
        let mut table = Table::new(
            format!("competing-{others}-{stall}"),
            format!("A flow stalls for {} ms among {others} others", stall * ROUND_TRIP),
        )
        .note(
            "In the two seconds from the stall's end on, mean and 95 % interval over seeds. N: segments that the flow had out; bound: \
             N/2 + M k, with k in round trips of the empty path. Redundant: segments that came to its receiver again.",
        )
        .columns(["", "N", "bound", "drops", "others' retransmissions", "redundant", "timeouts", "goodput of all, Mbit/s"]);
        let mut drops_of = vec![];
        for response in compared() {
            let runs = (0..seeds(request))
                .map(|seed| outputs.get(&id(response, case, seed)))
                .collect::<Result<Vec<Competition>, _>>()?;
            let each = |of: &dyn Fn(&Competition) -> f64| runs.iter().map(of).collect::<Vec<f64>>();
            let mean = |of: &dyn Fn(&Competition) -> f64| each(of).iter().sum::<f64>() / runs.len() as f64;
            let bound = |run: &Competition| run.flight / 2.0 + (others * stall) as f64;
            table.row(
                response.label,
                [
                    Cell::number(mean(&|run| run.flight), 1),
                    Cell::number(mean(&bound), 1),
                    Cell::estimate(&each(&|run| run.drops as f64), 1),
                    Cell::estimate(&each(&|run| run.others as f64), 1),
                    Cell::estimate(&each(&|run| run.redundant), 1),
                    Cell::number(mean(&|run| run.timeouts as f64), 1),
                    Cell::estimate(&each(&|run| run.goodput / 1e6), 2),
                ],
            );
            drops_of.push((response.id, each(&|run| run.drops as f64)));
            let name = ids(case);
            match response.id {
                "go-back-n" => {
                    let over = runs.iter().filter(|run| run.drops as f64 > bound(run)).count();
                    found.checks.push(Check::exactly(
                        format!("{name}/bound"),
                        format!("{others} others, {stall} round trips: runs in which go-back-n cost more than N/2 + M k"),
                        over as f64,
                        0.0,
                    ));
                }
                "dclor" => found.checks.push(Check::at_most(
                    format!("{name}/redundant"),
                    format!("{others} others, {stall} round trips: segments that dclor sent in vain, mean"),
                    mean(&|run| run.redundant),
                    1.0,
                )),
                _ => {}
            }
        }
        let drops =
            |id: &str| drops_of.iter().find(|(name, _)| *name == id).map(|(_, drops)| drops.as_slice());
        for other in ["go-back-n", "eifel-full"] {
            let differences =
                differences(drops("dclor").unwrap_or_default(), drops(other).unwrap_or_default());
            let estimate = Estimate::of(&differences).filter(|estimate| estimate.runs >= 5);
            let Some((low, _)) = estimate.and_then(|estimate| estimate.ci) else { continue };
            found.checks.push(Check::at_most(
                format!("{}/drops/{other}", ids(case)),
                format!(
                    "{others} others, {stall} round trips: drops with dclor less those with {other} (lower end of the 95 % interval over seeds)"
                ),
                low,
                0.0,
            ));
        }
        found.tables.push(table);
    }
    Ok(found)
}
