//! Orders that the draft's numbers have, and that must come out.

use super::paper::{COLUMNS, PrintedNumbers, ROWS};
use super::runs::{Runs, differences, mean};
use crate::reproduction::check::Check;
use ackline_lab::stats::Estimate;

/// What is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Mean download times.
    Mean,
    /// Their variances.
    Variance,
    /// Spectral efficiencies, with a window of zero while the response probes.
    Efficiency,
    /// The same with the window before the timeout.
    EfficiencyBefore,
}

/// One response's number is to be above another's, or a multiple of it. Runs of one seed meet the
/// same stalls, so each seed gives one difference.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) id: String,
    pub(super) kind: Kind,
    what: String,
    /// For each seed: positive if it came out.
    values: Vec<f64>,
    paper: f64,
    /// Downloads of each response.
    downloads: u64,
}

impl Kind {
    /// Downloads and seeds from which on the order says something.
    const fn needs(self) -> (u64, usize) {
        match self {
            Self::Mean => (2_000, 5),
            Self::Variance => (2_000, 10),
            Self::Efficiency | Self::EfficiencyBefore => (0, 5),
        }
    }
}

impl Order {
    /// It came out in the mean.
    pub(super) fn holds(&self) -> bool {
        mean(&self.values) >= 0.0
    }

    /// A check, if there are runs enough for it: the lower end of the 95 % interval over seeds is
    /// not below zero.
    pub(super) fn check(&self) -> Option<Check> {
        let (downloads, seeds) = self.kind.needs();
        let enough = self.downloads >= downloads && self.values.len() >= seeds;
        let estimate = Estimate::of(&self.values).filter(|_| enough)?;
        let (low, _) = estimate.ci?;
        let what = format!("{} (lower end of the 95 % interval over seeds)", self.what);
        Some(Check::at_least(self.id.clone(), what, low, 0.0).paper(self.paper))
    }
}

/// The orders for row `place` of Table 2, from runs in the order of [`COLUMNS`]. The draft's means
/// with 5 KB differ by less than its own statistical error, so nothing is claimed about them.
pub(super) fn orders(place: usize, columns: &[&Runs; 4]) -> Vec<Order> {
    let row = &ROWS[place];
    let Some(printed) = &row.printed else { return vec![] };
    let order = |kind, id, ranks| order(row.size, printed, kind, id, ranks, columns);
    let mut orders = vec![];
    if row.size > 5 {
        for (other, name) in COLUMNS.iter().enumerate().skip(1) {
            let id = |kind| format!("{}/order/{kind}/{name}", printed.table);
            orders.push(order(Kind::Mean, id("mean"), (other, 1.0, 0)));
            orders.push(order(Kind::Variance, id("variance"), (other, 1.0, 0)));
        }
    }
    if row.size < 100 {
        for (other, name) in COLUMNS.iter().enumerate().filter(|(other, _)| *other != 1) {
            let id = format!("{}/order/eifel-variance/{name}", printed.table);
            // Already there with DCLOR if its variance is to be the smallest.
            if row.size == 5 || other != 0 {
                orders.push(order(Kind::Variance, id, (1, 1.0, other)));
            }
        }
    }
    orders.extend(efficiency_orders(place, Kind::Efficiency, columns));
    orders
}

/// The orders of Table 6 for row `place`, in one of the readings of the window.
pub(super) fn efficiency_orders(place: usize, kind: Kind, columns: &[&Runs; 4]) -> Vec<Order> {
    let row = &ROWS[place];
    let Some(printed) = &row.printed else { return vec![] };
    let reading = if kind == Kind::EfficiencyBefore { "before/" } else { "" };
    let least = if row.size == 100 { 10.0 } else { 5.0 };
    [(2, 1.0, 3), (3, 1.0, 1), (2, least, 0), (3, 3.0, 0)]
        .map(|ranks| {
            let id = format!("6/{reading}{}K/{}-{}", row.size, COLUMNS[ranks.0], COLUMNS[ranks.2]);
            order(row.size, printed, kind, id, ranks, columns)
        })
        .into()
}

/// The first response's number is to be so many times the second's.
fn order(
    size: u64,
    printed: &PrintedNumbers,
    kind: Kind,
    id: String,
    (above, factor, below): (usize, f64, usize),
    columns: &[&Runs; 4],
) -> Order {
    let (of, what, paper): (fn(&Runs) -> Vec<f64>, _, _) = match kind {
        Kind::Mean => (Runs::means, "mean time, s,", printed.mean),
        Kind::Variance => (Runs::variances, "variance, s^2,", printed.variance),
        Kind::Efficiency => (Runs::efficiencies, "spectral efficiency", printed.efficiency),
        Kind::EfficiencyBefore => (
            Runs::efficiencies_before,
            "spectral efficiency with the window before the timeout",
            printed.efficiency,
        ),
    };
    let times: Vec<f64> = of(columns[below]).iter().map(|value| factor * value).collect();
    let multiple = if factor == 1.0 { String::new() } else { format!("{factor} times ") };
    Order {
        id,
        kind,
        what: format!("{size} KB: {what} of {} less {multiple}that of {}", COLUMNS[above], COLUMNS[below]),
        values: differences(&of(columns[above]), &times),
        paper: paper[above] - factor * paper[below],
        downloads: columns[below].downloads(),
    }
}
