//! The `ackline` command.

use ackline::Registry;
use std::process::ExitCode;

fn main() -> ExitCode {
    ackline_cli::main(Registry::default())
}
