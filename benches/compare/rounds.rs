//! Measures every case once per round, each in a process of its own.

use crate::Outcome;
use crate::case::Case;
use crate::machine;
use crate::results::{Results, Sample, Setting};
use indicatif::{ProgressBar, ProgressStyle};
use std::process::Command;

/// Not a case: asks whether there are the rights for one.
pub(crate) const RIGHTS: &str = "rights";

pub(crate) fn check_rights() -> Outcome<()> {
    measure(RIGHTS, 1.0).map(drop)
}

/// The results, and what failed.
pub(crate) fn run(cases: &[Case], rounds: u16, seconds: f64) -> Outcome<(Results, Vec<String>)> {
    let mut results = Results::new(setting(rounds, seconds)?);
    let mut failures = Vec::new();
    let bar = ProgressBar::new(cases.len() as u64 * u64::from(rounds));
    bar.set_style(ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}  ({eta} left)")?);
    for round in 1..=rounds {
        for case in cases {
            bar.set_message(format!("round {round} of {rounds}: {case}"));
            let sample = measure(&case.to_string(), seconds);
            if let Err(error) = &sample {
                failures.push(format!("{case}, round {round}: {error}"));
            }
            results.add(case, sample.ok());
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok((results, failures))
}

fn measure(name: &str, seconds: f64) -> Outcome<Sample> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["--measure", name, "--seconds", &seconds.to_string()]).output()?;
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout)?);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().trim_start_matches(concat!(env!("CARGO_CRATE_NAME"), ": "));
    Err(if said.is_empty() { output.status.to_string() } else { said.to_owned() }.into())
}

fn setting(rounds: u16, seconds: f64) -> Outcome<Setting> {
    Ok(Setting {
        processors: machine::processors()?,
        processor: machine::processor()?,
        kernel: machine::kernel()?,
        congestion_control: machine::sysctl("net/ipv4/tcp_congestion_control")?,
        seconds,
        rounds,
        commit: machine::commit(),
    })
}
