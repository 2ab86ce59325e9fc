//! What the draft does not say, filled otherwise: do the orders still come out?

use super::mix::Shape;
use super::orders::{Kind, Order, orders};
use super::paper::ROWS;
use super::responses::of_the_draft;
use super::runs::{Reading, Runs};
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::reproduction::Reproduction;
use crate::reproduction::table::{Cell, Table};
use crate::request::Request;

/// Seeds of each filling.
const SEEDS: u32 = 5;
/// The share of the volume that is enough to see an order.
const SHARE: f64 = 0.25;

/// A filling.
struct Assumption {
    id: String,
    what: String,
    shape: Shape,
}

fn fillings(request: &Request) -> Vec<Assumption> {
    let mut fillings = vec![];
    for frozen in [true, false] {
        for kilo in [1_024, 1_000] {
            for wait_s in [1, 10] {
                for window in [3, 2, 10] {
                    if request.quick && (kilo != 1_024 || wait_s != 1) {
                        continue;
                    }
                    let mut shape =
                        Shape { kilo, wait_s, ..Shape::draft(Reading::Alone.scale(request) * SHARE) };
                    shape.sets = vec![
                        format!("conn.initial_window={window}"),
                        format!("node.path.stall_stops_service={frozen}"),
                    ];
                    let stalls = if frozen { "service stops" } else { "arrivals only" };
                    fillings.push(Assumption {
                        id: format!("{frozen}-{kilo}-{wait_s}-{window}"),
                        what: format!("{stalls}, KB {kilo}, waits to {wait_s} s, IW {window}"),
                        shape,
                    });
                }
            }
        }
    }
    fillings
}

fn seeds(request: &Request) -> u32 {
    request.seeds.map_or(SEEDS, |seeds| seeds.clamp(1, SEEDS))
}

fn id(filling: &Assumption, place: usize, response: &str, seed: u32) -> String {
    format!("assumptions/{}/{}/{response}/{seed}", filling.id, ROWS[place].app)
}

pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for filling in fillings(request) {
        for place in 0..3 {
            let shape = Shape { only: Some(place), ..filling.shape.clone() };
            for response in of_the_draft() {
                for seed in 0..seeds(request) {
                    jobs.push(shape.job(id(&filling, place, response.id, seed), response.sets, seed)?);
                }
            }
        }
    }
    Ok(jobs)
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut table = Table::new("assumptions", "The draft's gaps filled otherwise, each row of Table 2 alone: DCLOR's means, Eifel's variances, and how many orders come out")
        .note("Mean over seeds with its 95 % interval. Orders: those of Tables 3 to 6 that are checked above, in the mean over seeds.")
        .columns([
            "filling",
            "5 KB, s",
            "10 KB, s",
            "100 KB, s",
            "Eifel, 5 KB, s^2",
            "Eifel, 10 KB, s^2",
            "means",
            "variances",
            "spectral efficiency",
            "what does not come out",
        ]);
    for filling in fillings(request) {
        let (mut means, mut variances) = (vec![], vec![]);
        let mut counts = [(0, 0); 3];
        let mut missed = vec![];
        for place in 0..3 {
            let read = |response: &str| {
                Runs::read(
                    (0..seeds(request)).map(|seed| id(&filling, place, response, seed)),
                    place,
                    outputs,
                )
            };
            let runs =
                of_the_draft().iter().map(|response| read(response.id)).collect::<Result<Vec<_>, _>>()?;
            let [dclor, eifel, standard, frto] = &runs[..] else { continue };
            means.push(Cell::estimate(&dclor.means(), 3));
            if place < 2 {
                variances.push(Cell::estimate(&eifel.variances(), 2));
            }
            for order in orders(place, &[dclor, eifel, standard, frto]) {
                let (held, all) = match order.kind {
                    Kind::Mean => &mut counts[0],
                    Kind::Variance => &mut counts[1],
                    Kind::Efficiency | Kind::EfficiencyBefore => &mut counts[2],
                };
                *all += 1;
                if Order::holds(&order) {
                    *held += 1;
                } else {
                    missed.push(order.id);
                }
            }
        }
        let counts = counts.map(|(held, all): (i32, i32)| Cell::from(format!("{held} of {all}")));
        let cells = means.into_iter().chain(variances).chain(counts);
        table.row(filling.what, cells.chain([Cell::from(missed.join(", "))]));
    }
    Ok(Reproduction { tables: vec![table], ..Reproduction::default() })
}
