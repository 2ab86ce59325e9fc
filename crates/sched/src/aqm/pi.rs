//! The proportional-integral controller of PI2 and DualPI2 (RFC 9332, appendix A.1): from the
//! queueing delay and its trend to p', of which classic traffic sees the square and L4S traffic a
//! multiple.
//!
//! Updates are due at multiples of `update` of the queue's life. A queue has no timer, so it
//! catches up when a packet arrives or leaves. Nothing but the clock moves between such events, so
//! each missed update is computed exactly.

use ackline_tcp_core::{Duration, Instant};

/// Settings of the controller. Defaults are RFC 9332's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PiParams {
    /// The delay that it aims at (15 ms).
    pub target: Duration,
    /// Time between two updates: min(target, RTT_max / 3).
    pub update: Duration,
    /// Weight of the distance to the target, per second: 0.1 `update` / RTT_max².
    pub alpha: f64,
    /// Weight of the trend, per second: 0.3 / RTT_max.
    pub beta: f64,
    /// How p' is represented.
    pub arithmetic: Arithmetic,
}

impl PiParams {
    /// Linux's defaults: weights of 41/256 and 819/256 Hz, and an update each 16 ms.
    #[must_use]
    pub const fn linux(arithmetic: Arithmetic) -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            alpha: 41.0 / 256.0,
            beta: 819.0 / 256.0,
            arithmetic,
        }
    }
}

impl Default for PiParams {
    /// For a maximum round-trip time of 100 ms.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            alpha: 0.15,
            beta: 3.0,
            arithmetic: Arithmetic::Real,
        }
    }
}

/// How the controller calculates, and how its probabilities become marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// Real numbers; marks at even distances (RFC 9332, figure 4).
    #[default]
    Real,
    /// Linux's `sch_dualpi2`: p' in units of 2⁻³², weights in units of 1/256 Hz; marks at random.
    /// The sum of an update is not cut to 32 bits as there, so a delay that jumps does not wrap.
    Linux,
}

/// Largest p' of [`Arithmetic::Linux`].
const MAX_PROB: i64 = u32::MAX as i64;

/// The probability p'.
#[derive(Clone, Copy, Debug)]
enum Prob {
    Real(f64),
    Linux(i64),
}

/// The controller. Names are those of RFC 9332, appendix A.1.
#[derive(Clone, Debug)]
pub struct PiController {
    params: PiParams,
    prob: Prob,
    prevq: Duration,
    update_at: Instant,
}

impl PiController {
    /// p' is zero. An `update` of zero counts as a nanosecond.
    #[must_use]
    pub fn new(mut params: PiParams) -> Self {
        params.update = params.update.max(Duration::from_nanos(1));
        let prob = match params.arithmetic {
            Arithmetic::Real => Prob::Real(0.0),
            Arithmetic::Linux => Prob::Linux(0),
        };
        Self { params, prob, prevq: Duration::ZERO, update_at: Instant::ZERO + params.update }
    }

    /// Uses other parameters from the next update on, and the same arithmetic.
    pub fn set_params(&mut self, params: PiParams) {
        let arithmetic = self.params.arithmetic;
        self.params = PiParams { arithmetic, update: params.update.max(Duration::from_nanos(1)), ..params };
    }

    /// p', from 0 to 1.
    #[must_use]
    pub fn prob(&self) -> f64 {
        match self.prob {
            Prob::Real(p) => p,
            Prob::Linux(p) => p as f64 / MAX_PROB as f64,
        }
    }

    /// The updates that were due by `now`; `delay` returns the queueing delay at an instant.
    pub fn catch_up(&mut self, now: Instant, delay: impl Fn(Instant) -> Duration) {
        while self.update_at <= now {
            let due = self.update_at;
            self.update_at += self.params.update;
            let q = delay(due);
            self.update(q);
            if q == Duration::ZERO && self.prob() == 0.0 && delay(now) == Duration::ZERO {
                // Those until now change nothing.
                let missed = now.since(due).as_nanos() / self.params.update.as_nanos();
                self.update_at = due + self.params.update.saturating_mul(missed + 1);
            }
        }
    }

    /// Figure 8, with the queueing delay `q`.
    pub fn update(&mut self, q: Duration) {
        let PiParams { target, alpha, beta, .. } = self.params;
        match &mut self.prob {
            Prob::Real(p) => {
                let seconds = |time: Duration| time.as_secs_f64();
                let change =
                    alpha * (seconds(q) - seconds(target)) + beta * (seconds(q) - seconds(self.prevq));
                *p = (*p + change).clamp(0.0, 1.0);
            }
            Prob::Linux(p) => {
                let weight = |hz: f64| linux_weight(hz);
                let nanos = |time: Duration| i128::from(time.as_nanos());
                let sum = (nanos(q) - nanos(target)) * weight(alpha)
                    + (nanos(q) - nanos(self.prevq)) * weight(beta);
                let step = sum.abs() >> 6;
                let moved = i128::from(*p) + if sum >= 0 { step } else { -step };
                *p = moved.clamp(0, i128::from(MAX_PROB)) as i64;
            }
        }
        self.prevq = q;
    }
}

/// A weight as `sch_dualpi2` keeps it: its 256ths, to a probability of 2³² - 1 and a delay in
/// nanoseconds, with 6 bits of fraction.
fn linux_weight(hz: f64) -> i128 {
    // Rounded to the nearest; `core` has no function for it.
    let scaled = (hz * 256.0 + 0.5) as i128;
    scaled * i128::from(MAX_PROB >> 2) / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn course(params: PiParams, millis: &[u64]) -> Vec<f64> {
        let mut pi = PiController::new(params);
        let after = |delay: &u64| {
            pi.update(Duration::from_millis(*delay));
            pi.prob()
        };
        millis.iter().map(after).collect()
    }

    fn assert_close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 5e-10, "{found}, not {expected}");
        }
    }

    const DELAYS: [u64; 13] = [0, 5, 15, 15, 20, 30, 60, 60, 40, 20, 10, 0, 0];

    #[test]
    fn follows_the_rfc_update_by_update() {
        let expected = [
            0.0, 0.0135, 0.0435, 0.0435, 0.05925, 0.0915, 0.18825, 0.195, 0.13875, 0.0795, 0.04875, 0.0165,
            0.01425,
        ];
        assert_close(&course(PiParams::default(), &DELAYS), &expected);
        assert_close(&course(PiParams::default(), &[200, 400, 400, 400]), &[0.627_75, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn follows_the_weights_of_linux() {
        let expected = [
            0.0,
            0.014_394_531,
            0.046_386_719,
            0.046_386_719,
            0.063_183_594,
            0.097_578_125,
            0.200_761_719,
            0.207_968_750,
            0.147_988_281,
            0.084_804_687,
            0.052_011_719,
            0.017_617_187,
            0.015_214_844,
        ];
        for (found, expected) in course(PiParams::linux(Arithmetic::Real), &DELAYS).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
        }
    }

    #[test]
    fn calculates_in_integers_as_linux() {
        let mut pi = PiController::new(PiParams::linux(Arithmetic::Linux));
        let mut after = |nanos: u64| {
            pi.update(Duration::from_nanos(nanos));
            match pi.prob {
                Prob::Linux(p) => p,
                Prob::Real(_) => unreachable!("it was made so"),
            }
        };
        let delays = [0, 5, 15, 15, 20, 30, 60, 60, 40, 20, 10, 0].map(|millis| millis * 1_000_000);
        let expected = [
            0,
            61_796_875,
            199_140_625,
            199_140_625,
            271_250_000,
            418_906_250,
            861_875_000,
            892_812_500,
            635_312_500,
            364_062_500,
            223_281_250,
            75_625_000,
        ];
        assert_eq!(delays.map(&mut after), expected);
        let mut pi = PiController::new(PiParams::linux(Arithmetic::Linux));
        pi.update(Duration::from_secs(4));
        assert_eq!(pi.prob(), 1.0, "it does not wrap");
        pi.update(Duration::ZERO);
        assert_eq!(pi.prob(), 0.0);
    }

    #[test]
    fn makes_up_for_missed_updates() {
        let arrived = Instant::from_nanos(20_000_000);
        let delay = |at: Instant| at.since(arrived);
        let mut late = PiController::new(PiParams::default());
        late.catch_up(Instant::from_nanos(100_000_000), delay);
        let mut punctual = PiController::new(PiParams::default());
        for nanos in (1..=100).map(|millis| millis * 1_000_000) {
            punctual.catch_up(Instant::from_nanos(nanos), delay);
        }
        assert!(late.prob() > 0.0);
        assert_eq!((late.prob(), late.update_at), (punctual.prob(), punctual.update_at));

        // A queue that was empty for long is as far as one that was asked all the time.
        let mut idle = PiController::new(PiParams::default());
        idle.catch_up(Instant::from_nanos(3_600_000_000_000 + 7), |_| Duration::ZERO);
        assert_eq!(idle.update_at, Instant::from_nanos(3_600_015_000_000));
    }
}
