//! Plots of a sweep: each quantity over one axis, with lines for the values of a second one, and a
//! panel for each value of the others. If several flows or links have the quantity, they are an
//! axis too: one figure has them all.

use crate::layout::Layout;
use crate::scenario::quantity::{Unit, quantity};
use crate::summary::{PointSummary, Summary};
use ackline_plot::{Chart, Kind, Line, Panels, Style};

/// Lines of a panel; an axis with more values becomes panels unless it is asked for.
const MAX_LINES: usize = 7;
/// Panels of a figure.
const MAX_PANELS: usize = 24;

/// A figure for each of the main metrics, or for all; none if nothing is varied.
#[must_use]
pub fn sweep_charts(summary: &Summary) -> Vec<Panels> {
    let shown = summary.shown_metrics();
    let names: Vec<&str> = shown.iter().map(|place| summary.metrics[*place].name.as_str()).collect();
    figures(&[(String::new(), summary)], &names, &summary.layout)
}

/// The metrics called `names` of several sweeps, each with a name, which is an axis, too.
pub(super) fn figures(sweeps: &[(String, &Summary)], names: &[&str], layout: &Layout) -> Vec<Panels> {
    if sweeps.iter().map(|(_, sweep)| sweep.points.len()).sum::<usize>() < 2 {
        return vec![];
    }
    let figures = groups(sweeps, names).into_iter().flat_map(|group| {
        let table = Table::new(sweeps, &group.members);
        let roles = Roles::choose(&table.axes, layout);
        table.figures(&group.title, &roles)
    });
    figures.collect()
}

/// The name of the axis that tells sweeps apart.
const FOLDER: &str = "folder";
/// The name of the axis that tells flows or links apart.
const OWNER: &str = "of";

/// A metric, and the flow or link that it is of.
#[derive(Clone, Copy)]
struct Member<'a> {
    owner: &'a str,
    name: &'a str,
}

/// Metrics that share a figure.
struct Group<'a> {
    title: String,
    members: Vec<Member<'a>>,
}

/// Puts the metrics together that are the same quantity of several flows or links: `first goodput`,
/// `second goodput`.
fn groups<'a>(sweeps: &[(String, &Summary)], names: &[&'a str]) -> Vec<Group<'a>> {
    let kind = |name: &str| {
        let metric = sweeps.iter().flat_map(|(_, sweep)| &sweep.metrics).find(|metric| metric.name == name);
        metric.map(|metric| (metric.unit, metric.what))
    };
    let mut groups: Vec<Group<'a>> = vec![];
    for name in names {
        let (owner, quantity) = name.split_once(' ').unwrap_or(("", name));
        let is_same =
            |group: &&mut Group<'_>| group.title == quantity && kind(group.members[0].name) == kind(name);
        match groups.iter_mut().find(is_same) {
            Some(group) => group.members.push(Member { owner, name }),
            None => groups.push(Group { title: quantity.to_owned(), members: vec![Member { owner, name }] }),
        }
    }
    for group in &mut groups {
        if let [only] = group.members.as_slice() {
            group.title = only.name.to_owned();
        }
    }
    groups
}

/// Something that is varied.
struct Axis {
    path: String,
    /// Distinct values, in the order of the scenario.
    values: Vec<String>,
    /// The values as numbers of one unit, and what the axis is called then.
    numbers: Option<(Vec<f64>, String)>,
}

impl Axis {
    fn new(path: String, values: Vec<String>) -> Self {
        let found: Option<Vec<(f64, Unit)>> = values.iter().map(|value| quantity(&path, value)).collect();
        // A size without a unit is in bytes.
        let unit = |found: &[(f64, Unit)]| {
            let units = || found.iter().map(|(_, unit)| *unit);
            let unit = units().find(|unit| *unit != Unit::One).unwrap_or(Unit::One);
            units().all(|other| other == unit || (unit, other) == (Unit::Bytes, Unit::One)).then_some(unit)
        };
        let numbers =
            found.filter(|found| path != FOLDER && path != OWNER && found.len() > 1).and_then(|found| {
                let largest = found.iter().map(|(number, _)| number.abs()).fold(0.0, f64::max);
                let (size, unit) = prefixed(unit(&found)?, largest);
                let label = if unit.is_empty() { path.clone() } else { format!("{path} [{unit}]") };
                Some((found.iter().map(|(number, _)| number / size).collect(), label))
            });
        Self { path, values, numbers }
    }

    /// The key without what most keys begin with: its last two parts.
    fn short(&self) -> &str {
        let mut dots = self.path.rmatch_indices('.').skip(1);
        dots.next().map_or(&self.path, |(dot, _)| &self.path[dot + 1..])
    }

    /// A value by itself, if it says what it is of.
    fn label(&self, value: usize) -> String {
        match &self.numbers {
            Some(_) => format!("{} = {}", self.short(), self.values[value]),
            None => self.values[value].clone(),
        }
    }

    fn kind(&self) -> Kind {
        match &self.numbers {
            None => Kind::Names(self.values.clone()),
            Some((numbers, _)) if is_geometric(numbers) => Kind::Log,
            Some(_) => Kind::Linear,
        }
    }
}

/// The unit in which numbers up to `largest` are short.
fn prefixed(unit: Unit, largest: f64) -> (f64, &'static str) {
    let steps: &[(f64, &'static str)] = match unit {
        Unit::Time => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
        Unit::Rate => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
        Unit::Bytes => &[(1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1_024.0, "KiB"), (1.0, "B")],
        Unit::Packets | Unit::One => &[],
    };
    // A whole number or two of the larger unit are shorter in the smaller one, if others are parts
    // of it.
    let fits = steps.iter().find(|(size, _)| largest >= 2.0 * size);
    fits.or(steps.last()).copied().unwrap_or((1.0, unit.name()))
}

/// True if steps from value to value are more even as factors than as differences, and the values
/// lie far apart.
fn is_geometric(numbers: &[f64]) -> bool {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(lowest), Some(highest)) = (sorted.first(), sorted.last()) else { return false };
    if *lowest <= 0.0 || highest / lowest < 5.0 {
        return false;
    }
    // The standard deviation of steps over their mean.
    let unevenness = |steps: Vec<f64>| {
        let mean = steps.iter().sum::<f64>() / steps.len() as f64;
        let squares: f64 = steps.iter().map(|step| (step - mean) * (step - mean)).sum();
        libm::sqrt(squares / steps.len() as f64) / mean
    };
    let pairs = || sorted.windows(2);
    let differences = unevenness(pairs().map(|pair| pair[1] - pair[0]).collect());
    let factors = unevenness(pairs().map(|pair| libm::log(pair[1] / pair[0])).collect());
    match sorted.len() {
        0..3 => highest / lowest >= 20.0,
        _ => factors < differences,
    }
}

/// Which axis is what.
#[derive(Debug, PartialEq, Eq)]
struct Roles {
    x: usize,
    series: Option<usize>,
    facets: Vec<usize>,
}

impl Roles {
    fn choose(axes: &[Axis], layout: &Layout) -> Self {
        let place = |key: &Option<String>| axes.iter().position(|axis| Some(&axis.path) == key.as_ref());
        let (x, series, facet) = (place(&layout.x), place(&layout.series), place(&layout.facet));
        let is_free = |axis: usize| ![x, series, facet].contains(&Some(axis)) && axes[axis].values.len() > 1;
        let count = |axis: &usize| axes[*axis].values.len();
        let with_numbers = |axis: &usize| axes[*axis].numbers.is_some();
        let free = || (0..axes.len()).filter(|axis| is_free(*axis));
        let varied = || free().filter(|axis| axes[*axis].path != OWNER);
        // The last of equals varies fastest, and so is read as belonging together.
        let x = x
            .or_else(|| varied().filter(with_numbers).max_by_key(count))
            .or_else(|| varied().max_by_key(count))
            .unwrap_or(0);
        let rest = || free().filter(move |axis| *axis != x);
        let few = |axis: &usize| count(axis) <= MAX_LINES;
        let series = series
            .or_else(|| rest().find(|axis| axes[*axis].path == FOLDER).filter(few))
            .or_else(|| rest().filter(|axis| !with_numbers(axis)).filter(few).min_by_key(count))
            .or_else(|| rest().filter(few).min_by_key(count));
        let others = rest().filter(|axis| Some(*axis) != series);
        Self { x, series, facets: facet.into_iter().filter(|axis| *axis != x).chain(others).collect() }
    }
}

/// A metric at a point of a sweep.
struct Row<'a> {
    /// The place of its value on each axis.
    at: Vec<usize>,
    summary: &'a Summary,
    point: &'a PointSummary,
    metric: &'a str,
}

/// A group of metrics at all points, by axis.
struct Table<'a> {
    axes: Vec<Axis>,
    rows: Vec<Row<'a>>,
}

impl<'a> Table<'a> {
    fn new(sweeps: &'a [(String, &'a Summary)], members: &[Member<'a>]) -> Self {
        let mut values: Vec<(String, Vec<String>)> = vec![];
        let mut seen = |path: &str, value: &str| {
            let axis = values.iter().position(|(known, _)| known == path).unwrap_or_else(|| {
                values.push((path.to_owned(), vec![]));
                values.len() - 1
            });
            let known = &mut values[axis].1;
            if !known.iter().any(|known| known == value) {
                known.push(value.to_owned());
            }
        };
        let rows = || {
            sweeps
                .iter()
                .flat_map(|(name, sweep)| sweep.points.iter().map(move |point| (name, *sweep, point)))
        };
        for (name, _, point) in rows() {
            seen(FOLDER, name);
            point.params.iter().for_each(|param| seen(&param.path, &param.value));
        }
        // A sweep may lack an axis of another one.
        let value = |name: &'a str, point: &'a PointSummary, path: &str| -> &'a str {
            let param = point.params.iter().find(|param| param.path == path);
            if path == FOLDER { name } else { param.map_or("-", |param| param.value.as_str()) }
        };
        for path in values.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>() {
            let lacking = rows().any(|(name, _, point)| value(name, point, &path) == "-");
            if lacking && let Some((_, known)) = values.iter_mut().find(|(known, _)| *known == path) {
                known.push("-".to_owned());
            }
        }
        values.push((OWNER.to_owned(), members.iter().map(|member| member.owner.to_owned()).collect()));
        let axes: Vec<Axis> = values.into_iter().map(|(path, values)| Axis::new(path, values)).collect();
        let rows = rows().flat_map(|(name, summary, point)| {
            let row = |(number, member): (usize, &Member<'a>)| {
                let place = |axis: &Axis| {
                    let value = value(name, point, &axis.path);
                    axis.values.iter().position(|known| known == value).unwrap_or(0)
                };
                let at = axes.iter().map(|axis| if axis.path == OWNER { number } else { place(axis) });
                Row { at: at.collect(), summary, point, metric: member.name }
            };
            members.iter().enumerate().map(row).collect::<Vec<_>>()
        });
        let rows = rows.collect();
        Self { axes, rows }
    }

    /// The figures of the group: one, unless there are too many panels.
    fn figures(&self, name: &str, roles: &Roles) -> Vec<Panels> {
        let counts: Vec<usize> = roles.facets.iter().map(|axis| self.axes[*axis].values.len()).collect();
        // Axes from the left leave the figure until the panels of the others fit in.
        let mut apart = 0;
        while counts.len() - apart > 2
            || (counts.len() - apart > 1 && counts[apart..].iter().product::<usize>() > MAX_PANELS)
        {
            apart += 1;
        }
        let (outer, inner) = roles.facets.split_at(apart);
        let columns = match inner {
            [_, last] if self.axes[*last].values.len() <= 4 => self.axes[*last].values.len(),
            _ => match counts[apart..].iter().product::<usize>() {
                few @ 0..=3 => few.max(1),
                4 => 2,
                5 | 6 | 9 => 3,
                _ => 4,
            },
        };
        let figures = self.combinations(outer).into_iter().map(|outer_values| {
            let mut charts: Vec<Chart> = vec![];
            for inner_values in self.combinations(inner) {
                let all: Vec<(usize, usize)> = outer_values.iter().chain(&inner_values).copied().collect();
                let mut chart = self.chart(name, roles, &all);
                chart.title = self.values_in_words(&inner_values);
                charts.push(chart);
            }
            charts.retain(|chart| !chart.is_empty());
            let from_zero = starts_at_zero(&charts);
            charts.iter_mut().for_each(|chart| chart.from_zero = from_zero);
            let of = self.values_in_words(&outer_values);
            let file = |text: &str| text.replace([' ', '.', '/', '>', '='], "-");
            let (title, suffix) = if of.is_empty() {
                (name.to_owned(), String::new())
            } else {
                (format!("{name}, {of}"), format!("-{}", file(&of.replace(" = ", "-"))))
            };
            let columns = columns.min(charts.len().max(1));
            let name = format!("sweep-{}{suffix}", file(name));
            Panels { name, title, charts, columns, same_x: true, same_y: true }
        });
        figures.filter(|figure| !figure.charts.is_empty()).collect()
    }

    /// All combinations of values of some axes, the last one varying fastest.
    fn combinations(&self, axes: &[usize]) -> Vec<Vec<(usize, usize)>> {
        axes.iter().fold(vec![vec![]], |combinations, axis| {
            let values = 0..self.axes[*axis].values.len();
            let with = |old: &Vec<(usize, usize)>| {
                let old = old.clone();
                values.clone().map(move |value| old.iter().copied().chain([(*axis, value)]).collect())
            };
            combinations.iter().flat_map(with).collect()
        })
    }

    fn values_in_words(&self, values: &[(usize, usize)]) -> String {
        let words = values.iter().map(|(axis, value)| {
            let (axis, value) = (&self.axes[*axis], &self.axes[*axis].values[*value]);
            if axis.path == OWNER { value.clone() } else { format!("{} = {value}", axis.short()) }
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// One panel: the points with these values.
    fn chart(&self, name: &str, roles: &Roles, values: &[(usize, usize)]) -> Chart {
        let axis = &self.axes[roles.x];
        let kind = axis.kind();
        // Between names there is nothing.
        let style = if matches!(kind, Kind::Names(_)) { Style::Points } else { Style::Marked };
        let series = roles.series.map(|series| &self.axes[series]);
        let labels: Vec<String> = series.map_or_else(
            || vec![String::new()],
            |series| (0..series.values.len()).map(|value| series.label(value)).collect(),
        );
        let mut lines: Vec<Line> =
            labels.into_iter().map(|label| Line { label, style, ..Line::default() }).collect();
        let mut unit = "";
        for row in self.rows.iter().filter(|row| values.iter().all(|(axis, value)| row.at[*axis] == *value)) {
            let Some(place) = row.summary.metrics.iter().position(|metric| metric.name == row.metric) else {
                continue;
            };
            unit = row.summary.metrics[place].unit;
            let Some(estimate) = row.point.estimates[place] else { continue };
            let at = row.at[roles.x];
            let x = axis.numbers.as_ref().map_or(at as f64, |(numbers, _)| numbers[at]);
            let line = &mut lines[roles.series.map_or(0, |series| row.at[series])];
            line.points.push((x, estimate.mean));
            line.band.extend(estimate.ci.map(|(low, high)| (x, low, high)));
        }
        lines.retain(|line| !line.points.is_empty());
        for line in &mut lines {
            line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
            line.band.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        Chart {
            name: name.to_owned(),
            x_label: axis.numbers.as_ref().map_or(&axis.path, |(_, label)| label).clone(),
            y_label: if unit.is_empty() { name.to_owned() } else { unit.to_owned() },
            x: kind,
            lines,
            ..Chart::default()
        }
    }
}

/// True if the lowest value is less than half of the highest, or all are the same within two per
/// cent. Otherwise an axis from zero would hide how the values differ.
fn starts_at_zero(charts: &[Chart]) -> bool {
    let lines = || charts.iter().flat_map(|chart| &chart.lines);
    let values = || {
        let ends = lines().flat_map(|line| &line.band).flat_map(|band| [band.1, band.2]);
        lines().flat_map(|line| &line.points).map(|point| point.1).chain(ends)
    };
    let (lowest, highest) =
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    lowest < highest / 2.0 || highest - lowest < 0.02 * highest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Param;
    use crate::stats::Estimate;
    use crate::summary::Metric;

    /// A sweep over these axes, with one metric: the number of the point.
    fn sweep(axes: &[(&str, &[&str])]) -> Summary {
        let mut points: Vec<Vec<Param>> = vec![vec![]];
        for (path, values) in axes {
            let with = |old: &Vec<Param>| {
                let old = old.clone();
                values.iter().map(move |value| {
                    let param = Param { path: (*path).to_owned(), value: (*value).to_owned() };
                    old.iter().cloned().chain([param]).collect()
                })
            };
            points = points.iter().flat_map(with).collect();
        }
        let points = points.into_iter().enumerate().map(|(number, params)| PointSummary {
            params,
            runs: 2,
            estimates: vec![Estimate::of(&[number as f64, number as f64 + 1.0])],
        });
        Summary {
            axes: axes.iter().map(|(path, _)| (*path).to_owned()).collect(),
            metrics: vec![Metric { name: "bulk goodput".to_owned(), unit: "Mbit/s", what: "", main: true }],
            points: points.collect(),
            ..Summary::default()
        }
    }

    const CC: (&str, &[&str]) = ("conn.cc", &["reno", "cubic"]);
    const LIMIT: (&str, &[&str]) = ("link.wire.queue.limit", &["5ms", "10ms", "20ms", "40ms"]);
    const DELAY: (&str, &[&str]) = ("link.wire.delay", &["5ms", "20ms", "80ms"]);

    #[test]
    fn three_axes_become_bottom_lines_and_panels() {
        let figures = sweep_charts(&sweep(&[CC, DELAY, LIMIT]));
        let [figure] = figures.as_slice() else { panic!("{figures:?}") };
        assert_eq!((figure.name.as_str(), figure.columns), ("sweep-bulk-goodput", 3));
        let titles: Vec<&str> = figure.charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["wire.delay = 5ms", "wire.delay = 20ms", "wire.delay = 80ms"]);
        let last = &figure.charts[2];
        assert_eq!((last.x_label.as_str(), &last.x), ("link.wire.queue.limit [ms]", &Kind::Log));
        let labels: Vec<&str> = last.lines.iter().map(|line| line.label.as_str()).collect();
        assert_eq!(labels, ["reno", "cubic"]);
        // CUBIC's last point is the last of all.
        assert_eq!(last.lines[1].points[3], (40.0, 23.5));
        assert!(last.lines[1].band.len() == 4 && last.lines[1].band[3].2 > 23.5);
    }

    #[test]
    fn a_quantity_of_several_flows_is_one_figure() {
        let with_flows = |axes: &[(&str, &[&str])]| {
            let mut summary = sweep(axes);
            let metric = |name: &str| Metric { name: name.to_owned(), ..summary.metrics[0].clone() };
            let metrics = ["first goodput", "second goodput"].map(metric);
            summary.metrics = metrics.to_vec();
            for point in &mut summary.points {
                point.estimates.push(Some(Estimate { mean: 100.0, ..point.estimates[0].unwrap() }));
            }
            sweep_charts(&summary)
        };
        let labels = |chart: &Chart| chart.lines.iter().map(|line| line.label.clone()).collect::<Vec<_>>();
        let figures = with_flows(&[CC]);
        let [figure] = figures.as_slice() else { panic!("{figures:?}") };
        assert_eq!((figure.name.as_str(), figure.title.as_str()), ("sweep-goodput", "goodput"));
        assert_eq!(
            (figure.charts.len(), labels(&figure.charts[0])),
            (1, vec!["first".into(), "second".into()])
        );
        assert_eq!(figure.charts[0].x, Kind::Names(vec!["reno".to_owned(), "cubic".to_owned()]));
        assert_eq!(figure.charts[0].lines[1].points, [(0.0, 100.0), (1.0, 100.0)]);
        // Lines are taken already: each flow has a panel.
        let figures = with_flows(&[CC, LIMIT]);
        let [figure] = figures.as_slice() else { panic!("{figures:?}") };
        let titles: Vec<&str> = figure.charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(
            (titles, labels(&figure.charts[0])),
            (vec!["first", "second"], vec!["reno".into(), "cubic".into()])
        );
    }

    #[test]
    fn an_axis_begins_at_zero_unless_that_hides_differences() {
        let chart = |values: &[f64]| {
            let points = values.iter().map(|value| (0.0, *value)).collect();
            [Chart { lines: vec![Line { points, ..Line::default() }], ..Chart::default() }]
        };
        assert!(starts_at_zero(&chart(&[99.98, 100.0])) && starts_at_zero(&chart(&[1.0, 10.0])));
        assert!(!starts_at_zero(&chart(&[80.0, 100.0])));
    }

    #[test]
    fn roles_can_be_given_by_the_end_of_a_key() {
        let mut summary = sweep(&[CC, DELAY, LIMIT]);
        let given = |x: &str, series: &str, facet: &str| {
            let key = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let layout = Layout { x: key(x), series: key(series), facet: key(facet) };
            layout
                .find(["conn.cc", "link.wire.delay", "link.wire.queue.limit", "link.other.delay"].into_iter())
        };
        summary.layout = given("wire.delay", "limit", "").unwrap();
        let figures = sweep_charts(&summary);
        assert_eq!(figures[0].charts.len(), 2);
        assert_eq!(figures[0].charts[0].title, "conn.cc = reno");
        assert_eq!(figures[0].charts[0].lines[3].label, "queue.limit = 40ms");
        assert_eq!(
            given("delay", "", "").unwrap_err(),
            "--x delay: this may be link.wire.delay or link.other.delay"
        );
        assert!(
            given("", "rate", "")
                .unwrap_err()
                .starts_with("--series rate: this is not swept; the axes are conn.cc, ")
        );
        assert_eq!(given("cc", "", "conn.cc").unwrap_err(), "conn.cc has two roles in the plots");
    }

    #[test]
    fn no_panel_has_a_hundred_lines_and_no_figure_a_hundred_panels() {
        let many: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (a, b, c) =
            (("app.a.count", &many[..12]), ("app.b.count", &many[..10]), ("app.c.count", &many[..11]));
        for axes in [&[a, b][..], &[a, b, c], &[CC, a, b, c], &[("seed", &many), CC]] {
            let figures = sweep_charts(&sweep(axes));
            let panels = || figures.iter().flat_map(|figure| &figure.charts);
            let points = panels().flat_map(|chart| &chart.lines).map(|line| line.points.len());
            assert_eq!(points.sum::<usize>(), axes.iter().map(|(_, values)| values.len()).product::<usize>());
            assert!(panels().all(|chart| chart.lines.len() <= MAX_LINES));
            assert!(figures.iter().all(|figure| figure.charts.len() <= MAX_PANELS));
            let mut names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
            names.dedup();
            assert_eq!(names.len(), figures.len());
        }
    }

    #[test]
    fn values_that_grow_by_factors_have_a_logarithmic_axis() {
        for (values, geometric) in [
            (&[2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0][..], true),
            (&[10.0, 100.0, 1_000.0], true),
            (&[0.0, 1.0, 10.0, 100.0], false),
            (&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0], false),
            (&[1.0, 2.0, 4.0], false),
            (&[1.0, 100.0], true),
        ] {
            assert_eq!(is_geometric(values), geometric, "{values:?}");
        }
    }

    #[test]
    fn mixed_units_are_names() {
        let axis = Axis::new("link.wire.queue.limit".to_owned(), vec!["50p".to_owned(), "10ms".to_owned()]);
        assert!(axis.numbers.is_none());
        let axis = Axis::new("link.wire.queue.limit".to_owned(), vec!["1536".to_owned(), "6k".to_owned()]);
        assert_eq!(axis.numbers.unwrap(), (vec![1.5, 6.0], "link.wire.queue.limit [KiB]".to_owned()));
        let axis = Axis::new("link.wire.rate".to_owned(), vec!["1mbit".to_owned(), "100mbit".to_owned()]);
        assert_eq!(axis.numbers.unwrap(), (vec![1.0, 100.0], "link.wire.rate [Mbit/s]".to_owned()));
    }
}
