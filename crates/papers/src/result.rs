//! The result of a study: its findings, their judgement, and the files that were written.

use super::data::Origin;
use super::judgement::{Counts, Judgement, Verdict};
use super::reproduction::Reproduction;
use super::request::Request;
use super::study::Study;
use ackline_plot::PlotOptions;
use std::path::PathBuf;

/// A study that was repeated.
pub struct StudyResult {
    /// The study.
    pub study: &'static dyn Study,
    /// What was asked of it.
    pub request: Request,
    /// What it found.
    pub reproduction: Reproduction,
    /// How its checks count.
    pub judgement: Judgement,
    /// Where the outputs of its jobs come from.
    pub origin: Origin,
    /// Entries of the cache that could not be read; their jobs were run.
    pub unreadable: usize,
    /// What a sample of the data's jobs showed, if one was wanted and needed.
    pub sampled: Option<SampleResult>,
    /// How its figures become files.
    pub plot: PlotOptions,
    /// Files that were written.
    pub files: Vec<PathBuf>,
}

impl StudyResult {
    /// How many checks came out in which way.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.judgement.count(&self.reproduction, |_| true)
    }

    /// What fails the command, a line each; with `strict` also misses that are pinned.
    #[must_use]
    pub fn failures(&self, strict: bool) -> Vec<String> {
        let name = self.study.paper().name;
        let checks = self.reproduction.checks.iter().filter_map(|check| {
            let verdict = self.judgement.verdict(check);
            let word = match verdict {
                Verdict::Failed => "failed",
                Verdict::Left => "left the bounds of its pin",
                Verdict::Stale => "passes now: remove its pin",
                Verdict::Pinned if strict => "missed (pinned)",
                _ => return None,
            };
            Some(format!("{name} {} {word}", check.id))
        });
        let differing = self.sampled.iter().flat_map(|sampled| &sampled.differing).map(|job| {
            format!(
                "{name}: the job {job:?} gives something else than its data; make them again with ackline reproduce {name} --refresh"
            )
        });
        let checks = checks.chain(differing);
        checks.chain(self.judgement.faults.iter().map(|fault| format!("{name}: {fault}"))).collect()
    }

    /// True if all parts of the study were run.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.request.parts.len() == self.study.parts().len()
    }
}

/// What became of the sample of a study's data.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleResult {
    /// Jobs that were run anew.
    pub jobs: usize,
    /// Processor time that they took, s.
    pub cpu_s: f64,
    /// Those of them that the data's sample did not name, and which were run as a whole.
    pub unnamed: usize,
    /// Those that give something else, by id.
    pub differing: Vec<String>,
}
