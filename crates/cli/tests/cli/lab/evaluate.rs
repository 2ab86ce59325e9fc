//! The league from the command line.

use crate::common::{run, scratch, text};
use crate::usage::refused;
use std::fs;

/// One seed of a cell of a few thousand packets.
const SMALL: [&str; 5] = ["evaluate", "--cell", "I-iot", "--seeds", "1"];

#[test]
fn a_control_stands_beside_the_standard_ones_and_its_runs_are_kept() {
    let (folder, _) = scratch("");
    let out = folder.path().join("league");
    let all = [&SMALL[..], &["vegas", "--out", text(&out)]].concat();
    let ended = run(&[&all[..], &["--json"]].concat());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let json = ended.json();
    let specs: Vec<&str> = json["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .filter_map(|entry| entry["contestant"]["spec"].as_str())
        .collect();
    assert_eq!(specs, ["reno", "cubic", "cubic:pacing=on", "vegas"]);
    assert_eq!(fs::read_dir(out.join("runs")).expect("a folder").count(), 4);
    assert!(fs::read_to_string(out.join("league.md")).expect("a page").contains("(league/vegas.md)"));

    // Of the data alone the same comes.
    let data = out.join("league/league.json");
    let again = run(&["evaluate", "--cell", "I-iot", "--from", text(&data), "--json"]);
    assert!(again.status == Some(0) && again.stdout == ended.stdout, "{again:?}");
    let shown = run(&all);
    assert!(String::from_utf8(shown.stdout).expect("UTF-8").contains("vegas"));

    let whole = folder.path().join("whole");
    let merged = run(&["merge", text(&out), "--out", text(&whole)]);
    assert_eq!((merged.status, fs::read_dir(whole.join("runs")).expect("a folder").count()), (Some(0), 4));
}

#[test]
fn a_cell_is_a_scenario() {
    let ended = run(&["evaluate", "bbr", "--scenario", "H-cubic-1"]);
    let scenario = String::from_utf8(ended.stdout).expect("UTF-8");
    assert!(ended.status == Some(0) && scenario.contains("cc = \"bbr\""), "{scenario}");
    let listed = run(&["evaluate", "--quick", "--list"]);
    assert!(String::from_utf8(listed.stdout).expect("UTF-8").starts_with("M1-quick "));
}

#[test]
fn what_there_is_not_is_refused() {
    assert!(refused(&["evaluate", "--cell", "I-oit"], 2).contains("did you mean \"I-iot\"?"));
    assert!(refused(&["evaluate", "cubik", "--cell", "I-iot"], 2).contains("cubik"));
    assert!(refused(&["evaluate", "--scenario", "H"], 2).contains("is a family"));
    for ignored in [&["--list", "--seeds", "2"][..], &["--scenario", "H-cubic-1", "--bars"]] {
        let ended = run(&[&["evaluate"], ignored].concat());
        assert!(ended.status == Some(2) && ended.stderr.contains("cannot be used with"), "{ended:?}");
    }
}
