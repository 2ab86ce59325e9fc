//! The scenarios of this repository whose trouble is known: the story of the transfer in each names
//! it.

use crate::world::{CaptureLocation, Comments, capture, story};
use ackline_explain::story::{Cause, Connection, Direction, PathChange};
use ackline_explain::text;
use ackline_lab::Scenario;
use ackline_tcp_core::Duration;

/// The story of the first seconds of a scenario at a point of its sweep.
fn told(name: &str, point: usize, at: CaptureLocation, seconds: u64) -> Vec<Connection> {
    let path = format!("{}/../../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let scenario = Scenario::parse(&text, name).unwrap_or_else(|error| panic!("{error}"));
    let file = capture(&scenario, point, at, Duration::from_secs(seconds));
    story(&file, Comments::Removed).connections
}

fn data(connections: &[Connection]) -> &Direction {
    let [connection] = connections else { panic!("one connection: {}", connections.len()) };
    &connection.directions[0]
}

fn near(ns: u64, seconds: f64, within: f64) -> bool {
    (ns as f64 / 1e9 - seconds).abs() <= within
}

/// At 20 s the path becomes longer, at 40 s slower, at 60 s it is as it was.
#[test]
fn a_path_that_changes_is_named_with_its_round_trips() {
    for (point, cc) in ["reno", "cubic"].into_iter().enumerate() {
        for at in [CaptureLocation::Sender, CaptureLocation::Middle] {
            let connections = told("path-change", point, at, 80);
            let direction = data(&connections);
            let changes = &direction.path_changes;
            let [longer, .., shorter] = changes[..] else { panic!("{cc}, {at:?}: {changes:?}") };
            assert!(near(longer.at_ns, 20.0, 0.2), "{cc}, {at:?}: {longer:?}");
            // Behind the capture in the middle is the way to the receiver alone.
            let share = if at == CaptureLocation::Middle { 0.5 } else { 1.0 };
            assert!(near(longer.before_ns, 0.020 * share, 0.001), "{cc}, {at:?}: {longer:?}");
            assert!(near(longer.after_ns, 0.080 * share, 0.002), "{cc}, {at:?}: {longer:?}");
            assert!(near(shorter.at_ns, 60.0, 1.0), "{cc}, {at:?}: {shorter:?}");
            assert!(shorter.before_ns as f64 >= 0.080e9 * share, "{cc}, {at:?}: {shorter:?}");
            assert!(near(shorter.after_ns, 0.020 * share, 0.012), "{cc}, {at:?}: {shorter:?}");
            // Behind the queue nothing changes at 40 s.
            let between: Vec<&PathChange> = changes[1..changes.len() - 1].iter().collect();
            match at {
                CaptureLocation::Sender => assert!(
                    between.len() == 1
                        && near(between[0].at_ns, 40.0, 2.0)
                        && between[0].after_ns > between[0].before_ns,
                    "{cc}: {between:?}"
                ),
                _ => assert!(between.is_empty(), "{cc}: {between:?}"),
            }
            let page = text::page(&connections[0]);
            let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                page.contains("Path became longer or slower at")
                    && page.contains("became shorter or faster at"),
                "{page}"
            );
        }
    }
}

#[test]
fn losses_of_the_path_are_no_change_of_it() {
    let connections = told("recovery", 0, CaptureLocation::Sender, 60);
    let direction = data(&connections);
    assert!(direction.losses.fast > 50, "{:?}", direction.losses);
    assert!(direction.losses.timeouts * 20 < direction.losses.fast, "{:?}", direction.losses);
    assert_eq!(direction.path_changes, []);
}

/// The link stands still from 10 s on.
#[test]
fn a_link_that_stalls_is_a_stall_and_no_change_of_the_path() {
    for (point, lasts) in [0.1, 0.5, 1.0, 3.0].into_iter().enumerate() {
        let connections = told("stall", point, CaptureLocation::Sender, 20);
        let direction = data(&connections);
        let stall = direction.stalls.iter().max_by_key(|stall| stall.time_ns);
        if lasts > 0.3 {
            let stall = stall.unwrap_or_else(|| panic!("{lasts}"));
            assert!(matches!(stall.cause, Cause::Timer | Cause::Silence), "{lasts}: {stall:?}");
            assert!(near(stall.at_ns, 10.0, lasts), "{lasts}: {stall:?}");
            assert!(direction.losses.timeouts > 0 && direction.losses.spurious > 0, "{:?}", direction.losses);
        }
        assert_eq!(direction.path_changes, [], "{lasts}");
    }
}
