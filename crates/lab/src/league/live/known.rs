//! What is known of controls in cells that run in real time, BBRv1 of the kernel above all.

use super::super::sanity::Sanity;
use super::evaluation::LiveEvaluation;

/// A row before its measurement: controls, cell, measure, factor, what, low, high, source.
type Known = (&'static [&'static str], &'static str, &'static str, f64, &'static str, f64, f64, &'static str);

/// Rows that runs of 15 s show as well as those of a minute.
const ALWAYS: &[Known] = &[
    (
        &["linux:bbr"],
        "L-1e-2",
        "fill",
        1.0,
        "fill",
        0.85,
        1.05,
        "Cardwell 2016: it does not take random loss for congestion",
    ),
    (
        &["linux:bbr"],
        "E-2-1",
        "loss",
        100.0,
        "congestion loss, %",
        2.0,
        100.0,
        "Hock 2017; RFC 9743, section 5.1.3: several flows of version 1 overrun a buffer of 1 BDP",
    ),
    (
        &["bbr"],
        "L-1e-2",
        "fill",
        1.0,
        "fill",
        0.9,
        1.05,
        "draft-ietf-ccwg-bbr, section 3: random loss below 2 % is tolerated",
    ),
    (
        &["bbr"],
        "S-20-40-4",
        "q95",
        1.0 / 40.0,
        "95th percentile of the queue, RTTs",
        0.0,
        1.5,
        "draft-ietf-ccwg-bbr, section 3.2",
    ),
];

/// Rows that need a minute.
const LONG: &[Known] = &[
    (
        &["reno", "linux:reno"],
        "L-1e-2",
        "goodput",
        1e-6,
        "goodput, Mbit/s",
        1.33 * 0.8,
        1.33 * 1.2,
        "Padhye 1998, with timeouts",
    ),
    (
        &["reno", "cubic", "linux:reno", "linux:cubic"],
        "S-20-40-4",
        "q95",
        1.0 / 160.0,
        "95th percentile of the queue, of the buffer",
        0.95,
        1.02,
        "RFC 9743, section 5.1.2: it fills the buffer",
    ),
    (
        &["reno", "linux:reno"],
        "H-cubic-1",
        "kept",
        1.0,
        "what CUBIC keeps of its rate alone",
        0.40,
        0.60,
        "RFC 9438, section 5.2: Reno-friendly region",
    ),
];

impl LiveEvaluation {
    /// The rows whose live runs are there.
    pub(super) fn known(&self) -> Vec<Sanity> {
        let known = ALWAYS.iter().chain(if self.is_quick() { &[] } else { LONG });
        let mut rows = vec![];
        for (controls, cell, measure, factor, what, low, high, source) in known {
            let Some(place) = self.matrix.cell(cell) else { continue };
            for control in *controls {
                let sender = self.senders.iter().find(|sender| sender.name == *control);
                let live = sender.and_then(|sender| self.both(sender, place, measure).live);
                rows.extend(live.map(|live| Sanity {
                    control,
                    cell,
                    what,
                    low: *low,
                    high: *high,
                    source,
                    measured: live * factor,
                }));
            }
        }
        rows
    }
}
