//! TCP Vegas: keeps a few segments of the flow's own in the queue of the bottleneck (Brakmo and Peterson, *TCP Vegas: End to End
//! Congestion Avoidance on a Global Internet*, IEEE JSAC 13(8), 1995, section 4).
//!
//! Once per round trip it estimates how many of its segments wait in the network, diff = cwnd (1 - BaseRTT / RTT). Below `alpha` the
//! window grows by a segment, above `beta` it shrinks by one. It shares a queue badly with controls that fill it, because it
//! yields to them.

use ackline::core::policy::spec::{Entry, ParamInfo};
use ackline::core::policy::window::{self, DecreaseCx, GrowthCx, WindowGrowth, Windows};
use ackline::core::policy::{NewCongestionControl, Params, SpecError};
use ackline::core::{Duration, SeqNum};

pub const ENTRY: Entry<NewCongestionControl> = Entry {
    summary: "keeps from alpha to beta segments in the queue of the bottleneck",
    source: "Brakmo and Peterson 1995",
    params: &[
        ParamInfo { name: "alpha", default: "2", range: "1..100", summary: "fewer segments in the queue: grow" },
        ParamInfo { name: "beta", default: "4", range: "1..100", summary: "more segments in the queue: shrink" },
    ],
    ..Entry::new("vegas", |params| window::make(Vegas::default(), params))
};

#[derive(Clone, Debug)]
struct Vegas {
    alpha: f64,
    beta: f64,
    /// The smallest RTT of the round trip that is under way.
    rtt: Option<Duration>,
    /// The round trip ends when this is acknowledged.
    round_end: Option<SeqNum>,
}

impl Default for Vegas {
    fn default() -> Self {
        Self { alpha: 2.0, beta: 4.0, rtt: None, round_end: None }
    }
}

impl Vegas {
    /// Segments of the flow that wait in the network, once per round trip.
    fn queued(&mut self, cx: &GrowthCx<'_>, w: &Windows) -> Option<f64> {
        self.rtt = [self.rtt, cx.ack.rtt].into_iter().flatten().min();
        if self.round_end.is_some_and(|end| cx.view.snd_una.lt(end)) {
            return None;
        }
        self.round_end = Some(cx.view.snd_nxt);
        let (base, rtt) = (cx.view.min_rtt?.as_secs_f64(), self.rtt.take()?.as_secs_f64());
        Some(w.segments() * (1.0 - base / rtt.max(base)))
    }
}

impl WindowGrowth for Vegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn slow_start(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) -> u32 {
        if self.queued(cx, w).is_some_and(|queued| queued > self.alpha) {
            w.set_ssthresh(w.cwnd());
            return 0;
        }
        let _ = w.open(f64::from(cx.at_most(2)));
        0
    }

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        let segment = f64::from(w.smss());
        match self.queued(cx, w) {
            Some(queued) if queued < self.alpha => w.grow(segment),
            Some(queued) if queued > self.beta => w.set_bytes((w.bytes() - segment).max(2.0 * segment)),
            _ => {}
        }
    }

    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        w.reduce_to(cx.used(w) * 0.75);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        for param in params.iter() {
            match param.key() {
                "alpha" => self.alpha = param.number(1.0..=100.0)?,
                "beta" => self.beta = param.number(1.0..=100.0)?,
                _ => return Err(param.unknown(self.name(), ENTRY.params)),
            }
        }
        if self.alpha > self.beta {
            return Err(SpecError::new(format!("alpha={} is more than beta={}", self.alpha, self.beta)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use ackline::Registry;
    use ackline::core::policy::conformance;

    #[test]
    fn it_keeps_the_rules_of_its_seam() {
        let make = Registry::default().with_cc(ENTRY).cc("vegas:alpha=1,beta=3").unwrap();
        for seed in 0..50 {
            conformance::congestion_control(&*make, seed);
        }
    }

    #[test]
    fn alpha_is_at_most_beta() {
        let error = Registry::default().with_cc(ENTRY).cc("vegas:alpha=5,beta=3").err().unwrap();
        assert_eq!(error.to_string(), "alpha=5 is more than beta=3");
    }
}
