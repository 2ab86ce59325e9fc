//! Flows of 60, 120 and 180 ms at 1 Gbit/s: Tables 1 and 2 (A3 and A4), and ACWAP's halves alone (A6).

use super::reading::Reading;
use super::runs::{Group, seeds, side_seeds};
use super::{ABLATION, TABLE_1, TABLE_2};
use crate::reproduce::error::ReproduceError;
use crate::reproduce::{Cell, Check, Outputs, Reproduction, Request, Table};
use crate::stats::{Estimate, jain, mean};

/// Bits per second.
pub(super) const RATE: f64 = 1e9;

/// A flow as the paper has it, the tolerances, and the independent model.
struct Expected {
    name: &'static str,
    rtt: &'static str,
    /// Percent of the link.
    utilisation: f64,
    events: f64,
    drops: f64,
    /// Segments at congestion.
    window: &'static str,
    bounds: Bounds,
    model: &'static str,
}

/// Within which a number counts as repeated.
struct Bounds {
    utilisation: (f64, f64),
    events: (f64, f64),
    drops: Option<(f64, f64)>,
}

const TABLE_1_ROWS: [Expected; 4] = [
    Expected {
        name: "H1",
        rtt: "60 ms",
        utilisation: 78.34,
        events: 83.0,
        drops: 31.61,
        window: "6653-7219",
        bounds: Bounds { utilisation: (78.0, 88.0), events: (73.0, 88.0), drops: Some((25.0, 50.0)) },
        model: "82-87 %; 75-76; 31-41; 6540-7735",
    },
    Expected {
        name: "H2",
        rtt: "120 ms",
        utilisation: 7.96,
        events: 62.0,
        drops: 11.59,
        window: "1007-1946",
        bounds: Bounds { utilisation: (4.0, 10.0), events: (48.0, 70.0), drops: None },
        model: "6.2-9.8 %; 49-57; 3.7-5.6",
    },
    Expected {
        name: "H3",
        rtt: "180 ms",
        utilisation: 0.93,
        events: 56.0,
        drops: 3.78,
        window: "119-293",
        bounds: Bounds { utilisation: (0.0, 4.0), events: (36.0, 62.0), drops: None },
        model: "1.4-2.4 %; 37-41; 1.7",
    },
    Expected {
        name: "R1",
        rtt: "120 ms",
        utilisation: 1.71,
        events: 20.0,
        drops: 2.25,
        window: "112-443",
        bounds: Bounds { utilisation: (1.0, 3.0), events: (12.0, 26.0), drops: None },
        model: "1.5-1.8 %; 17-22; 3.6-4.2",
    },
];

const TABLE_2_ROWS: [Expected; 3] = [
    Expected {
        name: "f1",
        rtt: "60 ms",
        utilisation: 56.32,
        events: 35.0,
        drops: 2.56,
        window: "",
        bounds: Bounds { utilisation: (52.0, 70.0), events: (30.0, 53.0), drops: Some((1.0, 4.0)) },
        model: "64-67 %; 32-33; 1.5-1.8",
    },
    Expected {
        name: "f2",
        rtt: "120 ms",
        utilisation: 21.23,
        events: 22.0,
        drops: 1.60,
        window: "",
        bounds: Bounds { utilisation: (17.0, 32.0), events: (15.0, 28.0), drops: Some((1.0, 4.0)) },
        model: "21-24 %; 15-18; 1.5-1.7",
    },
    Expected {
        name: "f3",
        rtt: "180 ms",
        utilisation: 12.21,
        events: 13.0,
        drops: 1.20,
        window: "",
        bounds: Bounds { utilisation: (9.0, 16.0), events: (10.0, 21.0), drops: Some((1.0, 4.0)) },
        model: "10-11 %; 11; 1.2-1.6",
    },
];

/// All runs of a group.
pub(super) struct Runs(Vec<Reading>);

impl Runs {
    pub(super) fn read(outputs: &Outputs, group: Group, seeds: u32) -> Result<Self, ReproduceError> {
        (0..seeds).map(|seed| outputs.get(&group.id(seed))).collect::<Result<_, _>>().map(Self)
    }

    /// A number of a flow in each run.
    fn of(&self, flow: usize, number: impl Fn(&super::reading::Flow) -> f64) -> Vec<f64> {
        self.0.iter().filter_map(|run| run.flows.get(flow)).map(number).collect()
    }

    /// Percent of the link.
    fn utilisation(&self, flow: usize) -> Vec<f64> {
        self.of(flow, |flow| 100.0 * flow.rate / RATE)
    }

    /// Jain's index of the first three flows in each run.
    fn fairness(&self) -> Vec<f64> {
        let rates = |run: &Reading| run.flows.iter().take(3).map(|flow| flow.rate).collect::<Vec<_>>();
        self.0.iter().filter_map(|run| jain(&rates(run))).collect()
    }

    /// Losses of the first three flows in each run.
    fn drops(&self) -> Vec<f64> {
        self.0.iter().map(|run| run.flows.iter().take(3).map(|flow| flow.drops as f64).sum()).collect()
    }

    /// Smallest and largest window at congestion.
    fn windows(&self, flow: usize) -> (f64, f64) {
        let all =
            self.0.iter().filter_map(|run| run.flows.get(flow)).flat_map(|flow| flow.reductions.clone());
        all.fold((f64::INFINITY, 0.0), |(low, high), window| (low.min(window), high.max(window)))
    }
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let seeds = seeds(request);
    let both = request.wants(TABLE_1) || request.wants(TABLE_2);
    let hstcp = if both { Some(Runs::read(outputs, Group::Hstcp, seeds)?) } else { None };
    if request.wants(TABLE_1)
        && let Some(hstcp) = &hstcp
    {
        found.tables.push(table(
            "1",
            "Table 1: HSTCP and Reno at 1 Gbit/s, 50 to 400 s",
            &TABLE_1_ROWS,
            hstcp,
        ));
        found.checks.extend(checks("table-1", &TABLE_1_ROWS, hstcp));
    }
    if request.wants(TABLE_2)
        && let Some(hstcp) = &hstcp
    {
        let acwap = Runs::read(outputs, Group::Acwap, seeds)?;
        found.tables.push(table("2", "Table 2: ACWAP at 1 Gbit/s, 50 to 400 s", &TABLE_2_ROWS, &acwap));
        found.checks.extend(checks("table-2", &TABLE_2_ROWS, &acwap));
        found.tables.push(claims(hstcp, &acwap));
        let (drops, fairness) =
            (ratio(&hstcp.drops(), &acwap.drops()), ratio(&acwap.fairness(), &hstcp.fairness()));
        found.checks.push(
            Check::at_least(
                "claims/drops",
                "losses of three HSTCP flows by those of three ACWAP flows",
                drops,
                10.0,
            )
            .paper(25.0),
        );
        found.checks.push(
            Check::at_least("claims/fairness", "Jain's index of ACWAP by that of HSTCP", fairness, 1.5)
                .paper(0.712 / 0.409),
        );
    }
    if request.wants(ABLATION) {
        found.extend(ablation(outputs, side_seeds(request))?);
    }
    Ok(found)
}

fn ratio(above: &[f64], below: &[f64]) -> f64 {
    mean(above) / mean(below)
}

fn table(id: &str, title: &str, rows: &[Expected], runs: &Runs) -> Table {
    let columns = [
        "flow",
        "RTT",
        "utilisation %",
        "events",
        "drops/event",
        "window at congestion",
        "paper's window",
        "model: utilisation; events; drops/event",
    ];
    let mut table = Table::new(id, title).columns(columns);
    for (flow, row) in rows.iter().enumerate() {
        let (low, high) = runs.windows(flow);
        let drops = Cell::beside(mean(&runs.of(flow, super::reading::Flow::drops_per_event)), row.drops, 2);
        table.row(
            row.name,
            [
                Cell::from(row.rtt),
                Cell::beside(mean(&runs.utilisation(flow)), row.utilisation, 2)
                    .within(row.bounds.utilisation),
                Cell::beside(mean(&runs.of(flow, super::reading::Flow::events)), row.events, 0)
                    .within(row.bounds.events),
                match row.bounds.drops {
                    Some(bounds) => drops.within(bounds),
                    None => drops,
                },
                Cell::from(if low <= high { format!("{low:.0}-{high:.0}") } else { "-".to_owned() }),
                Cell::from(row.window),
                Cell::from(row.model),
            ],
        );
    }
    table.note("Means over seeds, the paper's numbers in parentheses; `!` is outside of the tolerance.")
}

fn checks(prefix: &str, rows: &[Expected], runs: &Runs) -> Vec<Check> {
    let mut checks = vec![];
    for (flow, row) in rows.iter().enumerate() {
        let id = |what: &str| format!("{prefix}/{}/{what}", row.name.to_lowercase());
        let drops = mean(&runs.of(flow, super::reading::Flow::drops_per_event));
        checks.push(
            Check::within(
                id("utilisation"),
                "percent of the link",
                mean(&runs.utilisation(flow)),
                row.bounds.utilisation,
            )
            .paper(row.utilisation),
        );
        let events = mean(&runs.of(flow, super::reading::Flow::events));
        checks.push(
            Check::within(id("events"), "congestion events in 350 s", events, row.bounds.events)
                .paper(row.events),
        );
        if let Some(bounds) = row.bounds.drops {
            checks.push(
                Check::within(id("drops"), "losses of a congestion event", drops, bounds).paper(row.drops),
            );
        } else if row.name == "H2" {
            checks.push(
                Check::near(id("drops"), "losses of a congestion event", drops, row.drops, 0.25)
                    .paper(row.drops)
                    .optional("the independent model has 4, too: the paper's long flows lose bursts that neither models"),
            );
        }
    }
    checks
}

/// What the paper claims: fewer losses, and a fairer share.
fn claims(hstcp: &Runs, acwap: &Runs) -> Table {
    let mut table = Table::new("claims", "What ACWAP changes, three flows").columns([
        "",
        "HSTCP",
        "ACWAP",
        "HSTCP: 95 % interval",
        "ACWAP: 95 % interval",
        "paper: HSTCP, ACWAP",
    ]);
    let interval = |values: &[f64], digits: usize| {
        let ci = Estimate::of(values).and_then(|estimate| estimate.ci);
        ci.map_or("-".to_owned(), |(low, high)| format!("{low:.digits$}-{high:.digits$}"))
    };
    for (what, digits, of_hstcp, of_acwap, paper) in [
        ("losses in 350 s", 0, hstcp.drops(), acwap.drops(), "3554, 140"),
        ("Jain's index", 3, hstcp.fairness(), acwap.fairness(), "0.409, 0.712"),
    ] {
        table.row(
            what,
            [
                Cell::number(mean(&of_hstcp), digits),
                Cell::number(mean(&of_acwap), digits),
                Cell::from(interval(&of_hstcp, digits)),
                Cell::from(interval(&of_acwap, digits)),
                Cell::from(paper),
            ],
        );
    }
    table
}

/// ACWAP's halves.
fn ablation(outputs: &Outputs, seeds: u32) -> Result<Reproduction, ReproduceError> {
    let mut table = Table::new("ablation", "Clamp and pacing, each alone: 60, 120, 180 ms at 1 Gbit/s")
        .columns([
            "",
            "utilisation %",
            "events",
            "drops/event",
            "Jain's index",
            "model: utilisation; events; drops/event",
        ]);
    let mut fairness = vec![];
    for (group, what, model) in [
        (Group::Hstcp, "HSTCP", "82-87, 6-10, 1-2 %; 75, 53, 39; 36, 4.6, 1.7"),
        (Group::ClampOnly, "clamp", "66, 22, 10 %; 42, 21, 14; 3.6, 2.2, 1.8"),
        (Group::PacingOnly, "pacing", "94, 2.3, 0.4 %; 77, 76, 75; 22, 4.2, 3.0"),
        (Group::Acwap, "both", "64-67, 21-24, 10-11 %; 32, 16, 11; 1.7, 1.6, 1.4"),
    ] {
        let runs = Runs::read(outputs, group, seeds)?;
        let three = |of: &dyn Fn(usize) -> Vec<f64>, digits: usize| {
            Cell::from(
                (0..3).map(|flow| format!("{:.digits$}", mean(&of(flow)))).collect::<Vec<_>>().join(", "),
            )
        };
        table.row(
            what,
            [
                three(&|flow| runs.utilisation(flow), 1),
                three(&|flow| runs.of(flow, super::reading::Flow::events), 0),
                three(&|flow| runs.of(flow, super::reading::Flow::drops_per_event), 1),
                Cell::number(mean(&runs.fairness()), 3),
                Cell::from(model),
            ],
        );
        fairness.push(mean(&runs.fairness()));
    }
    let [hstcp, clamp, pacing, both] = fairness[..] else { return Ok(Reproduction::default()) };
    let checks = vec![
        Check::at_most("ablation/pacing", "Jain's index of pacing alone, at most HSTCP's", pacing, hstcp),
        Check::at_least("ablation/clamp", "Jain's index of the clamp alone by HSTCP's", clamp / hstcp, 1.5),
        Check::at_least("ablation/both", "Jain's index of both by that of pacing alone", both / pacing, 1.5),
    ];
    Ok(Reproduction { tables: vec![table], checks, ..Reproduction::default() })
}
