//! A scenario of the laboratory, in TOML.
//!
//! Any text is read or refused. An error says where: a line and a column that the text has, or the
//! value beside it. Lines `# --set PATH=VALUE`, which results of a sweep begin with, are set. No
//! file is read: a path has a slash, which is replaced.
#![cfg_attr(feature = "link", no_main)]

use ackline_lab::{Location, Scenario, ScenarioError};
use std::cell::RefCell;
use std::path::Path;

thread_local! {
    /// Made once: it takes longer than reading a scenario.
    static REGISTRY: RefCell<Option<ackline::Registry>> = const { RefCell::new(None) };
}

ackline_fuzz::target!(run);

fn run(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    let text = text.replace(['/', '\\'], "-");
    let registry = REGISTRY.with_borrow_mut(|registry| registry.get_or_insert_default().clone());
    let scenario = match Scenario::parse_with(&text, "fuzz.toml", Path::new("no-such-folder"), registry) {
        Ok(scenario) => scenario,
        Err(error) => return check(&error, &text),
    };
    assert!(scenario.points() >= 1 && scenario.runs() >= scenario.points());
    assert_eq!(scenario.params(0).len(), scenario.swept().count());
    let given: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# --set ")).collect();
    match scenario.with_set(&given) {
        Ok(set) => assert_eq!(set.given().len(), given.len()),
        Err(error) => check(&error, &text),
    }
}

fn check(error: &ScenarioError, text: &str) {
    assert!(!error.message.is_empty());
    match &error.place {
        Location::Text { line, column } => {
            // The end of a text that ends with a line's end is on the line after it.
            let mut lines = text.split('\n');
            let found = lines.nth(line.wrapping_sub(1)).unwrap_or_else(|| panic!("{error}"));
            assert!((1..=found.chars().count() + 1).contains(column), "{error}");
        }
        Location::Given(given) => assert!(!given.is_empty(), "{error}"),
        Location::Nowhere => panic!("{error}"),
    }
}
