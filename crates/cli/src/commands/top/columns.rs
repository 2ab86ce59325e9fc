//! The columns of the table, and sorting by them.

use super::board::Entry;
use super::numbers::{binary, decimal, millis};
use crate::args::column::Column;
use crate::commands::ss::line;
use std::cmp::Ordering;

impl Column {
    /// In the order in which they stand.
    pub(super) const ALL: [Self; 11] = [
        Self::Pid,
        Self::Peer,
        Self::State,
        Self::Cc,
        Self::Tx,
        Self::Rx,
        Self::Cwnd,
        Self::Rtt,
        Self::Sendq,
        Self::Recvq,
        Self::Retr,
    ];

    pub(super) const fn head(self) -> &'static str {
        match self {
            Self::Pid => "PID",
            Self::Peer => "PEER",
            Self::State => "STATE",
            Self::Cc => "CC",
            Self::Tx => "TX",
            Self::Rx => "RX",
            Self::Cwnd => "CWND",
            Self::Rtt => "RTTms",
            Self::Sendq => "SENDQ",
            Self::Recvq => "RECVQ",
            Self::Retr => "RETR",
        }
    }

    /// Characters; the peer's address gets what is left as well.
    pub(super) const fn width(self) -> usize {
        match self {
            Self::Pid => 7,
            Self::Peer => 18,
            Self::Cc => 6,
            _ => 5,
        }
    }

    /// Text stands to the left, and is sorted from A to Z; numbers from large to small.
    pub(super) const fn is_text(self) -> bool {
        matches!(self, Self::Peer | Self::State | Self::Cc)
    }

    /// Left out on a narrow screen, the first ones first.
    pub(super) const DISPENSABLE: [Self; 3] = [Self::Recvq, Self::Cc, Self::State];

    pub(super) fn text(self, entry: &Entry) -> String {
        let row = &entry.row;
        let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), decimal);
        match self {
            Self::Pid => entry.key.pid.to_string(),
            Self::Peer => row.remote.to_string(),
            Self::State => line::state(&row.state).to_owned(),
            Self::Cc => row.cc.clone(),
            Self::Tx => rate(entry.tx),
            Self::Rx => rate(entry.rx),
            Self::Cwnd => binary(row.snd_cwnd),
            Self::Rtt => row.rtt.map_or_else(|| "-".to_owned(), millis),
            Self::Sendq => binary(entry.send_queue()),
            Self::Recvq => binary(row.unread_bytes.into()),
            Self::Retr => decimal(row.total_retrans as f64),
        }
    }

    /// How two connections are ordered if this column decides; by process and identity if it does
    /// not tell them apart.
    pub(super) fn order(self, one: &Entry, other: &Entry, reversed: bool) -> Ordering {
        let rate = |rate: Option<f64>| rate.unwrap_or(-1.0);
        let order = match self {
            Self::Pid => one.key.pid.cmp(&other.key.pid).reverse(),
            Self::Peer => one.row.remote.cmp(&other.row.remote),
            Self::State => one.row.state.cmp(&other.row.state),
            Self::Cc => one.row.cc.cmp(&other.row.cc),
            Self::Tx => rate(one.tx).total_cmp(&rate(other.tx)),
            Self::Rx => rate(one.rx).total_cmp(&rate(other.rx)),
            Self::Cwnd => one.row.snd_cwnd.cmp(&other.row.snd_cwnd),
            Self::Rtt => one.row.rtt.cmp(&other.row.rtt),
            Self::Sendq => one.send_queue().cmp(&other.send_queue()),
            Self::Recvq => one.row.unread_bytes.cmp(&other.row.unread_bytes),
            Self::Retr => one.row.total_retrans.cmp(&other.row.total_retrans),
        };
        let order = if self.is_text() == reversed { order.reverse() } else { order };
        order.then_with(|| one.key.cmp(&other.key))
    }
}
