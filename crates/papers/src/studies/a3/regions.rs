//! Table 15.3: the regions of A3 under congestion. Their shading is not in the paper's text; they
//! are rebuilt from what it says, and compared with simulations of all pairs.

use super::conditions::{count, matrix};
use super::equations::{Buffers, Region, SIZES};
use super::numbers::Matrix;
use super::runs::{Copies, Episodes, Receiver, Run};
use crate::{Cell, Check, Finding, Job, Outputs, ReproduceError, Reproduction, Table};
use ackline_lab::stats::mean;
use ackline_plot::HeatMap;

/// A3 with each pair, under congestion.
fn run(buffers: Buffers) -> Run {
    Run { buffers, receiver: Receiver::A3, episodes: Episodes::Twenty, copies: Copies::Whole }
}

pub(super) fn plan() -> Result<Vec<Job>, ReproduceError> {
    Buffers::all().map(|buffers| run(buffers).job()).collect()
}

pub(super) fn evaluate(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut waits = [[0.0; 8]; 8];
    for (place, buffers) in Buffers::all().enumerate() {
        let course = run(buffers).course(outputs)?;
        waits[place / 8][place % 8] = course.timer_acks as f64 / Episodes::Twenty.times().len() as f64;
    }
    let mut checks = reconstructed();
    checks.extend(measured(&waits));
    Ok(Reproduction {
        findings: vec![finding(&waits)],
        tables: vec![table(&waits)],
        checks,
        figures: vec![heat_map(&waits).into()],
        ..Reproduction::default()
    })
}

fn of_region(waits: &Matrix, region: Region) -> Vec<f64> {
    let cells = Buffers::all().filter(move |at| at.region() == region);
    cells.map(|at| at.of(waits)).collect()
}

fn finding(waits: &Matrix) -> Finding {
    let [free, one, two] =
        [Region::Free, Region::ProneOne, Region::ProneTwo].map(|region| mean(&of_region(waits, region)));
    Finding::new(
        "Table 15.3: regions of A3 under congestion",
        "28 pairs free, 20 in region I, 16 in region II, which suffers most",
        format!("waits for the timer per episode: free {free:.2}, I {one:.2}, II {two:.2}"),
        "15.3/",
    )
}

/// What tells the regions apart in simulation: how often A3 waits for its timer while the sender
/// recovers.
fn measured(waits: &Matrix) -> Vec<Check> {
    let of = |region: Region| of_region(waits, region);
    vec![
        Check::exactly(
            "15.3/waits-free",
            "largest number of timer ACKs per episode in the free region",
            of(Region::Free).into_iter().fold(0.0, f64::max),
            0.0,
        ),
        Check::at_least(
            "15.3/waits-II",
            "smallest number of timer ACKs per episode in region II",
            of(Region::ProneTwo).into_iter().fold(f64::INFINITY, f64::min),
            0.9,
        ),
        Check::at_least(
            "15.3/waits-more",
            "mean number of timer ACKs per episode in region II, less that in region I",
            mean(&of(Region::ProneTwo)) - mean(&of(Region::ProneOne)),
            0.5,
        ),
    ]
}

fn heat_map(waits: &Matrix) -> HeatMap {
    let names = || SIZES.iter().map(ToString::to_string).collect();
    let second = Buffers::all().enumerate().filter(|(_, at)| at.region() == Region::ProneTwo);
    HeatMap {
        name: "table-15.3-waits".to_owned(),
        title: "A3 under congestion: timer ACKs per episode".to_owned(),
        x_label: "receive buffer [KB]; framed: region II".to_owned(),
        y_label: "send [KB]".to_owned(),
        columns: names(),
        rows: names(),
        values: waits.iter().map(|row| row.iter().copied().map(Some).collect()).collect(),
        digits: 2,
        framed: second.map(|(place, _)| (place / 8, place % 8)).collect(),
        ..HeatMap::default()
    }
}

/// What the paper says of the regions.
fn reconstructed() -> Vec<Check> {
    let mut checks = vec![];
    for (region, cells) in [(Region::Free, 28.0), (Region::ProneOne, 20.0), (Region::ProneTwo, 16.0)] {
        let id = format!("15.3/cells-{}", region.name());
        let what = format!("pairs in region {}", region.name());
        checks.push(Check::exactly(id, what, count(|buffers| buffers.region() == region), cells));
    }
    checks.push(Check::exactly(
        "15.3/rule",
        "pairs whose region II differs from 0.35 min(S, R) > MSS",
        count(|buffers| (buffers.region() == Region::ProneTwo) != buffers.stalls_after_timeout()),
        0.0,
    ));
    checks
}

fn table(waits: &Matrix) -> Table {
    matrix("15.3", "Table 15.3: regions of A3 under congestion, and timer ACKs per episode", |buffers| {
        Cell::from(format!("{} {:.2}", buffers.region().name(), buffers.of(waits)))
    })
    .note(
        "Numbers are measured: how often A3 waits for its timer within 3 s of an episode, mean of 20 episodes. \
         free: no deadlock; I and II: deadlock-prone. The paper's shading is rebuilt from its text and figures: \
         4 KB and 8 KB of either buffer are free, 52/52 is in II, 24/24 and 24/48 are in I.",
    )
}
