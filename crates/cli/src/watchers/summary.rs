//! A stack at a glance: what `ackline ss -s`, `ackline top` and `--metrics` say of it as a whole.

use crate::settings::PolicyNames;
use crate::watchers::filter::STATES;
use ackline::core::State;
use ackline::runtime::stats::Stats;
use ackline::runtime::{Info, Stack, stack::ConnSnapshot, timer};
use serde::{Deserialize, Serialize};
use std::thread;
use std::time::Duration;

/// Connections that are looked at under one hold of the stack's lock: the driver does not wait for
/// a long list.
const CHUNK: usize = 32;

/// Time in which the driver, if it waits for the lock, gets it before the next chunk. Unlocked for
/// a moment only, the lock would go to whoever is already running: the reader again.
const PAUSE: Duration = Duration::from_micros(100);

/// All connections of a stack, a few at a time.
pub(crate) struct Chunks<'a> {
    stack: &'a Stack,
    next: Option<usize>,
}

impl<'a> Chunks<'a> {
    pub(crate) const fn of(stack: &'a Stack) -> Self {
        Self { stack, next: Some(0) }
    }
}

impl Iterator for Chunks<'_> {
    type Item = Vec<ConnSnapshot>;

    fn next(&mut self) -> Option<Self::Item> {
        let from = self.next?;
        if from > 0 {
            #[expect(clippy::disallowed_methods, reason = "only the reader's own thread waits, and shortly")]
            thread::sleep(PAUSE);
        }
        let (chunk, next) = self.stack.snapshots(from, CHUNK);
        self.next = next;
        Some(chunk)
    }
}

/// What all connections of a stack have in sum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Census {
    /// Number by state, in the order of [`STATES`]: half-open connections and the records of
    /// TIME-WAIT included.
    pub(crate) states: [u64; STATES.len()],
    /// Over IPv6; half-open connections and the records of TIME-WAIT not included.
    pub(crate) ipv6: u64,
    /// Connections that wait to be accepted.
    pub(crate) accept_queue: u64,
    /// Bytes sent and not acknowledged.
    pub(crate) unacked: u64,
    /// Bytes written and not sent.
    pub(crate) notsent: u64,
    /// Bytes received in order and not read.
    pub(crate) unread: u64,
    /// Bytes received out of order.
    pub(crate) out_of_order: u64,
}

impl Census {
    /// Looks at all connections, a few at a time.
    pub(crate) fn of(stack: &Stack, stats: &Stats) -> Self {
        let mut census = Self::default();
        for found in Chunks::of(stack).flatten() {
            census.add(&found.info);
        }
        census.add_records(stack, stats);
        census
    }

    /// Adds a connection.
    pub(crate) fn add(&mut self, info: &Info) {
        self.count(info.state, 1);
        self.ipv6 += u64::from(info.remote.is_ipv6());
        self.unacked += u64::from(info.unacked);
        self.notsent += u64::from(info.notsent_bytes);
        self.unread += u64::from(info.unread_bytes);
        self.out_of_order += u64::from(info.ooo_bytes);
    }

    /// Adds listeners, and what is a record and no connection.
    pub(crate) fn add_records(&mut self, stack: &Stack, stats: &Stats) {
        self.count(State::SynReceived, stats.half_open);
        self.count(State::TimeWait, stats.time_wait);
        for (_, queued) in stack.listeners() {
            self.count(State::Listen, 1);
            self.accept_queue += queued as u64;
        }
    }

    fn count(&mut self, state: State, number: usize) {
        if let Some(place) = STATES.iter().position(|(known, _)| *known == state) {
            self.states[place] += number as u64;
        }
    }

    /// The number in a state.
    pub(crate) fn in_state(&self, state: State) -> u64 {
        STATES
            .iter()
            .zip(self.states)
            .filter(|((known, _), _)| *known == state)
            .map(|(_, number)| number)
            .sum()
    }

    /// Connections in all states, listeners not included.
    pub(crate) fn connections(&self) -> u64 {
        self.states.iter().sum::<u64>() - self.in_state(State::Listen)
    }
}

/// A stack as a whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// The time at which the rest is true, in nanoseconds of the stack's clock.
    pub(crate) now: u64,
    /// The policies of new connections, and the egress scheduler.
    pub(crate) policies: PolicyNames,
    #[serde(flatten)]
    pub(crate) census: Census,
    pub(crate) orphans: u64,
    /// Bytes held for connections and tables.
    pub(crate) memory: u64,
    /// The budget for it; `None`: no limit.
    pub(crate) max_memory: Option<u64>,
    pub(crate) memory_pressure: bool,
    /// IP bytes and packets that the device has received and sent since the stack began.
    pub(crate) rx_bytes: u64,
    pub(crate) rx_packets: u64,
    pub(crate) tx_bytes: u64,
    pub(crate) tx_packets: u64,
    /// Packets that the device or the kernel before it dropped.
    pub(crate) device_drops: u64,
    /// Segments sent, and sent again.
    pub(crate) out_segs: u64,
    pub(crate) retrans_segs: u64,
}

impl Summary {
    pub(crate) fn new(policies: PolicyNames, stats: &Stats, census: Census) -> Self {
        let Stats { device, counters, .. } = stats;
        Self {
            now: timer::now().as_nanos(),
            policies,
            census,
            orphans: stats.orphans as u64,
            memory: stats.memory,
            max_memory: stats.max_memory,
            memory_pressure: stats.memory_pressure,
            rx_bytes: device.rx_bytes,
            rx_packets: device.rx_packets,
            tx_bytes: device.tx_bytes,
            tx_packets: device.tx_packets,
            device_drops: stats.device_drops + device.rx_malformed + device.rx_kernel_drops,
            out_segs: counters.tcp_out_segs + counters.tcp_retrans_segs,
            retrans_segs: counters.tcp_retrans_segs,
        }
    }
}
