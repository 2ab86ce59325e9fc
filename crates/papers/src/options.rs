//! Options of a command, for all studies that it runs.

use ackline_lab::stage::Stages;
use ackline_plot::PlotOptions;
use std::path::PathBuf;
use std::sync::Arc;

/// Options for all studies.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Parts by name; empty: all.
    pub parts: Vec<String>,
    /// The smaller version, if a study has one.
    pub quick: bool,
    /// Seeds per point.
    pub seeds: Option<u32>,
    /// Factor on durations or volumes.
    pub scale: Option<f64>,
    /// Worker threads; 0: one per core. Results do not depend on it.
    pub threads: usize,
    /// Folder for pages, figures, JSON and data, made if it is not there.
    pub out: Option<PathBuf>,
    /// Folder with outputs of jobs that were run before, made if it is not there. `None`: every job
    /// is run.
    pub cache: Option<PathBuf>,
    /// Folder with data that `out` got earlier: from these everything is made, and nothing is run.
    pub from: Option<PathBuf>,
    /// If the data of `from` are of other sources than this program, a fixed sample of their jobs
    /// is run and compared.
    pub sample: bool,
    /// How figures become files.
    pub plot: PlotOptions,
    /// Where runs by the real clock take place; without it their jobs fail.
    pub live: Option<Arc<dyn Stages>>,
    /// Show progress on standard error, if that is a terminal.
    pub progress: bool,
}
