//! Reports: what stands where, and what a reader finds in the figures.

use ackline_lab::figures::run_plots;
use ackline_lab::plot::{Chart, Figure, Format, PlotOptions, Style};
use ackline_lab::{RunOptions, Scenario, example, run, run_one};
use std::fs;
use std::path::Path;

fn library(name: &str, set: &[&str]) -> Scenario {
    Scenario::parse(example(name).unwrap().text, name).unwrap().with_set(set).unwrap()
}

/// One flow of eight seconds on a link with a short buffer, measured from the second on.
fn single() -> Scenario {
    library(
        "single-flow",
        &["duration=8s", "measure.from=2s", "conn.cc=cubic", "link.wire.rate=5mbit", "link.wire.delay=20ms"],
    )
}

fn drawn(folder: &Path, scenario: &Scenario, plot: PlotOptions) -> String {
    let options =
        RunOptions { out: Some(folder.to_owned()), plots: true, plot, threads: 1, ..RunOptions::default() };
    run(scenario, &options).unwrap();
    fs::read_to_string(folder.join("report.html")).unwrap()
}

fn chart<'a>(charts: &'a [Chart], name: &str) -> &'a Chart {
    charts.iter().find(|chart| chart.name == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn a_report_of_one_flow_leads_with_its_goodput_window_and_sequence_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let html = drawn(folder.path(), &single(), PlotOptions::default());
    let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    let order = [
        ">Goodput</text>",
        ">Congestion window</text>",
        ">Time-sequence diagram at the sender</text>",
        "<h2>Results</h2>",
        ">Smoothed round-trip time</text>",
        "<h2>Scenario</h2>",
    ];
    assert!(order.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{order:?}");
    assert!(html.contains("<script>") && !html.contains("src="));
    // All plots over time have the same ends, and begin at the same place.
    let values = |of: &str| {
        let mut values: Vec<&str> =
            html.split(of).skip(1).filter_map(|rest| rest.split('"').next()).collect();
        values.dedup();
        values.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(values(" data-x=\""), ["0 8"]);
    let areas: Vec<String> = values("<svg x=\"");
    assert!(areas.len() <= 2, "the plots over time stand under each other, at {areas:?}");
}

#[test]
fn the_window_of_one_flow_has_its_threshold_losses_and_the_measured_time() {
    let outcome = run_one(&single(), 0, 0).unwrap();
    let plots = run_plots(&outcome);
    let window = chart(&plots.charts, "cwnd");
    assert_eq!(window.spans.iter().map(|span| (span.from, span.until)).collect::<Vec<_>>(), [(2.0, 8.0)]);
    let marks = window.lines.iter().filter(|line| line.style == Style::Crosses);
    assert!(marks.flat_map(|line| &line.points).count() > 0, "a loss was repaired");
    let threshold = window.lines.iter().find(|line| line.label == "ssthresh").unwrap();
    let most = threshold.points.iter().map(|point| point.1).fold(0.0, f64::max);
    assert!(most > 0.0 && most < 1_000.0, "kB: {most}");
    assert!(plots.charts.iter().all(|chart| chart.name != "cc-ssthresh"));
    let queue = chart(&plots.charts, "queue");
    assert!(queue.references.iter().any(|line| line.label == "queue limit"), "{:?}", queue.references);
    let goodput = chart(&plots.charts, "goodput");
    assert!(goodput.references.iter().any(|line| line.label == "rate of wire" && line.at == 5.0));
    let over_time = plots.charts.iter().filter(|chart| chart.over_time);
    assert!(over_time.into_iter().all(|chart| chart.x_range == Some((0.0, 8.0))));
}

/// The sender's own counter is the independent source.
#[test]
fn the_sequence_diagram_has_every_retransmission() {
    let folder = tempfile::tempdir().unwrap();
    drawn(folder.path(), &single(), PlotOptions::default());
    let outcome = run_one(&single(), 0, 0).unwrap();
    let sent_again: u64 = outcome
        .record
        .connections
        .iter()
        .filter_map(|conn| conn.samples.last())
        .map(|sample| sample.bytes_retrans)
        .sum();
    assert!(sent_again > 0);
    let text = fs::read_to_string(folder.path().join("plots/p0000-r000.json")).unwrap();
    let plots: ackline_lab::RunPlots = serde_json::from_str(&text).unwrap();
    let sequence = chart(&plots.charts, "sequence");
    let bytes = |label: &str| -> f64 {
        let lines = sequence.lines.iter().filter(|line| line.label == label);
        lines.flat_map(|line| &line.band).map(|(_, from, until)| until - from).sum()
    };
    assert!(sequence.y_label.contains("MB"), "{}", sequence.y_label);
    let found = bytes("retransmission") * 1e6;
    assert!((found - sent_again as f64).abs() < 1.0, "{found} of {sent_again}");
    assert!(bytes("segment") > 2.0);
    assert!(sequence.lines.iter().any(|line| line.label == "acknowledged" && line.points.len() > 100));
}

#[test]
fn flows_keep_their_colours_and_stand_in_one_chart() {
    let scenario = library("fairness", &["duration=14s", "measure.from=11s", "conn.cc=reno", "repeat=1"]);
    let plots = run_plots(&run_one(&scenario, 0, 0).unwrap());
    assert_eq!((plots.leading, plots.charts[0].name.as_str()), (1, "goodput"));
    for name in ["goodput", "cwnd", "srtt"] {
        let lines = &chart(&plots.charts, name).lines;
        let looks: Vec<_> = ["first", "second"]
            .map(|flow| lines.iter().find(|line| line.label == flow).map(|line| line.look))
            .into();
        assert_eq!(looks, [0, 1].map(|series| Some(ackline_lab::plot::Look::Series(series))), "{name}");
    }
}

#[test]
fn no_two_things_in_a_report_have_the_same_colour_and_style() {
    let scenario = library("fairness", &["duration=14s", "measure.from=11s", "conn.cc=reno", "repeat=1"]);
    let plots = run_plots(&run_one(&scenario, 0, 0).unwrap());
    let over_time = plots.charts.iter().filter(|chart| chart.over_time);
    let mut known: Vec<(String, _)> = vec![];
    for line in over_time.flat_map(|chart| &chart.lines).filter(|line| !line.label.is_empty()) {
        // A mark of text's colour is told from a line by its shape.
        let shown = (line.look, line.style);
        assert!(
            known.iter().all(|(label, other)| (*label == line.label) == (*other == shown)),
            "{} looks like one of {known:?}",
            line.label
        );
        known.push((line.label.clone(), shown));
    }
    assert!(known.iter().any(|(label, _)| label == "bottleneck"));
}

#[test]
fn the_points_of_a_small_sweep_lead_together() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = library("fairness", &["duration=12s", "measure.from=11s", "repeat=1"]);
    let html = drawn(folder.path(), &scenario, PlotOptions::default());
    let above = html.split("<h2>Results</h2>").next().unwrap();
    assert_eq!(above.matches("<figure>").count(), 1);
    assert!(above.contains("conn.cc = reno</text>") && above.contains("conn.cc = cubic</text>"));
    assert!(folder.path().join("plots/points-goodput.svg").exists());
}

#[test]
fn transfers_lead_with_their_completion_times() {
    let set = ["duration=20s", "conn.cc=reno", "app.short.start=5s", "measure.from=5s"];
    let scenario = library("short-flows", &set);
    let plots = run_plots(&run_one(&scenario, 0, 0).unwrap());
    assert_eq!((plots.leading, plots.charts[0].name.as_str()), (1, "times-cdf"));
    assert!(chart(&plots.charts, "goodput").title.contains("(8 of 104 flows)"));
}

#[test]
fn plots_are_drawn_again_in_another_format_without_a_run() {
    let folder = tempfile::tempdir().unwrap();
    drawn(folder.path(), &single(), PlotOptions::default());
    let paper = PlotOptions { format: Format::Pdf, size: Some("88mmx55mm".parse().unwrap()), untitled: true };
    let options =
        RunOptions { out: Some(folder.path().to_owned()), plots: true, plot: paper, ..RunOptions::default() };
    assert_eq!(run(&single(), &options).unwrap().resumed, 1);
    let file = fs::read(folder.path().join("plots/p0000-r000.cwnd.pdf")).unwrap();
    assert!(file.starts_with(b"%PDF-"));
    // Without the data of its plots a run is done again.
    fs::remove_file(folder.path().join("plots/p0000-r000.json")).unwrap();
    assert_eq!(run(&single(), &options).unwrap().resumed, 0);
}

#[test]
fn figures_of_a_run_stack_what_is_over_time() {
    let (leading, others) = run_plots(&run_one(&single(), 0, 0).unwrap()).figures();
    assert!(matches!(&leading[..], [Figure::Panels(panels)] if panels.same_x && panels.charts.len() == 2));
    assert!(others.iter().any(|figure| figure.name() == "delay-cdf"));
}
