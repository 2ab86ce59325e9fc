//! All connections of a story in a table, and what no story tells.

use super::units::{grouped, percent, size, time, times};
use crate::story::{Connection, Story};
use std::fmt::Write as _;

/// All connections in a table, the worst first; and what was left out.
#[must_use]
pub fn summary(story: &Story) -> String {
    let mut connections: Vec<&Connection> = story.connections.iter().collect();
    connections.sort_by_key(|connection| std::cmp::Reverse(connection.badness()));
    let head = ["", "client", "server", "data", "time", "sent again", "most time for"].map(str::to_owned);
    let mut rows = vec![head];
    for connection in connections {
        let main = &connection.directions[connection.main_direction()];
        let again: u64 = connection.directions.iter().map(|direction| direction.losses.retransmissions).sum();
        let most = main
            .time
            .first()
            .map_or_else(String::new, |share| format!("{} {}", percent(share.share), share.cause.words()));
        rows.push([
            connection.number.to_string(),
            connection.client.to_string(),
            connection.server.to_string(),
            size(connection.directions.iter().map(|direction| direction.bytes).sum()),
            time(connection.duration_ns),
            if again > 0 { again.to_string() } else { "-".to_owned() },
            most,
        ]);
    }
    let mut text = String::new();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    for row in &rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            1 | 2 | 6 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// What of a capture no story tells; empty if nothing.
#[must_use]
pub fn left_out(story: &Story) -> String {
    let mut text = String::new();
    let skipped = &story.skipped;
    let parts = [
        (skipped.not_ip, "packets are not IP"),
        (skipped.not_tcp, "packets are not TCP"),
        (skipped.fragments, "IP fragments have no TCP header"),
        (skipped.cut, "packets are cut within the TCP header; capture 128 bytes at least"),
        (skipped.link_type, "packets have a link type that is not known"),
        (story.missed, "packets are missing, says the capture"),
        (story.traces.missed, "events are missing, says the trace"),
        (story.traces.unopened, "events are of connections whose begin is not in the trace"),
        (story.traces.unknown, "events of the trace are not known"),
        (story.traces.damaged, "records of the trace cannot be read"),
        (story.evicted, "stories end early: too many connections were open at once"),
        (story.left_out, "stories are left out, of connections that waited and lost least"),
    ];
    for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(text, "{} {what}", grouped(count));
    }
    if story.steps_back > 0 {
        let _ = writeln!(
            text,
            "The capture's clock steps back {}, by {} at most: times across such a step are wrong.",
            times(story.steps_back),
            time(story.longest_step_back_ns)
        );
    }
    if let Some(why) = &story.traces.cut_short {
        let _ = writeln!(text, "The trace ends early: {why}.");
    }
    if story.cut_short {
        text += "The file ends within a packet or an event: it is told up to there.\n";
    }
    text
}
