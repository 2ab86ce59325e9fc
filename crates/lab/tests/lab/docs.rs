//! The examples and the output that pages show.

use ackline_lab::{Scenario, run_one};

#[path = "../../examples/steps.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod steps;

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

/// The lines of [`steps`](steps::steps) that the page shows, block by block, are those that the
/// program prints, in its order.
#[test]
fn the_page_on_one_transfer_shows_what_the_program_prints() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
    let read = |name: &str| std::fs::read_to_string(format!("{docs}{name}")).unwrap();
    let (page, text) = (read("one-transfer.md"), read("one-transfer.toml"));
    assert!(page.contains(&format!("```toml\n{text}```")), "the page lacks docs/one-transfer.toml as it is");
    let printed = steps::steps(&Scenario::parse(&text, "one-transfer.toml").unwrap()).unwrap();
    let mut shown = 0;
    for block in page.split("```text\n").skip(1) {
        let block = block.split("```").next().unwrap_or("");
        let mut rest = printed.lines();
        for line in block.lines() {
            assert!(rest.any(|it| it == line), "this is not printed, or not in this place: {line}");
            shown += 1;
        }
    }
    assert!(shown > 70, "only {shown} lines");
}
