//! What was measured, and what is made of several rounds of it.

use crate::Outcome;
use crate::case::Case;
use crate::machine;
pub(crate) use crate::metric::Metric;
pub(crate) use crate::summary::Summary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of one measurement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Sample(BTreeMap<Metric, f64>);

impl Sample {
    pub(crate) fn set(&mut self, metric: Metric, value: f64) {
        self.0.insert(metric, value);
    }
}

/// What the measurements were made on and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) processors: usize,
    pub(crate) processor: String,
    pub(crate) kernel: String,
    /// The kernel's default one.
    pub(crate) congestion_control: String,
    pub(crate) seconds: f64,
    pub(crate) rounds: u16,
    /// Of the sources that were measured.
    #[serde(default)]
    pub(crate) commit: Option<String>,
}

impl Setting {
    /// What the line below a table says of the machine.
    pub(crate) fn place(&self) -> String {
        machine::place(self.processors, &self.processor, &self.kernel, self.commit.as_deref())
    }
}

/// The results of all rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) setting: Setting,
    /// By the case's name; one sample per round, `None` if the measurement failed.
    cases: BTreeMap<String, Vec<Option<Sample>>>,
}

impl Results {
    pub(crate) fn new(setting: Setting) -> Self {
        Self { setting, cases: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, case: &Case, sample: Option<Sample>) {
        self.cases.entry(case.to_string()).or_default().push(sample);
    }

    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        Ok(serde_json::from_str(text)?)
    }

    pub(crate) fn to_json(&self) -> Outcome<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// `None` if no round has it.
    pub(crate) fn summary(&self, case: &Case, metric: Metric) -> Option<Summary> {
        Summary::of(self.rounds(case, metric).flatten())
    }

    /// Medians compared, and the range of the rounds' own ratios; `None` if one has no result.
    pub(crate) fn ratio(&self, above: &Case, below: &Case, metric: Metric) -> Option<Summary> {
        let pairs = self.rounds(above, metric).zip(self.rounds(below, metric));
        let each = Summary::of(pairs.filter_map(|(above, below)| Some(above? / below?)))?;
        let median = self.summary(above, metric)?.median / self.summary(below, metric)?.median;
        Some(Summary { median, ..each })
    }

    fn rounds(&self, case: &Case, metric: Metric) -> impl Iterator<Item = Option<f64>> {
        let samples = self.cases.get(&case.to_string()).map_or(&[][..], Vec::as_slice);
        samples.iter().map(move |sample| sample.as_ref()?.0.get(&metric).copied())
    }
}
