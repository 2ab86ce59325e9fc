//! The pacer: the earliest time for the next data.
//!
//! It stores the last departure and the gap at that time. [`Pacer::earliest`] is pure and is called
//! after every event, so that an ACK can move a departure at once if the congestion control wants
//! that ([`Revise::Retroactive`]).
//!
//! ```text
//!    departure of n bytes                          earliest next one
//!   ──────┬──────────────────────────────────────────────┬──────────
//!         │◄──────────── n * time / over ───────────────►│
//! ```
//!
//! Gaps are ratios of integers, and remainders are carried to the next one: departures at a
//! constant rate never drift from it, whatever the rate.
//!
//! If one segment's gap is shorter than the driver's resolution, several are sent at once, followed
//! by the gap of all of them: the *quantum*. Time lost by late timers is only made up for with
//! [`Revise::Banked`], only up to the *slack*, and not at once: departures keep at least a quarter
//! of their gap, so a late timer shortens the next gaps without causing a burst. (Half would not be
//! enough: the timer adds its lateness to the shortened gap, too.) Time in which it was not the
//! pacer that held data back is never made up for.
//!
//! ```text
//!  schedule   │         │         │         │         │         │
//!  leaves     │                   ▲ late │  │         │         │
//!                                 ├─¼┬─¼─┼─¼┤
//! ```

#[cfg(test)]
mod tests;

use crate::policy::cc::{Pacing, Revise, SendDecision};
use crate::time::{Duration, Instant};
use crate::units::{Rate, Window};

/// Maximum lateness that [`Revise::Banked`] makes up for, in ticks of the driver's timers: a timer
/// that is often this late would keep a flow below its rate permanently.
const SLACK_TICKS: u64 = 20;

/// While [`Revise::Banked`] makes up for lateness, departures keep one part in this many of their
/// gap.
const CLOSEST: u64 = 4;

/// A pending departure waits for at most this many of the current gaps.
const LONGEST: u64 = 8;

/// `over` bytes take `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    time: Duration,
    over: Window,
}

/// The remainder of a division: `parts` of a nanosecond, of which `of` make one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Carry {
    parts: u64,
    of: u64,
}

impl Carry {
    /// The same in other parts, rounded down; less than `of`.
    fn in_parts_of(self, of: u64) -> u64 {
        if self.parts == 0 || self.of == of {
            return self.parts;
        }
        // Less than `of`, for `parts` is less than `self.of`.
        (u128::from(self.parts) * u128::from(of) / u128::from(self.of)) as u64
    }
}

impl Gap {
    /// The gap of a decision. `None` if nothing is paced, or the pace is unknown before the first
    /// RTT sample.
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

    /// Time of one segment of `smss` bytes.
    pub(crate) fn of_segment(self, smss: u32) -> Duration {
        self.of_bytes(smss, Carry::default()).0
    }

    /// Time of `bytes` plus `carry`, and the remainder.
    fn of_bytes(self, bytes: u32, carry: Carry) -> (Duration, Carry) {
        let over = self.over.raw();
        if over == 0 {
            return (Duration::MAX, Carry::default());
        }
        let carry = carry.in_parts_of(over);
        let bytes = u64::from(bytes) << Window::FRACTION_BITS;
        let product = match bytes.checked_mul(self.time.as_nanos()).and_then(|n| n.checked_add(carry)) {
            Some(product) => {
                return (Duration::from_nanos(product / over), Carry { parts: product % over, of: over });
            }
            None => u128::from(bytes) * u128::from(self.time.as_nanos()) + u128::from(carry),
        };
        let nanos = u64::try_from(product / u128::from(over)).unwrap_or(u64::MAX);
        // A remainder is less than its divisor.
        (Duration::from_nanos(nanos), Carry { parts: (product % u128::from(over)) as u64, of: over })
    }

    /// Bytes that one paced departure may carry: as many whole segments of `smss` bytes as the pace
    /// gives in `tick`, the driver's resolution, and at least one.
    pub(crate) fn quantum(self, smss: u32, tick: Duration) -> u32 {
        let bytes = self.over.mul_ratio(tick.as_nanos(), self.time.as_nanos()).bytes();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        (bytes / smss * smss).max(smss)
    }

    /// Bytes per second, for `info`.
    pub(crate) fn rate(self) -> Rate {
        Rate::from_bytes_over(self.over.bytes(), self.time)
    }
}

/// The last departure and its consequences.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    /// The last departure of data, and its bytes; 0: none yet.
    last: Instant,
    len: u32,
    /// The next scheduled departure by the gap at the last one.
    next: Instant,
    /// With [`Revise::Banked`]: a quarter of that gap after the last departure, the earliest next
    /// one if the schedule is behind.
    spaced: Instant,
    /// The remainder of that gap.
    carry: Carry,
    /// Data has waited for `next` since the last departure: anything sent after it is late.
    held: bool,
}

impl Pacer {
    /// The earliest time for data; [`Instant::ZERO`] if nothing holds it back.
    pub(crate) fn earliest(&self, decision: &SendDecision, srtt: Option<Duration>) -> Instant {
        let Some(gap) = Gap::of(decision, srtt) else { return Instant::ZERO };
        if self.len == 0 {
            return Instant::ZERO;
        }
        match decision.revise {
            Revise::Retroactive => self.last + gap.of_bytes(self.len, Carry::default()).0,
            Revise::NextDeparture => self.next.min(self.latest(gap)),
            Revise::Banked => self.next.max(self.spaced).min(self.latest(gap)),
        }
    }

    /// The earliest time for the first retransmission after a loss, if `window` is what the loss
    /// left of the congestion window: not before that window, spread over the round trip, would
    /// send again.
    ///
    /// A paced stream that fills a link reaches its full queue as fast as the queue drains. The
    /// pending departure may therefore come a moment before there is room, as the lost one did. The
    /// reduced window in a round trip is slower than the link, whatever the size of the queue and
    /// the gap of the decision. A super-packet may be longer than that window; a round trip after
    /// it, it has left the queue.
    pub(crate) fn earliest_repair(&self, window: Window, srtt: Duration) -> Instant {
        let gap = Gap { time: srtt, over: window };
        self.last + gap.of_bytes(self.len, Carry::default()).0.min(srtt)
    }

    /// The latest time for a departure that stays in place while decisions change: a gap many times
    /// as long as the current one was derived from an outdated round trip.
    fn latest(&self, gap: Gap) -> Instant {
        let gap = gap.of_bytes(self.len, Carry::default()).0;
        // What is carried over may add a nanosecond, also to a gap of less than one.
        self.last + gap.saturating_mul(LONGEST).max(gap.saturating_add(Duration::from_nanos(1)))
    }

    /// Data that could otherwise be sent waits for [`earliest`](Self::earliest).
    pub(crate) const fn hold(&mut self) {
        self.held = true;
    }

    /// `len` bytes were sent at `now`; `granularity` is that of the driver's timers. A packet sent
    /// early (such as an RTO's segment) delays the following ones as if it had waited.
    pub(crate) fn on_departure(
        &mut self,
        now: Instant,
        len: u32,
        decision: &SendDecision,
        srtt: Option<Duration>,
        granularity: Duration,
    ) {
        let held = core::mem::take(&mut self.held);
        let gap = Gap::of(decision, srtt);
        let pending = gap.map_or(now, |gap| self.next.min(self.latest(gap)));
        self.last = now;
        self.len = len.max(1);
        let Some(gap) = gap else {
            (self.next, self.spaced, self.carry) = (now, now, Carry::default());
            return;
        };
        let (from, carry) = match decision.revise {
            Revise::Banked if held => {
                let slack =
                    gap.of_bytes(len, Carry::default()).0.max(granularity.saturating_mul(SLACK_TICKS));
                (pending.max(now - slack), self.carry)
            }
            Revise::Banked | Revise::NextDeparture => (pending.max(now), self.carry),
            Revise::Retroactive => (now, Carry::default()),
        };
        let (wait, carry) = gap.of_bytes(len, carry);
        (self.next, self.carry) = (from + wait, carry);
        self.spaced = now + wait.div(CLOSEST);
    }
}
