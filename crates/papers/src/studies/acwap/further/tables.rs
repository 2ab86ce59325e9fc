//! A table for each condition.

use super::super::reading::Reading;
use super::super::series::estimated;
use super::bursts::{self, Histogram, SENDERS};
use super::checks::{checks, finding};
use super::conditions::{
    ACKS, BOTH, BUFFERS, Condition, Control, HSTCP, INNER, LINES, NOISES, QUEUES, STARTS, TEN, betas,
};
use super::outcome::{COLUMNS, Runs};
use crate::error::ReproduceError;
use crate::{Cell, Outputs, Reproduction, Request, Table};
use ackline_lab::stats::jain;
use ackline_plot::Chart;

/// A table with a row for each condition and control.
fn table<'a>(
    request: &Request,
    outputs: &Outputs,
    (name, title): (&str, &str),
    first: [&str; 2],
    rows: impl IntoIterator<Item = (&'a Condition, &'a Control)>,
) -> Result<Table, ReproduceError> {
    let mut table = Table::new(name, title).columns(first.into_iter().chain(COLUMNS));
    for (condition, control) in rows {
        let runs = Runs::read(request, outputs, condition, control)?;
        table.row(condition.name, std::iter::once(Cell::from(control.cc)).chain(runs.cells()));
    }
    Ok(table)
}

/// Both controls under each condition.
fn pairs(conditions: &[Condition]) -> impl Iterator<Item = (&Condition, &Control)> {
    conditions.iter().flat_map(|condition| BOTH.iter().map(move |control| (condition, control)))
}

pub(in super::super) fn evaluate(
    request: &Request,
    outputs: &Outputs,
) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction {
        findings: vec![finding(request, outputs)?],
        checks: checks(request, outputs)?,
        ..Reproduction::default()
    };
    let make = |names, first, rows: Vec<(&Condition, &Control)>| table(request, outputs, names, first, rows);
    let buffers: Vec<Condition> = BUFFERS.iter().map(|(_, condition)| *condition).collect();
    let base = &QUEUES[0];
    found.tables = vec![
        noise(request, outputs)?,
        make(
            ("queues", "One flow before an AQM, 10 to 60 s"),
            ["queue", "control"],
            pairs(&QUEUES).collect(),
        )?,
        make(
            ("inner", "A control alone and under ACWAP, 10 to 60 s"),
            ["queue", "control"],
            INNER.iter().flatten().map(|control| (base, control)).collect(),
        )?,
        make(
            ("acks", "When the receiver acknowledges, 10 to 60 s"),
            ["ACK for", "control"],
            pairs(&ACKS).collect(),
        )?,
        make(
            ("buffers", "Sizes of the buffer, in bandwidth-delay products, 10 to 60 s"),
            ["buffer", "control"],
            pairs(&buffers).collect(),
        )?,
        ten(request, outputs)?,
        make(
            ("start", "The first half minute"),
            ["line", "control"],
            LINES
                .iter()
                .flat_map(|line| STARTS.iter().flatten().map(move |control| (line, control)))
                .collect(),
        )?,
        histogram(outputs)?,
    ];
    found.figures = vec![
        over_beta(request, outputs)?.into(),
        over_buffers(request, outputs, "further-buffer-drops", "losses in 50 s", Runs::drops)?.into(),
        over_buffers(
            request,
            outputs,
            "further-buffer-utilisation",
            "percent of the link",
            Runs::utilisation,
        )?
        .into(),
    ];
    Ok(found)
}

/// Noise on the ACKs' way: HSTCP, and ACWAP over beta.
fn noise(request: &Request, outputs: &Outputs) -> Result<Table, ReproduceError> {
    let controls: Vec<Control> =
        std::iter::once(HSTCP).chain(betas(request).into_iter().map(|(_, control)| control)).collect();
    let rows = NOISES.iter().flat_map(|condition| controls.iter().map(move |control| (condition, control)));
    table(request, outputs, ("noise", "Noise on the ACKs' way, 10 to 60 s"), ["noise up to", "control"], rows)
}

fn ten(request: &Request, outputs: &Outputs) -> Result<Table, ReproduceError> {
    let mut table = Table::new("ten", "Ten flows, 10 to 60 s")
        .columns(["control"].into_iter().chain(COLUMNS).chain(["Jain's index"]));
    for control in &BOTH {
        let runs = Runs::read(request, outputs, &TEN, control)?;
        let fairness = |run: &Reading| {
            jain(&run.flows.iter().map(|flow| flow.rate).collect::<Vec<_>>()).unwrap_or(f64::NAN)
        };
        let fairness = Cell::estimate(&runs.of(fairness), 3);
        table.row(control.cc, runs.cells().into_iter().chain([fairness]));
    }
    Ok(table)
}

fn histogram(outputs: &Outputs) -> Result<Table, ReproduceError> {
    let sizes = [1, 2, 3, 4, 8, 16];
    let heads = sizes.windows(2).map(|pair| match pair {
        [size, next] if size + 1 == *next => size.to_string(),
        [size, next] => format!("{size} to {}", next - 1),
        _ => String::new(),
    });
    let mut table =
        Table::new("bursts", "Packets that leave within 60 us of one another, percent of all packets")
            .columns(
                std::iter::once("sender".to_owned())
                    .chain(heads)
                    .chain(["16 or more".to_owned(), "most".to_owned()]),
            );
    for sender in &SENDERS {
        let seen: Histogram = outputs.get(&bursts::id(sender))?;
        let shares: Vec<f64> = sizes.iter().map(|size| 100.0 * seen.share_from(*size)).collect();
        let between = shares.windows(2).map(|pair| match pair {
            [from, next] => Cell::number(from - next, 2),
            _ => Cell::from(""),
        });
        let last = shares.last().copied().unwrap_or(0.0);
        table.row(
            sender.name,
            between.chain([Cell::number(last, 2), Cell::number(seen.bursts.len() as f64, 0)]),
        );
    }
    Ok(table)
}

fn over_beta(request: &Request, outputs: &Outputs) -> Result<Chart, ReproduceError> {
    let mut lines = vec![];
    for condition in &NOISES {
        let mut points = vec![];
        for (tenths, control) in betas(request) {
            let runs = Runs::read(request, outputs, condition, &control)?;
            points.push((f64::from(tenths) / 10.0, runs.drops()));
        }
        lines.push(estimated(&format!("noise up to {}", condition.name), &points));
    }
    Ok(Chart {
        name: "further-noise".to_owned(),
        title: "ACWAP's losses over beta with noise on the ACKs' way".to_owned(),
        x_label: "beta".to_owned(),
        y_label: "losses in 50 s".to_owned(),
        from_zero: true,
        lines,
        ..Chart::default()
    })
}

fn over_buffers(
    request: &Request,
    outputs: &Outputs,
    name: &str,
    y_label: &str,
    of: fn(&Runs) -> Vec<f64>,
) -> Result<Chart, ReproduceError> {
    let mut lines = vec![];
    for control in &BOTH {
        let mut points = vec![];
        for (size, condition) in &BUFFERS {
            points.push((*size, of(&Runs::read(request, outputs, condition, control)?)));
        }
        lines.push(estimated(control.cc, &points));
    }
    Ok(Chart {
        name: name.to_owned(),
        title: "HSTCP and ACWAP over the size of the buffer".to_owned(),
        x_label: "buffer, bandwidth-delay products".to_owned(),
        y_label: y_label.to_owned(),
        from_zero: true,
        lines,
        ..Chart::default()
    })
}
