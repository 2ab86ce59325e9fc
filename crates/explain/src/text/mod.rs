//! Stories as text.

mod direction;
mod ends;
mod losses;
mod summary;
mod units;
mod verdict;

use crate::story::{Anomaly, Connection, Source};

pub use summary::{left_out, summary};
pub use units::{rate, size, time};
pub use verdict::verdict;

/// Episodes and stalls of a direction that a page lists.
const LISTED: usize = 8;
/// Columns of a line.
const WIDTH: usize = 110;
/// Columns before the text of an entry.
const LABEL: usize = 17;

/// A connection on a page: [`heading`], [`verdict`] and [`details`].
#[must_use]
pub fn page(connection: &Connection) -> String {
    format!("{}\n{}\n\n{}", heading(connection), verdict(connection), details(connection))
}

/// Which connection it is, and how much it carried, in one line.
#[must_use]
pub fn heading(connection: &Connection) -> String {
    let all: u64 = connection.directions.iter().map(|direction| direction.bytes).sum();
    format!(
        "Connection {}: {} > {}, {} in {}",
        connection.number,
        connection.client,
        connection.server,
        size(all),
        time(connection.duration_ns)
    )
}

/// What there is to tell of a connection, the direction with more data first.
#[must_use]
pub fn details(connection: &Connection) -> String {
    let mut page = Page::default();
    match connection.source {
        Source::Capture => page.entry("Capture", &ends::vantage(connection)),
        Source::Trace => page.entry("Trace", ends::traced(connection)),
    }
    page.entry("Handshake", &ends::handshake(connection));
    let main = connection.main_direction();
    for side in [main, 1 - main] {
        let direction = &connection.directions[side];
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
    if connection.copies > 0 && !connection.anomalies.contains(&Anomaly::EachPacketTwice) {
        page.entry(
            "Note",
            &format!(
                "{} passed the capture twice, doubled by the network or by the capture; the copies do not count",
                units::count(connection.copies, "packet")
            ),
        );
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
        if !line.ends_with(' ') {
            line.push(' ');
        }
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
