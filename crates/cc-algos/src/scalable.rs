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

use crate::aimd::{Aimd, AimdParams, Avoidance, Growth, HYSTART, MAX_SSTHRESH, RTO};
use ackline_tcp_core::policy::spec::{Entry, Param, ParamInfo};
use ackline_tcp_core::policy::window::{self, Windows};
use ackline_tcp_core::policy::{Metrics, NewCongestionControl, SpecError};

pub(crate) const ENTRY: Entry<NewCongestionControl> = Entry {
    aliases: &["stcp"],
    summary: "grows by a hundredth of each segment acknowledged, gives up an eighth",
    source: "Kelly 2003",
    params: ScalableParams::TABLE,
    ..Entry::new("scalable", |params| {
        let scalable = Scalable::new(ScalableParams::default());
        window::make(Aimd::new(AimdParams::default(), scalable), params)
    })
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
}

impl Default for ScalableParams {
    fn default() -> Self {
        Self { a: 0.01, b: 0.125, lwnd: 16 }
    }
}

impl ScalableParams {
    /// The parameters of `scalable`.
    pub const TABLE: &[ParamInfo] = &[
        ParamInfo {
            name: "a",
            default: "0.01",
            range: "0.001..1",
            summary: "part of a segment added for each one acknowledged",
        },
        ParamInfo {
            name: "b",
            default: "0.125",
            range: "0.01..0.9",
            summary: "part of the window that a loss costs",
        },
        ParamInfo {
            name: "lwnd",
            default: "16",
            range: "1..1000000",
            summary: "segments up to which it is Reno",
        },
        MAX_SSTHRESH,
        HYSTART,
        RTO,
    ];

    fn set(&mut self, param: &Param<'_>) -> Result<Option<()>, SpecError> {
        match param.key() {
            "a" => self.a = param.number(0.001..=1.0)?,
            "b" => self.b = param.number(0.01..=0.9)?,
            "lwnd" => self.lwnd = param.integer(1..=1_000_000)?,
            _ => return Ok(None),
        }
        Ok(Some(()))
    }
}

/// a(w) and b(w) of Scalable TCP.
#[derive(Clone, Debug)]
pub(crate) struct Scalable {
    params: ScalableParams,
}

impl Scalable {
    pub(crate) const fn new(params: ScalableParams) -> Self {
        Self { params }
    }

    /// What a round trip adds to a window of `segments`, in segments.
    fn a(&self, segments: f64) -> f64 {
        if self.is_reno(segments) { 1.0 } else { self.params.a * segments }
    }

    fn is_reno(&self, segments: f64) -> bool {
        segments <= self.params.lwnd as f64
    }
}

impl Growth for Scalable {
    fn name(&self) -> &'static str {
        "scalable"
    }

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

    fn set(&mut self, param: &Param<'_>) -> Result<Option<()>, SpecError> {
        self.params.set(param)
    }

    fn table(&self) -> &'static [ParamInfo] {
        ScalableParams::TABLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aimd::tests::Flow;
    use ackline_tcp_core::policy::conformance;

    fn scalable() -> Scalable {
        Scalable::new(ScalableParams::default())
    }

    #[test]
    fn each_segment_adds_a_hundredth_and_a_loss_costs_an_eighth() {
        let mut flow = Flow::avoiding(800.0, scalable());
        flow.ack(1, None);
        assert!((flow.w() - 800.01).abs() < 1e-9, "{}", flow.w());
        let mut flow = Flow::avoiding(800.0, scalable());
        flow.lose();
        assert!((flow.w() - 700.0).abs() < 1e-6, "{}", flow.w());
    }

    #[test]
    fn a_small_window_is_renos() {
        let mut flow = Flow::avoiding(16.0, scalable());
        flow.ack(1, None);
        assert!((flow.w() - 16.0 - 1.0 / 16.0).abs() < 1e-9, "{}", flow.w());
        let mut flow = Flow::avoiding(16.0, scalable());
        flow.lose();
        assert!((flow.w() - 8.0).abs() < 1e-6, "{}", flow.w());
    }

    /// ln(1 / (1 - 1/8)) / ln(1.01) = 13.4 round trips, whatever the window.
    #[test]
    fn what_a_loss_costs_is_regained_in_as_many_round_trips_at_any_window() {
        for start in [100.0, 1000.0, 10_000.0] {
            let mut flow = Flow::avoiding(start, scalable());
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

    #[test]
    fn the_table_of_parameters_shows_the_defaults() {
        for info in ScalableParams::TABLE {
            let params: ackline_tcp_core::policy::Params =
                std::format!("{}={}", info.name, info.default).parse().unwrap();
            let (mut aimd, mut own) = (AimdParams::default(), ScalableParams::default());
            let param = params.iter().next().unwrap();
            assert!(own.set(&param).unwrap().or(aimd.set(&param).unwrap()).is_some());
            assert_eq!((aimd, own), (AimdParams::default(), ScalableParams::default()), "{}", info.name);
        }
    }
}
