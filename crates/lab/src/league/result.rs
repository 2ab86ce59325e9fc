//! An evaluation as one JSON document, and such documents of others.

use super::contestant::Contestant;
use super::criteria::CRITERIA;
use super::evaluation::Evaluation;
use super::judgement::Verdict;
use super::matrix::Matrix;
use super::runs::{Finished, Stand};
use super::sanity::Sanity;
use super::statistics::Interval;
use crate::error::RunError;
use crate::folder::json;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// `league.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeagueResult {
    /// `M1` or `M1-quick`.
    pub matrix: String,
    /// The hash of all its scenarios.
    pub hash: String,
    /// The version of ackline.
    pub version: String,
    /// The hash of the simulator's sources.
    pub engine: String,
    /// Contestants, with their results by criterion.
    pub entries: Vec<Entry>,
    /// The victims alone, by cell and seed.
    pub alone: Vec<Cells>,
    /// What known controls must give.
    pub sanity: Vec<SanityRow>,
}

/// A contestant in a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The contestant.
    pub contestant: Contestant,
    /// By criterion.
    pub criteria: BTreeMap<String, Vec<CellVerdict>>,
    /// All measures.
    pub cells: Vec<Cells>,
}

/// A criterion in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellVerdict {
    /// The cell.
    pub cell: String,
    /// Of the criterion's number; `None` if a run did not end as it should.
    pub interval: Option<Interval>,
    /// One number per seed.
    pub values: Vec<f64>,
    /// `None`: shown without one.
    pub verdict: Option<Verdict>,
}

/// The runs of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cells {
    /// The cell.
    pub cell: String,
    /// By seed.
    pub seeds: BTreeMap<u32, Stand>,
}

/// A row of what is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SanityRow {
    /// The control.
    pub control: String,
    /// The cell.
    pub cell: String,
    /// What is measured.
    pub what: String,
    /// The least that is expected.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// The mean over seeds.
    pub measured: f64,
    /// Whether it is between them.
    pub holds: bool,
}

impl SanityRow {
    pub(super) fn of(row: &Sanity) -> Self {
        Self {
            control: row.control.to_owned(),
            cell: row.cell.to_owned(),
            what: row.what.to_owned(),
            low: row.low,
            high: row.high,
            measured: row.measured,
            holds: row.holds(),
        }
    }
}

impl LeagueResult {
    /// Reads a document of this matrix.
    ///
    /// # Errors
    /// If it is none, or of another matrix.
    pub fn read(path: &Path, matrix: &Matrix) -> Result<Self, RunError> {
        let wrong = |message: String| RunError::Content { path: path.to_owned(), message };
        let text = fs::read_to_string(path).map_err(|error| RunError::file("read", path, error))?;
        let result: Self = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("this is no league.json of ackline evaluate --out: {error}")))?;
        let (name, hash) = (matrix.name, matrix.hash());
        if (result.matrix.as_str(), result.hash.as_str()) != (name, hash) {
            return Err(wrong(format!(
                "it is of the matrix {} {}, and this is {name} {hash}: their results do not belong in one table",
                result.matrix, result.hash
            )));
        }
        Ok(result)
    }

    /// Its runs in cells of `matrix`, those of a contestant under the name that `named` gives it, if
    /// it gives one.
    fn runs(&self, matrix: &Matrix, named: impl Fn(&Contestant) -> Option<String>) -> Finished {
        let alone = self.alone.iter().map(|cells| (String::new(), cells));
        let theirs = self.entries.iter().filter_map(|entry| Some((named(&entry.contestant)?, entry)));
        let theirs =
            theirs.flat_map(|(name, entry)| entry.cells.iter().map(move |cells| (name.clone(), cells)));
        let those = alone.chain(theirs).filter(|(_, cells)| matrix.cell(&cells.cell).is_some());
        let runs = those.flat_map(|(name, cells)| {
            let seeds = cells.seeds.iter();
            seeds.map(move |(seed, stand)| ((cells.cell.clone(), name.clone(), *seed), stand.clone()))
        });
        runs.collect()
    }
}

impl Evaluation {
    /// The evaluation that a document is of, judged again. Nothing is run.
    #[must_use]
    pub fn of_result(matrix: Matrix, result: &LeagueResult) -> Self {
        let finished = result.runs(&matrix, |contestant| Some(contestant.spec.clone()));
        let contestants: Vec<Contestant> =
            result.entries.iter().map(|entry| entry.contestant.clone()).collect();
        let resumed = finished.len();
        Self {
            matrix,
            engine: result.engine.clone(),
            rows: vec![],
            sanity: vec![],
            finished,
            resumed,
            missing: 0,
        }
        .judged(&contestants)
    }

    /// The same with the contestants of another document, as it reports them; `label` stands behind
    /// names that are taken.
    #[must_use]
    pub fn with_overlay(mut self, result: &LeagueResult, label: &str) -> Self {
        let mut contestants: Vec<Contestant> = self.rows.iter().map(|row| row.contestant.clone()).collect();
        let taken: Vec<String> = contestants.iter().map(|contestant| contestant.spec.clone()).collect();
        // Their baselines would be ours again.
        let named = |theirs: &Contestant| {
            let spec = &theirs.spec;
            let numbered = (2..).map(|number| format!("{spec} ({label} {number})"));
            let mut names = [spec.clone(), format!("{spec} ({label})")].into_iter().chain(numbered);
            names.find(|name| !taken.contains(name)).filter(|_| !theirs.is_baseline())
        };
        let theirs = result.entries.iter().map(|entry| &entry.contestant);
        contestants.extend(
            theirs.filter_map(|it| Some(Contestant { spec: named(it)?, is_reported: true, ..it.clone() })),
        );
        for (key, stand) in result.runs(&self.matrix, named) {
            self.finished.entry(key).or_insert(stand);
        }
        self.judged(&contestants)
    }
}

impl Evaluation {
    /// Everything, as data.
    #[must_use]
    pub fn result(&self) -> LeagueResult {
        let cells = |spec: &str| {
            let of = |cell: &super::Cell| {
                let key = |seed| (cell.id.clone(), spec.to_owned(), seed);
                let runs = self.finished.range(key(0)..=key(u32::MAX));
                let seeds: BTreeMap<u32, Stand> =
                    runs.map(|((_, _, seed), stand)| (*seed, stand.clone())).collect();
                (!seeds.is_empty()).then(|| Cells { cell: cell.id.clone(), seeds })
            };
            self.matrix.cells.iter().filter_map(of).collect::<Vec<_>>()
        };
        let entries = self.rows.iter().map(|row| {
            let criteria =
                CRITERIA.iter().zip(&row.outcomes).filter(|(_, outcome)| !outcome.variants.is_empty());
            let criteria = criteria.map(|(criterion, outcome)| {
                let verdicts = outcome.variants.iter().map(|variant| CellVerdict {
                    cell: variant.cell.clone(),
                    interval: variant.interval,
                    values: variant.values.clone(),
                    // Two seeds give no verdict.
                    verdict: variant.verdict.filter(|_| self.matrix.judges()),
                });
                (criterion.name.to_owned(), verdicts.collect())
            });
            Entry {
                contestant: row.contestant.clone(),
                criteria: criteria.collect(),
                cells: cells(&row.contestant.spec),
            }
        });
        let sanity = self.sanity.iter().map(SanityRow::of);
        LeagueResult {
            matrix: self.matrix.name.to_owned(),
            hash: self.matrix.hash().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.engine.clone(),
            entries: entries.collect(),
            alone: cells(""),
            sanity: sanity.collect(),
        }
    }

    /// The document in one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        json(&self.result())
    }
}
