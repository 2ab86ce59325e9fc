//! Summaries: for each point of a sweep, each number over its repetitions.

pub(crate) mod compare;

use crate::grid::{align, trimmed};
use crate::layout::Layout;
use crate::results::RunResult;
use crate::scenario::Param;
use crate::stats::Estimate;
use ackline_plot::short;
use comfy_table::{ContentArrangement, Table, TableStyle, presets};
use serde::Serialize;
use std::fmt::Write as _;

/// Numbers of all runs, by point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// What is varied.
    pub axes: Vec<String>,
    /// What is measured.
    pub metrics: Vec<Metric>,
    /// The points, in order.
    pub points: Vec<PointSummary>,
    /// Begin and end of the window, s.
    pub window_s: (f64, f64),
    /// Time between two samples, s.
    pub interval_s: f64,
    /// The policies, by kind.
    pub policies: PolicyUse,
    /// Runs in real time whose times the machine did not keep, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<String>,
    /// What runs in real time depend on and their scenario does not say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// Which axis is what in plots.
    #[serde(skip)]
    pub layout: Layout,
    /// Show all metrics in plots and on a terminal, and not only the main ones.
    #[serde(skip)]
    pub all_metrics: bool,
}

/// Which policies handled the data of which applications.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PolicyUse {
    /// Congestion controls of the senders.
    pub cc: Vec<UsedPolicy>,
    /// ACK policies of the receivers.
    pub ack: Vec<UsedPolicy>,
    /// Responses to a timeout of the senders.
    pub rto: Vec<UsedPolicy>,
    /// Schedulers of the senders' hosts.
    pub sched: Vec<UsedPolicy>,
}

/// A policy, and the applications whose data it handled in any run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsedPolicy {
    /// Its name.
    pub name: String,
    /// The applications.
    pub apps: Vec<String>,
}

impl PolicyUse {
    fn of(results: &[RunResult]) -> Self {
        let mut uses = Self::default();
        for flow in results.iter().flat_map(|run| &run.flows) {
            let Self { cc, ack, rto, sched } = &mut uses;
            for (used, name) in [(cc, &flow.cc), (ack, &flow.ack), (rto, &flow.rto), (sched, &flow.sched)] {
                let place = used.iter().position(|used| used.name == *name).unwrap_or_else(|| {
                    used.push(UsedPolicy { name: name.clone(), apps: vec![] });
                    used.len() - 1
                });
                if !used[place].apps.contains(&flow.app) {
                    used[place].apps.push(flow.app.clone());
                }
            }
        }
        uses
    }

    /// As a sentence. Applications are named if they differ.
    fn sentence(&self) -> String {
        let kinds = [("cc", &self.cc), ("ack", &self.ack), ("rto", &self.rto), ("sched", &self.sched)];
        let phrases = kinds.map(|(kind, used)| {
            let differ = used.windows(2).any(|pair| pair[0].apps != pair[1].apps);
            let names = used.iter().map(|used| match differ {
                true => format!("{} ({})", used.name, used.apps.join(", ")),
                false => used.name.clone(),
            });
            format!("{kind} {}", names.collect::<Vec<_>>().join(", "))
        });
        format!("Policies: {}.", phrases.join("; "))
    }
}

/// A number that runs give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// What it is of, in words.
    pub what: &'static str,
    /// It answers what most readers ask first.
    pub main: bool,
}

impl Metric {
    /// Name and unit.
    #[must_use]
    pub fn heading(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} [{}]", self.name, self.unit) }
    }
}

/// One point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointSummary {
    /// Its values.
    pub params: Vec<Param>,
    /// Runs.
    pub runs: usize,
    /// One estimate per metric; `None` if no run gave the number.
    pub estimates: Vec<Option<Estimate>>,
}

impl Summary {
    /// Of results in the order of points.
    #[must_use]
    pub fn of(results: &[RunResult]) -> Self {
        let mut metrics: Vec<Metric> = vec![];
        let mut points: Vec<(usize, Vec<Param>, Vec<&RunResult>)> = vec![];
        for result in results {
            let mut after = 0;
            for reading in result.readings() {
                // New ones go behind the one that they follow in their run.
                match metrics.iter().position(|metric| metric.name == reading.name) {
                    Some(place) => after = place + 1,
                    None => {
                        let metric = Metric {
                            name: reading.name,
                            unit: reading.unit,
                            what: reading.what,
                            main: reading.main,
                        };
                        metrics.insert(after, metric);
                        after += 1;
                    }
                }
            }
            match points.last_mut().filter(|(point, _, _)| *point == result.point) {
                Some((_, _, runs)) => runs.push(result),
                None => points.push((result.point, result.params.clone(), vec![result])),
            }
        }
        let points = points
            .into_iter()
            .map(|(_, params, runs)| {
                let readings: Vec<_> = runs.iter().map(|run| run.readings()).collect();
                let estimate = |metric: &Metric| {
                    let of_run = |run: &Vec<crate::results::Reading>| {
                        run.iter().find(|reading| reading.name == metric.name).map(|reading| reading.value)
                    };
                    let values: Vec<f64> = readings.iter().filter_map(of_run).collect();
                    Estimate::of(&values)
                };
                PointSummary { params, runs: runs.len(), estimates: metrics.iter().map(estimate).collect() }
            })
            .collect();
        let first = results.first();
        Self {
            axes: first
                .map(|run| run.params.iter().map(|param| param.path.clone()).collect())
                .unwrap_or_default(),
            metrics,
            points,
            window_s: first.map_or((0.0, 0.0), |run| run.window_s),
            interval_s: first.map_or(0.0, |run| run.interval_s),
            policies: PolicyUse::of(results),
            invalid: results.iter().filter_map(invalid).collect(),
            conditions: conditions(results),
            layout: Layout::default(),
            all_metrics: false,
        }
    }

    /// The places of the metrics that are shown if room is scarce: all that were asked for, or the
    /// main ones that are not zero at every point.
    #[must_use]
    pub fn shown_metrics(&self) -> Vec<usize> {
        let all = 0..self.metrics.len();
        if self.all_metrics {
            return all.collect();
        }
        let says_something = |place: usize| {
            let mut estimates = self.points.iter().filter_map(|point| point.estimates[place]);
            estimates.any(|estimate| estimate.mean != 0.0)
        };
        let main: Vec<usize> =
            all.clone().filter(|place| self.metrics[*place].main && says_something(*place)).collect();
        if main.is_empty() { all.collect() } else { main }
    }

    /// What the numbers are, in sentences: window, samples, repetitions, policies.
    #[must_use]
    pub fn caption(&self) -> String {
        self.caption_with("[95 % confidence interval of the mean, bootstrap]")
    }

    fn caption_with(&self, interval: &str) -> String {
        let (from, until) = self.window_s;
        let most = self.points.iter().map(|point| point.runs).max().unwrap_or(0);
        let mut text = format!(
            "Window: {} s to {} s of each run; sampled every {} ms. ",
            short(from),
            short(until),
            short(self.interval_s * 1e3)
        );
        if most > 1 {
            let _ = write!(text, "Each value: mean over {most} runs with different seeds {interval}.");
        } else {
            text += "One run per point.";
        }
        format!("{text} {}", self.policies.sentence())
    }

    /// The numbers of a single point: a row for each metric.
    fn point_table(
        &self,
        point: &PointSummary,
        style: TableStyle,
        cell: &dyn Fn(&Estimate) -> String,
    ) -> Table {
        let mut table = empty(style);
        table.set_header(vec!["", "value", "unit"]);
        for (metric, estimate) in self.metrics.iter().zip(&point.estimates) {
            let value = estimate.as_ref().map_or_else(nothing, cell);
            table.add_row(vec![metric.name.clone(), value, metric.unit.to_owned()]);
        }
        align(&mut table);
        table
    }

    /// A row for each point, with these metrics.
    fn sweep_table(
        &self,
        metrics: &[usize],
        style: TableStyle,
        heading: &dyn Fn(String) -> String,
        cell: &dyn Fn(&Estimate) -> String,
    ) -> Table {
        let mut table = empty(style);
        let headings = metrics.iter().map(|place| self.metrics[*place].heading());
        table.set_header(self.axes.iter().cloned().chain(headings).map(heading).collect::<Vec<_>>());
        for point in &self.points {
            let params = point.params.iter().map(|param| param.value.clone());
            let cells =
                metrics.iter().map(|place| point.estimates[*place].as_ref().map_or_else(nothing, cell));
            table.add_row(params.chain(cells).collect::<Vec<_>>());
        }
        align(&mut table);
        table
    }

    /// The summary for a terminal of a hundred columns: of several points the [shown
    /// metrics](Self::shown_metrics), in as many tables as they need.
    #[must_use]
    pub fn to_text(&self) -> String {
        let caption =
            wrapped(&self.caption_with("± the 95 % confidence interval of the mean (bootstrap)"), WIDTH);
        let marks = self.invalid.iter().map(|reason| wrapped(&format!("\nINVALID: {reason}"), WIDTH));
        let conditions =
            self.in_real_time().map(|text| wrapped(&format!("\n{text}"), WIDTH)).unwrap_or_default();
        let caption = caption + &conditions + &marks.collect::<String>();
        if let [point] = self.points.as_slice() {
            return format!(
                "{caption}\n\n{}\n",
                trimmed(&self.point_table(point, presets::NOTHING, &plus_minus))
            );
        }
        let table = |metrics: &[usize]| {
            // A word per line keeps columns narrow.
            let heading = |text: String| text.replace(' ', "\n");
            trimmed(&self.sweep_table(metrics, presets::NOTHING, &heading, &plus_minus))
        };
        let fits = |text: &str| text.lines().all(|line| line.chars().count() <= WIDTH);
        let shown = self.shown_metrics();
        let mut text = caption + "\n";
        let mut rest = shown.as_slice();
        while !rest.is_empty() {
            let most = (1..=rest.len()).rev().find(|count| fits(&table(&rest[..*count]))).unwrap_or(1);
            let _ = write!(text, "\n{}\n", table(&rest[..most]));
            rest = &rest[most..];
        }
        text
    }

    /// What runs in real time depend on, as a sentence.
    pub(crate) fn in_real_time(&self) -> Option<String> {
        (!self.conditions.is_empty()).then(|| format!("In real time: {}.", self.conditions.join("; ")))
    }

    /// Tables in Markdown: the means, what they mean, and, if there are repetitions, how they are
    /// spread.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let style = presets::ASCII_MARKDOWN;
        let all: Vec<usize> = (0..self.metrics.len()).collect();
        let table = match self.points.as_slice() {
            [point] => self.point_table(point, style, &with_interval),
            _ => self.sweep_table(&all, style, &|heading| heading, &with_interval),
        };
        let marks: String = self.invalid.iter().map(|reason| format!("\n\n**INVALID**: {reason}")).collect();
        let conditions = self.in_real_time().map(|text| format!("\n\n{text}")).unwrap_or_default();
        let mut text = format!("{}{conditions}{marks}\n\n{}\n\n", self.caption(), trimmed(&table));
        for metric in &self.metrics {
            let _ = writeln!(text, "- **{}**: {}", metric.heading(), metric.what);
        }
        if self.points.iter().any(|point| point.runs > 1) {
            let _ = write!(text, "\nSpread over runs:\n\n{}\n", trimmed(&self.spread_table()));
        }
        text
    }

    fn spread_table(&self) -> Table {
        let mut table = empty(presets::ASCII_MARKDOWN);
        let columns = ["metric", "runs", "mean", "sd", "min", "median", "p95", "max", "95 % CI of the mean"];
        table.set_header(self.axes.iter().map(String::as_str).chain(columns).collect::<Vec<_>>());
        for point in &self.points {
            for (metric, estimate) in self.metrics.iter().zip(&point.estimates) {
                let Some(estimate) = estimate else { continue };
                let params = point.params.iter().map(|param| param.value.clone());
                let numbers = [
                    estimate.mean,
                    estimate.sd.unwrap_or(0.0),
                    estimate.min,
                    estimate.p50,
                    estimate.p95,
                    estimate.max,
                ];
                let interval = estimate
                    .ci
                    .map_or(String::new(), |(low, high)| format!("{} to {}", short(low), short(high)));
                let row = params
                    .chain([metric.heading(), estimate.runs.to_string()])
                    .chain(numbers.map(short))
                    .chain([interval]);
                table.add_row(row.collect::<Vec<_>>());
            }
        }
        align(&mut table);
        table
    }

    /// One line per point and metric, all digits.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = String::from("point");
        for axis in &self.axes {
            let _ = write!(text, ",{}", field(axis));
        }
        text += ",metric,unit,runs,mean,sd,min,p50,p95,max,ci95_low,ci95_high\n";
        for (place, point) in self.points.iter().enumerate() {
            for (metric, estimate) in self.metrics.iter().zip(&point.estimates) {
                let Some(estimate) = estimate else { continue };
                let _ = write!(text, "{place}");
                for param in &point.params {
                    let _ = write!(text, ",{}", field(&param.value));
                }
                let Estimate { runs, mean, sd, min, p50, p95, max, ci } = *estimate;
                let optional = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
                let _ = writeln!(
                    text,
                    ",{},{},{runs},{mean},{},{min},{p50},{p95},{max},{},{}",
                    field(&metric.name),
                    metric.unit,
                    optional(sd),
                    optional(ci.map(|(low, _)| low)),
                    optional(ci.map(|(_, high)| high)),
                );
            }
        }
        text
    }
}

/// What the runs depend on, each once.
fn conditions(results: &[RunResult]) -> Vec<String> {
    let mut all: Vec<String> = vec![];
    for condition in results.iter().filter_map(|run| run.validity.as_ref()).flat_map(|run| &run.conditions) {
        if !all.contains(condition) {
            all.push(condition.clone());
        }
    }
    all
}

/// Which run it is, and why its results are not those of the scenario.
fn invalid(run: &RunResult) -> Option<String> {
    let validity = run.validity.as_ref().filter(|validity| !validity.is_valid())?;
    Some(format!("point {}, repetition {}: {}", run.point, run.repetition, validity.reasons.join("; ")))
}

/// Columns of a terminal that a summary fits in.
const WIDTH: usize = 100;

/// Sentences on lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

fn empty(style: TableStyle) -> Table {
    let mut table = Table::new();
    table.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn nothing() -> String {
    "-".to_owned()
}

/// The mean and its interval.
fn with_interval(estimate: &Estimate) -> String {
    match estimate.ci {
        None => short(estimate.mean),
        Some((low, high)) => format!("{} [{}, {}]", short(estimate.mean), short(low), short(high)),
    }
}

/// The mean and the distance to the farther end of its interval, with digits to match.
fn plus_minus(estimate: &Estimate) -> String {
    let mean = short(estimate.mean);
    let Some((low, high)) = estimate.ci else { return mean };
    let half = (estimate.mean - low).max(high - estimate.mean);
    if half <= 0.0 {
        return mean;
    }
    // Two digits of it.
    let half = match libm::floor(libm::log10(half)) as i32 {
        1.. => format!("{half:.0}"),
        power @ -3..=0 => format!("{half:.*}", (1 - power) as usize),
        _ => format!("{half:.1e}"),
    };
    format!("{mean} ±{half}")
}

/// A field of a CSV file (RFC 4180).
pub(crate) fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
