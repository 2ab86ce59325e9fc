//! How Table 15.2 depends on what the paper leaves open: delay, rate, timer, copies, and the
//! sender's rules.

use super::conditions::is_bold;
use super::equations::Buffers;
use super::numbers::Matrix;
use super::runs::{self, Policy};
use super::throughput::{is_locked, score};
use crate::{Cell, Check, Job, Outputs, ReproduceError, Reproduction, Request, Table};
use ackline_plot::HeatMap;

/// Other choices: what they are, and what is set in the scenario.
const VARIANTS: &[(&str, &[&str])] = &[
    ("as chosen: 85 ms, 2 Mbit/s, whole copies", &[]),
    ("partial copies", &["app.stream.copy=partial"]),
    ("90 ms, 3.2 Mbit/s", &["link.path.delay=90ms", "link.path.rate=3.2mbit"]),
    ("75 ms, 1.5 Mbit/s", &["link.path.delay=75ms", "link.path.rate=1.5mbit"]),
    ("100 ms, no limit of rate", &["link.path.delay=100ms", "link.path.rate=100gbit"]),
    (
        "100 ms, no limit of rate, partial copies",
        &["link.path.delay=100ms", "link.path.rate=100gbit", "app.stream.copy=partial"],
    ),
    ("delayed-ACK timer of 200 ms", &["conn.ack_hold_limit=200ms"]),
    ("half of the window: 4.4BSD's >=", &["conn.nagle=sunos:test=unsent,half=ge"]),
    ("4.4BSD's test of the segment, >=", &["conn.nagle=sunos:test=segment,half=ge"]),
    ("Nagle's algorithm of RFC 896", &["conn.nagle=rfc896"]),
    ("Minshall's variant", &["conn.nagle=minshall"]),
    ("no Nagle's algorithm", &["conn.nagle=off"]),
];

/// One-way delays, ms.
const DELAYS: [u32; 8] = [60, 70, 75, 80, 85, 90, 100, 120];
/// Rates.
const RATES: [&str; 6] = ["1mbit", "1.5mbit", "2mbit", "2.5mbit", "3.2mbit", "10mbit"];

/// 3 MB are enough: slow start then no longer matters.
const SHORT: &str = "app.stream.size=3M";

fn grid_id(delay: u32, rate: &str) -> String {
    format!("sensitivity/grid/{delay}/{rate}")
}

fn variant_id(name: &str) -> String {
    format!("sensitivity/variant/{name}")
}

/// Quick runs have shorter transfers, and no grid of delays and rates.
pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for (name, set) in VARIANTS {
        let set: Vec<&str> = set.iter().copied().chain(request.quick.then_some(SHORT)).collect();
        jobs.push(runs::variant_job(&variant_id(name), &set)?);
    }
    if request.quick {
        return Ok(jobs);
    }
    for delay in DELAYS {
        for rate in RATES {
            let (delay_set, rate_set) =
                (format!("link.path.delay={delay}ms"), format!("link.path.rate={rate}"));
            let set = [delay_set.as_str(), rate_set.as_str(), SHORT];
            jobs.push(runs::variant_job(&grid_id(delay, rate), &set)?);
        }
    }
    Ok(jobs)
}

/// The rates of a variant, by policy.
fn rates(outputs: &Outputs, id: &str) -> Result<[Matrix; 3], ReproduceError> {
    let list: Vec<Option<f64>> = outputs.get(id)?;
    let mut rates = [[[f64::NAN; 8]; 8]; 3];
    for (cell, rate) in rates.iter_mut().flatten().flatten().zip(list) {
        *cell = rate.unwrap_or(f64::NAN);
    }
    Ok(rates)
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut table = Table::new("sensitivity", "Table 15.2 with other choices: mean of |ln(measured/paper)|")
        .columns([
            "choice",
            "(1) delayed",
            "(2) A3",
            "(3) fewer",
            "bold pairs that lock",
            "others that lock",
            "locked under A3",
        ]);
    for (name, _) in VARIANTS {
        let rates = rates(outputs, &variant_id(name))?;
        let locked = |at: Buffers| is_locked(at.of(&rates[0]), at.of(&rates[1]));
        let count = |bold: bool| Buffers::all().filter(|at| is_bold(*at) == bold && locked(*at)).count();
        let scores =
            Policy::ALL.map(|policy| Cell::number(score(&rates[policy as usize], policy.paper()), 3));
        let stuck = Buffers::all().filter(|at| at.of(&rates[1]) < 15.0).count();
        let counts = [count(true), count(false), stuck].map(|count| Cell::from(count.to_string()));
        table.row(*name, scores.into_iter().chain(counts));
        found.checks.push(Check::exactly(
            format!("sensitivity/a3-free/{}", slug(name)),
            format!("pairs below 15 KB/s under A3; {name}"),
            stuck as f64,
            0.0,
        ));
    }
    found.tables.push(table.note("19 pairs are bold. A3 frees every pair with each of these choices."));
    if !request.quick {
        found.extend(grid(outputs)?);
    }
    Ok(found)
}

/// How well each delay and rate fits.
fn grid(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut values = vec![];
    for delay in DELAYS {
        let mut row = vec![];
        for rate in RATES {
            let rates = rates(outputs, &grid_id(delay, rate))?;
            let [delayed, a3] =
                [Policy::Delayed, Policy::A3].map(|policy| score(&rates[policy as usize], policy.paper()));
            row.push(Some((delayed + a3) / 2.0));
        }
        values.push(row);
    }
    let chosen =
        (DELAYS.iter().position(|delay| *delay == 85), RATES.iter().position(|rate| *rate == "2mbit"));
    let best = values.iter().flatten().flatten().copied().fold(f64::INFINITY, f64::min);
    if let (Some(row), Some(column)) = chosen
        && let Some(score) = values[row][column]
    {
        found.checks.push(Check::at_most(
            "sensitivity/chosen",
            "distance of the chosen delay and rate over the smallest of the grid",
            score / best,
            1.1,
        ));
    }
    found.figures.push(
        HeatMap {
            name: "sensitivity-delay-rate".to_owned(),
            title: "Mean |ln(measured/paper)| of (1) and (2)".to_owned(),
            x_label: "rate of the link".to_owned(),
            y_label: "delay".to_owned(),
            columns: RATES.map(str::to_owned).to_vec(),
            rows: DELAYS.map(|delay| format!("{delay} ms")).to_vec(),
            values,
            digits: 3,
            range: None,
            log: true,
            framed: chosen.0.zip(chosen.1).into_iter().collect(),
        }
        .into(),
    );
    Ok(found)
}

/// A name for a check: lower case, with hyphens.
fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}
