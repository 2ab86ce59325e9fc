//! Tables 3 to 6: all responses over the same stalls, with the same seeds.

use super::super::check::Check;
use super::super::error::ReproduceError;
use super::super::job::{Job, Outputs};
use super::super::reproduction::Reproduction;
use super::super::study::Request;
use super::super::table::{Cell, Table};
use super::mix::{Mix, Shape, scale};
use super::paper::{COLUMNS, ROWS, Row};
use super::responses::{RESPONSES, Response};
use crate::plot::{Chart, Kind, Line};
use crate::stats::{self, Estimate, Spread, quantile};

/// Seeds by default.
const SEEDS: u32 = 5;
const QUICK_SEEDS: u32 = 2;

/// How Table 2 is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// All rows are on the path at once.
    Together,
    /// Each row has the path for itself.
    Apart,
}

/// The name of the part with each row by itself.
pub(super) const APART: &str = "apart";

impl Reading {
    const ALL: [Self; 2] = [Self::Together, Self::Apart];

    fn is_wanted(self, request: &Request) -> bool {
        match self {
            Self::Together => ["3", "4", "5", "6"].iter().any(|part| request.wants(part)),
            Self::Apart => request.wants(APART),
        }
    }

    /// True if the draft's table of this number is to be made.
    fn wants(self, request: &Request, table: &str) -> bool {
        self == Self::Apart || request.wants(table)
    }

    /// What stands before the names of its tables and checks.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Together => "",
            Self::Apart => "apart/",
        }
    }

    /// Rows of Table 2 that it has.
    const fn rows(self) -> usize {
        match self {
            Self::Together => ROWS.len(),
            Self::Apart => 3,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Together => "all rows of Table 2 at once",
            Self::Apart => "each row of Table 2 by itself",
        }
    }

    /// Its jobs for one response and seed: names and traffic.
    fn jobs(self, request: &Request, response: &Response, seed: u32) -> Vec<(String, Shape)> {
        let shape = Shape::draft(scale(request));
        match self {
            Self::Together => vec![(format!("mix/{}/{seed}", response.id), shape)],
            Self::Apart => (0..self.rows())
                .map(|row| {
                    let id = format!("apart/{}/{}/{seed}", ROWS[row].app, response.id);
                    (id, Shape { only: Some(row), ..shape.clone() })
                })
                .collect(),
        }
    }
}

fn seeds(request: &Request) -> u32 {
    request.seeds.unwrap_or(if request.quick { QUICK_SEEDS } else { SEEDS }).max(1)
}

pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for reading in Reading::ALL.into_iter().filter(|reading| reading.is_wanted(request)) {
        for response in &RESPONSES {
            for seed in 0..seeds(request) {
                for (id, shape) in reading.jobs(request, response, seed) {
                    jobs.push(shape.job(id, response.sets, seed)?);
                }
            }
        }
    }
    Ok(jobs)
}

/// One response's runs, one per seed.
pub(super) struct Runs(pub(super) Vec<Mix>);

impl Runs {
    /// Of jobs by seed; several of one seed have one row of Table 2 each, in their order.
    pub(super) fn read(
        ids: impl IntoIterator<Item = Vec<String>>,
        outputs: &Outputs,
    ) -> Result<Self, ReproduceError> {
        let one = |ids: Vec<String>| {
            let mut mixes = ids.iter().map(|id| outputs.get(id)).collect::<Result<Vec<Mix>, _>>()?;
            if mixes.len() == 1 {
                return Ok(mixes.remove(0));
            }
            let mut whole = Mix::default();
            for (row, mix) in mixes.iter().enumerate() {
                whole.rows.push(mix.rows[row].clone());
                whole.offered += mix.offered;
                whole.dropped += mix.dropped;
            }
            Ok(whole)
        };
        ids.into_iter().map(one).collect::<Result<_, _>>().map(Self)
    }

    fn spreads(&self, row: usize) -> impl Iterator<Item = Spread> + '_ {
        self.0.iter().filter_map(move |mix| Spread::of(mix.rows[row].times.clone()))
    }

    /// Mean download time of each run, s.
    pub(super) fn means(&self, row: usize) -> Vec<f64> {
        self.spreads(row).map(|spread| spread.mean).collect()
    }

    /// Variance of the download times of each run, s^2.
    pub(super) fn variances(&self, row: usize) -> Vec<f64> {
        self.spreads(row).map(|spread| spread.sd * spread.sd).collect()
    }

    /// Spectral efficiency of each run.
    pub(super) fn efficiencies(&self, row: usize) -> Vec<f64> {
        self.0.iter().map(|mix| mix.rows[row].efficiency).collect()
    }

    fn sum(&self, row: usize, of: impl Fn(&super::mix::RowRun) -> u64) -> f64 {
        self.0.iter().map(|mix| of(&mix.rows[row])).sum::<u64>() as f64
    }
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    for reading in Reading::ALL.into_iter().filter(|reading| reading.is_wanted(request)) {
        found.extend(evaluate_as(reading, request, outputs)?);
    }
    Ok(found)
}

fn evaluate_as(
    reading: Reading,
    request: &Request,
    outputs: &Outputs,
) -> Result<Reproduction, ReproduceError> {
    let mut all = vec![];
    for response in &RESPONSES {
        let ids = |seed| reading.jobs(request, response, seed).into_iter().map(|(id, _)| id).collect();
        all.push((response.id, Runs::read((0..seeds(request)).map(ids), outputs)?));
    }
    let of = |id: &str| &all.iter().find(|(name, _)| *name == id).expect("a response of the list").1;
    let columns = COLUMNS.map(of);
    let mut found = Reproduction::default();
    for (place, row) in ROWS.iter().enumerate().take(reading.rows()) {
        if let Some(printed) = row.printed.filter(|printed| reading.wants(request, printed.table)) {
            found.tables.push(printed_table(place, row, &columns));
            found.checks.extend(tolerances(reading, place, row, &columns));
            let orders = orders(place, &columns).into_iter();
            found.checks.extend(orders.filter(|order| order.table == printed.table).map(Order::check));
            found.figures.push(distribution(reading, place, row, &all).into());
        }
        if row.printed.is_none_or(|printed| reading.wants(request, printed.table)) {
            found.tables.push(all_responses(place, row, &all));
        }
    }
    if reading.wants(request, "6") {
        found.tables.push(efficiency_table(&columns));
        for place in 0..3 {
            let orders = orders(place, &columns).into_iter();
            found.checks.extend(orders.filter(|order| order.table == "6").map(Order::check));
            found.checks.push(modern_frto(place, of("frto-rfc4015"), columns[0]));
        }
    }
    found.tables.push(probe_table(reading.rows(), of("dclor"), of("dclor-conservative")));
    found.checks.push(unfinished(reading, &all));
    found.notes.push(losses(reading, &all));
    for table in &mut found.tables {
        table.id = format!("{}{}", reading.prefix(), table.id);
        table.title = format!("{}, {}", table.title, reading.words());
    }
    for check in &mut found.checks {
        check.id = format!("{}{}", reading.prefix(), check.id);
    }
    Ok(found)
}

/// An estimate with its interval: `2.387 [2.371, 2.402]`.
pub(super) fn written(values: &[f64], digits: usize) -> Cell {
    let Some(estimate) = Estimate::of(values) else { return Cell::from("-") };
    let mean = estimate.mean;
    match estimate.ci {
        Some((low, high)) => Cell::from(format!("{mean:.digits$} [{low:.digits$}, {high:.digits$}]")),
        None => Cell::number(mean, digits),
    }
}

/// The arithmetic mean; of nothing, what no check passes.
fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { f64::NAN } else { stats::mean(values) }
}

fn variance_bounds(row: &Row, column: usize) -> (f64, f64) {
    let (low, high) = row.printed.map_or((0.0, f64::INFINITY), |printed| printed.variance_factors);
    let variance = row.printed.map_or(0.0, |printed| printed.variance[column]);
    (low * variance, high * variance)
}

fn printed_table(place: usize, row: &Row, columns: &[&Runs; 4]) -> Table {
    let Some(printed) = row.printed else { return Table::default() };
    let mut table = Table::new(printed.table, format!("Table {}: download time of {} KB files", printed.table, row.size))
        .note("Mean over runs with different seeds, and the draft's number in brackets; ! marks what is beyond its tolerance.")
        .columns(["", "DCLOR", "Eifel", "standard TCP", "F-RTO"]);
    let cells =
        |measured: &dyn Fn(&Runs) -> Vec<f64>, paper: [f64; 4], bounds: &dyn Fn(usize) -> (f64, f64)| {
            let cell = |column: usize| {
                Cell::beside(mean(&measured(columns[column])), paper[column], 3).within(bounds(column))
            };
            (0..4).map(cell).collect::<Vec<_>>()
        };
    let slack = printed.mean_tolerance;
    table.row(
        "mean, s",
        cells(&|runs| runs.means(place), printed.mean, &|column| {
            (printed.mean[column] * (1.0 - slack), printed.mean[column] * (1.0 + slack))
        }),
    );
    table.row(
        "variance, s^2",
        cells(&|runs| runs.variances(place), printed.variance, &|column| variance_bounds(row, column)),
    );
    table
}

fn tolerances(reading: Reading, place: usize, row: &Row, columns: &[&Runs; 4]) -> Vec<Check> {
    let Some(printed) = row.printed else { return vec![] };
    let mut checks = vec![];
    for (column, name) in COLUMNS.iter().enumerate() {
        let reason = match reading {
            Reading::Together if printed.table == "5" && *name == "dclor" => SAMPLE,
            Reading::Together => BUFFER,
            Reading::Apart => EIFEL,
        };
        checks.push(
            Check::near(
                format!("{}/{name}/mean", printed.table),
                format!("{name}: mean time of {} KB, s", row.size),
                mean(&columns[column].means(place)),
                printed.mean[column],
                printed.mean_tolerance,
            )
            .paper(printed.mean[column])
            .because(reason),
        );
        checks.push(
            Check::within(
                format!("{}/{name}/variance", printed.table),
                format!("{name}: variance of the time of {} KB, s^2", row.size),
                mean(&columns[column].variances(place)),
                variance_bounds(row, column),
            )
            .paper(printed.variance[column])
            .because(reason),
        );
    }
    checks
}

/// Why Eifel's short files come out better than the draft's.
const EIFEL: &str = "Eifel's times are those of F-RTO here: what it restores are the few segments that a short file has had out; the draft \
     does not say where its variance came from";
/// Why what depends on drops comes out otherwise.
const BUFFER: &str = "the shared buffer is full and drops 4 to 5 %, which costs more than responses differ in; see each row by itself";
/// Why DCLOR's files of 100 KB come out otherwise.
const SAMPLE: &str = "a held-up probe's acknowledgment is an RTT sample here, and the timer of the next loss is as long; see \
     `dclor:probe_rtt=skip` in the part on settings";
/// Why no factor of Table 6 can come out with 5 KB.
const FOUR_SEGMENTS: &str = "a file has four segments, of which the timer repeats at least one, whatever the response; and the mean window \
     below it is smaller with F-RTO's half, and zero while dclor probes";
/// Why the factors of Table 6 come out smaller.
const REPEATED_PROBES: &str = "dclor repeats one and the same probe at each timeout of a stall, and all copies but the first are redundant; \
     see new data for each further probe in the part on settings";

/// An order that the draft's numbers have, and that must come out.
pub(super) struct Order {
    /// The table to which it belongs.
    pub(super) table: &'static str,
    pub(super) id: String,
    what: String,
    /// For each seed: positive, or above `least`, if it came out.
    pub(super) values: Vec<f64>,
    pub(super) least: f64,
    paper: f64,
    /// Why it does not come out, if it does not.
    reason: &'static str,
}

impl Order {
    /// The lower end of the 95 % interval over seeds; the mean of one seed alone.
    pub(super) fn surely(&self) -> f64 {
        Estimate::of(&self.values)
            .map_or(f64::NAN, |estimate| estimate.ci.map_or(estimate.mean, |(low, _)| low))
    }

    /// It came out in the mean.
    pub(super) fn holds(&self) -> bool {
        mean(&self.values) >= self.least
    }

    fn check(self) -> Check {
        let measured = self.surely();
        let what = format!("{} (lower end of the 95 % interval over seeds)", self.what);
        Check::at_least(self.id, what, measured, self.least).paper(self.paper).because(self.reason)
    }
}

/// The orders that must come out for a row of Table 2, from runs in the order of [`COLUMNS`]. Runs with one seed meet the same stalls,
/// so each seed gives one difference or ratio.
pub(super) fn orders(place: usize, columns: &[&Runs; 4]) -> Vec<Order> {
    let row = &ROWS[place];
    let Some(printed) = row.printed else { return vec![] };
    let [dclor, eifel, standard, frto] = *columns;
    let size = row.size;
    let differ = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(&b).map(|(a, b)| a - b).collect::<Vec<f64>>();
    let ratio =
        |a: Vec<f64>, b: Vec<f64>| a.iter().zip(&b).map(|(a, b)| a / b.max(1e-9)).collect::<Vec<f64>>();
    let mut orders = vec![];
    let long = if size == 100 { SAMPLE } else { BUFFER };
    let others = [(1, eifel), (2, standard), (3, frto)];
    if size > 5 {
        for (column, other) in others {
            let name = COLUMNS[column];
            orders.push(Order {
                table: printed.table,
                id: format!("{}/order/mean/{name}", printed.table),
                what: format!("{size} KB: mean time of {name} less that of dclor, s"),
                values: differ(other.means(place), dclor.means(place)),
                least: 0.0,
                paper: printed.mean[column] - printed.mean[0],
                reason: long,
            });
            orders.push(Order {
                table: printed.table,
                id: format!("{}/order/variance/{name}", printed.table),
                what: format!("{size} KB: variance of {name} over that of dclor"),
                values: ratio(other.variances(place), dclor.variances(place)),
                least: 1.0,
                paper: printed.variance[column] / printed.variance[0],
                reason: long,
            });
        }
    }
    if size < 100 {
        for (column, other) in [(0, dclor), (2, standard), (3, frto)] {
            let name = COLUMNS[column];
            orders.push(Order {
                table: printed.table,
                id: format!("{}/order/eifel-variance/{name}", printed.table),
                what: format!("{size} KB: variance of eifel-full over that of {name}"),
                values: ratio(eifel.variances(place), other.variances(place)),
                least: 1.0,
                paper: printed.variance[1] / printed.variance[column],
                reason: EIFEL,
            });
        }
    }
    let mut efficiency = |worse: usize, better: usize, least: f64| {
        let (above, below) = (COLUMNS[worse], COLUMNS[better]);
        orders.push(Order {
            table: "6",
            id: format!("6/{size}K/{above}-{below}"),
            what: format!("{size} KB: spectral efficiency of {above} over that of {below}"),
            values: ratio(columns[worse].efficiencies(place), columns[better].efficiencies(place)),
            least,
            paper: printed.efficiency[worse] / printed.efficiency[better],
            reason: match (size, better) {
                (5, _) => FOUR_SEGMENTS,
                (_, 0) => REPEATED_PROBES,
                _ => BUFFER,
            },
        });
    };
    efficiency(2, 3, 1.0);
    efficiency(3, 1, 1.0);
    efficiency(2, 0, if size == 100 { 10.0 } else { 5.0 });
    efficiency(3, 0, 3.0);
    orders
}

/// With SACK and the response of today, F-RTO may send less again than the draft's.
fn modern_frto(place: usize, frto: &Runs, dclor: &Runs) -> Check {
    let size = ROWS[place].size;
    let ratio = mean(&frto.efficiencies(place)) / mean(&dclor.efficiencies(place)).max(1e-9);
    Check::at_least(
        format!("6/{size}K/frto-rfc4015-dclor"),
        format!("{size} KB: spectral efficiency of frto-rfc4015 over that of dclor"),
        ratio,
        3.0,
    )
    .optional("RFC 5682 with SACK goes back less often than the F-RTO of 2002")
}

fn efficiency_table(columns: &[&Runs; 4]) -> Table {
    let mut table =
        Table::new("6", "Table 6: spectral efficiency, redundant bytes over the mean window in bytes")
            .note("Lower is better. Mean over runs with different seeds, and the draft's number in brackets.")
            .columns(["", "DCLOR", "Eifel", "standard TCP", "F-RTO"]);
    for (place, row) in ROWS.iter().enumerate() {
        let Some(printed) = row.printed else { continue };
        let cell = |column: usize| {
            Cell::beside(mean(&columns[column].efficiencies(place)), printed.efficiency[column], 4)
        };
        table.row(format!("{} KB", row.size), (0..4).map(cell));
    }
    table
}

fn all_responses(place: usize, row: &Row, all: &[(&str, Runs)]) -> Table {
    let mut table = Table::new(format!("all-{}K", row.size), format!("All responses: files of {} KB", row.size))
        .note("Intervals: 95 %, bootstrap over seeds. Timeouts and redundant bytes: per download, and per byte of the files.")
        .columns(["", "mean, s", "variance, s^2", "p50, s", "p99, s", "timeouts", "redundant, %", "spectral efficiency"]);
    for (response, (_, runs)) in RESPONSES.iter().zip(all) {
        let mut times: Vec<f64> = runs.0.iter().flat_map(|mix| &mix.rows[place].times).copied().collect();
        times.sort_by(f64::total_cmp);
        let downloads = (times.len() as f64).max(1.0);
        let bytes = runs.sum(place, |run| run.bytes).max(1.0);
        table.row(
            response.label,
            [
                written(&runs.means(place), 3),
                written(&runs.variances(place), 2),
                Cell::number(quantile(&times, 0.5), 3),
                Cell::number(quantile(&times, 0.99), 2),
                Cell::number(runs.sum(place, |run| run.timeouts) / downloads, 3),
                Cell::number(100.0 * runs.sum(place, |run| run.redundant) / bytes, 2),
                written(&runs.efficiencies(place), 4),
            ],
        );
    }
    table
}

/// The two readings of a clean exit after a probe that was a retransmission.
fn probe_table(rows: usize, literal: &Runs, conservative: &Runs) -> Table {
    let mut table = Table::new("probe", "A probe that was a retransmission: DCLOR to the letter, and conservative")
        .note(
            "Conservative less literal, same seeds, with the 95 % interval over seeds. The draft keeps ssthresh when the probe is \
             acknowledged, also where the probe itself repaired the only loss.",
        )
        .columns(["", "mean, s", "variance, s^2", "spectral efficiency"]);
    for (place, row) in ROWS.iter().enumerate().take(rows) {
        let differ = |of: &dyn Fn(&Runs) -> Vec<f64>| {
            of(conservative).iter().zip(of(literal)).map(|(a, b)| a - b).collect::<Vec<f64>>()
        };
        table.row(
            format!("{} KB", row.size),
            [
                written(&differ(&|runs| runs.means(place)), 4),
                written(&differ(&|runs| runs.variances(place)), 3),
                written(&differ(&|runs| runs.efficiencies(place)), 5),
            ],
        );
    }
    table
}

/// How the download times are distributed, over all seeds.
fn distribution(reading: Reading, place: usize, row: &Row, all: &[(&str, Runs)]) -> Chart {
    let lines = RESPONSES.iter().zip(all).map(|(response, (_, runs))| {
        let mut times: Vec<f64> = runs.0.iter().flat_map(|mix| &mix.rows[place].times).copied().collect();
        times.sort_by(f64::total_cmp);
        // The tail is where responses differ: as many points in the last percent as before.
        let shares = (0..=200).map(|step| f64::from(step) / 200.0 * 0.99);
        let tail = (1..=100).map(|step| 0.99 + f64::from(step) / 10_000.0);
        let points = shares.chain(tail).map(|share| (quantile(&times, share), share)).collect();
        Line { label: response.label.to_owned(), points, ..Line::default() }
    });
    Chart {
        name: match reading {
            Reading::Together => format!("cdf-{}K", row.size),
            Reading::Apart => format!("cdf-{}K-apart", row.size),
        },
        title: format!("Download times of {} KB files, {}", row.size, reading.words()),
        x_label: "download time, s".to_owned(),
        y_label: "share of downloads".to_owned(),
        x: Kind::Log,
        from_zero: true,
        lines: lines.collect(),
        ..Chart::default()
    }
}

/// The one download whose reason is known is of all rows at once; more, or one elsewhere, would be news.
const HANDSHAKE_LOST: &str = "a handshake that fails: of eleven SYN-ACKs the full buffer drops nine, and then both ACKs \
    of the client, which has nothing to send and waits (the capture of table2.toml with seed 2 and Eifel, RFC 4015)";

fn unfinished(reading: Reading, all: &[(&str, Runs)]) -> Check {
    let sum: f64 = all
        .iter()
        .map(|(_, runs)| (0..reading.rows()).map(|row| runs.sum(row, |run| run.unfinished)).sum::<f64>())
        .sum();
    let check = Check::exactly("mix/unfinished", "downloads of all responses that did not end", sum, 0.0);
    if reading == Reading::Together && sum == 1.0 { check.because(HANDSHAKE_LOST) } else { check }
}

fn losses(reading: Reading, all: &[(&str, Runs)]) -> String {
    let shares: Vec<String> = RESPONSES
        .iter()
        .zip(all)
        .map(|(response, (_, runs))| {
            let offered: u64 = runs.0.iter().map(|mix| mix.offered).sum();
            let dropped: u64 = runs.0.iter().map(|mix| mix.dropped).sum();
            format!("{} {:.1} %", response.label, 100.0 * dropped as f64 / offered.max(1) as f64)
        })
        .collect();
    format!(
        "Packets dropped at the shared buffer, both directions, {}: {}.",
        reading.words(),
        shares.join(", ")
    )
}
