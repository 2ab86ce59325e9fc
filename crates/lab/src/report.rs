//! The report: one HTML file that holds everything it shows, and the same figures as files of their
//! own.
//!
//! It leads with the figures that answer the question of the scenario. The numbers follow, then the
//! other figures, and at the end the scenario itself.

use crate::error::RunError;
use crate::figures::sweep_charts;
use crate::folder::{Folder, stem};
use crate::run_plots::RunPlots;
use crate::scenario::Scenario;
use crate::summary::Summary;
use ackline_plot::{Chart, Figure, Line, OVERHANG, Panels, PlotOptions, escaped};
use std::fmt::Write as _;

/// Lines of one plot that are told apart by colour alone.
const MAX_LINES: usize = 7;

/// Points whose first plots stand at the top.
const MAX_FACETS: usize = 6;

/// A group of figures under a heading.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The heading.
    pub heading: String,
    /// What the figures are of, in a sentence.
    pub note: String,
    /// Shown when the page is opened; else behind its heading.
    pub open: bool,
    /// The figures, as SVG elements.
    pub svgs: Vec<String>,
}

/// The figures of a report.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    /// Above the table, as SVG elements.
    pub leading: Vec<String>,
    /// What they are of, in a sentence.
    pub note: String,
    /// Below the table.
    pub groups: Vec<Group>,
}

/// Draws the report of a batch, and the figures as files. `drawn`: the points whose plots over time
/// are there.
pub(crate) fn write(
    folder: &Folder,
    scenario: &Scenario,
    summary: &Summary,
    drawn: &[usize],
    options: &PlotOptions,
) -> Result<(), RunError> {
    let runs: Vec<Run> = drawn.iter().filter_map(|point| Run::read(folder, scenario, *point)).collect();
    let mut sweep: Vec<Figure> = sweep_charts(summary).into_iter().map(Figure::from).collect();
    if !summary.invalid.is_empty() {
        let mark = format!("{} of the runs", summary.invalid.len());
        sweep.iter_mut().for_each(|figure| figure.mark_invalid(&mark));
    }
    for run in &runs {
        let (leading, others) = run.plots.figures();
        let mut stacked = leading.iter().chain(&others).filter(|figure| matches!(figure, Figure::Panels(_)));
        if let Some(figure) = stacked.next() {
            let name = format!("{}.{}", run.stem, figure.name());
            file(folder, &name, &figure.to_file(options), options)?;
        }
        for chart in &run.plots.charts {
            file(folder, &format!("{}.{}", run.stem, chart.name), &chart.to_file(options), options)?;
        }
    }
    for figure in &sweep {
        file(folder, figure.name(), &figure.to_file(options), options)?;
    }
    let all = summary.points.len();
    let first = first_plots(&runs).filter(|_| runs.len() == all && all <= MAX_FACETS);
    if let Some(figure) = &first {
        file(folder, figure.name(), &figure.to_file(options), options)?;
    }
    let pictures = pictures(scenario, all, &runs, sweep, first);
    folder.write("report.html", html(scenario, summary, &pictures).as_bytes())
}

fn file(folder: &Folder, name: &str, content: &[u8], options: &PlotOptions) -> Result<(), RunError> {
    folder.write(&format!("plots/{name}.{}", options.format.ending()), content)
}

/// The plots of one point.
struct Run {
    stem: String,
    /// The values of the point.
    values: String,
    /// The same without the names of the keys, if there are several.
    brief: String,
    plots: RunPlots,
}

impl Run {
    fn read(folder: &Folder, scenario: &Scenario, point: usize) -> Option<Self> {
        let stem = stem(point, 0);
        let plots = folder.plots(&stem)?;
        let params = scenario.params(point);
        let values: Vec<String> =
            params.iter().map(|param| format!("{} = {}", param.path, param.value)).collect();
        let brief = match params.as_slice() {
            [_] => values.concat(),
            _ => params.iter().map(|param| param.value.as_str()).collect::<Vec<_>>().join(", "),
        };
        Some(Self { stem, values: values.join(", "), brief, plots })
    }
}

/// The first plot of each point in one figure: lines over time side by side with common axes,
/// distributions in one plot. `None` if the points have not all the same kind of plot.
fn first_plots(runs: &[Run]) -> Option<Figure> {
    let first: Vec<(&Run, &Chart)> =
        runs.iter().filter_map(|run| Some((run, run.plots.charts.first()?))).collect();
    let [(_, one), _, ..] = first.as_slice() else { return None };
    if first.iter().any(|(_, chart)| chart.name != one.name || chart.y_label != one.y_label) {
        return None;
    }
    let name = format!("points-{}", one.name);
    let title = one.title.split(" of ").next().unwrap_or_default().to_owned();
    if !one.over_time {
        let lines = first.iter().flat_map(|(run, chart)| {
            let single = chart.lines.len() == 1;
            let named = move |line: &Line| {
                if single { run.brief.clone() } else { format!("{}: {}", run.brief, line.label) }
            };
            chart.lines.iter().map(move |line| Line { label: named(line), ..line.clone() })
        });
        let lines: Vec<Line> = lines.collect();
        if lines.len() <= MAX_LINES {
            let ends = first.iter().filter_map(|(_, chart)| chart.x_range);
            let x_range = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            return Some(Chart { name, title, lines, x_range, ..(*one).clone() }.into());
        }
    }
    let charts: Vec<Chart> =
        first.iter().map(|(run, chart)| Chart { title: run.brief.clone(), ..(*chart).clone() }).collect();
    let columns = if charts.len() > 3 { 2 } else { 1 };
    Some(Panels { name, title, columns, charts, same_x: true, same_y: true }.into())
}

fn svgs(figures: &[Figure]) -> Vec<String> {
    figures.iter().map(Figure::to_svg).collect()
}

fn pictures(
    scenario: &Scenario,
    points: usize,
    runs: &[Run],
    mut sweep: Vec<Figure>,
    first: Option<Figure>,
) -> Pictures {
    let of_seed = format!("The run with seed {}.", scenario.seed(0));
    let mut pictures = Pictures::default();
    match (points, first, runs) {
        (1, _, [run]) => {
            let (leading, others) = run.plots.figures();
            pictures.leading = svgs(&leading);
            pictures.note = of_seed;
            pictures.groups.push(Group {
                heading: "More of the run".to_owned(),
                note: String::new(),
                open: true,
                svgs: svgs(&others),
            });
            return pictures;
        }
        (_, Some(figure), _) => {
            pictures.leading = vec![figure.to_svg()];
            pictures.note = format!("Of each point, the run with seed {}.", scenario.seed(0));
        }
        _ => {
            let rest = sweep.split_off(sweep.len().min(1));
            pictures.leading = svgs(&sweep);
            "Means over the runs of each point.".clone_into(&mut pictures.note);
            sweep = rest;
        }
    }
    pictures.groups.push(Group {
        heading: "Over the sweep".to_owned(),
        note: "Means over the runs of each point; bands are 95 % confidence intervals.".to_owned(),
        open: true,
        svgs: svgs(&sweep),
    });
    for run in runs {
        let (leading, others) = run.plots.figures();
        let figures = svgs(&leading).into_iter().chain(svgs(&others)).collect();
        pictures.groups.push(Group {
            heading: run.values.clone(),
            note: of_seed.clone(),
            open: false,
            svgs: figures,
        });
    }
    pictures
}

const STYLE: &str = include_str!("report/style.css");
const SCRIPT: &str = include_str!("report/zoom.js");

/// The report of a batch.
#[must_use]
pub fn html(scenario: &Scenario, summary: &Summary, pictures: &Pictures) -> String {
    let title = escaped(scenario.title());
    let name = if scenario.name() == "-" { "standard input" } else { scenario.name() };
    let mut text = format!("<h1>{title}</h1>\n");
    if !scenario.description().is_empty() {
        let _ = writeln!(text, "<p>{}</p>", escaped(scenario.description()));
    }
    let _ = writeln!(
        text,
        "<p class=\"dim\">{}: {}, {}, seeds from {}. ackline {}.</p>",
        escaped(name),
        count(scenario.points(), "point"),
        count(scenario.runs(), "run"),
        scenario.seed(0),
        env!("CARGO_PKG_VERSION")
    );
    figures(&mut text, &pictures.leading);
    if !pictures.note.is_empty() && !pictures.leading.is_empty() {
        let _ = writeln!(text, "<p class=\"dim\">{}</p>", escaped(&pictures.note));
    }
    let _ = writeln!(text, "<h2>Results</h2>\n<p class=\"dim\">{}</p>", escaped(&summary.caption()));
    if let Some(conditions) = summary.in_real_time() {
        let _ = writeln!(text, "<p class=\"dim\">{}</p>", escaped(&conditions));
    }
    for reason in &summary.invalid {
        let _ = writeln!(text, "<p><strong>INVALID</strong>: {}</p>", escaped(reason));
    }
    text += &table(summary);
    text += "<details><summary>What the columns mean</summary><dl>\n";
    for metric in &summary.metrics {
        let _ = writeln!(text, "<dt>{}</dt><dd>{}</dd>", escaped(&metric.heading()), escaped(metric.what));
    }
    text += "</dl></details>\n";
    let groups = || pictures.groups.iter().filter(|group| !group.svgs.is_empty());
    if groups().next().is_some() {
        text += "<h2>Plots</h2>\n";
    }
    for group in groups() {
        let open = if group.open { " open" } else { "" };
        let _ =
            writeln!(text, "<details class=\"plots\"{open}><summary>{}</summary>", escaped(&group.heading));
        if !group.note.is_empty() {
            let _ = writeln!(text, "<p class=\"dim\">{}</p>", escaped(&group.note));
        }
        figures(&mut text, &group.svgs);
        text += "</details>\n";
    }
    let _ = writeln!(
        text,
        "<h2>Scenario</h2>\n<details open><summary>{}</summary><pre>{}</pre></details>",
        escaped(name),
        escaped(&scenario.to_toml())
    );
    page(scenario.title(), &text)
}

/// A page that needs no other file. `body` is HTML; plots over time in it zoom together.
#[must_use]
pub fn page(title: &str, body: &str) -> String {
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n{body}",
        escaped(title)
    );
    // Without plots over time there is nothing to zoom.
    if body.contains(" class=\"p\" ") {
        let _ = writeln!(text, "<script>const PAD={OVERHANG};\n{SCRIPT}</script>");
    }
    text + "</body>\n</html>\n"
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn figures(text: &mut String, svgs: &[String]) {
    for svg in svgs {
        let _ = writeln!(text, "<figure>{}</figure>", svg.trim());
    }
}
fn table(summary: &Summary) -> String {
    let mut text = String::from("<div class=\"wide\"><table>\n");
    if let [point] = summary.points.as_slice() {
        text += "<tr><th class=\"name\"></th><th>value</th><th class=\"name\">unit</th></tr>\n";
        for (metric, estimate) in summary.metrics.iter().zip(&point.estimates) {
            let _ = writeln!(
                text,
                "<tr><td class=\"name\">{}</td>{}<td class=\"name\">{}</td></tr>",
                escaped(&metric.name),
                cell(estimate.as_ref()),
                metric.unit
            );
        }
    } else {
        text += "<tr>";
        for axis in &summary.axes {
            let _ = write!(text, "<th class=\"name\">{}</th>", escaped(axis));
        }
        for metric in &summary.metrics {
            let unit = if metric.unit.is_empty() { String::new() } else { format!("<br>{}", metric.unit) };
            let _ = write!(text, "<th>{}{unit}</th>", escaped(&metric.name));
        }
        text += "</tr>\n";
        for point in &summary.points {
            text += "<tr>";
            for param in &point.params {
                let _ = write!(text, "<td class=\"name\">{}</td>", escaped(&param.value));
            }
            for estimate in &point.estimates {
                text += &cell(estimate.as_ref());
            }
            text += "</tr>\n";
        }
    }
    text + "</table></div>\n"
}

fn cell(estimate: Option<&crate::stats::Estimate>) -> String {
    use ackline_plot::short;
    match estimate {
        None => "<td>-</td>".to_owned(),
        Some(estimate) => {
            let interval = estimate.ci.map_or(String::new(), |(low, high)| {
                format!("<span class=\"ci\">{} to {}</span>", short(low), short(high))
            });
            format!("<td>{}{interval}</td>", short(estimate.mean))
        }
    }
}
