//! Checks: a measured number, and the bounds within which it counts as repeated.

use serde::Serialize;

/// One number against its bounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Its name within the study, such as `15.2/delayed/16-24`.
    pub id: String,
    /// What is checked, in words, with the unit.
    pub what: String,
    /// What the paper gives, if it gives a number.
    pub paper: Option<f64>,
    /// The number that is expected; `None` if only bounds are.
    pub expected: Option<f64>,
    /// What was measured; `None` if nothing could be, which fails.
    pub measured: Option<f64>,
    /// The smallest number that passes; `None`: any.
    pub low: Option<f64>,
    /// The largest number that passes; `None`: any.
    pub high: Option<f64>,
    /// Measured, and within the bounds.
    pub ok: bool,
    /// Why its bounds are wider than the paper's own, if they are; such passes are counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widened: Option<String>,
}

impl Check {
    fn new(id: String, what: String, measured: f64, low: Option<f64>, high: Option<f64>) -> Self {
        let ok = measured.is_finite()
            && low.is_none_or(|low| measured >= low)
            && high.is_none_or(|high| measured <= high);
        Self {
            id,
            what,
            paper: None,
            expected: None,
            measured: measured.is_finite().then_some(measured),
            low,
            high,
            ok,
            widened: None,
        }
    }

    /// From `low` to `high`, both of which pass.
    pub fn within(
        id: impl Into<String>,
        what: impl Into<String>,
        measured: f64,
        (low, high): (f64, f64),
    ) -> Self {
        Self::new(id.into(), what.into(), measured, Some(low), Some(high))
    }

    /// `expected`, give or take the share `tolerance` of it (0.1: ten percent).
    pub fn near(
        id: impl Into<String>,
        what: impl Into<String>,
        measured: f64,
        expected: f64,
        tolerance: f64,
    ) -> Self {
        let slack = expected.abs() * tolerance;
        Self {
            expected: Some(expected),
            ..Self::within(id, what, measured, (expected - slack, expected + slack))
        }
    }

    /// `low` or more.
    pub fn at_least(id: impl Into<String>, what: impl Into<String>, measured: f64, low: f64) -> Self {
        Self::new(id.into(), what.into(), measured, Some(low), None)
    }

    /// `high` or less.
    pub fn at_most(id: impl Into<String>, what: impl Into<String>, measured: f64, high: f64) -> Self {
        Self::new(id.into(), what.into(), measured, None, Some(high))
    }

    /// Exactly `expected`: for counts.
    pub fn exactly(id: impl Into<String>, what: impl Into<String>, measured: f64, expected: f64) -> Self {
        Self { expected: Some(expected), ..Self::within(id, what, measured, (expected, expected)) }
    }

    /// With the paper's number beside it.
    #[must_use]
    pub fn paper(self, paper: f64) -> Self {
        Self { paper: Some(paper), ..self }
    }

    /// With the number that is expected.
    #[must_use]
    pub fn expected(self, expected: f64) -> Self {
        Self { expected: Some(expected), ..self }
    }

    /// The bounds are wider than the paper's own, for this reason. A pass counts as one within a
    /// widened bound, so call it only if the paper's own bounds would not have done.
    #[must_use]
    pub fn widened(self, reason: impl Into<String>) -> Self {
        Self { widened: Some(reason.into()), ..self }
    }
}
