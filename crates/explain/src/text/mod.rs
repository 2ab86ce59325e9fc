//! Stories as text.

mod direction;
mod ends;
mod losses;
mod summary;
mod units;

use crate::story::{Connection, Source};

pub use summary::{left_out, summary};
pub use units::{rate, size, time};

/// Episodes and stalls of a direction that a page lists.
const LISTED: usize = 8;
/// Columns of a line.
const WIDTH: usize = 110;
/// Columns before the text of an entry.
const LABEL: usize = 17;

/// A connection on a page.
#[must_use]
pub fn page(connection: &Connection) -> String {
    let mut page = Page::default();
    let all: u64 = connection.directions.iter().map(|direction| direction.bytes).sum();
    page.line(&format!(
        "Connection {}: {} > {}, {} in {}",
        connection.number,
        connection.client,
        connection.server,
        size(all),
        time(connection.duration_ns)
    ));
    page.text += "\n";
    match connection.source {
        Source::Capture => page.entry("Capture", &ends::vantage(connection)),
        Source::Trace => page.entry("Trace", ends::traced(connection)),
    }
    page.entry("Handshake", &ends::handshake(connection));
    for (side, direction) in connection.directions.iter().enumerate() {
        page.text += "\n";
        let names = ["client", "server"];
        if direction.packets == 0 {
            page.line(&format!("The {} sent no data", names[side]));
            continue;
        }
        direction::direction(&mut page, names[side], direction, connection);
    }
    page.text += "\n";
    page.entry("End", &ends::end(connection));
    for anomaly in &connection.anomalies {
        page.entry("Note", ends::strange(*anomaly));
    }
    for direction in &connection.directions {
        if direction.uncaptured > 0 {
            let missing = size(direction.uncaptured);
            page.entry(
                "Note",
                &format!(
                    "{missing} from {} were acknowledged, but are not in the {}",
                    direction.from,
                    recording(connection)
                ),
            );
        }
        if direction.merged {
            page.entry(
                "Note",
                "so many packets were in flight that some count as one: numbers of packets are too small",
            );
        }
    }
    if connection.evicted {
        page.entry("Note", "the story ends early: too many connections were open at once");
    }
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text += line.trim_end();
        self.text.push('\n');
    }

    /// A label and its text, in lines of the page's width.
    fn entry(&mut self, label: &str, text: &str) {
        let mut line = format!("  {label:<width$}", width = LABEL - 2);
        let mut empty = true;
        for word in text.split(' ') {
            if !empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                line = " ".repeat(LABEL);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line += word;
            empty = false;
        }
        self.line(&line);
    }
}

/// What a story was read from.
const fn recording(connection: &Connection) -> &'static str {
    match connection.source {
        Source::Capture => "capture",
        Source::Trace => "trace",
    }
}

/// `at 1.234 s`.
fn at(ns: u64) -> String {
    format!("at {:.3} s", ns as f64 / 1e9)
}
