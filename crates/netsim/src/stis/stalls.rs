//! The stalls of a flow.
//!
//! ```text
//!   draw  draw  draw: stall            draw  draw
//!    |     |     |═════════════════════|─────|─────|──►
//!    0     T     2T                    2T+D
//! ```
//!
//! At each whole interval outside a stall, one draw decides whether a stall starts, and of which
//! kind. A stall has a fixed duration, and the next draw is at the next whole interval.

use crate::rng::SimRng;
use ackline_tcp_core::{Duration, Instant};
use std::collections::VecDeque;

/// A kind of stall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallKind {
    /// The probability that a draw starts one.
    pub probability: f64,
    /// How long it lasts.
    pub lasts: Duration,
}

/// The stalls of a flow, drawn as far as needed.
#[derive(Debug)]
pub struct Stalls {
    kinds: Vec<StallKind>,
    every: Duration,
    rng: SimRng,
    next_draw: Instant,
    /// Start and end of those drawn and not yet forgotten.
    pub(super) drawn: VecDeque<(Instant, Instant)>,
}

impl Stalls {
    /// Stalls of these kinds, with a draw at each whole multiple of `every`, starting with the
    /// first one after zero. A draw compares one random number with the cumulative probabilities of
    /// the kinds, in order.
    #[must_use]
    pub fn new(kinds: Vec<StallKind>, every: Duration, rng: SimRng) -> Self {
        let every = every.max(Duration::from_nanos(1));
        Self { kinds, every, rng, next_draw: Instant::ZERO + every, drawn: VecDeque::new() }
    }

    /// `at`, or the end of the stall that contains it.
    pub fn released(&mut self, at: Instant) -> Instant {
        self.draw_until(at);
        let stall = self.drawn.iter().find(|(begin, end)| (*begin..*end).contains(&at));
        stall.map_or(at, |(_, end)| *end)
    }

    /// When work of duration `work`, suspended during stalls, ends if it may start at `begin`.
    pub fn finish(&mut self, begin: Instant, work: Duration) -> Instant {
        let (mut at, mut left) = (begin, work);
        loop {
            at = self.released(at);
            let end = at + left;
            self.draw_until(end);
            let Some((stall, _)) = self.drawn.iter().find(|(stall, _)| (at..end).contains(stall)) else {
                return end;
            };
            left = left.saturating_sub(stall.since(at));
            at = *stall;
        }
    }

    /// Discards stalls that ended before `now`.
    pub fn forget_before(&mut self, now: Instant) {
        self.draw_until(now);
        while self.drawn.front().is_some_and(|(_, end)| *end <= now) {
            self.drawn.pop_front();
        }
    }

    pub(super) fn draw_until(&mut self, until: Instant) {
        if self.kinds.is_empty() {
            return;
        }
        while self.next_draw <= until {
            let begin = self.next_draw;
            self.next_draw = begin + self.every;
            let draw = self.rng.unit();
            let mut below = 0.0;
            let kind = self.kinds.iter().find(|kind| {
                below += kind.probability;
                draw < below
            });
            if let Some(kind) = kind.filter(|kind| kind.lasts > Duration::ZERO) {
                let end = begin + kind.lasts;
                self.drawn.push_back((begin, end));
                let whole = end.as_nanos() / self.every.as_nanos() + 1;
                self.next_draw = Instant::ZERO + self.every.saturating_mul(whole);
            }
        }
    }
}
