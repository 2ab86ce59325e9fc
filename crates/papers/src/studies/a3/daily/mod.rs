//! A3 in daily use: beside the ACK policies of today, with kernel-like senders. The paper has
//! nothing of the kind; its own sender and its own profile are in the other parts.

mod runs;

use crate::{Cell, Check, Finding, Job, Outputs, ReproduceError, Reproduction, Request, Table};
use ackline_lab::stats::{Estimate, mean};
use ackline_plot::HeatMap;
use runs::{LossyCell, PATHS, Policy, Workload, buffers};

pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    runs::plan(request)
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let cells = runs::cells(request, outputs)?;
    let mut found = Reproduction { findings: vec![finding(&cells)], ..Reproduction::default() };
    found.tables.push(summary(&cells));
    found.tables.extend(Workload::ALL.map(|workload| all_cells(workload, &cells)));
    for policy in Policy::CLAIMS {
        found
            .checks
            .extend(Workload::ALL.into_iter().flat_map(|workload| never_worse(policy, workload, &cells)));
    }
    found.checks.extend(contrast(&cells));
    found.figures.extend([
        losses_map(Policy::Delayed, &cells, request).into(),
        losses_map(Policy::Paper, &cells, request).into(),
        gains_map(&cells, request).into(),
        acks_map(&cells, request).into(),
    ]);
    if !request.quick {
        let lossy = runs::lossy_cells(outputs)?;
        found.tables.push(with_losses(&lossy));
        found.checks.extend(Policy::CLAIMS.map(|policy| noise(policy, &lossy)));
    }
    Ok(found)
}

fn finding(cells: &[runs::Cell]) -> Finding {
    let gains = || cells.iter().map(|cell| cell.gain(Policy::A3));
    Finding::new(
        "Daily use: A3's defaults against Linux's ACKs",
        "(not in the paper)",
        format!(
            "{} cells: goodput {:.2} to {:.1} times as much; {:.0} % of the ACKs for small writes",
            cells.len(),
            least(gains()),
            most(gains()),
            acks(Policy::A3, of(Workload::Writes, cells)) * 100.0
        ),
        "daily/",
    )
}

/// The cells of a workload.
fn of(workload: Workload, cells: &[runs::Cell]) -> impl Iterator<Item = &runs::Cell> {
    cells.iter().filter(move |cell| cell.setting.workload == workload)
}

fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

fn most(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::NEG_INFINITY, f64::max)
}

/// ACKs over those that Linux's policy sends for as many bytes, of all cells together.
fn acks<'a>(policy: Policy, cells: impl Iterator<Item = &'a runs::Cell>) -> f64 {
    let (mut ours, mut linux) = (0.0, 0.0);
    for cell in cells {
        ours += cell.of(policy).acks as f64;
        linux += cell.of(Policy::Linux).acks as f64 * cell.gain(policy);
    }
    ours / linux
}

/// The claim: in no cell less goodput, more spurious retransmissions or longer stalls than under
/// Linux's policy, and hardly more ACKs.
fn never_worse(policy: Policy, workload: Workload, cells: &[runs::Cell]) -> [Check; 4] {
    let id = |what: &str| format!("daily/{}/{what}/{}", policy.id(), workload.id());
    let what = |what: &str| format!("{}, {}: {what}", policy.words(), workload.words());
    let cells = || of(workload, cells);
    [
        Check::at_least(
            id("goodput"),
            what("goodput over that under linux-like, smallest of all cells"),
            least(cells().map(|cell| cell.gain(policy))),
            0.98,
        ),
        Check::at_most(
            id("spurious"),
            what("spurious retransmissions more than under linux-like, largest of all cells"),
            most(cells().map(|cell| cell.more_retransmits(policy))),
            0.0,
        ),
        Check::at_most(
            id("stalled"),
            what("share of the run stalled, more than under linux-like, largest of all cells"),
            most(cells().map(|cell| cell.more_stalled(policy))),
            0.01,
        ),
        Check::at_most(
            id("acks"),
            what("ACKs per byte over those under linux-like, all cells"),
            acks(policy, cells()),
            1.05,
        ),
    ]
}

/// What the matrix must show to be one: senders that lock under plain delayed ACKs, and why the
/// published profile is no default.
fn contrast(cells: &[runs::Cell]) -> Vec<Check> {
    let worst = |policy| least(cells.iter().map(|cell| cell.gain(policy)));
    vec![
        Check::at_most(
            "daily/delayed/goodput",
            "delayed: goodput over that under linux-like, smallest of all cells",
            worst(Policy::Delayed),
            0.1,
        ),
        Check::at_most(
            "daily/paper/goodput",
            "a3:profile=paper: goodput over that under linux-like, smallest of all cells",
            worst(Policy::Paper),
            0.5,
        ),
        Check::at_most(
            "daily/samplings/goodput",
            "a3, samplings only: goodput over that under linux-like, smallest of all cells",
            worst(Policy::Samplings),
            0.9,
        ),
        Check::at_least(
            "daily/samplings/spurious",
            "a3, samplings only: spurious retransmissions more than under linux-like, largest of all cells",
            most(cells.iter().map(|cell| cell.more_retransmits(Policy::Samplings))),
            1.0,
        ),
        Check::at_most(
            "daily/a3/saved",
            "a3, writes of 100 bytes: ACKs per byte over those under linux-like, all cells",
            acks(Policy::A3, of(Workload::Writes, cells)),
            0.8,
        ),
        Check::at_least(
            "daily/a3/gain",
            "a3: goodput over that under linux-like, largest of all cells",
            most(cells.iter().map(|cell| cell.gain(Policy::A3))),
            1.5,
        ),
    ]
}

/// Each workload and policy in a line.
fn summary(cells: &[runs::Cell]) -> Table {
    let mut table = Table::new("daily", "A3 in daily use, against linux-like").columns([
        "application, policy",
        "goodput, worst cell",
        "best cell",
        "below 98 %",
        "above 102 %",
        "ACKs per byte",
        "spurious",
        "stalled [s]",
    ]);
    for workload in Workload::ALL {
        for policy in Policy::ALL {
            let cells = || of(workload, cells);
            let gains = || cells().map(|cell| cell.gain(policy));
            let count = |wanted: fn(&f64) -> bool| {
                Cell::from(format!("{} of {}", gains().filter(wanted).count(), gains().count()))
            };
            let spurious: u64 = cells().map(|cell| cell.of(policy).retransmits).sum();
            let stalled: f64 = cells().map(|cell| cell.of(policy).stalled_s).sum();
            table.row(
                format!("{}: {}", workload.words(), policy.words()),
                [
                    Cell::number(least(gains()), 3),
                    Cell::number(most(gains()), 3),
                    count(|gain| *gain < 0.98),
                    count(|gain| *gain > 1.02),
                    Cell::number(acks(policy, cells()), 3),
                    Cell::from(spurious.to_string()),
                    Cell::number(stalled, 1),
                ],
            );
        }
    }
    table.note(
        "Goodput and ACKs per byte are shares of those under linux-like in the same cell. Nothing is lost, so every \
         retransmission is spurious. Stalled: neither end receives anything for 10 ms longer than the way takes; of all cells together.",
    )
}

/// All cells of a workload.
fn all_cells(workload: Workload, cells: &[runs::Cell]) -> Table {
    let mut table = Table::new(
        format!("daily-{}", workload.id()),
        format!("{}: goodput [Mbit/s], ACKs, spurious retransmissions, stalls", workload.words()),
    )
    .columns(std::iter::once("RTT, segment, Nagle, send buffer").chain(Policy::ALL.map(Policy::words)));
    for cell in of(workload, cells) {
        let runs::Setting { path, segment, nagle, .. } = cell.setting;
        let nagle = if nagle { "on" } else { "off" };
        table.row(
            format!("{}, {segment}, {nagle}, {} KB", path.name, cell.buffer),
            Policy::ALL.map(|policy| {
                let runs::Measurement { goodput_bps, acks, retransmits, stalls, stalled_s: _ } =
                    cell.of(policy);
                Cell::from(format!("{:.2}, {acks}, {retransmits}, {stalls}", goodput_bps / 1e6))
            }),
        );
    }
    table
}

/// A row for each workload and path, a column for each send buffer.
fn map(
    name: &str,
    title: String,
    cells: &[runs::Cell],
    request: &Request,
    digits: usize,
    value: impl Fn(&[&runs::Cell]) -> f64,
) -> HeatMap {
    let mut rows = vec![];
    let mut values = vec![];
    for workload in Workload::ALL {
        for path in PATHS {
            rows.push(format!("{}, {}", workload.id(), path.name));
            let row = buffers(request).iter().map(|buffer| {
                let here: Vec<&runs::Cell> = of(workload, cells)
                    .filter(|cell| cell.setting.path == path && cell.buffer == *buffer)
                    .collect();
                Some(value(&here))
            });
            values.push(row.collect());
        }
    }
    HeatMap {
        name: name.to_owned(),
        title,
        x_label: "send buffer [KB]".to_owned(),
        y_label: "application, RTT".to_owned(),
        columns: buffers(request).iter().map(ToString::to_string).collect(),
        rows,
        values,
        digits,
        range: Some((0.1, 2.0)),
        log: true,
        framed: vec![],
    }
}

/// Where a policy costs goodput.
fn losses_map(policy: Policy, cells: &[runs::Cell], request: &Request) -> HeatMap {
    let title = format!(
        "Goodput under {} over that under linux-like: the worst of all segment sizes",
        policy.words()
    );
    let mut map = map(&format!("daily-goodput-{}", policy.id()), title, cells, request, 2, |cells| {
        least(cells.iter().map(|cell| cell.gain(policy)))
    });
    let low = |value: &Option<f64>| value.is_some_and(|value| value < 0.98);
    let rows = map.values.iter().enumerate();
    map.framed = rows
        .flat_map(|(row, values)| {
            values.iter().enumerate().filter(|(_, value)| low(value)).map(move |(column, _)| (row, column))
        })
        .collect();
    map.x_label += "; framed: below 98 %";
    map
}

/// Where A3 gains goodput; nowhere does it cost any.
fn gains_map(cells: &[runs::Cell], request: &Request) -> HeatMap {
    let title = "Goodput under a3 over that under linux-like: the best of all segment sizes".to_owned();
    let map = map("daily-goodput-a3", title, cells, request, 2, |cells| {
        most(cells.iter().map(|cell| cell.gain(Policy::A3)))
    });
    HeatMap { range: Some((0.5, 4.0)), ..map }
}

fn acks_map(cells: &[runs::Cell], request: &Request) -> HeatMap {
    let title = "ACKs per byte under a3 over those under linux-like".to_owned();
    map("daily-acks-a3", title, cells, request, 2, |cells| acks(Policy::A3, cells.iter().copied()))
}

/// Goodput with losses, in the mean over seeds.
fn with_losses(cells: &[LossyCell]) -> Table {
    let mut table = Table::new(
        "daily-loss",
        "Goodput [Mbit/s] with 1 % loss on the way of the data: mean and 95 % interval",
    )
    .columns(std::iter::once("application, RTT, send buffer").chain(Policy::LOSSY.map(Policy::words)));
    for cell in cells {
        table.row(
            format!("{}, {}, {} KB", cell.workload.words(), cell.path.name, cell.buffer),
            Policy::LOSSY.map(|policy| {
                let goodputs: Vec<f64> =
                    cell.by_policy[policy as usize].iter().map(|run| run.goodput_bps / 1e6).collect();
                Cell::estimate(&goodputs, 2)
            }),
        );
    }
    table.note("Segments of 1448 bytes, with Nagle's algorithm.")
}

/// With losses the cells are noisy; in the mean over all of them the policy must not lose.
fn noise(policy: Policy, cells: &[LossyCell]) -> Check {
    let seeds = cells.iter().map(|cell| cell.by_policy[policy as usize].len()).min().unwrap_or(0);
    // One number per seed: the mean over cells of the goodput over Linux's mean.
    let ratios: Vec<f64> = (0..seeds)
        .map(|seed| {
            let of_cell = |cell: &LossyCell| {
                let linux: Vec<f64> =
                    cell.by_policy[Policy::Linux as usize].iter().map(|run| run.goodput_bps).collect();
                cell.by_policy[policy as usize][seed].goodput_bps / mean(&linux)
            };
            mean(&cells.iter().map(of_cell).collect::<Vec<_>>())
        })
        .collect();
    let measured = Estimate::of(&ratios).map_or(f64::NAN, |estimate| estimate.mean);
    Check::at_least(
        format!("daily/{}/loss", policy.id()),
        format!("{}, 1 % loss: goodput over that under linux-like, mean of all cells", policy.words()),
        measured,
        0.97,
    )
}
