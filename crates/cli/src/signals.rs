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
    /// The failure of a command that was ended before its work was done.
    pub(crate) fn failure(self, what_happened: &str) -> Failure {
        let (name, number) = match self {
            Self::Interrupt => ("SIGINT", libc_number(SignalKind::interrupt())),
            Self::Terminate => ("SIGTERM", libc_number(SignalKind::terminate())),
            Self::Hangup => ("SIGHUP", libc_number(SignalKind::hangup())),
        };
        Failure::new(Exit::Signal(number), format!("{name}: {what_happened}"))
    }
}

fn libc_number(kind: SignalKind) -> u8 {
    // Signal numbers go up to 64.
    u8::try_from(kind.as_raw_value()).unwrap_or(u8::MAX)
}
