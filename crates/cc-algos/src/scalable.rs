//! Scalable TCP (Kelly, "Scalable TCP: improving performance in highspeed wide area networks", CCR
//! 33(2), 2003): the window grows by a fixed fraction of each segment acknowledged, so the time to
//! recover from a loss does not depend on the window.
//!
//! ```text
//!   w <= 16:   Reno
//!   beyond:    w += 0.01 per segment acknowledged: a(w) = 0.01 w;   a loss costs b = 1/8
//! ```
//!
//! Where it fails: two flows that lose together never converge to equal shares.

use crate::aimd::{Aimd, AimdParams, Avoidance, Control, Growth, hystart, max_ssthresh, rto};
use ackline_tcp_core::policy::spec::{Entry, Key, Keyed, ParamRow};
use ackline_tcp_core::policy::window::Windows;
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, SpecError};

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    aliases: &["stcp"],
    source: "Kelly 2003",
    keys: ParamRow::of::<ScalableParams>,
    ..Entry::growth::<Aimd<Scalable>>("grows by a hundredth of each segment acknowledged, gives up an eighth")
};

/// Scalable TCP's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScalableParams {
    /// Fraction of a segment added for each one acknowledged, 0.001 to 1 (Kelly: 0.01).
    pub a: f64,
    /// Fraction of the window that a loss costs, 0.01 to 0.9 (Kelly: 0.125).
    pub b: f64,
    /// Window in segments up to which it is Reno (Kelly's legacy window: 16).
    pub lwnd: u64,
    pub(crate) window: AimdParams,
}

impl Default for ScalableParams {
    fn default() -> Self {
        Self { a: 0.01, b: 0.125, lwnd: 16, window: AimdParams::default() }
    }
}

impl Keyed for ScalableParams {
    const KEYS: &'static [Key<Self>] = &[
        Key::number("a", 0.001..=1.0, "part of a segment added for each one acknowledged", |it| &mut it.a),
        Key::number("b", 0.01..=0.9, "part of the window that a loss costs", |it| &mut it.b),
        Key::count("lwnd", 1..=1_000_000, "segments up to which it is Reno", |it| &mut it.lwnd),
        max_ssthresh(),
        hystart(),
        rto(),
    ];
}

impl AsRef<AimdParams> for ScalableParams {
    fn as_ref(&self) -> &AimdParams {
        &self.window
    }
}

impl AsMut<AimdParams> for ScalableParams {
    fn as_mut(&mut self) -> &mut AimdParams {
        &mut self.window
    }
}

/// a(w) and b(w) of Scalable TCP.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scalable {
    params: ScalableParams,
}

impl Scalable {
    /// What a round trip adds to a window of `segments`, in segments.
    fn a(&self, segments: f64) -> f64 {
        if self.is_reno(segments) { 1.0 } else { self.params.a * segments }
    }

    fn is_reno(&self, segments: f64) -> bool {
        segments <= self.params.lwnd as f64
    }
}

impl Growth for Scalable {
    fn increase(&mut self, at: &Avoidance) -> f64 {
        self.a(at.segments())
    }

    fn decrease(&self, segments: f64) -> f64 {
        if self.is_reno(segments) { 0.5 } else { self.params.b }
    }

    fn undo(&mut self, _before: &Self) {}

    fn metrics(&self, w: &Windows, report: &mut Metrics<'_>) {
        report.number("a", self.a(w.segments()));
        report.number("b", self.decrease(w.segments()));
    }
}

impl Control for Scalable {
    const NAME: &'static str = "scalable";
    type Params = ScalableParams;

    fn params(&self) -> &ScalableParams {
        &self.params
    }

    fn adopt(&mut self, params: ScalableParams) -> Result<(), SpecError> {
        self.params = params;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aimd::tests::Flow;
    use ackline_tcp_core::policy::conformance;

    #[test]
    fn each_segment_adds_a_hundredth_and_a_loss_costs_an_eighth() {
        let mut flow = Flow::avoiding(800.0, Scalable::default());
        flow.ack(1, None);
        assert!((flow.w() - 800.01).abs() < 1e-9, "{}", flow.w());
        let mut flow = Flow::avoiding(800.0, Scalable::default());
        flow.lose();
        assert!((flow.w() - 700.0).abs() < 1e-6, "{}", flow.w());
    }

    #[test]
    fn a_small_window_is_renos() {
        let mut flow = Flow::avoiding(16.0, Scalable::default());
        flow.ack(1, None);
        assert!((flow.w() - 16.0 - 1.0 / 16.0).abs() < 1e-9, "{}", flow.w());
        let mut flow = Flow::avoiding(16.0, Scalable::default());
        flow.lose();
        assert!((flow.w() - 8.0).abs() < 1e-6, "{}", flow.w());
    }

    /// ln(1 / (1 - 1/8)) / ln(1.01) = 13.4 round trips, whatever the window.
    #[test]
    fn what_a_loss_costs_is_regained_in_as_many_round_trips_at_any_window() {
        for start in [100.0, 1000.0, 10_000.0] {
            let mut flow = Flow::avoiding(start, Scalable::default());
            flow.lose();
            let mut rounds = 0;
            while flow.w() < start {
                for _ in 0..flow.w() as u32 {
                    flow.ack(1, None);
                }
                rounds += 1;
            }
            assert_eq!(rounds, 14, "from {start}");
        }
    }

    #[test]
    fn keeps_the_rules() {
        for spec in ["", "a=1,b=0.9,lwnd=1", "a=0.001,b=0.01,max_ssthresh=off"] {
            let make = (ENTRY.make)(&spec.parse().unwrap()).unwrap();
            for seed in 0..30 {
                conformance::congestion_control(&*make, seed);
            }
        }
    }
}
