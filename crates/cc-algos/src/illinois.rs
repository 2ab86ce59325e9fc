//! TCP-Illinois (Liu, Basar and Srikant, "TCP-Illinois: a loss- and delay-based congestion control
//! algorithm for high-speed networks", Performance Evaluation 65(6-7), 2008): losses decide when
//! the window shrinks, the queueing delay how fast it grows and how much it gives up.
//!
//! ```text
//!   d_a: mean queueing delay of the round trip, d_m: the largest seen; both above the smallest RTT
//!
//!   alpha  10 ┤────╮                    beta 1/2 ┤         ╭────
//!             │     ╲  k1 / (k2 + d_a)          │       ╱
//!         0.3 ┤       ─────                 1/8 ┤──────╯
//!             └────┴──────┴─ d_a                └──────┴───┴──── d_a
//!               d_m/100   d_m                     d_m/10  8 d_m/10
//! ```
//!
//! alpha is segments per round trip, beta the part of the window that a loss costs. Below 15
//! segments it is Reno. After delays above d_m/100 alpha is ten only if five round trips in a row
//! were below it.
//!
//! Where it fails: two flows of which one never saw an empty queue measure delays from different
//! floors, and grow at different speeds.

use crate::round_trip::RoundTrip;
use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::spec::{Entry, Key};
use ackline_tcp_core::policy::window::{DecreaseCx, GrowthCx, MovedBy, WindowGrowth, Windows};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl};

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    source: "Liu, Basar and Srikant 2008",
    ..Entry::growth::<Illinois>(
        "loss decides when, queueing delay how much: fast on an empty path, gentle on a full one",
    )
};

const ALPHA_MIN: f64 = 0.3;
const BETA_MIN: f64 = 0.125;
const BETA_MAX: f64 = 0.5;
/// d_1: up to this part of d_m alpha is at its most.
const LOW: f64 = 0.01;
/// d_2 and d_3: beta rises between these parts of d_m.
const BETA_FROM: f64 = 0.1;
const BETA_TO: f64 = 0.8;
/// Round trips below d_1 that end a period of caution.
const CALM_ROUNDS: u32 = 5;

/// The state of one connection.
#[derive(Clone, Debug)]
struct Illinois {
    alpha_max: f64,
    win_thresh: f64,
    alpha: f64,
    beta: f64,
    round: RoundTrip,
    base_rtt: Option<Duration>,
    max_rtt: Duration,
    /// Sum and number of the round trip's samples, in nanoseconds.
    sum: f64,
    samples: u32,
    /// alpha has been at its most since the last delay above d_1.
    is_calm: bool,
    calm_rounds: u32,
}

impl Default for Illinois {
    fn default() -> Self {
        Self {
            alpha_max: 10.0,
            win_thresh: 15.0,
            alpha: 1.0,
            beta: BETA_MAX,
            round: RoundTrip::default(),
            base_rtt: None,
            max_rtt: Duration::ZERO,
            sum: 0.0,
            samples: 0,
            is_calm: false,
            calm_rounds: 0,
        }
    }
}

impl Illinois {
    /// A round trip has ended: section 3.2 of the paper.
    fn adapt(&mut self, w: &Windows) {
        let Some(base) = self.base_rtt.filter(|_| self.samples > 0) else { return };
        let base = base.as_nanos() as f64;
        let d_a = self.sum / f64::from(self.samples) - base;
        let d_m = self.max_rtt.as_nanos() as f64 - base;
        (self.sum, self.samples) = (0.0, 0);
        if w.segments() < self.win_thresh {
            (self.alpha, self.beta) = (1.0, BETA_MAX);
            return;
        }
        self.alpha = self.alpha_of(d_a, d_m);
        self.beta = beta_of(d_a, d_m);
    }

    fn alpha_of(&mut self, d_a: f64, d_m: f64) -> f64 {
        let d_1 = LOW * d_m;
        if d_a <= d_1 {
            if self.is_calm {
                return self.alpha_max;
            }
            self.calm_rounds += 1;
            if self.calm_rounds < CALM_ROUNDS {
                return self.alpha;
            }
            self.is_calm = true;
            self.calm_rounds = 0;
            return self.alpha_max;
        }
        self.is_calm = false;
        self.calm_rounds = 0;
        // k1 / (k2 + d_a) goes through (d_1, alpha_max) and (d_m, ALPHA_MIN).
        let k_1 = (d_m - d_1) * ALPHA_MIN * self.alpha_max / (self.alpha_max - ALPHA_MIN);
        let k_2 = (d_m - d_1) * ALPHA_MIN / (self.alpha_max - ALPHA_MIN) - d_1;
        k_1 / (k_2 + d_a)
    }
}

/// The part of the window that a loss costs.
fn beta_of(d_a: f64, d_m: f64) -> f64 {
    let (d_2, d_3) = (BETA_FROM * d_m, BETA_TO * d_m);
    if d_a <= d_2 {
        BETA_MIN
    } else if d_a >= d_3 {
        BETA_MAX
    } else {
        BETA_MIN + (BETA_MAX - BETA_MIN) * (d_a - d_2) / (d_3 - d_2)
    }
}

impl WindowGrowth for Illinois {
    const NAME: &'static str = "illinois";
    const KEYS: &'static [Key<Self>] = &[
        Key::number("alpha_max", 1.0..=100.0, "segments per round trip while there is no queue", |it| {
            &mut it.alpha_max
        }),
        Key::number("win_thresh", 1.0..=1e6, "segments below which it is Reno", |it| &mut it.win_thresh),
    ];

    fn observe(&mut self, cx: &GrowthCx<'_>, w: &Windows) {
        if let Some(rtt) = cx.ack.rtt {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.max_rtt = self.max_rtt.max(rtt);
            self.sum += rtt.as_nanos() as f64;
            self.samples = self.samples.saturating_add(1);
        }
        if self.round.ends(cx.view) {
            self.adapt(w);
        }
    }

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        let acked = f64::from(cx.acked).min(w.bytes());
        w.grow(self.alpha * f64::from(w.smss()) * (acked / w.bytes()));
    }

    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        w.reduce_to(cx.base(w) * (1.0 - self.beta));
    }

    fn moved(&mut self, by: MovedBy, _before: &Windows, _w: &Windows) {
        if matches!(by, MovedBy::Timeout { .. }) {
            (self.alpha, self.beta) = (1.0, BETA_MAX);
            (self.is_calm, self.calm_rounds) = (false, 0);
            (self.sum, self.samples) = (0.0, 0);
        }
    }

    fn metrics(&self, _w: &Windows, report: &mut Metrics<'_>) {
        report.number("alpha", self.alpha);
        report.number("beta", self.beta);
        if let Some(base_rtt) = self.base_rtt {
            report.micros("base_rtt_us", base_rtt);
            report.micros("rtt_max_us", self.max_rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 3.2: the curves go through the corners of the figure above.
    #[test]
    fn the_curves_go_through_their_corners() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        let d_m = 100.0;
        near(beta_of(5.0, d_m), 0.125);
        near(beta_of(45.0, d_m), 0.3125);
        near(beta_of(90.0, d_m), 0.5);
        let mut illinois = Illinois::default();
        near(illinois.alpha_of(d_m, d_m), 0.3);
        near(illinois.alpha_of(1.000_001, d_m), 10.0 / (1.0 + 0.000_001 * 9.7 / (99.0 * 0.3)));
        for _ in 1..CALM_ROUNDS {
            near(illinois.alpha_of(0.0, d_m), illinois.alpha);
        }
        near(illinois.alpha_of(0.0, d_m), 10.0);
    }
}
