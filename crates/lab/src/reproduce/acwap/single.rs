//! One flow at 500 Mbit/s (A1 and A2): window, losses of an event, their distance.

use super::reading::{PACKET, Reading};
use super::runs::{Alone, BUFFERS};
use crate::plot::{Chart, Line, Style};
use crate::reproduce::error::ReproduceError;
use crate::reproduce::{Cell, Check, Outputs, Reproduction, Table};
use crate::stats::mean;

/// Bits per second.
const RATE: f64 = 500e6;

/// What the paper and the independent model have for one flow.
struct Expected {
    who: Alone,
    buffer: u32,
    paper: &'static str,
    model: &'static str,
}

const EXPECTED: [Expected; 9] = [
    Expected {
        who: Alone::Table,
        buffer: 1200,
        paper: "8400; 6; 26; 323",
        model: "8439; 7; 26; 324; 98.3 %",
    },
    Expected { who: Alone::Formula, buffer: 1200, paper: "", model: "8440; 6; 28; 309; 98.4 %" },
    Expected {
        who: Alone::Acwap,
        buffer: 1200,
        paper: "-; 4; 1; -",
        model: "-; 3 (per RTT); 1.3; -; 98.8 %",
    },
    Expected {
        who: Alone::Table,
        buffer: 1000,
        paper: "8400; 6; 26; 323",
        model: "8419; 7; 26; 324; 97.3 %",
    },
    Expected { who: Alone::Formula, buffer: 1000, paper: "", model: "8420; 7; 27; 309; 97.1 %" },
    Expected { who: Alone::Acwap, buffer: 1000, paper: "-; 4; 1; -", model: "-; 2; 2; -; 99.1 %" },
    Expected { who: Alone::Table, buffer: 300, paper: "8400; 6; 26; 323", model: "8428; 6; 26; 325; 91.8 %" },
    Expected { who: Alone::Formula, buffer: 300, paper: "", model: "8429; 6; 28; 309; 91.9 %" },
    Expected { who: Alone::Acwap, buffer: 300, paper: "-; 4; 1; -", model: "-; 4; 1.5; -; 94.3 %" },
];

pub(super) fn evaluate(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut table = Table::new("single", "One flow at 500 Mbit/s, 40 to 100 s").columns([
        "flow, buffer, RTT",
        "window at congestion",
        "events",
        "drops/event",
        "distance",
        "utilisation %",
        "paper: window; events; drops; distance",
        "model: the same; utilisation",
    ]);
    for (buffer, delay, rtt) in BUFFERS {
        let mut hstcp = None;
        for who in Alone::ALL {
            let run: Reading = outputs.get(&who.id(buffer))?;
            let Some(flow) = run.flows.first() else { continue };
            let window = mean(&flow.reductions);
            let number = |value: f64, digits| Cell::number(value, digits);
            let beside = EXPECTED.iter().find(|row| row.who == who && row.buffer == buffer);
            table.row(
                format!("{}, {buffer}, {delay}", who.name()),
                [
                    number(window, 0),
                    number(flow.events(), 0),
                    number(mean(&flow.bursts), 1),
                    number(mean(&flow.spacing), 0),
                    number(100.0 * run.utilisation, 1),
                    Cell::from(beside.map_or("", |row| row.paper)),
                    Cell::from(beside.map_or("", |row| row.model)),
                ],
            );
            if who == Alone::Acwap {
                found.checks.extend(acwap_checks(buffer, &run, hstcp.as_ref()));
            } else {
                found.checks.extend(hstcp_checks(who, buffer, rtt, &run));
            }
            if who == Alone::Table {
                hstcp = Some(run);
            }
        }
    }
    found.tables.push(table.note(
        "Distance: packets between two losses of one event. The model is an independent one on the level of packets.",
    ));
    found.figures.extend(figures(outputs)?.into_iter().map(Into::into));
    Ok(found)
}

fn hstcp_checks(who: Alone, buffer: u32, rtt: f64, run: &Reading) -> Vec<Check> {
    let Some(flow) = run.flows.first() else { return vec![] };
    let id = |what: &str| format!("single/{}-{buffer}/{what}", who.name());
    // The queue is full at C R / S + B; a round trip later, when the loss is known, the window has grown by a(w) once more.
    let (a, spacing) = if who == Alone::Table { (26.0, 323.0) } else { (27.3, 309.0) };
    let full = RATE * rtt / (8.0 * PACKET) + f64::from(buffer) + a;
    let drops = if who == Alone::Table { 26.0 } else { 28.0 };
    let mut drops_check = Check::within(
        id("drops"),
        "losses of a congestion event",
        mean(&flow.bursts),
        (drops - 1.0, drops + 1.0),
    );
    let mut spacing_check =
        Check::near(id("distance"), "packets between two losses", mean(&flow.spacing), spacing, 0.03);
    if who == Alone::Table {
        drops_check = drops_check.paper(26.0);
        spacing_check = spacing_check.paper(323.0);
    }
    vec![
        Check::near(
            id("window"),
            "segments at congestion: C R / S + B + a(w)",
            mean(&flow.reductions),
            full,
            0.005,
        )
        .paper(8400.0),
        Check::within(id("events"), "congestion events in 60 s", flow.events(), (6.0, 7.0)).paper(6.0),
        drops_check,
        spacing_check,
    ]
}

fn acwap_checks(buffer: u32, run: &Reading, hstcp: Option<&Reading>) -> Vec<Check> {
    let (Some(flow), Some(base)) = (run.flows.first(), hstcp) else { return vec![] };
    let Some(other) = base.flows.first() else { return vec![] };
    let id = |what: &str| format!("single/acwap-{buffer}/{what}");
    let mut checks = vec![
        Check::at_most(id("drops"), "losses of a congestion event", mean(&flow.bursts), 2.0).paper(1.0),
        Check::at_most(
            id("events"),
            "congestion events in 60 s, fewer than HSTCP's",
            flow.events(),
            other.events() - 1.0,
        )
        .paper(4.0),
        Check::at_least(
            id("utilisation"),
            "utilisation beyond HSTCP's, points",
            100.0 * (run.utilisation - base.utilisation),
            1.0,
        ),
    ];
    if buffer == 300 {
        checks.push(
            Check::within(id("events-4"), "congestion events in 60 s", flow.events(), (3.0, 5.0)).paper(4.0),
        );
    }
    checks
}

/// The paper's Figures 2, 3 and 6.
fn figures(outputs: &Outputs) -> Result<Vec<Chart>, ReproduceError> {
    let (buffer, _, _) = BUFFERS[0];
    let runs: Vec<(&str, Reading)> = [Alone::Table, Alone::Acwap]
        .into_iter()
        .map(|who| Ok((who.name(), outputs.get(&who.id(buffer))?)))
        .collect::<Result<_, ReproduceError>>()?;
    let chart = |name: &str, title: &str, y_label: &str, of: &dyn Fn(&Reading) -> Vec<(f64, f64)>| Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x_label: "time, s".to_owned(),
        y_label: y_label.to_owned(),
        from_zero: y_label != "RTT, ms",
        lines: runs
            .iter()
            .map(|(label, run)| Line {
                label: (*label).to_owned(),
                points: of(run),
                style: Style::Line,
                ..Line::default()
            })
            .collect(),
        ..Chart::default()
    };
    let first = |run: &Reading, of: fn(&super::reading::Flow) -> Vec<(f64, f64)>| {
        run.flows.first().map(of).unwrap_or_default()
    };
    Ok(vec![
        chart("single-window", "Congestion window of one flow", "segments", &|run| {
            first(run, |flow| flow.window.clone())
        }),
        chart("single-queue", "Queue before the link", "packets", &|run| run.queue.clone()),
        chart("single-rtt", "Smoothed RTT of one flow", "RTT, ms", &|run| {
            first(run, |flow| flow.rtt.clone())
        }),
    ])
}
