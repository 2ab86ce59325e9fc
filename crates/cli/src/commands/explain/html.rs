//! The pages of `explain` with plots, in one file.

use ackline_explain::picture::{Picture, Stroke};
use ackline_explain::story::{Connection, Direction, LossDetection, Story};
use ackline_explain::text;
use ackline_lab::report;
use ackline_plot::{Chart, Kind, Line, Look, Panels, Span, Style, escaped};

/// The page of these connections of a story.
pub(super) fn page(story: &Story, connections: &[&Connection]) -> String {
    let title = match connections {
        [one] => format!("{} > {}", one.client, one.server),
        _ => format!("{} connections", story.connections.len()),
    };
    let mut body = format!("<h1>{}</h1>\n", escaped(&title));
    if story.connections.len() > 1 {
        body += &preformatted(&text::summary(story));
    }
    for connection in connections {
        body += &format!("<h2>{}</h2>\n", escaped(&text::heading(connection)));
        body += &format!("<p><strong>{}</strong></p>\n", escaped(&text::verdict(connection)));
        body += &preformatted(&text::details(connection));
        let main = connection.main_direction();
        for side in [main, 1 - main] {
            let (name, direction) = (["client", "server"][side], &connection.directions[side]);
            // A direction without data has a FIN at most, and nothing to draw.
            if direction.bytes == 0 {
                continue;
            }
            if let Some(picture) = direction.picture.as_ref().filter(|picture| !picture.fresh.is_empty()) {
                body += &format!("<figure>{}</figure>\n", panels(name, direction, picture).to_svg().trim());
            }
        }
    }
    let left_out = text::left_out(story);
    if !left_out.is_empty() {
        body += &preformatted(&left_out);
    }
    report::page(&title, &body)
}

fn preformatted(text: &str) -> String {
    format!("<pre>{}</pre>\n", escaped(text))
}

/// The plots of one end's data below each other, over one axis of time.
fn panels(name: &str, direction: &Direction, picture: &Picture) -> Panels {
    let charts =
        vec![sequence(name, direction, picture), flight(picture), round_trips(picture), gaps(picture)];
    Panels {
        name: format!("story-{name}"),
        title: format!("The data of the {name}"),
        charts: charts.into_iter().filter(|chart| !chart.is_empty()).map(over_time).collect(),
        columns: 1,
        same_x: true,
        ..Panels::default()
    }
}

fn over_time(chart: Chart) -> Chart {
    let from_zero = chart.y == Kind::Linear;
    Chart { x_label: "time (s)".to_owned(), over_time: true, from_zero, ..chart }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 / 1e3
}

fn line(label: &str, style: Style, look: usize) -> Line {
    Line { label: label.to_owned(), style, look: Look::Series(look), ..Line::default() }
}

fn bars(label: &str, look: usize, strokes: impl Iterator<Item = Stroke>) -> Line {
    let band: Vec<(f64, f64, f64)> = strokes
        .map(|stroke| (seconds(stroke.at_ns), kilobytes(stroke.from), kilobytes(stroke.until)))
        .collect();
    Line { band, ..line(label, Style::Bars, look) }
}

/// The time-sequence diagram, with stalls as shaded spans.
fn sequence(name: &str, direction: &Direction, picture: &Picture) -> Chart {
    let most = picture.fresh.iter().map(|stroke| stroke.until).max().unwrap_or(0);
    let top = kilobytes(most) * 1.15;
    // A window far above would press the rest against the bottom.
    let edges = picture.acks.iter().filter_map(|ack| Some((seconds(ack.at_ns), kilobytes(ack.edge?))));
    let edges: Vec<(f64, f64)> = edges.filter(|(_, edge)| *edge <= top).collect();
    let acks = picture.acks.iter().map(|ack| (seconds(ack.at_ns), kilobytes(ack.ack))).collect();
    let mut lines = vec![
        Line { points: edges, ..line("receiver's window", Style::Steps, 5) },
        Line { points: acks, ..line("acknowledged", Style::Steps, 2) },
        bars("sent", 0, picture.fresh.iter().copied()),
    ];
    let classes = [
        (LossDetection::Fast, "again, by SACK or duplicate ACKs", 1),
        (LossDetection::Timeout, "again, after a timeout", 3),
        (LossDetection::Probe, "again, tail loss probe", 4),
        (LossDetection::Unclear, "again, unclear", 8),
    ];
    for (class, label, look) in classes {
        let those = || picture.again.iter().filter(|(_, found)| *found == class).map(|(stroke, _)| *stroke);
        // A dot shows where one is, even if its stroke is too short to be seen.
        let points = those().map(|stroke| (seconds(stroke.at_ns), kilobytes(stroke.from))).collect();
        lines.push(Line { points, ..bars(label, look, those()) });
    }
    lines.push(bars("SACKed", 6, picture.sacked.iter().copied()));
    lines.retain(|line| !line.points.is_empty() || !line.band.is_empty());
    let spans = direction.stalls.iter().map(|stall| Span {
        from: seconds(stall.at_ns),
        until: seconds(stall.at_ns + stall.time_ns),
        label: stall.cause.words().to_owned(),
    });
    Chart {
        name: "sequence".to_owned(),
        title: format!("Time-sequence diagram of the {name}'s data"),
        y_label: "sequence number (kB)".to_owned(),
        y_range: Some((0.0, top.max(1.0))),
        lines,
        spans: spans.collect(),
        ..Chart::default()
    }
}

fn flight(picture: &Picture) -> Chart {
    let points = picture.flight.iter().map(|(at, bytes)| (seconds(*at), kilobytes(*bytes))).collect();
    let most = picture.flight.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
    let windows = picture.acks.iter().filter_map(|ack| Some((ack.at_ns, ack.edge?.saturating_sub(ack.ack))));
    let windows = windows.filter(|(_, window)| *window <= most * 2);
    let windows = windows.map(|(at, window)| (seconds(at), kilobytes(window))).collect();
    let cwnd = picture.cwnd.iter().map(|(at, bytes)| (seconds(*at), kilobytes(*bytes))).collect();
    let mut lines = vec![
        Line { points, ..line("in flight", Style::Steps, 0) },
        Line { points: windows, ..line("receiver's window", Style::Steps, 5) },
        Line { points: cwnd, ..line("congestion window", Style::Steps, 1) },
    ];
    lines.retain(|line| !line.points.is_empty());
    Chart {
        name: "flight".to_owned(),
        title: "In flight, and the windows".to_owned(),
        y_label: "kB".to_owned(),
        lines,
        ..Chart::default()
    }
}

/// Times in milliseconds as dots.
fn dots(label: &str, look: usize, values: &[(u64, u64)]) -> Line {
    let points = values.iter().map(|(at, ns)| (seconds(*at), *ns as f64 / 1e6)).collect();
    Line { points, ..line(label, Style::Dots, look) }
}

fn round_trips(picture: &Picture) -> Chart {
    Chart {
        name: "rtt".to_owned(),
        title: "Round trips behind the capture".to_owned(),
        y_label: "ms".to_owned(),
        lines: vec![dots("round trip", 4, &picture.rtt)],
        ..Chart::default()
    }
}

fn gaps(picture: &Picture) -> Chart {
    Chart {
        name: "gaps".to_owned(),
        title: "Time since the packet before".to_owned(),
        y_label: "ms".to_owned(),
        y: Kind::Log,
        lines: vec![dots("data", 0, &picture.data_gaps), dots("ACKs", 2, &picture.ack_gaps)],
        ..Chart::default()
    }
}
