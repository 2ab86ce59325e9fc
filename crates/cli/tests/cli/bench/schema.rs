//! Whether a document of `ackline bench` has what iperf3's has for the same test: the same keys,
//! the same types.

use crate::fields::documented;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The key under which `ackline bench` says what iperf3 has no words for.
const ADDITIONS: &str = "ackline";

/// Compares every key of the two documents; says all differences at once.
pub(crate) fn compare(ours: &Value, theirs: &Value, what: &str) {
    let (ours, theirs) = (shape(ours), shape(theirs));
    let mut differences = vec![];
    for (path, kind) in &theirs {
        match ours.get(path) {
            None => differences.push(format!("{path} is missing")),
            Some(other) if other != kind => differences.push(format!("{path} is {other}, not {kind}")),
            Some(_) => {}
        }
    }
    let extra = ours.keys().filter(|path| !theirs.contains_key(*path));
    differences
        .extend(extra.filter(|path| !path.starts_with(ADDITIONS)).map(|path| format!("{path} is new")));
    assert!(differences.is_empty(), "{what}: {differences:#?}");
    assert!(ours.contains_key(ADDITIONS), "{what}: our own part");
}

/// Compares our own part with its table in `docs/bench.md`.
pub(crate) fn compare_own_part(ours: &Value, what: &str) {
    let part = ours[ADDITIONS].as_object().unwrap_or_else(|| panic!("{what}: {ours}"));
    let told: BTreeSet<String> = part.keys().cloned().collect();
    let page = include_str!("../../../../../docs/bench.md");
    assert_eq!(told, documented(page, "of `ackline`"), "{what}");
    let connected = ours["start"]["connected"].as_array().expect("an array").iter();
    let sockets: Vec<_> = connected.map(|stream| &stream["socket"]).collect();
    let streams = part["streams"].as_array().expect("an array");
    assert_eq!(streams.iter().map(|stream| &stream["socket"]).collect::<Vec<_>>(), sockets, "{what}");
    for stream in streams {
        let told: BTreeSet<String> = stream.as_object().expect("an object").keys().cloned().collect();
        assert_eq!(told, documented(page, "of each stream of `ackline`"), "{what}");
        let window = &stream["metrics"]["cc"]["cwnd"];
        assert!(window.as_f64() > Some(0.0), "{what}: {stream}");
    }
}

/// The type of each place in a document; all elements of an array are one place, with the types of
/// all of them.
fn shape(document: &Value) -> BTreeMap<String, String> {
    let mut places = BTreeMap::new();
    visit(document, "", &mut places);
    places.into_iter().map(|(path, kinds)| (path, kinds.join(" or "))).collect()
}

fn visit(value: &Value, path: &str, places: &mut BTreeMap<String, Vec<&'static str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(items) => {
            items.iter().for_each(|item| visit(item, &format!("{path}[]"), places));
            "array"
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                visit(field, &below, places);
            }
            "object"
        }
    };
    let kinds = places.entry(path.to_owned()).or_default();
    if !kinds.contains(&kind) {
        kinds.push(kind);
        kinds.sort_unstable();
    }
}

#[test]
fn differences_are_found() {
    let theirs = serde_json::json!({ "a": [{ "b": 1 }, { "c": true }], "d": {} });
    let same = serde_json::json!({ "a": [{ "b": 2.5, "c": false }], "d": {}, "ackline": { "x": 1 } });
    compare(&same, &theirs, "alike");
    for different in [
        serde_json::json!({ "a": [{ "b": 2 }], "d": {}, "ackline": {} }),
        serde_json::json!({ "a": [{ "b": "2", "c": false }], "d": {}, "ackline": {} }),
        serde_json::json!({ "a": [{ "b": 2, "c": false }], "d": {}, "e": 1, "ackline": {} }),
        serde_json::json!({ "a": [{ "b": 2, "c": false }], "d": {} }),
    ] {
        assert!(std::panic::catch_unwind(|| compare(&different, &theirs, "")).is_err(), "{different}");
    }
}
