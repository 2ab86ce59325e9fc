//! Rate, queue, waits and drops of both directions over time, and how late packets left.

use super::report::{Direction, Summary};
use crate::failure::Failure;
use ackline_lab::unfinished::Unfinished;
use ackline_plot::{Chart, Figure, Kind, Line, Look, Panels, PlotOptions, Reference, Span, Style, prefixed};
use std::fs;
use std::path::Path;

/// Points of a rate over time.
const POINTS: usize = 150;

/// Draws the figures into files of `folder`. `rates`: bits per second of both directions, if they
/// have one.
pub(super) fn write(
    summary: &Summary,
    rates: [Option<u64>; 2],
    folder: &Path,
    options: &PlotOptions,
) -> Result<(), Failure> {
    for figure in figures(summary, rates) {
        let path = folder.join(format!("{}.{}", figure.name(), options.format.ending()));
        ackline_lab::write(&path, &figure.to_file(options))
            .map_err(|error| Failure::file("write", format_args!("--plot {}", path.display()), &error))?;
    }
    Ok(())
}

/// The folder of the figures, before the program starts.
pub(super) fn prepare(folder: &Path) -> Result<(), Failure> {
    // A folder that is there may be closed to us.
    let writable = || Unfinished::create(&folder.join("path")).map(drop);
    fs::create_dir_all(folder)
        .and_then(|()| writable())
        .map_err(|error| Failure::file("write into", format_args!("--plot {}", folder.display()), &error))
}

fn figures(summary: &Summary, rates: [Option<u64>; 2]) -> [Figure; 2] {
    let path = Panels {
        name: "path".to_owned(),
        title: titled(summary, &format!("Emulated path, {:.1} s", summary.seconds)),
        charts: vec![rate(summary, rates), packets(summary), bytes(summary), waits(summary)],
        columns: 1,
        same_x: true,
        ..Panels::default()
    };
    [path.into(), lateness(summary).into()]
}

/// The title, and why not to believe what it stands over.
fn titled(summary: &Summary, title: &str) -> String {
    match &summary.reasons[..] {
        [] => title.to_owned(),
        [reason] => format!("{title}; INVALID: {reason}"),
        [first, others @ ..] => format!("{title}; INVALID: {first} (and {} more)", others.len()),
    }
}

/// What stands in a figure whose title is left out.
fn shade(summary: &Summary, until: f64) -> Vec<Span> {
    let label = "INVALID".to_owned();
    if summary.reasons.is_empty() { vec![] } else { vec![Span { from: 0.0, until, label }] }
}

fn over_time(summary: &Summary, name: &str, title: &str, unit: String, lines: Vec<Line>) -> Chart {
    Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        x_label: "time (s)".to_owned(),
        y_label: unit,
        from_zero: true,
        x_range: Some((0.0, summary.seconds)),
        over_time: true,
        lines,
        spans: shade(summary, summary.seconds),
        ..Chart::default()
    }
}

/// A value of each `step` spans of both directions, divided by `size`.
fn lines(summary: &Summary, step: usize, size: f64, of: impl Fn(&Direction) -> Vec<f64>) -> Vec<Line> {
    let line = |(place, (name, way)): (usize, (&str, &Direction))| {
        let values = of(way);
        let end = values.last().map(|last| (summary.seconds, last / size));
        let at = |place: usize| (place * step) as f64 * way.over_time.span_s;
        let points = values.iter().enumerate().map(|(place, value)| (at(place), value / size));
        Line {
            label: name.to_owned(),
            points: points.chain(end).collect(),
            style: Style::Steps,
            look: Look::Series(place),
            ..Line::default()
        }
    };
    summary.directions().into_iter().enumerate().map(line).collect()
}

/// A unit in which the largest value is short, and its size.
fn unit(summary: &Summary, of: impl Fn(&Direction) -> Vec<f64>, one: &str, thousand: &str) -> (f64, String) {
    let values = summary.directions().into_iter().flat_map(|(_, way)| of(way));
    prefixed(values.fold(0.0, f64::max), one, thousand)
}

/// The mean over some spans: in a single one of 10 ms a slow link has a packet more or less.
fn rate(summary: &Summary, rates: [Option<u64>; 2]) -> Chart {
    let step = summary.up.over_time.rate_bps.len().div_ceil(POINTS).max(1);
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let of = |way: &Direction| way.over_time.rate_bps.chunks(step).map(mean).collect();
    let (size, unit) = unit(summary, of, "bit/s", "kbit/s");
    let lines = lines(summary, step, size, of);
    let mut chart = over_time(summary, "rate", "Rate behind the path", unit, lines);
    let references = rates.into_iter().zip(["rate up", "rate down"]);
    let references = references.filter_map(|(rate, name)| Some(Reference::level(rate? as f64 / size, name)));
    chart.references = references.collect();
    if let [Some(up), Some(down)] = rates
        && up == down
    {
        chart.references = vec![Reference::level(up as f64 / size, "rate of the path")];
    }
    chart
}

/// With a cross in each span in which something was dropped.
fn packets(summary: &Summary) -> Chart {
    let of = |way: &Direction| counted(&way.over_time.queue_packets);
    let mut all = lines(summary, 1, 1.0, of);
    let mut any = false;
    for (place, (_, way)) in summary.directions().into_iter().enumerate() {
        let spans = way.over_time.dropped.iter().zip(&way.over_time.queue_packets).enumerate();
        let points: Vec<(f64, f64)> = spans
            .filter(|(_, (dropped, _))| **dropped > 0)
            .map(|(span, (_, queue))| (span as f64 * way.over_time.span_s, *queue as f64))
            .collect();
        any |= !points.is_empty();
        all.push(Line { points, style: Style::Crosses, look: Look::Series(place), ..Line::default() });
    }
    if any {
        let label = "dropped or lost".to_owned();
        all.push(Line { label, style: Style::Crosses, look: Look::Ink, ..Line::default() });
    }
    over_time(summary, "queue", "Most packets in the queue", "packets".to_owned(), all)
}

fn bytes(summary: &Summary) -> Chart {
    let of = |way: &Direction| counted(&way.over_time.queue_bytes);
    let (size, unit) = unit(summary, of, "B", "kB");
    over_time(summary, "queue-bytes", "Most bytes in the queue", unit, lines(summary, 1, size, of))
}

fn waits(summary: &Summary) -> Chart {
    let of = |way: &Direction| way.over_time.wait_ms.clone();
    over_time(summary, "wait", "Longest wait in the queue", "ms".to_owned(), lines(summary, 1, 1.0, of))
}

fn counted(values: &[u64]) -> Vec<f64> {
    values.iter().map(|value| *value as f64).collect()
}

/// The share of packets that left at most so late, beside the bound.
fn lateness(summary: &Summary) -> Chart {
    const STEPS: u32 = 500;
    let line = |(place, (name, way)): (usize, (&str, &Direction))| {
        let late = &way.late;
        let steps = (1..=STEPS).filter(|_| late.count() > 0).map(|step| f64::from(step) / f64::from(STEPS));
        Line {
            label: name.to_owned(),
            points: steps.map(|share| (late.quantile(share).as_nanos() as f64 / 1e3, share)).collect(),
            style: Style::Steps,
            look: Look::Series(place),
            ..Line::default()
        }
    };
    let lines: Vec<Line> = summary.directions().into_iter().enumerate().map(line).collect();
    let latest = lines.iter().flat_map(|line| &line.points).map(|point| point.0).fold(1.0, f64::max);
    let packets = summary.up.late.count() + summary.down.late.count();
    let bound = super::validity::LATEST_US;
    Chart {
        name: "lateness".to_owned(),
        title: titled(summary, &format!("How late {packets} packets left the path")),
        x_label: "lateness (us)".to_owned(),
        y_label: "share not above".to_owned(),
        x: Kind::Log,
        y_range: Some((0.0, 1.0)),
        lines,
        references: vec![Reference::upright(bound, "bound of p99")],
        spans: shade(summary, latest),
        ..Chart::default()
    }
}
