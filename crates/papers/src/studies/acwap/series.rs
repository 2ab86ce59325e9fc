//! Lines of means with their intervals.

use ackline_lab::stats::Estimate;
use ackline_plot::{Line, Style};

/// A line through the means over runs, with a band of their 95 % intervals: x, and a number of each
/// run.
pub(super) fn estimated(label: &str, points: &[(f64, Vec<f64>)]) -> Line {
    let means: Vec<(f64, Estimate)> =
        points.iter().filter_map(|(x, values)| Some((*x, Estimate::of(values)?))).collect();
    Line {
        label: label.to_owned(),
        points: means.iter().map(|(x, estimate)| (*x, estimate.mean)).collect(),
        band: means
            .iter()
            .filter_map(|(x, estimate)| estimate.ci.map(|(low, high)| (*x, low, high)))
            .collect(),
        style: Style::Marked,
        ..Line::default()
    }
}
