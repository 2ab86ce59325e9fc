//! Runs a scenario and prints its summary; with a folder, also writes results, plots and the report
//! there.
//!
//! ```text
//! cargo run --release -p ackline-lab --example scenario -- scenarios/fairness.toml /tmp/out repeat=1
//! ```

use ackline_lab::{RunOptions, Scenario, example, run};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let name = args.next().ok_or("usage: scenario FILE|EXAMPLE [FOLDER|-] [key=value]...")?;
    let out = args.next().filter(|out| out != "-").map(PathBuf::from);
    let text = match example(&name) {
        Some(example) => example.text.to_owned(),
        None => std::fs::read_to_string(&name)?,
    };
    let scenario = Scenario::parse(&text, &name)?.with_set(args)?;
    let options = RunOptions { plots: out.is_some(), out, progress: true, ..RunOptions::default() };
    print!("{}", run(&scenario, &options)?.summary.to_text());
    Ok(())
}
