//! Readings of the thesis that the design here does not take, to find out which of them its
//! prototype had.
//!
//! | parameter | default | the other readings |
//! |---|---|---|
//! | `reclock` | `both`: each new RTT and each new window moves a pending departure | `rtt`: only a new RTT does, as sections 7.3.1 and 7.3.2 are worded; `off`: nothing does |
//! | `divisor` | `reduced`: an ACK that reduces the window adds by the window that it leaves | `prior`: by the window before |
//! | `clock_rtt` | `newest`: the RTT of the newest segment that an ACK covers | `thesis`: that of the oldest less (delta - 1) d, with d = (segment / W - 1) SRTT as section 6.3 prints it |

use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::Key;

/// What moves a departure that is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclock {
    /// A new RTT and a new window.
    Both,
    /// A new RTT; a new window counts from the next departure.
    Rtt,
    /// Nothing: both count from the next departure.
    Off,
}

/// The window by which the increase of an ACK that also reduces it is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// The reduced one.
    Reduced,
    /// The one before the reduction.
    Prior,
}

/// The round-trip time of the departure clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockRtt {
    /// The core's: of the newest segment that an ACK covers.
    Newest,
    /// The thesis' approximation.
    Thesis,
}

/// The readings in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prototype {
    /// What moves a departure that is pending.
    pub reclock: Reclock,
    /// The window by which the increase of an ACK that also reduces it is divided.
    pub divisor: Divisor,
    /// The round-trip time of the departure clock.
    pub clock_rtt: ClockRtt,
}

impl Default for Prototype {
    fn default() -> Self {
        Self { reclock: Reclock::Both, divisor: Divisor::Reduced, clock_rtt: ClockRtt::Newest }
    }
}

/// What moves a pending departure, among the parameters `C`.
pub(super) const fn reclock<C: AsRef<Prototype> + AsMut<Prototype>>() -> Key<C> {
    Key::choice(
        "reclock",
        &["both", "rtt", "off"],
        "what moves a pending departure: a new RTT and a new window, a new RTT, nothing",
        |it| it.as_ref().reclock as usize,
        |it, at| it.as_mut().reclock = [Reclock::Both, Reclock::Rtt, Reclock::Off][at],
    )
}

/// The window that divides an increase, among the parameters `C`.
pub(super) const fn divisor<C: AsRef<Prototype> + AsMut<Prototype>>() -> Key<C> {
    Key::choice(
        "divisor",
        &["reduced", "prior"],
        "the window that divides the increase of an ACK that reduces it: after or before that",
        |it| it.as_ref().divisor as usize,
        |it, at| it.as_mut().divisor = [Divisor::Reduced, Divisor::Prior][at],
    )
}

/// The clock's RTT, among the parameters `C`.
pub(super) const fn clock_rtt<C: AsRef<Prototype> + AsMut<Prototype>>() -> Key<C> {
    Key::choice(
        "clock_rtt",
        &["newest", "thesis"],
        "the clock's RTT: of the newest segment covered, or the thesis' approximation of it",
        |it| it.as_ref().clock_rtt as usize,
        |it, at| it.as_mut().clock_rtt = [ClockRtt::Newest, ClockRtt::Thesis][at],
    )
}

/// The thesis' estimate of the round trip without the receiver's delay: each sample is less by
/// `delta` - 1 times d = (s / W - 1) SRTT.
///
/// d is short by a round trip, so that the estimate grows without bound if a receiver does hold
/// ACKs and W = s / 2; if it holds none, the estimate is short by (delta - 1) d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThesisRtt {
    /// Nanoseconds, times 8.
    smoothed: u64,
}

impl ThesisRtt {
    /// The oldest segment that an ACK covers had the round-trip time `rtt`; `clock` is `None` on
    /// the ACK clock.
    pub(super) fn on_ack(before: Option<Self>, rtt: Duration, clock: Option<Clocked>) -> Self {
        let Some(Self { smoothed }) = before else { return Self { smoothed: rtt.as_nanos().max(1) << 3 } };
        let sample = clock.map_or(rtt, |clock| clock.without_wait(Duration::from_nanos(smoothed >> 3), rtt));
        Self { smoothed: smoothed - (smoothed >> 3) + sample.as_nanos().clamp(1, u64::MAX >> 8) }
    }

    /// The estimate.
    pub(super) const fn get(self) -> Duration {
        Duration::from_nanos(self.smoothed >> 3)
    }
}

/// The state of the departure clock that d is derived from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocked {
    /// W in Q9 bytes, at least 1.
    pub(super) w: u64,
    /// A segment in Q9 bytes.
    pub(super) segment: u64,
    /// Segments until the receiver acknowledges, at least 1.
    pub(super) delta: u16,
}

impl Clocked {
    /// `rtt` less (delta - 1) d; negative d, above one segment, adds to it.
    pub(super) fn without_wait(self, srtt: Duration, rtt: Duration) -> Duration {
        let (segment, w) = (i128::from(self.segment), i128::from(self.w));
        let d = (segment - w) * i128::from(srtt.as_nanos()) / w;
        let rest = i128::from(rtt.as_nanos()) - d * i128::from(self.delta - 1);
        Duration::from_nanos(rest.clamp(0, i128::from(u64::MAX)) as u64)
    }
}
