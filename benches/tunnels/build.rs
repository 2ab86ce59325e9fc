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
        Stack::Gvisor | Stack::Lwip => {
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tunnels-{}", stack.name()))
        }
        rival => target().join("tunnels/release").join(rival.name()),
    }
}

/// Builds what the cases need, and says whose are left out.
pub(crate) fn leave_out_what_is_missing(cases: &mut Vec<Case>) {
    for stack in Stack::ALL {
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
/// The first that the compiler complains of, or that there is none.
fn build(stack: Stack) -> Result<(), String> {
    let mut command = match stack {
        Stack::Ackline => match given() {
            Some(program) if program.is_file() => return Ok(()),
            Some(program) => return Err(format!("$ACKLINE: {}: no such program", program.display())),
            None => cargo(stack, "Cargo.toml", &target(), ["--package", "ackline-cli"]),
        },
        Stack::Gvisor => {
            let mut go = Command::new("go");
            go.args(["build", "-o"]).arg(program(stack)).arg(".");
            go.current_dir(Path::new(ROOT).join("benches/tunnels/gvisor"));
            go
        }
        Stack::Lwip => {
            let mut cc = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
            cc.args(["-O2", "-Wall", "-I/usr/include/lwip", "main.c", "-llwip", "-o"]).arg(program(stack));
            cc.current_dir(Path::new(ROOT).join("benches/tunnels/lwip"));
            cc
        }
        rival => {
            let manifest = "benches/tunnels/rivals/Cargo.toml";
            cargo(rival, manifest, &target().join("tunnels"), ["--features", rival.name()])
        }
    };
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let error = said.lines().find(|line| line.contains("error"));
    Err(format!("{name}: {}", error.unwrap_or_else(|| said.trim())))
}

fn cargo(stack: Stack, manifest: &str, target: &Path, of: [&str; 2]) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--quiet", "--bin", stack.name()]).args(of);
    cargo.arg("--manifest-path").arg(Path::new(ROOT).join(manifest)).arg("--target-dir").arg(target);
    cargo
}
