//! A flight of which everything is lost: what asking first costs if there was nothing to ask.

use super::super::responses::Response;
use super::{compared, flow, scenario, timeouts};
use crate::ScenarioText;
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::table::{Cell, Table};
use crate::request::Request;
use ackline_lab::Outcome;
use serde::{Deserialize, Serialize};

const TEXT: ScenarioText = crate::scenario!("dclor/all-lost");
/// A round trip of the empty path and a segment of 1,500 bytes, s.
const ROUND_TRIP: f64 = 0.1 + 8.0 * 1_500.0 / 10e6;
/// When the path is whole again, s.
const WHOLE: f64 = 5.15;

#[derive(Serialize, Deserialize)]
struct Loss {
    /// When the application received something again, s after the loss ended.
    delivered: Option<f64>,
    /// From five seconds later on, bit/s.
    goodput: f64,
    timeouts: u64,
}

fn id(response: &Response) -> String {
    format!("all-lost/{}", response.id)
}

pub(in super::super) fn plan(_: &Request) -> Result<Vec<Job>, ReproduceError> {
    compared()
        .map(|response| {
            let scenario = scenario(TEXT, "conn", response, &[])?;
            Ok(Job::outcome(id(response), "loss", &scenario, 0, 0, |outcome| read(&outcome)))
        })
        .collect()
}

fn read(outcome: &Outcome) -> Loss {
    let bin = outcome.result.bin_s.unwrap_or(1.0);
    let bins = flow(outcome, "bulk").map(|flow| flow.received_bins.as_slice()).unwrap_or_default();
    let ends = |place: usize| (place + 1) as f64 * bin;
    let first = (0..bins.len()).find(|place| ends(*place) > WHOLE + bin && bins[*place] > 0);
    let later = bins.iter().enumerate().filter(|(place, _)| ends(*place) > WHOLE + 5.0);
    let (bytes, count) = later.fold((0, 0), |(bytes, count), (_, bin)| (bytes + bin, count + 1));
    Loss {
        delivered: first.map(|place| ends(place) - WHOLE),
        goodput: bytes as f64 * 8.0 / (f64::from(count.max(1)) * bin),
        timeouts: flow(outcome, "bulk").map_or(0, timeouts),
    }
}

pub(in super::super) fn evaluate(_: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    let mut found = Reproduction::default();
    let mut table = Table::new("all-lost", "Everything under way is lost")
        .note("Delivered: the first new byte at the application, from the loss's end on. Goodput: from five seconds later on.")
        .columns(["", "delivered, ms", "later than go-back-N, round trips", "goodput, Mbit/s", "timeouts"]);
    let mut losses: Vec<(&Response, Loss)> = vec![];
    for response in compared() {
        losses.push((response, outputs.get(&id(response))?));
    }
    let of = |id: &str| losses.iter().find(|(response, _)| response.id == id).map(|(_, loss)| loss);
    let standard = of("go-back-n").and_then(|loss| loss.delivered).unwrap_or(f64::NAN);
    let later = |loss: &Loss| (loss.delivered.unwrap_or(f64::NAN) - standard) / ROUND_TRIP;
    for (response, loss) in &losses {
        table.row(
            response.label,
            [
                Cell::number(loss.delivered.unwrap_or(f64::NAN) * 1e3, 0),
                Cell::number(later(loss), 2),
                Cell::number(loss.goodput / 1e6, 3),
                Cell::number(loss.timeouts as f64, 0),
            ],
        );
    }
    if let (Some(dclor), Some(standard)) = (of("dclor"), of("go-back-n")) {
        found.checks.push(Check::near(
            "all-lost/delay",
            "dclor delivers later than go-back-n by, round trips",
            later(dclor),
            1.0,
            0.1,
        ));
        found.checks.push(Check::near(
            "all-lost/goodput",
            "goodput of dclor over that of go-back-n, from five seconds later on",
            dclor.goodput / standard.goodput,
            1.0,
            0.02,
        ));
    }
    found.tables.push(table);
    Ok(found)
}
