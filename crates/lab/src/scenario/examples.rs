//! The library of scenarios that comes with ackline, each a text to start from.

/// A scenario of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// Its name: that of its file, without the ending.
    pub name: &'static str,
    /// Its text, with comments on what it shows.
    pub text: &'static str,
}

impl Example {
    /// What it is, in one line: its title.
    #[must_use]
    pub fn title(&self) -> &'static str {
        let title = self.text.lines().find_map(|line| line.strip_prefix("title = \""));
        title.map_or("", |title| title.trim_end_matches('"'))
    }
}

macro_rules! examples {
    ($($name:literal,)*) => {
        &[$(Example {
            name: $name,
            text: include_str!(concat!("../../scenarios/", $name, ".toml")),
        },)*]
    };
}

/// All of them, in the order in which they are best read.
pub const EXAMPLES: &[Example] = examples![
    "single-flow",
    "controls",
    "fairness",
    "paced-cubic",
    "rate-based",
    "rtt-unfairness",
    "buffer-sweep",
    "buffer-rtt",
    "aqm",
    "ecn-step",
    "l4s",
    "l4s-controls",
    "l4s-beside",
    "l4s-short",
    "l4s-rtt",
    "l4s-queues",
    "loss-sweep",
    "recovery",
    "asymmetric",
    "five-systems",
    "schedulers",
    "short-flows",
    "ack-shares",
    "requests",
    "flights",
    "unused-window",
    "path-change",
    "stall",
    "handover-crowd",
    "late-packets",
    "worlds",
];

/// The one called `name`.
#[must_use]
pub fn example(name: &str) -> Option<&'static Example> {
    EXAMPLES.iter().find(|example| example.name == name)
}
