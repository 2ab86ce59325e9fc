//! What is drawn of results: of a run, of a sweep, and of several folders.

mod of_run;
mod of_sweep;
mod overlay;
mod time_sequence;

pub use of_run::run_plots;
pub use of_sweep::sweep_charts;
pub use overlay::overlay;
