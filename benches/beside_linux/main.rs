//! ackline's TCP beside the kernel's on the same emulated paths: goodput, segments sent again,
//! queueing delay, times of transfers. It makes docs/beside-linux.md.
//!
//! ```text
//! cargo bench --bench beside_linux                           # all: half an hour on a quiet machine
//! cargo bench --bench beside_linux -- --quick                # a few cells, once: a minute; fails if a result makes no sense
//! cargo bench --bench beside_linux -- --only loss --rounds 1 # cells with this in their name; --list has all names
//! cargo bench --bench beside_linux -- --longer 0.5 --json docs/beside-linux.json --update docs/beside-linux.md
//! cargo bench --bench beside_linux -- --from docs/beside-linux.json --check docs/beside-linux.md
//! ```
//!
//! A path is a scenario (`path.toml`) with one thing changed ([`design`]). The receiver is always
//! the kernel's TCP, in a namespace; the sender is the kernel's there, or a stack of ackline's
//! runtime. The same loss and the same reordering falls on all senders by a seed. Every run is a
//! process of its own ([`one`]); several take place at once as long as the sum of their rates is
//! small ([`pool`]). A run whose packets were late is repeated with less beside it, at last alone.
//!
//! Needs the right to make network namespaces and TUN devices: root.

mod design;
#[path = "../support/machine.rs"]
mod machine;
mod one;
mod pool;
mod reasons;
mod report;
mod results;
#[path = "../compare/report/section.rs"]
mod section;
#[path = "../support/summary.rs"]
mod summary;
#[path = "../compare/report/text.rs"]
mod text;

use clap::Parser;
use design::{Cell, Sender};
use pool::Job;
use results::{Results, Setting};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How something ended that can go wrong in many ways.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Of the benchmark.
const NAME: &str = env!("CARGO_CRATE_NAME");

/// Runs senders of ackline and of the kernel over the same emulated paths.
#[derive(Debug, Parser)]
#[command(name = NAME)]
struct Options {
    /// A few cells, once and for a short time; fails if a result makes no sense.
    #[arg(long, conflicts_with_all = ["rounds", "only", "from"])]
    quick: bool,
    /// Only cells with this in their name; may be given again.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Runs of each cell and sender, with different seeds.
    #[arg(long, default_value_t = design::ROUNDS, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Each run is so many times as long.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    longer: f64,
    /// Most runs at once.
    #[arg(long, value_name = "RUNS", default_value_t = 8)]
    at_once: usize,
    /// Most Mbit/s of all runs at once.
    #[arg(long, value_name = "MBIT", default_value_t = 100.0)]
    load: f64,
    /// How often runs that are not valid are made again: with a quarter of the others beside it,
    /// then alone.
    #[arg(long, value_name = "TIMES", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=10))]
    repeats: u32,
    /// Name the cells and end.
    #[arg(long)]
    list: bool,
    /// Write every single result to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run nothing: take the results from a file that --json wrote.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Print the tables with the marks between which --update replaces them.
    #[arg(long)]
    markdown: bool,
    /// Replace the tables of a page.
    #[arg(long, value_name = "FILE")]
    update: Option<PathBuf>,
    /// Fail if the tables of a page are others.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// One run, in this process; its result goes to standard output as JSON.
    #[arg(long, value_name = "JOB", hide = true)]
    one: Option<String>,
    /// Cargo says that this is a benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match &options.one {
        Some(job) => one::print(job),
        None if !options.bench => {
            println!("nothing measured: `cargo bench --bench {NAME}` does");
            Ok(())
        }
        None => all(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{NAME}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn all(options: &Options) -> Outcome<()> {
    let cells = chosen(options)?;
    if options.list {
        for cell in cells {
            println!("{cell}");
        }
        return Ok(());
    }
    let results = match &options.from {
        Some(file) => Results::parse(&read(file)?)?,
        None => run(options, &cells)?,
    };
    if let Some(file) = &options.json {
        write(file, &results.to_lines()?)?;
    }
    let sections = report::sections(&results);
    if let Some(file) = &options.update {
        let text = section::update(&read(file)?, &sections).map_err(|error| at(file, &error))?;
        write(file, &text)?;
    }
    if let Some(file) = &options.check {
        let page = read(file)?;
        if section::update(&page, &sections).map_err(|error| at(file, &error))? != page {
            return Err(at(file, &"its tables are not what the results give: --update writes them").into());
        }
        return Ok(());
    }
    if options.markdown {
        print!("{}", section::marked(&sections));
    } else {
        print!("{}", section::plain(&sections));
    }
    if options.quick { report::sense(&results) } else { Ok(()) }
}

fn run(options: &Options, cells: &[Cell]) -> Outcome<Results> {
    one::prepare()?;
    let longer = if options.quick { design::QUICK } else { options.longer };
    let rounds = if options.quick { 1 } else { options.rounds };
    // What happens on the machine for a while falls on all cells alike.
    let jobs = (0..rounds).flat_map(|round| {
        cells
            .iter()
            .flat_map(move |cell| Sender::ALL.map(|sender| Job { cell: cell.clone(), sender, round, longer }))
    });
    let limits = pool::Limits { runs: options.at_once.max(1), load: options.load };
    let runs = pool::run(jobs.collect(), limits, if options.quick { 0 } else { options.repeats })?;
    Ok(Results { setting: Setting::read(longer)?, runs })
}

fn chosen(options: &Options) -> Outcome<Vec<Cell>> {
    let mut cells = design::cells();
    let named = |text: &str, cell: &Cell| cell.to_string().contains(text);
    if let Some(unknown) = options.only.iter().find(|text| !cells.iter().any(|cell| named(text, cell))) {
        return Err(format!("--only {unknown}: no cell has this in its name (--list)").into());
    }
    if options.quick {
        cells.retain(|cell| cell.quick);
    }
    cells.retain(|cell| options.only.is_empty() || options.only.iter().any(|text| named(text, cell)));
    Ok(cells)
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| at(file, &error))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| at(file, &error))
}

fn at(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.01..=100.0).contains(&factor) => Ok(factor),
        _ => Err("a number between 0.01 and 100 is needed".to_owned()),
    }
}
