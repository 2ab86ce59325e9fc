//! Beyond the paper: the adaptive share over eight lines, beside fixed shares and other schedulers.

mod goal;
mod shares;

use super::AUTO;
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::finding::Finding;
use crate::reproduction::table::{Cell, Table};
use crate::request::Request;
use goal::{GOALS, Goal};
use shares::Shares;

/// The lines: rates up and down in Mbit/s, as the scenario calls them.
const LINES: [&str; 8] = [
    "0.1 up, 1 down",
    "0.1 up, 10 down",
    "1 up, 10 down",
    "0.1 up, 100 down",
    "1 up, 100 down",
    "10 up, 100 down",
    "1 up, 1000 down",
    "10 up, 1000 down",
];
/// How often the near host acknowledges, and in words.
const ACKS: [(&str, &str); 3] =
    [("immediate", "each segment"), ("linux-like", "as Linux"), ("delayed:segments=8", "each 8th (GRO)")];
/// Connections each way.
const COUNTS: [&str; 2] = ["1", "10"];
/// Fixed shares, among which the best one is looked for.
const FIXED: [&str; 7] = ["0.02", "0.1", "0.3", "0.5", "0.7", "0.9", "0.96"];
/// By how much a part may miss its goal, and by which share the sum may stay below that of the best
/// fixed share.
const POINTS: f64 = 0.03;
const LOSS: f64 = 0.02;

/// What becomes of ACKs that wait.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mode {
    name: &'static str,
    what: &'static str,
    /// The parameter that chooses it.
    param: &'static str,
    /// Other schedulers, and their names in the table.
    others: &'static [(&'static str, &'static str)],
}

const MODES: [Mode; 2] = [
    Mode {
        name: "newest",
        what: "ACKs get their numbers as they leave (the default)",
        param: "",
        others: &[("ACKs first", "ack-priority"), ("in turn (drr)", "drr")],
    },
    Mode {
        name: "kept",
        what: "ACKs keep their numbers, as in a queue below IP",
        param: "acks=kept",
        others: &[
            ("ACKs first", "ack-priority:acks=kept"),
            ("in turn (drr)", "drr:acks=kept"),
            ("one queue, ACKs filtered", "fifo:thin=on"),
            ("ACKs first, filtered", "ack-priority:thin=on"),
        ],
    },
];

/// One line, one way to acknowledge, one number of connections.
#[derive(Clone, Copy, Debug, PartialEq)]
struct AutoCase {
    line: &'static str,
    acks: (&'static str, &'static str),
    count: &'static str,
}

impl AutoCase {
    /// The name of the job that runs this scheduler here.
    fn job(&self, sched: &str) -> String {
        format!("auto/{}/{sched}/{}/{}", self.line, self.acks.0, self.count)
    }

    fn get(&self, sched: &str, outputs: &Outputs) -> Result<Shares, ReproduceError> {
        outputs.get(&self.job(sched))
    }
}

/// The allocation with `f` and other parameters.
fn allocation(f: &str, more: &[&str]) -> String {
    let params: Vec<&str> =
        std::iter::once(f).chain(more.iter().copied().filter(|param| !param.is_empty())).collect();
    format!("kalampoukas:f={}", params.join(","))
}

/// The places of a run; with `--quick` two lines, one connection each way and Linux's ACKs.
fn places(request: &Request) -> impl Iterator<Item = AutoCase> {
    let quick = request.quick;
    let all = LINES.into_iter().flat_map(|line| {
        ACKS.into_iter()
            .flat_map(move |acks| COUNTS.into_iter().map(move |count| AutoCase { line, acks, count }))
    });
    all.filter(move |place| {
        let AutoCase { line, acks, count } = place;
        !quick
            || (matches!(*line, "1 up, 10 down" | "1 up, 100 down")
                && acks.0 == "linux-like"
                && *count == "1")
    })
}

/// What becomes of ACKs that wait, in a run; with `--quick` the default only.
fn modes(request: &Request) -> impl Iterator<Item = Mode> {
    let quick = request.quick;
    MODES.into_iter().filter(move |mode| !quick || mode.name == "newest")
}

/// The schedulers of a mode.
fn schedulers(mode: &Mode) -> Vec<String> {
    let adaptive = GOALS.iter().map(|goal| allocation("auto", &[goal.param, mode.param]));
    let fixed = FIXED.iter().map(|f| allocation(f, &[mode.param]));
    adaptive.chain(fixed).chain(mode.others.iter().map(|(_, sched)| (*sched).to_owned())).collect()
}

/// The jobs: points of the scenario, named by their values.
pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let scenario = AUTO.parse()?;
    let wanted: Vec<String> = modes(request)
        .flat_map(|mode| schedulers(&mode))
        .flat_map(|sched| places(request).map(move |place| place.job(&sched)).collect::<Vec<_>>())
        .collect();
    let mut jobs = vec![];
    for point in 0..scenario.points() {
        let params = scenario.params(point);
        let values: Vec<&str> = params.iter().map(|param| param.value.as_str()).collect();
        let id = format!("auto/{}", values.join("/"));
        if wanted.contains(&id) {
            jobs.push(Job::outcome(id, "shares", &scenario, point, 0, |outcome| {
                Shares::read(&outcome.result)
            }));
        }
    }
    Ok(jobs)
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    for mode in modes(request) {
        for goal in GOALS {
            let lines = compare(&mode, goal, request, outputs, &mut found)?;
            let met = lines.iter().filter(|line| line.off <= POINTS && line.sum >= 1.0 - LOSS).count();
            found.findings.push(Finding::new(
                format!("f=auto, {}: {}", goal.what, mode.what),
                "beyond the paper: within 3 points, and a sum of at least 98 % of the best fixed share's",
                format!("on {met} of {} lines in every case", lines.len()),
                format!("auto/{}/{}/", mode.name, goal.name),
            ));
        }
        found.tables.push(others(&mode, request, outputs)?);
    }
    Ok(found)
}

/// The worst that became of a goal on a line: by how much it was missed, and the sum as a share of
/// that of the best fixed share.
struct WorstCase {
    line: &'static str,
    off: f64,
    sum: f64,
}

/// The adaptive share beside the best fixed one: a table, and two checks for each line, which is
/// returned.
fn compare(
    mode: &Mode,
    goal: Goal,
    request: &Request,
    outputs: &Outputs,
    found: &mut Reproduction,
) -> Result<Vec<WorstCase>, ReproduceError> {
    let id = format!("auto/{}/{}", mode.name, goal.name);
    let mut table = Table::new(id.clone(), format!("f=auto, {}: {} [% of each link]", goal.what, mode.what))
        .note("best: the fixed share that comes nearest to the goal; off: by how much the goal is missed, points")
        .columns(["line", "ACKs", "connections", "up / down", "f", "off", "best f", "up / down", "sum, of the best's"]);
    let mut lines: Vec<WorstCase> = vec![];
    for place in places(request) {
        let ours = place.get(&allocation("auto", &[goal.param, mode.param]), outputs)?;
        let mut fixed = vec![];
        for f in FIXED {
            fixed.push((f, place.get(&allocation(f, &[mode.param]), outputs)?));
        }
        let best = goal.best(&fixed);
        let (off, sum) = (goal.miss(&ours), ours.sum() / best.1.sum());
        table.row(
            place.line,
            [
                Cell::from(place.acks.1),
                Cell::from(format!("{0} + {0}", place.count)),
                parts(&ours),
                ours.f.map_or(Cell::from("-"), |f| Cell::number(f, 3)),
                Cell::number(100.0 * off, 1),
                Cell::from(best.0),
                parts(&best.1),
                Cell::number(100.0 * sum, 1),
            ],
        );
        match lines.iter_mut().find(|worst| worst.line == place.line) {
            Some(worst) => (worst.off, worst.sum) = (worst.off.max(off), worst.sum.min(sum)),
            None => lines.push(WorstCase { line: place.line, off, sum }),
        }
    }
    for WorstCase { line, off, sum } in &lines {
        let rates = line.replace(" up, ", "-").replace(" down", "");
        let what = format!("{line} Mbit/s, {}, worst case", goal.what);
        found.checks.push(Check::at_most(
            format!("{id}/{rates}/off"),
            format!("miss of the goal: {what}"),
            *off,
            POINTS,
        ));
        found.checks.push(Check::at_least(
            format!("{id}/{rates}/sum"),
            format!("sum of both parts, of that of the best fixed share: {what}"),
            *sum,
            1.0 - LOSS,
        ));
    }
    found.tables.push(table);
    Ok(lines)
}

/// What other schedulers make of the same places.
fn others(mode: &Mode, request: &Request, outputs: &Outputs) -> Result<Table, ReproduceError> {
    let mut table = Table::new(
        format!("auto/{}/others", mode.name),
        format!("Other schedulers, up / down: {} [% of each link]", mode.what),
    );
    table.columns.extend(["line", "ACKs", "connections", "f=auto, equal parts"].map(str::to_owned));
    table.columns.extend(mode.others.iter().map(|(name, _)| (*name).to_owned()));
    for place in places(request) {
        let mut cells = vec![
            Cell::from(place.acks.1),
            Cell::from(format!("{0} + {0}", place.count)),
            parts(&place.get(&allocation("auto", &[mode.param]), outputs)?),
        ];
        for (_, sched) in mode.others {
            cells.push(parts(&place.get(sched, outputs)?));
        }
        table.row(place.line, cells);
    }
    Ok(table)
}

/// Both parts in per cent.
fn parts(shares: &Shares) -> Cell {
    Cell::from(format!("{:.1} / {:.1}", 100.0 * shares.up, 100.0 * shares.down))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_has_each_place_and_nothing_else() {
        let all = plan(&Request::default()).unwrap();
        assert_eq!(all.len(), AUTO.parse().unwrap().points());
        let wanted = MODES.iter().map(|mode| schedulers(mode).len()).sum::<usize>();
        assert_eq!(all.len(), wanted * LINES.len() * ACKS.len() * COUNTS.len());
        let quick = plan(&Request { quick: true, ..Request::default() }).unwrap();
        assert_eq!(quick.len(), 2 * schedulers(&MODES[0]).len());
    }
}
