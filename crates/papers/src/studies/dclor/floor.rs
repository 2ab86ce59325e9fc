//! Calibration: what the path alone costs, before any response to a timeout counts.

use super::ideal::Ideal;
use super::mix::{Mix, Shape};
use super::paper::ROWS;
use super::runs::Reading;
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::table::{Cell, Table};
use crate::request::Request;
use ackline_lab::stats::Spread;
use ackline_netsim::stis::StisParams;

/// A filling of the draft's gaps, and what an independent model gave for it: mean and variance of
/// the download times of 5, 10 and 100 KB.
struct Setting {
    id: &'static str,
    what: &'static str,
    initial_window: u64,
    wait_s: u64,
    frozen: bool,
    reference: [(f64, f64); 3],
}

const SETTINGS: [Setting; 5] = [
    Setting {
        id: "frozen",
        what: "IW 3, waits to 1 s, stalls stop the service",
        initial_window: 3,
        wait_s: 1,
        frozen: true,
        reference: [(2.379, 3.56), (3.485, 4.78), (23.3, 27.8)],
    },
    Setting {
        id: "frozen-wait-2",
        what: "IW 3, waits to 2 s, stalls stop the service",
        initial_window: 3,
        wait_s: 2,
        frozen: true,
        reference: [(2.486, 3.98), (3.588, 5.34), (23.4, 29.3)],
    },
    Setting {
        id: "literal",
        what: "IW 3, waits to 1 s, stalls hold back arrivals only",
        initial_window: 3,
        wait_s: 1,
        frozen: false,
        reference: [(2.363, 3.41), (3.430, 4.20), (19.7, 7.7)],
    },
    Setting {
        id: "literal-iw-2",
        what: "IW 2, waits to 2 s, stalls hold back arrivals only",
        initial_window: 2,
        wait_s: 2,
        frozen: false,
        reference: [(2.692, 3.99), (3.766, 4.89), (19.9, 6.7)],
    },
    Setting {
        id: "literal-wait-10",
        what: "IW 3, waits to 10 s, stalls hold back arrivals only",
        initial_window: 3,
        wait_s: 10,
        frozen: false,
        reference: [(2.733, 4.44), (3.730, 5.06), (19.5, 6.6)],
    },
];

/// Downloads of the model for each size; the draft's own variances need that many.
const FILES: [usize; 3] = [12_000, 5_000, 2_000];
const SEED: u64 = 1;

pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for setting in &SETTINGS {
        let ideal = Ideal {
            path: StisParams { stall_stops_service: setting.frozen, ..StisParams::default() },
            initial_window: setting.initial_window,
            wait_s: setting.wait_s as f64,
        };
        let identity = format!("{ideal:?} {FILES:?} {SEED}");
        jobs.push(Job::new(format!("floor/{}/model", setting.id), identity, move || {
            let sizes = ROWS.iter().zip(FILES);
            Ok(sizes.map(|(row, files)| ideal.times(row.size * 1_024, files, SEED)).collect::<Vec<_>>())
        }));
        let mut shape = Shape { wait_s: setting.wait_s, ..Shape::draft(Reading::Together.scale(request)) };
        // No timeout comes, and nothing is dropped.
        shape.sets = vec![
            "conn.min_rto=110s".to_owned(),
            "conn.rto_floor=sum".to_owned(),
            "conn.initial_rto=110s".to_owned(),
            "node.path.buffer=1G".to_owned(),
            format!("conn.initial_window={}", setting.initial_window),
            format!("node.path.stall_stops_service={}", setting.frozen),
        ];
        jobs.push(shape.job(format!("floor/{}/stack", setting.id), &["conn.rto=go-back-n"], 0)?);
    }
    Ok(jobs)
}

pub(super) fn evaluate(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let heads = ROWS[..3]
        .iter()
        .flat_map(|row| ["reference", "model", "stack"].map(|who| format!("{} KB, {who}", row.size)));
    let mut table = Table::new("floor", "Download times without timeouts and drops: mean s / variance s^2")
        .note(
            "Reference: an independent model; model: the one of this study; stack: ackline over the simulated path, with a timeout of \
             110 s and no limit of the buffer.",
        )
        .columns(std::iter::once("setting".to_owned()).chain(heads));
    for setting in &SETTINGS {
        let model: Vec<Vec<f64>> = outputs.get(&format!("floor/{}/model", setting.id))?;
        let runs: Mix = outputs.get(&format!("floor/{}/stack", setting.id))?;
        let mut cells = vec![];
        for (place, row) in ROWS[..3].iter().enumerate() {
            let (mean, variance) = setting.reference[place];
            cells.push(Cell::from(format!("{mean:.3} / {variance:.2}")));
            let model = Spread::of(model[place].clone()).map(|spread| (spread.mean, spread.sd * spread.sd));
            let stack = runs.rows[place].times.as_ref().map(|times| (times.mean, times.variance));
            for moments in [model, stack] {
                cells.push(match moments {
                    Some((mean, variance)) => Cell::from(format!("{mean:.3} / {variance:.2}")),
                    None => Cell::from("-"),
                });
            }
            let mean_of = |moments: Option<(f64, f64)>| moments.map_or(f64::NAN, |(mean, _)| mean);
            let id = |what: &str| format!("floor/{}/{}/{what}", setting.id, row.app);
            let size = row.size;
            found.checks.push(Check::near(
                id("model-mean"),
                format!("model: mean time of {size} KB, {}, s", setting.what),
                mean_of(model),
                mean,
                0.05,
            ));
            found.checks.push(
                Check::within(
                    id("model-variance"),
                    format!("model: variance of the time of {size} KB, {}, s^2", setting.what),
                    model.map_or(f64::NAN, |(_, variance)| variance),
                    (0.7 * variance, 1.4 * variance),
                )
                .expected(variance),
            );
            found.checks.push(Check::near(
                id("stack-mean"),
                format!("stack against model: mean time of {size} KB, {}, s", setting.what),
                mean_of(stack),
                mean_of(model),
                0.05,
            ));
            found.checks.push(Check::exactly(
                id("stack-quiet"),
                format!("stack: retransmissions of {size} KB"),
                runs.rows[place].retransmits as f64,
                0.0,
            ));
        }
        table.row(setting.what, cells);
    }
    found.tables.push(table);
    Ok(found)
}
