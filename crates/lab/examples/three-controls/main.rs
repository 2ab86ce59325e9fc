//! Draws the README's plot: congestion window and queue of three congestion controls, each alone on
//! the same link.
//!
//! ```sh
//! cargo run --release -p ackline-lab --example three-controls -- docs/images/three-controls.svg
//! ```

use ackline_lab::plot::{Chart, Line, Panels, PlotOptions, Reference};
use ackline_lab::{Outcome, Scenario, run_one, write};
use std::error::Error;
use std::path::Path;

/// The buffer of the scenario's link, in kB.
const LIMIT: f64 = 125.0;
/// Points of a line.
const POINTS: usize = 300;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("the file to draw into is missing: three-controls FILE.svg")?;
    let scenario = Scenario::parse(include_str!("scenario.toml"), "scenario.toml")?;
    let mut window = chart("Congestion window [kB]", "kB");
    let mut queue = chart("Queue [kB]", "kB");
    queue.references.push(Reference::level(LIMIT, "buffer"));
    for point in 0..scenario.points() {
        let outcome = run_one(&scenario, point, 0)?;
        let name = &outcome.record.connections.first().ok_or("no connection was recorded")?.cc;
        let line = |points| Line { label: name.clone(), points, ..Line::default() };
        window.lines.push(line(windows(&outcome)));
        queue.lines.push(line(queued(&outcome)));
    }
    let figure = Panels {
        name: "three-controls".to_owned(),
        title: "One flow on a link of 50 Mbit/s with an RTT of 40 ms".to_owned(),
        charts: vec![window, queue],
        columns: 1,
        same_x: true,
        ..Panels::default()
    };
    write(Path::new(&file), &figure.to_file(&PlotOptions::default()))?;
    Ok(())
}

fn chart(title: &str, unit: &str) -> Chart {
    Chart {
        name: title.to_owned(),
        title: title.to_owned(),
        x_label: "time [s]".to_owned(),
        y_label: unit.to_owned(),
        from_zero: true,
        over_time: true,
        ..Chart::default()
    }
}

/// Of the first connection, which is the sender's.
fn windows(outcome: &Outcome) -> Vec<(f64, f64)> {
    let samples = outcome.record.connections.iter().take(1).flat_map(|conn| &conn.samples);
    thinned(samples.map(|sample| (sample.at_ns, sample.cwnd)).collect())
}

/// Of the link's first queue, which carries the data.
fn queued(outcome: &Outcome) -> Vec<(f64, f64)> {
    let samples = outcome.record.queues.iter().take(1).flat_map(|queue| &queue.samples);
    thinned(samples.map(|sample| (sample.at_ns, sample.bytes)).collect())
}

/// Nanoseconds and bytes as seconds and kB, the largest of each of [`POINTS`] parts.
fn thinned(samples: Vec<(u64, u64)>) -> Vec<(f64, f64)> {
    let parts = samples.chunks(samples.len().div_ceil(POINTS).max(1));
    let largest = parts.filter_map(|part| part.iter().max_by_key(|sample| sample.1));
    largest.map(|(at, bytes)| (*at as f64 / 1e9, *bytes as f64 / 1e3)).collect()
}
