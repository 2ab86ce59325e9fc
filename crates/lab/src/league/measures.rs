//! What one run gives: numbers by name, of one seed.
//!
//! All are of the window, from the cell's warm-up to the end of the run, unless they say something
//! else. A number that a run does not have (no second flow, no requests) is not there.

use super::cell::Cell;
use super::convergence::{self, Bins};
use crate::results::{FlowResult, QueueResult, RunResult};
use crate::run::Outcome;
use crate::stats::{Spread, mean, quantile};
use std::collections::BTreeMap;

/// Numbers of one run, by name.
pub type Measures = BTreeMap<String, f64>;

/// This file: a change of a formula makes results of others unfit for the same table.
pub(super) const FORMULAS: &str = concat!(include_str!("measures.rs"), include_str!("convergence.rs"));

/// Blocks in which no flow may starve, s.
const BLOCK: f64 = 10.0;

/// The measures of a run of `cell`.
pub(super) fn of(cell: &Cell, outcome: &Outcome) -> Measures {
    let mut all = Measures::new();
    let run = &outcome.result;
    let mut put = |name: &str, value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            all.insert(name.to_owned(), value);
        }
    };
    // What flows the other way is not of this link.
    let greedy: Vec<&FlowResult> = run.flows.iter().filter(|flow| flow.greedy && flow.app != "up").collect();
    let ours: Vec<&FlowResult> = greedy.iter().copied().filter(|flow| flow.app == "a").collect();
    let theirs: Vec<&FlowResult> = greedy.iter().copied().filter(|flow| flow.app == "v").collect();
    let total = |flows: &[&FlowResult]| flows.iter().map(|flow| flow.goodput_bps).sum::<f64>();
    put("packets", Some(run.packets as f64));
    if !greedy.is_empty() && cell.facts.capacity > 0.0 {
        // Over several links in a row, the flow of the policy is on each.
        let most = run.queues.len().max(1) as f64;
        put("fill", (most < 2.0).then(|| total(&greedy) / cell.facts.capacity));
    }
    put("goodput", (!ours.is_empty()).then(|| total(&ours)));
    put("share", (!ours.is_empty() && cell.facts.capacity > 0.0).then(|| total(&ours) / cell.facts.capacity));
    put("victims", (!theirs.is_empty()).then(|| total(&theirs)));
    queues(&run.queues, &mut put);
    sent(run, &ours, &mut put);
    if let Some(bin_s) = run.bin_s {
        let bins = Bins { length: bin_s, window: run.window_s };
        put("cov", bins.variation(&ours));
        if let ("E" | "C" | "R", [_, _, ..]) = (cell.family, greedy.as_slice()) {
            put("starved", Some(bins.starved(&greedy, BLOCK)));
        }
        if cell.family == "C"
            && let (Some(first), Some(second)) = (app(run, "a"), app(run, "second"))
        {
            put("convergence", Some(bins.convergence(first, second)));
        }
        if let Some(flow) = app(run, "a") {
            for (number, at) in cell.facts.changes.iter().enumerate() {
                let until = cell.facts.changes.get(number + 1).copied().unwrap_or(run.window_s.1);
                put(&format!("settle-{}", number + 1), Some(bins.settle(flow, *at, until)));
            }
            if let Some((from, until)) = cell.facts.outage {
                put("recover", Some(bins.recover(flow, from, until)));
                put("into-outage", Some(convergence::sent_late(outcome, from + 1.0, until)));
            }
        }
    }
    if cell.family == "E" {
        let rates: Vec<f64> = ours.iter().map(|flow| flow.goodput_bps).collect();
        put("jain", crate::stats::jain(&rates).or(Some(0.0)));
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        put("least", (mean(&rates) > 0.0).then(|| least / mean(&rates)));
    }
    if let (Some(near), Some(far)) = (app(run, "a"), app(run, "far")) {
        // A flow that gets nothing counts as a thousandth of the other.
        let floor = near.goodput_bps.max(far.goodput_bps).max(1.0) / 1e3;
        let ratio = near.goodput_bps.max(floor) / far.goodput_bps.max(floor);
        put("exponent", Some(libm::log(ratio) / libm::log(cell.facts.ratio)));
    }
    for name in ["web", "rpc", "rt", "f10k", "f100k", "f1M", "f10M"] {
        let mut times: Vec<f64> = run
            .flows
            .iter()
            .filter(|flow| flow.app == name)
            .flat_map(|flow| flow.times_s.iter().copied())
            .collect();
        times.sort_by(f64::total_cmp);
        if !times.is_empty() {
            for (word, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
                put(&format!("{name}-{word}"), Some(quantile(&times, share)));
            }
            put(&format!("{name}-count"), Some(times.len() as f64));
        }
    }
    all
}

fn app<'a>(run: &'a RunResult, name: &str) -> Option<&'a FlowResult> {
    run.flows.iter().find(|flow| flow.app == name)
}

fn queues(queues: &[QueueResult], put: &mut impl FnMut(&str, Option<f64>)) {
    // Of several in a row the worst.
    let delay = |of: fn(&Spread) -> f64| {
        queues.iter().filter_map(|queue| queue.delay_s.as_ref()).map(of).max_by(f64::total_cmp)
    };
    put("q50", delay(|spread| spread.p50 * 1e3));
    put("q95", delay(|spread| spread.p95 * 1e3));
    put("q99", delay(|spread| spread.p99 * 1e3));
    put("qmax", delay(|spread| spread.max * 1e3));
    let loss = |queue: &QueueResult| {
        (queue.offered > 0).then(|| (queue.overflows + queue.aqm_drops) as f64 / queue.offered as f64)
    };
    put("loss", queues.iter().filter_map(loss).max_by(f64::total_cmp));
    let lost = |queue: &QueueResult| {
        (queue.offered > 0)
            .then(|| (queue.overflows + queue.aqm_drops + queue.impaired) as f64 / queue.offered as f64)
    };
    put("lost", queues.iter().filter_map(lost).max_by(f64::total_cmp));
    if let [queue] = queues
        && queue.queue != "drop-tail"
    {
        put("marked", Some(queue.mark_share()));
        for (name, spread) in [("l4s-q95", &queue.l4s_delay_s), ("classic-q95", &queue.classic_delay_s)] {
            put(name, spread.as_ref().map(|spread| spread.p95 * 1e3));
        }
    }
}

/// Retransmissions of the flows under test, and those that nothing called for.
fn sent(run: &RunResult, ours: &[&FlowResult], put: &mut impl FnMut(&str, Option<f64>)) {
    let data: u64 = ours.iter().map(|flow| flow.data_packets).sum();
    let again: u64 = ours.iter().map(|flow| flow.retransmits).sum();
    if data == 0 {
        return;
    }
    put("again", Some(again as f64 / data as f64));
    // Whose packet a queue dropped is known only if all are of one kind.
    let bulk: u64 = run.flows.iter().map(|flow| flow.data_packets).sum();
    if let [queue] = run.queues.as_slice()
        && bulk == data
    {
        let dropped = queue.overflows + queue.aqm_drops + queue.impaired;
        put("needless", Some(again.saturating_sub(dropped) as f64 / data as f64));
    }
}
