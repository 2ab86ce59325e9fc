//! What a page says of the exchanges.

use crate::ends::Tcp;
use crate::exchange::{Exchange, Fate, Trial};
use crate::machine;
use crate::rights::Outcome;
use crate::section::Section;
use std::fmt::Write as _;

const NAME: &str = "pairings";

pub(crate) fn sections(fates: &[(Exchange, Fate)], seed: u64) -> Outcome<Vec<Section>> {
    let place = machine::place(
        machine::processors()?,
        &machine::processor()?,
        &machine::kernel()?,
        machine::commit().as_deref(),
    );
    let passed = fates.iter().filter(|(_, fate)| fate.is_ok()).count();
    let mut text = format!("{passed} of {} exchanges, seed {seed}; {place}.\n\n", fates.len());
    for trial in Trial::ALL {
        let of_trial: Vec<_> = fates.iter().filter(|(exchange, _)| exchange.trial == trial).collect();
        if !of_trial.is_empty() {
            let _ = write!(text, "**{}**: {}.\n\n{}\n", trial.name(), trial.what(), table(&of_trial));
        }
    }
    let failed = fates.iter().filter_map(|(exchange, fate)| Some((exchange, fate.as_ref().err()?)));
    for (exchange, why) in failed {
        let _ = writeln!(text, "- `{}`: {why}", exchange.name());
    }
    Ok(vec![Section { name: NAME, title: "Each TCP with each", text }])
}

/// Seconds, by client and server.
fn table(fates: &[&(Exchange, Fate)]) -> String {
    let has = |tcp: &Tcp| fates.iter().any(|(exchange, _)| exchange.has(*tcp));
    let present: Vec<Tcp> = Tcp::ALL.into_iter().filter(has).collect();
    let mut table = "| client, s |".to_owned();
    for server in &present {
        let _ = write!(table, " to {} |", server.name());
    }
    let _ = writeln!(table, "\n|---|{}", "---:|".repeat(present.len()));
    for client in &present {
        let _ = write!(table, "| {} |", client.name());
        for server in &present {
            let fate = fates.iter().find(|(of, _)| of.client == *client && of.server == *server);
            let cell = match fate.map(|(_, fate)| fate) {
                Some(Ok(took)) => format!("{:.1}", took.as_secs_f64()),
                Some(Err(_)) => "failed".to_owned(),
                None => String::new(),
            };
            let _ = write!(table, " {cell} |");
        }
        table.push('\n');
    }
    table
}
