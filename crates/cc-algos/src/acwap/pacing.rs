//! ACWAP's pacing: spreads w evenly over r_c, since a burst within the RTT would fill the queue
//! before the RTT shows it.
//!
//! | step | rule | where |
//! |---|---|---|
//! | P1 | interval = r_c / w; a departure waits for the last one's interval | here; the core's pacer |
//! | P2 | when | [`PacingMode`] |
//! | P3 | retransmissions are paced, too; probes are not | the core |
//! | P4 | an idle pacer accumulates no more than its slack | `Revise` |
//! | P5 | if the interval is below the timer's granularity, several segments are sent at once | the core's pacer |
//! | P6 | the interval is a ratio, its remainder carried: no drift | [`Pacing::Gap`] |

use super::params::{AcwapParams, PacingMode};
use crate::aimd::Stage;
use ackline_tcp_core::policy::cc::{Pacing, Revise};
use ackline_tcp_core::{Duration, Window};

/// Windows per r_c in slow start with [`PacingMode::Stack`], in thousandths: the window doubles in
/// a round trip.
const SLOW_START_GAIN: u32 = 2000;

/// The current interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// r_c, and the bytes sent in it; `None` if nothing is paced.
    gap: Option<(Duration, Window)>,
    /// Thousandths of the window in these bytes.
    gain: u32,
}

impl Pace {
    /// Sets the interval from the window before growth (P1), or none if the mode has none (P2).
    pub(super) fn set(&mut self, params: &AcwapParams, stage: Stage, r_c: Option<Duration>, cwnd: Window) {
        let slow_start = matches!(stage, Stage::FirstSlowStart | Stage::SlowStart);
        let gain = match params.pacing {
            PacingMode::Off => None,
            // As published, the interval is only set in congestion avoidance.
            PacingMode::Paper if params.literal && stage != Stage::Avoidance => return,
            PacingMode::Paper if stage == Stage::FirstSlowStart => None,
            PacingMode::Paper => Some(1000),
            PacingMode::Stack if slow_start => Some(SLOW_START_GAIN),
            PacingMode::Stack => Some(params.gain),
        };
        self.gap = match (gain, r_c) {
            (Some(gain), Some(r_c)) => {
                self.gain = gain;
                Some((r_c, scaled(cwnd, gain)))
            }
            _ => None,
        };
    }

    /// The window became `cwnd`: adapts the interval.
    pub(super) fn on_jump(&mut self, cwnd: Window) {
        if let Some((_, over)) = &mut self.gap {
            *over = scaled(cwnd, self.gain);
        }
    }

    pub(super) fn decision(&self, mode: PacingMode) -> (Pacing, Revise) {
        let pacing = match self.gap {
            None => Pacing::Unpaced,
            Some((time, over)) => Pacing::Gap { time, over },
        };
        // P1: slack is zero as published; P4: otherwise at most one quantum.
        let revise = if mode == PacingMode::Stack { Revise::Banked } else { Revise::NextDeparture };
        (pacing, revise)
    }

    /// The time between departures of `smss` bytes; `None` if nothing is paced.
    pub(super) fn interval(&self, smss: u32) -> Option<Duration> {
        let (time, over) = self.gap?;
        Some(time.mul_ratio(Window::from_bytes(u64::from(smss)).raw(), over.raw()))
    }
}

fn scaled(cwnd: Window, gain: u32) -> Window {
    cwnd.mul_ratio(u64::from(gain), 1000)
}
