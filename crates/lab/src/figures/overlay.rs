//! Several folders of results in the same plots.

use super::of_sweep::figures;
use crate::error::RunError;
use crate::folder::load;
use crate::layout::Layout;
use crate::summary::Summary;
use ackline_plot::{Chart, Line, Panels, thinned};
use std::fs;
use std::path::{Path, PathBuf};

/// Time series that are laid over each other, if the folders have them: column, title, unit, and
/// what a unit is.
const SERIES: [(&str, &str, &str, f64); 2] = [
    ("cwnd_bytes", "Congestion window over time", "KiB", 1_024.0),
    ("srtt_s", "Smoothed round-trip time over time", "ms", 1e-3),
];

/// The plots of several folders that [`run`](crate::run()) has written, laid over each other: each
/// metric, and the time series of the first run of each.
///
/// # Errors
/// If a folder holds no results.
pub fn overlay(folders: &[PathBuf]) -> Result<Vec<Panels>, RunError> {
    let mut sweeps = vec![];
    for folder in folders {
        sweeps.push((name(folder), Summary::of(&load(folder)?)));
    }
    let several = folders.len() > 1;
    let sweeps: Vec<(String, &Summary)> = sweeps
        .iter()
        .map(|(name, summary)| (if several { name.clone() } else { String::new() }, summary))
        .collect();
    let mut names: Vec<&str> = vec![];
    for (_, summary) in &sweeps {
        for metric in summary.shown_metrics().into_iter().map(|place| summary.metrics[place].name.as_str()) {
            if !names.contains(&metric) {
                names.push(metric);
            }
        }
    }
    let mut all = figures(&sweeps, &names, &Layout::default());
    for (column, title, unit, scale) in SERIES {
        let mut chart = Chart {
            name: format!("overlay-{column}"),
            title: title.to_owned(),
            x_label: "time [s]".to_owned(),
            y_label: unit.to_owned(),
            from_zero: true,
            ..Chart::default()
        };
        for folder in folders {
            let path = folder.join("series/p0000-r000.flows.csv");
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for mut line in series(&text, column, scale) {
                if several {
                    line.label = format!("{}, {}", name(folder), line.label);
                }
                chart.lines.push(line);
            }
        }
        if !chart.is_empty() {
            let (name, title) = (chart.name.clone(), std::mem::take(&mut chart.title));
            all.push(Panels { name, title, charts: vec![chart], columns: 1, ..Panels::default() });
        }
    }
    Ok(all)
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
}

/// One line per connection. The columns before those that are read hold names and numbers, which
/// are never quoted.
fn series(text: &str, column: &str, scale: f64) -> Vec<Line> {
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let Some(header) = rows.next() else { return vec![] };
    let place = |name: &str| header.iter().position(|column| *column == name);
    let (Some(flow), Some(conn), Some(at), Some(value)) =
        (place("flow"), place("connection"), place("at_s"), place(column))
    else {
        return vec![];
    };
    let mut lines: Vec<(String, Line)> = vec![];
    for row in rows {
        let number = |place: usize| row.get(place).and_then(|text| text.parse::<f64>().ok());
        let (Some(flow), Some(conn)) = (row.get(flow), row.get(conn)) else { continue };
        let (Some(at), Some(value)) = (number(at), number(value)) else { continue };
        if lines.last().is_none_or(|(last, _)| last != conn) {
            lines.push(((*conn).to_owned(), Line { label: (*flow).to_owned(), ..Line::default() }));
        }
        if let Some((_, line)) = lines.last_mut() {
            line.points.push((at, value / scale));
        }
    }
    lines.into_iter().map(|(_, line)| Line { points: thinned(&line.points), ..line }).collect()
}
