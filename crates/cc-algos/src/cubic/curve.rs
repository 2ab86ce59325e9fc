//! The two windows of CUBIC as functions of time (RFC 9438, sections 4.2 and 4.3).
//!
//! ```text
//!  W_cubic(t) = C (t - K)^3 + W_max          W_est += alpha * acked / cwnd
//!
//!        │                    ╱  convex: probing
//!  W_max ┼ ─ ─ ─ ──────────── ─ ─
//!        │    ╱  concave: back to where the loss was
//!        ┼───┼───────────┼────────► t
//!            0           K
//! ```
//!
//! Windows are `f64` bytes here, times `f64` seconds; only operations that IEEE 754 rounds exactly
//! and `libm::cbrt` are used, so every machine computes the same.

use super::CubicParams;
use ackline_tcp_core::{Duration, Instant};

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Epoch {
    /// Start of the stage, moved forward by the time in which the window was not used.
    start: Instant,
    /// The last time the curve was evaluated.
    last: Instant,
    /// Seconds until the curve is back at `w_max`.
    k: f64,
    /// Bytes: the plateau.
    w_max: f64,
    /// Bytes: the window that Reno would have.
    w_est: f64,
}

impl Epoch {
    /// A stage that starts with the window `cwnd`. `w_max` is the window before the last reduction;
    /// `None` if there was none or a timeout voided it.
    pub(crate) fn new(now: Instant, cwnd: f64, w_max: Option<f64>, smss: f64, params: &CubicParams) -> Self {
        let (k, w_max) = match w_max {
            // RFC 9438, section 4.2: K = cbrt((W_max - cwnd_epoch) / C), windows in segments.
            Some(w_max) if w_max > cwnd => (libm::cbrt((w_max - cwnd) / smss / params.c), w_max),
            // RFC 9438, sections 4.8 and 4.10: K = 0, and the plateau is the present window.
            _ => (0.0, cwnd),
        };
        Self { start: now, last: now, k, w_max, w_est: cwnd }
    }

    pub(crate) const fn k(&self) -> f64 {
        self.k
    }

    pub(crate) const fn w_max(&self) -> f64 {
        self.w_max
    }

    pub(crate) const fn w_est(&self) -> f64 {
        self.w_est
    }

    /// W_cubic `after` from `now`.
    fn w_cubic(&self, now: Instant, after: Duration, smss: f64, params: &CubicParams) -> f64 {
        let t = (now.since(self.start) + after).as_secs_f64() - self.k;
        self.w_max + params.c * smss * t * t * t
    }

    /// RFC 9438, section 5.8: time in which the application or idleness limited the flow is not
    /// part of t.
    pub(crate) fn skip_to(&mut self, now: Instant) {
        self.start += now.since(self.last);
        self.last = now;
    }

    /// The window after `acked` bytes were acknowledged at `now`. `cwnd_prior` is the window at
    /// which `ssthresh` was last set.
    pub(crate) fn grow(&mut self, step: &Step, params: &CubicParams) -> f64 {
        let Step { now, cwnd, acked, smss, rtt, cwnd_prior } = *step;
        self.last = now;
        let share = if acked < cwnd { acked / cwnd } else { 1.0 };
        // RFC 9438, section 4.3: alpha until W_est reaches the window of the last reduction, then
        // Reno's 1.
        let alpha = if self.w_est < cwnd_prior { params.alpha() } else { 1.0 };
        self.w_est += alpha * smss * share;
        if self.w_cubic(now, Duration::ZERO, smss, params) < self.w_est {
            return cwnd.max(self.w_est);
        }
        // RFC 9438, section 4.2: the target is where the curve is one round trip on, and no more
        // than 1.5 cwnd.
        let target = self.w_cubic(now, rtt, smss, params).clamp(cwnd, 1.5 * cwnd);
        cwnd + (target - cwnd) * share
    }
}

/// The input of [`Epoch::grow`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) now: Instant,
    /// Bytes.
    pub(crate) cwnd: f64,
    /// Bytes.
    pub(crate) acked: f64,
    /// Bytes.
    pub(crate) smss: f64,
    pub(crate) rtt: Duration,
    /// Bytes.
    pub(crate) cwnd_prior: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: f64 = 1000.0;
    const START: Instant = Instant::from_secs(5);

    fn after(seconds: f64) -> Instant {
        START + Duration::from_nanos(libm::round(seconds * 1e9) as u64)
    }

    fn assert_near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-4 * expected.abs().max(1.0), "{value}, expected {expected}");
    }

    #[test]
    fn k_of_the_rfc() {
        // W_max 100 segments, beta 0.7: K = cbrt(100 * 0.3 / 0.4) = cbrt(75).
        let epoch = Epoch::new(START, 70.0 * SMSS, Some(100.0 * SMSS), SMSS, &CubicParams::default());
        assert_near(epoch.k(), 4.217_163_326_5);
        // 10 Gbit/s, 100 ms, 1500 bytes: W_max 83,333 segments, K = cbrt(25,000 / 0.4) = 39.685 s.
        let epoch = Epoch::new(START, 58_333.3 * SMSS, Some(83_333.3 * SMSS), SMSS, &CubicParams::default());
        assert_near(epoch.k(), 39.685_026_3);
    }

    #[test]
    fn the_curve_goes_through_its_three_points() {
        let params = CubicParams::default();
        let epoch = Epoch::new(START, 70.0 * SMSS, Some(100.0 * SMSS), SMSS, &params);
        let at = |t: f64| epoch.w_cubic(after(t), Duration::ZERO, SMSS, &params) / SMSS;
        assert_near(at(0.0), 70.0);
        assert_near(at(epoch.k()), 100.0);
        assert_near(at(2.0 * epoch.k()), 130.0);
        // 0.4 (1 - 4.21716)^3 + 100
        assert_near(at(1.0), 86.680_764);
        // 0.4 (10 - 4.21716)^3 + 100
        assert_near(at(10.0), 177.353_999);
    }

    #[test]
    fn without_a_reduction_the_curve_begins_at_its_plateau() {
        for w_max in [None, Some(50.0 * SMSS)] {
            let epoch = Epoch::new(START, 70.0 * SMSS, w_max, SMSS, &CubicParams::default());
            assert_eq!(epoch.k(), 0.0);
            assert_eq!(epoch.w_max(), 70.0 * SMSS);
        }
    }

    #[test]
    fn the_target_is_at_most_one_and_a_half_windows() {
        let params = CubicParams::default();
        let mut epoch = Epoch::new(START, 10.0 * SMSS, None, SMSS, &params);
        let step = Step {
            now: after(100.0),
            cwnd: 10.0 * SMSS,
            acked: 10.0 * SMSS,
            smss: SMSS,
            rtt: Duration::from_millis(100),
            cwnd_prior: 10.0 * SMSS,
        };
        assert_near(epoch.grow(&step, &params), 15.0 * SMSS);
    }

    #[test]
    fn skipped_time_does_not_move_the_curve() {
        let params = CubicParams::default();
        let mut epoch = Epoch::new(START, 70.0 * SMSS, Some(100.0 * SMSS), SMSS, &params);
        epoch.skip_to(after(1000.0));
        assert_near(epoch.w_cubic(after(1000.0), Duration::ZERO, SMSS, &params), 70.0 * SMSS);
        assert_near(epoch.w_cubic(after(1001.0), Duration::ZERO, SMSS, &params), 86_680.764);
    }
}
