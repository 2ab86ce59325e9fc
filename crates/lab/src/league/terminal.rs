//! The table for a terminal: a row a criterion, a column a contestant.

use super::evaluation::Evaluation;
use crate::grid::{align, trimmed};
use crate::wrap::{WIDTH, wrap};
use comfy_table::{Table, presets};

impl Evaluation {
    /// The table, what is known, and what did not end as it should, for a terminal of a hundred
    /// columns.
    #[must_use]
    pub fn to_text(&self) -> String {
        let criteria = self.criteria();
        let table = |rows: &[super::Row]| {
            let mut table = Table::new();
            table.load_style(presets::NOTHING);
            let names = rows.iter().map(|row| row.contestant.spec.replace(':', ":\n"));
            table.set_header(std::iter::once(String::new()).chain(names).collect::<Vec<_>>());
            for (place, criterion) in &criteria {
                let unit =
                    if criterion.unit.is_empty() { String::new() } else { format!(" [{}]", criterion.unit) };
                let cells = rows.iter().map(|row| self.summary(&row.outcomes[*place]));
                table.add_row(
                    std::iter::once(format!("{}{unit}", criterion.name)).chain(cells).collect::<Vec<_>>(),
                );
            }
            align(&mut table);
            trimmed(&table)
        };
        let mut text = wrap(
            &format!(
                "Matrix {} {}; {} runs. Each number: the worst cell of its criterion. {}",
                self.matrix.name,
                self.matrix.hash(),
                self.finished.len(),
                if self.matrix.judges() {
                    "+ inside the bar, ! outside, x beyond the second one, ~ undecided, . not asked."
                } else {
                    "Two seeds: signs in brackets say where the mean lies, and are no verdicts."
                }
            ),
            0,
        );
        text.push('\n');
        let fits = |text: &str| text.lines().all(|line| line.chars().count() <= WIDTH);
        let mut rest = self.rows.as_slice();
        while !rest.is_empty() {
            let most = (1..=rest.len()).rev().find(|count| fits(&table(&rest[..*count]))).unwrap_or(1);
            text += &format!("\n{}\n", table(&rest[..most]));
            rest = &rest[most..];
        }
        for row in self.sanity.iter().filter(|row| !row.holds()) {
            let void = if row.voids() { "VOID: " } else { "" };
            text += &format!(
                "\n{void}{} in {}: {} is {}, and {} to {} is known ({})\n",
                row.control,
                row.cell,
                row.what,
                super::figures::short(row.measured),
                super::figures::short(row.low),
                super::figures::short(row.high),
                row.source
            );
        }
        for row in &self.rows {
            for (cell, seed, why) in &row.broken {
                text += &format!("\n{} in {cell}, seed {seed}: {why}\n", row.contestant.spec);
            }
        }
        if self.missing > 0 {
            text += &format!("\n{} runs are missing: repeat the command without --points\n", self.missing);
        }
        text
    }
}
