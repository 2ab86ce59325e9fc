//! The league: congestion controls side by side, in one fixed matrix of scenarios.
//!
//! ```text
//!   matrix ─► jobs (contestant, cell, seed) ─► threads ─► measures, kept by key ─► criteria ─► verdicts, sanity rows ─► page
//! ```
//!
//! A [`Cell`] is a scenario with a place for the policy under test; each of its runs gives
//! [`Measures`]. A criterion (`criteria`) turns the measures of its cells into intervals over seeds
//! and compares them with its bars: RFC 9743 says what is asked of a new control, and most bars are
//! what Reno and CUBIC do in the same cell. All contestants get the same seeds, so differences
//! between them are paired. There is no total score.
//!
//! Runs are kept in a folder by the hash of what they depend on: sources of the simulator
//! ([`Options::engine`]), scenario, seed, and the code of the measures. An interrupted evaluation
//! goes on where it was, parts of one can run on several machines, and one more contestant costs
//! its own runs alone.
//!
//! Some cells can run in real time as well ([`evaluate_live`]), beside the kernel's own controls.

mod cell;
mod contestant;
mod convergence;
mod criteria;
mod evaluation;
mod figures;
mod judgement;
mod live;
mod m1;
mod matrix;
mod measures;
mod page;
mod result;
mod runs;
mod sanity;
mod setting;
mod statistics;
mod terminal;
mod view;

pub use cell::Cell;
pub use contestant::Contestant;
pub use evaluation::{Evaluation, Row, evaluate};
pub use judgement::Verdict;
pub use live::{
    Agreement, LiveCells, LiveEvaluation, LiveOptions, LiveResult, LiveRun, Machine, Sender, SenderResult,
    evaluate_live, live_matrix, unavailable, write_live_page,
};
pub use matrix::Matrix;
pub use measures::Measures;
pub use page::write_pages;
pub use result::{CellVerdict, Cells, Entry, LeagueResult, SanityRow};
pub use runs::{Options, Stand, merge};
pub use statistics::Interval;

/// The hash by which programs and scenarios are told apart (XXH3, 128 bits).
#[must_use]
pub fn hash(bytes: &[u8]) -> String {
    format!("{:032x}", twox_hash::XxHash3_128::oneshot(bytes))
}
