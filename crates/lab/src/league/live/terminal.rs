//! The tables for a terminal: one for each cell.

use super::super::figures::short;
use super::columns::columns;
use super::evaluation::{LiveEvaluation, who};
use crate::grid::{align, trimmed};
use crate::wrap::wrap;
use comfy_table::{Table, presets};

impl LiveEvaluation {
    /// The tables, what is known, and what is void, for a terminal of a hundred columns.
    #[must_use]
    pub fn to_text(&self) -> String {
        let (runs, void) = self.counts();
        let mut text = wrap(
            &format!(
                "Matrix {} {}; {runs} runs beside Linux {}, {void} of them void. Each number: live / simulated. A cell differs if its \
                 fill is not within 10 % of the simulated one, its share not within 0.1, or the median queueing delay not within 2 ms and 15 %.",
                self.matrix.name,
                self.matrix.hash(),
                self.machine.kernel
            ),
            0,
        );
        text.push('\n');
        for cell in self.cells() {
            let columns = columns(cell);
            let mut table = Table::new();
            table.load_style(presets::NOTHING);
            let titles = columns.iter().map(|column| column.title.to_owned());
            table.set_header([cell.id.clone()].into_iter().chain(titles).chain([String::new()]));
            for sender in &self.senders {
                let numbers =
                    columns.iter().map(|column| column.text(self.both(sender, cell, column.measure)));
                let row = [sender.name.clone()].into_iter().chain(numbers).chain([self.word(sender, cell)]);
                table.add_row(row);
            }
            align(&mut table);
            text += &format!("\n{}\n", trimmed(&table));
        }
        for row in self.known().iter().filter(|row| !row.holds()) {
            let [measured, low, high] = [row.measured, row.low, row.high].map(short);
            text += &format!(
                "\n{} in {}: {} is {measured}, and {low} to {high} is known ({})\n",
                row.control, row.cell, row.what, row.source
            );
        }
        for (cell, sender, seed, why) in self.broken() {
            text += &format!("\n{} in {cell}, seed {seed}: {why}\n", who(sender));
        }
        for (cell, sender, seed, run) in self.void() {
            text += &format!("\nvoid: {} in {cell}, seed {seed}: {}\n", who(sender), run.void.join("; "));
        }
        if self.senders.iter().any(|sender| sender.name == "linux:bbr") {
            text += "\nLinux's bbr is version 1, and its twin, ackline's, is version 3.\n";
        }
        text
    }
}
