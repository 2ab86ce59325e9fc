//! What known controls must give: closed forms and measurements of others. If Reno or CUBIC misses
//! one of their rows, the simulation is wrong, and the whole evaluation is void.

use super::contestant::BASELINES;
use super::view::View;
use crate::stats::mean;

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Sanity {
    pub(super) control: &'static str,
    pub(super) cell: &'static str,
    pub(super) what: &'static str,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) source: &'static str,
    /// Mean over seeds.
    pub(super) measured: f64,
}

impl Sanity {
    pub(super) fn holds(&self) -> bool {
        (self.low..=self.high).contains(&self.measured)
    }

    /// True if it makes the evaluation void.
    pub(super) fn voids(&self) -> bool {
        !self.holds() && BASELINES.contains(&self.control)
    }
}

/// A row before its measurement: control, cell, measure, factor, what, low, high, source.
type Known = (&'static str, &'static str, &'static str, f64, &'static str, f64, f64, &'static str);

const MBIT: f64 = 1e-6;
const GOODPUT: &str = "goodput, Mbit/s";
const MATHIS: &str = "Mathis 1997: sqrt(3 / 2p) MSS / RTT with an ACK for each segment";
const PADHYE: &str = "Padhye 1998, with timeouts";

const KNOWN: &[Known] = &[
    ("reno", "L-1e-3", "goodput", MBIT, GOODPUT, 4.49 * 0.85, 4.49 * 1.15, MATHIS),
    ("reno", "L-1e-2", "goodput", MBIT, GOODPUT, 1.33 * 0.8, 1.33 * 1.2, PADHYE),
    ("reno", "S-20-40-.25", "fill", 1.0, "fill", 0.863, 0.923, "sawtooth: 3W^2 / 4(W^2 - W + 1), W = 1.25"),
    (
        "cubic",
        "L-1e-3",
        "goodput",
        MBIT,
        GOODPUT,
        4.49 * 0.95,
        4.49 * 1.35,
        "RFC 9438, section 5.2: Reno-friendly region",
    ),
    (
        "cubic",
        "L-fn-3e-4",
        "goodput",
        MBIT,
        GOODPUT,
        9.5 * 0.9,
        9.5 * 1.3,
        "RFC 9438: 1.054 (RTT / p)^0.75 segments",
    ),
    ("cubic", "S-20-40-.25", "fill", 1.0, "fill", 0.95, 1.0, "a decrease to 0.7 needs 0.43 BDP"),
    ("scalable", "L-1e-3", "goodput", MBIT, GOODPUT, 9.27 * 0.8, 9.27 * 1.2, "Kelly 2003: 0.08 / p segments"),
    (
        "hstcp",
        "L-fn-3e-4",
        "goodput",
        MBIT,
        GOODPUT,
        12.2 * 0.85,
        12.2 * 1.15,
        "RFC 3649: 0.12 / p^0.835 segments",
    ),
    (
        "reno",
        "S-20-40-4",
        "q95",
        1.0 / 160.0,
        "95th percentile of the queue, of the buffer",
        0.95,
        1.02,
        "RFC 9743, section 5.1.2: it fills the buffer",
    ),
    (
        "cubic",
        "S-20-40-4",
        "q95",
        1.0 / 160.0,
        "95th percentile of the queue, of the buffer",
        0.95,
        1.02,
        "RFC 9743, section 5.1.2: it fills the buffer",
    ),
    (
        "reno",
        "R-160",
        "exponent",
        1.0,
        "RTT exponent",
        1.0,
        2.0,
        "Xu 2004: 1 with random, 2 with synchronised losses",
    ),
    ("cubic", "R-160", "exponent", 1.0, "RTT exponent", 0.25, 1.0, "RFC 9438; Ha 2008"),
    (
        "scalable",
        "C-1",
        "convergence",
        1.0,
        "convergence, s",
        30.0,
        200.0,
        "Chiu and Jain 1989: MIMD does not converge",
    ),
    (
        "scalable",
        "R-160",
        "exponent",
        1.0,
        "RTT exponent",
        1.7,
        20.0,
        "MIMD: no share for the longer round trip",
    ),
    (
        "reno",
        "H-cubic-1",
        "kept",
        1.0,
        "what CUBIC keeps of its rate alone",
        0.40,
        0.60,
        "RFC 9438, section 5.2: Reno-friendly region",
    ),
    (
        "cubic",
        "H-reno-4",
        "kept",
        1.0,
        "what Reno keeps of its rate alone",
        0.15,
        0.35,
        "RFC 9438, section 5.2: larger windows, CUBIC wins",
    ),
    (
        "dctcp",
        "Q-step",
        "qmax",
        1.0 / 0.6,
        "longest queue, packets",
        20.0,
        26.0,
        "Alizadeh 2010: K + N = 22 packets",
    ),
    ("dctcp", "Q-step", "loss", 1.0, "loss", 0.0, 0.0, "RFC 8257"),
    (
        "ledbat",
        "S-20-160-4",
        "q50",
        1.0,
        "median queueing delay, ms",
        48.0,
        66.0,
        "LEDBAT++: a target of 60 ms",
    ),
    (
        "ledbat",
        "H-cubic-4",
        "share",
        1.0,
        "own share beside CUBIC",
        0.0,
        0.1,
        "RFC 6817, section 2: it yields",
    ),
    (
        "bbr",
        "L-1e-2",
        "fill",
        1.0,
        "fill",
        0.9,
        1.05,
        "draft-ietf-ccwg-bbr, section 3: random loss below 2 % is tolerated",
    ),
    (
        "bbr",
        "S-20-40-4",
        "q95",
        1.0 / 40.0,
        "95th percentile of the queue, RTTs",
        0.0,
        1.5,
        "draft-ietf-ccwg-bbr, section 3.2",
    ),
    (
        "prague",
        "Q-dualpi2",
        "l4s-q95",
        1.0,
        "95th percentile in the L4S queue, ms",
        0.0,
        2.0,
        "RFC 9332: about a millisecond",
    ),
];

/// The rows whose runs are there.
pub(super) fn rows(view: &View<'_>) -> Vec<Sanity> {
    let row = |known: &Known| {
        let (control, cell, measure, factor, what, low, high, source) = *known;
        let values = if measure == "kept" {
            let reference = view.matrix.cell(cell)?.facts.reference.as_deref()?;
            let with = view.values(control, cell, "victims")?;
            let alone = view.values("", reference, "victims")?;
            with.iter().zip(alone).map(|(with, alone)| with / alone.max(1.0)).collect()
        } else {
            view.values(control, cell, measure)?
        };
        Some(Sanity { control, cell, what, low, high, source, measured: mean(&values) * factor })
    };
    KNOWN.iter().filter_map(row).collect()
}
