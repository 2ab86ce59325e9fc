//! The `ackline` command.

mod args;
mod bench;
mod copying;
mod demo;
mod egress;
mod failure;
mod interfaces;
mod list;
mod output;
mod peer;
mod plot;
mod policies;
mod progress;
mod recv;
mod report;
mod reproduce;
mod send;
mod signals;
mod sim;
mod source;
mod timing;
mod traffic;
mod tunnel;

use args::{Cli, Command};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};
use failure::Failure;
use std::error::Error as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    // The demo enters a user namespace, which a process can do as long as it has one thread.
    let outcome = match &cli.command {
        Command::Demo(args) => demo::run(args),
        Command::Send(args) => send::run(args),
        Command::Recv(args) => recv::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Sim(args) => sim::run(args),
        Command::Plot(args) => plot::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::List(args) => list::run(args),
        Command::Completions(args) => completions(args.shell),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::say(&format!("ackline: {failure}"));
            ExitCode::from(failure.exit.code())
        }
    }
}

/// Says what is wrong with the command line: a bad value in one line, anything else in clap's words. Help and
/// version come this way, too, and are no failure.
fn refuse(error: &clap::Error) -> ExitCode {
    let bad_value = matches!(error.kind(), ErrorKind::ValueValidation).then(|| error.source()).flatten();
    match (bad_value, error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue)) {
        (Some(why), Some(ContextValue::String(option)), Some(ContextValue::String(value))) => {
            let option = option.split(' ').next().unwrap_or(option);
            let failure = Failure::usage(format!("{option} {value:?}: {why}"));
            output::say(&format!("ackline: {failure}"));
            ExitCode::from(failure.exit.code())
        }
        _ => {
            // Where nobody reads standard error there is nobody to tell.
            let _ = error.print();
            u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
    }
}

fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ackline", &mut script);
    output::print(&String::from_utf8_lossy(&script))
        .map_err(|error| Failure::file("write to", "standard output", &error))
}
