//! What `ackline evaluate` takes.

use super::OutputArgs;
use super::emulate::EmulatePacing;
use ackline::runtime::priority::Priority;
use ackline_lab::PointRange;
use clap::Args;
use std::path::PathBuf;

/// Compare congestion controls in one fixed matrix of scenarios: the league
///
/// Runs each control alone, beside flows of the same control and beside Reno and CUBIC, over paths
/// with every size of buffer, with losses, reordering, outages, queue management and other traffic,
/// in virtual time, with the same seeds for all. Prints a table with a column for each control and a
/// row for each criterion, which names its bars: mostly what Reno and CUBIC do in the same cell (RFC
/// 9743).
///
/// Reno, CUBIC and CUBIC with a pacer always take part, since the others are compared with them.
///
/// With --live some of the cells run by the real clock, with the kernel's TCP as receiver and as
/// the flow beside, and the kernel's own controls take part as linux:NAME.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct EvaluateArgs {
    /// Congestion controls, with parameters as --cc takes them [default: all]
    ///
    /// With --live also linux:NAME, a control of the kernel [default: reno, cubic and bbr, and those
    /// of the kernel with these names].
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Run a small matrix: short cells with two seeds, and no verdicts
    ///
    /// With --live seven cells of 15 or 20 s with one seed.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run some cells in real time, each beside its simulation, and let the kernel's controls take
    /// part
    ///
    /// One run at a time: 33 minutes a control, two with --quick. Each number stands beside that of
    /// the same cell simulated, and a fixed rule says whether the two agree. Needs TUN devices, root
    /// or user namespaces, and a machine with nothing else to do: a run that it did not keep up with
    /// is repeated at most twice, and then shown as void. --list names the cells, the kernel's
    /// controls, and what has no place in real time.
    #[arg(long, conflicts_with_all = ["points", "overlay", "bars"])]
    pub(crate) live: bool,
    /// How departures of live runs are waited for
    #[arg(long, value_enum, default_value_t, requires = "live", conflicts_with = "from")]
    pub(crate) pacing: EmulatePacing,
    /// Priority of the thread that emulates live runs: nice:-20 to nice:19, or real-time, fifo:1 to
    /// fifo:99 [default: the usual one]
    ///
    /// Needs root, CAP_SYS_NICE, or limits that allow it (ulimit -e, ulimit -r). The threads of
    /// hosts keep the usual priority. The page states the priority.
    #[arg(long, value_name = "KIND:N", requires = "live", conflicts_with = "from")]
    pub(crate) priority: Option<Priority>,
    /// Run these cells only, by name or family: S-20-40-1, H
    #[arg(long = "cell", value_name = "CELL", value_delimiter = ',')]
    pub(crate) cells: Vec<String>,
    /// List the cells, with their seeds and what they cost
    #[arg(long, conflicts_with_all = ["names", "scenario", "seeds", "out", "points", "from", "overlay", "refresh", "bars",
        "jobs"])]
    pub(crate) list: bool,
    /// Print the scenario of a cell with the first control, for ackline sim; with --live for ackline
    /// emulate
    #[arg(long, value_name = "CELL", conflicts_with_all = ["cells", "seeds", "out", "points", "from", "overlay", "refresh",
        "bars", "jobs"])]
    pub(crate) scenario: Option<String>,
    /// Number of seeds of each cell [default: the cell's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) seeds: Option<u32>,
    /// Folder for finished runs, pages and data; finished runs in it are not repeated
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run only these runs, by number: 0..500; ackline merge joins the folders
    #[arg(long, value_name = "A..B", requires = "out")]
    pub(crate) points: Option<PointRange>,
    /// Make pages from a league.json, of the same matrix: nothing is run. With --live from a live.json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "seeds", "points", "refresh"])]
    pub(crate) from: Option<PathBuf>,
    /// Add the controls of another league.json, of the same matrix, with its results
    #[arg(long, value_name = "FILE")]
    pub(crate) overlay: Vec<PathBuf>,
    /// Run all controls, and write the page and its data anew, in docs
    ///
    /// For a checkout of ackline. Finished runs are kept in docs/league/refresh until the page is
    /// written, so an interrupted command goes on if it is repeated. With --live the page is
    /// docs/league/live.md, of the usual controls, and runs are kept in docs/league/refresh-live
    /// until none is void.
    #[arg(long, conflicts_with_all = ["names", "cells", "seeds", "points", "out", "overlay"])]
    pub(crate) refresh: bool,
    /// Exit with status 1 if a control fails a criterion
    ///
    /// Otherwise only a run that did not end as it should, or a standard control that misses what
    /// is known of it, is a failure.
    #[arg(long)]
    pub(crate) bars: bool,
    /// Number of parallel runs; results do not depend on it [default: one per core]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  ackline evaluate --quick
  ackline evaluate bbr cubic:beta=0.8 --out league
  ackline evaluate hstcp --cell S,L-1e-3
  ackline evaluate bbr --scenario H-cubic-1 > h.toml            then:  ackline sim h.toml --seed 3
  ackline evaluate --points 0..2000 --out part1                 then:  ackline merge part1 part2 --out whole
  ackline evaluate --overlay theirs/league/league.json --out league
  ackline evaluate --live --quick
  ackline evaluate --live bbr linux:bbr --cell S-20-40-4,E --out live

A run is kept by the sources of the simulator, its scenario and its seed; a second evaluation gives the same bytes. \
A live run is kept by the program, the kernel's release, its scenario and its seed.

Exit status: 0; 1 if a run did not end as it should or is void, a standard control is outside its known range, or, with --bars, a control \
fails a criterion; others as in ackline --help.";
