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
