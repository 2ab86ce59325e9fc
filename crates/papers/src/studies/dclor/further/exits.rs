//! The windows at DCLOR's two exits, which steps 8 to 10 of the draft's section 4 state.

use super::super::responses::{RESPONSES, Response};
use super::scenario;
use crate::ScenarioText;
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::finding::Finding;
use crate::reproduction::table::{Cell, Table};
use crate::request::Request;
use ackline_lab::Outcome;
use serde::{Deserialize, Serialize};

const MSS: f64 = 1_460.0;
/// When the stall and the loss begin, ns.
const BEGINS: u64 = 5_000_000_000;

/// A way out of the Probe phase.
struct Exit {
    name: &'static str,
    what: &'static str,
    text: ScenarioText,
    sets: &'static [&'static str],
    /// ssthresh afterwards over the window under way at the timeout; `None`: it stays.
    reduced: Option<f64>,
}

const EXITS: [Exit; 2] = [
    Exit {
        name: "clean",
        what: "a stall of three seconds",
        text: crate::scenario!("dclor/disorder"),
        // A loss before the stall, so that there is an ssthresh to keep.
        sets: &["link.path.impairments=[{ kind = \"drop\", from = \"1s\", until = \"1.02s\" }]"],
        reduced: None,
    },
    Exit {
        name: "lossy",
        what: "everything under way is lost",
        text: crate::scenario!("dclor/all-lost"),
        sets: &[],
        reduced: Some(0.5),
    },
];

/// Bytes, around the first timeout of the stall or the loss.
#[derive(Debug, Serialize, Deserialize)]
struct Windows {
    /// Under way at the last sample before it.
    pipe: u32,
    /// `None`: not yet known.
    ssthresh_before: Option<u64>,
    /// The first window after it that is not that of the Probe phase, zero; and ssthresh then.
    window: u64,
    ssthresh: Option<u64>,
}

fn dclor() -> impl Iterator<Item = &'static Response> {
    RESPONSES.iter().filter(|response| response.id.starts_with("dclor"))
}

fn id(exit: &Exit, response: &Response) -> String {
    format!("exits/{}/{}", exit.name, response.id)
}

pub(in super::super) fn plan(_: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for exit in &EXITS {
        let sets: Vec<String> = exit.sets.iter().map(|set| (*set).to_owned()).collect();
        for response in dclor() {
            let scenario = scenario(exit.text, "conn", response, &sets)?;
            jobs.push(Job::outcome(id(exit, response), "exits", &scenario, 0, 0, |outcome| read(&outcome)));
        }
    }
    Ok(jobs)
}

fn read(outcome: &Outcome) -> Option<Windows> {
    let sender =
        outcome.record.connections.iter().max_by_key(|conn| conn.samples.last().map(|at| at.bytes_sent))?;
    let begins = sender.samples.iter().position(|sample| sample.at_ns >= BEGINS)?;
    let (earlier, samples) = sender.samples.split_at(begins);
    let timeouts = earlier.last()?.timeouts;
    let (before, after) = samples.split_at(samples.iter().position(|sample| sample.timeouts > timeouts)?);
    let (before, exit) = (before.last()?, after.iter().find(|sample| sample.cwnd > 0)?);
    Some(Windows {
        pipe: before.pipe,
        ssthresh_before: before.ssthresh,
        window: exit.cwnd,
        ssthresh: exit.ssthresh,
    })
}

pub(in super::super) fn evaluate(_: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut table = Table::new("exits", "Windows at the two exits, in segments")
        .note("Draft: a window of two; after a clean exit ssthresh stays, after a lossy one it is half of what was under way at the timeout.")
        .columns(["after", "", "under way at the timeout", "window at the exit", "ssthresh before", "ssthresh after"]);
    for exit in &EXITS {
        for response in dclor() {
            let id = id(exit, response);
            let Some(seen): Option<Windows> = outputs.get(&id)? else { continue };
            let segments = |bytes: u64| Cell::number(bytes as f64 / MSS, 1);
            let known = |bytes: Option<u64>| bytes.map_or(Cell::from("none yet"), segments);
            table.row(
                exit.what,
                [
                    Cell::from(response.label),
                    segments(seen.pipe.into()),
                    segments(seen.window),
                    known(seen.ssthresh_before),
                    known(seen.ssthresh),
                ],
            );
            found.checks.push(Check::near(
                format!("{id}/window"),
                format!("{}: {}: window at the exit, segments", response.label, exit.what),
                seen.window as f64 / MSS,
                2.0,
                1e-9,
            ));
            let (of, whole, expected) = match exit.reduced {
                None => ("ssthresh after over before", seen.ssthresh_before, 1.0),
                Some(part) => ("ssthresh over what was under way", Some(seen.pipe.into()), part),
            };
            let measured =
                seen.ssthresh.zip(whole).map_or(f64::NAN, |(part, whole)| part as f64 / whole as f64);
            let what = format!("{}: {}: {of}", response.label, exit.what);
            found.checks.push(Check::near(format!("{id}/ssthresh"), what, measured, expected, 0.02));
        }
    }
    found.tables.push(table);
    let of = |end: &str| {
        let checks = found.checks.iter().filter(|check| check.id.ends_with(end));
        checks.filter_map(|check| check.measured).map(|value| format!("{value:.2}")).collect::<Vec<_>>()
    };
    let (window, clean, lossy) =
        (of("/dclor/window"), of("clean/dclor/ssthresh"), of("lossy/dclor/ssthresh"));
    found.findings.push(Finding::new(
        "Section 4, steps 8 to 10: the exits",
        "a window of two segments; ssthresh stays, or becomes half of what was under way",
        format!(
            "windows of {}; {} of ssthresh, {} of what was under way",
            window.join(" and "),
            clean.join(", "),
            lossy.join(", ")
        ),
        "exits/",
    ));
    Ok(found)
}
