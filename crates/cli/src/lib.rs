//! The `ackline` command, as a library: a program of your own has all of it, with policies of your
//! own beside the built-in ones.
//!
//! ```no_run
//! use ackline::Registry;
//! use ackline::core::policy::NewCongestionControl;
//! use ackline::core::policy::builtin::NewReno;
//! use ackline::core::policy::cc::CcInit;
//! use ackline::core::policy::spec::Entry;
//! use std::process::ExitCode;
//! use std::sync::Arc;
//!
//! fn main() -> ExitCode {
//!     let mine: Entry<NewCongestionControl> =
//!         Entry::new("mine", |_| Ok(Arc::new(|init: &CcInit| Box::new(NewReno::new(init)))));
//!     ackline_cli::main(Registry::default().with_cc(mine))
//! }
//! ```
//!
//! `mine list cc`, `mine sim`, `mine send --cc mine` and `mine bench` then know it, with its
//! parameters, ranges and defaults.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "the ackline command needs Linux; the library `ackline` runs elsewhere, too, with a device of your own"
);

mod args;
mod commands;
mod failure;
mod network;
mod output;
mod report;
mod settings;
mod signals;
mod transfer;
mod watchers;

use ackline::Registry;
use ackline_proxy::without_credentials;
use args::Cli;
use clap::FromArgMatches as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use failure::{Exit, Failure};
use std::error::Error as _;
use std::process::ExitCode;

/// Runs the command line of this process with the policies of `registry`, and returns its exit
/// status.
#[must_use]
pub fn main(registry: Registry) -> ExitCode {
    if let Err(error) = registry.check() {
        return exit(Err(Failure::usage(error.to_string())));
    }
    let parsed = args::command(&registry).try_get_matches().and_then(|found| Cli::from_arg_matches(&found));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    exit(commands::run(&cli.command, &registry))
}

/// Says what is wrong with the command line: a bad value in one line, anything else in clap's
/// words. Help and version come this way, too, and are no failure.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return exit(output::print_help(error));
    }
    let bad_value = matches!(error.kind(), ErrorKind::ValueValidation).then(|| error.source()).flatten();
    match (bad_value, error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue)) {
        (Some(why), Some(ContextValue::String(option)), Some(ContextValue::String(value))) => {
            let option = option.split(' ').next().unwrap_or(option);
            let value = if option == "--upstream" { &without_credentials(value) } else { value };
            exit(Err(Failure::usage(format!("{option} {value:?}: {why}"))))
        }
        _ => {
            // If nobody reads standard error there is nobody to tell.
            let _ = error.print();
            u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
    }
}

/// Says why a command did not succeed, unless the program that it ran has said so, and returns the
/// exit status.
fn exit(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if !matches!(failure.exit, Exit::Program(_)) {
        output::say(&format!("ackline: {failure}"));
    }
    ExitCode::from(failure.exit.code())
}

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
