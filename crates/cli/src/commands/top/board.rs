//! What is known of stacks and their connections, from one answer to the next.

use crate::args::column::Column;
use crate::watchers::control::client::{Reply, Row};
use crate::watchers::control::protocol::About;
use crate::watchers::summary::Summary;
use std::collections::{HashMap, VecDeque};

/// Rates of a connection that are remembered.
const REMEMBERED: usize = 64;

/// What tells a connection from all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) pid: u32,
    /// When its stack began.
    pub(super) started: u64,
    pub(super) id: String,
}

/// A connection.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) row: Row,
    /// Payload acknowledged and received since the last answer, in bit/s; `None` at first.
    pub(super) tx: Option<f64>,
    pub(super) rx: Option<f64>,
    /// It retransmitted since then.
    pub(super) retransmits: bool,
    /// Both rates together, the newest last.
    pub(super) history: VecDeque<u64>,
}

impl Entry {
    fn new(key: Key, row: Row) -> Self {
        Self { key, row, tx: None, rx: None, retransmits: false, history: VecDeque::new() }
    }

    /// Takes what is true `seconds` later.
    fn advance(&mut self, row: Row, seconds: f64) {
        let rate = |now: u64, before: u64| {
            (seconds > 0.0).then(|| now.saturating_sub(before) as f64 * 8.0 / seconds)
        };
        self.tx = rate(row.bytes_acked, self.row.bytes_acked);
        self.rx = rate(row.bytes_received, self.row.bytes_received);
        self.retransmits = row.total_retrans > self.row.total_retrans;
        if self.history.len() == REMEMBERED {
            self.history.pop_front();
        }
        self.history.push_back((self.tx.unwrap_or(0.0) + self.rx.unwrap_or(0.0)) as u64);
        self.row = row;
    }

    /// Bytes written and not acknowledged.
    pub(super) fn send_queue(&self) -> u64 {
        u64::from(self.row.unacked) + u64::from(self.row.notsent_bytes)
    }
}

/// A stack.
#[derive(Clone, Debug)]
pub(super) struct StackEntry {
    pub(super) about: About,
    pub(super) summary: Summary,
    /// IP bytes sent and received since the last answer, in bit/s; `None` at first.
    pub(super) up: Option<f64>,
    pub(super) down: Option<f64>,
    /// Of the segments sent since then, the share that was sent again.
    pub(super) retransmitted: Option<f64>,
    /// Packets dropped since then.
    pub(super) drops: u64,
}

impl StackEntry {
    fn new(about: About, summary: Summary, before: Option<&Summary>) -> Self {
        let mut stack = Self { about, summary, up: None, down: None, retransmitted: None, drops: 0 };
        let now = &stack.summary;
        let Some(before) = before.filter(|before| before.now < now.now) else { return stack };
        let seconds = seconds(before, now);
        let rate = |now: u64, before: u64| Some(now.saturating_sub(before) as f64 * 8.0 / seconds);
        stack.up = rate(now.tx_bytes, before.tx_bytes);
        stack.down = rate(now.rx_bytes, before.rx_bytes);
        let segments = now.out_segs.saturating_sub(before.out_segs).max(1);
        let again = now.retrans_segs.saturating_sub(before.retrans_segs);
        stack.retransmitted = Some(again as f64 / segments as f64);
        stack.drops = now.device_drops.saturating_sub(before.device_drops);
        stack
    }
}

fn seconds(before: &Summary, now: &Summary) -> f64 {
    now.now.saturating_sub(before.now) as f64 / 1e9
}

/// All stacks and the connections that are shown.
#[derive(Debug, Default)]
pub(super) struct Board {
    pub(super) stacks: Vec<StackEntry>,
    pub(super) entries: Vec<Entry>,
}

impl Board {
    /// Takes new answers. What does not answer any more disappears.
    pub(super) fn take(&mut self, replies: Vec<Reply>) {
        let stacks = std::mem::take(&mut self.stacks);
        let mut known: HashMap<Key, Entry> =
            self.entries.drain(..).map(|entry| (entry.key.clone(), entry)).collect();
        for Reply { stack: about, rows, summary, .. } in replies {
            let Some(summary) = summary else { continue };
            let before = stacks.iter().find(|stack| stack.about == about).map(|stack| &stack.summary);
            let seconds = before.map_or(0.0, |before| seconds(before, &summary));
            for row in rows {
                let key = Key { pid: about.pid, started: about.started, id: row.id.clone() };
                let entry = match known.remove(&key) {
                    Some(mut entry) => {
                        entry.advance(row, seconds);
                        entry
                    }
                    None => Entry::new(key, row),
                };
                self.entries.push(entry);
            }
            self.stacks.push(StackEntry::new(about, summary, before));
        }
        self.stacks.sort_by_key(|stack| stack.about.pid);
    }

    pub(super) fn sort(&mut self, by: Column, reversed: bool) {
        self.entries.sort_by(|one, other| by.order(one, other, reversed));
    }

    /// Where a connection stands.
    pub(super) fn place(&self, key: &Key) -> Option<usize> {
        self.entries.iter().position(|entry| entry.key == *key)
    }
}
