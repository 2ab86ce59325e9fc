//! The `ackline` command with one {{kind}} more: `{{name}}`.

mod policy;

use ackline::Registry;
use std::process::ExitCode;

fn main() -> ExitCode {
    ackline_cli::main(Registry::default().with_{{keyword}}(policy::ENTRY))
}
