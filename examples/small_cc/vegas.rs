//! Vegas (L. Brakmo, L. Peterson, "TCP Vegas: end to end congestion avoidance on a global
//! Internet", 1995): keeps a few segments in the queue, which it counts by the round-trip time.
//!
//! ```text
//!   queued = cwnd (1 - base_rtt / rtt)    once per round trip: below 2 segments one more, above 4 one less
//! ```

use ackline::core::policy::NewCongestionControl;
use ackline::core::policy::spec::Entry;
use ackline::core::policy::window::{DecreaseCx, GrowthCx, WindowGrowth, Windows};
use ackline::core::{Duration, SeqNum};

#[derive(Clone, Debug, Default)]
struct Vegas {
    /// Smallest RTT of the round trip, and what ends that when it is acknowledged.
    rtt: Option<Duration>,
    round_end: Option<SeqNum>,
}

impl Vegas {
    /// Segments in the queue, once per round trip.
    fn queued(&mut self, cx: &GrowthCx<'_>, w: &Windows) -> Option<f64> {
        if self.round_end.is_some_and(|end| cx.view.snd_una.lt(end)) {
            return None;
        }
        self.round_end = Some(cx.view.snd_nxt);
        let (rtt, base) = (self.rtt.take()?.as_secs_f64(), cx.view.min_rtt?.as_secs_f64());
        Some(w.segments() * (1.0 - base / rtt))
    }
}

impl WindowGrowth for Vegas {
    const NAME: &'static str = "small-vegas";

    fn observe(&mut self, cx: &GrowthCx<'_>, _w: &Windows) {
        self.rtt = self.rtt.into_iter().chain(cx.ack.rtt).min();
    }

    /// Section 3.3: leaves when a segment waits, well before the queue overflows.
    fn slow_start(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) -> u32 {
        if self.queued(cx, w).is_some_and(|queued| queued > 1.0) {
            w.set_ssthresh(w.cwnd());
            return 0;
        }
        w.open(f64::from(cx.at_most(1))) as u32
    }

    /// Section 3.2.
    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        match self.queued(cx, w) {
            Some(queued) if queued < 2.0 => w.grow(f64::from(w.smss())),
            Some(queued) if queued > 4.0 => w.set_bytes(w.bytes() - f64::from(w.smss())),
            _ => {}
        }
    }

    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        w.reduce_to(0.75 * cx.base(w));
    }
}

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    source: "Brakmo & Peterson 1995",
    ..Entry::growth::<Vegas>("keeps two to four of its segments in the queue")
};
