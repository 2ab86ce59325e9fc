//! Each TCP with each: ackline, Linux, gVisor's netstack, smoltcp and lwIP as client and as server
//! of every other one, over paths that lose, reorder, duplicate and corrupt packets, with a small
//! MTU, readers that let the window close, and a half-closed connection.
//!
//! ```text
//! cargo bench --bench pairings                              # all: some four minutes
//! cargo bench --bench pairings -- --only ackline            # what has this in its name; --list has all names
//! cargo bench --bench pairings -- --only gvisor-lwip/loss --seed 7
//! cargo bench --bench pairings -- --update docs/pairings.md
//! ```
//!
//! ```text
//!   client ── its device ══ impaired path, in memory ══ its device ── server
//! ```
//!
//! Both ends send a stream that follows from a seed and compare what they receive by length and
//! hash ([`stream`]). ackline and smoltcp run in this process; Linux's TCP is that of a network
//! namespace with a TUN device ([`ends::kernel`]); [gVisor](../gvisor/main.go) and
//! [lwIP](../lwip/main.c) are programs with a Unix socket of IP packets ([`ends::program`]). An
//! exchange fails if it has not ended after [`LIMIT`], or if a byte is wrong; then the status is
//! not 0.
//!
//! Needs the right to make network namespaces and TUN devices. A TCP that cannot be built is left
//! out, and said to be: gVisor's if there is no Go, lwIP without Debian's package liblwip-dev.

mod bridge;
mod ends;
mod exchange;
#[path = "../support/machine.rs"]
mod machine;
mod report;
#[path = "../support/rights.rs"]
mod rights;
#[expect(dead_code, reason = "other benches use the rest")]
#[path = "../compare/report/section.rs"]
mod section;
mod stream;

use clap::Parser;
use ends::Tcp;
use exchange::{Exchange, Fate};
use rights::Outcome;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io::Write as _};

/// An exchange that lasts longer has failed.
const LIMIT: Duration = Duration::from_secs(60);

/// Lets each TCP exchange data with each.
#[derive(Debug, Parser)]
struct Args {
    /// Names the exchanges, and ends
    #[arg(long)]
    list: bool,
    /// Runs those with this text in their names
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Seed of the paths
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Exchanges at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 6)]
    jobs: usize,
    /// Captures what ackline sends and receives, a file for each end of an exchange
    #[arg(long, value_name = "FOLDER")]
    capture: Option<PathBuf>,
    /// Replaces the tables in this page
    #[arg(long, value_name = "FILE")]
    update: Option<PathBuf>,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("pairings: {error}");
            ExitCode::FAILURE
        }
    }
}

/// True if all went well.
fn run(args: &Args) -> Outcome<bool> {
    let wanted = |exchange: &Exchange| {
        args.only.is_empty() || args.only.iter().any(|text| exchange.name().contains(text.as_str()))
    };
    let mut exchanges: Vec<_> = Exchange::all().filter(wanted).collect();
    if args.list {
        exchanges.iter().for_each(|exchange| println!("{}", exchange.name()));
        return Ok(true);
    }
    if exchanges.is_empty() {
        return Err("no exchange has this in its name; --list has all names".into());
    }
    rights::gain_rights()?;
    for tcp in Tcp::ALL {
        if exchanges.iter().any(|exchange| exchange.has(tcp))
            && let Err(why) = tcp.build()
        {
            eprintln!("{} is left out: {why}", tcp.name());
            exchanges.retain(|exchange| !exchange.has(tcp));
        }
    }
    let fates = all(exchanges, args);
    let sections = report::sections(&fates, args.seed)?;
    println!("{}", section::plain(&sections));
    if let Some(file) = &args.update {
        fs::write(file, section::update(&fs::read_to_string(file)?, &sections)?)?;
    }
    Ok(fates.iter().all(|(_, fate)| fate.is_ok()))
}

/// Runs the exchanges, some at a time: most of the time of each is spent waiting.
fn all(exchanges: Vec<Exchange>, args: &Args) -> Vec<(Exchange, Fate)> {
    let open = Mutex::new(VecDeque::from(exchanges));
    let done = Mutex::new(vec![]);
    let next = || open.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                while let Some(exchange) = next() {
                    let fate = exchange.run(args.seed, args.capture.as_deref());
                    let said = match &fate {
                        Ok(took) => format!("{:.1} s", took.as_secs_f64()),
                        Err(why) => format!("FAILED: {why}"),
                    };
                    // A closed pipe is no reason to stop.
                    let _ = writeln!(std::io::stderr(), "{}: {said}", exchange.name());
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((exchange, fate));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(exchange, _)| *exchange);
    done
}
