//! Flows of 60, 120 and 180 ms at 1 Gbit/s: Tables 1 and 2 (A3 and A4), and ACWAP's halves alone
//! (A6).

use super::reading::{Flow, Reading};
use super::runs::{Group, HALVES, Span, extent, long, seeds};
use crate::error::ReproduceError;
use crate::{Cell, Check, Finding, Outputs, Reproduction, Request, Table};
use ackline_lab::stats::{jain, mean};
use ackline_plot::{Chart, Line, Style};

/// Bits per second.
pub(super) const RATE: f64 = 1e9;

/// A flow as the paper has it, the tolerances, and the independent model.
struct ReferenceFlow {
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
    drops: Drops,
}

/// Within which the losses of an event count as repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Drops {
    /// Around the paper's number.
    Paper(f64, f64),
    /// Around the independent model's, which is not the paper's.
    Model(f64, f64),
}

impl Drops {
    const fn bounds(self) -> (f64, f64) {
        match self {
            Self::Paper(low, high) | Self::Model(low, high) => (low, high),
        }
    }
}

const TABLE_1_ROWS: [ReferenceFlow; 4] = [
    ReferenceFlow {
        name: "H1",
        rtt: "60 ms",
        utilisation: 78.34,
        events: 83.0,
        drops: 31.61,
        window: "6653-7219",
        bounds: Bounds { utilisation: (78.0, 88.0), events: (73.0, 88.0), drops: Drops::Paper(25.0, 50.0) },
        model: "82-87 %; 75-76; 31-41; 6540-7735",
    },
    ReferenceFlow {
        name: "H2",
        rtt: "120 ms",
        utilisation: 7.96,
        events: 62.0,
        drops: 11.59,
        window: "1007-1946",
        bounds: Bounds { utilisation: (4.0, 10.0), events: (48.0, 70.0), drops: Drops::Model(3.0, 6.0) },
        model: "6.2-9.8 %; 49-57; 3.7-5.6",
    },
    ReferenceFlow {
        name: "H3",
        rtt: "180 ms",
        utilisation: 0.93,
        events: 56.0,
        drops: 3.78,
        window: "119-293",
        bounds: Bounds { utilisation: (0.0, 4.0), events: (36.0, 62.0), drops: Drops::Model(1.2, 3.0) },
        model: "1.4-2.4 %; 37-41; 1.7",
    },
    ReferenceFlow {
        name: "R1",
        rtt: "120 ms",
        utilisation: 1.71,
        events: 20.0,
        drops: 2.25,
        window: "112-443",
        bounds: Bounds { utilisation: (1.0, 3.0), events: (12.0, 26.0), drops: Drops::Paper(1.5, 4.5) },
        model: "1.5-1.8 %; 17-22; 3.6-4.2",
    },
];

const TABLE_2_ROWS: [ReferenceFlow; 3] = [
    ReferenceFlow {
        name: "f1",
        rtt: "60 ms",
        utilisation: 56.32,
        events: 35.0,
        drops: 2.56,
        window: "",
        bounds: Bounds { utilisation: (52.0, 70.0), events: (30.0, 53.0), drops: Drops::Paper(1.0, 4.0) },
        model: "64-67 %; 32-33; 1.5-1.8",
    },
    ReferenceFlow {
        name: "f2",
        rtt: "120 ms",
        utilisation: 21.23,
        events: 22.0,
        drops: 1.60,
        window: "",
        bounds: Bounds { utilisation: (17.0, 32.0), events: (15.0, 28.0), drops: Drops::Paper(1.0, 4.0) },
        model: "21-24 %; 15-18; 1.5-1.7",
    },
    ReferenceFlow {
        name: "f3",
        rtt: "180 ms",
        utilisation: 12.21,
        events: 13.0,
        drops: 1.20,
        window: "",
        bounds: Bounds { utilisation: (9.0, 16.0), events: (10.0, 21.0), drops: Drops::Paper(1.0, 4.0) },
        model: "10-11 %; 11; 1.2-1.6",
    },
];

/// Seconds in which the paper counts.
const PAPERS_SECONDS: f64 = 350.0;

/// All runs of a group.
pub(super) struct Runs {
    runs: Vec<Reading>,
    /// Turns a count into one of the paper's seconds.
    scale: f64,
}

impl Runs {
    pub(super) fn read(
        outputs: &Outputs,
        group: Group,
        seeds: u32,
        span: Span,
    ) -> Result<Self, ReproduceError> {
        let runs = (0..seeds).map(|seed| outputs.get(&group.id(seed))).collect::<Result<_, _>>()?;
        Ok(Self { runs, scale: PAPERS_SECONDS / f64::from(span.seconds()) })
    }

    /// A flow's share of the link in the second half of the window less that in the first, points.
    fn drift(&self, flow: usize) -> Vec<f64> {
        self.of(flow, |flow| 100.0 * (flow.halves.1 - flow.halves.0) / RATE)
    }

    /// Congestion events of a flow in 350 s.
    fn events(&self, flow: usize) -> Vec<f64> {
        self.of(flow, |flow| self.scale * flow.events())
    }

    /// A number of a flow in each run.
    fn of(&self, flow: usize, number: impl Fn(&Flow) -> f64) -> Vec<f64> {
        self.runs.iter().filter_map(|run| run.flows.get(flow)).map(number).collect()
    }

    /// Percent of the link.
    fn utilisation(&self, flow: usize) -> Vec<f64> {
        self.of(flow, |flow| 100.0 * flow.rate / RATE)
    }

    /// Jain's index of the first three flows in each run.
    fn fairness(&self) -> Vec<f64> {
        let rates = |run: &Reading| run.flows.iter().take(3).map(|flow| flow.rate).collect::<Vec<_>>();
        self.runs.iter().filter_map(|run| jain(&rates(run))).collect()
    }

    /// Losses of the first three flows in 350 s.
    fn drops(&self) -> Vec<f64> {
        let drops = |run: &Reading| run.flows.iter().take(3).map(|flow| flow.drops as f64).sum::<f64>();
        self.runs.iter().map(|run| self.scale * drops(run)).collect()
    }

    /// Smallest and largest window at congestion.
    fn windows(&self, flow: usize) -> (f64, f64) {
        let all =
            self.runs.iter().filter_map(|run| run.flows.get(flow)).flat_map(|flow| flow.reductions.clone());
        all.fold((f64::INFINITY, 0.0), |(low, high), window| (low.min(window), high.max(window)))
    }
}

/// HSTCP and Reno.
pub(super) fn table_1(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let hstcp = Runs::read(outputs, Group::Hstcp, seeds(request), long(request))?;
    let title = title("Table 1: HSTCP and Reno at 1 Gbit/s", long(request));
    Ok(Reproduction {
        findings: vec![finding("Table 1: HSTCP and Reno", &TABLE_1_ROWS, &hstcp, "table-1/")],
        tables: vec![table("1", &title, &TABLE_1_ROWS, &hstcp)],
        checks: checks("table-1", &TABLE_1_ROWS, &hstcp),
        notes: vec![extent(request)],
        figures: vec![windows("shared-hstcp", "HSTCP's windows", &TABLE_1_ROWS, &hstcp).into()],
        ..Reproduction::default()
    })
}

/// ACWAP, and what it changes.
pub(super) fn table_2(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let hstcp = Runs::read(outputs, Group::Hstcp, seeds(request), long(request))?;
    let acwap = Runs::read(outputs, Group::Acwap, seeds(request), long(request))?;
    let mut checks = checks("table-2", &TABLE_2_ROWS, &acwap);
    let (drops, fairness) =
        (ratio(&hstcp.drops(), &acwap.drops()), ratio(&acwap.fairness(), &hstcp.fairness()));
    checks.push(
        Check::at_least(
            "claims/drops",
            "losses of three HSTCP flows by those of three ACWAP flows",
            drops,
            10.0,
        )
        .paper(25.0),
    );
    checks.push(
        Check::at_least("claims/fairness", "Jain's index of ACWAP by that of HSTCP", fairness, 1.5)
            .paper(0.712 / 0.409),
    );
    let title = title("Table 2: ACWAP at 1 Gbit/s", long(request));
    let (hstcp_fairness, acwap_fairness) = (mean(&hstcp.fairness()), mean(&acwap.fairness()));
    Ok(Reproduction {
        findings: vec![
            finding("Table 2: ACWAP", &TABLE_2_ROWS, &acwap, "table-2/"),
            Finding::new(
                "The claim: fewer losses, fairer shares",
                "losses by 25, Jain's index from 0.409 to 0.712",
                format!("losses by {drops:.0}, Jain's index from {hstcp_fairness:.3} to {acwap_fairness:.3}"),
                "claims/",
            ),
        ],
        tables: vec![table("2", &title, &TABLE_2_ROWS, &acwap), claims(&hstcp, &acwap)],
        checks,
        notes: vec![extent(request)],
        figures: vec![windows("shared-acwap", "ACWAP's windows", &TABLE_2_ROWS, &acwap).into()],
        ..Reproduction::default()
    })
}

fn title(what: &str, span: Span) -> String {
    let Span { from, until } = span;
    format!("{what}, from {from} to {until} s")
}

fn ratio(above: &[f64], below: &[f64]) -> f64 {
    mean(above) / mean(below)
}

fn finding(of: &str, rows: &[ReferenceFlow], runs: &Runs, checks: &str) -> Finding {
    let list = |number: &dyn Fn(usize, &ReferenceFlow) -> String| {
        rows.iter().enumerate().map(|(flow, row)| number(flow, row)).collect::<Vec<_>>().join(", ")
    };
    let (shares, events) =
        (list(&|_, row| format!("{:.1}", row.utilisation)), list(&|_, row| format!("{:.0}", row.events)));
    let ours = (
        list(&|flow, _| format!("{:.1}", mean(&runs.utilisation(flow)))),
        list(&|flow, _| format!("{:.0}", mean(&runs.events(flow)))),
    );
    Finding::new(
        of,
        format!("{shares} % of the link; {events} events"),
        format!("{} %; {} events", ours.0, ours.1),
        checks,
    )
}

fn table(id: &str, title: &str, rows: &[ReferenceFlow], runs: &Runs) -> Table {
    let columns = [
        "flow",
        "RTT",
        "utilisation %",
        "events",
        "drops/event",
        "window at congestion",
        "paper's window",
        "second half less first, points",
        "model: utilisation; events; drops/event",
    ];
    let mut table = Table::new(id, title).columns(columns);
    for (flow, row) in rows.iter().enumerate() {
        let (low, high) = runs.windows(flow);
        let drops = Cell::estimate(&runs.of(flow, Flow::drops_per_event), 2).paper(row.drops);
        table.row(
            row.name,
            [
                Cell::from(row.rtt),
                Cell::estimate(&runs.utilisation(flow), 2)
                    .paper(row.utilisation)
                    .within(row.bounds.utilisation),
                Cell::estimate(&runs.events(flow), 0).paper(row.events).within(row.bounds.events),
                drops.within(row.bounds.drops.bounds()),
                Cell::from(if low <= high { format!("{low:.0}-{high:.0}") } else { "-".to_owned() }),
                Cell::from(row.window),
                Cell::estimate(&runs.drift(flow), 1),
                Cell::from(row.model),
            ],
        );
    }
    table.note(
        "Means over seeds with 95 % intervals, the paper's numbers in parentheses; `!` is outside of the tolerance. Events are given for 350 s, \
         as in the paper.",
    )
}

fn checks(prefix: &str, rows: &[ReferenceFlow], runs: &Runs) -> Vec<Check> {
    let mut checks = vec![];
    for (flow, row) in rows.iter().enumerate() {
        let id = |what: &str| format!("{prefix}/{}/{what}", row.name.to_lowercase());
        checks.push(
            Check::within(
                id("utilisation"),
                "percent of the link",
                mean(&runs.utilisation(flow)),
                row.bounds.utilisation,
            )
            .paper(row.utilisation),
        );
        let events = mean(&runs.events(flow));
        checks.push(
            Check::within(id("events"), "congestion events in 350 s", events, row.bounds.events)
                .paper(row.events),
        );
        let drops = mean(&runs.of(flow, Flow::drops_per_event));
        let check =
            Check::within(id("drops"), "losses of a congestion event", drops, row.bounds.drops.bounds())
                .paper(row.drops);
        checks.push(match row.bounds.drops {
            Drops::Paper(..) => check,
            Drops::Model(..) => check.widened("the independent model's number, which is not the paper's"),
        });
    }
    checks
}

/// The flows' windows over time in one run.
fn windows(name: &str, title: &str, rows: &[ReferenceFlow], runs: &Runs) -> Chart {
    let flows = runs.runs.first().map_or(&[][..], |run| &run.flows);
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x_label: "time, s".to_owned(),
        y_label: "segments".to_owned(),
        from_zero: true,
        lines: rows
            .iter()
            .zip(flows)
            .map(|(row, flow)| Line {
                label: format!("{}, {}", row.name, row.rtt),
                points: flow.window.clone(),
                style: Style::Line,
                ..Line::default()
            })
            .collect(),
        ..Chart::default()
    }
}

/// What the paper claims: fewer losses, and a fairer share.
fn claims(hstcp: &Runs, acwap: &Runs) -> Table {
    let mut table = Table::new("claims", "What ACWAP changes, three flows").columns(["", "HSTCP", "ACWAP"]);
    for (what, digits, of_hstcp, of_acwap, (hstcp, acwap)) in [
        ("losses in 350 s", 0, hstcp.drops(), acwap.drops(), (3554.0, 140.0)),
        ("Jain's index", 3, hstcp.fairness(), acwap.fairness(), (0.409, 0.712)),
    ] {
        let cells =
            [Cell::estimate(&of_hstcp, digits).paper(hstcp), Cell::estimate(&of_acwap, digits).paper(acwap)];
        table.row(what, cells);
    }
    table.note("Means over seeds with 95 % intervals, the paper's numbers in parentheses.")
}

/// ACWAP's halves.
pub(super) fn ablation(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut table = Table::new("ablation", "Clamp and pacing, each alone: 60, 120, 180 ms at 1 Gbit/s")
        .columns([
            "",
            "utilisation %",
            "events",
            "drops/event",
            "Jain's index",
            "model: utilisation; events; drops/event",
        ]);
    let (whole, mut fairness) = (long(request), vec![]);
    for (group, what, model) in [
        (Group::Hstcp, "HSTCP", "82-87, 6-10, 1-2 %; 75, 53, 39; 36, 4.6, 1.7"),
        (Group::ClampOnly, "clamp", "66, 22, 10 %; 42, 21, 14; 3.6, 2.2, 1.8"),
        (Group::PacingOnly, "pacing", "94, 2.3, 0.4 %; 77, 76, 75; 22, 4.2, 3.0"),
        (Group::Acwap, "both", "64-67, 21-24, 10-11 %; 32, 16, 11; 1.7, 1.6, 1.4"),
    ] {
        let span = if matches!(group, Group::Hstcp | Group::Acwap) { whole } else { HALVES };
        let runs = Runs::read(outputs, group, seeds(request), span)?;
        let three = |of: &dyn Fn(usize) -> Vec<f64>, digits: usize| {
            let cells = (0..3).map(|flow| Cell::estimate(&of(flow), digits).to_text());
            Cell::from(cells.collect::<Vec<_>>().join(", "))
        };
        table.row(
            what,
            [
                three(&|flow| runs.utilisation(flow), 1),
                three(&|flow| runs.events(flow), 0),
                three(&|flow| runs.of(flow, Flow::drops_per_event), 1),
                Cell::estimate(&runs.fairness(), 3),
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
    Ok(Reproduction {
        findings: vec![Finding::new(
            "Which half does it (not in the paper)",
            "-",
            format!(
                "Jain's index {hstcp:.2} of HSTCP, {clamp:.2} with the clamp alone, {pacing:.2} with pacing alone, {both:.2} with both"
            ),
            "ablation/",
        )],
        tables: vec![table.note(format!(
            "Means over seeds with 95 % intervals; events in 350 s. HSTCP and both from {} to {} s, the halves alone from {} to {} s.",
            whole.from, whole.until, HALVES.from, HALVES.until
        ))],
        checks,
        notes: vec![extent(request)],
        ..Reproduction::default()
    })
}
