//! The functions of HSTCP (RFC 3649, sections 5 and 6, and appendix B). Windows in segments.

use super::AwMode;
use super::table::ROWS;
use libm::{log, pow};

/// Up to this window HSTCP is Reno.
pub const LOW_WINDOW: f64 = 38.0;
/// The window that HSTCP should reach ...
pub const HIGH_WINDOW: f64 = 83_000.0;
/// ... at this loss rate.
pub const HIGH_P: f64 = 1e-7;
/// b at [`HIGH_WINDOW`].
const HIGH_DECREASE: f64 = 0.1;
/// Loss rate at [`LOW_WINDOW`] by Reno's response function.
pub(super) const LOW_P: f64 = 1.5 / (LOW_WINDOW * LOW_WINDOW);
/// The smallest decrease, however large the window: with b = 0 a loss would never free bandwidth.
const LEAST_DECREASE: f64 = 0.05;

/// H1. b(w): the fraction of a window of `w` segments that a loss costs: a half up to 38 segments,
/// a tenth at 83,000, linear in the logarithm of w between them (RFC 3649, section 5), but never
/// less than a twentieth.
#[must_use]
pub fn decrease(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 0.5;
    }
    ((HIGH_DECREASE - 0.5) * position(w) + 0.5).max(LEAST_DECREASE)
}

/// H3. a(w): segments by which a window of `w` segments grows per round trip: w^2 p(w) 2 b(w) / (2 - b(w)),
/// and at least one (RFC 3649, section 5). `low_p` only applies to [`AwMode::LogLog`].
#[must_use]
pub fn increase(mode: AwMode, low_p: f64, w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 1.0;
    }
    // H2 and H5.
    let p = match mode {
        AwMode::LogLog => libm::exp(log(low_p) + position(w) * (log(HIGH_P) - log(low_p))),
        AwMode::Rfc => 1.0 / (12.8 * pow(w, 1.2)),
        AwMode::TableFloor => return rank(ROWS.partition_point(|row| f64::from(row.0) <= w)),
        AwMode::TableCeil => return rank(ROWS.partition_point(|row| f64::from(row.0) < w) + 1),
    };
    let b = decrease(w);
    (w * w * p * 2.0 * b / (2.0 - b)).max(1.0)
}

/// H4. HSTCP's average window in segments at a loss rate of `p`: (p / `low_p`)^S 38, where S is the
/// slope of the line in [`AwMode::LogLog`]; above `low_p` Reno's sqrt(1.5 / p).
#[must_use]
pub fn response(low_p: f64, p: f64) -> f64 {
    if p >= low_p {
        return libm::sqrt(1.5 / p);
    }
    let slope = log(HIGH_WINDOW / LOW_WINDOW) / (log(HIGH_P) - log(low_p));
    pow(p / low_p, slope) * LOW_WINDOW
}

/// Position of the logarithm of `w` between those of 38 (0) and 83,000 (1).
fn position(w: f64) -> f64 {
    (log(w) - log(LOW_WINDOW)) / (log(HIGH_WINDOW) - log(LOW_WINDOW))
}

/// The a of the table's `row`, counted from one; that of the last row beyond it.
fn rank(row: usize) -> f64 {
    row.clamp(1, ROWS.len()) as f64
}
