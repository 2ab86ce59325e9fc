//! Equations (1) and (2), the cells that they mark, and the regions of Table 15.3.

use super::equations::{Buffers, Class, Region, SIZES};
use super::numbers::Matrix;
use super::runs::{Copies, Episodes, Receiver, Run};
use crate::plot::HeatMap;
use crate::reproduce::{Cell, Check, Job, Outputs, ReproduceError, Reproduction, Table};
use crate::stats::mean;

/// The right side of equation (2) for each receive buffer, bytes.
const BOUNDS: [u32; 8] = [10_582, 12_015, 14_882, 17_750, 20_617, 23_484, 26_351, 27_444];

/// The cells in bold of Tables 15.1 and 15.2, which are the same: those that lock under delayed acknowledgments.
pub(super) const BOLD: [(u32, u32); 19] = [
    (4, 16),
    (4, 24),
    (4, 32),
    (4, 40),
    (4, 48),
    (4, 52),
    (8, 16),
    (8, 24),
    (8, 32),
    (8, 40),
    (8, 48),
    (8, 52),
    (16, 24),
    (16, 32),
    (16, 40),
    (16, 48),
    (16, 52),
    (24, 48),
    (24, 52),
];

pub(super) fn is_bold(buffers: Buffers) -> bool {
    BOLD.contains(&(buffers.send, buffers.receive))
}

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
    let mut checks = checks();
    checks.extend(measured(&waits));
    Ok(Reproduction {
        tables: vec![marked(), regions(&waits)],
        checks,
        figures: vec![heat_map(&waits).into()],
        notes: vec![],
    })
}

/// What tells the regions apart in simulation: how often A3 waits for its timer while the sender recovers.
fn measured(waits: &Matrix) -> Vec<Check> {
    let of = |region: Region| {
        let cells = Buffers::all().filter(move |at| at.region() == region);
        cells.map(|at| at.of(waits)).collect::<Vec<f64>>()
    };
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

/// A table over both buffers.
pub(super) fn matrix(id: &str, title: &str, cell: impl Fn(Buffers) -> Cell) -> Table {
    let columns = std::iter::once("S\\R [KB]".to_owned()).chain(SIZES.map(|size| size.to_string()));
    let mut table = Table::new(id, title).columns(columns);
    for send in SIZES {
        table.row(send.to_string(), SIZES.map(|receive| cell(Buffers { send, receive })));
    }
    table
}

fn marked() -> Table {
    matrix("equations", "Pairs of buffers that lock: equations and classes", |buffers| {
        let equation = match (buffers.equation_1(), buffers.equation_2()) {
            (true, _) => "1",
            (false, true) => "2",
            (false, false) => return Cell::from("."),
        };
        let class = match buffers.class() {
            None => " never",
            Some(Class::One) => "",
            Some(Class::Two) => " II",
            Some(Class::Three) => " III",
        };
        let bold = if is_bold(buffers) { "*" } else { "" };
        Cell::from(format!("({equation}){class}{bold}"))
    })
    .note(
        "(1) marks pairs of both equations, (2) those of the second one only; `*`: bold in Tables 15.1 and 15.2; \
         II and III: the class of the deadlock, where it is not I; never: one copy of the socket layer brings the threshold.",
    )
}

fn regions(waits: &Matrix) -> Table {
    matrix("15.3", "Table 15.3: regions of A3 under congestion, and timer ACKs per episode", |buffers| {
        Cell::from(format!("{} {:.2}", buffers.region().name(), buffers.of(waits)))
    })
    .note(
        "Numbers are measured: how often A3 waits for its timer within 3 s of an episode, mean of 20 episodes. \
         free: no deadlock; I and II: deadlock-prone. The paper's shading is rebuilt from its text and figures: \
         4 KB and 8 KB of either buffer are free, 52/52 is in II, 24/24 and 24/48 are in I.",
    )
}

fn count(of: impl Fn(Buffers) -> bool) -> f64 {
    Buffers::all().filter(|buffers| of(*buffers)).count() as f64
}

fn checks() -> Vec<Check> {
    let mut checks = vec![
        Check::exactly("equations/1", "pairs of equation (1)", count(Buffers::equation_1), 13.0),
        Check::exactly("equations/2", "pairs of equation (2)", count(Buffers::equation_2), 23.0),
        Check::exactly(
            "equations/missed",
            "bold pairs of Tables 15.1 and 15.2 that are not predicted",
            count(|buffers| is_bold(buffers) && !buffers.locks()),
            0.0,
        ),
        Check::exactly(
            "equations/false",
            "predicted pairs that are not bold",
            count(|buffers| buffers.locks() && !is_bold(buffers)),
            0.0,
        ),
        Check::exactly(
            "equations/sufficient",
            "pairs of equation (2) that never lock, because one copy brings the threshold",
            count(|buffers| buffers.equation_2() && !buffers.locks()),
            4.0,
        ),
    ];
    for (receive, bound) in SIZES.into_iter().zip(BOUNDS) {
        let measured = f64::from(Buffers { send: 4, receive }.bound_2_bytes());
        let what = format!("right side of equation (2) at R = {receive} KB, bytes");
        checks.push(Check::exactly(format!("equations/bound-{receive}"), what, measured, f64::from(bound)));
    }
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
