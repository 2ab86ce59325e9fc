//! The command line of a benchmark that measures every case once per round and shows medians in
//! tables.

use crate::case::Case;
use crate::results::{Results, Sample};
use crate::{Outcome, report, rounds};
use clap::Parser;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Of the benchmark.
const NAME: &str = env!("CARGO_CRATE_NAME");
/// Length of each measurement with --quick, in seconds.
const QUICK: f64 = 0.3;

/// Measures cases in rounds, each once per round, and compares medians.
#[derive(Debug, Parser)]
#[command(name = NAME)]
struct Options {
    /// Length of each measurement, in seconds, after a warm-up.
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Rounds; each measures every case once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// One short round.
    #[arg(long, conflicts_with_all = ["seconds", "rounds"])]
    quick: bool,
    /// Only cases with this in their name, or the one with this name; may be given again.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Name the cases and end.
    #[arg(long)]
    list: bool,
    /// Write every single result to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Measure nothing: take the results from a file that --json wrote.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Print the tables with the marks between which --update replaces them.
    #[arg(long)]
    markdown: bool,
    /// Replace the tables between `<!-- compare:begin NAME -->` and `<!-- compare:end NAME -->` in
    /// a file.
    #[arg(long, value_name = "FILE")]
    update: Option<PathBuf>,
    /// Fail if --update would change a file.
    #[arg(long, value_name = "FILE", requires = "from")]
    check: Option<PathBuf>,
    /// Print and replace only the table with this NAME; may be given again.
    #[arg(long, value_name = "NAME")]
    table: Vec<String>,
    #[command(flatten)]
    pictures: report::Pictures,
    /// One measurement, in this process; its result goes to standard output as JSON.
    #[arg(long, value_name = "CASE", hide = true)]
    measure: Option<String>,
    /// Cargo says that this is a benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Does what the command line says. Measurements take `seconds` if it does not say; `prepare`
/// leaves out the cases that cannot be measured here; `measure` makes one measurement of a case in
/// this process, or, without a case, finds out whether it may.
pub(crate) fn run(
    seconds: f64,
    prepare: impl FnOnce(&mut Vec<Case>),
    measure: impl FnOnce(Option<Case>, Duration) -> Outcome<Sample>,
) -> ExitCode {
    let options = Options::parse();
    let seconds = if options.quick { QUICK } else { options.seconds.unwrap_or(seconds) };
    let outcome = match &options.measure {
        Some(name) => measure_here(name, Duration::from_secs_f64(seconds), measure),
        None if !options.bench => {
            println!("nothing measured: `cargo bench --bench {NAME}` does");
            Ok(true)
        }
        None => measure_all(&options, seconds, prepare),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{NAME}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// True if all went well.
fn measure_all(options: &Options, seconds: f64, prepare: impl FnOnce(&mut Vec<Case>)) -> Outcome<bool> {
    let mut chosen = chosen(&options.only)?;
    if options.list {
        for case in chosen {
            println!("{case}");
        }
        return Ok(true);
    }
    let (results, failures) = match &options.from {
        Some(file) => {
            (Results::parse(&fs::read_to_string(file).map_err(|error| at(file, &error))?)?, Vec::new())
        }
        None => {
            rounds::check_rights()?;
            prepare(&mut chosen);
            if chosen.is_empty() {
                return Err("no case is left to measure".into());
            }
            rounds::run(&chosen, if options.quick { 1 } else { options.rounds }, seconds)?
        }
    };
    if let Some(file) = &options.json {
        fs::write(file, results.to_json()?).map_err(|error| at(file, &error))?;
    }
    let mut sections = report::sections(&results);
    sections
        .retain(|section| options.table.is_empty() || options.table.iter().any(|name| name == section.name));
    if let Some(file) = &options.update {
        let text = fs::read_to_string(file).map_err(|error| at(file, &error))?;
        let text = report::update(&text, &sections).map_err(|error| at(file, &error))?;
        fs::write(file, text).map_err(|error| at(file, &error))?;
    }
    if let Some(file) = &options.check {
        let text = fs::read_to_string(file).map_err(|error| at(file, &error))?;
        if report::update(&text, &sections).map_err(|error| at(file, &error))? != text {
            return Err(
                format!("{}: the tables do not follow from the data (--update)", file.display()).into()
            );
        }
    }
    for (file, picture) in options.pictures.draw(&results)? {
        fs::write(file, picture).map_err(|error| at(file, &error))?;
    }
    if options.markdown {
        print!("{}", report::marked(&sections));
    } else {
        print!("{}", report::plain(&sections));
    }
    for failure in &failures {
        eprintln!("{NAME}: {failure}");
    }
    Ok(failures.is_empty())
}

fn measure_here(
    name: &str,
    length: Duration,
    measure: impl FnOnce(Option<Case>, Duration) -> Outcome<Sample>,
) -> Outcome<bool> {
    let case = if name == rounds::RIGHTS { None } else { Some(name.parse()?) };
    println!("{}", serde_json::to_string(&measure(case, length)?)?);
    Ok(true)
}

/// The cases that have one of these in their names. What is the whole name of one stands for that
/// one.
fn chosen(only: &[String]) -> Outcome<Vec<Case>> {
    let mut cases = Case::all();
    let names: Vec<String> = cases.iter().map(Case::to_string).collect();
    if let Some(unknown) = only.iter().find(|text| !names.iter().any(|name| name.contains(*text))) {
        return Err(format!("--only {unknown}: no case has this in its name (--list)").into());
    }
    let means =
        |text: &String, name: &str| if names.contains(text) { name == text } else { name.contains(text) };
    cases.retain(|case| only.is_empty() || only.iter().any(|text| means(text, &case.to_string())));
    Ok(cases)
}

fn at(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.05..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number between 0.05 and 60 is needed".to_owned()),
    }
}
