//! A script of the packetdrill language.
//!
//! Any text is parsed, or refused at a place that it has. A packet of what was parsed is printed,
//! parsed again, and is the same. Then the script is run, in virtual time: it passes or fails, and
//! twice alike. Python and shells are not started: the runner hands the first to its caller, and
//! reads kernel parameters from the second.
#![cfg_attr(feature = "link", no_main)]

use ackline_drill::script::{Action, Event, PacketLine, ScriptTime};
use ackline_drill::{Options, Script, ScriptError, run as play};

/// Latest time of a script that is run, microseconds: a connection that is kept alive for years
/// takes a while even in virtual time.
const LATEST: u64 = 1_000_000_000;

ackline_fuzz::target!(run);

fn run(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    let script = match Script::parse(text, &[]) {
        Ok(script) => script,
        Err(error) => return check(&error, text),
    };
    for event in &script.events {
        if let Action::Packet(line) = &event.action {
            print_and_parse(line);
        }
    }
    if script.events.iter().all(is_soon) {
        let options = Options::default();
        let (first, second) = (play(text, &options), play(text, &options));
        assert_eq!(first.outcome, second.outcome);
        assert_eq!(first.packets, second.packets);
    }
}

fn check(error: &ScriptError, text: &str) {
    let lines = u32::try_from(text.lines().count()).expect("a short text");
    let place = error.place;
    assert!((1..=lines + 1).contains(&place.line) && place.column >= 1, "{error}");
    assert!(!error.problem.is_empty());
}

fn print_and_parse(line: &PacketLine) {
    let printed = line.to_string();
    let again =
        Script::parse(&format!("0 {printed}\n"), &[]).unwrap_or_else(|error| panic!("{printed:?}: {error}"));
    let [Event { action: Action::Packet(again), .. }] = &again.events[..] else {
        panic!("{printed:?} is no packet")
    };
    assert_eq!(again.to_string(), printed);
}

fn is_soon(event: &Event) -> bool {
    let when = match event.when {
        ScriptTime::At(at) | ScriptTime::After(at) => at,
        ScriptTime::Between(_, last) | ScriptTime::BetweenAfter(_, last) => last,
        ScriptTime::Any => 0,
    };
    let until = match &event.action {
        Action::Call { until, .. } => until.unwrap_or(0),
        _ => 0,
    };
    when.max(until) <= LATEST
}
