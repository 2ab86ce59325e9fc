//! The table of keys and the reader agree: every key that is read has a row, every row is read, and
//! both mean the same.

use super::super::keys::{Accepts, Default, Key, Kind, SECTIONS, Section};
use crate::Scenario;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// A key that was asked for.
#[derive(Clone, Copy)]
struct Asked {
    heading: &'static str,
    kind: &'static str,
    row: &'static Key,
    is_there: bool,
}

thread_local! {
    /// Keys that were asked for, each with the path of its table.
    static ASKED: RefCell<Vec<(String, Asked)>> = const { RefCell::new(vec![]) };
}

/// Called by the reader for each key that it asks for.
pub(crate) fn note(
    section: &'static Section,
    kind: Option<&'static Kind>,
    row: &'static Key,
    path: &str,
    is_there: bool,
) {
    let kind = kind.map_or("", |kind| kind.name);
    let asked = Asked { heading: section.heading, kind, row, is_there };
    ASKED.with_borrow_mut(|all| all.push((path.to_owned(), asked)));
}

/// Scenarios that have every table and every kind.
fn corpus() -> Vec<String> {
    let with = |node: &str, link: &str, app: &str, rest: &str| {
        format!(
            "duration = \"10s\"\nnode = [{{ name = \"a\" }}, {{ name = \"b\" }}{node}]\n\
             link = [{{ name = \"wire\", between = [\"a\", \"b\"], rate = \"10mbit\"{link} }}]\n\
             app = [{{ name = \"flow\", from = \"a\", to = \"b\", {app} }}]\n{rest}\n"
        )
    };
    let bulk = "kind = \"bulk\"";
    let link = |link: &str| with("", &format!(", {link}"), bulk, "");
    let app = |app: &str| with("", "", app, "");
    let rest = |rest: &str| with("", "", bulk, rest);
    let mut all = vec![
        with(", { name = \"r\", kind = \"router\" }", "", bulk, ""),
        with(
            ", { name = \"s\", kind = \"stis\", route = {}, stalls = [{ probability = 0.1, lasts = \"1s\" }] }",
            "",
            bulk,
            "",
        ),
        rest("pricing = { ack = 40 }"),
        rest("pricing = { overhead = 38 }\nconn = {}\nhost = { mtu = 1400 }"),
        rest("change = [{ at = \"1s\", link = \"wire\", state = \"down\", for = \"1s\" }]\nmeasure = {}"),
        rest("case = [{ name = \"one\", set = { seed = 2 } }]"),
        rest(
            "[sweep]\nconn.cc = [\"reno\"]\nlink.wire.rate = { from = \"1mbit\", to = \"9mbit\", steps = 3 }",
        ),
        link("back = {}"),
        rest("[host]\nworld = \"kernel\"\nkernel = { cc = \"bbr\", sysctl = { \"net.ipv4.tcp_sack\" = 0 } }"),
    ];
    all.extend(
        [
            "kind = \"drop-tail\"",
            "kind = \"step\", threshold = 9",
            "kind = \"ramp\", min = 1, max = 9",
            "kind = \"red\", min = 3000, max = 9000",
            "kind = \"codel\"",
            "kind = \"fq-codel\"",
            "kind = \"pie\"",
            "kind = \"pi2\"",
            "kind = \"dualpi2\"",
            "kind = \"dualpi2\", shift = \"50ms\"",
            "kind = \"curvy-red\"",
        ]
        .map(|queue| link(&format!("queue = {{ {queue} }}"))),
    );
    all.extend(
        [
            "kind = \"loss\", probability = 0.1",
            "kind = \"gilbert-elliott\", to_bad = 0.1, to_good = 0.1",
            "kind = \"drop\", packets = [1]",
            "kind = \"drop\", data = [1]",
            "kind = \"duplicate\", probability = 0.1",
            "kind = \"corrupt\", probability = 0.1",
            "kind = \"reorder\", probability = 0.1, by = \"1ms\"",
            "kind = \"jitter\", limit = \"1ms\"",
            "kind = \"batch\", every = \"1ms\"",
            "kind = \"policer\", rate = \"1mbit\", bucket = \"10k\"",
        ]
        .map(|impairment| link(&format!("impairments = [{{ {impairment} }}]"))),
    );
    all.extend([
        app("kind = \"bulk\", conn = {}, accept = {}, wait = { exponential = \"1s\" }, reader = { bytes = 9, interval = \"1s\" }"),
        app("kind = \"bulk\", reader = { wake_up = \"1ms\" }"),
        app("kind = \"request\", request = 100, response = 1000"),
        app("kind = \"download\", size = { pareto = \"10k\", shape = 1.5 }, wait = { uniform = [\"1s\", \"2s\"] }"),
        app("kind = \"writes\", size = 100, interval = \"1s\""),
        app("kind = \"on-off\", on = \"1s\", off = \"1s\""),
        app("kind = \"bsd-writer\""),
    ]);
    all
}

/// Each scenario of the corpus, with the keys that were asked for at its first point.
fn read() -> Vec<(Scenario, Vec<(String, Asked)>)> {
    let parse = |text: String| {
        ASKED.take();
        let scenario =
            Scenario::parse(&text, "corpus.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        (scenario, ASKED.take())
    };
    corpus().into_iter().map(parse).collect()
}

#[test]
fn every_key_of_the_table_is_read() {
    let read: BTreeSet<(&str, &str, &str)> = read()
        .iter()
        .flat_map(|(_, asked)| asked.iter().map(|(_, it)| (it.heading, it.kind, it.row.name)))
        .collect();
    for section in SECTIONS {
        let common = section.keys.iter().flat_map(|key| match section.kinds {
            [] => vec![("", key)],
            kinds => kinds.iter().map(|kind| (kind.name, key)).collect(),
        });
        let own = section.kinds.iter().flat_map(|kind| kind.keys.iter().map(|key| (kind.name, key)));
        for (kind, key) in common.chain(own) {
            assert!(
                read.contains(&(section.heading, kind, key.name)),
                "{} {kind}: {} is in the table, but nothing reads it",
                section.heading,
                key.name
            );
        }
    }
}

#[test]
fn a_default_in_the_table_is_what_leaving_the_key_out_means() {
    let mut compared = 0;
    for (scenario, asked) in read() {
        for (path, Asked { row, .. }) in asked.iter().filter(|(_, it)| !it.is_there) {
            let Default::Value(default) = row.default else { continue };
            let given = scenario.with_set([format!("{}={default}", join(path, row.name))]);
            let given = given.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(
                format!("{:?}", given.setup(0).unwrap()),
                format!("{:?}", scenario.setup(0).unwrap()),
                "{path}: {} = {default}",
                row.name
            );
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} defaults were compared");
}

/// A key whose row and whose reader disagree panics in
/// [`Item::misread`](super::super::reader::Item), which this finds.
#[test]
fn every_key_takes_what_its_row_says_and_names_its_range_otherwise() {
    let mut named = BTreeSet::new();
    for (scenario, asked) in read() {
        for (path, Asked { row, is_there, .. }) in &asked {
            let key = join(path, row.name);
            let set = |value: &str| {
                scenario.with_set([format!("{key}={value}")]).map_err(|error| error.to_string())
            };
            for value in possible(&row.accepts) {
                let error = set(&value).err().unwrap_or_default();
                assert!(!error.contains("is not possible"), "{key}={value}: {error}");
            }
            for (value, expected) in impossible(&row.accepts) {
                let error = set(&value).err().unwrap_or_else(|| panic!("{key}={value} passes"));
                if error.contains(&expected) {
                    named.insert(std::ptr::from_ref(*row));
                }
                // A key that is added may be refused beside those that are there, whatever its
                // value.
                assert!(
                    error.contains(&expected) || !is_there && !error.contains("is not possible"),
                    "{key}={value}: {error}, not {expected:?}"
                );
            }
        }
    }
    for section in SECTIONS {
        for row in section.keys.iter().chain(section.kinds.iter().flat_map(|kind| kind.keys)) {
            let is_named = impossible(&row.accepts).is_empty() || named.contains(&std::ptr::from_ref(row));
            assert!(is_named, "{}: nothing named the range of {}", section.heading, row.name);
        }
    }
}

/// Values within the row's range: its ends, and each choice.
fn possible(accepts: &Accepts) -> Vec<String> {
    let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    match *accepts {
        Accepts::Text | Accepts::Name => text(&["x"]),
        Accepts::Switch => text(&["true", "false", "on"]),
        // Not so many that a test makes them.
        Accepts::Integer(low, high, _) => vec![low.to_string(), high.min(1_000).to_string()],
        Accepts::Number(low, high) => vec![low.to_string(), high.to_string()],
        Accepts::Probability => text(&["0", "1", "\"50%\""]),
        Accepts::Time => text(&["0", "5ms"]),
        Accepts::Period => text(&["5ms", "1.5s"]),
        Accepts::Rate => text(&["1mbit"]),
        Accepts::Bytes(low, high) => vec![low.to_string(), high.to_string()],
        Accepts::Limit => text(&["1p", "10k", "5ms", "unlimited"]),
        Accepts::Choice(names) => names.iter().map(|(name, _)| (*name).to_owned()).collect(),
        Accepts::WordOr(word, _) => vec![word.to_owned()],
        Accepts::List(of) => possible(of).iter().map(|value| format!("[{value}]")).collect(),
        Accepts::Drawn(of) => possible(of),
        _ => vec![],
    }
}

/// Values beyond the row's range, and what the error must say.
fn impossible(accepts: &Accepts) -> Vec<(String, String)> {
    let one = |value: &str, expected: &str| vec![(value.to_owned(), expected.to_owned())];
    match *accepts {
        Accepts::Integer(low, high, _) => {
            let expected = format!("must be a whole number from {low} to {high}");
            let mut values = vec![(format!("{}", i128::from(low) - 1), expected.clone())];
            values.extend(high.checked_add(1).map(|value| (value.to_string(), expected)));
            values
        }
        Accepts::Number(low, high) => one("1e9", &format!("must be a number from {low} to {high}")),
        Accepts::Probability => one("1.5", "must be a number from 0 to 1"),
        Accepts::Time => one("5", "must be a time with its unit"),
        Accepts::Period => one("0s", "must be longer than zero"),
        Accepts::Rate => one("5", "must be a rate"),
        Accepts::Bytes(low, high) => one(&(high + 1).to_string(), &format!("bytes from {low} to {high}")),
        Accepts::Limit => one("0p", "must be larger than zero"),
        Accepts::Switch => one("maybe", "must be true or false"),
        Accepts::Choice(names) => {
            let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
            one("nothing-of-this", &format!("(allowed: {})", names.join(", ")))
        }
        Accepts::Drawn(of) => impossible(of),
        _ => vec![],
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
