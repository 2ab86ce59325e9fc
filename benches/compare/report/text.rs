//! Tables whose columns are aligned for reading, and numbers of a length that suits them.

use crate::results::Summary;

/// A Markdown table: the first column to the left, all others to the right. Empty without rows.
pub(super) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(header: &[&str]) -> Self {
        Self { header: header.iter().map(|&text| text.to_owned()).collect(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(super) fn render(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let lines = || std::iter::once(&self.header).chain(&self.rows);
        let width =
            |column: usize| lines().map(|cells| cells[column].chars().count()).max().unwrap_or(0).max(3);
        let widths: Vec<_> = (0..self.header.len()).map(width).collect();
        let line = |cells: &Vec<String>| {
            let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
                0 => format!(" {cell:<width$} |"),
                _ => format!(" {cell:>width$} |"),
            });
            format!("|{}\n", padded.collect::<String>())
        };
        let rule = widths.iter().enumerate().map(|(column, &width)| match column {
            0 => format!("{}|", "-".repeat(width + 2)),
            _ => format!("{}:|", "-".repeat(width + 1)),
        });
        let rule = format!("|{}\n", rule.collect::<String>());
        line(&self.header) + &rule + &self.rows.iter().map(line).collect::<String>()
    }
}

/// Three digits that count; whole numbers whole.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => {
            let digits = format!("{value:.0}");
            let mut out = String::new();
            for (at, digit) in digits.chars().enumerate() {
                let left = digits.len() - at;
                if at > 0 && left % 3 == 0 {
                    out.push(',');
                }
                out.push(digit);
            }
            out
        }
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

pub(super) fn median(summary: Option<Summary>) -> String {
    summary.map_or_else(String::new, |summary| number(summary.median))
}

pub(super) fn with_range(summary: Option<Summary>) -> String {
    summary.map_or_else(String::new, |Summary { median, min, max }| {
        format!("{} ({} to {})", number(median), number(min), number(max))
    })
}
