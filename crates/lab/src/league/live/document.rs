//! A live evaluation as one JSON document.

use super::super::matrix::Matrix;
use super::super::result::SanityRow;
use super::super::runs::{Finished, Stand};
use super::agreement::Agreement;
use super::evaluation::LiveEvaluation;
use super::machine::Machine;
use super::runs::{LiveRun, LiveRuns};
use super::sender::Sender;
use crate::error::RunError;
use crate::folder::json;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// `live.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveResult {
    /// `M1-live` or `M1-live-quick`.
    pub matrix: String,
    /// The hash of all its scenarios.
    pub hash: String,
    /// The version of ackline.
    pub version: String,
    /// The hash of the simulator's sources.
    pub engine: String,
    /// Where live runs took place.
    pub machine: Machine,
    /// Who sent, with results by cell.
    pub senders: Vec<SenderResult>,
    /// The victims alone.
    pub alone: Vec<LiveCells>,
    /// What is known of controls.
    pub sanity: Vec<SanityRow>,
}

/// A sender in a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SenderResult {
    /// The sender.
    pub sender: Sender,
    /// Its cells.
    pub cells: Vec<LiveCells>,
}

/// The runs of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveCells {
    /// The cell.
    pub cell: String,
    /// By the real clock, by seed.
    pub live: BTreeMap<u32, LiveRun>,
    /// Simulated, by seed.
    pub twin: BTreeMap<u32, Stand>,
    /// What the rule says.
    pub agreements: Vec<Agreement>,
}

impl LiveResult {
    /// Reads a document of this matrix.
    ///
    /// # Errors
    /// If it is none, or of another matrix.
    pub fn read(path: &Path, matrix: &Matrix) -> Result<Self, RunError> {
        let wrong = |message: String| RunError::Content { path: path.to_owned(), message };
        let text = fs::read_to_string(path).map_err(|error| RunError::file("read", path, error))?;
        let result: Self = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("this is no live.json of ackline evaluate --live: {error}")))?;
        let (name, hash) = (matrix.name, matrix.hash());
        if (result.matrix.as_str(), result.hash.as_str()) != (name, hash) {
            return Err(wrong(format!(
                "it is of the matrix {} {}, and this is {name} {hash}: their results do not belong in one table",
                result.matrix, result.hash
            )));
        }
        Ok(result)
    }
}

impl LiveEvaluation {
    /// The evaluation that a document is of. Nothing is run.
    #[must_use]
    pub fn of_result(mut matrix: Matrix, result: &LiveResult) -> Self {
        let (mut live, mut twins) = (LiveRuns::new(), Finished::new());
        let mut take = |name: &str, twin: Option<&str>, cells: &[LiveCells]| {
            for LiveCells { cell, live: runs, twin: stands, agreements: _ } in cells {
                let key = |name: &str, seed: &u32| (cell.clone(), name.to_owned(), *seed);
                live.extend(runs.iter().map(|(seed, run)| (key(name, seed), run.clone())));
                if let Some(twin) = twin {
                    twins.extend(stands.iter().map(|(seed, stand)| (key(twin, seed), stand.clone())));
                }
            }
        };
        take("", Some(""), &result.alone);
        for SenderResult { sender, cells } in &result.senders {
            take(&sender.name, sender.twin.as_ref().map(|twin| twin.spec.as_str()), cells);
        }
        let ran = |id: &str| live.keys().any(|(cell, ..)| cell == id);
        matrix.cells.retain(|cell| ran(&cell.id));
        Self {
            matrix,
            engine: result.engine.clone(),
            machine: result.machine.clone(),
            senders: result.senders.iter().map(|result| result.sender.clone()).collect(),
            resumed: live.len(),
            live,
            twins,
        }
    }

    /// Everything, as data.
    #[must_use]
    pub fn result(&self) -> LiveResult {
        let cells = |sender: Option<&Sender>| {
            let of = |cell: &super::super::Cell| {
                let live: BTreeMap<u32, LiveRun> =
                    self.runs_of(sender, &cell.id).map(|(seed, run)| (seed, run.clone())).collect();
                let twins = self.twins_of(sender, &cell.id).map(|(seed, stand)| (seed, stand.clone()));
                (!live.is_empty()).then(|| LiveCells {
                    cell: cell.id.clone(),
                    live,
                    twin: twins.collect(),
                    agreements: sender.map_or_else(Vec::new, |sender| self.agreements(sender, cell)),
                })
            };
            self.matrix.cells.iter().filter_map(of).collect::<Vec<_>>()
        };
        let senders = self.senders.iter();
        LiveResult {
            matrix: self.matrix.name.to_owned(),
            hash: self.matrix.hash().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: self.engine.clone(),
            machine: self.machine.clone(),
            senders: senders
                .map(|sender| SenderResult { sender: sender.clone(), cells: cells(Some(sender)) })
                .collect(),
            alone: cells(None),
            sanity: self.known().iter().map(SanityRow::of).collect(),
        }
    }

    /// The document in one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        json(&self.result())
    }
}
