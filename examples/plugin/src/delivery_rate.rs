//! Measures the rate at which the path delivers, and paces at it: the core of BBR's first version
//! (Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016) in one file.
//!
//! ```text
//!   rate    = largest delivery rate of 10 round trips
//!   BDP     = rate * smallest RTT
//!   startup: pace = 2.89 rate, window = 2.89 BDP, until three round trips in a row have not raised
//!            the rate by a quarter
//!   then, a round trip each: pace = 3/4 rate, window = BDP    (lets a queue drain)
//!                            pace = rate,     window = 2 BDP  (six times)
//!                            pace = 5/4 rate, window = 2 BDP  (probes for more)
//! ```
//!
//! Where it fails: a loss is no signal, so in a short buffer, or behind a policer, it takes more
//! than its share and loses a part of it; and it never empties the queue for a new smallest RTT.
//! `bbr` is the control for such paths.

use ackline::core::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, FlowView, Pacing, RateSample, Reaction, Recovery,
    Restart, SendDecision, SsthreshRule, Undo, Validation,
};
use ackline::core::policy::spec::Entry;
use ackline::core::policy::{Metrics, NewCongestionControl};
use ackline::core::{Rate, Window};
use std::sync::Arc;

pub const ENTRY: Entry<NewCongestionControl> = Entry {
    summary: "paces at the largest delivery rate of ten round trips",
    source: "Cardwell et al. 2016",
    ..Entry::new("delivery-rate", |params| {
        params.reject_all("delivery-rate")?;
        Ok(Arc::new(|init: &CcInit| Box::new(DeliveryRate::new(init))))
    })
};

/// Pace in quarters of the rate for each round trip of the cycle.
const CYCLE: [u64; 8] = [3, 4, 4, 4, 4, 4, 4, 5];
/// 2/ln 2 in hundredths: the smallest gain that doubles the rate per round trip.
const STARTUP: u64 = 289;
/// The smallest window in segments.
const LEAST: u64 = 4;

#[derive(Clone, Copy, Debug)]
enum Mode {
    /// The rate to beat by a quarter, and for how many round trips it has not been.
    Startup { to_beat: u64, rounds: u8 },
    /// Index into [`CYCLE`].
    Cycle(usize),
}

/// The state of one connection.
#[derive(Clone, Debug)]
struct DeliveryRate {
    mode: Mode,
    /// The largest delivery rate of each of the last ten round trips, in bytes per second.
    rates: [u64; 10],
    round: usize,
    /// The round trip ends with a sample whose `prior_delivered` has reached this.
    round_ends: u64,
    window: Window,
    ssthresh: Window,
    /// Both as they were when the last episode of congestion began.
    saved: (Window, Window),
}

impl DeliveryRate {
    fn new(init: &CcInit) -> Self {
        let (window, ssthresh) = (init.initial_window, init.ssthresh);
        Self {
            mode: Mode::Startup { to_beat: 0, rounds: 0 },
            rates: [0; 10],
            round: 0,
            round_ends: init.delivered,
            window,
            ssthresh,
            saved: (window, ssthresh),
        }
    }

    /// The estimate in bytes per second; 0 before a sample.
    fn rate(&self) -> u64 {
        self.rates.iter().copied().max().unwrap_or(0)
    }

    fn on_sample(&mut self, view: &FlowView, sample: &RateSample) {
        if sample.prior_delivered >= self.round_ends {
            self.round_ends = view.delivered;
            self.next_mode();
            self.round = (self.round + 1) % self.rates.len();
            self.rates[self.round] = 0;
        }
        // A sample that the application limited counts only if it exceeds the estimate.
        let rate = sample.rate().bytes_per_second();
        if !sample.app_limited || rate > self.rate() {
            let largest = &mut self.rates[self.round];
            *largest = rate.max(*largest);
        }
    }

    /// A round trip has ended.
    fn next_mode(&mut self) {
        let rate = self.rate();
        self.mode = match self.mode {
            Mode::Startup { to_beat, .. } if rate >= to_beat => {
                Mode::Startup { to_beat: rate.saturating_mul(5) / 4, rounds: 0 }
            }
            Mode::Startup { to_beat, rounds } if rounds < 2 => Mode::Startup { to_beat, rounds: rounds + 1 },
            Mode::Startup { .. } => Mode::Cycle(0),
            Mode::Cycle(place) => Mode::Cycle((place + 1) % CYCLE.len()),
        };
    }

    /// The window that the mode asks for, as far as the path is known.
    fn target(&self, view: &FlowView) -> Option<Window> {
        let (rate, rtt) = (self.rate(), view.min_rtt?);
        let bdp = Window::from_bytes(rate).mul_ratio(rtt.as_nanos(), 1_000_000_000);
        let window = match self.mode {
            Mode::Startup { .. } => bdp.mul_ratio(STARTUP, 100),
            Mode::Cycle(0) => bdp,
            Mode::Cycle(_) => bdp.mul_ratio(2, 1),
        };
        (rate > 0).then(|| window.max(Window::from_bytes(LEAST * u64::from(view.smss))))
    }
}

impl CongestionControl for DeliveryRate {
    fn name(&self) -> &'static str {
        "delivery-rate"
    }

    fn decision(&self) -> SendDecision {
        let rate = self.rate();
        let pace = match self.mode {
            _ if rate == 0 => Pacing::WindowOverRtt { gain: 739 },
            Mode::Startup { .. } => at(rate.saturating_mul(STARTUP) / 100),
            Mode::Cycle(place) => at(rate.saturating_mul(CYCLE[place]) / 4),
        };
        let mut decision = SendDecision::window(self.window, self.ssthresh).paced(pace);
        // Packet conservation would make every loss a reduction.
        decision.recovery = Recovery::Own;
        // The pace is a rate that the path has delivered, so the window need not be used to grow.
        decision.validation = Validation::ByPace;
        decision
    }

    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        if let Some(sample) = &ack.rate {
            self.on_sample(view, sample);
        }
        // Grows by the bytes delivered, as in slow start, up to the target.
        let grown = self.window.saturating_add(Window::from_bytes(u64::from(ack.newly_delivered)));
        self.window = grown.min(self.target(view).unwrap_or(grown));
        Reaction::None
    }

    /// A loss changes nothing. After a timeout the window is what the RTO response proposes.
    fn on_congestion(&mut self, _: &FlowView, event: &CongestionEvent) {
        if let CongestionEvent::Timeout { first, window, ssthresh, .. } = *event {
            match ssthresh {
                SsthreshRule::ByCc if first => self.ssthresh = self.ssthresh.min(self.window),
                SsthreshRule::To(value) => self.ssthresh = value,
                SsthreshRule::ByCc | SsthreshRule::Keep => {}
            }
            self.window = self.window.min(window);
        }
    }

    fn on_restart(&mut self, _: &FlowView, restart: &Restart) {
        self.window = self.window.min(restart.window);
    }

    fn checkpoint(&mut self, _: &FlowView) {
        self.saved = (self.window, self.ssthresh);
    }

    fn undo(&mut self, _: &FlowView, undo: &Undo) {
        let (window, ssthresh) = match *undo {
            Undo::All => self.saved,
            Undo::To { window, ssthresh } => (window, ssthresh),
        };
        self.window = self.window.max(window);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    /// What `ackline ss`, `top` and traces show.
    fn metrics(&self, report: &mut Metrics<'_>) {
        report.rate("rate_bit", Rate::from_bytes_per_second(self.rate()));
    }
}

fn at(bytes_per_second: u64) -> Pacing {
    Pacing::AtRate(Rate::from_bytes_per_second(bytes_per_second.max(1)))
}

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use ackline::Registry;
    use ackline::core::policy::cc::{AckSample, CcInit, FlowView, Pacing, RateSample};
    use ackline::core::policy::conformance;
    use ackline::core::{Duration, Instant, Window};

    #[test]
    fn it_keeps_the_rules_of_its_seam() {
        let make = Registry::default().with_cc(ENTRY).cc("delivery-rate").unwrap();
        for seed in 0..50 {
            conformance::congestion_control(&*make, seed);
        }
    }

    /// A path that delivers 1 MB/s at 100 ms: the pace is found, and then goes through the cycle.
    #[test]
    fn it_finds_the_rate_of_a_path() {
        let make = Registry::default().with_cc(ENTRY).cc("delivery-rate").unwrap();
        let mut view = FlowView::new(Instant::ZERO, 1_000);
        view.min_rtt = Some(Duration::from_millis(100));
        let mut cc = make(&CcInit::new(view.now, view.smss, Window::from_bytes(10_000)));
        let mut paces = vec![];
        for _ in 0..20 {
            let prior_delivered = view.delivered;
            view.delivered += 100_000;
            let mut ack = AckSample::new(100_000, 100);
            ack.rate = Some(RateSample::new(100_000, Duration::from_millis(100), prior_delivered));
            cc.on_ack(&view, &ack);
            let decision = cc.decision();
            let Pacing::AtRate(pace) = decision.pacing else { panic!("no rate") };
            paces.push((pace.bytes_per_second() / 1_000, decision.window.bytes() / 1_000));
        }
        let cycle = [
            (750, 100),
            (1000, 200),
            (1000, 200),
            (1000, 200),
            (1000, 200),
            (1000, 200),
            (1000, 200),
            (1250, 200),
        ];
        let begins = paces.iter().position(|&(pace, _)| pace == 750).expect("the startup ends");
        assert!(begins <= 5, "{paces:?}");
        assert_eq!(paces[begins..begins + 8], cycle);
    }
}
