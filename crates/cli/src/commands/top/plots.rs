//! One connection: what it says of itself, and its window, round trip, rate and flight over time.

use super::board::Entry;
use super::numbers::{binary, decimal};
use super::source::Alone;
use crate::commands::ss::line::{self, Connection};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::Line;
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph, Wrap};
use serde_json::Value;
use std::collections::VecDeque;

/// Looks that are remembered.
const REMEMBERED: usize = 600;

/// The numbers of one look.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Look {
    /// Seconds of the stack's clock.
    at: f64,
    cwnd: f64,
    rtt_ms: f64,
    /// Payload acknowledged and received since the look before, in bit/s.
    rate: f64,
    in_flight: f64,
}

/// A connection that is shown alone.
#[derive(Debug)]
pub(super) struct Plots {
    alone: Alone,
    command: String,
    last: Option<Value>,
    ended: bool,
    looks: VecDeque<Look>,
}

/// A plot: title, value of a look, and how a value is written.
type Plot = (&'static str, fn(&Look) -> f64, fn(f64) -> String);

const PLOTS: [Plot; 4] = [
    ("congestion window, bytes", |look| look.cwnd, |value| binary(value as u64)),
    ("round trip, ms", |look| look.rtt_ms, |value| format!("{value:.3}")),
    ("rate, bit/s", |look| look.rate, decimal),
    ("in flight, bytes", |look| look.in_flight, |value| binary(value as u64)),
];

impl Plots {
    pub(super) fn new(entry: &Entry) -> Self {
        let alone = Alone { key: entry.key.clone(), local: entry.row.local, remote: entry.row.remote };
        let command = format!("{}", entry.key.pid);
        Self { alone, command, last: None, ended: false, looks: VecDeque::new() }
    }

    pub(super) fn question(&self) -> Alone {
        self.alone.clone()
    }

    /// Takes what the connection says; `None`: it is gone.
    pub(super) fn take(&mut self, value: Option<Value>) {
        let Some(value) = value else {
            // The first answer may be to a question from before.
            self.ended = self.last.is_some();
            return;
        };
        let connection = Connection(&value);
        let moved = |of: &Connection<'_>| of.count("bytes_acked") + of.count("bytes_received");
        let at = connection.count("now") as f64 / 1e9;
        let rate = self.last.as_ref().zip(self.looks.back()).map_or(0.0, |(last, look)| {
            let bytes = moved(&connection).saturating_sub(moved(&Connection(last)));
            if at > look.at { bytes as f64 * 8.0 / (at - look.at) } else { 0.0 }
        });
        let look = Look {
            at,
            cwnd: connection.count("snd_cwnd") as f64,
            rtt_ms: connection.count("rtt") as f64 / 1e6,
            rate,
            in_flight: connection.count("unacked") as f64,
        };
        if self.looks.len() == REMEMBERED {
            self.looks.pop_front();
        }
        self.looks.push_back(look);
        self.last = Some(value);
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        let [head, text, upper, lower] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(5),
            Constraint::Min(3),
            Constraint::Min(3),
        ])
        .areas(area);
        frame.render_widget(Paragraph::new(self.head()), head);
        let info = self.last.as_ref().map(|value| Connection(value).info()).unwrap_or_default();
        frame.render_widget(Paragraph::new(info).wrap(Wrap { trim: true }), text);
        let halves = |area| -> [Rect; 2] {
            Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area)
        };
        let places = [halves(upper), halves(lower)].concat();
        for (plot, place) in PLOTS.into_iter().zip(places) {
            self.plot(frame, place, plot);
        }
    }

    fn head(&self) -> Vec<Line<'_>> {
        let Alone { local, remote, .. } = &self.alone;
        let first = format!("{} {local} to {remote}", self.command);
        let Some(last) = &self.last else { return vec![Line::from(first)] };
        let connection = Connection(last);
        let ended = if self.ended { ", ENDED" } else { "" };
        let second = format!(
            "{}{ended}: {}, {}, {}; blocked by: {}; {}",
            line::state(connection.text("state")),
            connection.text("cc"),
            connection.text("ack_policy"),
            connection.text("rto_response"),
            connection.text("blocked"),
            connection.timer(),
        );
        vec![Line::from(first), Line::from(second)]
    }

    fn plot(&self, frame: &mut Frame<'_>, area: Rect, (title, value, written): Plot) {
        let points: Vec<(f64, f64)> = self.looks.iter().map(|look| (look.at, value(look))).collect();
        let end = self.looks.back().map_or(1.0, |look| look.at);
        let begin = self.looks.front().map_or(0.0, |look| look.at).min(end - 1.0);
        let top = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        let top = if top > 0.0 { top * 1.05 } else { 1.0 };
        let data = Dataset::default()
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::new().fg(Color::Cyan))
            .data(&points);
        let seconds = format!("-{:.0} s", end - begin);
        let chart = Chart::new(vec![data])
            .block(Block::bordered().title(title))
            .x_axis(Axis::default().bounds([begin, end]).labels([seconds, "now".to_owned()]))
            .y_axis(Axis::default().bounds([0.0, top]).labels(["0".to_owned(), written(top)]));
        frame.render_widget(chart, area);
    }
}
