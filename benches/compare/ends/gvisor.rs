//! gVisor's netstack, which is Go: a program of its own ([`main.go`](../gvisor/main.go)) that is
//! asked what came through.

use super::Meter;
use crate::Outcome;
use crate::answer::Answer;
use crate::case::{Act, Link};
use crate::net::{HERE, PEER, PORT, PREFIX};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/compare/gvisor");
const BINARY: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/compare-gvisor");

/// Builds the program.
///
/// # Errors
/// There is no Go, or what it says.
pub(crate) fn build() -> Result<(), String> {
    let output =
        Command::new("go").args(["build", "-o", BINARY, "."]).current_dir(Path::new(SOURCE)).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("go build: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("go: {error}")),
    }
}

/// The program, with its device open. It ends when this is dropped or its process ends, however
/// that ends.
pub(crate) struct Program {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Program {
    /// Starts it in the namespace of the calling thread.
    pub(crate) fn start(link: Link, interface: &str, act: Act) -> Outcome<Self> {
        let kind = match link {
            Link::TunPlain => "tun",
            Link::Packet => "packet",
            _ => return Err("gVisor has no such device".into()),
        };
        let (act, count) = match act {
            Act::Send { flows } => ("send", flows),
            Act::Receive { flows } => ("receive", flows),
            Act::RoundTrip { .. } => ("round-trip", 1),
            Act::Open { at_once } => ("open", at_once),
        };
        let (here, peer) = (format!("{HERE}/{PREFIX}"), format!("{PEER}:{PORT}"));
        let mut command = Command::new(BINARY);
        command.args([kind, interface, &here, &peer, act, &count.to_string()]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("gVisor's program has no pipes".into());
        };
        let mut program = Self { process, requests, answers: BufReader::new(answers) };
        match program.line()?.trim() {
            "ready" => Ok(program),
            other => Err(format!("gVisor's program began with {other:?}").into()),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    fn ask(&mut self) -> io::Result<()> {
        self.requests.write_all(b"\n")
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Err(io::Error::other("gVisor's program ended")),
            _ => Ok(line),
        }
    }
}

/// The measured end: lets the program begin, and the meter ask it.
pub(crate) fn connect(mut program: Program, meter: &Arc<Meter>) -> io::Result<()> {
    program.ask()?;
    let (failed, failure) = std::sync::mpsc::channel();
    let state = Mutex::new((program, 0));
    meter.on_look(move |meter| {
        let (program, told) = &mut *state.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = program.ask().and_then(|()| Answer::parse(&program.line()?).map_err(io::Error::other));
        match answer {
            Ok(Answer { total, times }) => {
                meter.add_times(times);
                meter.add(total - *told);
                *told = total;
            }
            // Whoever waits for it is there, or the process ends.
            Err(error) => drop(failed.send(error)),
        }
    });
    Err(failure.recv().unwrap_or_else(|_| io::ErrorKind::BrokenPipe.into()))
}
