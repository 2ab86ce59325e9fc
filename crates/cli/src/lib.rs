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
mod background;
mod bench;
mod capture;
mod control;
mod copying;
mod demo;
mod drill;
mod egress;
mod emulate;
mod evaluate;
mod explain;
mod failure;
mod filter;
mod interfaces;
mod json_stream;
mod list;
mod metrics;
mod names;
mod new;
mod nstat;
mod output;
mod peer;
mod plot;
mod policies;
mod program;
mod progress;
mod proxy;
mod publish;
mod publishing;
mod recorded;
mod recv;
mod report;
mod reproduce;
mod result_file;
mod send;
mod set;
mod settings;
mod signals;
mod sim;
mod source;
mod ss;
mod summary;
mod timing;
mod top;
mod traffic;
mod tunnel;
mod watchers;

use ackline::Registry;
use ackline_proxy::without_credentials;
use args::{Cli, Command};
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
    // The demo enters a user namespace, which a process can do as long as it has one thread.
    let outcome = match &cli.command {
        Command::Demo(args) => demo::run(args, &registry),
        Command::Send(args) => send::run(args, &registry),
        Command::Recv(args) => recv::run(args, &registry),
        Command::Bench(args) => bench::run(args, &registry),
        Command::Emulate(args) => emulate::run(args, &registry),
        Command::Proxy(args) => proxy::run(args, &registry),
        Command::Ss(args) => ss::run(args),
        Command::Nstat(args) => nstat::run(args),
        Command::Top(args) => top::run(args),
        Command::Set(args) => set::run(args, &registry),
        Command::Publish(args) => publish::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Drill(args) => drill::run(args, &registry),
        Command::Sim(args) => sim::run(args, &registry),
        Command::Merge(args) => sim::merge::run(args, &registry),
        Command::Plot(args) => plot::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Evaluate(args) => evaluate::run(args, &registry),
        Command::List(args) => list::run(args, &registry),
        Command::New(args) => new::run(args, &registry),
        Command::Completions(args) => completions(args.shell, &registry),
    };
    exit(outcome)
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

fn completions(shell: clap_complete::Shell, registry: &Registry) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(registry), "ackline", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
