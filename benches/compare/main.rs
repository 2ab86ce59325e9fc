//! How fast the stack is, beside the kernel's TCP, smoltcp, and loops that show what each device can carry.
//!
//! ```text
//! cargo bench --bench compare                                    # all, five rounds of one second each: some eight minutes
//! cargo bench --bench compare -- --only round-trip --rounds 3    # what has this in its name; --list has all names
//! cargo bench --bench compare -- --json FILE --update docs/performance.md
//! cargo bench --bench compare -- --from FILE --update docs/performance.md
//! ```
//!
//! Every measurement is a process of its own ([`measure`]) with network namespaces of its own, which the kernel removes
//! when the process ends, however it ends. A round measures every case once ([`rounds`]), so that what else happens on
//! the machine falls on all of them alike; [`report`] compares medians over the rounds.
//!
//! Needs the right to make network namespaces and TUN devices: root.

mod case;
mod ends;
mod measure;
mod metric;
mod net;
mod report;
mod results;
mod rounds;
mod usage;

use case::Case;
use clap::Parser;
use results::Results;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// How something ended that can go wrong in many ways.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// ackline beside the kernel's TCP, smoltcp and bare loops.
#[derive(Debug, Parser)]
#[command(name = "compare")]
struct Options {
    /// Length of each measurement, in seconds, after a warm-up.
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Rounds; each measures every case once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Only cases with this in their name; may be given again.
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
    /// Replace the tables between `<!-- compare:begin NAME -->` and `<!-- compare:end NAME -->` in a file.
    #[arg(long, value_name = "FILE")]
    update: Option<PathBuf>,
    /// One measurement, in this process; its result goes to standard output as JSON.
    #[arg(long, value_name = "CASE", hide = true)]
    measure: Option<String>,
    /// Cargo says that this is a benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match &options.measure {
        Some(name) => measure_here(name, options.seconds),
        None if !options.bench => {
            println!("nothing measured: `cargo bench --bench compare` does");
            Ok(true)
        }
        None => compare(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::FAILURE
        }
    }
}

/// True where all went well.
fn compare(options: &Options) -> Outcome<bool> {
    let chosen = chosen(&options.only)?;
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
            rounds::run(&chosen, options.rounds, options.seconds)?
        }
    };
    if let Some(file) = &options.json {
        fs::write(file, results.to_json()?).map_err(|error| at(file, &error))?;
    }
    let sections = report::sections(&results);
    if let Some(file) = &options.update {
        let text = fs::read_to_string(file).map_err(|error| at(file, &error))?;
        let text = report::update(&text, &sections).map_err(|error| at(file, &error))?;
        fs::write(file, text).map_err(|error| at(file, &error))?;
    }
    if options.markdown {
        print!("{}", report::marked(&sections));
    } else {
        print!("{}", report::plain(&sections));
    }
    for failure in &failures {
        eprintln!("compare: {failure}");
    }
    Ok(failures.is_empty())
}

fn measure_here(name: &str, seconds: f64) -> Outcome<bool> {
    let sample = if name == rounds::RIGHTS {
        measure::check_rights()?;
        results::Sample::default()
    } else {
        measure::run(name.parse()?, std::time::Duration::from_secs_f64(seconds))?
    };
    println!("{}", serde_json::to_string(&sample)?);
    Ok(true)
}

fn chosen(only: &[String]) -> Outcome<Vec<Case>> {
    let mut cases = Case::all();
    if let Some(unknown) = only.iter().find(|text| !cases.iter().any(|case| case.to_string().contains(*text)))
    {
        return Err(format!("--only {unknown}: no case has this in its name (--list)").into());
    }
    cases.retain(|case| only.is_empty() || only.iter().any(|text| case.to_string().contains(text)));
    Ok(cases)
}

fn at(file: &std::path::Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.05..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number between 0.05 and 60 is needed".to_owned()),
    }
}
