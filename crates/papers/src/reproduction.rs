//! What a study found.

pub(crate) mod check;
pub(crate) mod finding;
pub(crate) mod table;

use ackline_plot::Figure;
use check::Check;
use finding::Finding;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Add;
use table::Table;

/// Findings, tables, checks and figures of a study, in the order in which they are shown.
#[derive(Clone, Debug, Default)]
pub struct Reproduction {
    /// What became of each published table or figure.
    pub findings: Vec<Finding>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Checks.
    pub checks: Vec<Check>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// What a reader must know of this run, a paragraph each.
    pub notes: Vec<String>,
    /// How its live runs compare with the simulated ones.
    pub comparisons: Comparisons,
}

/// Numbers that were compared between live and simulated runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparisons {
    /// All of them.
    pub all: usize,
    /// Those that agree.
    pub agree: usize,
}

impl Comparisons {
    /// At least this share is to agree.
    pub const WANTED: f64 = 0.9;

    /// The share that agrees; not a number if nothing was compared.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.agree as f64 / self.all as f64
    }
}

impl Add for Comparisons {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { all: self.all + other.all, agree: self.agree + other.agree }
    }
}

impl Reproduction {
    /// Appends what another part of the study found. What two parts have in common, such as the
    /// check of runs that both need, is there once.
    pub fn extend(&mut self, other: Self) {
        fn append<T: Debug>(all: &mut Vec<T>, more: Vec<T>, name: fn(&T) -> &str) {
            for one in more {
                // Compared as text, since a number that is none differs from itself.
                let twin = all.iter().find(|other| name(other) == name(&one));
                if twin.is_none_or(|twin| format!("{twin:?}") != format!("{one:?}")) {
                    all.push(one);
                }
            }
        }
        let Self { findings, tables, checks, figures, notes, comparisons } = other;
        append(&mut self.findings, findings, |finding| &finding.of);
        append(&mut self.tables, tables, |table| &table.id);
        append(&mut self.checks, checks, |check| &check.id);
        append(&mut self.figures, figures, Figure::name);
        append(&mut self.notes, notes, |note| note);
        self.comparisons = self.comparisons + comparisons;
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
        let unfounded = self
            .findings
            .iter()
            .find(|finding| !self.checks.iter().any(|check| finding.rests_on(&check.id)))
            .map(|finding| format!("no check decides about the finding {:?}", finding.of));
        twice("checks", self.checks.iter().map(|check| check.id.as_str()).collect())
            .or_else(|| twice("tables", self.tables.iter().map(|table| table.id.as_str()).collect()))
            .or_else(|| twice("figures", self.figures.iter().map(Figure::name).collect()))
            .or_else(|| twice("findings", self.findings.iter().map(|finding| finding.of.as_str()).collect()))
            .or(unfounded)
            .or_else(|| ragged.map(|table| format!("table {:?} has a row of another length", table.id)))
    }
}
