//! DCLOR's own settings, each row of Table 2 alone: what each one is worth, and the four
//! combinations of the two that decide.

use super::orders::{Order, orders};
use super::paper::ROWS;
use super::responses::{RESPONSES, Response};
use super::runs::{Reading, Runs, differences};
use crate::error::ReproduceError;
use crate::job::{Job, Outputs};
use crate::reproduction::Reproduction;
use crate::reproduction::check::Check;
use crate::reproduction::table::{Cell, Table};
use crate::request::Request;
use ackline_lab::stats::Estimate;

/// What a repeated probe is, and whether a probe's ACK is an RTT sample: `probe_repeat` and
/// `probe_rtt`. The first one is what [`RESPONSES`] has.
const WORDS: [&str; 4] = ["new, skip", "new, rfc4015", "same, skip", "same, rfc4015"];

/// In the draft's profile, without a limit of undecided timeouts.
const DRAFT: [Response; 4] = [
    RESPONSES[0],
    of_draft("dclor-new-rfc4015", &["conn.rto=dclor:profile=paper,probe_rtt=rfc4015", UNLIMITED]),
    of_draft("dclor-same-skip", &["conn.rto=dclor:profile=paper,probe_repeat=same", UNLIMITED]),
    of_draft(
        "dclor-same-rfc4015",
        &["conn.rto=dclor:profile=paper,probe_repeat=same,probe_rtt=rfc4015", UNLIMITED],
    ),
];

/// Outside of it.
const DEFAULT: [Response; 4] = [
    RESPONSES[4],
    of_draft("default-new-rfc4015", &["conn.rto=dclor:probe_rtt=rfc4015"]),
    of_draft("default-same-skip", &["conn.rto=dclor:probe_repeat=same"]),
    of_draft("default-same-rfc4015", &["conn.rto=dclor:probe_repeat=same,probe_rtt=rfc4015"]),
];

/// Other settings, one changed at a time.
const OTHERS: [(&str, Response); 7] = [
    (
        "conservative about a probe that was a retransmission",
        of_draft("conservative", &["conn.rto=dclor:profile=paper,fallback_clean=conservative", UNLIMITED]),
    ),
    (
        "go-back-N after three probes",
        of_draft("three", &["conn.rto=dclor:profile=paper,max_probes=3", UNLIMITED]),
    ),
    (
        "only after a first SACK block",
        of_draft("seen", &["conn.rto=dclor:profile=paper,require_sack_seen=on", UNLIMITED]),
    ),
    (
        "what was SACKed stays so",
        of_draft("keep", &["conn.rto=dclor:profile=paper,sack_reset_on_rto=off", UNLIMITED]),
    ),
    (
        "stale ACKs open the old window for new data",
        of_draft("revert", &["conn.rto=dclor:profile=paper,stale_policy=revert", UNLIMITED]),
    ),
    (
        "stale ACKs open half of it",
        of_draft("halve", &["conn.rto=dclor:profile=paper,stale_policy=halve", UNLIMITED]),
    ),
    (
        "the window after the probe decays with the silence",
        of_draft("decay", &["conn.rto=dclor:profile=paper,stale_policy=decay", UNLIMITED]),
    ),
];

const UNLIMITED: &str = "conn.max_undecided_rtos=0";

const fn of_draft(id: &'static str, sets: &'static [&'static str]) -> Response {
    Response { id, label: "", sets }
}

/// Rows of Table 2 that are run.
const PLACES: std::ops::Range<usize> = 0..3;

pub(super) fn plan(request: &Request) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = vec![];
    for place in PLACES {
        let responses = RESPONSES[..4].iter().chain(&DRAFT[1..]).chain(&DEFAULT);
        for response in responses.chain(OTHERS.iter().map(|(_, response)| response)) {
            jobs.extend(Reading::Alone.jobs(request, response, place)?);
        }
    }
    Ok(jobs)
}

pub(super) fn evaluate(request: &Request, outputs: &Outputs) -> Result<Reproduction, ReproduceError> {
    // By row of Table 2.
    let read = |response: &Response| {
        PLACES
            .map(|place| Reading::Alone.read(request, outputs, response.id, place))
            .collect::<Result<Vec<Runs>, _>>()
    };
    let draft = DRAFT.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let default = DEFAULT.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let others = RESPONSES[1..4].iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let mut found = Reproduction::default();
    found.tables.push(combinations("combinations", "the draft's profile", &draft, &others));
    found.tables.push(combinations("defaults", "the defaults", &default, &others));
    found.checks.extend(reasons(&draft));
    let mut table = Table::new(
        "settings",
        "DCLOR's other settings, one changed at a time, less the draft's profile over the same stalls",
    )
    .note("Mean over seeds of the differences, with its 95 % interval.")
    .columns(heads("setting", &["mean, s", "variance, s^2", "spectral efficiency"]));
    for (what, response) in &OTHERS {
        let runs = read(response)?;
        let cells = runs.iter().zip(&draft[0]).flat_map(|(runs, literal)| {
            [
                Cell::estimate(&differences(&runs.means(), &literal.means()), 3),
                Cell::estimate(&differences(&runs.variances(), &literal.variances()), 2),
                Cell::estimate(&differences(&runs.efficiencies(), &literal.efficiencies()), 4),
            ]
        });
        table.row(*what, cells);
    }
    found.tables.push(table);
    Ok(found)
}

fn heads(first: &str, each: &[&str]) -> Vec<String> {
    let of_row = |place: usize| each.iter().map(move |head| format!("{} KB: {head}", ROWS[place].size));
    std::iter::once(first.to_owned()).chain(PLACES.flat_map(of_row)).collect()
}

/// The four combinations beside each other: `runs` by combination and row, `others` those of the
/// draft's other responses.
fn combinations(id: &str, words: &str, runs: &[Vec<Runs>], others: &[Vec<Runs>]) -> Table {
    let mut columns = heads(
        "probe_repeat, probe_rtt",
        &["mean, s", "variance, s^2", "spectral efficiency", "redundant, %"],
    );
    columns.push("orders that come out".to_owned());
    let mut table = Table::new(id, format!("What a repeated probe is, and whether its ACK is an RTT sample: {words}"))
        .note(
            "Mean over seeds with its 95 % interval, each row of Table 2 alone. Orders: those of Tables 3 to 6 that are checked above, in the \
             mean over seeds.",
        )
        .columns(columns);
    for (words, rows) in WORDS.iter().zip(runs) {
        let mut cells = vec![];
        let (mut held, mut all) = (0, 0);
        for (place, runs) in rows.iter().enumerate() {
            cells.extend([
                Cell::estimate(&runs.means(), 3),
                Cell::estimate(&runs.variances(), 2),
                Cell::estimate(&runs.efficiencies(), 4),
                Cell::estimate(&runs.redundancies(), 3),
            ]);
            let [eifel, standard, frto] = others else { continue };
            let orders = orders(place, &[runs, &eifel[place], &standard[place], &frto[place]]);
            all += orders.len();
            held += orders.iter().filter(|order| Order::holds(order)).count();
        }
        cells.push(Cell::from(format!("{held} of {all}")));
        table.row(*words, cells);
    }
    table
}

/// What each of the two choices is worth, by the combinations that differ in it alone.
fn reasons(draft: &[Vec<Runs>]) -> Vec<Check> {
    let mut checks = vec![];
    let mut reason = |id: String, what: String, values: &[f64]| {
        let estimate = Estimate::of(values).filter(|estimate| estimate.runs >= 5);
        if let Some((low, _)) = estimate.and_then(|estimate| estimate.ci) {
            let what = format!("{what} (lower end of the 95 % interval over seeds)");
            checks.push(Check::at_least(id, what, low, 0.0));
        }
    };
    let (with, without) = (&draft[1][2], &draft[0][2]);
    if with.downloads() >= 2_000 {
        reason(
            format!("settings/sample/{}", DRAFT[1].id),
            format!("100 KB: variance with {} less that with {}, s^2", WORDS[1], WORDS[0]),
            &differences(&with.variances(), &without.variances()),
        );
    }
    for (new, same) in [(0, 2), (1, 3)] {
        let threefold: Vec<f64> = draft[new][1].efficiencies().iter().map(|value| 3.0 * value).collect();
        reason(
            format!("settings/repeat/{}", DRAFT[same].id),
            format!(
                "10 KB: spectral efficiency with {} less three times that with {}",
                WORDS[same], WORDS[new]
            ),
            &differences(&draft[same][1].efficiencies(), &threefold),
        );
    }
    checks
}
