//! ACWAP's view of the path: its own smoothed RTT `r_c`, the range in which it has moved, and Eq.
//! (3).
//!
//! ```text
//!   rtt_min                                 rtt_min + beta (rtt_max - rtt_min)      rtt_max
//!      ├──────────────── a(w) ─────────────────────────┼──────────── 1 ────────────────┤     r_c ─►
//!   the queue is empty                                                        the queue is full
//! ```

use crate::windowed::WindowedMin;
use ackline_tcp_core::{Duration, Instant};
use alloc::boxed::Box;

/// Fraction bits of a nanosecond.
const BITS: u32 = 16;
/// Longest sample accepted: 18 minutes.
const LONGEST_SAMPLE: u64 = 1 << 40;
/// The published initial `rtt_min`, taken as seconds; no RTT reaches it.
const PUBLISHED_MIN: Duration = Duration::from_secs(10_000);
/// W8: the maximum is forgotten after this many congestion events.
const EVENTS_PER_MAX: u32 = 8;
/// W8: how long the minimum is remembered.
const WINDOW: Duration = Duration::from_secs(10);
/// Congestion events before Eq. (3) is used: the first one sets the range, the second one confirms
/// it.
const LEAST_EVENTS: u32 = 2;

/// All times in 2^-16 ns.
#[derive(Clone, Debug)]
pub(super) struct RttRange {
    /// `r_c`; none before a sample.
    pub(super) smoothed: Option<u64>,
    /// `rtt_min`; `None` before a value, except in literal mode.
    pub(super) min: Option<u64>,
    /// `rtt_max`; zero before a value.
    pub(super) max: u64,
    /// `numofcon`: congestion events since the connection began.
    pub(super) events: u32,
    /// W8, if enabled.
    pub(super) windowed: Option<Box<WindowedMin>>,
    pub(super) literal: bool,
}

pub(super) const fn fixed(time: Duration) -> u64 {
    time.as_nanos().saturating_mul(1 << BITS)
}

const fn duration(fixed: u64) -> Duration {
    Duration::from_nanos(fixed >> BITS)
}

impl RttRange {
    pub(super) fn new(literal: bool, windowed: bool) -> Self {
        Self {
            smoothed: None,
            min: literal.then_some(fixed(PUBLISHED_MIN)),
            max: 0,
            events: 0,
            windowed: windowed.then(Box::default),
            literal,
        }
    }

    /// W1: r_c := m, then r_c + (m - r_c) / 8. `longest`: the longest RTT to pace by; the paper
    /// does not consider a path that stalls for minutes, after which r_c / w would be minutes, too.
    pub(super) fn on_sample(&mut self, rtt: Duration, longest: Duration) {
        let longest = longest.as_nanos().min(LONGEST_SAMPLE) << BITS;
        let m = (rtt.as_nanos().min(LONGEST_SAMPLE) << BITS).min(longest);
        self.max = self.max.min(longest);
        self.smoothed = Some(match self.smoothed.map(|r_c| r_c.min(longest)) {
            None => m,
            Some(r_c) if m >= r_c => r_c + (m - r_c) / 8,
            Some(r_c) => r_c - (r_c - m) / 8,
        });
    }

    /// W2: an ACK of new data in congestion avoidance shows both ends of the range.
    pub(super) fn on_avoidance(&mut self, now: Instant) {
        self.lower_min(now);
        if let Some(r_c) = self.smoothed {
            self.max = self.max.max(r_c);
        }
    }

    /// W3: slow start shows the shortest RTT. As published it does not.
    pub(super) fn on_slow_start(&mut self, now: Instant) {
        if !self.literal {
            self.lower_min(now);
        }
    }

    fn lower_min(&mut self, now: Instant) {
        let Some(r_c) = self.smoothed else { return };
        self.min = Some(match self.windowed.as_deref_mut() {
            Some(window) => window.update(now, r_c, WINDOW),
            None => self.min.map_or(r_c, |min| min.min(r_c)),
        });
    }

    /// W5: one more event. The smoothed RTT falls to the minimum, if there is one: the reduction
    /// empties the queue, and many samples would pass before the mean shows it. As published, a
    /// minimum that no RTT has set yet counts, too.
    pub(super) fn on_congestion(&mut self) {
        self.events = self.events.saturating_add(1);
        if self.min.is_some() {
            self.smoothed = self.min;
        }
        if self.windowed.is_some() && self.events.is_multiple_of(EVENTS_PER_MAX) {
            self.max = 0;
        }
    }

    /// The last congestion was spurious.
    pub(super) fn take_back(&mut self, before: &Self) {
        self.events = before.events;
    }

    pub(super) fn set_windowed(&mut self, windowed: bool) {
        if windowed != self.windowed.is_some() {
            self.windowed = windowed.then(Box::default);
        }
    }

    /// Eq. (3): the position of r_c in the upper part of the range, 0 at its lower end and 1 at
    /// `rtt_max`; `None` below it. `beta` in millionths. W4: a range narrower than `least` is
    /// ignored; as published, it is not.
    pub(super) fn upper_part(&self, beta: u32, least: Duration) -> Option<f64> {
        let (r_c, min) = (self.smoothed?, self.min?);
        if self.events < LEAST_EVENTS {
            return None;
        }
        let width = i128::from(self.max) - i128::from(min);
        if !self.literal && (width <= 0 || width < i128::from(fixed(least))) {
            return None;
        }
        // In millionths, so that a threshold in whole nanoseconds is exact.
        let above = (i128::from(r_c) - i128::from(min)) * 1_000_000 - i128::from(beta) * width;
        if above < 0 {
            return None;
        }
        let part = i128::from(1_000_000 - beta.min(1_000_000)) * width;
        Some(if part > 0 { (above as f64 / part as f64).min(1.0) } else { 1.0 })
    }

    /// `r_c`.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(duration)
    }

    /// `rtt_min`; none before one was seen.
    pub(super) fn min(&self) -> Option<Duration> {
        self.min.map(duration)
    }

    /// `rtt_max`; zero before one was seen.
    pub(super) const fn max(&self) -> Duration {
        duration(self.max)
    }

    /// `numofcon`.
    pub(super) const fn events(&self) -> u32 {
        self.events
    }
}
