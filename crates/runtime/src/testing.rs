//! Private networks for tests and examples.

use crate::error::Error;
use crate::netns::{Namespace, isolate_command};
use crate::sys::filter::{Instruction, attach_filter};
use rustix::fd::AsFd;
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

/// Set in the process that [`isolated`] starts inside a user namespace.
const INSIDE: &str = "ACKLINE_TEST_INSIDE_USER_NAMESPACE";

/// Runs a test's `body` on a thread in a network namespace of its own, whose loopback interface is
/// up.
///
/// `name` is the test's full name in the test harness (`module::function`). If the process may not
/// create a namespace, the test is run again by itself in a child process inside a user namespace;
/// if that is not allowed either, or if `body` returns an error that more privileges would avoid,
/// one line on standard error says `SKIPPED: <name>: <why>` and the test counts as passed.
///
/// # Panics
/// If `body` panics or returns another error, or if the thread is that of another test than `name`.
pub fn isolated(name: &str, body: impl FnOnce() -> Result<(), Error> + Send) {
    check_name(name);
    let outcome = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _namespace = Namespace::new_for_thread().map_err(Outcome::NoNamespace)?;
            body().map_err(Outcome::Failed)
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match outcome {
        Ok(()) => {}
        Err(Outcome::NoNamespace(error)) if error.is_lack_of_rights() => {
            if std::env::var_os(INSIDE).is_some() {
                skip(name, &error);
            } else {
                rerun_in_user_namespace(name, &error);
            }
        }
        Err(Outcome::Failed(error)) if error.is_lack_of_rights() => skip(name, &error),
        Err(Outcome::NoNamespace(error) | Outcome::Failed(error)) => panic!("{name}: {error}"),
    }
}

/// Makes a kernel TCP socket deaf, or undoes that: while deaf, it drops its peer's segments, except
/// those with RST. It still sends.
///
/// # Errors
/// If `socket` does not accept a filter.
pub fn set_deaf(socket: impl AsFd, deaf: bool) -> io::Result<()> {
    Ok(attach_filter(socket, &mut if deaf { only_resets() } else { everything() })?)
}

const fn instruction(code: u32, jf: u8, k: u32) -> Instruction {
    Instruction { code: code as u16, jt: 0, jf, k }
}

/// Accepts segments with RST. For a TCP socket, whose packets begin with the TCP header.
fn only_resets() -> Vec<Instruction> {
    const FLAGS: u32 = 13;
    const RST: u32 = 4;
    let load = instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, FLAGS);
    let test = instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 1, RST);
    let drop = instruction(libc::BPF_RET | libc::BPF_K, 0, 0);
    [&[load, test], &*everything(), &[drop]].concat()
}

/// Accepts everything.
fn everything() -> Vec<Instruction> {
    vec![instruction(libc::BPF_RET | libc::BPF_K, 0, u32::MAX)]
}

/// The test harness names a test's thread after the test, unless it runs tests on its own thread.
/// Without this check, a wrong name would fail only where tests have to run again in a user
/// namespace.
fn check_name(name: &str) {
    let thread = std::thread::current();
    if let Some(test) = thread.name().filter(|&test| test != "main") {
        assert_eq!(name, test, "the name given to isolated() must be the test harness's");
    }
}

enum Outcome {
    NoNamespace(Error),
    Failed(Error),
}

/// Whether all of these programs are on the `PATH`. If some are missing, reports that the test
/// `name` could not run.
///
/// A test that runs a program which a minimal Linux system lacks asks this first.
#[must_use = "without the programs the test must return"]
pub fn has_programs(name: &str, programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !is_on(&path, program)).collect();
    if !missing.is_empty() {
        skip(name, &format!("this machine has no {}", missing.join(", no ")));
    }
    missing.is_empty()
}

/// Whether a folder of `path` has this program.
fn is_on(path: &OsStr, program: &str) -> bool {
    std::env::split_paths(path).any(|folder| {
        let found = std::fs::metadata(folder.join(program));
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

/// Reports that a test could not run, even if the test harness captures the output of passing
/// tests.
pub fn skip(name: &str, why: &dyn std::fmt::Display) {
    say(&format!("SKIPPED: {name}: {why}"));
}

fn say(line: &str) {
    // Not `eprintln!`, which the harness captures. If standard error is closed, there is no one to
    // tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn rerun_in_user_namespace(name: &str, why: &Error) {
    let Ok(program) = std::env::current_exe() else { return skip(name, why) };
    let mut command = Command::new(program);
    command.args(["--exact", name, "--nocapture", "--test-threads=1", "--include-ignored"]);
    command.env(INSIDE, "1").stdin(Stdio::null());
    isolate_command(&mut command);
    // An error means that the child could not be isolated: its pre-exec step failed.
    let Ok(output) = command.output() else { return skip(name, why) };
    let errors = String::from_utf8_lossy(&output.stderr);
    for line in errors.lines() {
        if line.starts_with("SKIPPED") { say(line) } else { eprintln!("{line}") }
    }
    assert!(
        output.status.success(),
        "{name} failed inside a user namespace:\n{}{errors}",
        String::from_utf8_lossy(&output.stdout)
    );
    let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(ran, "no test is called {name:?}: the name given to isolated() must be the harness's");
}
