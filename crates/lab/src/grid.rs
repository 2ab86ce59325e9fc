//! Tables of text as every table of this project is set.

use comfy_table::{CellAlignment, Table};

/// Aligns numbers, all columns but the first, to the right.
pub fn align(table: &mut Table) {
    let count = table.column_count();
    for place in 1..count {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// As text, without blanks at the ends of lines.
#[must_use]
pub fn trimmed(table: &Table) -> String {
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}
