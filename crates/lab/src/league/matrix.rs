//! A matrix: cells in a fixed order, under a name and a hash.

use super::cell::Cell;
use super::m1;
use ackline_tcp_core::policy::spec::nearest;

/// Cells in a fixed order. Results of different matrices do not belong in one table.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// `M1` or `M1-quick`; `M1-live` or `M1-live-quick` in real time.
    pub name: &'static str,
    /// The cells.
    pub cells: Vec<Cell>,
    hash: String,
}

impl Matrix {
    /// The whole matrix.
    #[must_use]
    pub fn whole() -> Self {
        Self::new("M1", m1::whole())
    }

    /// Short cells with two seeds: minutes for all controls, and no verdicts.
    #[must_use]
    pub fn quick() -> Self {
        Self::new("M1-quick", m1::quick())
    }

    pub(super) fn new(name: &'static str, cells: Vec<Cell>) -> Self {
        let mut texts: Vec<(&str, &str)> =
            cells.iter().map(|cell| (cell.id.as_str(), cell.text.as_str())).collect();
        texts.sort_unstable();
        let text: String = texts.iter().map(|(id, text)| format!("{id}\n{text}\n")).collect();
        let hash = super::hash(text.as_bytes());
        Self { name, cells, hash }
    }

    /// The hash of the scenarios of all cells, in order of name (XXH3, 128 bits); the same for
    /// [some of them](Self::only).
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// True if it gives verdicts.
    #[must_use]
    pub fn judges(&self) -> bool {
        self.name == "M1"
    }

    /// The cell of this name.
    #[must_use]
    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    /// The cells of these names or families, with those that they refer to; all, if there is none.
    ///
    /// # Errors
    /// What a name may have meant.
    pub fn only(mut self, names: &[String]) -> Result<Self, String> {
        if names.is_empty() {
            return Ok(self);
        }
        let mut wanted: Vec<String> = vec![];
        for name in names {
            let found: Vec<&Cell> =
                self.cells.iter().filter(|cell| cell.id == *name || cell.family == name).collect();
            if found.is_empty() {
                let ids = self.cells.iter().map(|cell| cell.id.as_str());
                let near =
                    nearest(name, ids).map_or(String::new(), |near| format!("; did you mean {near:?}?"));
                return Err(format!("{} has no cell {name:?}{near} (--list names them)", self.name));
            }
            for cell in found {
                wanted.push(cell.id.clone());
                wanted.extend(cell.facts.reference.clone());
            }
        }
        self.cells.retain(|cell| wanted.contains(&cell.id));
        Ok(self)
    }
}
