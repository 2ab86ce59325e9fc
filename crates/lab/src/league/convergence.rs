//! What bins of received bytes say about time: shares that settle, rates that come back, flows that
//! starve.

use crate::results::FlowResult;
use crate::run::Outcome;
use crate::stats::mean;

/// Bins of received bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bins {
    /// Of one, s.
    pub(super) length: f64,
    /// Begin and end of the window, s.
    pub(super) window: (f64, f64),
}

impl Bins {
    fn place(self, at: f64) -> usize {
        libm::round(at / self.length) as usize
    }

    /// Bits per second of a flow from one time to another.
    fn rate(self, flow: &FlowResult, from: f64, until: f64) -> f64 {
        let (from, until) = (self.place(from), self.place(until).min(flow.received_bins.len()));
        if until <= from {
            return 0.0;
        }
        let bytes: u64 = flow.received_bins[from..until].iter().sum();
        bytes as f64 * 8.0 / ((until - from) as f64 * self.length)
    }

    /// Coefficient of variation of the sum over flows in each second.
    pub(super) fn variation(self, flows: &[&FlowResult]) -> Option<f64> {
        let seconds = (self.window.0 as usize)..(self.window.1 as usize);
        let sums: Vec<f64> = seconds
            .map(|second| {
                let from = second as f64;
                flows.iter().map(|flow| self.rate(flow, from, from + 1.0)).sum()
            })
            .collect();
        let middle = mean(&sums);
        let squares: f64 = sums.iter().map(|sum| (sum - middle) * (sum - middle)).sum();
        (middle > 0.0).then(|| libm::sqrt(squares / sums.len() as f64) / middle)
    }

    /// Blocks in which a flow, `block` seconds or more after its start, got less than a hundredth
    /// of its fair share.
    pub(super) fn starved(self, flows: &[&FlowResult], block: f64) -> f64 {
        let mut count = 0.0;
        let mut from = self.window.0;
        while from + block <= self.window.1 + 1e-9 {
            let rates: Vec<f64> = flows.iter().map(|flow| self.rate(flow, from, from + block)).collect();
            let fair = mean(&rates);
            let starves =
                |(flow, rate): (&&FlowResult, &f64)| flow.start_s + block <= from && *rate < fair / 100.0;
            count += flows.iter().zip(&rates).filter(|pair| starves(*pair)).count() as f64;
            from += block;
        }
        count
    }

    /// Seconds from the start of the second flow until the smaller of both rates, in means of 2 s,
    /// is at least half of the larger one and stays so for 5 s; the rest of the run, if never.
    pub(super) fn convergence(self, first: &FlowResult, second: &FlowResult) -> f64 {
        let begin = first.start_s.max(second.start_s);
        let end = self.window.1;
        let is_fair = |at: f64| {
            let (one, two) = (self.rate(first, at - 2.0, at), self.rate(second, at - 2.0, at));
            one.min(two) >= one.max(two) / 2.0 && one.max(two) > 0.0
        };
        self.first_stretch(begin + 2.0, end, 5.0, is_fair).map_or(end - begin, |at| at - begin)
    }

    /// Seconds from a change until the mean of 2 s is at least 0.8 of what the flow gets in the
    /// last third of the time until `until`; all of it, if never.
    pub(super) fn settle(self, flow: &FlowResult, change: f64, until: f64) -> f64 {
        let new = self.rate(flow, until - (until - change) / 3.0, until);
        let is_there = |at: f64| self.rate(flow, at - 2.0, at) >= 0.8 * new;
        self.first_stretch(change + 2.0, until, 0.0, is_there).map_or(until - change, |at| at - 2.0 - change)
    }

    /// Seconds from the end of an outage until the mean of 1 s is at least 0.8 of the rate in the
    /// 10 s before it; the rest of the run, if never.
    pub(super) fn recover(self, flow: &FlowResult, from: f64, until: f64) -> f64 {
        let old = self.rate(flow, from - 10.0, from);
        let is_back = |at: f64| self.rate(flow, at - 1.0, at) >= 0.8 * old;
        let end = self.window.1;
        self.first_stretch(until + 1.0, end, 0.0, is_back).map_or(end - until, |at| at - 1.0 - until)
    }

    /// When `holds` begins to be true for `length` seconds, by the ends of bins.
    fn first_stretch(self, from: f64, until: f64, length: f64, holds: impl Fn(f64) -> bool) -> Option<f64> {
        let mut since = None;
        let last = self.place(until);
        let mut place = libm::ceil(from / self.length - 1e-9) as usize;
        while place <= last {
            let at = place as f64 * self.length;
            if holds(at) {
                let begun = *since.get_or_insert(at);
                if at - begun >= length - 1e-9 {
                    return Some(begun);
                }
            } else {
                since = None;
            }
            place += 1;
        }
        None
    }
}

/// Packets with data that were sent into an outage between two times.
pub(super) fn sent_late(outcome: &Outcome, from: f64, until: f64) -> f64 {
    let rows = outcome.record.trace.iter().flat_map(|trace| &trace.rows);
    let late = |at_ns: u64| (from..until).contains(&(at_ns as f64 / 1e9));
    rows.filter(|row| row.dropped && row.event == "impairment" && late(row.at_ns)).count() as f64
}
