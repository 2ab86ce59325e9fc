//! A TCP in a program of its own, whose standard input is a socket of IP packets.
//!
//! ```text
//! PROGRAM client|server HERE PEER PORT SENDS RECEIVES WAITS PAUSE MTU
//! ```
//!
//! It says `ready` when it is, and `LENGTH HASH` when its application is done; then it goes on
//! until it is ended.

use super::{Act, End, PORT};
use crate::bridge::{PacketSocket, Wire, bridge};
use crate::stream::Received;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::ChildStdout;

pub(super) const GVISOR: Program = Program { name: "gvisor", compiler: Compiler::Go };
pub(super) const LWIP: Program = Program { name: "lwip", compiler: Compiler::C };

#[derive(Debug)]
pub(super) struct Program {
    /// Of its folder beside this one.
    name: &'static str,
    compiler: Compiler,
}

#[derive(Debug)]
enum Compiler {
    Go,
    C,
}

impl Program {
    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pairings-{}", self.name))
    }

    pub(super) fn build(&self) -> Result<(), String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/pairings").join(self.name);
        let mut command = match self.compiler {
            Compiler::Go => {
                let mut go = Command::new("go");
                go.args(["build", "-o"]).arg(self.path()).arg(".");
                go
            }
            Compiler::C => {
                let mut cc = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
                cc.args(["-O2", "-Wall", "-Wextra", "-I/usr/include/lwip", "main.c", "-llwip", "-o"]);
                cc.arg(self.path());
                cc
            }
        };
        let name = command.get_program().to_string_lossy().into_owned();
        let output = command.current_dir(folder).output().map_err(|error| format!("{name}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let error = said.lines().find(|line| line.contains("error"));
        Err(format!("{name}: {}", error.unwrap_or_else(|| said.trim())))
    }

    pub(super) async fn start(&self, mut wire: Wire, act: &Act) -> Result<End, String> {
        let (mut socket, theirs) = PacketSocket::pair(act.mtu).map_err(|error| error.to_string())?;
        let (here, peer) = (act.role.here(), act.role.peer());
        let arguments = format!(
            "{} {here} {peer} {PORT} {} {} {} {} {}",
            act.role.name(),
            act.bytes.len(),
            act.receives,
            u8::from(act.waits),
            act.pause.as_millis(),
            act.mtu
        );
        let mut child = tokio::process::Command::new(self.path())
            .args(arguments.split(' '))
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{}: {error}", self.name))?;
        let out = child.stdout.take().ok_or("no standard output")?;
        let mut lines = BufReader::new(out).lines();
        match line(&mut lines).await?.as_str() {
            "ready" => {}
            other => return Err(format!("{} says {other:?} and not that it is ready", self.name)),
        }
        let name = self.name;
        Ok(End::spawn(|say| async move {
            let application = async {
                let said = line(&mut lines).await.and_then(|line| received(&line));
                // Nobody listens any more if the exchange has ended.
                let _ = say.send(said);
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = application => {}
                ended = child.wait() => eprintln!("{name} ended: {ended:?}"),
                gone = bridge(&mut socket, &mut *wire) => {
                    let Err(error) = gone;
                    eprintln!("the socket of {name}: {error}");
                }
            }
        }))
    }
}

async fn line(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<String, String> {
    lines.next_line().await.map_err(|error| error.to_string())?.ok_or_else(|| "it ended".to_owned())
}

fn received(line: &str) -> Result<Received, String> {
    let of = || {
        let (len, hash) = line.split_once(' ')?;
        Some(Received { len: len.parse().ok()?, hash: u64::from_str_radix(hash, 16).ok()? })
    };
    of().ok_or_else(|| line.to_owned())
}
