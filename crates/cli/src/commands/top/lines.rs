//! The screen's lines as text: what is drawn, and what `-b` prints.

use super::board::{Board, Entry, StackEntry};
use super::numbers::{binary, decimal, sparkline};
use crate::args::column::Column;
use crate::watchers::summary::Summary;
use ackline::core::State;
use std::fmt::Write as _;

/// Fewest characters of a line of bars that are worth their place.
const LEAST_BARS: usize = 4;
/// Most.
const MOST_BARS: usize = 32;
/// Widest address, with port and brackets.
const WIDEST_PEER: usize = 48;

/// The columns that a screen has room for, and how wide some of them are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) columns: Vec<Column>,
    peer: usize,
    bars: usize,
}

impl Layout {
    /// For a screen of `width` characters; `bars`: with a line of bars, if there is room.
    pub(super) fn new(width: usize, peers: usize, bars: bool) -> Self {
        let needed = |columns: &[Column]| -> usize { columns.iter().map(|column| column.width() + 1).sum() };
        let least = if bars { LEAST_BARS } else { 0 };
        let mut columns = Column::ALL.to_vec();
        for dispensable in Column::DISPENSABLE {
            if needed(&columns) + least > width {
                columns.retain(|column| *column != dispensable);
            }
        }
        let spare = width.saturating_sub(needed(&columns));
        let wanted = peers.clamp(Column::Peer.width(), WIDEST_PEER) - Column::Peer.width();
        let peer = wanted.min(spare.saturating_sub(least));
        let bars = if bars { (spare - peer).min(MOST_BARS) } else { 0 };
        Self { columns, peer: Column::Peer.width() + peer, bars: if bars < LEAST_BARS { 0 } else { bars } }
    }

    fn width(&self, column: Column) -> usize {
        if column == Column::Peer { self.peer } else { column.width() }
    }

    fn line(&self, cell: impl Fn(Column) -> String) -> String {
        let mut line = String::new();
        for column in &self.columns {
            let (text, width) = (shortened(cell(*column), self.width(*column)), self.width(*column));
            let _ = if column.is_text() {
                write!(line, "{text:<width$} ")
            } else {
                write!(line, "{text:>width$} ")
            };
        }
        line
    }

    /// The names of the columns.
    pub(super) fn head(&self) -> String {
        self.line(|column| column.head().to_owned())
    }

    pub(super) fn entry(&self, entry: &Entry) -> String {
        let line = self.line(|column| column.text(entry));
        let bars = sparkline(entry.history.iter().copied(), self.bars);
        format!("{line}{bars}")
    }
}

/// A text without its middle, if it is too long.
fn shortened(text: String, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text;
    }
    let head = width.saturating_sub(1) / 2;
    let tail = width.saturating_sub(1) - head;
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}

/// The first line: what is shown.
pub(super) fn title(board: &Board, note: &str) -> String {
    let plural = |number: u64, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let all: u64 = board.stacks.iter().map(|stack| stack.summary.census.connections()).sum();
    let shown = board.entries.len() as u64;
    let of = if shown == all { String::new() } else { format!("{shown} of ") };
    format!(
        "ackline top: {}, {of}{}{note}",
        plural(board.stacks.len() as u64, "stack"),
        plural(all, "connection")
    )
}

/// A stack as a whole, in two lines.
pub(super) fn stack(stack: &StackEntry) -> [String; 2] {
    let StackEntry { about, summary, up, down, retransmitted, drops } = stack;
    let Summary { policies, census, memory, max_memory, .. } = summary;
    let rate =
        |rate: &Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{}bit/s", decimal(rate)));
    let limit = max_memory.map(|limit| format!(" of {}", binary(limit))).unwrap_or_default();
    let pressure = if summary.memory_pressure { " (pressure)" } else { "" };
    let first = format!(
        "{} {}: up {}, down {}; {} estab, {} half-open; {}{limit}{pressure}",
        about.pid,
        about.command,
        rate(up),
        rate(down),
        census.in_state(State::Established),
        census.in_state(State::SynReceived),
        binary(*memory),
    );
    let share = retransmitted.map_or_else(|| "-".to_owned(), |share| format!("{:.2} %", share * 100.0));
    let second = format!(
        "  {}, {}, {}, {}; retransmitted {share}, {drops} dropped",
        policies.cc, policies.ack, policies.rto, policies.sched,
    );
    [first, second]
}

/// What stands where there is no stack.
pub(super) const NO_STACK: &str = "no stack has a control socket here; waiting for one";

/// All of it as text, as `-b` prints it.
pub(super) fn page(board: &Board, note: &str) -> String {
    let peers = board.entries.iter().map(|entry| entry.row.remote.to_string().len()).max().unwrap_or(0);
    let layout = Layout::new(usize::MAX, peers, false);
    let mut text = format!("{}\n", title(board, note));
    if board.stacks.is_empty() {
        let _ = writeln!(text, "{NO_STACK}");
    }
    for line in board.stacks.iter().flat_map(stack) {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "\n{}", layout.head().trim_end());
    for entry in &board.entries {
        let _ = writeln!(text, "{}", layout.entry(entry).trim_end());
    }
    text
}
