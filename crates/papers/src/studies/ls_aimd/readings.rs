//! Readings of the thesis: what its text leaves open, settled in one way or another.

/// One reading: parameters of LS-AIMD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// In the ids of runs and checks.
    pub(super) name: &'static str,
    /// In tables.
    pub(super) what: &'static str,
    /// Parameters beyond C.
    pub(super) params: &'static str,
}

const fn reading(name: &'static str, what: &'static str, params: &'static str) -> Reading {
    Reading { name, what, params }
}

/// ackline's default: each new RTT and each new window move a pending departure, and an increase is
/// sized with the window that a decrease leaves.
pub(super) const DESIGN: Reading = reading("design", "ackline's default", "");
/// The one that fits the thesis' tables: those of Tables 9.1 to 9.3 run with it.
pub(super) const PROTOTYPE: Reading =
    reading("prototype", "both: as in Tables 9.1 to 9.3 here", ",reclock=rtt,divisor=prior");
/// Sections 7.3.1 and 7.3.2 as they are worded.
pub(super) const RTT: Reading = reading("rtt", "only a new RTT moves a pending departure", ",reclock=rtt");
const PRIOR: Reading =
    reading("prior", "the increase is sized with the window before the decrease", ",divisor=prior");
pub(super) const OFF: Reading = reading("off", "nothing moves a pending departure", ",reclock=off");
/// Section 6.3 as it is printed.
pub(super) const PRINTED_D: Reading = reading(
    "printed-d",
    "the clock's RTT is the RTO's less (delta - 1) d, d as printed",
    ",clock_rtt=thesis",
);
const NINE_BITS: Reading = reading("nine-bits", "a logarithm of nine fraction bits", ",precision=9");

/// All of them, the four combinations of the two that matter first.
pub(super) const READINGS: [Reading; 7] = [DESIGN, RTT, PRIOR, PROTOTYPE, OFF, PRINTED_D, NINE_BITS];
