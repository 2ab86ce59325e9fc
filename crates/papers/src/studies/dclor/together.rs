//! The second reading of Table 2: all its rows on the path at once.

use super::efficiency;
use super::paper::ROWS;
use super::responses::RESPONSES;
use super::runs::{Reading, differences};
use super::times::{all_responses, printed_table, unfinished};
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::table::{Cell, Table};
use crate::request::Request;
use ackline_lab::stats::Estimate;

pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = Reading::Together.jobs_of_all(request, 0)?;
    for place in 0..3 {
        jobs.extend(Reading::Alone.jobs_of_all(request, place)?);
    }
    Ok(jobs)
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    const WORDS: &str = "all rows at once";
    let mut found = Reproduction::default();
    let mut efficiencies = efficiency::table("together/6", WORDS);
    let mut drops =
        Table::new("together/drops", "Packets that the shared buffer drops, in percent of those that come")
            .note("Mean over seeds with its 95 % interval, both directions.")
            .columns(["", "all rows at once", "5 KB alone", "10 KB alone", "100 KB alone"]);
    let mut alone = vec![];
    for (place, row) in ROWS.iter().enumerate() {
        let all = Reading::Together.read_all(request, outputs, place)?;
        found.checks.push(unfinished("together/", place, &all));
        found.tables.push(all_responses("together/", WORDS, place, &all));
        found.tables.push(efficiency::redundancy("together/", WORDS, place, &all));
        let [dclor, eifel, standard, frto, ..] = &all[..] else { continue };
        let columns = [dclor, eifel, standard, frto];
        if let Some(printed) = row.printed {
            let id = format!("together/{}", printed.table);
            found.tables.push(printed_table(&id, WORDS, place, &columns));
            efficiencies.row(format!("{} KB", row.size), efficiency::cells(place, &columns));
            let by_itself = Reading::Alone.read_all(request, outputs, place)?;
            if ROWS[place].size < 100 {
                found.checks.extend(slower(place, &dclor.means(), &by_itself[0].means()));
            }
            alone.push(by_itself);
        }
    }
    let together = Reading::Together.read_all(request, outputs, 0)?;
    for (at, response) in RESPONSES.iter().enumerate() {
        let cells = std::iter::once(&together[at]).chain(alone.iter().map(|row| &row[at]));
        drops.row(response.label, cells.map(|runs| Cell::estimate(&runs.dropped, 2)));
    }
    found.tables.push(efficiencies);
    found.tables.push(drops);
    Ok(found)
}

/// Why this reading is the second one: sharing the buffer costs short files with DCLOR more than
/// the draft's responses differ in.
fn slower(place: usize, together: &[f64], alone: &[f64]) -> Option<Check> {
    let row = &ROWS[place];
    let printed = row.printed?;
    let others = &printed.mean[1..];
    let differ = others.iter().copied().fold(f64::NEG_INFINITY, f64::max) - printed.mean[0];
    let estimate = Estimate::of(&differences(together, alone)).filter(|estimate| estimate.runs >= 10)?;
    Some(Check::at_least(
        format!("together/{}/slower", printed.table),
        format!(
            "{} KB: mean time of dclor with all rows at once less that alone, s; at least what the draft's responses differ in (lower end \
             of the 95 % interval over seeds)",
            row.size
        ),
        estimate.ci?.0,
        differ,
    ))
}
