//! What is wanted, and whether it was reached.

use super::text::{Table, number};
use crate::results::Summary;

#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) bound: Bound,
    pub(crate) found: Option<Summary>,
}

/// One row for each target that there are results for.
pub(crate) fn table(targets: impl IntoIterator<Item = Target>) -> String {
    let mut table = Table::new(&["target", "wanted", "measured", "range over the rounds", "met"]);
    for Target { what, bound, found } in targets {
        let Some(Summary { median, min, max }) = found else { continue };
        let (wanted, met) = match bound {
            Bound::AtLeast(limit) => (format!("at least {limit}"), median >= limit),
            Bound::AtMost(limit) => (format!("at most {limit}"), median <= limit),
        };
        let range = format!("{} to {}", number(min), number(max));
        table.row([what, wanted, number(median), range, if met { "met" } else { "**missed**" }.to_owned()]);
    }
    table.render()
}
