//! TCP Vegas (Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global
//! Internet", IEEE JSAC 13(8), 1995): once per round trip the window moves by a segment, so that
//! the flow keeps between alpha and beta segments in the queue.
//!
//! ```text
//!   diff = cwnd (RTT - BaseRTT) / RTT          segments of the flow in the queue
//!   slow start:  doubles every second round trip; ends if diff > gamma
//!   otherwise:   diff < alpha: cwnd += 1;  diff > beta: cwnd -= 1      per round trip
//!   loss:        as Reno
//! ```
//!
//! RTT is the smallest sample of the round trip, as in Linux: a delayed ACK is not a queue.
//!
//! Where it fails: beside flows that fill the queue it gets little. A flow that begins while others
//! keep a queue takes that for the path (BaseRTT), and adds its own to it; if the path becomes
//! longer, BaseRTT is too small for ever, and the window with it.

use crate::round_trip::RoundTrip;
use ackline_tcp_core::Duration;
use ackline_tcp_core::policy::cc::FlowView;
use ackline_tcp_core::policy::spec::{Entry, Key, set_keys};
use ackline_tcp_core::policy::window::{DecreaseCx, GrowthCx, MovedBy, WindowGrowth, Windows};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, Params, SpecError};

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    source: "Brakmo and Peterson 1995",
    ..Entry::growth::<Vegas>("keeps two to four segments in the queue, by the RTT")
};

/// The state of one connection.
#[derive(Clone, Debug)]
struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    round: RoundTrip,
    /// The smallest RTT of all: BaseRTT.
    base_rtt: Option<Duration>,
    /// The smallest one of the round trip under way.
    rtt: Option<Duration>,
    /// Segments in the queue by the last round trip.
    diff: f64,
    /// In slow start: the window stays in this round trip, so that the RTT can be compared.
    stays: bool,
}

impl Default for Vegas {
    fn default() -> Self {
        Self {
            alpha: 2.0,
            beta: 4.0,
            gamma: 1.0,
            round: RoundTrip::default(),
            base_rtt: None,
            rtt: None,
            diff: 0.0,
            stays: false,
        }
    }
}

impl Vegas {
    /// Takes an ACK's RTT. True if it ends a round trip of which `diff` is known.
    fn measure(&mut self, view: &FlowView, rtt: Option<Duration>, w: &Windows) -> bool {
        if let Some(rtt) = rtt.filter(|rtt| !rtt.is_zero()) {
            self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
            self.rtt = Some(self.rtt.map_or(rtt, |least| least.min(rtt)));
        }
        if !self.round.ends(view) {
            return false;
        }
        let (Some(rtt), Some(base)) = (self.rtt.take(), self.base_rtt) else { return false };
        let queued = (rtt - base).as_nanos() as f64 / rtt.as_nanos() as f64;
        self.diff = w.segments() * queued;
        true
    }
}

impl WindowGrowth for Vegas {
    const NAME: &'static str = "vegas";
    const KEYS: &'static [Key<Self>] = &[
        Key::number("alpha", 0.0..=1000.0, "segments in the queue below which the window grows", |it| {
            &mut it.alpha
        }),
        Key::number(
            "beta",
            0.0..=1000.0,
            "segments in the queue above which it shrinks; at least alpha",
            |it| &mut it.beta,
        ),
        Key::number("gamma", 0.0..=1000.0, "segments in the queue that end slow start", |it| &mut it.gamma),
    ];

    fn slow_start(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) -> u32 {
        if self.measure(cx.view, cx.ack.rtt, w) {
            self.stays = !self.stays;
            if self.diff > self.gamma {
                // What the path holds without a queue, and a segment more.
                let smss = f64::from(w.smss());
                let target = w.bytes() - self.diff * smss + smss;
                w.set_bytes(target.max(2.0 * smss).min(w.bytes()));
                w.set_ssthresh(w.cwnd());
                return 0;
            }
        }
        if cx.acked > 0 && !self.stays {
            let most = cx.at_most(2);
            let rest = w.open(f64::from(most));
            return cx.acked - (f64::from(most) - rest) as u32;
        }
        0
    }

    fn increase(&mut self, cx: &GrowthCx<'_>, w: &mut Windows) {
        if !self.measure(cx.view, cx.ack.rtt, w) {
            return;
        }
        let smss = f64::from(w.smss());
        if self.diff < self.alpha {
            w.grow(smss);
        } else if self.diff > self.beta {
            w.set_bytes((w.bytes() - smss).max(2.0 * smss).min(w.bytes()));
            w.set_ssthresh(w.cwnd());
        }
    }

    /// As Reno.
    fn decrease(&mut self, cx: &DecreaseCx<'_>, w: &mut Windows) {
        w.reduce_to(cx.base(w) / 2.0);
    }

    fn moved(&mut self, by: MovedBy, _before: &Windows, _w: &Windows) {
        if matches!(by, MovedBy::Timeout { .. } | MovedBy::Restart) {
            self.round = RoundTrip::default();
            self.rtt = None;
        }
    }

    fn metrics(&self, _w: &Windows, report: &mut Metrics<'_>) {
        if let Some(base_rtt) = self.base_rtt {
            report.micros("base_rtt_us", base_rtt);
        }
        report.number("diff", self.diff);
    }

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        set_keys(Self::NAME, Self::KEYS, self, params)?;
        if self.alpha > self.beta {
            return Err(SpecError::new("vegas: alpha must not be more than beta"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackline_tcp_core::policy::cc::{AckSample, CcInit, CongestionControl};
    use ackline_tcp_core::policy::window::WindowControl;
    use ackline_tcp_core::{Instant, Window};

    const SMSS: u32 = 1_000;

    /// What a window of 20 segments becomes in round trips of 100 ms and so many more, in
    /// congestion avoidance.
    fn after(rtts: &[u64]) -> f64 {
        let mut init = CcInit::new(Instant::ZERO, SMSS, Window::from_bytes(20_000));
        init.ssthresh = Window::from_bytes(20_000);
        let mut flow = WindowControl::new(&init, Vegas::default());
        let mut view = FlowView::new(Instant::ZERO, SMSS);
        for &rtt in rtts {
            view.snd_una = view.snd_nxt + 1;
            view.snd_nxt = view.snd_una + 20_000;
            let mut ack = AckSample::new(SMSS, 1);
            ack.rtt = Some(Duration::from_millis(rtt));
            flow.on_ack(&view, &ack);
        }
        flow.windows().segments()
    }

    /// The first whole round trip shows no queue, and a segment is added. Of 21 segments and 100
    /// ms, 110 ms mean 1.9 segments in the queue, 118 ms 3.2, and 135 ms 5.4.
    #[test]
    fn two_to_four_segments_stay_in_the_queue() {
        assert_eq!(after(&[100, 100, 110]), 22.0, "fewer than alpha: one more");
        assert_eq!(after(&[100, 100, 118]), 21.0, "between alpha and beta: as before");
        assert_eq!(after(&[100, 100, 135]), 20.0, "more than beta: one fewer");
    }
}
