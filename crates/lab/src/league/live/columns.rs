//! What tables show of a cell.

use super::super::cell::Cell;
use super::super::figures::short;
use super::evaluation::Both;

/// A number of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) measure: &'static str,
    pub(super) title: &'static str,
    /// From the measure's unit to the table's.
    factor: f64,
}

impl Column {
    const fn new(measure: &'static str, title: &'static str, factor: f64) -> Self {
        Self { measure, title, factor }
    }

    /// `live / simulated`; a dash where there is none.
    pub(super) fn text(&self, both: Both) -> String {
        let number =
            |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |number| short(number * self.factor));
        format!("{} / {}", number(both.live), number(both.twin))
    }
}

const FILL: Column = Column::new("fill", "fill", 1.0);
const Q95: Column = Column::new("q95", "q95 [ms]", 1.0);

/// The columns of a cell's table: the same in all, and one that is its own.
pub(super) fn columns(cell: &Cell) -> Vec<Column> {
    let mut columns = vec![
        FILL,
        Column::new("share", "own share", 1.0),
        Column::new("q50", "q50 [ms]", 1.0),
        Column::new("loss", "losses [%]", 100.0),
    ];
    columns.push(own(cell));
    columns
}

/// The number that says most of a cell.
pub(super) fn headline(cell: &Cell) -> Column {
    match cell.family {
        "S" if cell.facts.buffer <= 1.0 => FILL,
        "L" => FILL,
        _ => own(cell),
    }
}

fn own(cell: &Cell) -> Column {
    match cell.family {
        "L" => Column::new("again", "sent again [%]", 100.0),
        "E" => Column::new("jain", "Jain's index", 1.0),
        "C" => Column::new("convergence", "convergence [s]", 1.0),
        "H" => Column::new("kept", "victim keeps", 1.0),
        "U" => Column::new("rpc-p50", "request p50 [ms]", 1e3),
        "P" => Column::new("recover", "recovery [s]", 1.0),
        _ => Q95,
    }
}

/// What happens in a cell.
pub(super) fn story(cell: &Cell) -> String {
    let part = |place: usize| cell.id.split('-').nth(place).unwrap_or_default();
    let rate = cell.facts.capacity / super::super::setting::PAYLOAD / 1e6;
    let path =
        format!("{rate:.0} Mbit/s, {:.0} ms, {} BDP of buffer", cell.facts.rtt * 1e3, cell.facts.buffer);
    match cell.family {
        "S" => format!("One flow; {path}."),
        "L" => "One flow; 20 Mbit/s, 100 ms, 1 BDP of buffer, and 1 % of the packets lost at random. The fill is that of what is not lost.".to_owned(),
        "E" => format!("Two flows of the same sender; {path}."),
        "C" => format!("A second flow of the same sender begins after 30 s; {path}."),
        "H" => format!(
            "One flow beside one of Linux's `{}`; {path}. What the victim keeps is of its rate alone.",
            part(1)
        ),
        "U" => format!(
            "Requests of Linux, each with an answer of 1,000 bytes, beside one flow; {path}."
        ),
        "P" => format!("Everything is lost from 40 s to 42 s; one flow, {path}."),
        _ => format!("Two flows of the same sender through CoDel, which drops; {path}."),
    }
}
