//! Sends at a rate that is known beforehand, and takes no loss for congestion: for a path with
//! reserved capacity and a noisy link in it, as to a satellite. (SCPS-TP, CCSDS 714.0-B-2, has this
//! as open-loop rate control.)
//!
//! It needs the whole trait: a rate of its own for the pacer, and a window that a loss does not
//! shrink.
//!
//! Where it fails: on a path that others share, it takes what it was told to take, whatever becomes
//! of them. Do not use it there.

use ackline::core::policy::cc::{
    AckSample, CcInit, CongestionControl, CongestionEvent, FlowView, Pacing, Reaction, Restart, SendDecision,
    SsthreshRule, Undo,
};
use ackline::core::policy::spec::{Entry, Key, Keyed, ParamRow};
use ackline::core::policy::{NewCongestionControl, Params, SpecError};
use ackline::core::{Rate, Window};
use std::sync::Arc;

pub const ENTRY: Entry<NewCongestionControl> = Entry {
    summary: "paces at a fixed rate; loss is noise (only for reserved capacity)",
    source: "CCSDS 714.0-B-2",
    keys: ParamRow::of::<Settings>,
    ..Entry::new("known-rate", |params| {
        let settings = Settings::from_params("known-rate", params)?;
        Ok(Arc::new(move |init: &CcInit| Box::new(KnownRate::new(init, settings))))
    })
};

#[derive(Clone, Copy, Debug)]
struct Settings {
    rate: Rate,
}

impl Default for Settings {
    fn default() -> Self {
        Self { rate: Rate::from_bits_per_second(1_000_000) }
    }
}

impl Keyed for Settings {
    const KEYS: &'static [Key<Self>] =
        &[Key::rate("rate", "rate at which data leaves", |settings| &mut settings.rate)];
}

/// The state of one connection.
#[derive(Clone, Debug)]
struct KnownRate {
    settings: Settings,
    window: Window,
    ssthresh: Window,
    /// Both as they were when the last episode of congestion began.
    saved: (Window, Window),
}

impl KnownRate {
    fn new(init: &CcInit, settings: Settings) -> Self {
        let (window, ssthresh) = (init.initial_window, init.ssthresh);
        Self { settings, window, ssthresh, saved: (window, ssthresh) }
    }
}

impl CongestionControl for KnownRate {
    fn name(&self) -> &'static str {
        "known-rate"
    }

    /// The pacer spends the rate; the window only bounds what is in flight.
    fn decision(&self) -> SendDecision {
        SendDecision::window(self.window, self.ssthresh).paced(Pacing::AtRate(self.settings.rate))
    }

    /// Grows as in slow start until the window holds what the rate sends in two round trips: one is
    /// under way, and one leaves room for repairs.
    fn on_ack(&mut self, view: &FlowView, ack: &AckSample) -> Reaction {
        let Some(rtt) = view.srtt else { return Reaction::None };
        let per_second = Window::from_bytes(self.settings.rate.bytes_per_second());
        let enough = per_second.mul_ratio(2 * rtt.as_nanos(), 1_000_000_000);
        if self.window < enough && view.may_raise(self.window, self.ssthresh) {
            let grown = self.window.saturating_add(Window::from_bytes(u64::from(ack.acked)));
            self.window = grown.min(enough);
        }
        Reaction::None
    }

    /// A loss changes nothing: the core repairs it, and the pacer keeps the rate. A timeout is
    /// different: nothing comes back, so the window is what the RTO response proposes.
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

    fn configure(&mut self, params: &Params) -> Result<(), SpecError> {
        self.settings.set("known-rate", params)
    }
}

#[cfg(test)]
mod tests {
    use super::ENTRY;
    use ackline::Registry;
    use ackline::core::policy::conformance;

    #[test]
    fn it_keeps_the_rules_of_its_seam() {
        let registry = Registry::default().with_cc(ENTRY);
        for spec in ["known-rate", "known-rate:rate=64kbit", "known-rate:rate=10gbit"] {
            let make = registry.cc(spec).unwrap();
            for seed in 0..50 {
                conformance::congestion_control(&*make, seed);
            }
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let registry = Registry::default().with_cc(ENTRY);
        for wrong in ["rate=0", "rate=fast", "gamma=1"] {
            assert!(registry.cc(&format!("known-rate:{wrong}")).is_err(), "{wrong}");
        }
    }
}
