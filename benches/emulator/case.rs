//! What is measured: how the emulator waits, and how much passes.

use crate::Outcome;
use ackline_runtime::Pacing;
use ackline_tcp_core::Duration;
use std::fmt;
use std::str::FromStr;

/// Bits per second of the path, each way.
pub(crate) const RATE: u64 = 1_000_000_000;
/// Its delay, each way.
pub(crate) const DELAY: Duration = Duration::from_millis(10);
/// IP bytes of each packet.
pub(crate) const PACKET: u64 = 1_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) wait: Wait,
    pub(crate) load: Load,
}

/// How the emulator waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Asleep,
    Spinning,
}

/// How much comes from each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Two per cent more than the path carries.
    Full,
    /// A thousand packets a second.
    Sparse,
}

impl Wait {
    pub(crate) const fn pacing(self) -> Pacing {
        match self {
            Self::Asleep => Pacing::Timer,
            Self::Spinning => Pacing::spin(),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Asleep => "asleep",
            Self::Spinning => "spinning",
        }
    }
}

impl Load {
    /// From one packet to the next.
    pub(crate) const fn gap(self) -> Duration {
        match self {
            Self::Full => Duration::from_nanos(PACKET * 8 * 1_000_000_000 / RATE * 100 / 102),
            Self::Sparse => Duration::from_millis(1),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Sparse => "sparse",
        }
    }
}

impl Case {
    pub(crate) fn all() -> Vec<Self> {
        let loads = [Load::Full, Load::Sparse];
        loads
            .into_iter()
            .flat_map(|load| [Wait::Asleep, Wait::Spinning].map(|wait| Self { wait, load }))
            .collect()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.wait.name(), self.load.name())
    }
}

impl FromStr for Case {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Outcome<Self> {
        let known = Self::all().into_iter().find(|case| case.to_string() == text);
        known.ok_or_else(|| format!("no case {text}; --list names all").into())
    }
}
