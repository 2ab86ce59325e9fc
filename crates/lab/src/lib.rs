//! The laboratory: scenarios in text files, run in virtual time; sweeps, statistics, tables and
//! plots.
//!
//! A [`Scenario`] is read from TOML ([`scenario`] describes the format), may take other values
//! ([`with_set`](Scenario::with_set)), and is run at all its points with all its seeds ([`run()`]).
//! Whatever it gives follows from the text and the seed: not from the machine, nor from the number
//! of threads.
//!
//! ```
//! use ackline_lab::{RunOptions, Scenario, run};
//!
//! let text = r#"
//!     duration = "2s"
//!     [[node]]
//!     name = "a"
//!     [[node]]
//!     name = "b"
//!     [[link]]
//!     name = "wire"
//!     between = ["a", "b"]
//!     rate = "10mbit"
//!     delay = "5ms"
//!     [[app]]
//!     kind = "bulk"
//!     from = "a"
//!     to = "b"
//! "#;
//! let scenario = Scenario::parse(text, "example.toml")?.with_set(["link.wire.rate=20mbit"])?;
//! let report = run(&scenario, &RunOptions::default())?;
//! assert!(report.results[0].queues[0].utilisation > 0.9);
//! println!("{}", report.summary.to_text());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(not(unix))]
compile_error!("ackline-lab needs Unix: it tells the files of two processes apart by their inodes");

mod around;
mod batch;
mod error;
pub mod figures;
mod folder;
pub mod grid;
mod layout;
pub mod league;
pub mod report;
pub mod results;
mod run;
mod run_plots;
pub mod scenario;
pub mod stage;
pub mod stats;
mod summary;
pub mod tables;
pub mod unfinished;
mod wrap;

/// Plots as SVG and PDF: what [`figures`] returns, and how [`RunOptions`] has it drawn.
pub use ackline_plot as plot;
pub use ackline_plot::short;
pub use around::{Around, Taken};
pub use batch::merge::merge;
pub use batch::points::PointRange;
pub use batch::{MAX_POINTS_DRAWN, Report, RunOptions, run, run_on, table_of};
pub use error::{Location, RunError, ScenarioError};
pub use folder::{load, write};
pub use layout::Layout;
pub use results::RunResult;
pub use run::goodput::GoodputSeries;
pub use run::scene::{QueueLimit, Scene, SceneLink};
pub use run::sequence::{ReceivedAck, SentBytes, TimeSequence};
pub use run::{Outcome, run_one, run_one_on, simulation};
pub use run_plots::RunPlots;
pub use scenario::examples::{EXAMPLES, Example, example};
pub use scenario::{Param, Scenario};
pub use summary::compare::{Compared, Comparison};
pub use summary::{Metric, PointSummary, PolicyUse, Summary, UsedPolicy};
pub use wrap::{WIDTH, wrap};

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
