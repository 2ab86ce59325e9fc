//! SIGINT, SIGTERM and SIGHUP as something to wait for.

use crate::failure::{Exit, Failure};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From now on these signals end nothing by themselves.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndSignal {
    Interrupt,
    Terminate,
    Hangup,
}

impl Signals {
    pub(crate) fn catch() -> Result<Self, Failure> {
        let catch = |kind| signal(kind).map_err(|error| Failure::system("catch signals", &error));
        Ok(Self {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hangup: catch(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> EndSignal {
        tokio::select! {
            _ = self.interrupt.recv() => EndSignal::Interrupt,
            _ = self.terminate.recv() => EndSignal::Terminate,
            _ = self.hangup.recv() => EndSignal::Hangup,
        }
    }
}

impl EndSignal {
    const fn kind(self) -> SignalKind {
        match self {
            Self::Interrupt => SignalKind::interrupt(),
            Self::Terminate => SignalKind::terminate(),
            Self::Hangup => SignalKind::hangup(),
        }
    }

    /// Its number: signal(7).
    pub(crate) fn number(self) -> u8 {
        // Signal numbers go up to 64.
        u8::try_from(self.kind().as_raw_value()).unwrap_or(u8::MAX)
    }

    /// The failure of a command that was ended before its work was done.
    pub(crate) fn failure(self, what_happened: &str) -> Failure {
        let name = match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Hangup => "SIGHUP",
        };
        Failure::new(Exit::Signal(self.number()), format!("{name}: {what_happened}"))
    }
}
