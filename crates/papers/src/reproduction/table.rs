//! Tables: the paper's numbers beside those that were measured.

use ackline_lab::grid::{align, trimmed};
use ackline_lab::stats::Estimate;
use ackline_lab::{WIDTH, wrap};
use comfy_table::{ContentArrangement, Table as Grid, TableStyle, presets};
use serde::Serialize;

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// Its name within the study, by which the page places it.
    pub id: String,
    /// What it shows, with the unit.
    pub title: String,
    /// How to read its cells; empty: nothing is said.
    pub note: String,
    /// Headings; the first one is that of the row labels.
    pub columns: Vec<String>,
    /// Rows, each with as many cells as there are headings.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number with so many digits behind the point.
    Number {
        /// The number.
        value: f64,
        /// Digits behind the point.
        #[serde(skip)]
        digits: usize,
    },
    /// A mean over runs with its 95 % interval: `2.387 [2.371, 2.402]`, beside the paper's number
    /// `2.387 [2.371, 2.402] (2.4) -1 %`.
    Estimate {
        /// The mean; `None`: nothing was measured.
        mean: Option<f64>,
        /// The interval; `None` of one run.
        interval: Option<(f64, f64)>,
        /// What the paper has.
        #[serde(skip_serializing_if = "Option::is_none")]
        paper: Option<f64>,
        /// The bounds that were checked.
        #[serde(skip_serializing_if = "Option::is_none")]
        tolerance: Option<(f64, f64)>,
        /// Digits behind the point.
        #[serde(skip)]
        digits: usize,
    },
    /// A measured number beside the paper's: `21 (20) +5 %`.
    Beside {
        /// What was measured; `None`: nothing.
        measured: Option<f64>,
        /// What the paper has.
        paper: f64,
        /// The bounds that were checked.
        #[serde(skip_serializing_if = "Option::is_none")]
        tolerance: Option<(f64, f64)>,
        /// The paper emphasises this cell; shown as `*`.
        marked: bool,
        /// Digits behind the point.
        #[serde(skip)]
        digits: usize,
    },
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Cell {
    /// A number with so many digits behind the point.
    #[must_use]
    pub const fn number(value: f64, digits: usize) -> Self {
        Self::Number { value, digits }
    }

    /// A measured number beside the paper's, with so many digits behind the point.
    #[must_use]
    pub const fn beside(measured: f64, paper: f64, digits: usize) -> Self {
        Self::Beside { measured: Some(measured), paper, tolerance: None, marked: false, digits }
    }

    /// The mean of one number per run, with its 95 % interval (bootstrap over runs).
    #[must_use]
    pub fn estimate(values: &[f64], digits: usize) -> Self {
        let estimate = Estimate::of(values);
        Self::Estimate {
            mean: estimate.as_ref().map(|estimate| estimate.mean),
            interval: estimate.and_then(|estimate| estimate.ci),
            paper: None,
            tolerance: None,
            digits,
        }
    }

    /// With the paper's number beside the estimate.
    #[must_use]
    pub const fn paper(mut self, number: f64) -> Self {
        if let Self::Estimate { paper, .. } = &mut self {
            *paper = Some(number);
        }
        self
    }

    /// With the bounds that were checked: a cell outside of them is shown with `!`.
    #[must_use]
    pub fn within(mut self, bounds: (f64, f64)) -> Self {
        if let Self::Beside { tolerance, .. } | Self::Estimate { tolerance, .. } = &mut self {
            *tolerance = Some(bounds);
        }
        self
    }

    /// With the paper's emphasis, if `emphasised`.
    #[must_use]
    pub fn marked(mut self, emphasised: bool) -> Self {
        if let Self::Beside { marked, .. } = &mut self {
            *marked = emphasised;
        }
        self
    }

    /// As it stands in a table.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number { value, digits } => format!("{value:.digits$}"),
            Self::Estimate { mean, interval, paper, tolerance, digits } => {
                let Some(mean) = mean else { return absent(*paper, *digits) };
                let interval = interval
                    .map_or(String::new(), |(low, high)| format!(" [{low:.digits$}, {high:.digits$}]"));
                let paper = paper
                    .map_or(String::new(), |paper| format!(" ({paper:.digits$}){}", deviation(*mean, paper)));
                format!("{mean:.digits$}{interval}{paper}{}", miss(*mean, *tolerance))
            }
            Self::Beside { measured, paper, tolerance, marked, digits } => {
                let star = if *marked { "*" } else { "" };
                let Some(measured) = measured else { return absent(Some(*paper), *digits) + star };
                let (deviation, miss) = (deviation(*measured, *paper), miss(*measured, *tolerance));
                format!("{measured:.digits$} ({paper:.digits$}){star}{deviation}{miss}")
            }
        }
    }
}

/// Nothing was measured beside the paper's number.
fn absent(paper: Option<f64>, digits: usize) -> String {
    paper.map_or("-".to_owned(), |paper| format!("- ({paper:.digits$})"))
}

/// ` +5 %`; nothing if the paper has zero.
fn deviation(measured: f64, paper: f64) -> String {
    if paper == 0.0 { String::new() } else { format!(" {:+.0} %", 100.0 * (measured - paper) / paper) }
}

/// ` !` outside of the bounds.
fn miss(measured: f64, tolerance: Option<(f64, f64)>) -> &'static str {
    if tolerance.is_some_and(|(low, high)| !(low..=high).contains(&measured)) { " !" } else { "" }
}

impl Table {
    /// An empty one.
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self { id: id.into(), title: title.into(), ..Self::default() }
    }

    /// With words on how to read it.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// With headings.
    #[must_use]
    pub fn columns<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.columns = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a row: its label and its cells.
    pub fn row(&mut self, label: impl Into<String>, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(std::iter::once(Cell::Text(label.into())).chain(cells).collect());
    }

    /// The columns at `places`, each no wider than `width` lets it be.
    fn grid(&self, style: TableStyle, places: &[usize], width: Option<usize>) -> String {
        let chosen = |cells: Vec<String>| -> Vec<String> {
            places.iter().map(|place| cells.get(*place).cloned().unwrap_or_default()).collect()
        };
        let mut grid = Grid::new();
        grid.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
        if let Some(width) = width {
            let width = u16::try_from(width).unwrap_or(u16::MAX);
            grid.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        grid.set_header(chosen(self.columns.clone()));
        for row in &self.rows {
            grid.add_row(chosen(row.iter().map(Cell::to_text).collect()));
        }
        align(&mut grid);
        trimmed(&grid)
    }

    /// Groups of columns, each of which fits beside the first column.
    fn groups(&self) -> Vec<Vec<usize>> {
        let width_of = |place: usize| {
            let cells =
                self.rows.iter().filter_map(|row| row.get(place)).map(|cell| cell.to_text().chars().count());
            // A space on each side.
            cells.chain(self.columns.get(place).map(|name| name.chars().count())).max().unwrap_or(0) + 2
        };
        let first = width_of(0);
        let (mut groups, mut used) = (vec![vec![0]], first);
        for place in 1..self.columns.len() {
            let width = width_of(place);
            if used + width > WIDTH && groups.last().is_some_and(|group| group.len() > 1) {
                groups.push(vec![0]);
                used = first;
            }
            used += width;
            groups.last_mut().expect("there is at least one group").push(place);
        }
        groups
    }

    /// The table for a terminal. One that is too wide comes in parts, each with the row labels.
    #[must_use]
    pub fn to_text(&self) -> String {
        let note = if self.note.is_empty() { String::new() } else { wrap(&self.note, 0) + "\n" };
        let parts: Vec<String> =
            self.groups().iter().map(|places| self.grid(presets::NOTHING, places, Some(WIDTH))).collect();
        format!("{}\n\n{}\n{note}", wrap(&self.title, 2), parts.join("\n\n"))
    }

    /// The table in Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let note = if self.note.is_empty() { String::new() } else { format!("\n{}\n", self.note) };
        let all: Vec<usize> = (0..self.columns.len()).collect();
        format!("**{}**\n\n{}\n{note}", self.title, self.grid(presets::ASCII_MARKDOWN, &all, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_has_its_interval_and_the_papers_number() {
        let cell = Cell::estimate(&[2.0, 2.0, 2.0], 1);
        assert_eq!(cell.to_text(), "2.0 [2.0, 2.0]");
        assert_eq!(cell.paper(4.0).within((3.0, 5.0)).to_text(), "2.0 [2.0, 2.0] (4.0) -50 % !");
        assert_eq!(Cell::estimate(&[2.0], 0).to_text(), "2");
        assert_eq!(Cell::estimate(&[], 0).paper(4.0).to_text(), "- (4)");
    }

    #[test]
    fn a_wide_table_comes_in_parts_with_its_labels() {
        let mut table = Table::new("t", "Rates").note("How to read it. ".repeat(12));
        table =
            table.columns(std::iter::once("pair".to_owned()).chain((0..12).map(|n| format!("column {n}"))));
        table.row("first", (0..12).map(|n| Cell::beside(f64::from(n), 20.0, 2)));
        let text = table.to_text();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.matches("first").count() > 1 && text.contains("column 11"), "{text}");
        assert_eq!(table.to_markdown().matches("first").count(), 1);

        let mut words = Table::new("t", "Reasons").columns(["id", "reason"]);
        words.row("a", [Cell::from("because ".repeat(30))]);
        assert!(words.to_text().lines().all(|line| line.chars().count() <= WIDTH));
    }
}
