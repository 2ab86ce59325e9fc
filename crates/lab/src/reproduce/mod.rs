//! Papers repeated: one engine, a data set for each paper.
//!
//! A [`Study`] is what one paper measured: its numbers, the runs that repeat them, and the tolerances within which they count as
//! repeated. The engine runs the jobs of all chosen studies side by side, asks each study for its [`Reproduction`], and writes
//! it as text, Markdown, JSON and SVG.
//!
//! ```text
//!   Study::plan(request) ─► jobs ─► rayon, one progress bar ─► Outputs ─► Study::evaluate ─► Reproduction
//!                             └ kept in --out, so that an interrupted command goes on              │
//!                                          terminal, NAME.md (from the study's page), NAME.json, NAME/*.svg
//! ```
//!
//! To add a paper: a folder here with a type that implements [`Study`], a page in Markdown ([`page`] has its
//! placeholders), and a line in [`STUDIES`].

mod a3;
mod acwap;
mod check;
mod dclor;
mod engine;
mod error;
mod job;
mod json;
pub mod kalampoukas;
mod ls_aimd;
pub mod page;
mod registry;
mod reproduction;
mod study;
mod table;
mod terminal;
#[cfg(test)]
mod tests;

pub use crate::plot::Figure;
pub use check::Check;
pub use engine::{Options, StudyResult, reproduce};
pub use error::ReproduceError;
pub use job::{Job, Outputs};
pub use json::to_json;
pub use registry::{STUDIES, study};
pub use reproduction::Reproduction;
pub use study::{Knob, Paper, Part, Request, Study};
pub use table::{Cell, Table};
pub use terminal::{listing, to_text};
