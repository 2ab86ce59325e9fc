//! What the draft does not say, filled otherwise: do the orders still come out?

use super::super::error::ReproduceError;
use super::super::job::{Job, Outputs};
use super::super::reproduction::Reproduction;
use super::super::study::Request;
use super::super::table::{Cell, Table};
use super::compare::{Runs, orders, written};
use super::mix::{Shape, scale};
use super::paper::ROWS;
use super::responses::of_the_draft;

/// Seeds of each filling.
const SEEDS: u32 = 2;
const QUICK_SEEDS: u32 = 2;
/// The share of Table 2's volume that is enough to see an order.
const SHARE: f64 = 0.25;

/// A filling.
struct Filling {
    id: String,
    what: String,
    shape: Shape,
    /// Each row of Table 2 by itself, instead of all at once.
    apart: bool,
}

fn fillings(request: &Request) -> Vec<Filling> {
    let mut fillings = vec![];
    for apart in [false, true] {
        for frozen in [true, false] {
            for kilo in [1_024, 1_000] {
                for wait_s in [1, 10] {
                    for window in [3, 2, 10] {
                        // All of them at once; apart only around the defaults.
                        if apart && (kilo != 1_024 || wait_s != 1) {
                            continue;
                        }
                        let mut shape = Shape { kilo, wait_s, ..Shape::draft(scale(request) * SHARE) };
                        shape.sets = vec![
                            format!("conn.initial_window={window}"),
                            format!("node.path.stall_stops_service={frozen}"),
                        ];
                        let together = if apart { "rows apart" } else { "rows together" };
                        let stalls = if frozen { "service stops" } else { "arrivals only" };
                        fillings.push(Filling {
                            id: format!("{apart}-{frozen}-{kilo}-{wait_s}-{window}"),
                            what: format!(
                                "{together}, {stalls}, KB {kilo}, waits to {wait_s} s, IW {window}"
                            ),
                            shape,
                            apart,
                        });
                    }
                }
            }
        }
    }
    fillings
}

fn seeds(request: &Request) -> u32 {
    request.seeds.unwrap_or(if request.quick { QUICK_SEEDS } else { SEEDS }).clamp(1, SEEDS)
}

/// The jobs of a filling: one for all rows, or one for each.
fn shapes(filling: &Filling) -> Vec<(String, Shape)> {
    if !filling.apart {
        return vec![("all".to_owned(), filling.shape.clone())];
    }
    (0..3).map(|row| (ROWS[row].app.to_owned(), Shape { only: Some(row), ..filling.shape.clone() })).collect()
}

pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for filling in fillings(request) {
        for (rows, shape) in shapes(&filling) {
            for response in of_the_draft() {
                for seed in 0..seeds(request) {
                    let id = format!("assumptions/{}/{rows}/{}/{seed}", filling.id, response.id);
                    jobs.push(shape.job(id, response.sets, seed)?);
                }
            }
        }
    }
    Ok(jobs)
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut table = Table::new("assumptions", "The draft's gaps filled otherwise: DCLOR's means, and how many orders come out")
        .note(
            "Orders: those of Tables 3 to 6 that are checked above, in the mean over seeds. Rows apart: each row of Table 2 by itself on \
             the path, instead of all at once.",
        )
        .columns(["filling", "5 KB, s", "10 KB, s", "100 KB, s", "means", "variances", "spectral efficiency", "what does not come out"]);
    for filling in fillings(request) {
        let mut cells = vec![];
        let mut counts = [(0, 0); 3];
        let mut missed = vec![];
        for (place, row) in ROWS[..3].iter().enumerate() {
            let rows = if filling.apart { row.app } else { "all" };
            let mut runs = vec![];
            for response in of_the_draft() {
                let id = |seed| vec![format!("assumptions/{}/{rows}/{}/{seed}", filling.id, response.id)];
                runs.push(Runs::read((0..seeds(request)).map(id), outputs)?);
            }
            let [dclor, eifel, standard, frto] = &runs[..] else { continue };
            cells.push(written(&dclor.means(place), 3));
            for order in orders(place, &[dclor, eifel, standard, frto]) {
                let kind = match order.id.split('/').nth(2) {
                    _ if order.table == "6" => 2,
                    Some("mean") => 0,
                    _ => 1,
                };
                counts[kind].1 += 1;
                if order.holds() {
                    counts[kind].0 += 1;
                } else {
                    missed.push(order.id);
                }
            }
        }
        cells.extend(counts.map(|(held, all)| Cell::from(format!("{held} of {all}"))));
        cells.push(Cell::from(missed.join(", ")));
        table.row(filling.what, cells);
    }
    Ok(Reproduction { tables: vec![table], ..Reproduction::default() })
}
