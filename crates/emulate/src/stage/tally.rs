//! What one end of a flow has done, told while it goes on.

use super::opens;
use ackline_lab::scenario::AppKind;
use ackline_lab::stage::{EndReport, OutsideEnd};
use ackline_netsim::app::Timed;
use ackline_netsim::record::{ConnRecord, ConnSample};
use ackline_tcp_core::Duration;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Samples of one connection; every second one is dropped at this number, and only every second one
/// taken from then on.
const MAX_SAMPLES: usize = 20_000;
/// Connections whose samples are kept.
const MAX_CONNECTIONS: usize = 1_000;

/// Shared by the tasks of an end and whoever reads it.
#[derive(Debug)]
pub(super) struct Tally {
    node: usize,
    app: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: BTreeMap<&'static str, f64>,
    times: Vec<Timed>,
    /// Of the last thing that has ended.
    completion: Option<Duration>,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    record: ConnRecord,
    /// One of so many samples is kept.
    every: usize,
    seen: usize,
}

/// Index of a connection whose samples are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnIndex(usize);

impl Tally {
    /// The names that netsim's application of the same kind reports, each zero.
    pub(super) fn new(end: &OutsideEnd, node: usize) -> Self {
        let names: &[&'static str] = match (&end.kind, opens(end.role)) {
            (AppKind::Request { .. }, true) => &["asked", "answered", "failed", "wrong_reads"],
            (AppKind::Request { .. }, false) => &["answered", "failed", "wrong_reads"],
            (AppKind::Download { .. }, true) => {
                &["begun", "complete", "failed", "received_bytes", "wrong_reads"]
            }
            (AppKind::Download { .. }, false) => &["served", "failed"],
            (AppKind::Source { .. }, true) => &["written_bytes", "rounds", "stalled_writes", "failed"],
            (_, true) => &["written_bytes", "begun", "complete", "failed"],
            (_, false) => &["accepted", "complete", "failed", "received_bytes", "wrong_reads"],
        };
        let counts = names.iter().map(|name| (*name, 0.0)).collect();
        Self { node, app: end.app, state: Mutex::new(State { counts, ..State::default() }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts under one of the names that such an end reports; others are not counted.
    pub(super) fn add(&self, name: &'static str, number: u64) {
        if let Some(count) = self.state().counts.get_mut(name) {
            *count += number as f64;
        }
    }

    /// Something that was measured has ended.
    pub(super) fn ended(&self, time: Timed) {
        let mut state = self.state();
        state.times.push(time);
        state.completion = Some(time.1);
    }

    /// All has ended, after this time, of an application that measures no times.
    pub(super) fn completed(&self, time: Duration) {
        self.state().completion = Some(time);
    }

    /// A connection has begun. `None` if enough of them are kept.
    pub(super) fn connection(&self, cc: &str, local: String, remote: String) -> Option<ConnIndex> {
        let mut state = self.state();
        let conn = state.connections.len();
        if conn >= MAX_CONNECTIONS {
            return None;
        }
        let record = ConnRecord {
            node: self.node,
            app: self.app,
            conn,
            local,
            remote,
            cc: cc.to_owned(),
            ack_policy: String::new(),
            rto_response: String::new(),
            samples: vec![],
            metrics: vec![],
        };
        state.connections.push(Connection { record, every: 1, seen: 0 });
        Some(ConnIndex(conn))
    }

    pub(super) fn sample(&self, ConnIndex(place): ConnIndex, sample: ConnSample) {
        let mut state = self.state();
        let Some(Connection { record, every, seen }) = state.connections.get_mut(place) else { return };
        if record.samples.len() >= MAX_SAMPLES {
            let mut place = 0;
            record.samples.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            *every *= 2;
        }
        if seen.is_multiple_of(*every) {
            record.samples.push(sample);
        }
        *seen += 1;
    }

    pub(super) fn report(&self) -> EndReport {
        let state = self.state();
        let mut metrics: BTreeMap<String, f64> =
            state.counts.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        if let (Some(last), true) = (state.completion, metrics.contains_key("written_bytes")) {
            metrics.insert("completion_s".to_owned(), last.as_secs_f64());
        }
        EndReport { metrics, times: state.times.clone() }
    }

    /// The connections whose samples were kept.
    pub(super) fn connections(&self) -> Vec<ConnRecord> {
        self.state().connections.iter().map(|connection| connection.record.clone()).collect()
    }
}
