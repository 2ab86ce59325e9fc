//! Plots of a sweep: each metric over one axis, a line for each combination of the others.

use super::{Chart, Kind, Line, Style};
use crate::scenario::Param;
use crate::scenario::quantity::{Unit, quantity};
use crate::summary::{PointSummary, Summary};

/// One plot per metric; none where nothing is varied. The horizontal axis is the last one with numbers; where none has numbers,
/// the last one.
#[must_use]
pub fn sweep_charts(summary: &Summary) -> Vec<Chart> {
    charts(&[(String::new(), summary)])
}

/// The same for several sweeps, each with a name.
pub(super) fn charts(sweeps: &[(String, &Summary)]) -> Vec<Chart> {
    let Some((_, first)) = sweeps.iter().find(|(_, summary)| !summary.points.is_empty()) else {
        return vec![];
    };
    if sweeps.iter().all(|(_, summary)| summary.points.len() < 2) && sweeps.len() < 2 {
        return vec![];
    }
    let mut names: Vec<&str> = vec![];
    for metric in sweeps.iter().flat_map(|(_, summary)| &summary.metrics) {
        if !names.contains(&metric.name.as_str()) {
            names.push(&metric.name);
        }
    }
    let axis = Axis::choose(first, sweeps);
    names.iter().map(|name| chart(name, &axis, sweeps)).filter(|chart| !chart.is_empty()).collect()
}

/// What stands along the bottom.
struct Axis {
    path: String,
    label: String,
    kind: Kind,
}

impl Axis {
    fn choose(first: &Summary, sweeps: &[(String, &Summary)]) -> Self {
        let numbers = |path: &str| -> Option<Vec<(f64, Unit)>> {
            let values = first.points.iter().filter_map(|point| value(point, path));
            let numbers: Option<Vec<_>> = values.map(|value| quantity(path, &value)).collect();
            numbers.filter(|numbers| {
                let lowest = numbers.iter().map(|(number, _)| *number).fold(f64::INFINITY, f64::min);
                let highest = numbers.iter().map(|(number, _)| *number).fold(f64::NEG_INFINITY, f64::max);
                lowest < highest
            })
        };
        let by_number = first.axes.iter().rev().find_map(|path| numbers(path).map(|numbers| (path, numbers)));
        if let Some((path, numbers)) = by_number {
            let lowest = numbers.iter().map(|(number, _)| *number).fold(f64::INFINITY, f64::min);
            let highest = numbers.iter().map(|(number, _)| *number).fold(f64::NEG_INFINITY, f64::max);
            let kind = if lowest > 0.0 && highest / lowest >= 20.0 { Kind::Log } else { Kind::Linear };
            let unit = numbers.first().map_or("", |(_, unit)| unit.name());
            let label = if unit.is_empty() { path.clone() } else { format!("{path} [{unit}]") };
            return Self { path: path.clone(), label, kind };
        }
        let path = first.axes.last().cloned().unwrap_or_default();
        let mut names: Vec<String> = vec![];
        for point in sweeps.iter().flat_map(|(_, summary)| &summary.points) {
            let name = value(point, &path).unwrap_or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Self { label: path.clone(), path, kind: Kind::Names(names) }
    }

    fn place(&self, point: &PointSummary) -> Option<f64> {
        let value = value(point, &self.path).unwrap_or_default();
        match &self.kind {
            Kind::Names(names) => names.iter().position(|name| *name == value).map(|place| place as f64),
            _ => quantity(&self.path, &value).map(|(number, _)| number),
        }
    }
}

fn value(point: &PointSummary, path: &str) -> Option<String> {
    point.params.iter().find(|param| param.path == path).map(|param| param.value.clone())
}

fn chart(name: &str, axis: &Axis, sweeps: &[(String, &Summary)]) -> Chart {
    let mut lines: Vec<Line> = vec![];
    let mut unit = "";
    // Between names there is nothing.
    let style = if matches!(axis.kind, Kind::Names(_)) { Style::Points } else { Style::Marked };
    for (sweep, summary) in sweeps {
        let Some(place) = summary.metrics.iter().position(|metric| metric.name == name) else { continue };
        unit = summary.metrics[place].unit;
        for point in &summary.points {
            let (Some(x), Some(estimate)) = (axis.place(point), point.estimates[place]) else { continue };
            let label = label(sweep, &point.params, &axis.path);
            let at = lines.iter().position(|line| line.label == label).unwrap_or_else(|| {
                lines.push(Line { label, style, ..Line::default() });
                lines.len() - 1
            });
            lines[at].points.push((x, estimate.mean));
            if let Some((low, high)) = estimate.ci {
                lines[at].band.push((x, low, high));
            }
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        line.band.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    Chart {
        name: format!("sweep-{}", name.replace([' ', '.', '/', '>'], "-")),
        title: name.to_owned(),
        x_label: axis.label.clone(),
        y_label: unit.to_owned(),
        x: axis.kind.clone(),
        from_zero: true,
        lines,
        ..Chart::default()
    }
}

/// The values of the other axes.
fn label(sweep: &str, params: &[Param], axis: &str) -> String {
    let others = params.iter().filter(|param| param.path != axis).map(|param| param.value.as_str());
    let words: Vec<&str> = Some(sweep).filter(|sweep| !sweep.is_empty()).into_iter().chain(others).collect();
    words.join(", ")
}
