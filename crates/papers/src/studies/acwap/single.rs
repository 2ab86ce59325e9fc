//! One flow (A1 and A2): window, losses of an event and their distance; and no timeout on any line.

use super::reading::{PACKET, Reading};
use super::runs::{Line, OTHERS, PAPERS, SoloControl, alone};
use crate::error::ReproduceError;
use crate::{Cell, Check, Finding, Outputs, Reproduction, Request, Table};
use ackline_lab::stats::mean;
use ackline_plot::{Chart, Style};

/// What the paper and the independent model have for one flow.
struct ReferenceFlow {
    who: SoloControl,
    line: &'static str,
    paper: &'static str,
    model: &'static str,
    /// Percent of the link, in the model.
    utilisation: f64,
}

/// Points by which the utilisation may differ from the model's.
const POINTS: f64 = 3.0;

const fn row(
    who: SoloControl,
    line: &'static str,
    paper: &'static str,
    model: &'static str,
    utilisation: f64,
) -> ReferenceFlow {
    ReferenceFlow { who, line, paper, model, utilisation }
}

const EXPECTED: [ReferenceFlow; 11] = [
    row(SoloControl::Table, "1200", "8400; 6; 26; 323", "8439; 7; 26; 324", 98.3),
    row(SoloControl::Formula, "1200", "", "8440; 6; 28; 309", 98.4),
    row(SoloControl::Acwap, "1200", "-; 4; 1; -", "-; 3 (per RTT); 1.3; -", 98.8),
    row(SoloControl::Table, "1000", "8400; 6; 26; 323", "8419; 7; 26; 324", 97.3),
    row(SoloControl::Formula, "1000", "", "8420; 7; 27; 309", 97.1),
    row(SoloControl::Acwap, "1000", "-; 4; 1; -", "-; 2; 2; -", 99.1),
    row(SoloControl::Table, "300", "8400; 6; 26; 323", "8428; 6; 26; 325", 91.8),
    row(SoloControl::Formula, "300", "", "8429; 6; 28; 309", 91.9),
    row(SoloControl::Acwap, "300", "-; 4; 1; -", "-; 4; 1.5; -", 94.3),
    row(SoloControl::Acwap, "300m", "", "", 98.0),
    row(SoloControl::Acwap, "150m", "", "", 97.0),
];

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut table = Table::new("single", "One flow, 40 to 100 s").columns([
        "line: rate, round trip, packets of buffer, beta",
        "flow",
        "noise on the ACKs",
        "window at congestion",
        "events",
        "drops/event",
        "distance",
        "utilisation %",
        "timeouts",
        "paper: window; events; drops; distance",
        "model: the same",
        "model: utilisation %",
    ]);
    for (line, who, noisy) in alone(request) {
        let run: Reading = outputs.get(&who.id(&line, noisy))?;
        let Some(flow) = run.flows.first() else { continue };
        let number = |value: f64, digits| Cell::number(value, digits);
        let beside = EXPECTED.iter().find(|row| row.who == who && row.line == line.id);
        table.row(
            format!("{}, {}, {}, {}", line.rate.0, line.rtt.0, line.buffer, line.beta),
            [
                Cell::from(who.name()),
                Cell::from(if noisy { "0.2 ms" } else { "-" }),
                number(mean(&flow.reductions), 0),
                number(flow.events(), 0),
                number(mean(&flow.bursts), 1),
                number(mean(&flow.spacing), 0),
                number(100.0 * run.utilisation, 1),
                number(flow.timeouts as f64, 0),
                Cell::from(beside.map_or("", |row| row.paper)),
                Cell::from(beside.map_or("", |row| row.model)),
                beside.map_or(Cell::from(""), |row| number(row.utilisation, 1)),
            ],
        );
        let hstcp: Reading = outputs.get(&SoloControl::Table.id(&line, noisy))?;
        let mut check = |check: Check| found.checks.push(check);
        let id = |what: &str| {
            format!("single/{}-{}{}/{what}", who.name(), line.id, if noisy { "-noise" } else { "" })
        };
        check(Check::exactly(id("timeouts"), "retransmission timeouts in 100 s", flow.timeouts as f64, 0.0));
        if let Some(row) = beside {
            let (low, high) = (row.utilisation - POINTS, row.utilisation + POINTS);
            let what = "percent of the link, within 3 points of the independent model";
            check(
                Check::within(id("utilisation"), what, 100.0 * run.utilisation, (low, high))
                    .expected(row.utilisation),
            );
        }
        match who {
            SoloControl::Acwap => acwap_checks(&line, noisy, &run, &hstcp, &id).into_iter().for_each(check),
            _ if !noisy && PAPERS.contains(&line) => {
                hstcp_checks(who, &line, &run, &id).into_iter().for_each(check);
            }
            _ => {}
        }
    }
    found.tables.push(table.note(
        "Distance: packets between two losses of one event. The model is an independent one on the level of packets, which loses no \
         retransmission. Utilisation is checked against it, give or take 3 points.",
    ));
    found.findings.extend(findings(outputs)?);
    found.figures.extend(figures(outputs)?.into_iter().map(Into::into));
    Ok(found)
}

fn hstcp_checks(who: SoloControl, line: &Line, run: &Reading, id: &dyn Fn(&str) -> String) -> Vec<Check> {
    let Some(flow) = run.flows.first() else { return vec![] };
    // The queue is full at C R / S + B; a round trip later, when the loss is known, the window has
    // grown by a(w) once more.
    let (a, spacing) = if who == SoloControl::Table { (26.0, 323.0) } else { (27.3, 309.0) };
    let full = line.rate.1 * line.rtt.1 / (8.0 * PACKET) + f64::from(line.buffer) + a;
    let drops = if who == SoloControl::Table { 26.0 } else { 28.0 };
    let mut drops_check = Check::within(
        id("drops"),
        "losses of a congestion event",
        mean(&flow.bursts),
        (drops - 1.0, drops + 1.0),
    );
    let mut spacing_check =
        Check::near(id("distance"), "packets between two losses", mean(&flow.spacing), spacing, 0.03);
    if who == SoloControl::Table {
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

/// The bounds of the losses of an event, and whether events are fewer than HSTCP's and utilisation
/// higher, are the paper's lines' without noise. Everywhere fewer packets are lost.
fn acwap_checks(
    line: &Line,
    noisy: bool,
    run: &Reading,
    hstcp: &Reading,
    id: &dyn Fn(&str) -> String,
) -> Vec<Check> {
    let (Some(flow), Some(other)) = (run.flows.first(), hstcp.flows.first()) else { return vec![] };
    let mut checks = vec![
        Check::at_most(
            id("losses"),
            "losses by HSTCP's on the same line",
            flow.drops as f64 / other.drops as f64,
            0.75,
        ),
        Check::at_least(
            id("gain"),
            "utilisation beyond HSTCP's, points",
            100.0 * (run.utilisation - hstcp.utilisation),
            0.0,
        ),
    ];
    if noisy || OTHERS.contains(line) {
        return checks;
    }
    checks.extend([
        Check::at_most(id("drops"), "losses of a congestion event", mean(&flow.bursts), 2.0).paper(1.0),
        Check::at_most(
            id("events"),
            "congestion events in 60 s, fewer than HSTCP's",
            flow.events(),
            other.events() - 1.0,
        )
        .paper(4.0),
    ]);
    if line.buffer == 300 {
        checks.push(
            Check::within(id("events-4"), "congestion events in 60 s", flow.events(), (3.0, 5.0)).paper(4.0),
        );
    }
    checks
}

fn findings(outputs: &Outputs) -> Result<Vec<Finding>, ReproduceError> {
    let [first, .., third] = PAPERS;
    let run = |who: SoloControl, line: &Line| outputs.get::<Reading>(&who.id(line, false));
    let numbers = |run: &Reading| {
        let flow = run.flows.first();
        let of = |value: fn(&super::reading::Flow) -> f64| flow.map_or(0.0, value);
        (
            of(|flow| mean(&flow.reductions)),
            of(super::reading::Flow::events),
            of(|flow| mean(&flow.bursts)),
            of(|flow| mean(&flow.spacing)),
        )
    };
    let (window, events, drops, distance) = numbers(&run(SoloControl::Table, &first)?);
    let (_, acwap_events, acwap_drops, _) = numbers(&run(SoloControl::Acwap, &third)?);
    let slow = run(SoloControl::Acwap, &OTHERS[1])?;
    Ok(vec![
        Finding::new(
            "HSTCP alone (Figure 2): what a full queue costs",
            "window 8400, 26 losses, 323 packets apart, 6 events in 60 s",
            format!("{window:.0}, {drops:.0} losses, {distance:.0} apart, {events:.0} events"),
            "single/hstcp",
        ),
        Finding::new(
            "ACWAP alone (Figures 3, 6)",
            "1 loss per event, 4 events in 60 s",
            format!(
                "{acwap_drops:.1} losses per event, {acwap_events:.0} events with 300 packets of buffer; no timeout on any line; {:.0} % of \
                 300 Mbit/s with 400 packets of buffer (model: 98)",
                100.0 * slow.utilisation
            ),
            "single/acwap",
        ),
    ])
}

/// The paper's Figures 2, 3 and 6.
fn figures(outputs: &Outputs) -> Result<Vec<Chart>, ReproduceError> {
    let [line, ..] = PAPERS;
    let runs: Vec<(&str, Reading)> = SoloControl::TWO
        .into_iter()
        .map(|who| Ok((who.name(), outputs.get(&who.id(&line, false))?)))
        .collect::<Result<_, ReproduceError>>()?;
    let chart = |name: &str, title: &str, y_label: &str, of: &dyn Fn(&Reading) -> Vec<(f64, f64)>| Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x_label: "time, s".to_owned(),
        y_label: y_label.to_owned(),
        from_zero: y_label != "RTT, ms",
        lines: runs
            .iter()
            .map(|(label, run)| ackline_plot::Line {
                label: (*label).to_owned(),
                points: of(run),
                style: Style::Line,
                ..ackline_plot::Line::default()
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
