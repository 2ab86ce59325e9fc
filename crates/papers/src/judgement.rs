//! The judgement: checks against their bounds and their pins.

use super::job::Job;
use super::pin::{Extent, Pin};
use super::reproduction::Reproduction;
use super::reproduction::check::Check;
use super::reproduction::finding::Finding;
use super::request::Request;
use std::collections::{BTreeMap, BTreeSet};

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It passed, and its bound had been widened.
    Widened,
    /// It missed where a pin expects it.
    Pinned,
    /// It missed, and no pin says so.
    Failed,
    /// It missed outside of the bounds of its pin.
    Left,
    /// It passed although a pin expects a miss.
    Stale,
}

impl Verdict {
    /// The word for it in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Widened => "widened",
            Self::Pinned => "pinned",
            Self::Failed => "failed",
            Self::Left => "left its pin",
            Self::Stale => "passes now",
        }
    }

    /// True if it fails the command.
    #[must_use]
    pub const fn fails(self) -> bool {
        matches!(self, Self::Failed | Self::Left | Self::Stale)
    }
}

/// How many checks came out in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub checks: usize,
    /// Those that passed: within a widened bound and those whose pin is stale, too.
    pub passed: usize,
    /// Of these, those that passed within a widened bound.
    pub widened: usize,
    /// Misses that are pinned.
    pub pinned: usize,
    /// Misses that are not, or that left their pin's bounds.
    pub failed: usize,
    /// Checks that passed in spite of a pin.
    pub stale: usize,
}

/// The pins that hold for a run, and what is wrong with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// By check.
    pins: BTreeMap<String, Pin>,
    /// Of jobs that are evidence the parts that plan them.
    parts: BTreeMap<String, &'static str>,
    /// Pins that cannot be right: of a check that is not there, without evidence, or around numbers
    /// that pass. Each fails the command.
    pub faults: Vec<String>,
}

impl Judgement {
    /// Those of `pins` that hold for the request, against what it gave. Whether a check and the
    /// evidence of a pin exist is judged if all parts of the study were run.
    pub(super) fn new(
        pins: Vec<Pin>,
        request: &Request,
        jobs: &[Job],
        found: &Reproduction,
        all: bool,
    ) -> Self {
        let Some(extent) = Extent::of(request) else { return Self::default() };
        let mut judgement = Self::default();
        let known: BTreeSet<&str> = found
            .checks
            .iter()
            .map(|check| check.id.as_str())
            .chain(found.tables.iter().map(|table| table.id.as_str()))
            .chain(found.figures.iter().map(|figure| figure.name()))
            .chain(jobs.iter().map(Job::id))
            .collect();
        for pin in pins.into_iter().filter(|pin| pin.holds_for(extent)) {
            let mut fault =
                |message: String| judgement.faults.push(format!("the pin of {:?} {message}", pin.check));
            if all && !known.contains(pin.evidence.as_str()) {
                fault(format!("names {:?}, which is no job, table, figure or check", pin.evidence));
            }
            if let Some(job) = jobs.iter().find(|job| job.id() == pin.evidence) {
                judgement.parts.insert(pin.evidence.clone(), job.part);
            }
            match found.checks.iter().find(|check| check.id == pin.check) {
                Some(check) => {
                    if check.low.is_none_or(|low| pin.high >= low)
                        && check.high.is_none_or(|high| pin.low <= high)
                    {
                        fault(format!(
                            "expects numbers that pass: {} to {}",
                            ackline_lab::short(pin.low),
                            ackline_lab::short(pin.high)
                        ));
                    }
                    judgement.pins.insert(pin.check.clone(), pin);
                }
                // `quick` may leave a check out to which a pin of both refers.
                None if all && (extent == Extent::Whole || pin.extent.is_some()) => {
                    fault("has no check".to_owned());
                }
                None => {}
            }
        }
        judgement
    }

    /// The pin of a check.
    #[must_use]
    pub fn pin(&self, check: &str) -> Option<&Pin> {
        self.pins.get(check)
    }

    /// All of them, in the order of their checks' ids.
    pub fn pins(&self) -> impl Iterator<Item = &Pin> {
        self.pins.values()
    }

    /// The part that plans a job which is evidence of a pin.
    #[must_use]
    pub fn part_of(&self, job: &str) -> Option<&'static str> {
        self.parts.get(job).copied()
    }

    /// What became of a check.
    #[must_use]
    pub fn verdict(&self, check: &Check) -> Verdict {
        match (self.pin(&check.id), check.ok) {
            (Some(_), true) => Verdict::Stale,
            (Some(pin), false) if check.measured.is_some_and(|measured| pin.expects(measured)) => {
                Verdict::Pinned
            }
            (Some(_), false) => Verdict::Left,
            (None, true) if check.widened.is_some() => Verdict::Widened,
            (None, true) => Verdict::Passed,
            (None, false) => Verdict::Failed,
        }
    }

    /// Checks of `found` whose ids are `wanted`, by verdict.
    #[must_use]
    pub fn count(&self, found: &Reproduction, wanted: impl Fn(&str) -> bool) -> Counts {
        let mut counts = Counts::default();
        for check in found.checks.iter().filter(|check| wanted(&check.id)) {
            counts.checks += 1;
            let (place, passed) = match self.verdict(check) {
                Verdict::Passed => (None, true),
                Verdict::Widened => (Some(&mut counts.widened), true),
                Verdict::Stale => (Some(&mut counts.stale), true),
                Verdict::Pinned => (Some(&mut counts.pinned), false),
                Verdict::Failed | Verdict::Left => (Some(&mut counts.failed), false),
            };
            if let Some(place) = place {
                *place += 1;
            }
            counts.passed += usize::from(passed);
        }
        counts
    }
}

impl Finding {
    /// The verdict in words.
    #[must_use]
    pub fn verdict(&self, found: &Reproduction, judgement: &Judgement) -> String {
        let counts = judgement.count(found, |id| self.rests_on(id));
        let Counts { checks, widened, pinned, failed, .. } = counts;
        match (failed, pinned, widened) {
            (0, 0, 0) => "repeated".to_owned(),
            (0, 0, _) => "repeated within the independent model's bounds".to_owned(),
            (0, _, _) if pinned == checks => format!("not repeated: {pinned} of {checks} missed (pinned)"),
            (0, _, _) => format!("repeated but for {pinned} of {checks} (pinned)"),
            _ => format!("not repeated: {failed} of {checks} failed"),
        }
    }
}
