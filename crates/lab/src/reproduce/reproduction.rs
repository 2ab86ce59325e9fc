//! What a study found.

use super::check::Check;
use super::table::Table;
use crate::plot::Figure;
use std::collections::BTreeSet;

/// Tables, checks and figures of a study, in the order in which they are shown.
#[derive(Clone, Debug, Default)]
pub struct Reproduction {
    /// Tables.
    pub tables: Vec<Table>,
    /// Checks.
    pub checks: Vec<Check>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// What a reader must know of this run, a paragraph each.
    pub notes: Vec<String>,
}

impl Reproduction {
    /// Checks that passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.checks.iter().filter(|check| check.ok).count()
    }

    /// Checks that failed, without optional ones.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.checks.iter().filter(|check| check.fails()).count()
    }

    /// Checks that failed, and nobody says why.
    #[must_use]
    pub fn unexplained(&self) -> usize {
        self.checks.iter().filter(|check| check.fails() && check.reason.is_none()).count()
    }

    /// Optional checks that were missed.
    #[must_use]
    pub fn missed(&self) -> usize {
        self.checks.iter().filter(|check| !check.ok && check.optional).count()
    }

    /// Appends what another part of the study found.
    pub fn extend(&mut self, other: Self) {
        let Self { tables, checks, figures, notes } = other;
        self.tables.extend(tables);
        self.checks.extend(checks);
        self.figures.extend(figures);
        self.notes.extend(notes);
    }

    /// What is wrong with it: two things of one name, rows of different lengths.
    pub(super) fn fault(&self) -> Option<String> {
        let twice = |what: &str, names: Vec<&str>| {
            let mut seen = BTreeSet::new();
            let name = names.into_iter().find(|name| !seen.insert(*name));
            name.map(|name| format!("two {what} are named {name:?}"))
        };
        let ragged =
            self.tables.iter().find(|table| table.rows.iter().any(|row| row.len() != table.columns.len()));
        twice("checks", self.checks.iter().map(|check| check.id.as_str()).collect())
            .or_else(|| twice("tables", self.tables.iter().map(|table| table.id.as_str()).collect()))
            .or_else(|| twice("figures", self.figures.iter().map(Figure::name).collect()))
            .or_else(|| ragged.map(|table| format!("table {:?} has a row of another length", table.id)))
    }
}
