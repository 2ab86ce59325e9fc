//! The control socket of a running command: what `ackline ss`, `nstat`, `set` and `publish`
//! ask.
//!
//! A request is one line of JSON; the answer is one line or more, the last of which has `done` or
//! `error`.
//!
//! | file | owns |
//! |---|---|
//! | `place` | where the sockets are, and leftovers of killed processes |
//! | `protocol` | requests and answers |
//! | `limits` | what clients may take up, and counters of what they did |
//! | `server` | answering, beside the stack: a thread of its own, which takes the stack's lock for a few connections at a time |
//! | `client` | asking |

pub(crate) mod client;
mod limits;
pub(crate) mod place;
pub(crate) mod protocol;
mod server;
#[cfg(test)]
mod tests;

use crate::args::control::ControlArgs;
use crate::failure::Failure;
use crate::network::tunnel;
use crate::settings::Settings;
use crate::watchers::background::Background;
use crate::watchers::publishing::Publishing;
use crate::watchers::recorded::RecordedCounters;
use ackline::runtime::Stack;
use limits::Limits;
use place::SocketName;
use server::Server;
use std::path::{Path, PathBuf};

/// A control socket. Dropping it ends its thread and removes the socket.
pub(crate) struct Control {
    name: SocketName,
    thread: Option<Background>,
}

/// Where the socket of a command is going to be.
pub(crate) struct ControlPlace {
    socket: Option<Socket>,
    limits: Limits,
}

enum Socket {
    /// The path of `--control`.
    Given(PathBuf),
    /// A name of its own in this directory.
    Usual(PathBuf),
}

impl ControlArgs {
    /// Where the socket is going to be, as the caller's user sees it now: in another user namespace
    /// it may have another number, and a directory with another name.
    pub(crate) fn place(&self) -> ControlPlace {
        let socket = match &self.control {
            _ if self.no_control => None,
            Some(path) => Some(Socket::Given(path.clone())),
            None => Some(Socket::Usual(place::directory())),
        };
        let clients = usize::try_from(self.control_clients.get()).unwrap_or(usize::MAX);
        let limits = Limits { clients, request: self.control_request, timeout: self.control_timeout };
        ControlPlace { socket, limits }
    }
}

impl ControlPlace {
    /// Answers at the control socket of `command` until the result is dropped.
    ///
    /// # Errors
    /// If there can be no socket at the path of `--control`. Without that option a command does its
    /// work without a socket if it cannot have one.
    pub(crate) fn serve(
        self,
        stack: &Stack,
        settings: &Settings,
        command: &'static str,
        recorded: RecordedCounters,
        publishing: Option<Publishing>,
    ) -> Result<Option<Control>, Failure> {
        let server = Server::new(stack.clone(), settings, command, self.limits, recorded, publishing);
        match self.socket {
            None => Ok(None),
            Some(Socket::Given(path)) => {
                let refused =
                    |error| Failure::file("listen at", format!("--control {}", path.display()), &error);
                Control::start(&path, server, refused).map(Some)
            }
            Some(Socket::Usual(directory)) => {
                // Looking for sockets removes the leftovers.
                if place::prepare(&directory).and_then(|()| place::sockets(&directory)).is_err() {
                    return Ok(None);
                }
                let path = directory.join(format!("{}-{command}.sock", std::process::id()));
                let refused = |error| Failure::system("listen at the control socket", &error);
                Ok(Control::start(&path, server, refused).ok())
            }
        }
    }
}

impl Control {
    fn start(
        path: &Path,
        server: Server,
        refused: impl Fn(std::io::Error) -> Failure,
    ) -> Result<Self, Failure> {
        let (listener, name) = place::open(path).map_err(&refused)?;
        let started = tunnel::build(&mut tokio::runtime::Builder::new_current_thread()).and_then(|runtime| {
            Background::start("control", runtime, |stopped| server.run(listener, stopped)).map_err(&refused)
        });
        match started {
            Ok(thread) => Ok(Self { name, thread: Some(thread) }),
            Err(failure) => {
                name.remove();
                Err(failure)
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(self.thread.take());
        self.name.remove();
    }
}
