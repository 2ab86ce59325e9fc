//! How punctually departures leave: ackline's, asleep and spinning, beside bare loops and the kernel's own pacing.
//!
//! ```text
//! cargo bench --bench pacing                                    # all, five rounds of two seconds each: some four minutes
//! cargo bench --bench pacing -- --quick                         # one short round
//! cargo bench --bench pacing -- --only 100us --rounds 3         # what has this in its name; --list has all names
//! cargo bench --bench pacing -- --json FILE --update docs/performance.md
//! cargo bench --bench pacing -- --from FILE --markdown
//! ```
//!
//! One flow over TUN to the kernel's TCP, full packets 1 ms, 100 us and 12 us apart (12 and 120 Mbit/s, 1 Gbit/s) by a
//! congestion control of a fixed rate. Every measurement is a process of its own with a network namespace of its own; a
//! round measures every case once, so that what else the machine does falls on all alike. *Late* is a departure after
//! the instant that the pacer permits (ackline's own histogram), or a wake-up after the instant that a loop waits for. A
//! *burst* is what leaves less than a tenth of the asked gap apart.
//!
//! Needs the right to make network namespaces and TUN devices: root.

mod bare;
mod case;
mod flow;
mod log;
mod metric;
mod report;
#[path = "../compare/results.rs"]
mod results;
#[path = "../compare/rounds.rs"]
mod rounds;
mod sample;
#[path = "../compare/report/section.rs"]
mod section;
#[path = "../compare/report/text.rs"]
mod text;
mod usage;

use ackline_runtime::Error;
use ackline_runtime::netns::{Namespace, enter_user_net_namespace};
use ackline_tcp_core::Duration;
use case::{Case, Who};
use clap::Parser;
use results::{Metric, Results, Sample};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// How something ended that can go wrong in many ways.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How punctually departures leave.
#[derive(Debug, Parser)]
#[command(name = "pacing")]
struct Options {
    /// Length of each measurement, in seconds, after a warm-up.
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    seconds: f64,
    /// Rounds; each measures every case once.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// One round of 0.3 s.
    #[arg(long, conflicts_with_all = ["seconds", "rounds"])]
    quick: bool,
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
    /// Replace the tables between their marks in a file.
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
            println!("nothing measured: `cargo bench --bench pacing` does");
            Ok(true)
        }
        None => measure_all(&options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("pacing: {error}");
            ExitCode::FAILURE
        }
    }
}

/// True where all went well.
fn measure_all(options: &Options) -> Outcome<bool> {
    let chosen: Vec<Case> = Case::all()
        .into_iter()
        .filter(|case| {
            options.only.is_empty() || options.only.iter().any(|text| case.to_string().contains(text))
        })
        .collect();
    if chosen.is_empty() {
        return Err(format!("no case has {} in its name; --list names all", options.only.join(" or ")).into());
    }
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
            let (rounds, seconds) = if options.quick { (1, 0.3) } else { (options.rounds, options.seconds) };
            rounds::run(&chosen, rounds, seconds)?
        }
    };
    if let Some(file) = &options.json {
        fs::write(file, results.to_json()?).map_err(|error| at(file, &error))?;
    }
    let sections = report::sections(&results);
    if let Some(file) = &options.update {
        let text = fs::read_to_string(file).map_err(|error| at(file, &error))?;
        let text = section::update(&text, &sections).map_err(|error| at(file, &error))?;
        fs::write(file, text).map_err(|error| at(file, &error))?;
    }
    if options.markdown {
        print!("{}", section::marked(&sections));
    } else {
        print!("{}", section::plain(&sections));
    }
    for failure in &failures {
        eprintln!("pacing: {failure}");
    }
    Ok(failures.is_empty())
}

fn measure_here(name: &str, seconds: f64) -> Outcome<bool> {
    // Where the command is killed, its measurements are not to outlive it.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    gain_rights()?;
    let length = Duration::from(std::time::Duration::from_secs_f64(seconds));
    let sample = if name == rounds::RIGHTS {
        flow::device()?;
        Sample::default()
    } else {
        let case: Case = name.parse()?;
        match case.who {
            Who::Timer | Who::Spin => flow::send(&case, length)?,
            Who::Kernel => flow::receive(&case, length)?,
            Who::BareTimer | Who::BareSpin | Who::TokioSleep => wait(&case, length)?,
        }
    };
    println!("{}", serde_json::to_string(&sample)?);
    Ok(true)
}

fn wait(case: &Case, length: Duration) -> Outcome<Sample> {
    let (start, cpu) = (ackline_runtime::timer::now(), usage::cpu_of_thread());
    let bare::Waited { late, passed } = bare::wait(case, length)?;
    let elapsed = ackline_runtime::timer::now().since(start).as_secs_f64();
    let mut sample = Sample::default();
    sample.set(Metric::Cpu, (usage::cpu_of_thread() - cpu) / elapsed);
    sample::set_latenesses(&mut sample, late);
    sample::set_flow(&mut sample, case, &passed);
    Ok(sample)
}

/// A network of this process's own: as root, or inside a user namespace.
fn gain_rights() -> Outcome<()> {
    match Namespace::new_for_thread() {
        Err(Error::NamespaceForbidden) => Ok(enter_user_net_namespace()?),
        other => Ok(other.map(drop)?),
    }
}

fn at(file: &std::path::Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.05..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("not a number from 0.05 to 3600".to_owned()),
    }
}
