//! The examples of the page on the scenario file.

use ackline_lab::{Scenario, run_one};

/// The blocks of TOML, each with the line of the page on which it begins.
fn examples(page: &str) -> Vec<(usize, String)> {
    let mut examples: Vec<(usize, String)> = vec![];
    let mut is_inside = false;
    for (number, line) in page.lines().enumerate() {
        match (is_inside, line) {
            (false, "```toml") => {
                examples.push((number + 2, String::new()));
                is_inside = true;
            }
            (true, "```") => is_inside = false,
            (true, line) => {
                let (_, text) = examples.last_mut().unwrap();
                text.push_str(line);
                text.push('\n');
            }
            (false, _) => {}
        }
    }
    examples
}

#[test]
fn every_example_of_the_page_runs_and_carries_data() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario-format.md");
    let page = std::fs::read_to_string(page).unwrap();
    let examples = examples(&page);
    assert!(examples.len() > 15, "{} examples", examples.len());
    for (line, text) in examples {
        let scenario =
            Scenario::parse(&text, "example.toml").unwrap_or_else(|error| panic!("line {line}: {error}"));
        for point in 0..scenario.points() {
            let outcome = run_one(&scenario, point, 0).unwrap_or_else(|error| panic!("line {line}: {error}"));
            for flow in &outcome.result.flows {
                assert!(
                    flow.received_bytes > 1_000,
                    "line {line}, point {point}: {} carries nothing",
                    flow.name
                );
            }
        }
    }
}
