//! Equations (1) and (2), and the cells that they mark.

use super::equations::{Buffers, Class, SIZES};
use crate::{Cell, Check, Finding, Reproduction, Table};

/// The right side of equation (2) for each receive buffer, bytes.
const BOUNDS: [u32; 8] = [10_582, 12_015, 14_882, 17_750, 20_617, 23_484, 26_351, 27_444];

/// The cells in bold of Tables 15.1 and 15.2, which are the same: those that lock under delayed
/// acknowledgments.
pub(super) const BOLD: [(u32, u32); 19] = [
    (4, 16),
    (4, 24),
    (4, 32),
    (4, 40),
    (4, 48),
    (4, 52),
    (8, 16),
    (8, 24),
    (8, 32),
    (8, 40),
    (8, 48),
    (8, 52),
    (16, 24),
    (16, 32),
    (16, 40),
    (16, 48),
    (16, 52),
    (24, 48),
    (24, 52),
];

pub(super) fn is_bold(buffers: Buffers) -> bool {
    BOLD.contains(&(buffers.send, buffers.receive))
}

pub(super) fn evaluate() -> Reproduction {
    let finding = Finding::new(
        "Equations (1) and (2): which pairs lock",
        "19 pairs, those of equation (2)",
        format!("equation (2) marks {}; 19 of them lock, the others never do", count(Buffers::equation_2)),
        "equations/",
    );
    Reproduction {
        findings: vec![finding],
        tables: vec![marked()],
        checks: checks(),
        ..Reproduction::default()
    }
}

/// A table over both buffers.
pub(super) fn matrix(id: &str, title: &str, cell: impl Fn(Buffers) -> Cell) -> Table {
    let columns = std::iter::once("S\\R [KB]".to_owned()).chain(SIZES.map(|size| size.to_string()));
    let mut table = Table::new(id, title).columns(columns);
    for send in SIZES {
        table.row(send.to_string(), SIZES.map(|receive| cell(Buffers { send, receive })));
    }
    table
}

fn marked() -> Table {
    matrix("equations", "Pairs of buffers that lock: equations and classes", |buffers| {
        let equation = match (buffers.equation_1(), buffers.equation_2()) {
            (true, _) => "1",
            (false, true) => "2",
            (false, false) => return Cell::from("."),
        };
        let class = match buffers.class() {
            None => " never",
            Some(Class::One) => "",
            Some(Class::Two) => " II",
            Some(Class::Three) => " III",
        };
        let bold = if is_bold(buffers) { "*" } else { "" };
        Cell::from(format!("({equation}){class}{bold}"))
    })
    .note(
        "(1) marks pairs of both equations, (2) those of the second one only; `*`: bold in Tables 15.1 and 15.2; \
         II and III: the class of the deadlock, where it is not I; never: one copy of the socket layer brings the threshold.",
    )
}

/// Pairs of which something holds.
pub(super) fn count(of: impl Fn(Buffers) -> bool) -> f64 {
    Buffers::all().filter(|buffers| of(*buffers)).count() as f64
}

fn checks() -> Vec<Check> {
    let mut checks = vec![
        Check::exactly("equations/1", "pairs of equation (1)", count(Buffers::equation_1), 13.0),
        Check::exactly("equations/2", "pairs of equation (2)", count(Buffers::equation_2), 23.0),
        Check::exactly(
            "equations/missed",
            "bold pairs of Tables 15.1 and 15.2 that are not predicted",
            count(|buffers| is_bold(buffers) && !buffers.locks()),
            0.0,
        ),
        Check::exactly(
            "equations/false",
            "predicted pairs that are not bold",
            count(|buffers| buffers.locks() && !is_bold(buffers)),
            0.0,
        ),
        Check::exactly(
            "equations/sufficient",
            "pairs of equation (2) that never lock, because one copy brings the threshold",
            count(|buffers| buffers.equation_2() && !buffers.locks()),
            4.0,
        ),
    ];
    for (receive, bound) in SIZES.into_iter().zip(BOUNDS) {
        let measured = f64::from(Buffers { send: 4, receive }.bound_2_bytes());
        let what = format!("right side of equation (2) at R = {receive} KB, bytes");
        checks.push(Check::exactly(format!("equations/bound-{receive}"), what, measured, f64::from(bound)));
    }
    checks
}
