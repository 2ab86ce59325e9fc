//! The ends of an exchange.

mod application;
mod kernel;
mod program;
mod smoltcp;
mod stack;

use crate::bridge::Wire;
use crate::stream::{Bytes, Received};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const PORT: u16 = 7_000;
pub(crate) const PREFIX: u8 = 24;

/// Whose TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tcp {
    Ackline,
    Linux,
    Gvisor,
    Smoltcp,
    Lwip,
}

impl Tcp {
    pub(crate) const ALL: [Self; 5] = [Self::Ackline, Self::Linux, Self::Gvisor, Self::Smoltcp, Self::Lwip];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ackline => "ackline",
            Self::Linux => "linux",
            Self::Gvisor => "gvisor",
            Self::Smoltcp => "smoltcp",
            Self::Lwip => "lwip",
        }
    }

    /// Builds what is no part of this program.
    ///
    /// # Errors
    /// The first that the compiler complains of, or that there is none.
    pub(crate) fn build(self) -> Result<(), String> {
        match self {
            Self::Gvisor => program::GVISOR.build(),
            Self::Lwip => program::LWIP.build(),
            Self::Ackline | Self::Linux | Self::Smoltcp => Ok(()),
        }
    }

    /// An end at `wire`. A server that this returns listens.
    ///
    /// # Errors
    /// If it cannot be set up.
    pub(crate) async fn start(self, wire: Wire, act: Act) -> Result<End, String> {
        match self {
            Self::Ackline => stack::start(wire, act),
            Self::Linux => kernel::start(wire, act),
            Self::Gvisor => program::GVISOR.start(wire, &act).await,
            Self::Smoltcp => Ok(smoltcp::start(wire, act)),
            Self::Lwip => program::LWIP.start(wire, &act).await,
        }
    }
}

/// How an application says that it is done.
type Said = oneshot::Sender<Result<Received, String>>;

/// Which of the two. Its number is the seed of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client = 1,
    Server = 2,
}

impl Role {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    pub(crate) const fn here(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self as u8)
    }

    pub(crate) const fn peer(self) -> Ipv4Addr {
        match self {
            Self::Client => Self::Server.here(),
            Self::Server => Self::Client.here(),
        }
    }
}

/// What an application does.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    pub(crate) role: Role,
    /// What it sends; then it closes its direction.
    pub(crate) bytes: Bytes,
    /// Octets that it will receive.
    pub(crate) receives: u64,
    /// It sends nothing before it has received everything.
    pub(crate) waits: bool,
    /// It reads nothing for so long at first, and again after half of what it receives.
    pub(crate) pause: Duration,
    pub(crate) mtu: u32,
    /// Where to write its packets, if it is ackline's.
    pub(crate) capture: Option<PathBuf>,
}

/// A running end. It answers its peer until it is dropped.
pub(crate) struct End {
    said: oneshot::Receiver<Result<Received, String>>,
    task: JoinHandle<()>,
}

impl End {
    /// Runs `work`, which says by the sender when the application is done, and goes on.
    fn spawn<W: Future<Output = ()> + 'static>(work: impl FnOnce(Said) -> W) -> Self {
        let (say, said) = oneshot::channel();
        Self { said, task: tokio::task::spawn_local(work(say)) }
    }

    /// Until the application has sent and received everything.
    ///
    /// # Errors
    /// Why it could not.
    pub(crate) async fn ended(&mut self) -> Result<Received, String> {
        (&mut self.said).await.unwrap_or_else(|_| Err("it stopped".to_owned()))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.task.abort();
    }
}
