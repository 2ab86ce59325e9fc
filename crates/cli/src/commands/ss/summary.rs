//! `ackline ss -s`: stacks as wholes, as `ss -s` shows the kernel's sockets.

use crate::output::numbers;
use crate::watchers::control::protocol::About;
use crate::watchers::summary::{Census, Summary};
use ackline::core::State;
use serde::Serialize;
use std::fmt::Write as _;

/// A stack, and what it says of itself.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Stack {
    #[serde(flatten)]
    pub(super) stack: About,
    #[serde(flatten)]
    pub(super) summary: Summary,
}

/// The sums as `ss -s` has them, and a line for each stack.
pub(super) fn text(stacks: &[Stack]) -> String {
    let sum = |of: fn(&Summary) -> u64| -> u64 { stacks.iter().map(|stack| of(&stack.summary)).sum() };
    let all = sum(|summary| summary.census.connections());
    let listeners = sum(|summary| summary.census.in_state(State::Listen));
    let estab = sum(|summary| summary.census.in_state(State::Established));
    let closed = sum(|summary| summary.census.in_state(State::Closed));
    let orphans = sum(|summary| summary.orphans);
    let time_wait = sum(|summary| summary.census.in_state(State::TimeWait));
    let total = all + listeners;
    let mut text = format!(
        "Total: {total}\nTCP:   {total} (estab {estab}, closed {closed}, orphaned {orphans}, timewait {time_wait})\n"
    );
    for Stack { stack, summary } in stacks {
        let Summary { policies, census, memory, max_memory, .. } = summary;
        let Census { unacked, notsent, unread, out_of_order, accept_queue, .. } = census;
        let limit = max_memory.map(|limit| format!(" of {}", numbers::bytes(limit))).unwrap_or_default();
        let pressure = if summary.memory_pressure { ", under pressure" } else { "" };
        let _ = write!(
            text,
            "\nackline {}, pid {}: cc {}, ack {}, rto {}, sched {}\n\
             connections: {} (estab {}, half-open {}, ipv6 {}), listeners: {} ({accept_queue} wait to be accepted)\n\
             memory: {}{limit}{pressure}\n\
             queued: {} unacknowledged, {} not sent, {} not read, {} out of order\n\
             packets: {} in, {} out, {} dropped; segments: {} out, {} retransmitted\n",
            stack.command,
            stack.pid,
            policies.cc,
            policies.ack,
            policies.rto,
            policies.sched,
            census.connections(),
            census.in_state(State::Established),
            census.in_state(State::SynReceived),
            census.ipv6,
            census.in_state(State::Listen),
            numbers::bytes(*memory),
            numbers::bytes(*unacked),
            numbers::bytes(*notsent),
            numbers::bytes(*unread),
            numbers::bytes(*out_of_order),
            summary.rx_packets,
            summary.tx_packets,
            summary.device_drops,
            summary.out_segs,
            summary.retrans_segs,
        );
    }
    text
}
