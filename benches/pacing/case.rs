//! What is measured: who waits, and for how long at a time.

use crate::Outcome;
use ackline_tcp_core::{Duration, Rate};
use std::fmt;
use std::str::FromStr;

/// IP bytes of a full packet.
const PACKET: u64 = 1500;
/// Of these, payload: IPv4 and TCP headers with timestamps take the rest.
pub(crate) const PAYLOAD: u64 = 1448;

/// Departures less than this part of the asked gap apart are one burst.
pub(crate) const BURST_PART: u64 = 10;

/// A sleeper wakes up no more often than this: what is to leave more often, leaves by several
/// segments at a time.
const SLEEPERS_TICK: Duration = Duration::from_micros(50);

/// The gaps between full packets: 12 Mbit/s, 120 Mbit/s, 1 Gbit/s.
pub(crate) const GAPS: [Duration; 3] =
    [Duration::from_millis(1), Duration::from_micros(100), Duration::from_micros(12)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) who: Who,
    /// From one packet to the next.
    pub(crate) gap: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// ackline over TUN, asleep.
    Timer,
    /// ackline over TUN, spinning.
    Spin,
    /// A thread that waits for a timerfd, and sends nothing.
    BareTimer,
    /// A thread that reads the clock, and sends nothing.
    BareSpin,
    /// A task that sleeps by tokio's timers, and sends nothing.
    TokioSleep,
    /// The kernel's TCP with `SO_MAX_PACING_RATE` over TUN, as received.
    Kernel,
}

impl Who {
    pub(crate) const ALL: [Self; 6] =
        [Self::Timer, Self::BareTimer, Self::TokioSleep, Self::Spin, Self::BareSpin, Self::Kernel];

    const fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Spin => "spin",
            Self::BareTimer => "bare-timer",
            Self::BareSpin => "bare-spin",
            Self::TokioSleep => "tokio-sleep",
            Self::Kernel => "kernel",
        }
    }

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Timer => "ackline, sleeping",
            Self::Spin => "ackline, spinning",
            Self::BareTimer => "bare timerfd",
            Self::BareSpin => "bare spinning",
            Self::TokioSleep => "tokio's sleep",
            Self::Kernel => "kernel's TCP",
        }
    }
}

impl Case {
    pub(crate) fn all() -> Vec<Self> {
        GAPS.iter().flat_map(|&gap| Who::ALL.map(|who| Self { who, gap })).collect()
    }

    /// Segments that a loop without TCP counts as one departure: as many as ackline lets go at once
    /// in the same mode.
    pub(crate) fn segments(&self) -> u64 {
        match self.who {
            Who::BareSpin | Who::Spin => 1,
            _ => (SLEEPERS_TICK.as_nanos() / self.gap.as_nanos()).max(1),
        }
    }

    /// Payload per time.
    pub(crate) fn rate(&self) -> Rate {
        Rate::from_bytes_over(PAYLOAD, self.gap)
    }

    /// Bits of IP packets per second.
    pub(crate) fn bits_per_second(&self) -> f64 {
        PACKET as f64 * 8.0 / self.gap.as_secs_f64()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}us", self.who.name(), self.gap.as_nanos() / 1000)
    }
}

impl FromStr for Case {
    type Err = Box<dyn std::error::Error + Send + Sync>;

    fn from_str(text: &str) -> Outcome<Self> {
        let known = Self::all().into_iter().find(|case| case.to_string() == text);
        known.ok_or_else(|| format!("no case {text}; --list names all").into())
    }
}
