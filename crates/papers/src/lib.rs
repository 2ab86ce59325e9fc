//! Papers repeated: one engine, a data set for each paper.
//!
//! A [`Study`] is what one paper measured: its numbers, the runs that repeat them, and the
//! tolerances within which they count as repeated. The engine runs the jobs of all chosen studies
//! side by side, asks each study for its [`Reproduction`], and writes it as text, Markdown, JSON
//! and SVG.
//!
//! ```text
//!   Part::plan(request) ─► jobs ─► rayon, one progress bar ─► Outputs ─► Part::evaluate ─► Reproduction, judged by pins
//!                             └ kept in a cache, by content                                          │
//!                                          terminal, NAME.md (from the study's page), NAME.json, NAME/*.svg
//! ```
//!
//! A [`Check`] passes, or fails the command; a miss that is known is pinned ([`pin`]): it fails the
//! command, too, if it leaves its bounds or passes. A [`Finding`] says what became of a published
//! table, and its verdict follows from checks. Outputs of jobs are cached by content, and a run's
//! data give its page again ([`Options::cache`], [`Options::from`]).
//!
//! Studies of [`LIVE`] run their scenarios a second time, on real packets beside the kernel's TCP,
//! on a stage of the caller ([`Options::live`]); they have pages of their own, with the same checks
//! and pins.
//!
//! To add a paper: a folder in [`studies`] with a type that implements [`Study`], a page in
//! Markdown ([`page`] has its placeholders), its pins, and a line in [`STUDIES`].
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod data;
mod engine;
mod error;
mod job;
mod judgement;
mod live;
mod options;
mod output;
pub mod page;
pub mod pin;
mod registry;
mod reproduction;
mod request;
mod result;
mod scenario;
mod sources;
pub mod studies;
mod study;
#[cfg(test)]
mod tests;

pub use ackline_plot::Figure;
pub use data::Origin;
pub use engine::reproduce;
pub use error::ReproduceError;
pub use job::{Job, LiveRun, Outputs};
pub use judgement::{Counts, Judgement, Verdict};
pub use options::Options;
pub use output::json::to_json;
pub use output::terminal::{agreement, listing, to_text, total};
pub use pin::{Extent, Pin};
pub use registry::{live_study, study};
pub use reproduction::check::Check;
pub use reproduction::finding::Finding;
pub use reproduction::table::{Cell, Table};
pub use reproduction::{Comparisons, Reproduction};
pub use request::{Knob, Request};
pub use result::{SampleResult, StudyResult};
pub use scenario::ScenarioText;
pub(crate) use scenario::scenario;
pub use sources::{COMMIT, ENGINE};
pub use studies::{LIVE, STUDIES};
pub use study::{Paper, Part, Study, no_jobs};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
