//! Builds the terminators.

use crate::case::{Case, Stack};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Where cargo builds everything else.
fn target() -> PathBuf {
    // Cargo's folder for what benchmarks make is one below that.
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("")
}

/// The program; `$ACKLINE` may name another `ackline`.
pub(crate) fn program(stack: Stack) -> PathBuf {
    match stack {
        Stack::Ackline => given().unwrap_or_else(|| target().join("release/ackline")),
        rival => target().join("tunnels/release").join(rival.name()),
    }
}

/// Builds what the cases need, and says whose are left out.
pub(crate) fn leave_out_what_is_missing(cases: &mut Vec<Case>) {
    for stack in [Stack::Ackline, Stack::NetstackSmoltcp, Stack::Ipstack] {
        if !cases.iter().any(|case| case.who.stack == stack) {
            continue;
        }
        if let Err(why) = build(stack) {
            eprintln!("{} is left out: {why}", stack.name());
            cases.retain(|case| case.who.stack != stack);
        }
    }
}

fn given() -> Option<PathBuf> {
    env::var_os("ACKLINE").map(PathBuf::from)
}

/// # Errors
/// The first that cargo complains of.
fn build(stack: Stack) -> Result<(), String> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--release", "--locked", "--quiet", "--bin", stack.name()]);
    match stack {
        Stack::Ackline => {
            if let Some(program) = given() {
                return if program.is_file() {
                    Ok(())
                } else {
                    Err(format!("$ACKLINE: {}: no such program", program.display()))
                };
            }
            command
                .args(["--package", "ackline-cli", "--manifest-path"])
                .arg(Path::new(ROOT).join("Cargo.toml"));
            command.arg("--target-dir").arg(target());
        }
        rival => {
            command.args(["--features", rival.name(), "--manifest-path"]);
            command.arg(Path::new(ROOT).join("benches/tunnels/rivals/Cargo.toml"));
            command.arg("--target-dir").arg(target().join("tunnels"));
        }
    }
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().find(|line| line.starts_with("error"));
    Err(format!("cargo build: {}", error.unwrap_or_else(|| said.trim())))
}
