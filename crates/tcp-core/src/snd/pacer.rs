//! The pacer: when the next data may leave, at the earliest.
//!
//! It stores what left and when, and the gap that was in force then. [`Pacer::earliest`] is pure and is asked
//! again after every event, so that an ACK can move a departure at once where the congestion control wants
//! that ([`Revise::Retroactive`]).
//!
//! ```text
//!    departure of n bytes                          earliest next one
//!   ──────┬──────────────────────────────────────────────┬──────────
//!         │◄──────────── n * time / over ───────────────►│
//! ```

use crate::policy::cc::{Pacing, Revise, SendDecision};
use crate::time::{Duration, Instant};
use crate::units::Window;

/// How much one paced super-packet may carry, in time at the pacing rate; and the most credit that
/// [`Revise::Banked`] saves.
const QUANTUM: Duration = Duration::from_millis(1);

/// `over` bytes take `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    time: Duration,
    over: Window,
}

impl Gap {
    /// The gap that a decision asks for. None where nothing is paced, or the pace is not known before the
    /// first RTT sample.
    pub(crate) fn of(decision: &SendDecision, srtt: Option<Duration>) -> Option<Self> {
        match decision.pacing {
            Pacing::Unpaced => None,
            Pacing::WindowOverRtt { gain } => {
                Some(Self { time: srtt?, over: decision.window.mul_ratio(u64::from(gain.max(1)), 256) })
            }
            Pacing::AtRate(rate) => {
                Some(Self { time: Duration::from_secs(1), over: Window::from_bytes(rate.bytes_per_second()) })
            }
            Pacing::Gap { time, over } => Some(Self { time, over }),
        }
    }

    /// Time that `bytes` take, and the remainder in units of 1/over ns, with `carry` of the same unit added.
    fn of_bytes(self, bytes: u32, carry: u64) -> (Duration, u64) {
        let over = self.over.raw();
        if over == 0 {
            return (Duration::MAX, 0);
        }
        let bytes = u64::from(bytes) << Window::FRACTION_BITS;
        let product = match bytes.checked_mul(self.time.as_nanos()).and_then(|n| n.checked_add(carry)) {
            Some(product) => return (Duration::from_nanos(product / over), product % over),
            None => u128::from(bytes) * u128::from(self.time.as_nanos()) + u128::from(carry),
        };
        let nanos = u64::try_from(product / u128::from(over)).unwrap_or(u64::MAX);
        (Duration::from_nanos(nanos), (product % u128::from(over)) as u64)
    }

    /// Bytes that one paced departure may carry.
    pub(crate) fn quantum(self) -> u64 {
        self.over.mul_ratio(QUANTUM.as_nanos(), self.time.as_nanos()).bytes()
    }

    /// Bytes per second, for `info`.
    pub(crate) fn rate(self) -> crate::units::Rate {
        crate::units::Rate::from_bytes_over(self.over.bytes(), self.time)
    }
}

/// What left last, and what follows from it.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    /// The last departure of data, and its bytes; 0: none yet.
    last: Instant,
    len: u32,
    /// The earliest next departure by the gap that was in force at the last one.
    next: Instant,
    /// Remainder of that gap, in 1/over ns.
    carry: u64,
}

impl Pacer {
    /// When data may leave, at the earliest; [`Instant::ZERO`] where nothing holds it.
    pub(crate) fn earliest(&self, decision: &SendDecision, srtt: Option<Duration>) -> Instant {
        let Some(gap) = Gap::of(decision, srtt) else { return Instant::ZERO };
        if self.len == 0 {
            return Instant::ZERO;
        }
        match decision.revise {
            Revise::Retroactive => self.last + gap.of_bytes(self.len, 0).0,
            Revise::NextDeparture | Revise::Banked => self.next,
        }
    }

    /// `len` bytes left at `now`.
    pub(crate) fn on_departure(
        &mut self,
        now: Instant,
        len: u32,
        decision: &SendDecision,
        srtt: Option<Duration>,
    ) {
        let first = self.len == 0;
        self.last = now;
        self.len = len.max(1);
        let Some(gap) = Gap::of(decision, srtt) else {
            (self.next, self.carry) = (now, 0);
            return;
        };
        let from = match decision.revise {
            Revise::Banked if !first => self.next.max(now - QUANTUM),
            Revise::Banked | Revise::NextDeparture | Revise::Retroactive => now,
        };
        let carry = if decision.revise == Revise::Retroactive { 0 } else { self.carry };
        let (wait, carry) = gap.of_bytes(len, carry);
        (self.next, self.carry) = (from + wait, carry);
    }
}
