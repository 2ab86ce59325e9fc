//! HSTCP beside ACWAP, both of 120 ms, over beta (A5, Figures 7 to 9).

use super::reading::{Flow, Reading};
use super::runs::{beta_id, betas, extent, seeds};
use super::series::estimated;
use super::shared::RATE;
use crate::error::ReproduceError;
use crate::{Cell, Check, Finding, Outputs, Reproduction, Request, Table};
use ackline_lab::stats::{jain, mean};
use ackline_plot::Chart;

/// Tenths of beta; of the independent model the shares of ACWAP and HSTCP in percent, Jain's index,
/// and the loss rates of both in 10^-5.
const MODEL: [(u32, &str); 5] = [
    (2, "25.8; 68.8; 0.829; 1.9; 3.3"),
    (4, "30.1; 64.3; 0.884; 2.1; 3.3"),
    (6, "35.0; 59.1; 0.938; 2.1; 3.3"),
    (8, "40.7; 53.2; 0.982; 2.0; 3.4"),
    (9, "43.8; 50.0; 0.996; 1.9; 3.6"),
];

/// A value of beta: a number of each run.
struct Point {
    tenths: u32,
    /// Percent of the link, in the second half of the window.
    hstcp: Vec<f64>,
    acwap: Vec<f64>,
    fairness: Vec<f64>,
    /// Lost packets, 10^-5.
    hstcp_loss: Vec<f64>,
    acwap_loss: Vec<f64>,
    utilisation: Vec<f64>,
    /// ACWAP's share in the second half of the window less that in the first, points.
    drift: Vec<f64>,
}

/// What a line shows of a point.
type Quantity = fn(&Point) -> &[f64];

fn point(outputs: &Outputs, tenths: u32, seeds: u32) -> Result<Point, ReproduceError> {
    let runs: Vec<Reading> =
        (0..seeds).map(|seed| outputs.get(&beta_id(tenths, seed))).collect::<Result<_, _>>()?;
    let over = |of: &dyn Fn(&Reading) -> Option<f64>| runs.iter().filter_map(of).collect::<Vec<_>>();
    let flow = |place: usize, of: &dyn Fn(&Flow) -> f64| over(&|run| run.flows.get(place).map(of));
    Ok(Point {
        tenths,
        hstcp: flow(0, &|flow| 100.0 * flow.halves.1 / RATE),
        acwap: flow(1, &|flow| 100.0 * flow.halves.1 / RATE),
        fairness: over(&|run| jain(&run.flows.iter().take(2).map(|flow| flow.halves.1).collect::<Vec<_>>())),
        hstcp_loss: flow(0, &|flow| 1e5 * flow.loss_rate()),
        acwap_loss: flow(1, &|flow| 1e5 * flow.loss_rate()),
        utilisation: over(&|run| Some(100.0 * run.utilisation)),
        drift: flow(1, &|flow| 100.0 * (flow.halves.1 - flow.halves.0) / RATE),
    })
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let seeds = seeds(request);
    let points: Vec<Point> =
        betas(request).into_iter().map(|tenths| point(outputs, tenths, seeds)).collect::<Result<_, _>>()?;
    Ok(Reproduction {
        findings: findings(&points),
        tables: vec![table(&points)],
        checks: checks(&points),
        figures: figures(&points).into_iter().map(Into::into).collect(),
        notes: vec![extent(request)],
        ..Reproduction::default()
    })
}

fn findings(points: &[Point]) -> Vec<Finding> {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return vec![] };
    let (low, high) = (f64::from(first.tenths) / 10.0, f64::from(last.tenths) / 10.0);
    vec![Finding::new(
        "Beta (Figures 7 to 9): HSTCP beside ACWAP",
        "with beta rise ACWAP's share, fairness and losses; 0.8 is chosen",
        format!(
            "share {:.0} to {:.0} %, Jain's index {:.2} to {:.2} from beta {low} to {high}; ACWAP loses {:.1} and {:.1} packets of 100,000, \
             HSTCP {:.1} and {:.1}",
            mean(&first.acwap),
            mean(&last.acwap),
            mean(&first.fairness),
            mean(&last.fairness),
            mean(&first.acwap_loss),
            mean(&last.acwap_loss),
            mean(&first.hstcp_loss),
            mean(&last.hstcp_loss),
        ),
        "beta/",
    )]
}

fn table(points: &[Point]) -> Table {
    let mut table = Table::new("beta", "HSTCP beside ACWAP, both of 120 ms, over beta").columns([
        "beta",
        "ACWAP %",
        "HSTCP %",
        "Jain's index",
        "loss of ACWAP, 10^-5",
        "loss of HSTCP, 10^-5",
        "utilisation %",
        "second half less first, points",
        "model: the first five",
    ]);
    for point in points {
        let model = MODEL.iter().find(|row| row.0 == point.tenths).map_or("", |row| row.1);
        table.row(
            format!("0.{}", point.tenths),
            [
                Cell::estimate(&point.acwap, 1),
                Cell::estimate(&point.hstcp, 1),
                Cell::estimate(&point.fairness, 3),
                Cell::estimate(&point.acwap_loss, 2),
                Cell::estimate(&point.hstcp_loss, 2),
                Cell::estimate(&point.utilisation, 1),
                Cell::estimate(&point.drift, 1),
                Cell::from(model),
            ],
        );
    }
    table.note(
        "Means over seeds with 95 % intervals. The paper shows this in figures from which no number can be read; it chooses 0.8. The model \
         is an independent one on the level of packets, from 50 to 400 s. Shares are those of the second half of the window, from 65 to \
         90 s; how ACWAP's differs from that of the first shows that the flows are still moving apart.",
    )
}

fn checks(points: &[Point]) -> Vec<Check> {
    let rises = |of: Quantity| {
        let steps = points.windows(2).map(|pair| match pair {
            [a, b] => mean(of(b)) - mean(of(a)),
            _ => 0.0,
        });
        steps.fold(f64::INFINITY, f64::min)
    };
    let mut checks = vec![
        Check::at_least(
            "beta/share",
            "the least rise of ACWAP's share from one beta to the next, points",
            rises(|point| &point.acwap),
            f64::MIN_POSITIVE,
        ),
        Check::at_least(
            "beta/fairness",
            "the least rise of Jain's index from one beta to the next",
            rises(|point| &point.fairness),
            f64::MIN_POSITIVE,
        ),
    ];
    for point in points {
        let id = |what: &str| format!("beta/0.{}/{what}", point.tenths);
        match point.tenths {
            4 => checks.push(Check::at_most(id("fairness"), "Jain's index", mean(&point.fairness), 0.90)),
            8 => checks.push(Check::at_least(id("fairness"), "Jain's index", mean(&point.fairness), 0.97)),
            _ => {}
        }
        let ratio = mean(&point.acwap_loss) / mean(&point.hstcp_loss);
        checks.push(Check::at_most(id("loss"), "loss rate of ACWAP by that of HSTCP", ratio, 1.0));
    }
    checks
}

fn figures(points: &[Point]) -> Vec<Chart> {
    let chart = |name: &str, title: &str, y_label: &str, lines: &[(&str, Quantity)]| Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x_label: "beta".to_owned(),
        y_label: y_label.to_owned(),
        from_zero: name == "beta-loss",
        lines: lines
            .iter()
            .map(|(label, of)| {
                let values = points.iter().map(|point| (f64::from(point.tenths) / 10.0, of(point).to_vec()));
                estimated(label, &values.collect::<Vec<_>>())
            })
            .collect(),
        ..Chart::default()
    };
    vec![
        chart(
            "beta-loss",
            "Loss rate over beta",
            "lost packets, 10^-5",
            &[("HSTCP", |point| &point.hstcp_loss), ("ACWAP", |point| &point.acwap_loss)],
        ),
        chart(
            "beta-utilisation",
            "Utilisation over beta",
            "percent of the link",
            &[
                ("both", |point| &point.utilisation),
                ("HSTCP", |point| &point.hstcp),
                ("ACWAP", |point| &point.acwap),
            ],
        ),
        chart("beta-fairness", "Fairness over beta", "Jain's index", &[("both", |point| &point.fairness)]),
    ]
}
