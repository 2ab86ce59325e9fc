//! The control socket of a running command: what `ackline ss` and `ackline set` ask.
//!
//! A request is one line of JSON; the answer is one line or more, the last of which has `done` or `error`.
//!
//! | file | owns |
//! |---|---|
//! | `place` | where the sockets are, and leftovers of killed processes |
//! | `protocol` | requests and answers |
//! | `server` | answering, beside the stack: a thread of its own, which takes the stack's lock for a few connections at a time |
//! | `change` | what `set` changes on a live connection |
//! | `client` | asking |

pub(crate) mod change;
pub(crate) mod client;
mod place;
pub(crate) mod protocol;
mod server;

use crate::args::ControlArgs;
use crate::failure::Failure;
use crate::tunnel;
use ackline::Registry;
use ackline::runtime::Stack;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// A control socket. Dropping it ends its thread and removes the socket.
pub(crate) struct Control {
    path: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ControlArgs {
    /// Answers at the control socket of `command` until the result is dropped.
    ///
    /// # Errors
    /// If there can be no socket at the path of `--control`. Without that option a command does its work without a socket if it cannot
    /// have one.
    pub(crate) fn serve(
        &self,
        stack: &Stack,
        registry: &Registry,
        command: &'static str,
    ) -> Result<Option<Control>, Failure> {
        if self.no_control {
            return Ok(None);
        }
        if let Some(path) = &self.control {
            let refused = |error| Failure::file("listen at", format!("--control {}", path.display()), &error);
            return Control::start(path, stack, registry, command, refused).map(Some);
        }
        let directory = place::directory();
        // Looking for sockets removes the leftovers.
        if place::prepare(&directory).and_then(|()| place::sockets(&directory)).is_err() {
            return Ok(None);
        }
        let path = directory.join(format!("{}-{command}.sock", std::process::id()));
        let refused = |error| Failure::system("listen at the control socket", &error);
        Ok(Control::start(&path, stack, registry, command, refused).ok())
    }
}

impl Control {
    fn start(
        path: &Path,
        stack: &Stack,
        registry: &Registry,
        command: &'static str,
        refused: impl Fn(std::io::Error) -> Failure,
    ) -> Result<Self, Failure> {
        let runtime = tunnel::build(&mut tokio::runtime::Builder::new_current_thread())?;
        let listener = place::open(path).map_err(&refused)?;
        let (stop, stopped) = oneshot::channel();
        let server = server::Server::new(stack.clone(), registry.clone(), command);
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || runtime.block_on(server.run(listener, stopped)));
        match thread {
            Ok(thread) => Ok(Self { path: path.to_owned(), stop: Some(stop), thread: Some(thread) }),
            Err(error) => {
                let _ = place::remove(path);
                Err(refused(error))
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // If it has panicked, its message is on standard error.
            let _ = thread.join();
        }
        let _ = place::remove(&self.path);
    }
}
