//! The process that terminates the connections of a TUN device and carries each on to the
//! destination that its SYN named.

use crate::build;
use crate::case::{Device, Stack, Who};
use crate::net::SERVER;
use crate::rights::Outcome;
use crate::service::{PORT, PORTS};
use rustix::fd::OwnedFd;
use rustix::process::Signal;
use std::env;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};

/// As the first argument of this program: become another program, which ends with whoever has
/// started it.
const BECOME: &str = "--become";

/// If the command line says so, becomes the program that it names; returns only if it cannot.
pub(crate) fn become_one() -> Option<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    if arguments.next()? != BECOME {
        return None;
    }
    let program = arguments.next()?;
    let failure = match rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        Ok(()) => Command::new(&program).args(arguments).exec().to_string(),
        Err(errno) => errno.to_string(),
    };
    eprintln!("{}: {failure}", program.display());
    Some(ExitCode::FAILURE)
}

/// The process; it ends when this is dropped, or the thread that has started it ends.
pub(crate) struct Terminator(Child);

impl Terminator {
    /// Starts it in the namespace of the calling thread, with the device as its standard input.
    pub(crate) fn start(who: Who, device: OwnedFd) -> Outcome<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.arg(BECOME).arg(build::program(who.stack));
        match (who.stack, who.device) {
            (Stack::Ackline, _) => {
                command.args(["proxy", "--fd", "0", "--loopback", "--no-control", "--quiet"])
            }
            // It takes connections for addresses and ports that it knows.
            (Stack::Lwip, _) => command.args([SERVER.to_string(), PORT.to_string(), PORTS.to_string()]),
            (_, Device::Offload) => command.arg("offload"),
            (_, Device::Plain) => &mut command,
        };
        // Standard output is for the result.
        Ok(Self(command.stdin(Stdio::from(device)).stdout(Stdio::null()).spawn()?))
    }

    /// What it has in memory, in bytes.
    pub(crate) fn resident(&self) -> Outcome<u64> {
        self.kib("smaps_rollup", "Rss:")
    }

    /// The most that it had, in bytes.
    pub(crate) fn most_resident(&self) -> Outcome<u64> {
        self.kib("status", "VmHWM:")
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> Outcome<bool> {
        Ok(self.0.try_wait()?.is_some())
    }

    fn kib(&self, file: &str, name: &str) -> Outcome<u64> {
        let text = self.proc(file)?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.split_whitespace().next());
        Ok(number.ok_or_else(|| format!("{file}: no {name}"))?.parse::<u64>()? << 10)
    }

    /// What the kernel says of it in this file.
    pub(crate) fn proc(&self, file: &str) -> Outcome<String> {
        let path = format!("/proc/{}/{file}", self.0.id());
        Ok(fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?)
    }
}

impl Drop for Terminator {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
