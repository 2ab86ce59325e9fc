//! Table 15.1: SunOS over its loopback.

use super::conditions::{is_bold, matrix};
use super::equations::{Buffers, Class};
use super::numbers::{LOOPBACK, Matrix};
use super::runs::{self, Copies};
use crate::{Cell, Check, Finding, Job, Outputs, ReproduceError, Reproduction};

/// Below this a pair is locked, Mbit/s: the slowest free one of the paper has 23.
const LOCKED: f64 = 5.0;
/// What free pairs must have, Mbit/s. The costs of the host are ours, so their rates say nothing
/// more.
const FREE: f64 = 20.0;

pub(super) fn plan() -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for copies in Copies::ALL {
        jobs.extend(runs::loopback_jobs(copies)?);
    }
    Ok(jobs)
}

pub(super) fn evaluate(outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    for copies in Copies::ALL {
        let measured = runs::loopback(outputs, copies)?;
        found.checks.extend(cells(copies, &measured));
        if copies == Copies::Whole {
            found.findings.push(finding(&measured));
        }
        let title = format!("Table 15.1: Mbit/s over the loopback, {} copies", copies.id());
        let table = matrix(&format!("15.1-{}", copies.id()), &title, |at| {
            let cell = Cell::beside(at.of(&measured), at.of(&LOOPBACK), if is_bold(at) { 2 } else { 0 });
            let bounds = found.checks.iter().find(|check| check.id == id(copies, at));
            let bounds = bounds.and_then(|check| check.low.map(|low| (low, check.high.unwrap_or(f64::MAX))));
            match bounds {
                Some(bounds) => cell.within(bounds).marked(is_bold(at)),
                None => cell.marked(is_bold(at)),
            }
        });
        found.tables.push(table.note(
            "Measured (paper), deviation; `*`: deadlock in the paper. The rates of free pairs follow from the host's costs, which \
             are chosen.",
        ));
    }
    Ok(found)
}

fn finding(measured: &Matrix) -> Finding {
    let of = |numbers: &Matrix| {
        let mut locked: Vec<f64> =
            Buffers::all().map(|at| at.of(numbers)).filter(|rate| *rate < LOCKED).collect();
        locked.sort_by(f64::total_cmp);
        let ends = locked.first().zip(locked.last());
        let rates = ends.map_or(String::new(), |(low, high)| format!(" at {low:.2} to {high:.2} Mbit/s"));
        format!("{} of 64 pairs lock{rates}", locked.len())
    };
    Finding::new("Table 15.1: SunOS over its loopback", of(&LOOPBACK), of(measured), "15.1/")
}

fn id(copies: Copies, at: Buffers) -> String {
    format!("15.1/{}/{}", copies.id(), at.id())
}

fn cells(copies: Copies, measured: &Matrix) -> Vec<Check> {
    let mut checks = vec![];
    for at in Buffers::all() {
        let (id, rate, paper) = (id(copies, at), at.of(measured), at.of(&LOOPBACK));
        let what = format!("S/R = {at}, {} copies, Mbit/s", copies.id());
        let check = match (at.send, at.receive) {
            _ if !is_bold(at) => Check::at_least(id, what, rate, FREE),
            (4 | 8, _) => Check::near(id, what, rate, 0.164, 0.03),
            (16, _) => Check::within(id, what, rate, (0.30, 0.55)),
            _ => Check::within(id, what, rate, (0.6, 0.8)),
        };
        checks.push(check.paper(paper));
    }
    // Class III locks only if residues are multiples of the copy; 24/48 has a check of its own
    // above.
    let wrong = Buffers::all().filter(|at| {
        (*at != Buffers { send: 24, receive: 48 }) && (at.of(measured) < LOCKED) != is_bold(*at)
    });
    checks.push(Check::exactly(
        format!("15.1/{}/locked", copies.id()),
        format!("pairs beside 24/48 that lock or do not, other than in the paper, {} copies", copies.id()),
        wrong.count() as f64,
        0.0,
    ));
    checks.extend(classes(copies, measured));
    checks
}

/// Bytes per tick of 200 ms: what one wait frees.
fn classes(copies: Copies, measured: &Matrix) -> Option<Check> {
    let of_class_one = Buffers::all().filter(|at| at.class() == Some(Class::One) && at.send <= 8);
    let worst =
        of_class_one.map(|at| (at.of(measured) * 1e6 / 8.0 * 0.2 - 4_096.0).abs()).fold(0.0, f64::max);
    Some(Check::at_most(
        format!("15.1/{}/per-tick", copies.id()),
        format!("largest distance from 4096 bytes per tick at S = 4 and 8 KB, {} copies, bytes", copies.id()),
        worst,
        41.0,
    ))
}
