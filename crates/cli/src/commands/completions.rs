//! `ackline completions`: a shell's completions.

use crate::args;
use crate::failure::Failure;
use crate::output;
use ackline::Registry;

pub(crate) fn run(shell: clap_complete::Shell, registry: &Registry) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(registry), "ackline", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
