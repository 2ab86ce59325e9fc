//! H-TCP (Leith and Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004;
//! draft-leith-tcp-htcp-06): the longer ago the last loss, the faster the window grows; a loss
//! costs as much as the queue that it overflowed.
//!
//! ```text
//!   delta: seconds since the last loss
//!   alpha = 1                                                  delta <= 1
//!           1 + 10 (delta - 1) + ((delta - 1) / 2)^2           beyond;      times 2 (1 - beta)
//!   beta  = RTTmin / RTTmax, in 0.5..0.8; 0.5 if the throughput before two losses in a row
//!           differs by more than a fifth
//!   w += alpha / w per segment;   loss: w *= beta
//! ```
//!
//! Where it fails: delta is time, so that flows of short round trips, which see losses sooner, do
//! not gain on others, but a flow that loses at random never leaves the first second.

use ackline_tcp_core::policy::cc::CcInit;
use ackline_tcp_core::policy::spec::{Entry, Key};
use ackline_tcp_core::policy::window::{DecreaseCx, GrowthCx, MovedBy, Signal, WindowGrowth, Windows};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl};
use ackline_tcp_core::{Duration, Instant};

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    aliases: &["h-tcp"],
    source: "draft-leith-tcp-htcp",
    ..Entry::growth::<Htcp>("grows the faster the longer ago the last loss; gives up what the queue held")
};

const BETA_MIN: f64 = 0.5;
const BETA_MAX: f64 = 0.8;
/// Delta_L: as Reno for so long after a loss.
const RENO_SECONDS: f64 = 1.0;
/// The round trip for which scaled growth is that of the formula, in seconds.
const SCALE_RTT: f64 = 0.1;
/// Change of the throughput between two losses from which on beta is not adapted.
const CHANGE: f64 = 0.2;

/// The state of one connection.
#[derive(Clone, Debug)]
struct Htcp {
    adaptive_backoff: bool,
    rtt_scaling: bool,
    beta: f64,
    last_loss: Instant,
    /// RTTs since the last loss.
    min_rtt: Option<Duration>,
    max_rtt: Duration,
    /// Bytes delivered since the last loss.
    delivered: u64,
    /// Bytes per second between the two losses before; zero: none yet.
    throughput: f64,
}

impl Default for Htcp {
    fn default() -> Self {
        Self {
            adaptive_backoff: true,
            rtt_scaling: false,
            beta: BETA_MIN,
            last_loss: Instant::ZERO,
            min_rtt: None,
            max_rtt: Duration::ZERO,
            delivered: 0,
            throughput: 0.0,
        }
    }
}

impl Htcp {
    /// Segments per round trip at `now`.
    fn alpha(&self, now: Instant) -> f64 {
        let delta = now.since(self.last_loss).as_secs_f64() - RENO_SECONDS;
        let fast = if delta > 0.0 { 1.0 + 10.0 * delta + 0.25 * delta * delta } else { 1.0 };
        let scale = match self.min_rtt {
            // At most by ten either way (Linux, `htcp_alpha_update`).
            Some(rtt) if self.rtt_scaling => (rtt.as_secs_f64() / SCALE_RTT).clamp(0.1, 10.0),
            _ => 1.0,
        };
        (2.0 * (1.0 - self.beta) * fast * scale).max(1.0)
    }

    /// A loss: beta for it, by what was seen since the last one.
    fn adapt_beta(&mut self, now: Instant) {
        let seconds = now.since(self.last_loss).as_secs_f64();
        let throughput = if seconds > 0.0 { self.delivered as f64 / seconds } else { 0.0 };
        let before = core::mem::replace(&mut self.throughput, throughput);
        let changed = (throughput - before).abs() > CHANGE * before;
        self.beta = match self.min_rtt {
            Some(min) if self.adaptive_backoff && !changed && !self.max_rtt.is_zero() => {
                let ratio = min.as_nanos() as f64 / self.max_rtt.as_nanos() as f64;
                ratio.clamp(BETA_MIN, BETA_MAX)
            }
            _ => BETA_MIN,
        };
    }
}

impl WindowGrowth for Htcp {
    const NAME: &'static str = "htcp";
    const KEYS: &'static [Key<Self>] = &[
        Key::switch("adaptive_backoff", "beta from the RTTs; off: always 0.5", |it| &mut it.adaptive_backoff),
        Key::switch("rtt_scaling", "growth per second, and not per round trip, in units of 100 ms", |it| {
            &mut it.rtt_scaling
        }),
    ];

    fn start(&mut self, init: &CcInit) {
        self.last_loss = init.now;
    }

    fn observe(&mut self, cx: &GrowthCx<'_>, _w: &Windows) {
        self.delivered += u64::from(cx.ack.newly_delivered);
        if let Some(rtt) = cx.ack.rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.max_rtt = self.max_rtt.max(rtt);
        }
    }

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        let acked = f64::from(cx.acked).min(w.bytes());
        w.grow(self.alpha(cx.view.now) * f64::from(w.smss()) * (acked / w.bytes()));
    }

    /// Time in which the window is not used is no time without a loss.
    fn unused(&mut self, cx: &GrowthCx<'_>, _w: &Windows) {
        self.last_loss = cx.view.now;
        self.delivered = 0;
    }

    fn idle(&mut self, now: Instant) {
        self.last_loss = now;
        self.delivered = 0;
    }

    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        let now = cx.view.now;
        self.adapt_beta(now);
        let left = if cx.signal == Signal::Timeout { BETA_MIN } else { self.beta };
        w.reduce_to(cx.base(w) * left);
        (self.last_loss, self.delivered) = (now, 0);
        self.max_rtt = Duration::ZERO;
    }

    fn moved(&mut self, by: MovedBy, _before: &Windows, _w: &Windows) {
        if matches!(by, MovedBy::Timeout { .. }) {
            self.beta = BETA_MIN;
        }
    }

    fn metrics(&self, _w: &Windows, report: &mut Metrics<'_>) {
        report.number("beta", self.beta);
        if let Some(min_rtt) = self.min_rtt {
            report.micros("rtt_min_us", min_rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_follows_the_time_since_the_last_loss() {
        let htcp = Htcp::default();
        for (millis, alpha) in [(0, 1.0), (1_000, 1.0), (2_000, 11.25), (3_000, 22.0), (11_000, 126.0)] {
            let is = htcp.alpha(Instant::from_millis(millis));
            assert!((is - alpha).abs() < 1e-9, "after {millis} ms: {is}");
        }
    }

    #[test]
    fn a_loss_leaves_what_the_queue_did_not_hold() {
        let loss_at = |seconds, delivered| {
            let mut htcp = Htcp { min_rtt: Some(Duration::from_millis(100)), ..Htcp::default() };
            htcp.throughput = 1e6;
            htcp.max_rtt = Duration::from_millis(160);
            htcp.delivered = delivered;
            htcp.adapt_beta(Instant::from_secs(seconds));
            htcp.beta
        };
        assert!((loss_at(10, 10_000_000) - 0.625).abs() < 1e-9, "100 of 160 ms");
        assert!((loss_at(10, 13_000_000) - 0.5).abs() < 1e-9, "the throughput has changed");
    }
}
