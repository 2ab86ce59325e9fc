//! DCLOR's own settings over the traffic of Table 2: what each one is worth.

use super::super::error::ReproduceError;
use super::super::job::{Job, Outputs};
use super::super::reproduction::Reproduction;
use super::super::study::Request;
use super::super::table::{Cell, Table};
use super::compare::{Runs, written};
use super::mix::{Shape, scale};
use super::paper::ROWS;

const SEEDS: u32 = 5;
const QUICK_SEEDS: u32 = 2;

/// Name, what it is, and the response.
const SETTINGS: [(&str, &str, &str); 10] = [
    ("paper", "the draft", "dclor:profile=paper"),
    (
        "conservative",
        "conservative about a probe that was a retransmission",
        "dclor:profile=paper,fallback_clean=conservative",
    ),
    ("skip", "no RTT sample from a probe", "dclor:profile=paper,probe_rtt=skip"),
    ("three", "go-back-N after three probes", "dclor:profile=paper,max_probes=3"),
    ("seen", "only after a first SACK block", "dclor:profile=paper,require_sack_seen=on"),
    ("new", "new data for each further probe", "dclor:profile=paper,probe_repeat=new"),
    ("keep", "what was SACKed stays so", "dclor:profile=paper,sack_reset_on_rto=off"),
    ("revert", "stale ACKs open the old window for new data", "dclor:profile=paper,stale_policy=revert"),
    ("halve", "stale ACKs open half of it", "dclor:profile=paper,stale_policy=halve"),
    ("decay", "the window after the probe decays with the silence", "dclor:profile=paper,stale_policy=decay"),
];

/// Those that decide orders, which each row of Table 2 by itself has, too.
const APART: [&str; 3] = ["paper", "skip", "new"];

fn seeds(request: &Request) -> u32 {
    request.seeds.unwrap_or(if request.quick { QUICK_SEEDS } else { SEEDS }).max(1)
}

fn id(name: &str, seed: u32) -> String {
    format!("settings/{name}/{seed}")
}

fn id_apart(name: &str, row: usize, seed: u32) -> String {
    format!("settings-apart/{name}/{}/{seed}", ROWS[row].app)
}

pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let shape = Shape::draft(scale(request));
    let mut jobs = vec![];
    for (name, _, response) in SETTINGS {
        for seed in 0..seeds(request) {
            let sets = [format!("conn.rto={response}"), "conn.max_undecided_rtos=0".to_owned()];
            let sets = sets.each_ref().map(String::as_str);
            jobs.push(shape.job(id(name, seed), &sets, seed)?);
            for row in (0..3).filter(|_| APART.contains(&name)) {
                let alone = Shape { only: Some(row), ..shape.clone() };
                jobs.push(alone.job(id_apart(name, row, seed), &sets, seed)?);
            }
        }
    }
    Ok(jobs)
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut together = table("settings", "all rows of Table 2 at once");
    let mut apart = table("settings-apart", "each row of Table 2 by itself");
    for (name, what, _) in SETTINGS {
        let runs = Runs::read((0..seeds(request)).map(|seed| vec![id(name, seed)]), outputs)?;
        together.row(what, cells(&runs));
        if APART.contains(&name) {
            let ids = |seed| (0..3).map(|row| id_apart(name, row, seed)).collect();
            apart.row(what, cells(&Runs::read((0..seeds(request)).map(ids), outputs)?));
        }
    }
    Ok(Reproduction { tables: vec![together, apart], ..Reproduction::default() })
}

fn table(id: &str, words: &str) -> Table {
    let heads = ROWS[..3].iter().flat_map(|row| {
        [format!("{} KB: mean, s", row.size), "variance, s^2".to_owned(), "spectral efficiency".to_owned()]
    });
    Table::new(id, format!("DCLOR's settings, one changed at a time, {words}"))
        .note("Mean over runs with different seeds and its 95 % interval.")
        .columns(std::iter::once("setting".to_owned()).chain(heads))
}

fn cells(runs: &Runs) -> Vec<Cell> {
    let row = |place| {
        [
            written(&runs.means(place), 3),
            written(&runs.variances(place), 2),
            written(&runs.efficiencies(place), 4),
        ]
    };
    (0..3).flat_map(row).collect()
}
