//! Tables of events and what becomes of them.

use super::{Host, us};
use std::string::String;
use std::vec::Vec;

/// One vector: its name, what it begins with, and its events.
struct Vector<'a> {
    name: &'a str,
    title: &'a str,
    with: &'a str,
    /// The event and what is expected of it.
    events: Vec<(&'a str, &'a str)>,
}

fn read(text: &str) -> Vec<Vector<'_>> {
    let mut vectors: Vec<Vector<'_>> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(heading) = line.strip_prefix("-- ") {
            let (name, title) = heading.split_once(' ').expect("a name and a title");
            vectors.push(Vector { name, title, with: "", events: Vec::new() });
            continue;
        }
        let vector = vectors.last_mut().expect("a heading comes first");
        match line.split_once(" -> ") {
            Some(event) => vector.events.push(event),
            None => vector.with = line.strip_prefix("with ").expect("an event, or what it begins with"),
        }
    }
    vectors
}

impl Vector<'_> {
    fn host(&self) -> Host {
        let get = |key: &str| {
            self.with.split(' ').find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key))
        };
        let number = |key: &str| get(key).map(|(_, value)| value.parse::<u32>().expect("a number"));
        let (policy, params) =
            get("policy").map_or(("a3", ""), |(_, spec)| spec.split_once(':').unwrap_or((spec, "")));
        let params = [params, "profile=paper"].join(",");
        let buffer = number("R").expect("a buffer");
        let rtt = number("rtt").unwrap_or(200_000);
        let mut host = Host::new(policy, &params, buffer, number("mss").unwrap_or(9_148), rtt.into());
        let policy = &mut host.policy;
        policy.muds = number("muds");
        policy.last_sample = number("last");
        let length = number("isp_t").unwrap_or(10);
        policy.interval.preset(length, number("isp_cnt").unwrap_or(length));
        if let Some(ipat) = number("ipat") {
            policy.gaps.preset(us(ipat.into()));
        }
        host
    }

    fn check(&self) {
        let mut host = self.host();
        for &(event, expected) in &self.events {
            let (kind, rest) = event.split_once('(').expect("an event");
            let arguments: Vec<&str> = rest.trim_end_matches(')').split(", ").collect();
            let number = |i: usize| arguments.get(i).and_then(|text| text.parse().ok()).expect("a number");
            let at = u64::from(number(0));
            let got: String = match kind {
                "S" => host.segment(at, number(1), number(2), arguments.get(3) == Some(&"True"), 1),
                "G" => host.segment(at, number(1), number(2), false, number(3)),
                "O" => host.own_data(at),
                "T" => host.timer(at),
                _ => panic!("{event}: no such event"),
            };
            assert_eq!(got, expected, "{} ({}): {event}", self.name, self.title);
        }
    }
}

fn names<'a>(vectors: &[Vector<'a>]) -> Vec<&'a str> {
    vectors.iter().map(|vector| vector.name).collect()
}

#[test]
fn the_independent_models_vectors_hold() {
    let vectors = read(include_str!("vectors.txt"));
    let expected = [
        "V1", "V2", "V3", "V4", "V5a", "V5b", "V5c", "V6", "V7", "V8", "V9", "V10", "V11", "V12", "V13",
        "V14", "V15", "V16", "V17",
    ];
    assert_eq!(names(&vectors), expected);
    vectors.iter().for_each(Vector::check);
}

#[test]
fn the_steps_by_hand_hold() {
    let vectors = read(include_str!("derived.txt"));
    assert!(vectors.len() >= 16, "{:?}", names(&vectors));
    vectors.iter().for_each(Vector::check);
}
