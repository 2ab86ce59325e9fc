//! The checked-in tables are those that the library gives.

use ackline_lab::{RunOptions, Scenario, example, run, table_of};
use std::path::Path;

/// Those that take a second or two; `scenarios/tables --check` does all.
const QUICK: [&str; 3] = ["stall", "requests", "flights"];

#[test]
fn quick_ones_are_the_same() {
    for name in QUICK {
        let example = example(name).unwrap();
        let scenario = Scenario::parse(example.text, &format!("scenarios/{name}.toml")).unwrap();
        let report = run(&scenario, &RunOptions::default()).unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/scenarios/{name}.md"));
        let checked_in = std::fs::read_to_string(&path).unwrap();
        let table = table_of(&scenario, &report.summary);
        assert!(table == checked_in, "{} differs from what {name} gives:\n{table}", path.display());
    }
}

/// No path of `late-packets` loses anything, and none makes its sender repeat one in a hundred of its data packets. Left out are packets
/// that are late by more than a round trip: RFC 8985, section 6.2, bounds the reordering window by one SRTT. `.ci/run` makes the
/// table anew and compares it.
#[test]
fn late_packets_are_hardly_ever_repeated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios/late-packets.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut rows = page.lines().filter_map(|line| {
        let line = line.strip_prefix('|')?.strip_suffix('|')?;
        Some(line.split('|').map(str::trim).collect::<Vec<_>>())
    });
    let heads = rows.next().unwrap();
    let place = |name: &str| heads.iter().position(|head| *head == name).unwrap();
    let (delay, late) = (place("link.path.delay"), place("link.path.impairments.0.by"));
    let shares = [place("bulk retransmits [%]"), place("requests retransmits [%]")];
    let ms = |text: &str| text.strip_suffix("ms").unwrap().parse::<f64>().unwrap();
    let (mut cells, mut high) = (0, vec![]);
    for row in rows.skip(1) {
        let later_than_a_round_trip = ms(row[late]) > 2.0 * ms(row[delay]);
        for share in shares {
            cells += 1;
            if row[share].parse::<f64>().unwrap() >= 1.0 && !later_than_a_round_trip {
                high.push((heads[share], row.clone()));
            }
        }
    }
    assert!(cells >= 96, "RTT, lateness, SACK, bulk and requests: {cells}");
    assert!(high.is_empty(), "{heads:?}: {high:#?}");
}
