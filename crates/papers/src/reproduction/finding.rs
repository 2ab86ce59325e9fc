//! Findings: what became of each published table or figure.

use serde::Serialize;

/// A published table, figure or claim beside what came out. Its verdict follows from checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The published table, figure or claim.
    pub of: String,
    /// What the paper gives.
    pub paper: String,
    /// What came out.
    pub ours: String,
    /// The checks that decide: those whose ids begin with one of these.
    pub checks: Vec<String>,
}

impl Finding {
    /// `of` is judged by the checks whose ids begin with `checks`.
    pub fn new(
        of: impl Into<String>,
        paper: impl Into<String>,
        ours: impl Into<String>,
        checks: impl Into<String>,
    ) -> Self {
        Self { of: of.into(), paper: paper.into(), ours: ours.into(), checks: vec![checks.into()] }
    }

    /// Checks that begin with this decide, too.
    #[must_use]
    pub fn and_checks(mut self, prefix: impl Into<String>) -> Self {
        self.checks.push(prefix.into());
        self
    }

    /// True if the check of this id decides about it.
    #[must_use]
    pub fn rests_on(&self, check: &str) -> bool {
        self.checks.iter().any(|prefix| check.starts_with(prefix.as_str()))
    }
}
